"""Compares expected and measured speed-up: the cost of a step in autoregressive steps, and its largest part."""

from __future__ import annotations

from typing import Any

import numpy as np

from decoding.trace.metrics import expected_tokens
from decoding.types import JSON

from . import intervals
from .columns import Array
from .guesses import branches
from .result import MetricResult, UnknownError, listed, percent, result
from .selection import Selection
from .step_costs import Costs, Pair, costs, resampled
from .times import LATER, TOTAL, later_steps, wall

_LONGEST = 16  # of the drafts that are compared
_FEW = 1.2  # tokens per step from which no cost is worth a word
_NOTABLE = 0.1  # autoregressive steps that a sentence names


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

    rows = [[name, *numbers] for name, numbers in zip(names, resampled(pair, parts), strict=True)]
    sentence = (
        f"After the first step, which reads the prompt, a step costs {priced.total:.2f} steps of one token at a time "
        f"and writes {priced.tokens:.2f} tokens."
    )
    unit = "autoregressive steps"
    columns = ("part", unit, "low", "high")
    return _of_later(sentence, rows, slowest, value=priced.total, interval=rows[0][2:], unit=unit, columns=columns)


def speedup(selection: Selection) -> MetricResult:
    """Explain the gap between the speed-up of accepted tokens at no cost and the measured one."""
    pair = Pair.of(selection)
    priced = costs(pair)
    names, slowest = ["at an autoregressive step's cost"], [TOTAL]
    if priced.split:
        names += ["with the time for drafting", "and for verifying more rows"]
        slowest += ["draft_ms", "forward_ms"]
    names.append("measured, all time included")

    def speeds(each: Costs) -> list[Any]:
        split = []
        if priced.split:
            split = [each.free / (1 + each.draft), each.free / (1 + each.draft + each.verification)]
        return [each.free, *split, each.speed]

    rows: list[list[JSON]] = [[name, *numbers] for name, numbers in zip(names, resampled(pair, speeds), strict=True)]
    low, high = rows[-1][2:]
    if (rates := _spec_bench(pair)) is not None:
        rows.append(["measured as Spec-Bench does", *rates])
    sentence = f"{priced.speed:.2f} times as fast as one token at a time"
    if np.isfinite(low):
        sentence += f" ({low:.2f} to {high:.2f} over {len(pair.drafting.questions)} questions)"
    sentence += "." if pair.paired else ", beside autoregressive runs on other questions."
    sentence += _reasons(pair.drafting, priced)
    sentence += (
        f" If a step cost no more than an autoregressive one, {priced.tokens:.2f} tokens per step after the first "
        f"would give {priced.free:.2f} times."
    )
    columns = ("speed-up", "times", "low", "high")
    return _of_later(sentence, rows, slowest, value=priced.speed, interval=(low, high), unit="times", columns=columns)


def best_gamma(selection: Selection) -> MetricResult:
    """Compute the draft length that is expected to be fastest, from a guess's chance and its cost."""
    pair = Pair.of(selection)
    priced = costs(pair)
    rate, cost, drafted = _of_a_guess(pair.drafting, priced)
    rows: list[list[JSON]] = []
    for gamma in range(_LONGEST + 1):
        tokens = expected_tokens(gamma, rate)
        rows.append([gamma, tokens, 1 + cost * gamma, tokens / (1 + cost * gamma)])
    best = max(rows, key=lambda row: row[3])
    sentence = (
        f"A guess is accepted with probability {rate:.2f} and costs {cost:.2f} of a target step to draft and verify: "
    )
    more = " or more" if best[0] == _LONGEST else ""
    sentence += (
        f"the best gamma is {best[0]}{more}, expected to be {best[3]:.2f} times as fast"
        if best[0]
        else "guessing does not pay"
    )
    sentence += (
        f"; now drafts have {drafted:.1f} guesses on average and are measured to be {priced.speed:.2f} times as "
    )
    sentence += "fast, with the time outside passes, which the expectation leaves out."
    columns = ("gamma", "tokens per step", "step cost", "speed-up")
    return _of_later(sentence, rows, [], value=best[0], unit="guesses", columns=columns)


def _of_later(sentence: str, rows: list[list[JSON]], slowest: list[str], **shown: Any) -> MetricResult:
    """Make a result whose rows are made of later steps' times: of all their time where `slowest` names no part."""
    slowest = [*slowest, *[TOTAL] * (len(rows) - len(slowest))]
    return result(sentence, rows=rows, where=[LATER] * len(rows), slowest=slowest, **shown)


def _of_a_guess(selection: Selection, priced: Costs) -> tuple[float, float, float]:
    """Return the chance of a chain's guess, its cost in autoregressive steps, and how many guesses steps have now."""
    if not priced.split:
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
    cost = (priced.draft + max(0.0, priced.verification)) / mean
    return float(np.minimum(accepted, drafted).sum() / judged), cost, float(drafted[drafted > 0].mean())


def _reasons(selection: Selection, priced: Costs) -> str:
    """Say what costs most, then the rest, then which draft length would be best; "" if nothing is notable."""
    rows = "" if np.isnan(priced.rows) else f" of {priced.rows:.0f} rows"
    parts = {
        f"the draft ({priced.draft:.2f} of a target step)": priced.draft,
        f"verification{rows} ({priced.passes:.1f} passes)": priced.verification,
        f"the time outside passes ({percent(priced.outside_share)} of a step)": priced.outside,
    }
    notable = [text for text in sorted(parts, key=lambda each: -parts[each]) if parts[text] >= _NOTABLE]
    if not notable or not priced.split:
        few = priced.free < _FEW and np.nansum(selection.steps.maybe("drafted")) > 0
        return " Too few guesses are accepted." if few else ""
    sentences = f" The largest cost is {notable[0]}." + (f" Next: {listed(notable[1:])}." if notable[1:] else "")
    if priced.draft < _NOTABLE:
        return sentences
    try:
        rate, cost, _ = _of_a_guess(selection, priced)
    except UnknownError:
        return sentences
    best = max(range(_LONGEST + 1), key=lambda gamma: expected_tokens(gamma, rate) / (1 + cost * gamma))
    return f"{sentences} At acceptance {rate:.2f}, {f'the best gamma is {best}' if best else 'guessing does not pay'}."


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
