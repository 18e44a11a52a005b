"""A run: an iterator over its steps, with the summary and the trace so far."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import version

import torch

from .loaded import Loaded
from .loop import Loop
from .model.bandwidth import cache_bytes, slowest_read
from .model.session import Model, Session, TapSession
from .panel_tokens import tokens_in
from .parallel import ParallelLoop
from .parts.base import TAPPING
from .processor import processor_name
from .request import Request
from .stops import trim
from .trace.metrics import WHOLE, may_be_cached, summarise
from .types import Header, Step, Summary, Trace


class Run(Iterator[Step]):
    """A run: iterate over its steps. `summary` and `trace` hold what has happened so far."""

    def __init__(self, request: Request, loaded: Loaded) -> None:
        self._sessions = list[tuple[str, Model, Session]]()  # each with its use and its owner
        self._steps = list[Step]()
        self._loop: Loop | None = None
        self._bandwidth: float | None = None  # measured after the last step
        self.request, self._loaded = request, loaded
        # A run that was cancelled while its parts were made may lack them, so it stays cancelled.
        self._finish = "cancelled" if request.cancel.is_set() else None
        # Hidden states are recorded as a text is read: all of it must be read.
        self._chat = None if request.method.needs & TAPPING else request.chat
        self.header = _header(request, loaded.model, loaded.draft)

    def __next__(self) -> Step:
        if self._finish is None:
            try:
                self._loop = self._loop or self._begin()
                step, self._finish = self._loop.turn(len(self._steps))
            except BaseException as error:
                self._finish = "error" if isinstance(error, Exception) else "cancelled"
                self.close()
                raise
            if step is not None:
                self._steps.append(step)
                return step
        if self._sessions:  # it has ended by itself, just now
            self.close()
            self._bandwidth = _bandwidth(self.request, self._loaded.model) if self._steps else None
        raise StopIteration

    def close(self) -> None:
        """End the run and release its memory. A run that is dropped half-way is closed automatically."""
        self._finish = self._finish or "cancelled"
        sessions, self._sessions, self._loop = self._sessions, [], None
        for use, owner, session in sessions:
            if isinstance(session, TapSession) and self.request.method.needs & TAPPING:
                session.tap()
            # A run that was interrupted may have left a drafter in the middle of a guess.
            if self._chat is not None and self._finish in WHOLE:
                text = [*self.request.prompt, *self.ids]
                self._chat.release(use, owner, session, text[: session.length])
            else:
                self._loaded.session_pool.release(owner, session)

    def __del__(self) -> None:
        self.close()

    def cancel(self) -> None:
        """End the run after the current step; callable from any thread."""
        self.request.cancel.set()

    @property
    def steps(self) -> list[Step]:
        """Return the steps so far."""
        return self._steps

    @property
    def finish(self) -> str | None:
        """Return why the run ended, in the words of `Summary.finish`; None while it is running."""
        return self._finish

    @property
    def ids(self) -> tuple[int, ...]:
        """Return the new tokens so far."""
        return tuple(token for step in self._steps for token in step.emitted)

    @property
    def text(self) -> str:
        """Return the new text so far, up to a stop string."""
        return trim(self._loaded.codec.continuation(self.request.prompt, self.ids), self.request.stop)

    @property
    def summary(self) -> Summary:
        """Summarise the run so far."""
        summary = summarise(self._steps, self._finish or "cancelled", self.text)
        return replace(summary, bandwidth=self._bandwidth)

    @property
    def trace(self) -> Trace:
        """Return the record so far."""
        texts = self.texts()
        for step in self._steps:
            texts |= self.texts(step)
        return Trace(self.header, tuple(self._steps), self.summary, dict(sorted(texts.items())))

    def texts(self, step: Step | None = None) -> dict[int, str]:
        """Return display texts of the tokens in a step's record; without a step, in the prompt and the reference."""
        if step is None:
            used = {*self.header.prompt, *self.header.reference}
        else:
            used = step.used | tokens_in(self.request.method.Panel, step.panel)
        return {token: self._loaded.codec.piece(token) for token in sorted(used)}

    def _begin(self) -> Loop:
        """Acquire the sessions, and return the loop over them."""
        request, loaded = self.request, self._loaded
        model, draft = loaded.model, loaded.draft
        drafter = self._acquire("draft", draft) if draft and "draft_model" in request.method.needs else None
        make = Loop if request.ranks is None else ParallelLoop
        return make(request, model, self._acquire("target", model), drafter, draft or model, loaded.codec)

    def _acquire(self, use: str, owner: Model) -> Session:
        request, session_pool = self.request, self._loaded.session_pool
        room = len(request.prompt) + request.max_new_tokens
        if self._chat is not None:
            session = self._chat.acquire(use, session_pool, owner, request.prompt, room, request.largest_step)
        else:
            session = session_pool.acquire(owner, room, request.largest_step)
            session.reset(len(request.prompt))
        self._sessions.append((use, owner, session))
        return session


def _header(request: Request, model: Model, draft: Model | None) -> Header:
    return Header(
        method=request.method.name,
        params=request.params.to_json(),
        sampling=request.sampling.to_json(),
        prompt=request.prompt,
        max_new_tokens=request.max_new_tokens,
        stop=request.stop,
        end_tokens=tuple(sorted(request.end_tokens)),
        reference=request.reference,
        prefill_chunk=request.prefill_chunk,
        model=model.card,
        draft=draft.card if draft and "draft_model" in request.method.needs else None,
        device=",".join(map(str, model.devices)),
        dtype=model.precision,
        attention=model.attention,
        record=request.record,
        versions=_versions(),
        parts={name: part.about for name, part in request.parts.items()},
        window=model.rolling,
        lossless=request.params.typical is None or request.sampling.greedy,
        slots=slots(model.rolling, request.largest_step, len(request.prompt) + request.max_new_tokens),
        bandwidth=_bandwidth(request, model),
        cache=cache_bytes(model.devices) if model.card.pass_bytes else None,
        processor=processor_name(),
        threads=torch.get_num_threads(),
        ranks=1 if request.ranks is None else request.ranks.count,
        branch=request.branch,
    )


def _bandwidth(request: Request, model: Model) -> float | None:
    """Measure the memory bandwidth; None if nothing is recorded or a cache may hold the weights."""
    weights = model.card.pass_bytes
    if request.record == "off" or weights is None or may_be_cached(weights, cache_bytes(model.devices)):
        return None
    return slowest_read(model.devices)


def slots(rolling: int | None, largest_step: int, room: int) -> int:
    """Return the slots of the smallest rolling cache that a run needs; 0 if it would never reuse a slot.

    `room` counts the tokens of the prompt and the budget.
    """
    if rolling is None:
        return 0
    fewest = rolling + 2 * largest_step
    return fewest if fewest < room + largest_step else 0


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    packages = {name: version(name) for name in ("torch", "transformers", "numpy")}
    return {"python": platform.python_version(), **packages}
