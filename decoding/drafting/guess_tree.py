"""A tree that a drafter grows level by level, where the products of its probabilities are largest: EAGLE-2's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ..tree import Builder
from ..types import Draft

if TYPE_CHECKING:
    from .device_tree import DeviceTree

Branches = Sequence[
    tuple[Sequence[int], Sequence[float]]
]  # for every guess, the likeliest next tokens and their probabilities
# On a device every level has its largest number of guesses, and the host knows none of them. Once they are fetched, the
# method's loop runs over them again, and finds which guesses there are.
OpenTree: TypeAlias = "GuessTree | DeviceTree"


@dataclass(frozen=True, slots=True)
class TreeBounds:
    """How far a tree is grown, and how much of it the target reads."""

    k: int  # guesses after each guess, and guesses of a level that are expanded
    depth: int
    m: int  # guesses that the target reads
    threshold: float  # the least product that the target reads
    expand: float  # the least product that is expanded


class TreeGuess(NamedTuple):
    """A guess in a tree."""

    token: int
    parent: int  # an earlier guess; -1: the root
    depth: int  # from 1
    rank: int  # among the guesses after its parent, from 0
    chance: float  # the drafter's probability of it after its parent
    product: float  # of the probabilities along its path


class GuessTree:
    """A tree that a method's loop grows."""

    # Reads the guesses of a level, -1 being the root; returns up to k tokens after each, or None if interrupted.
    likeliest: Callable[[Sequence[int], int], Branches | None]

    def __init__(self, ends: Collection[int]) -> None:
        self.guesses = list[TreeGuess]()
        self.best = dict[int, TreeGuess]()  # the kept guesses, by their indices in `guesses`
        self._ends = ends
        self._level: Sequence[int] = [-1]
        self._fresh = range(0)

    def branch(self, k: int) -> None:
        """Read the guesses of the level, and add the `k` likeliest tokens after each."""
        guesses, first, branches = self.guesses, len(self.guesses), self.likeliest(self._level, k)
        for parent, (tokens, chances) in zip(self._level if branches else (), branches or (), strict=True):
            depth, product = (guesses[parent].depth, guesses[parent].product) if parent >= 0 else (0, 1.0)
            for rank, (token, chance) in enumerate(zip(tokens, chances, strict=True)):
                guesses.append(TreeGuess(token, parent, depth + 1, rank, chance, product * chance))
        self._fresh = range(first, len(guesses))

    def descend(self, k: int, least: float) -> bool:
        """Make the `k` newest guesses with the largest products the next level; False if there are none.

        Ends of text, and guesses with a product below `least`, are left out.
        """
        self._level = self._largest((at for at in self._fresh if self.guesses[at].token not in self._ends), k, least)
        return bool(self._level)

    def keep(self, count: int, least: float) -> None:
        """Keep the `count` guesses with the largest products, none of them below `least`."""
        self.best = {at: self.guesses[at] for at in self._largest(range(len(self.guesses)), count, least)}

    def _largest(self, among: Iterable[int], count: int, least: float) -> list[int]:
        products = {at: product for at in among if (product := self.guesses[at].product) >= least}
        return sorted(sorted(products, key=lambda at: -products[at])[:count])

    def draft(self, root: int, kind: str) -> Draft:
        """Hang the best guesses below a root, with sources of that kind."""
        builder, nodes = Builder(root), {-1: 0}
        for at, guess in self.best.items():
            nodes[at] = builder.add(guess.token, nodes[guess.parent], f"{kind}:{guess.depth},{guess.rank}")
        return builder.draft()
