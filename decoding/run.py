"""A run: an iterator over its steps, with the summary and the trace so far."""

from __future__ import annotations

import platform
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
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
from .trace.metrics import may_be_cached, summarise
from .types import Header, Step, Summary, Trace


@dataclass(slots=True)
class _Progress:
    """The progress of a run."""

    steps: list[Step] = field(default_factory=list)
    finish: str | None = None
    bandwidth: float | None = None  # measured after the last step


class Run(Iterator[Step]):
    """A run: iterate over its steps. `summary` and `trace` hold what has happened so far."""

    def __init__(self, request: Request, loaded: Loaded) -> None:
        self.request = request
        self.header = _header(request, loaded.model, loaded.draft)
        self._codec = loaded.codec
        # A run that was cancelled while its parts were made may lack them, so it stays cancelled.
        self._progress = _Progress(finish="cancelled" if request.cancel.is_set() else None)
        # The generator must not refer to this object, so that a run dropped half-way is freed, which closes it.
        self._generator = _steps(request, loaded, self._progress)

    def __next__(self) -> Step:
        return next(self._generator)

    def close(self) -> None:
        """End the run and return its memory. A run that is dropped half-way is closed automatically."""
        self._generator.close()

    def cancel(self) -> None:
        """End the run after the current step; callable from any thread."""
        self.request.cancel.set()

    @property
    def steps(self) -> list[Step]:
        """Return the steps so far."""
        return self._progress.steps

    @property
    def finish(self) -> str | None:
        """Return why the run ended, in the words of `Summary.finish`; None while it goes on."""
        return self._progress.finish

    @property
    def ids(self) -> tuple[int, ...]:
        """Return the new tokens so far."""
        return tuple(token for step in self.steps for token in step.emitted)

    @property
    def text(self) -> str:
        """Return the new text so far, up to a stop string."""
        return trim(self._codec.continuation(self.request.prompt, self.ids), self.request.stop)

    @property
    def summary(self) -> Summary:
        """Summarise the run so far."""
        summary = summarise(self.steps, self.finish or "cancelled", self.text)
        return replace(summary, bandwidth=self._progress.bandwidth)

    @property
    def trace(self) -> Trace:
        """Return the record so far."""
        texts = self.texts()
        for step in self.steps:
            texts |= self.texts(step)
        return Trace(self.header, tuple(self.steps), self.summary, dict(sorted(texts.items())))

    def texts(self, step: Step | None = None) -> dict[int, str]:
        """Return display texts of the tokens in a step's record; without a step, of the prompt and the reference."""
        if step is None:
            used = {*self.header.prompt, *self.header.reference}
        else:
            used = step.used | tokens_in(self.request.method.Panel, step.panel)
        return {token: self._codec.piece(token) for token in sorted(used)}


def _steps(request: Request, loaded: Loaded, progress: _Progress) -> Generator[Step, None, None]:
    """Take the steps of a run, holding its sessions from the first step to the last."""
    if progress.finish is not None:
        return
    model, draft, session_pool = loaded.model, loaded.draft, loaded.session_pool
    held = list[tuple[str, Model, Session]]()
    tapping = bool(request.method.needs & TAPPING)
    chat = None if tapping else request.chat  # hidden states are recorded as a text is read: all of it must be read

    def acquire(use: str, owner: Model) -> Session:
        prompt, room = request.prompt, len(request.prompt) + request.max_new_tokens
        if chat is not None:
            session = chat.acquire(use, session_pool, owner, prompt, room, request.largest_step)
        else:
            session = session_pool.acquire(owner, room, request.largest_step)
            session.reset(len(prompt))
        held.append((use, owner, session))
        return session

    try:
        drafter = acquire("draft", draft) if draft and "draft_model" in request.method.needs else None
        make = Loop if request.ranks is None else ParallelLoop
        loop = make(request, model, acquire("target", model), drafter, draft or model, loaded.codec)
        while progress.finish is None:
            step, progress.finish = loop.turn(len(progress.steps))
            if step is not None:
                progress.steps.append(step)
                yield step
    except Exception:
        progress.finish = "error"
        raise
    finally:
        progress.finish = progress.finish or "cancelled"
        text = [*request.prompt, *(token for step in progress.steps for token in step.emitted)]
        for use, owner, session in held:
            if tapping and isinstance(session, TapSession):
                session.tap()
            # A run that was interrupted may have left a drafter in the middle of a guess.
            if chat is not None and progress.finish in ("length", "end_of_text", "stop"):
                chat.release(use, owner, session, text[: session.length])
            else:
                session_pool.release(owner, session)
    if progress.steps:
        progress.bandwidth = _bandwidth(request, model)


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
        slots=_slots(request, model.rolling),
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


def _slots(request: Request, rolling: int | None) -> int:
    """Return the slots of the smallest rolling cache that the run needs; 0 if it would never reuse a slot."""
    if rolling is None:
        return 0
    slots = rolling + 2 * request.largest_step
    return slots if slots < len(request.prompt) + request.max_new_tokens + request.largest_step else 0


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    packages = {name: version(name) for name in ("torch", "transformers", "numpy")}
    return {"python": platform.python_version(), **packages}
