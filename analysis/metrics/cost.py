"""Expected against measured speed-up: what a step costs in steps of one token at a time, and what of it is too much."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from decoding.types import JSON

from . import intervals
from .columns import Array
from .guesses import branches
from .result import MetricResult, UnknownError, listed, result, share
from .selection import Selection
from .times import LATER, TOTAL, later_steps, wall

_LONGEST = 16  # of the drafts that are compared
_FEW = 1.2  # tokens a step from which no cost is worth a word
_NOTABLE = 0.1  # autoregressive steps that a sentence names


@dataclass(frozen=True, slots=True)
class Costs:
    """The cost of a step after the first, in autoregressive steps of the same run folder.

    NaN where not recorded. For resamples, all are arrays.
    """

    tokens: Any  # that it writes
    plain_tokens: Any  # that an autoregressive step writes: 1
    total: Any
    rows: Any  # that the target reads
    # Known where the record splits the time:
    draft: Any
    passes: Any  # the target's pass, in autoregressive passes
    verification: Any  # what its rows cost beyond those of an autoregressive pass
    outside: Any  # time in no pass beyond that of an autoregressive step
    outside_share: Any  # time in no pass, of the step

    @property
    def split(self) -> bool:
        """Whether the time is split into drafting, passes and the rest."""
        return bool(np.isfinite(self.outside))

    @property
    def free(self) -> Any:
        """The speed if a step cost no more than one of one token."""
        return self.tokens / self.plain_tokens

    @property
    def speed(self) -> Any:
        """Measured on the steps: how many times as fast as one token at a time."""
        return self.free / self.total


@dataclass(frozen=True, slots=True)
class Pair:
    """A selection and the autoregressive runs of its folder, on the questions that both have."""

    drafting: Selection
    plain: Selection
    paired: bool  # whether they have any in common; else the two are all that there is

    @classmethod
    def of(cls, selection: Selection) -> Pair:
        """Pair a selection with its folder's autoregressive runs; raise UnknownError where there are none."""
        plain = selection.baseline
        both = set(selection.questions) & set(plain.questions)
        if not both:
            return cls(selection, plain, False)
        return cls(selection.on_questions(both), plain.on_questions(both), True)

    def sums(self) -> tuple[Array, Array]:
        """Return the sums of both."""
        return self.matched(_sums(self.drafting), _sums(self.plain))

    def matched(self, drafting: Array, plain: Array) -> tuple[Array, Array]:
        """Return numbers of both by question, in the first one's order; in one row where questions are not paired."""
        if not self.paired:
            return drafting.sum(0, keepdims=True), plain.sum(0, keepdims=True)
        places = {name: place for place, name in enumerate(self.plain.questions)}
        return drafting, plain[[places[name] for name in self.drafting.questions]]


def costs(pair: Pair) -> Costs:
    """Compute the costs of a selection relative to the autoregressive runs of its folder."""
    drafting, plain = (side.sum(0) for side in pair.sums())
    priced = _costs(drafting, plain)
    if not (priced.total > 0 and np.isfinite(priced.total) and np.isfinite(priced.free)):
        raise UnknownError("the steps of this folder took no time")
    return priced


def step_cost(selection: Selection) -> MetricResult:
    """Compute a step's cost in autoregressive steps of the same folder."""
    pair = Pair.of(selection)
    priced = costs(pair)
    names, slowest = ["the whole step"], [TOTAL]
    if priced.split:
        names += ["an autoregressive step", "drafting", "verifying more rows than one", "more time outside passes"]
        slowest += [TOTAL, "draft_ms", "forward_ms", "other_ms"]

    def parts(each: Costs) -> list[Any]:
        return [each.total, np.ones_like(each.total), each.draft, each.verification, each.outside][: len(names)]

    rows = [[name, *numbers] for name, numbers in zip(names, _resampled(pair, parts), strict=True)]
    sentence = (
        f"After the first step, which reads the prompt, a step costs {priced.total:.2f} steps of one token at a time "
        f"and writes {priced.tokens:.2f} tokens."
    )
    columns = ("part", "autoregressive steps", "low", "high")
    interval, unit = rows[0][2:], "autoregressive steps"
    where = [LATER] * len(rows)
    return result(
        sentence,
        value=priced.total,
        interval=interval,
        unit=unit,
        columns=columns,
        rows=rows,
        where=where,
        slowest=slowest,
    )


