"""Measures how often each of several heads is right, whether or not the heads before it are.

A method's tokens per step are mostly those of the first heads, so a dead head hides among good ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import hypot, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from .probes import Check

if TYPE_CHECKING:
    from .probes import Examined
    from .texts import Text

KEPT = 0.4  # of the acceptance of a guess that the next ones must keep
FEWEST = 20  # guesses from which a share is told
_CLEARLY = 3.0  # times what needs no head, at least: what a head that learnt something reaches
_ERRORS = 2.0  # standard errors by which a share may be too low by chance


class HeadShare(NamedTuple):
    """How often a head is right."""

    right: float
    blind: float  # the same of the one token that is right most often
    places: int

    @property
    def error(self) -> float:
        """The standard error of `right`."""
        return share_error(self.right, self.places)


def count_right(examined: Examined, wiring: Any, texts: Sequence[Text]) -> list[HeadShare]:
    """Count how often each head is right."""
    guessed, wanted = list[torch.Tensor](), list[torch.Tensor]()  # (P, depth) each
    for text in texts:
        places, ids = text.places(examined.depth), torch.tensor(text.ids)
        guessed.append(examined.guess(wiring, text, places, examined.depth).cpu())
        wanted.append(torch.stack([ids[place + 1 : place + 1 + examined.depth] for place in places]))
    every = torch.cat(wanted)
    right = (torch.cat(guessed) == every).float().mean(0)
    blind = [max(Counter(column.tolist()).values()) / len(every) for column in every.T]
    return [HeadShare(float(share), alone, len(every)) for share, alone in zip(right, blind, strict=True)]


def check_heads(heads: Sequence[HeadShare], called: str = "head") -> Check:
    """Look for heads that are right much less often than the one before them, or than one that guesses further ahead.

    Each head has less to go by than the one before it, so some of its acceptance may be lost.
    """
    low, sound, sentence = list[int](), 0, ""  # `sound` is the last head that did not fall
    for at, head in enumerate(heads):
        before = heads[sound] if sound < at else None
        compared = [(each, KEPT) for each in heads[at + 1 :]] + ([(before, KEPT ** (at - sound))] if before else [])
        fell = any(_is_too_low(head, other, kept) for other, kept in compared if other.right * other.places >= FEWEST)
        # Behind heads that fell, more may be lost, but not everything.
        lost = (
            before is not None
            and before.right > _CLEARLY * before.blind
            and head.right <= head.blind
            and _is_too_low(head, before, KEPT)
        )
        if not fell and not lost:
            sound = at
            continue
        low.append(at + 1)
        best = max((each for each in (*heads[:at], *heads[at + 1 :])), key=lambda each: each.right)
        sentence = sentence or (
            f"right at {head.right:.0%} of the positions, one and the same token at {head.blind:.0%}, "
            f"{called} {heads.index(best) + 1} at {best.right:.0%}"
        )
    if low:
        return Check("later guesses", "later_guesses", fine=False, sentence=f"{guess_names(called, low)}: {sentence}")
    shares = ", ".join(f"{head.right:.0%}" for head in heads)
    return Check(
        "later guesses",
        "later_guesses",
        fine=True,
        sentence=f"the {_plural(called)} are right at {shares} of positions",
    )


def _is_too_low(head: HeadShare, other: HeadShare, kept: float) -> bool:
    """Return whether a head is right less often than that part of another's share, by more than chance explains."""
    return is_below(head.right, head.places, kept * other.right, kept * other.error)


def is_below(share: float, count: float, bound: float, bound_error: float) -> bool:
    """Return whether a share of so many is more than two standard errors below a bound, which has an error itself.

    Its own error is that of a share as large as the bound: one of nothing at all would have none.
    """
    return share + _ERRORS * hypot(share_error(bound, count), bound_error) < bound


def share_error(share: float, count: float) -> float:
    """Return the standard error of a share of so many."""
    return sqrt(share * (1 - share) / count)


def guess_names(called: str, numbers: Sequence[int]) -> str:
    """Name heads or guesses, before a sentence about the first of them."""
    if len(numbers) == 1:
        return f"{called} {numbers[0]}"
    return f"{_plural(called)} {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}, the first of them"


def _plural(called: str) -> str:
    return f"{called}es" if called.endswith("s") else f"{called}s"
