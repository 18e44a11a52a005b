"""A tree that a drafter grows level by level, where the products of its probabilities are largest: EAGLE-2's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Form:
    """How a tree is grown, and how much of it the target reads."""

    k: int  # guesses behind a guess, and guesses of a level that have any
    depth: int
    most: int  # guesses that the target reads
    least: float  # of a product that the target reads
    expand: float  # of a product that has guesses behind it

    @property
    def bound(self) -> float:
        """The least product that has guesses behind it; `least` counts here too, as products fall along a path."""
        return max(self.least, self.expand)


class Guess(NamedTuple):
    """A guess in a tree."""

    token: int
    parent: int  # an earlier guess; -1: the root
    depth: int  # from 1
    rank: int  # among the guesses behind its parent, from 0
    chance: float  # the drafter's probability of it behind its parent
    product: float  # of the chances on the way to it


Branch = tuple[Sequence[int], Sequence[float]]  # the likeliest tokens behind a guess, and their chances
# What the drafter says behind some guesses, -1 being the root, among all so far; None: it says no more.
Look = Callable[[Sequence[int], Sequence[Guess]], Sequence[Branch] | None]


def expand(form: Form, ends: Collection[int], look: Look) -> list[Guess]:
    """All guesses: those behind the `k` best of every level. Nothing is guessed behind an end of text."""
    guesses, parents, bound = list[Guess](), [-1], form.bound
    for depth in range(1, form.depth + 1):
        first, branches = len(guesses), look(parents, guesses) if parents else None
        if branches is None:
            break
        for parent, (tokens, chances) in zip(parents, branches, strict=True):
            product = guesses[parent].product if parent >= 0 else 1.0
            for rank, (token, chance) in enumerate(zip(tokens, chances, strict=True)):
                guesses.append(Guess(token, parent, depth, rank, chance, product * chance))
        fresh = enumerate(guesses[first:], first)
        parents = [each for each, guess in fresh if guess.product >= bound and guess.token not in ends]
        parents = sorted(sorted(parents, key=lambda each: -guesses[each].product)[: form.k])
    return guesses


def best(form: Form, guesses: Sequence[Guess]) -> list[int]:
    """The guesses with the largest products, in their order: none without the one that it stands behind."""
    kept = [each for each, guess in enumerate(guesses) if guess.product >= form.least]
    return sorted(sorted(kept, key=lambda each: -guesses[each].product)[: form.most])
