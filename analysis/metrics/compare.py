"""Compares two selections on the same questions: the differences beyond noise, in one sentence.

Noise is what is left when, question by question, the two results are swapped at random. Everything that might be named
is tested together, with the step-down maximum of Westfall and Young (1993): the chance that any of it is named although
the two are the same is 5%, however many positions and categories there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from decoding.types import JSON

from . import intervals
from .acceptance import guesses_by_run, judged_at, positions
from .columns import Array
from .groups import MOST_GROUPS
from .result import Condition, MetricResult, UnknownError, listed, result, unknown
from .selection import Selection
from .step_costs import speed_sums
from .times import later_sums

Sums = tuple[
    Array, ...
]  # by question, the numbers above and below the line, and perhaps those of what it is divided by

FEWEST_QUESTIONS = 6  # with fewer, no order of swaps is rarer than 5%
_SWAPS = 2000
_SPEED = "speed"
_VERBS = {-1: "fell", 1: "rose"}
_TESTED = ("all", "position", "category", _SPEED)


@dataclass(frozen=True, slots=True)
class _Part:
    """One ratio of sums over questions, of both selections; with four sums, a ratio of two ratios."""

    kind: str  # one of _TESTED; anything else is shown and not tested
    name: str
    before: Sums
    after: Sums
    where: list[Condition]
    positions: int = 0  # that a draft of either selection has, whether they can be tested or not

    @property
    def testable(self) -> bool:
        """Whether so many questions say something that it might be beyond noise."""
        return min(int((side[1] > 0).sum()) for side in (self.before, self.after)) >= FEWEST_QUESTIONS


class _Side:
    """One selection, its sums by the questions that both have, in their common order."""

    def __init__(self, selection: Selection, questions: Array) -> None:
        self.selection, self._questions = selection, questions

    @property
    def clusters(self) -> int:
        """How many clusters the common questions make."""
        return min(len(self._questions), intervals.CLUSTERS)

    @property
    def cluster_of_step(self) -> Array:
        """The cluster of every step, -1 where only one side has its question."""
        places = np.full(len(self.selection.questions), -1)
        places[self._questions] = np.arange(len(self._questions)) % intervals.CLUSTERS
        return np.asarray(places[self.selection.question_of_step])

    def lengths(self) -> Sums:
        """Return tokens written, and steps."""
        selection = self.selection
        written = selection.by_question(selection.steps.number("written"))
        return written[self._questions], selection.by_question(np.ones(len(selection.steps)))[self._questions]

    def rates(self) -> Sums:
        """Return accepted and drafted guesses."""
        accepted, drafted = (self.selection.runs_by_question(each) for each in guesses_by_run(self.selection))
        return accepted[self._questions], drafted[self._questions]

    def speeds(self) -> Sums:
        """Return tokens and seconds of the later steps."""
        tokens, seconds = later_sums(self.selection)
        if not tokens.any():
            raise self.selection.steps.lacking("total_ms")
        return tokens[self._questions], seconds[self._questions]

    def speedups(self) -> Sums:
        """Return tokens and milliseconds of the later steps, then autoregressive ones; 0 where one side has none."""
        names, sums = speed_sums(self.selection)
        places = {name: place for place, name in enumerate(self.selection.questions)}
        by_question = np.zeros((len(places), 4))
        by_question[[places[name] for name in names]] = sums
        return tuple(by_question[self._questions].T)

    def categories(self) -> list[str | None]:
        """Return the category of every question."""
        names: list[str | None] = [None] * len(self.selection.questions)
        with suppress(UnknownError):
            codes, texts = self.selection.runs.codes("category")
            for place, code in zip(self.selection.question_of_run.tolist(), codes.tolist(), strict=True):
                names[place] = texts[code] if code >= 0 else names[place]
        return [names[place] for place in self._questions.tolist()]


def compared(before: Selection, after: Selection) -> MetricResult:
    """Compute the paired differences of two selections, with intervals; the value is the mean acceptance length's."""
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is not finite becomes null
            return _differences(before, after)
    except UnknownError as lacking:
        return unknown(str(lacking))


