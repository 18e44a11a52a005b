"""The public face: an engine holds a model (and a drafter), checks what it is asked for, and runs it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .chat import Chat
from .codec import Codec, Message
from .errors import ParamError
from .methods import Method
from .model.session import Model, Tell
from .parts import Part, Parts
from .request import (
    Request,
    check_chunk,
    check_count,
    check_ends,
    check_event,
    check_memory,
    check_record,
    check_reference,
    check_room,
    check_seconds,
    check_step,
    check_stops,
    find_method,
    find_sampling,
)
from .run import Run
from .sampling import Sampling
from .session_pool import Lender
from .trace.rescore import Rescore, rescore
from .types import JSON, Summary, Trace

Prompt = str | Sequence[int] | Sequence[Message]


class _StoppedError(Exception):
    """The caller has had enough while a part was being made."""


@dataclass(frozen=True, slots=True)
class Result:
    """A finished run: new tokens only."""

    text: str
    ids: tuple[int, ...]
    trace: Trace
    summary: Summary


class Engine:
    """Runs decoding methods on a model. Make one with `decoding.load`."""

    def __init__(self, model: Model, codec: Codec, draft: Model | None = None, parts: Parts | None = None) -> None:
        self.model, self.codec, self.draft = model, codec, draft
        self._parts = parts or Parts()
        self._memory: dict[str, Any] = {}  # by method
        self._lender = Lender()

    def encode(self, prompt: Prompt, name: str = "prompt") -> list[int]:
        """Ids of a text, of a chat through the model's own template, or of ids themselves, checked."""
        if isinstance(prompt, str):
            ids = self.codec.encode(prompt)
        elif isinstance(prompt, bytes | bytearray) or not isinstance(prompt, Sequence):
            raise ParamError(f"the {name} must be a text, a list of messages or a list of token ids")
        elif prompt and isinstance(prompt[0], Mapping):
            ids = self.codec.encode_chat(prompt)  # type: ignore[arg-type]  # it checks every message
        else:
            ids = list(prompt)  # type: ignore[arg-type]  # every id is checked below
        if not ids:
            raise ParamError(f"the {name} is empty: write at least one character, or give one token id")
        for token in ids:
            check_count(f"each token id of the {name}", token, 0, self.model.card.vocabulary - 1)
        return ids

    def decode(
        self,
        prompt: Prompt,
        method: str | type[Method] = "autoregressive",
        params: Mapping[str, JSON] | None = None,
        sampling: Mapping[str, JSON] | Sampling | None = None,
        max_new_tokens: int = 128,
        *,
        stop: Sequence[str] = (),
        end_tokens: Sequence[int] | None = None,
        reference: Prompt | None = None,
        record: str = "light",
        prefill_chunk: int | None = None,
        time_budget: float = float("inf"),
        cancel: threading.Event | None = None,
        progress: Callable[[str, float], None] | None = None,
        chat: Chat | None = None,
        memory: dict[str, Any] | None = None,
    ) -> Run:
        """Start a run: iterate over it for its steps. All arguments are checked here, before the first step.

        `reference` is a document that copying methods look in beside the text; `end_tokens` replaces the model's
        own ends of text; `prefill_chunk` is the number of prompt tokens per pass; setting `cancel` ends the run;
        `progress` hears how much of a long prompt has been read; a `chat` keeps the caches for the next turn.
        `memory`, a dict of yours, keeps what methods learn for later runs of this engine; without it the chat does, or
        the engine itself: a server gives every user another one.
        """
        kind = find_method(method)
        if missing := self.lacks(kind):
            raise ParamError(f"{kind.name} needs {missing}")
        ids = self.encode(prompt)
        setting = kind.Params.parse({} if params is None else params)
        chunk = check_chunk(prefill_chunk, self.model.window)
        request = Request(
            method=kind,
            params=setting,
            sampling=find_sampling(sampling),
            prompt=tuple(ids),
            max_new_tokens=check_room(len(ids), max_new_tokens, self.model.card.context),
            stop=check_stops(stop),
            end_tokens=check_ends(end_tokens, self.codec.end_tokens, self.model.card.vocabulary),
            reference=check_reference(kind, () if reference is None else self.encode(reference, "reference")),
            record=check_record(record),
            prefill_chunk=chunk,
            largest_step=max(min(chunk, len(ids)), check_step(kind.name, setting.nodes)),
            time_budget=check_seconds(time_budget),
            memory=check_memory(memory, self._memory if chat is None else chat.memory, kind),
            parts=self._parts_of(kind, event := check_event(cancel), progress),
        )
        return Run(request, self.model, self.draft, self.codec, self._lender, event, progress, chat)

    def _parts_of(self, method: type[Method], stop: threading.Event, progress: Tell | None) -> dict[str, Part]:
        """What a method needs, made now where it is not yet there; nothing once the run is to be stopped."""

        def tell(what: str, share: float) -> None:
            if stop.is_set():
                raise _StoppedError
            if progress is not None:
                progress(what, share)

        try:
            return self._parts.take(method.needs, tell)
        except _StoppedError:
            return {}

    def lacks(self, method: str | type[Method]) -> str | None:
        """What this engine lacks to run a method, and how to get it; None where it can run it."""
        return self._parts.missing(find_method(method).needs, has_draft=self.draft is not None)

    def prepare(self, method: str | type[Method], progress: Callable[[str, float], None]) -> None:
        """Make now what a method needs and what its first run would otherwise wait for."""
        self._parts.take(find_method(method).needs, progress)

    def part(self, name: str, progress: Callable[[str, float], None] | None = None) -> Any:
        """One of the parts that this engine was loaded with, by the name in a method's `needs`."""
        needs = frozenset({name})
        if missing := self._parts.missing(needs, has_draft=False):
            raise ParamError(f"this engine lacks {missing}")
        return self._parts.take(needs, progress or (lambda what, share: None))[name]

    def generate(self, prompt: Prompt, method: str | type[Method] = "autoregressive", **options: Any) -> Result:
        """Run to the end; takes what `decode` takes."""
        run = self.decode(prompt, method, **options)
        for _ in run:
            pass
        return Result(run.summary.text, run.ids, run.trace, run.summary)

    def rescore(self, trace: Trace, progress: Callable[[str, float], None] | None = None) -> Rescore:
        """Check every emitted token of a run against one plain pass over its text."""
        if not isinstance(trace, Trace):
            raise ParamError("give a trace: a result's, or one from decoding.trace.read_trace")
        return rescore(trace, self.model, self._lender, progress)