def speedup(selection: Selection) -> MetricResult:
    """Explain the way from the speed-up of accepted tokens at no cost to the measured one."""
    pair = Pair.of(selection)
    priced = costs(pair)
    names, slowest = ["if a step cost as much as an autoregressive one"], [TOTAL]
    if priced.split:
        names += ["with the time for drafting", "and for verifying more rows than one"]
        slowest += ["draft_ms", "forward_ms"]
    names.append("measured: and with all time outside passes")

    def speeds(each: Costs) -> list[Any]:
        split = []
        if priced.split:
            split = [each.free / (1 + each.draft), each.free / (1 + each.draft + each.verification)]
        return [each.free, *split, each.speed]

    rows: list[list[JSON]] = [[name, *numbers] for name, numbers in zip(names, _resampled(pair, speeds), strict=True)]
    low, high = rows[-1][2:]
    if (rates := _spec_bench(pair)) is not None:
        rows.append(["measured as Spec-Bench does, reading the prompt included", *rates])
    sentence = f"{priced.speed:.2f} times as fast as one token at a time"
    if np.isfinite(low):
        sentence += f" ({low:.2f} to {high:.2f} over {len(pair.drafting.questions)} questions)"
    sentence += f"; at no cost, {priced.tokens:.2f} tokens per step after the first would give {priced.free:.2f} times"
    sentence += "" if pair.paired else ", beside autoregressive runs on other questions"
    reasons = _reasons(pair.drafting, priced)
    if not reasons and priced.free < _FEW and np.nansum(selection.steps.maybe("drafted")) > 0:
        reasons = ["too few guesses are accepted"]
    sentence += f": {listed(reasons)}." if reasons else "."
    columns = ("speed-up", "times", "low", "high")
    slowest += [TOTAL] * (len(rows) - len(slowest))
    return result(
        sentence,
        value=priced.speed,
        interval=(low, high),
        unit="times",
        columns=columns,
        rows=rows,
        where=[LATER] * len(rows),
        slowest=slowest,
    )


def speed_sums(selection: Selection) -> tuple[list[str], Array]:
    """Return questions, and by question tokens and milliseconds of the later steps, then autoregressive ones."""
    pair = Pair.of(selection)
    if not pair.paired:
        raise UnknownError("no question of this selection was answered autoregressively")
    drafting, plain = pair.sums()
    return pair.drafting.questions, np.concatenate((drafting[:, 1:3], plain[:, 1:3]), axis=1)


def best_gamma(selection: Selection) -> MetricResult:
    """Compute the draft length that is expected to be fastest, from a guess's chance and its cost."""
    pair = Pair.of(selection)
    rate, cost, drafted = _of_a_guess(pair.drafting, costs(pair))
    rows: list[list[JSON]] = []
    for gamma in range(_LONGEST + 1):
        tokens = chain_tokens(rate, gamma)
        rows.append([gamma, tokens, 1 + cost * gamma, tokens / (1 + cost * gamma)])
    best = max(rows, key=lambda row: row[3])
    sentence = (
        f"A guess is accepted with probability {rate:.2f} and costs {cost:.2f} of a target step to draft and verify: "
    )
    more = " or more" if best[0] == _LONGEST else ""
    sentence += (
        f"the best gamma is {best[0]}{more}, {best[3]:.2f} times as fast" if best[0] else "guessing does not pay"
    )
    columns = ("gamma", "tokens per step", "step cost", "speed-up")
    return result(
        f"{sentence}; now it is {drafted:.1f}.",
        value=best[0],
        unit="guesses",
        columns=columns,
        rows=rows,
        where=[LATER] * len(rows),
        slowest=[TOTAL] * len(rows),
    )


def chain_tokens(rate: float, gamma: int) -> float:
    """Compute the tokens expected of a step with a chain of gamma guesses (Leviathan et al., 2023, equation 1)."""
    return sum(rate**place for place in range(gamma + 1))


def _of_a_guess(selection: Selection, found: Costs) -> tuple[float, float, float]:
    """Return the chance of a chain's guess, its cost in autoregressive steps, and how many guesses steps have now."""
    if not found.split:
        raise UnknownError("this record does not split a step's time into its phases")
    if branches(selection):
        raise UnknownError("these drafts are trees, which have no gamma: see the suggested tree")
    steps, later = selection.steps, later_steps(selection)
    later &= ~np.isnan(steps.number("drafted"))
    drafted, accepted = steps.number("drafted")[later], steps.number("accepted")[later]
    judged = np.minimum(accepted + 1, drafted).sum()
    if not judged:
        raise UnknownError("no later step of this selection had a guess")
    mean = float(drafted.mean())
    cost = (found.draft + max(0.0, found.verification)) / mean
    return float(np.minimum(accepted, drafted).sum() / judged), cost, float(drafted[drafted > 0].mean())


