"""The first draft of a run at one position of a text that the target has read already."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from decoding.loop import start_method
from decoding.model.download import fetch
from decoding.model.seam import Seam
from decoding.parts.base import TAPPING
from decoding.queued import QueuedDraft
from decoding.sampling import Sampler
from decoding.session_pool import SessionOwner, SessionPool, SessionT
from decoding.tree import Builder
from decoding.types import Draft, Verdict

from .joined_trees import HangingTree

if TYPE_CHECKING:
    from decoding.model.session import Model, TreeSession
    from decoding.model.upload import Tokens
    from decoding.request import Request

    from .questions import Ask
    from .target import Target


def lead_of(request: Request) -> int:
    """Count the steps of a run that draft nothing: one where a method guesses from the target's states."""
    return int(bool(request.method.needs & (TAPPING | {"hidden"})))


@torch.inference_mode()
def first_draft(
    target: Target, request: Request, position: int, ask: Ask, draft: tuple[TreeSession, Model] | None
) -> Draft:
    """Start the method where the text has `position` tokens, and return what it proposes.

    The prompt is the text without the method's lead. `draft` is a draft model and a session of it, which holds the text
    in front of the root.
    """
    prompt = target.text[: position - lead_of(request)]
    text, model = [*prompt], target.model
    sampler = Sampler(request.sampling, model.card.vocabulary, model.device, prompt)
    states = _StatesAt(target, position - 1, ask)
    largest = max(request.largest_step, min(request.prefill_chunk, len(prompt)))
    largest = min(largest, model.step_rows or largest)
    method = start_method(
        replace(request, memory={}, session_pool=_Unpooled()),
        text,
        sampler,
        states,
        draft,
        model,
        largest,
        request.cancel.is_set,
    )
    if len(prompt) < position:  # a first step that reads the prompt and writes the text's token
        root = Builder(text[-1]).draft()
        text.append(target.text[position - 1])
        hidden = target.hidden[position - 2]
        guesses = method.guess(hidden).flatten().tolist() if "hidden" in request.method.needs else ()
        method.observe(root, Verdict((0,), (text[-1],), (target.choices[position - 2],), tuple(guesses)))
    proposal = method.propose()
    if isinstance(proposal, QueuedDraft):
        proposal = proposal.finish(fetch(*proposal.numbers))
    return Seam(target.session, len(prompt)).fit(proposal, position)


class _Unpooled(SessionPool):
    """Opens a new session each time: a part's sessions have read the text up to a position."""

    def lend(self, borrower: object, owner: SessionOwner[SessionT], capacity: int, largest_step: int) -> SessionT:
        return owner.open(capacity, largest_step)


class _StatesAt:
    """The target's layer states for a run that has stored `length` tokens of the text."""

    def __init__(self, target: Target, length: int, ask: Ask) -> None:
        self.length = length
        self._target, self._ask = target, ask
        self._layers: tuple[int, ...] = ()
        self._entered: tuple[int, ...] = ()  # tokens after the text, by `enter`
        self._returned = 0  # tokens whose hidden states `tapped` has returned

    def tap(self, *layers: int) -> None:
        """Record the hidden states entering these layers."""
        self._layers = layers

    def tapped(self) -> torch.Tensor:
        """Return those that have not been returned yet."""
        states = self._target.states(self._layers)[self._returned : self.length]
        self._returned = self.length
        return states

    def enter(self, tokens: Tokens, layer: int, ahead: int = 0, parents: tuple[int, ...] | None = None) -> torch.Tensor:
        """Run a chain through the first layers."""
        assert parents is None
        ids = tuple(tokens.tolist() if isinstance(tokens, torch.Tensor) else tokens)
        before, self._entered = self._entered[:ahead], (*self._entered[:ahead], *ids)
        chain = tuple(range(-1, len(ids) - 1))
        return self._ask(self._target.enter, (layer, HangingTree(self.length, before, ids, chain)))
