"""A run in another process, which the page reads from the lines of its record while they are written."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from contextvars import copy_context
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from decoding.errors import SpecscopeError
from decoding.trace.file import Texts
from decoding.trace.metrics import summarise
from decoding.trace.schema import from_json
from decoding.types import Header, Step, Summary, Trace

if TYPE_CHECKING:
    from decoding.codec import Codec
    from decoding.trace.rescore import Rescore


class PlacedRun(Iterator[Step]):
    """What the page needs of `decoding.run.Run`, from the lines of a run's record.

    `texts` yields these lines while the run goes on; `note_pace` is called with the seconds that a token took.
    """

    def __init__(
        self,
        codec: Codec,
        texts: Callable[[], Generator[str, None, None]],
        note_pace: Callable[[float], None],
        cancel: threading.Event,
    ) -> None:
        self.steps = list[Step]()
        self._check: Rescore | None = None
        self._summary: Summary | None = None
        self._codec, self._cancel = codec, cancel
        self._texts = dict[int, str]()
        self._closed, self._lines = threading.Event(), SimpleQueue[str | Exception | None]()
        # The thread keeps the context: `spaces` finds the visitor there, who has the quota.
        threading.Thread(target=copy_context().run, args=(self._fetch, texts, note_pace), daemon=True).start()
        self.header = self._read_header()

    def __next__(self) -> Step:
        while (line := self._take()) is not None:
            kind, value = line
            if kind == "step":
                self.steps.append(value)
                return value  # type: ignore[no-any-return]
            if kind == "summary":
                break
        raise StopIteration

    def close(self) -> None:
        """End the run after its current step; one that has ended is still being checked."""
        if self._summary is None:
            self._closed.set()

    @property
    def ids(self) -> tuple[int, ...]:
        """Return the new tokens so far."""
        return tuple(token for step in self.steps for token in step.emitted)

    @property
    def finish(self) -> str | None:
        """Return why the run ended, in the words of `Summary.finish`; None while it is running."""
        if self._summary is None:
            return "cancelled" if self._closed.is_set() else None
        return self._summary.finish

    @property
    def summary(self) -> Summary:
        """Return the run's summary, or that of the steps so far."""
        if self._summary is not None:
            return self._summary
        text = self._codec.continuation(self.header.prompt, self.ids)
        cut: Summary = summarise(self.steps, "cancelled", text)
        return cut

    @property
    def trace(self) -> Trace:
        """Return the record so far."""
        return Trace(self.header, tuple(self.steps), self.summary, dict(sorted(self._texts.items())))

    def texts(self, step: Step | None = None) -> dict[int, str]:
        """Return display texts, at least those that a step uses."""
        return dict(self._texts)

    def take_check(self) -> Rescore | None:
        """Wait for the check, which follows the run; None if the run was stopped."""
        while self._check is None and self._take() is not None:
            pass
        return self._check

    def _read_header(self) -> Header:
        """Wait for the GPU, and for what comes before the first step."""
        header = None
        while (line := self._take()) is not None:
            kind, value = line
            header = value if kind == "header" else header
            if kind == "texts" and header is not None:
                return header  # type: ignore[no-any-return]
        raise SpecscopeError("stopped before it began")

    def _take(self) -> tuple[str, Any] | None:
        """Return the next line's kind and value; None at the end."""
        while True:
            taken = self._lines.get()
            if isinstance(taken, Exception):
                raise taken
            if taken is None:
                self._lines.put(None)  # for further calls: nothing else follows
                return None
            data = json.loads(taken)
            kind = data.pop("kind")
            if kind == "refused":
                raise SpecscopeError(data["sentence"])
            value: Any = from_json(_types()[kind], data, kind)
            if kind == "texts":
                self._texts |= value.texts
            elif kind == "summary":
                self._summary = value
            elif kind == "check":
                self._check = value
            return kind, value

    def _fetch(self, texts: Callable[[], Generator[str, None, None]], note_pace: Callable[[float], None]) -> None:
        """Read the run's lines from the other process, in a thread, while somebody waits for them."""
        begun, tokens = 0.0, 0
        try:
            with closing(texts()) as yielded:
                for text in yielded:
                    begun = begun or time.monotonic()
                    for line in text.splitlines():
                        self._lines.put(line)
                        tokens += len(json.loads(line).get("emitted", ()))
                    if self._cancel.is_set() or self._closed.is_set():
                        break
            if tokens:
                note_pace((time.monotonic() - begun) / tokens)
        except Exception as error:
            self._lines.put(error)
        finally:
            self._lines.put(None)


def _types() -> dict[str, type]:
    from decoding.trace.rescore import Rescore  # brings torch

    return {"header": Header, "texts": Texts, "step": Step, "summary": Summary, "check": Rescore}
