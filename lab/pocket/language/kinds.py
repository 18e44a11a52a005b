"""The language of the embedded family: seven kinds of conversation, each with a checker, and drills before them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from zlib import crc32

from . import arithmetic, chat, code, drills, qa, rag, summary, translation
from .sample import Sample


@dataclass(frozen=True, slots=True)
class ConversationKind:
    """A kind of conversation: how one is made, and whether an answer (to a prompt, beside a reference) is right."""

    make: Callable[[Random], Sample]
    right: Callable[[str, str, str], bool]
    weight: float  # in training: kinds with short answers and many words to learn need more conversations
    late: float  # in the polishing that follows: what is still hard then


KINDS = {
    "chat": ConversationKind(chat.make, chat.right, 1.0, 2.0),
    "translation": ConversationKind(translation.make, translation.right, 2.5, 1.0),
    "summary": ConversationKind(summary.make, summary.right, 1.0, 1.5),
    "qa": ConversationKind(qa.make, qa.right, 1.3, 0.7),
    "arithmetic": ConversationKind(arithmetic.make, arithmetic.right, 0.7, 0.4),
    "rag": ConversationKind(rag.make, rag.right, 1.3, 4.0),
    "code": ConversationKind(code.make, code.right, 1.2, 4.0),
}

DRILLED = 0.105  # the share of the training from which on
_LEAST_DRILLS = 0.04  # is all that remains of the drills
_HELD_OUT = 50  # one conversation in so many is never trained on
_SYSTEM = ("You are pocket, a small model.", "You are pocket. Answer with care.", "Be helpful.")


def held_out(sample: Sample) -> bool:
    """Return whether a conversation is excluded from training; its first words decide, so no seed can bring it in."""
    return crc32(sample.turns[0].prompt.encode()) % _HELD_OUT == 0


def training_sample(rng: Random, share: float) -> Sample:
    """Draw a conversation to learn from, given the share of the training that is done: drills first, then kinds.

    Copying and looking up are learnt suddenly, and far sooner from drills alone; then every kind is learnt quickly.
    """
    if rng.random() < max(_LEAST_DRILLS, 1.3 - 1.26 * share / DRILLED):
        return drills.make(rng)
    sample = _one(rng)
    return Sample(sample.kind, sample.turns, rng.choice(_SYSTEM)) if rng.random() < 0.05 else sample


def polishing_sample(rng: Random, share: float) -> Sample:
    """Draw a conversation to learn from at the very end: mostly of the kinds that are still hard."""
    return _one(rng, [kind.late for kind in KINDS.values()])


def long_training_sample(rng: Random) -> Sample:
    """Join conversations of several kinds to one, in which the subject changes."""
    parts = [_one(rng) for _ in range(rng.randrange(2, 5))]
    return Sample("mixed", tuple(turn for part in parts for turn in part.turns))


def held_out_sample(kind: str, rng: Random) -> Sample:
    """Draw a conversation of a kind that training never shows."""
    while not held_out(sample := KINDS[kind].make(rng)):
        pass
    return sample


def _one(rng: Random, weights: Sequence[float] | None = None) -> Sample:
    (kind,) = rng.choices(list(KINDS.values()), weights or [kind.weight for kind in KINDS.values()])
    while held_out(sample := kind.make(rng)):
        pass
    return sample