def _differences(before: Selection, after: Selection) -> MetricResult:
    places = {question: place for place, question in enumerate(after.questions)}
    common = [(place, places[name]) for place, name in enumerate(before.questions) if name in places]
    if not common:
        raise UnknownError("the two have no question in common")
    sides = [_Side(side, chosen) for side, chosen in zip((before, after), np.array(common).T, strict=True)]
    parts = [*_tested(sides), *_shown(sides)]
    difference, low, high = _intervals(parts)
    tested = [place for place, part in enumerate(parts) if part.kind in _TESTED]
    chance = dict(zip(tested, noise([parts[place] for place in tested]), strict=True))
    # The swaps and the resampled questions are two tests: what only one of them finds is no finding.
    beyond = {
        place: bool(chance[place] < 1 - intervals.LEVEL) and not low[place] <= 0 <= high[place] for place in tested
    }
    rows: list[list[JSON]] = []
    for place, part in enumerate(parts):
        values = [_over(side) for side in (part.before, part.after)]
        bounds = (difference[place], low[place], high[place])
        rows.append([part.kind, part.name, *values, *bounds, chance.get(place), beyond.get(place)])
    sentence = _sentence(parts, difference, beyond, len(common))
    columns = ("of", "name", "before", "after", "difference", "low", "high", "p", "beyond noise")
    where = [part.where for part in parts]
    interval = (low[0], high[0])
    return result(
        sentence, value=difference[0], interval=interval, unit="tokens", columns=columns, rows=rows, where=where
    )


def noise(parts: Sequence[_Part]) -> list[float]:
    """Compute for every part the chance that swaps make a difference as large, corrected for the number of parts."""
    random = np.random.default_rng(0)
    swapped = random.integers(0, 2, (_SWAPS + 1, len(parts[0].before[0])), np.int8).astype(float)
    swapped[0] = 0  # as it was
    before, after = (_columns(parts, side).astype(float) for side in ("before", "after"))
    moved = swapped @ (after - before)
    with np.errstate(invalid="ignore", divide="ignore"):
        was, now = _ratios(parts, before.sum(0) + moved), _ratios(parts, after.sum(0) - moved)
        size = np.abs(now - was)
        size /= np.sqrt(np.nanmean(size**2, axis=0))
    size = np.nan_to_num(size)  # equal everywhere: no difference
    order = np.argsort(-size[0], kind="stable")
    largest = np.maximum.accumulate(size[:, order[::-1]], axis=1)[:, ::-1]  # of this part and all smaller ones
    shares = (largest >= largest[0] * (1 - 1e-9)).mean(0)
    chances = np.empty(len(parts))
    chances[order] = np.maximum.accumulate(np.where(size[0][order] > 0, shares, 1.0))
    return [float(each) for each in chances]


def _columns(parts: Sequence[_Part], side: str) -> Array:
    """Concatenate all sums of one side, those of a part after those of the part before it."""
    return np.stack([column for part in parts for column in getattr(part, side)], axis=1)


def _ratios(parts: Sequence[_Part], sums: Array) -> Array:
    """Compute every part's ratio from sums in the order of `_columns`, along the last axis."""
    firsts = np.cumsum([0, *(len(part.before) for part in parts)])[:-1]
    ratios = sums[..., firsts] / sums[..., firsts + 1]
    for place, part in enumerate(parts):
        if len(part.before) == 4:
            ratios[..., place] /= sums[..., firsts[place] + 2] / sums[..., firsts[place] + 3]
    return np.asarray(ratios)


def _tested(sides: Sequence[_Side]) -> list[_Part]:
    """List the whole, every position, and every category where there are several."""
    lengths = [side.lengths() for side in sides]
    parts = [_part("all", "mean acceptance length", lengths, [])]
    try:
        reached = [positions(side.selection, side.cluster_of_step, side.clusters) for side in sides]
    except UnknownError:
        reached = []
    depths = [asked.shape[1] for asked, _ in reached]
    for depth in range(min(depths, default=0)):
        both = [(right[:, depth], asked[:, depth]) for asked, right in reached]
        part = _part("position", str(depth + 1), both, judged_at(sides[1].selection, depth + 1))
        parts.append(replace(part, positions=max(depths)))
    categories = sides[0].categories()
    most = [name for name, _ in Counter(name for name in categories if name is not None).most_common(MOST_GROUPS)]
    for name in dict.fromkeys(name for name in categories if name in most) if len(most) > 1 else ():
        mask = np.array([each == name for each in categories])
        both = [(above * mask, below * mask) for above, below in lengths]
        parts.append(_part("category", str(name), both, [("runs", "category", "=", name)]))
    with suppress(UnknownError):
        before, after = (np.stack(side.speedups()) for side in sides)
        timed = before.all(0) & after.all(0)  # a question needs times on both sides
        parts.append(_part(_SPEED, "speed-up", [tuple(before * timed), tuple(after * timed)], []))
    return [part for part in parts if part.kind == "all" or part.testable]


