"""A run for a program: the job, and its growing text."""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, NoReturn

from decoding.types import Trace

from ..jobs.live_run import decode
from ..jobs.runner import JobRunner, StartedJob
from ..jobs.streaming import Lines, UnbegunError
from ..models.entry import CatalogEntry
from ..store.trace_store import Proof, StoredRun, new_id
from .requests import Call

if TYPE_CHECKING:
    from decoding.request import DecodeOptions
    from decoding.run import Run

_CUT = "\ufffd"  # the end of a text may be a part of a character


@dataclass(slots=True)
class ApiRun:
    """A call's run. Its record is stored like a visitor's, and opens on the page."""

    call: Call
    id: str = ""
    asked_at: float = field(default_factory=time.monotonic)
    waited: float = 0.0  # seconds for the engine and its model
    text: str = ""  # so far, without what may still change
    trace: Trace | None = None
    _run: Run | None = None
    spare = None

    @property
    def entry(self) -> CatalogEntry:
        return self.call.order.entry

    @property
    def seconds(self) -> float:
        return math.inf  # the engine ends it

    def opening(self, started: StartedJob) -> str:
        self.id = started.id
        return ""

    def lines(self, started: StartedJob) -> Lines:
        """Decode and store the run. Its lines are for the page alone, so they are as short as they can be."""
        order = self.call.order
        if not (yield from started.prepare(order.entry, order.method.name)):
            raise UnbegunError
        self.waited = time.monotonic() - self.asked_at
        options: DecodeOptions = {"memory": {}, "stop": self.call.stop}
        is_shown = not started.runner.guardrails.moderates  # else nothing is, until the whole text has passed
        lines = decode(started, order, options, started.id, max_bytes=0, begun=self._begin)
        with closing(lines):
            while True:
                try:
                    more = next(lines)
                except StopIteration as end:
                    run, play = end.value
                    break
                self.text = self._settled() if is_shown else ""
                yield more
        trace = run.trace
        started.runner.store.put(started.id, StoredRun(trace, play), started.client)
        if trace.steps:
            started.runner.store.add_proof(started.id, Proof(asdict(started.engine.rescore(trace))))
        self.text, self.trace = run.text, trace
        yield play.end(run.summary)

    def _begin(self, run: Run) -> None:
        self._run = run

    def _settled(self) -> str:
        """Return the text so far without a part of a character, or of a stop string, at its end."""
        text = self._run.text.rstrip(_CUT) if self._run else ""
        held = max(map(len, self.call.stop), default=1) - 1
        return text[: len(text) - held] if held else text


async def pieces(runner: JobRunner, run: ApiRun, client: str) -> AsyncGenerator[str, None]:
    """Run the job in a thread, and yield each new piece of its text, or "" while it waits. Raises its error.

    Closing the iterator cancels the run.
    """
    loop, items, gone = asyncio.get_running_loop(), asyncio.Queue[str | Exception | None](), threading.Event()

    def put(item: str | Exception | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(items.put_nowait, item)

    def work() -> None:
        try:
            sent = ""
            with closing(runner.start(run, new_id(), client, _fail)) as texts:
                for _ in texts:
                    if gone.is_set():
                        return
                    text = run.text
                    new = text[len(sent) :] if text.startswith(sent) else ""
                    sent += new
                    put(new)
        except Exception as error:
            put(error)
        else:
            put(None)

    threading.Thread(target=work, name="call", daemon=True).start()
    try:
        while (item := await items.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        gone.set()


def _fail(error: Exception) -> NoReturn:
    raise error
