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
_SMALL = 32  # rows up to which a pass is so short that several are timed
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
    for disturbed, sample in _rounds(engine, times, trees):
        times.rounds += 1
        if disturbed:
            spoilt.append(sample)
        else:
            times.add(sample)
        if times.rounds - len(spoilt) == rounds or times.rounds == rounds + again:
            break
    times.disturbed = len(spoilt)
    for sample in spoilt if times.disturbed == times.rounds else ():  # there is nothing better, and it is marked
        times.add(sample)
    for _ in range(rounds + again - times.rounds):
        if noisy := times.noisy:
            _, sample = next(_rounds(engine, times, noisy))
            times.add(sample)
    return times


def _rounds(engine: Engine, times: PassTimes, trees: Sequence[WrongTree]) -> Iterator[tuple[bool, TreeTimes]]:
    """Yield rounds without end: whether one was disturbed, and its times."""
    schedule = [tree for tree in trees for _ in range(_repeats(tree))]
    in_run = max(1, round(_GROWTH * times.context / len(schedule)))
    tokens = in_run * len(schedule)
    length = max(1, times.context - tokens // 2)  # so that the text has this length half-way
    prompt = [1 + position % 97 for position in range(length)]
    method = wrong_guesses([schedule[0], *in_run * schedule])
    while True:
        run = engine.decode(prompt, method, max_new_tokens=2 * tokens + 2, end_tokens=(), record="off")
        times.prefill.append((length, next(run).timing.total_ms))
        for _ in range(in_run):
            others, sample = Disturbance(), TreeTimes()
            for tree in trees:
                steps: list[Step] = [next(run) for _ in range(_repeats(tree))]
                sample[tree] = [step.timing.total_ms for step in steps[1:]]  # the first finds another tree's memory
            yield bool(others.disturbed), sample


def _repeats(tree: WrongTree) -> int:
    return 4 if tree.rows <= _SMALL else 2


def _spread(times: Sequence[float]) -> float:
    """Return the width of the middle half of the times, as a share of their median."""
    if len(times) < 4:
        return 0.0
    low, middle, high = statistics.quantiles(times, n=4)
    return (high - low) / middle
