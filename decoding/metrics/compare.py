"""Two selections on the same questions: what differs beyond noise, in one sentence.

Noise is what is left when, question by question, the two results are swapped at random. Everything that might be named
is tested together, with the step-down maximum of Westfall and Young (1993): the chance that any of it is named although
the two are the same is 5%, however many positions and categories there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..types import JSON
from . import intervals
from .acceptance import judged_at, positions
from .columns import Array
from .result import Condition, Result, UnknownError, listed, result, unknown
from .selection import Selection
from .times import later_steps

FEWEST_QUESTIONS = 6  # with fewer, no order of swaps is rarer than 5%
_SWAPS = 2000
_MOST_DRAWS = 4_000_000  # of swaps times questions: 32 MB
_FEWEST_SWAPS = 400


@dataclass(frozen=True, slots=True)
class _Part:
    """One ratio of sums over questions, of both selections."""

    kind: str  # "all", "position" or "category"; anything else is shown and not tested
    name: str
    before: tuple[Array, Array]  # the numbers above and below the line, by question
    after: tuple[Array, Array]
    where: list[Condition]

    @property
    def testable(self) -> bool:
        """Whether so many questions say something that it might be beyond noise."""
        return min(int((side[1] > 0).sum()) for side in (self.before, self.after)) >= FEWEST_QUESTIONS


def compare(before: Selection, after: Selection) -> Result:
    """The paired differences of two selections, with intervals; the value is that of the mean acceptance length."""
    try:
        return _differences(before, after)
    except UnknownError as lacking:
        return unknown(str(lacking))


def _differences(before: Selection, after: Selection) -> Result:
    places = {question: place for place, question in enumerate(after.questions)}
    common = [(place, places[name]) for place, name in enumerate(before.questions) if name in places]
    if not common:
        raise UnknownError("the two have no question in common")
    chosen = np.array(common).T
    parts = [*_tested(before, after, chosen), *_shown(before, after, chosen)]
    difference, low, high = _intervals(parts)
    tested = [place for place, part in enumerate(parts) if part.kind in ("all", "position", "category")]
    chance = dict(zip(tested, noise([parts[place] for place in tested]), strict=True))
    beyond = {place: bool(chance[place] < 1 - intervals.LEVEL) for place in tested}
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
    """Of every part the chance that swaps make a difference as large, corrected for the number of parts."""
    above, below, extra_above, extra_below = (
        np.stack(columns, axis=1).astype(float)
        for columns in (
            [part.before[0] for part in parts],
            [part.before[1] for part in parts],
            [part.after[0] - part.before[0] for part in parts],
            [part.after[1] - part.before[1] for part in parts],
        )
    )
    questions = len(above)
    swaps = max(_FEWEST_SWAPS, min(_SWAPS, _MOST_DRAWS // questions))
    random = np.random.default_rng(0)
    swapped = random.integers(0, 2, (swaps + 1, questions), np.int8).astype(float)
    swapped[0] = 0  # as it was
    up, down = swapped @ extra_above, swapped @ extra_below
    with np.errstate(invalid="ignore", divide="ignore"):
        was = (above.sum(0) + up) / (below.sum(0) + down)
        now = (above.sum(0) + extra_above.sum(0) - up) / (below.sum(0) + extra_below.sum(0) - down)
        size = np.abs(now - was)
        size /= np.sqrt(np.nanmean(size**2, axis=0))
    size = np.nan_to_num(size)  # equal everywhere: no difference
    order = np.argsort(-size[0], kind="stable")
    largest = np.maximum.accumulate(size[:, order[::-1]], axis=1)[:, ::-1]  # of this part and all smaller ones
    shares = (largest >= largest[0] * (1 - 1e-9)).mean(0)
    found = np.empty(len(parts))
    found[order] = np.maximum.accumulate(np.where(size[0][order] > 0, shares, 1.0))
    return [float(each) for each in found]


def _tested(before: Selection, after: Selection, chosen: Array) -> list[_Part]:
    """The whole, every position, and every category where there are several."""
    sides = (before, chosen[0]), (after, chosen[1])
    lengths = [_sums(side, places, "written", None) for side, places in sides]
    parts = [_Part("all", "mean acceptance length", lengths[0], lengths[1], [])]
    try:
        reached = [positions(side) for side, _ in sides]
    except UnknownError:
        reached = []
    if reached:
        for depth in range(min(asked.shape[1] for asked, _ in reached)):
            both = [
                (right[places, depth], asked[places, depth])
                for (asked, right), (_, places) in zip(reached, sides, strict=True)
            ]
            part = _Part("position", str(depth + 1), both[0], both[1], judged_at(after, depth + 1))
            parts += [part] if part.testable else []
    category = _categories(before, chosen[0])
    names = list(dict.fromkeys(name for name in category if name is not None))
    for name in names if len(names) > 1 else ():
        mask = np.array([each == name for each in category])
        both = [(above * mask, below * mask) for above, below in lengths]
        part = _Part("category", name, both[0], both[1], [("runs", "category", "=", name)])
        parts += [part] if part.testable else []
    return parts


def _shown(before: Selection, after: Selection, chosen: Array) -> list[_Part]:
    """What stands beside: no sentence names it."""
    parts = []
    sides = (before, chosen[0]), (after, chosen[1])
    try:
        rates = [_sums(side, places, "accepted", "drafted") for side, places in sides]
        parts.append(_Part("beside", "draft acceptance rate", rates[0], rates[1], []))
    except UnknownError:
        pass
    try:
        speeds = [_speeds(side, places) for side, places in sides]
        parts.append(_Part("beside", "tokens per second", speeds[0], speeds[1], []))
    except UnknownError:
        pass
    return parts


def _sums(selection: Selection, places: Array, above: str, below: str | None) -> tuple[Array, Array]:
    steps = selection.steps
    upper = selection.by_question(np.nan_to_num(steps.number(above)))
    lower = selection.by_question(np.nan_to_num(steps.number(below)) if below else np.ones(len(steps)))
    return upper[places], lower[places]


def _speeds(selection: Selection, places: Array) -> tuple[Array, Array]:
    steps, later = selection.steps, later_steps(selection)
    tokens = selection.by_question(steps.number("written")[later], later)
    seconds = selection.by_question(steps.number("total_ms")[later], later) / 1000
    return tokens[places], seconds[places]


def _categories(selection: Selection, places: Array) -> list[str | None]:
    """The category of every question of both."""
    try:
        codes, texts = selection.runs.codes("category")
    except UnknownError:
        return [None] * len(places)
    found: list[str | None] = [None] * len(selection.questions)
    for place, code in zip(selection.question_of_run.tolist(), codes.tolist(), strict=True):
        found[place] = texts[code] if code >= 0 else found[place]
    return [found[place] for place in places.tolist()]


def _intervals(parts: Sequence[_Part]) -> tuple[Array, Array, Array]:
    """The differences of the ratios with their intervals; a resample draws a question of both selections."""
    difference = np.array([_over(part.after) - _over(part.before) for part in parts])
    questions = len(parts[0].before[0])
    if questions < 2:
        nothing = np.full(len(parts), np.nan)
        return difference, nothing, nothing
    drawn = intervals.weights(questions)
    with np.errstate(invalid="ignore", divide="ignore"):
        before, after = (
            (drawn @ np.stack([side[0] for side in sides], axis=1).astype(np.float32))
            / (drawn @ np.stack([side[1] for side in sides], axis=1).astype(np.float32))
            for sides in ([part.before for part in parts], [part.after for part in parts])
        )
    counts = np.array([int(((part.before[1] > 0) & (part.after[1] > 0)).sum()) for part in parts])
    low, high = intervals.bounds(after - before, counts)
    return difference, low, high


def _over(side: tuple[Array, Array]) -> float:
    below = float(side[1].sum())
    return float(side[0].sum()) / below if below else float("nan")


def _sentence(parts: Sequence[_Part], difference: Array, beyond: dict[int, bool], questions: int) -> str:
    was, now = (_over(side) for side in (parts[0].before, parts[0].after))
    if questions < FEWEST_QUESTIONS:
        return f"{questions} questions in common are too few to tell a difference from noise ({was:.2f} and {now:.2f})."
    clauses = {
        sign: _clause(parts, [place for place in beyond if beyond[place] and difference[place] * sign > 0], beyond)
        for sign in (-1, 1)
    }
    verbs = {-1: "fell", 1: "rose"}
    if beyond[0]:
        sign = -1 if difference[0] < 0 else 1
        other = f"; it {verbs[-sign]} {clauses[-sign]}" if clauses[-sign] else ""
        same = f", {clauses[sign]}" if clauses[sign] else ""
        return f"Acceptance {verbs[sign]} from {was:.2f} to {now:.2f}{same}{other}."
    named = [f"it {verbs[sign]} {clauses[sign]}" for sign in (-1, 1) if clauses[sign]]
    if not named:
        return f"There is no difference beyond noise ({was:.2f} and {now:.2f} over {questions} questions)."
    return f"As a whole acceptance did not change beyond noise ({was:.2f} and {now:.2f}); {listed(named)}."


def _clause(parts: Sequence[_Part], named: Sequence[int], beyond: dict[int, bool]) -> str:
    """Where: the positions and categories of these parts."""
    clauses = []
    depths = [int(parts[place].name) for place in named if parts[place].kind == "position"]
    if depths:
        tested = [int(part.name) for part in parts if part.kind == "position"]
        clauses.append(_at(depths, tested))
    names = [parts[place].name for place in named if parts[place].kind == "category"]
    if names:
        tested = [place for place in beyond if parts[place].kind == "category"]
        clauses.append("in every category" if len(names) == len(tested) > 1 else f"on {listed(names)}")
    return ", ".join(clauses)


def _at(depths: Sequence[int], tested: Sequence[int]) -> str:
    """Positions in words: "at positions 3 and later" if these are all that could be tested from 3 on."""
    if len(depths) > 1 and list(depths) == [depth for depth in tested if depth >= depths[0]]:
        return "at every position" if depths[0] == 1 else f"at positions {depths[0]} and later"
    return f"at position{'s' if len(depths) > 1 else ''} {listed([str(depth) for depth in depths])}"
