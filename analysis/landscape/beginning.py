"""A run that is about to take a step at a place of a text, made without reading the text anew."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import torch

from decoding.loop import Loop
from decoding.model.download import fetch
from decoding.model.session import Session
from decoding.parts.base import TAPPING
from decoding.queued import QueuedDraft
from decoding.tree import Builder
from decoding.types import Draft, Verdict

from .hanging import HangingTree
from .together import ask

if TYPE_CHECKING:
    from decoding.engine import Engine
    from decoding.model.upload import Tokens
    from decoding.request import Request

    from .target import Target


def lead_of(request: Request) -> int:
    """The steps of a run whose drafts are the root alone: one where a method guesses from the target's states."""
    return int(bool(request.method.needs & (TAPPING | {"hidden"})))


class Beginning(Loop):
    """The run, with its prompt read; `place` tokens of the text are written, and a method's lead is behind it."""

    def __init__(self, engine: Engine, target: Target, request: Request, place: int, draft: Session | None) -> None:
        """`draft` is the session of a draft model, holding nothing but the text in front of the root."""
        prompt = tuple(target.text[: place - lead_of(request)])
        here = replace(
            request,
            prompt=prompt,
            largest_step=max(request.largest_step, min(request.prefill_chunk, len(prompt))),
            memory={},
        )
        prefix = cast("Session", _PrefixSession(target, place - 1))
        drafts_on = engine.model if draft is None or engine.draft is None else engine.draft
        super().__init__(here, engine.model, prefix, draft, drafts_on, engine.codec)
        if len(prompt) < place:
            self._write(target.text[place - 1], target.choices[place - 2], target.hidden(place - 2))

    @torch.inference_mode()
    def guess(self) -> Draft:
        """What the method proposes."""
        proposal = self._propose(len(self._text))
        if isinstance(proposal, QueuedDraft):
            return self._fit(proposal.finish(fetch(*proposal.numbers)))
        return proposal

    @torch.inference_mode()
    def _write(self, token: int, choice: int, hidden: torch.Tensor) -> None:
        """A first step that only reads the prompt and writes the text's token, whatever the target chose."""
        draft = Builder(self._text[-1]).draft()
        self._text.append(token)
        self._sampler.extend([token])
        guesses = self._method.guess(hidden).flatten().tolist() if self._guesses else ()
        self._method.observe(draft, Verdict((0,), (token,), (choice,), tuple(guesses)))


class _PrefixSession:
    """The target's session as a run meets it whose text was read up to a place; nothing is stored in it."""

    def __init__(self, target: Target, length: int) -> None:
        self._target, self._session, self.length = target, target.session, length
        self.capacity, self.largest_step, self.seam = (
            self._session.capacity,
            self._session.largest_step,
            self._session.seam,
        )
        self._layers: tuple[int, ...] = ()
        self._entered: tuple[int, ...] = ()  # behind the text, by `enter`
        self._returned = 0  # tokens whose hidden states `tapped` has returned

    def tap(self, *layers: int) -> None:
        """Record the hidden states with which the text enters these layers."""
        self._layers = layers

    def tapped(self) -> torch.Tensor:
        """Those that were not asked for before."""
        states = self._target.states(self._layers)[self._returned : self.length]
        self._returned = self.length
        return states

    def enter(self, tokens: Tokens, layer: int, ahead: int = 0) -> torch.Tensor:
        """Run a chain through the first layers."""
        known = tuple(tokens.tolist() if isinstance(tokens, torch.Tensor) else tokens)
        before, self._entered = self._entered[:ahead], (*self._entered[:ahead], *known)
        chain = tuple(range(-1, len(known) - 1))
        return ask(self._target.first_layers(layer), HangingTree(self.length, before, known, chain))

    def read(self, tokens: Any, parents: tuple[int, ...], skip: int = 0, only: Any = None) -> Any:
        """Not asked for: the target reads all places together."""
        raise AssertionError("a method only guesses here")

    resume = commit = rewind = keep = reset = read
