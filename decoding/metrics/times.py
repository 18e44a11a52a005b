"""Where the time goes, and when tokens arrive."""

from __future__ import annotations

import numpy as np

from ..types import JSON
from . import intervals
from .columns import Array, Chosen
from .result import Result, UnknownError, result, share
from .selection import Selection

PHASES = ("draft", "forward", "accept", "commit", "other")
_PERCENTILES = (50, 95, 99)
_SAYS = {
    "draft": "drafting",
    "forward": "the target's pass",
    "accept": "accepting",
    "commit": "moving the cache",
    "other": "everything else",
}


def later_steps(selection: Selection) -> Array:
    """The steps behind the first one whose time is known, as a mask."""
    steps = selection.steps
    later = (steps.number("step") > 0) & ~np.isnan(steps.number("total_ms"))
    if not later.any():
        raise UnknownError("no step but the first of this selection has a time")
    return later


def phase_means(selection: Selection) -> dict[str, float] | None:
    """Milliseconds of a later step by phase; None where the record does not split them."""
    steps, later = selection.steps, later_steps(selection)
    means: dict[str, float] = {}
    for phase in PHASES:
        values = steps.maybe(f"{phase}_ms")[later]
        if np.isnan(values).all():
            return None
        means[phase] = float(np.nanmean(values))
    return means


def step_time(selection: Selection) -> Result:
    """The time of a later step, and of its phases."""
    steps, later = selection.steps, later_steps(selection)
    total = steps.number("total_ms")[later]
    above = selection.by_question(total, later)
    value, low, high = (
        float(number) for number in intervals.ratio(above, selection.by_question(np.ones(len(total)), later))
    )
    rows: list[list[JSON]] = [["all", value, 1.0, *np.percentile(total, _PERCENTILES)]]
    means = phase_means(selection)
    sentence = f"A step takes {value:.2f} ms"
    if means is None:
        sentence += "; the record does not split it."
    else:
        whole = sum(means.values()) or 1.0
        for phase, mean in means.items():
            values = steps.maybe(f"{phase}_ms")[later]
            rows.append([phase, mean, mean / whole, *np.nanpercentile(values, _PERCENTILES)])
        most = max(means, key=lambda phase: means[phase])
        sentence += f", of which {share(means[most] / whole)} is {_SAYS[most]}."
    columns = ("phase", "ms", "share", "p50", "p95", "p99")
    return result(sentence, value=value, interval=(low, high), unit="ms", columns=columns, rows=rows)


def latency(selection: Selection) -> Result:
    """Percentiles of the time to the first token and between tokens.

    All tokens of a step arrive together: the first of them after the step's time, the others after none.
    """
    rows: list[list[JSON]] = []
    try:
        rows.append(_row("to the first token", _first(selection)))
    except UnknownError:
        first = None
    else:
        first = rows[0]
    steps, later = selection.steps, later_steps(selection)
    gaps = steps.number("total_ms")[later]
    written = steps.number("written")[later]
    some = written > 0
    rows.append(_row("between steps", gaps))
    rows.append(_row("between tokens", gaps[some], float((written[some] - 1).sum())))
    place = selection.run_of_step[later]
    size = len(selection.runs)
    sums, tokens = (np.bincount(place, weights=values, minlength=size) for values in (gaps, written))
    rows.append(_row("for each token of a run (TPOT)", sums[tokens > 0] / tokens[tokens > 0]))
    step, each = rows[-3], rows[-1]
    sentence = f"The first token comes after {first[2]:.1f} ms; then" if first else "Behind the first token"
    sentence += f" a step comes every {step[2]:.2f} ms (p95 {step[3]:.2f}), which is {each[2]:.2f} ms for each token."
    columns = ("time", "count", *(f"p{percentile}" for percentile in _PERCENTILES))
    return result(sentence, value=each[2], unit="ms per token", columns=columns, rows=rows)


def throughput(selection: Selection) -> Result:
    """Tokens a second in the conventions of several tools."""
    steps, later = selection.steps, later_steps(selection)
    written = selection.by_question(steps.number("written")[later], later)
    seconds = selection.by_question(steps.number("total_ms")[later], later) / 1000
    value, low, high = (float(number) for number in intervals.ratio(written, seconds))
    rows: list[list[JSON]] = [["tokens of the later steps per second of these", value, low, high]]
    tokens, whole = wall(selection)
    if tokens.any():
        rows.append(["all tokens per second, reading the prompt included (vLLM)", *_ratio(tokens, whole)])
        rate = spec_bench_rates(tokens, whole)
        rows.append(["mean of the questions' tokens per second (Spec-Bench)", *_ratio(rate, np.ones(len(rate)))])
    sentence = f"{value:,.1f} tokens a second behind the first step."
    columns = ("counted as", "tokens per second", "low", "high")
    return result(sentence, value=value, interval=(low, high), unit="tokens/s", columns=columns, rows=rows)


def wall(selection: Selection) -> tuple[Array, Array]:
    """Tokens and seconds by question, the first step included, of the runs whose every step has a time."""
    steps = selection.steps
    total, written = steps.number("total_ms"), steps.number("written")
    lacking = np.bincount(selection.run_of_step[np.isnan(total)], minlength=len(selection.runs)) > 0
    begun = np.bincount(selection.run_of_step[steps.number("step") == 0], minlength=len(selection.runs)) > 0
    timed = (begun & ~lacking)[selection.run_of_step]
    return selection.by_question(written[timed], timed), selection.by_question(total[timed], timed) / 1000


def spec_bench_rates(tokens: Array, seconds: Array) -> Array:
    """Tokens a second of each question that has a time."""
    return np.asarray(tokens[seconds > 0] / seconds[seconds > 0])


def _ratio(above: Array, below: Array) -> list[JSON]:
    return [float(number) for number in intervals.ratio(above, below)]


def _first(selection: Selection) -> Array:
    """Milliseconds to the first token, of the runs or of their first steps."""
    try:
        return _numbers(selection.runs, "prefill_seconds") * 1000
    except UnknownError:
        first = selection.steps.number("step") == 0
        values = selection.steps.number("total_ms")[first]
        if not len(values) or np.isnan(values).all():
            raise
        return np.asarray(values[~np.isnan(values)])


def _numbers(rows: Chosen, column: str) -> Array:
    values = rows.number(column)
    return np.asarray(values[~np.isnan(values)])


def _row(name: str, values: Array, zeros: float = 0) -> list[JSON]:
    """Percentiles of values and of so many zeros, which are counted and never stored."""
    count = len(values) + zeros
    if not count:
        return [name, 0, None, None, None]
    ordered = np.sort(values)
    found = []
    for percentile in _PERCENTILES:
        place = percentile / 100 * (count - 1) - zeros  # among the values; zeros stand in front of them
        low = int(np.floor(place))
        below, above = (float(ordered[min(each, len(values) - 1)]) if each >= 0 else 0.0 for each in (low, low + 1))
        found.append(below + (above - below) * (place - low))
    return [name, int(count), *found]