def _reasons(selection: Selection, found: Costs) -> list[str]:
    """Name what costs most, the greatest first."""
    if not found.split:
        return []
    draft = f"the draft costs {found.draft:.2f} of a target step"
    try:
        rate, cost, _ = _of_a_guess(selection, found)
        best = max(range(_LONGEST + 1), key=lambda gamma: chain_tokens(rate, gamma) / (1 + cost * gamma))
        advice = f"the best gamma is {best}" if best else "guessing does not pay"
        draft += f" (at acceptance {rate:.2f} {advice})"
    except UnknownError:
        pass
    rows = "" if np.isnan(found.rows) else f" of {found.rows:.0f} rows"
    sentences = {
        draft: found.draft,
        f"verification{rows} costs {found.passes:.1f} passes": found.verification,
        f"the time outside passes is {share(found.outside_share)}": found.outside,
    }
    return [text for text, cost in sorted(sentences.items(), key=lambda each: -each[1]) if cost >= _NOTABLE]


def _sums(selection: Selection) -> Array:
    """Sum by question later steps, their tokens and milliseconds, then amounts and cases of what steps may lack."""
    steps, later = selection.steps, later_steps(selection)
    amounts = [steps.maybe(column)[later] for column in ("draft_ms", "forward_ms", "fed")]
    values = [np.ones(later.sum()), steps.number("written")[later], steps.number("total_ms")[later]]
    values += [each for column in amounts for each in (np.nan_to_num(column), ~np.isnan(column))]
    return np.stack([selection.by_question(each, later) for each in values], axis=1)


class _Step(NamedTuple):
    """The means of a later step; NaN for what no step records."""

    tokens: Any
    ms: Any
    draft: Any
    forward: Any
    rows: Any

    @classmethod
    def of(cls, sums: Array) -> _Step:
        count, tokens, ms, draft, drafts, forward, passes, rows, known = np.moveaxis(sums, -1, 0)
        return cls(tokens / count, ms / count, draft / drafts, forward / passes, rows / known)


def _costs(drafting: Array, plain: Array) -> Costs:
    """Compute the costs from sums over questions; both may have further axes in front, as resamples have."""
    with np.errstate(invalid="ignore", divide="ignore"):
        one, alone = _Step.of(drafting), _Step.of(plain)
        alone_rest = alone.ms - alone.forward
        rest = one.ms - one.draft - one.forward
        return Costs(
            tokens=one.tokens,
            plain_tokens=alone.tokens,
            total=one.ms / alone.ms,
            rows=one.rows,
            draft=one.draft / alone.ms,
            passes=one.forward / alone.forward,
            verification=(one.forward - alone.forward) / alone.ms,
            outside=(rest - alone_rest) / alone.ms,
            outside_share=rest / one.ms,
        )


def _resampled(pair: Pair, numbers: Callable[[Costs], list[Any]]) -> list[list[JSON]]:
    """Compute numbers of the costs with their intervals; a resample draws a question with both its runs."""
    drafting, plain = pair.sums()
    width = drafting.shape[1]

    def of(sums: Array) -> Array:
        return np.stack(numbers(_costs(sums[..., :width], sums[..., width:])), axis=-1)

    value, low, high = intervals.of_sums(np.concatenate((drafting, plain), axis=1), of)
    return [list(row) for row in zip(value.tolist(), low.tolist(), high.tolist(), strict=True)]


def _spec_bench(pair: Pair) -> list[JSON] | None:
    """Divide the mean of the questions' rates by that of autoregressive runs, with its interval; None without times."""
    sides = []
    for selection in (pair.drafting, pair.plain):
        tokens, seconds = wall(selection)
        if not tokens.any():
            return None
        rates = np.divide(tokens, seconds, out=np.zeros(len(tokens)), where=seconds > 0)
        sides.append(np.stack((rates, (seconds > 0).astype(float)), axis=1))

    def of(sums: Array) -> Array:
        return sums[..., :1] / sums[..., 1:2] / (sums[..., 2:3] / sums[..., 3:])

    return [float(number[0]) for number in intervals.of_sums(np.concatenate(pair.matched(*sides), axis=1), of)]
