"""A tree that a drafter grows level by level, where the products of its probabilities are largest: EAGLE-2's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class TreeBounds:
    """How far a tree is grown, and how much of it the target reads."""

    k: int  # guesses after a guess, and guesses of a level that have any
    depth: int
    most: int  # guesses that the target reads
    least: float  # of a product that the target reads
    expand: float  # of a product that has guesses after it; `least` counts here too, as products fall along a path


class TreeGuess(NamedTuple):
    """A guess in a tree."""

    token: int
    parent: int  # an earlier guess; -1: the root
    depth: int  # from 1
    rank: int  # among the guesses after its parent, from 0
    chance: float  # the drafter's probability of it after its parent
    product: float  # of the chances on the way to it


# The likeliest tokens after each of some guesses, -1 being the root, and their chances; None: the drafter was cut off.
Likeliest = Callable[[Sequence[int], int], "Sequence[tuple[Sequence[int], Sequence[float]]] | None"]


class OpenTree(ABC):
    """A tree that a method's loop grows.

    On a device the host does not know its numbers: every level has as many guesses as it may have. Once the numbers are
    fetched, the same loop runs over them and finds which guesses there are.
    """

    @abstractmethod
    def branch(self, k: int) -> None:
        """Read the guesses of the level, and add the `k` likeliest tokens after each."""

    @abstractmethod
    def descend(self, k: int, least: float) -> bool:
        """Make those `k` of the guesses just added the level whose products are largest; False if there are none.

        No end of text is among them, and no guess with a product below `least`.
        """

    @abstractmethod
    def keep(self, count: int, least: float) -> None:
        """Keep the `count` guesses with the largest products, none of them below `least`."""


class HostTree(OpenTree):
    """A tree whose numbers the host knows as soon as the drafter has read a level."""

    def __init__(self, likeliest: Likeliest = lambda level, k: None, ends: Collection[int] = ()) -> None:
        self.guesses = list[TreeGuess]()
        self.best = dict[int, TreeGuess]()  # those that are kept, by their places in `guesses`: parents come first
        self._likeliest, self._ends = likeliest, ends
        self._level: Sequence[int] = [-1]
        self._fresh = range(0)

    def branch(self, k: int) -> None:
        """As in `OpenTree`, like all that follows."""
        first, guesses, branches = len(self.guesses), self.guesses, self._likeliest(self._level, k)
        for parent, (tokens, chances) in zip(self._level if branches else (), branches or (), strict=True):
            depth, product = (guesses[parent].depth, guesses[parent].product) if parent >= 0 else (0, 1.0)
            for rank, (token, chance) in enumerate(zip(tokens, chances, strict=True)):
                guesses.append(TreeGuess(token, parent, depth + 1, rank, chance, product * chance))
        self._fresh = range(first, len(guesses))

    def descend(self, k: int, least: float) -> bool:
        alive = (each for each in self._fresh if self.guesses[each].token not in self._ends)
        self._level = self._largest(alive, k, least)
        return bool(self._level)

    def keep(self, count: int, least: float) -> None:
        self.best = {each: self.guesses[each] for each in self._largest(range(len(self.guesses)), count, least)}

    def _largest(self, among: Iterable[int], count: int, least: float) -> list[int]:
        products = {each: self.guesses[each].product for each in among if self.guesses[each].product >= least}
        return sorted(sorted(products, key=lambda each: -products[each])[:count])
