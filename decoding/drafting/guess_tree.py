"""A tree that a drafter grows level by level, where the products of its probabilities are largest: EAGLE-2's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..tree import Builder
from ..types import Draft


@dataclass(frozen=True, slots=True)
class TreeBounds:
    """How far a tree is grown, and how much of it the target reads."""

    k: int  # guesses after a guess, and guesses of a level that are expanded
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
    product: float  # of the chances on the way to it


@dataclass(slots=True)
class GuessTree:
    """A grown tree."""

    guesses: list[TreeGuess] = field(default_factory=list)
    best: dict[int, TreeGuess] = field(default_factory=dict)  # those that are kept, by their places in `guesses`

    def draft(self, root: int) -> Draft:
        """Hang the best guesses below a root."""
        builder, nodes = Builder(root), {-1: 0}
        for each, guess in self.best.items():
            nodes[each] = builder.add(guess.token, nodes[guess.parent], f"branch:{guess.depth},{guess.rank}")
        return builder.draft()


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

    def __init__(self, tree: GuessTree, likeliest: Likeliest, ends: Collection[int]) -> None:
        self._tree, self._likeliest, self._ends = tree, likeliest, ends
        self._level: Sequence[int] = [-1]
        self._fresh = range(0)

    def branch(self, k: int) -> None:
        """As in `OpenTree`, like all that follows."""
        guesses, branches = self._tree.guesses, self._likeliest(self._level, k)
        first = len(guesses)
        for parent, (tokens, chances) in zip(self._level if branches else (), branches or (), strict=True):
            depth, product = (guesses[parent].depth, guesses[parent].product) if parent >= 0 else (0, 1.0)
            for rank, (token, chance) in enumerate(zip(tokens, chances, strict=True)):
                guesses.append(TreeGuess(token, parent, depth + 1, rank, chance, product * chance))
        self._fresh = range(first, len(guesses))

    def descend(self, k: int, least: float) -> bool:
        alive = (each for each in self._fresh if self._tree.guesses[each].token not in self._ends)
        self._level = self._largest(alive, k, least)
        return bool(self._level)

    def keep(self, count: int, least: float) -> None:
        self._tree.best = {
            each: self._tree.guesses[each] for each in self._largest(range(len(self._tree.guesses)), count, least)
        }

    def _largest(self, among: Iterable[int], count: int, least: float) -> list[int]:
        products = {
            each: self._tree.guesses[each].product for each in among if self._tree.guesses[each].product >= least
        }
        return sorted(sorted(products, key=lambda each: -products[each])[:count])