def _shown(sides: Sequence[_Side]) -> list[_Part]:
    """List what is shown besides them but not named in the sentence."""
    parts = []
    with suppress(UnknownError):
        parts.append(_part("beside", "draft acceptance rate", [side.rates() for side in sides], []))
    with suppress(UnknownError):
        parts.append(_part("beside", "tokens per second", [side.speeds() for side in sides], []))
    return parts


def _part(kind: str, name: str, both: Sequence[Sums], where: list[Condition]) -> _Part:
    before, after = (tuple(map(intervals.folded, sums)) for sums in both)
    return _Part(kind, name, before, after, where)


def _intervals(parts: Sequence[_Part]) -> tuple[Array, Array, Array]:
    """Compute the differences of the ratios with their intervals; a resample draws a question of both selections."""
    difference = np.array([_over(part.after) - _over(part.before) for part in parts])
    questions = len(parts[0].before[0])
    if questions < 2:
        nothing = np.full(len(parts), np.nan)
        return difference, nothing, nothing
    drawn = intervals.weights(questions)
    with np.errstate(invalid="ignore", divide="ignore"):
        before, after = (
            _ratios(parts, drawn @ _columns(parts, side).astype(np.float32)) for side in ("before", "after")
        )
    counts = np.array([int(((part.before[1] > 0) & (part.after[1] > 0)).sum()) for part in parts])
    low, high = intervals.bounds(after - before, counts)
    return difference, low, high


def _over(side: Sums) -> float:
    above, below, *by = (float(sums.sum()) for sums in side)
    if not below or not all(by):
        return float("nan")
    return above / below / (by[0] / by[1] if by else 1.0)


def _sentence(parts: Sequence[_Part], difference: Array, beyond: dict[int, bool], questions: int) -> str:
    was, now = (_over(side) for side in (parts[0].before, parts[0].after))
    if questions < FEWEST_QUESTIONS:
        return f"{questions} questions in common are too few to tell a difference from noise ({was:.2f} and {now:.2f})."
    clauses = {
        sign: _clause(parts, [place for place in beyond if beyond[place] and difference[place] * sign > 0], beyond)
        for sign in (-1, 1)
    }
    speed = _of_speed(parts, beyond)
    if beyond[0]:
        sign = -1 if difference[0] < 0 else 1
        other = f"; it {_VERBS[-sign]} {clauses[-sign]}" if clauses[-sign] else ""
        same = f", {clauses[sign]}" if clauses[sign] else ""
        return f"Acceptance {_VERBS[sign]} from {was:.2f} to {now:.2f}{same}{other}.{speed}"
    named = [f"it {_VERBS[sign]} {clauses[sign]}" for sign in (-1, 1) if clauses[sign]]
    if not named:
        of = " in acceptance" if speed else ""
        return f"There is no difference{of} beyond noise ({was:.2f} and {now:.2f} over {questions} questions).{speed}"
    return f"Overall, acceptance did not change beyond noise ({was:.2f} and {now:.2f}); {listed(named)}.{speed}"


def _of_speed(parts: Sequence[_Part], beyond: dict[int, bool]) -> str:
    """Describe how the speed-up has changed, if that is beyond noise."""
    part = next((parts[place] for place in beyond if beyond[place] and parts[place].kind == _SPEED), None)
    if part is None:
        return ""
    was, now = _over(part.before), _over(part.after)
    return f" The speed-up {_VERBS[-1 if now < was else 1]} from {was:.2f} to {now:.2f}."


def _clause(parts: Sequence[_Part], named: Sequence[int], beyond: dict[int, bool]) -> str:
    """Describe the positions and categories of these parts."""
    clauses = []
    depths = [int(parts[place].name) for place in named if parts[place].kind == "position"]
    if depths:
        tested = [int(part.name) for part in parts if part.kind == "position"]
        clauses.append(_at(depths, tested, max(part.positions for part in parts)))
    names = [parts[place].name for place in named if parts[place].kind == "category"]
    if names:
        tested = [place for place in beyond if parts[place].kind == "category"]
        clauses.append("in every category" if len(names) == len(tested) > 1 else f"on {listed(names)}")
    return ", ".join(clauses)


def _at(depths: Sequence[int], tested: Sequence[int], most: int) -> str:
    """Describe positions: "at positions 3 and later" if these are all from 3 on, of `most` that there are."""
    run = list(depths) == [depth for depth in tested if depth >= depths[0]]
    if len(depths) > 1 and run and depths[-1] == most:  # else later ones are in too few questions
        return "at every position" if depths[0] == 1 else f"at positions {depths[0]} and later"
    return f"at position{'s' if len(depths) > 1 else ''} {listed([str(depth) for depth in depths])}"
