"""Times passes: what a step costs by the shape of its tree, when all of its guesses are wrong."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from decoding.engine import Engine
from decoding.methods import Context, Method
from decoding.params import Params
from decoding.tree import Builder
from decoding.types import Draft, Step, Verdict

from ..bench.disturbance import Disturbance

NOISY = 0.15  # of the median: a larger spread of the middle half of the times is marked, and measured again
_SMALL = 16  # rows up to which a round times two passes
_LARGE = 65  # rows up to which a pass that is not timed comes first
_GROWTH = 0.2  # of the context, by which a run's text may grow before another run starts


class WrongTree(NamedTuple):
    """A tree of `k` chains of `w` guesses."""

    k: int
    w: int

    @property
    def rows(self) -> int:
        """Count the root and the guesses."""
        return 1 + self.k * self.w


TreeTimes = dict[WrongTree, list[float]]  # milliseconds of passes over each tree


class WrongGuesses(Method):
    """Proposes trees of wrong guesses in turn: every step costs what its rows cost and emits one token."""

    name = "guesses"
    label = "Wrong guesses"
    paper = "none"
    Params = Params
    trees: ClassVar[Sequence[WrongTree]] = ()

    def __init__(self, context: Context, params: object) -> None:
        self._context, self._step = context, 0

    @property
    def may_guess(self) -> bool:
        """Return False if the next tree is a root alone, so that its step costs as much as an autoregressive one."""
        after = self._step + 1
        is_listed = after < len(self.trees) or len(self.trees) == 1  # a list that grows does not begin anew
        return not is_listed or self.trees[after % len(self.trees)].rows > 1

    def propose(self) -> Draft:
        """Propose chains of token 0, which is hardly ever right."""
        k, w = self.trees[self._step % len(self.trees)]
        tree = Builder(self._context.text[-1])
        for _ in range(k):
            tree.chain([0] * w, ["guess"] * w)
        return tree.draft()

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Turn to the next tree."""
        self._step += 1


def wrong_guesses(trees: Sequence[WrongTree]) -> type[WrongGuesses]:
    """Make a method that proposes these trees in turn."""
    return type("WrongGuesses", (WrongGuesses,), {"trees": trees})


def step_ms(engine: Engine, ids: Sequence[int], tokens: int, nodes: int) -> float:
    """Return the median milliseconds of a run's steps, each of `nodes` nodes."""
    method = wrong_guesses([WrongTree(1, nodes - 1)])
    run = engine.decode(list(ids), method, max_new_tokens=tokens, end_tokens=(), record="off")
    return statistics.median(step.timing.total_ms for step in list(run)[1:])


@dataclass(slots=True)
class PassTimes:
    """Times of passes over trees, after a text of `context` tokens."""

    context: int
    trees: Sequence[WrongTree]
    samples: TreeTimes = field(init=False)
    prefill: list[tuple[int, float]] = field(default_factory=list)  # tokens and milliseconds of the runs' first steps
    rounds: int = 0
    disturbed: int = 0  # rounds during which other processes used the cores; left out while there are others

    def __post_init__(self) -> None:
        self.samples = {tree: [] for tree in self.trees}

    def milliseconds(self, tree: WrongTree) -> float:
        """Return the median time of a pass over a tree."""
        return round(statistics.median(self.samples[tree]), 4)

    def add(self, sample: TreeTimes) -> None:
        """Add the times of a round."""
        for tree, each in sample.items():
            self.samples[tree].extend(each)

    @property
    def noisy(self) -> list[WrongTree]:
        """List the trees whose times differ too much to be trusted; all where every round was disturbed."""
        if self.rounds == self.disturbed:
            return [*self.trees]
        return [tree for tree, times in self.samples.items() if _spread(times) > NOISY]


def measure_passes(engine: Engine, context: int, trees: Sequence[WrongTree], rounds: int, again: int) -> PassTimes:
    """Time every tree once a round, in turn, so that a drifting machine treats all alike.

    A round that other processes disturbed is measured again, at most `again` times; so are trees with noisy times.
    """
    times, spoilt = PassTimes(context, trees), list[TreeTimes]()
    measured = Rounds(engine, times)
    while times.rounds - len(spoilt) < rounds and times.rounds < rounds + again:
        disturbed, sample = measured.take(trees)
        times.rounds += 1
        if disturbed:
            spoilt.append(sample)
        else:
            times.add(sample)
    times.disturbed = len(spoilt)
    for sample in spoilt if times.disturbed == times.rounds else ():  # there is nothing better, and it is marked
        times.add(sample)
    for _ in range(rounds + again - times.rounds):
        if noisy := times.noisy:
            _, sample = measured.take(noisy)
            times.add(sample)
    return times


class Rounds:
    """Measures rounds of trees in runs of one text, which is read again only when a run has grown too long."""

    def __init__(self, engine: Engine, times: PassTimes) -> None:
        self._engine, self._times = engine, times
        self._longest = max(sum(map(_repeats, times.trees)), round(_GROWTH * times.context))  # a run's steps
        self._left = 0  # steps of the run
        self._turns = list[WrongTree]()  # the trees of the run's steps, added round by round
        self._steps: Iterator[Step] = iter(())

    def take(self, trees: Sequence[WrongTree]) -> tuple[bool, TreeTimes]:
        """Time each tree; returns whether other processes disturbed the round, and the times."""
        turns = [tree for tree in trees for _ in range(_repeats(tree))]
        if len(turns) > self._left:
            self._begin()
        self._left -= len(turns)
        self._turns += turns
        others, sample = Disturbance(), TreeTimes()
        for tree in trees:
            milliseconds = [next(self._steps).timing.total_ms for _ in range(_repeats(tree))]
            sample[tree] = milliseconds[1:] or milliseconds  # the first of several finds another tree's memory
        return bool(others.disturbed), sample

    def _begin(self) -> None:
        length = max(1, self._times.context - self._longest // 2)  # so that the text has this length half-way
        prompt = [1 + position % 97 for position in range(length)]
        self._turns, self._left = [WrongTree(1, 0)], self._longest
        method = wrong_guesses(self._turns)
        run = self._engine.decode(prompt, method, max_new_tokens=2 * self._longest + 2, end_tokens=(), record="off")
        self._times.prefill.append((length, next(run).timing.total_ms))
        self._steps = run


def _repeats(tree: WrongTree) -> int:
    return 3 if tree.rows <= _SMALL else 2 if tree.rows <= _LARGE else 1


def _spread(times: Sequence[float]) -> float:
    """Return the width of the middle half of the times, or how far two are apart, as a share of their median."""
    if len(times) < 3:
        return (max(times) - min(times)) / statistics.median(times)
    low, middle, high = statistics.quantiles(times, n=4, method="inclusive")
    return (high - low) / middle
