"""Expected against measured speed-up: what a step costs in steps of one token at a time, and what of it is too much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..types import JSON
from .guesses import branches
from .result import Result, UnknownError, listed, result, share
from .selection import Selection
from .times import later_steps, phase_means, spec_bench_rates, wall

_LONGEST = 16  # of the drafts that are compared
_FEW = 1.2  # tokens a step from which no cost is worth a word
_NOTABLE = 0.1  # autoregressive steps that a sentence names


@dataclass(frozen=True, slots=True)
class Costs:
    """A later step in autoregressive steps of the same folder."""

    tokens: float  # that it writes
    plain_tokens: float  # that an autoregressive step writes: 1
    total: float
    rows: float | None  # that the target reads
    # None where the record does not split the time:
    draft: float | None
    passes: float | None  # the target's pass, in autoregressive passes
    verification: float | None  # what its rows cost beyond those of an autoregressive pass
    outside: float | None  # time in no pass beyond that of an autoregressive step
    outside_share: float | None  # time in no pass, of the step

    @property
    def speed(self) -> float:
        """Measured on the steps: how many times as fast as one token at a time."""
        return self.tokens / self.plain_tokens / self.total


def costs(selection: Selection) -> Costs:
    """The costs of a selection beside the autoregressive runs of its folder."""
    plain = selection.baseline
    (ms, tokens), (plain_ms, plain_tokens) = _means(selection), _means(plain)
    if not plain_ms or not ms or not plain_tokens:
        raise UnknownError("the steps of this folder took no time at all")
    fed = selection.steps.maybe("fed")[later_steps(selection)]
    rows = None if np.isnan(fed).all() else float(np.nanmean(fed))
    parts, plain_parts = phase_means(selection), phase_means(plain)
    if parts is None or plain_parts is None or not plain_parts["forward"]:
        return Costs(tokens, plain_tokens, ms / plain_ms, rows, None, None, None, None, None)
    rest, plain_rest = ms - parts["draft"] - parts["forward"], plain_ms - plain_parts["forward"]
    return Costs(
        tokens,
        plain_tokens,
        ms / plain_ms,
        rows,
        parts["draft"] / plain_ms,
        parts["forward"] / plain_parts["forward"],
        (parts["forward"] - plain_parts["forward"]) / plain_ms,
        (rest - plain_rest) / plain_ms,
        rest / ms,
    )


def step_cost(selection: Selection) -> Result:
    """A step in autoregressive steps of the same folder."""
    found = costs(selection)
    rows: list[list[JSON]] = [["the whole step", found.total]]
    if found.draft is not None and found.verification is not None and found.outside is not None:
        rows += [
            ["an autoregressive step", 1.0],
            ["drafting", found.draft],
            ["verifying more rows than one", found.verification],
            ["more time outside of passes", found.outside],
        ]
    sentence = f"A step costs {found.total:.2f} steps of one token at a time and writes {found.tokens:.2f} tokens."
    columns = ("part", "autoregressive steps")
    return result(sentence, value=found.total, unit="autoregressive steps", columns=columns, rows=rows)


def speedup(selection: Selection) -> Result:
    """From the speed that the accepted tokens would give for nothing to the one that was measured."""
    found = costs(selection)
    free = found.tokens / found.plain_tokens
    rows: list[list[JSON]] = [["if a step cost no more than one of one token", free]]
    if found.draft is not None and found.verification is not None:
        rows.append(["with the time for drafting", free / (1 + found.draft)])
        rows.append(["and for verifying more rows than one", free / (1 + found.draft + found.verification)])
    rows.append(["measured: and with all time outside of passes", found.speed])
    tokens, seconds = wall(selection)
    plain_tokens, plain_seconds = wall(selection.baseline)
    if tokens.any() and plain_tokens.any():
        ratio = spec_bench_rates(tokens, seconds).mean() / spec_bench_rates(plain_tokens, plain_seconds).mean()
        rows.append(["measured as Spec-Bench does, reading the prompt included", ratio])
    sentence = f"{found.speed:.2f} times as fast as one token at a time; {found.tokens:.2f} tokens a step would give "
    sentence += f"{free:.2f} times if guesses cost nothing"
    reasons = _reasons(selection, found)
    if not reasons and free < _FEW and np.nansum(selection.steps.maybe("drafted")) > 0:
        reasons = ["too few guesses come true"]
    sentence += f": {listed(reasons)}." if reasons else "."
    return result(sentence, value=found.speed, unit="times", columns=("speed-up", "times"), rows=rows)


def best_gamma(selection: Selection) -> Result:
    """The draft length that is expected to be fastest, from the chance of a guess and its cost."""
    rate, cost, drafted = _of_a_guess(selection, costs(selection))
    rows: list[list[JSON]] = []
    for gamma in range(_LONGEST + 1):
        tokens = chain_tokens(rate, gamma)
        rows.append([gamma, tokens, 1 + cost * gamma, tokens / (1 + cost * gamma)])
    best = max(rows, key=lambda row: row[3])
    sentence = (
        f"A guess comes true with the chance {rate:.2f} and costs {cost:.2f} of a target step to draft and verify: "
    )
    more = " or more" if best[0] == _LONGEST else ""
    sentence += (
        f"the best gamma is {best[0]}{more}, {best[3]:.2f} times as fast" if best[0] else "guessing does not pay"
    )
    columns = ("gamma", "tokens per step", "step cost", "speed-up")
    return result(f"{sentence}; now it is {drafted:.1f}.", value=best[0], unit="guesses", columns=columns, rows=rows)


def chain_tokens(rate: float, gamma: int) -> float:
    """Tokens that a step with a chain of gamma guesses is expected to write (Leviathan et al., 2023, equation 1)."""
    return sum(rate**place for place in range(gamma + 1))


def _of_a_guess(selection: Selection, found: Costs) -> tuple[float, float, float]:
    """The chance of a chain's guess, its cost in autoregressive steps, and how many guesses steps have now."""
    if found.draft is None or found.verification is None:
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
    """What costs most, in words, the greatest first."""
    if found.draft is None or found.verification is None or found.outside is None or found.outside_share is None:
        return []
    draft = f"the draft costs {found.draft:.2f} of a target step"
    try:
        rate, cost, _ = _of_a_guess(selection, found)
        best = max(range(_LONGEST + 1), key=lambda gamma: chain_tokens(rate, gamma) / (1 + cost * gamma))
        advice = f"the best gamma is {best}" if best else "guessing does not pay"
        draft += f" (at acceptance {rate:.2f} {advice})"
    except UnknownError:
        pass
    rows = "" if found.rows is None else f" of {found.rows:.0f} rows"
    said = {
        draft: found.draft,
        f"verification{rows} costs {found.passes:.1f} passes": found.verification,
        f"the time outside of passes is {share(found.outside_share)}": found.outside,
    }
    return [text for text, cost in sorted(said.items(), key=lambda each: -each[1]) if cost >= _NOTABLE]


def _means(selection: Selection) -> tuple[float, float]:
    """Milliseconds and tokens of a later step."""
    steps, later = selection.steps, later_steps(selection)
    return float(steps.number("total_ms")[later].mean()), float(steps.number("written")[later].mean())
