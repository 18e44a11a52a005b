"""Metrics of time: where it goes, and when tokens arrive."""

from __future__ import annotations

import numpy as np

from decoding.types import JSON, TIME_PARTS

from . import intervals
from .columns import Array
from .result import Condition, MetricResult, UnknownError, percent, result
from .selection import Selection

_PERCENTILES = (50, 95, 99)
TOTAL = "total_ms"
LATER: list[Condition] = [("steps", "step", ">", 0)]
_FIRST: list[Condition] = [("steps", "step", "=", 0)]
_LATER_TOKENS = "after the first step"
_PROMPT = ", which reads the prompt"
_SAYS = {
    "draft": "drafting",
    "forward": "the target's pass",
    "accept": "accepting",
    "commit": "moving the cache",
    "other": "everything else",
}


def later_steps(selection: Selection) -> Array:
    """Return a mask of the steps after the first one whose time is known."""
    steps = selection.steps
    later = (steps.number("step") > 0) & ~np.isnan(steps.number("total_ms"))
    if not later.any():
        raise UnknownError("no step but the first of this selection has a time")
    return later


def phase_means(selection: Selection) -> dict[str, float] | None:
    """Return the milliseconds of a later step by phase; None if the record does not split them."""
    steps, later = selection.steps, later_steps(selection)
    means: dict[str, float] = {}
    for phase in TIME_PARTS:
        values = steps.maybe(f"{phase}_ms")[later]
        if np.isnan(values).all():
            return None
        means[phase] = float(np.nanmean(values))
    return means


def step_time(selection: Selection) -> MetricResult:
    """Compute the time of a later step, and of its phases."""
    steps, later = selection.steps, later_steps(selection)
    total = steps.number("total_ms")[later]
    above = selection.by_question(total, later)
    value, low, high = (
        float(number) for number in intervals.ratio(above, selection.by_question(np.ones(len(total)), later))
    )
    rows: list[list[JSON]] = [["all", value, 1.0, *np.percentile(total, _PERCENTILES)]]
    means = phase_means(selection)
    sentence = f"A step after the first takes {value:.2f} ms on average"
    if means is None:
        sentence += "; the record does not split it."
    else:
        whole = sum(means.values()) or 1.0
        for phase, mean in means.items():
            values = steps.maybe(f"{phase}_ms")[later]
            rows.append([phase, mean, mean / whole, *np.nanpercentile(values, _PERCENTILES)])
        most = max(means, key=lambda phase: means[phase])
        sentence += f", of which {percent(means[most] / whole)} is {_SAYS[most]}."
    columns = ("phase", "ms", "share", *(f"p{percentile}, ms" for percentile in _PERCENTILES))
    where, slowest = [LATER] * len(rows), [TOTAL, *(f"{phase}_ms" for phase in means or ())]
    return result(
        sentence, value=value, interval=(low, high), unit="ms", columns=columns, rows=rows, where=where, slowest=slowest
    )


def latency(selection: Selection) -> MetricResult:
    """Compute percentiles of the time to the first token and between tokens.

    All tokens of a step arrive together: the first of them after the step's time, the others after none.
    """
    first, later = run_seconds(selection)
    tokens = later_tokens(selection)
    to_first = np.where(np.isnan(first), selection.runs.maybe("prefill_seconds"), first)
    each = later[tokens > 0] / tokens[tokens > 0]
    rows: list[list[JSON]] = []
    sentences, where = [], [LATER] * 3
    if not np.isnan(to_first).all():
        where = [_FIRST, *where]
        rows.append(_row("to the first token", 1000 * to_first[~np.isnan(to_first)]))
        sentences.append(f"the first token comes after {rows[-1][2]:.1f} ms")
    steps = selection.steps
    timed = (steps.number("step") > 0) & ~np.isnan(steps.maybe("total_ms"))
    if timed.any():
        gaps, written = steps.number("total_ms")[timed], steps.number("written")[timed]
        some = written > 0
        rows.append(_row("between steps", gaps))
        sentences.append(f"a step comes every {rows[-1][2]:.2f} ms (p95 {rows[-1][3]:.2f})")
        rows.append(_row("between tokens", gaps[some], float((written[some] - 1).sum())))
    if not np.isnan(each).all():
        rows.append(_row("for each token of a run (TPOT)", 1000 * each[~np.isnan(each)]))
        sentences.append(f"a token takes {rows[-1][2]:.2f} ms after the first step")
    if not rows:
        raise steps.lacking("total_ms")
    sentence = ", ".join(sentences)
    columns = ("time, ms", "count", *(f"p{percentile}" for percentile in _PERCENTILES))
    return result(
        f"At the median, {sentence}.",
        value=rows[-1][2],
        unit="ms",
        columns=columns,
        rows=rows,
        where=where[: len(rows)],
        slowest=[TOTAL] * len(rows),
    )


def throughput(selection: Selection) -> MetricResult:
    """Compute tokens per second in the conventions of several tools."""
    rows: list[list[JSON]] = []
    tokens, seconds = later_sums(selection)
    if tokens.any():
        rows.append([_LATER_TOKENS, *_ratio(tokens, seconds)])
    tokens, seconds = wall(selection)
    if tokens.any():
        rows.append(["over whole runs (vLLM)", *_ratio(tokens, seconds)])
        rate = spec_bench_rates(tokens, seconds)
        rows.append(["mean over questions (Spec-Bench)", *_ratio(rate, np.ones(len(rate)))])
    if not rows:
        raise selection.steps.lacking("total_ms")
    name, value, *interval = rows[0]
    sentence = f"{value:,.1f} tokens per second {name}{_PROMPT if name == _LATER_TOKENS else ''}."
    columns = ("counted as", "tokens/s", "low", "high")
    return result(
        sentence,
        value=value,
        interval=interval,
        unit="tokens/s",
        columns=columns,
        rows=rows,
        where=[LATER] * len(rows),
        slowest=[TOTAL] * len(rows),
    )


def run_seconds(selection: Selection) -> tuple[Array, Array]:
    """Return the seconds of every run's first step and of its later ones; NaN where not recorded.

    From the steps where all that are chosen have a time, else from the record's numbers for a whole run.
    """
    steps, runs = selection.steps, selection.runs
    total, later = steps.maybe("total_ms"), steps.number("step") > 0
    timed = (selection.by_run(np.isnan(total)) == 0) & (selection.by_run(np.ones(len(steps))) > 0)
    begun = selection.by_run(~later) > 0
    seconds = np.nan_to_num(total) / 1000
    first = np.where(begun, selection.by_run(np.where(later, 0, seconds)), np.nan)
    rest = selection.by_run(np.where(later, seconds, 0))
    whole = [np.where(selection.complete, runs.maybe(name), np.nan) for name in ("prefill_seconds", "decode_seconds")]
    return np.where(timed, first, whole[0]), np.where(timed, rest, whole[1])


def run_tokens(selection: Selection) -> Array:
    """Count every run's tokens; the record's own count of a run comes first, since the end may cut its last step."""
    counted = np.where(selection.complete, selection.runs.maybe("new_tokens"), np.nan)
    return np.where(np.isnan(counted), selection.by_run(selection.steps.number("written")), counted)


def later_tokens(selection: Selection) -> Array:
    """Count the tokens each run wrote after its first step."""
    steps = selection.steps
    first = selection.by_run(np.where(steps.number("step") == 0, steps.number("written"), 0))
    return np.asarray(np.maximum(run_tokens(selection) - first, 0))


def later_sums(selection: Selection) -> tuple[Array, Array]:
    """Sum tokens and seconds by question after the first step, of the runs whose time is known."""
    seconds, tokens = run_seconds(selection)[1], later_tokens(selection)
    return _known_sums(selection, tokens, seconds)


def wall(selection: Selection) -> tuple[Array, Array]:
    """Sum tokens and seconds by question, the first step included, of the runs whose whole time is known.

    A record that does not split a run's time has the tokens per second of the whole run.
    """
    first, later = run_seconds(selection)
    runs, tokens = selection.runs, run_tokens(selection)
    seconds = first + later
    with np.errstate(divide="ignore", invalid="ignore"):
        unsplit = runs.maybe("new_tokens") / runs.maybe("tokens_per_second")
    unsplit[~selection.complete | ~np.isnan(runs.maybe("decode_seconds"))] = np.nan
    seconds = np.where(
        np.isnan(seconds) & (selection.by_run(selection.steps.number("step") == 0) > 0), unsplit, seconds
    )
    return _known_sums(selection, tokens, seconds)


def spec_bench_rates(tokens: Array, seconds: Array) -> Array:
    """Compute tokens per second of each question that has a time."""
    return np.asarray(tokens[seconds > 0] / seconds[seconds > 0])


def _known_sums(selection: Selection, tokens: Array, seconds: Array) -> tuple[Array, Array]:
    timed = np.isfinite(seconds) & (seconds > 0)
    one, other = (selection.runs_by_question(np.where(timed, values, 0)) for values in (tokens, seconds))
    return one, other


def _ratio(above: Array, below: Array) -> list[JSON]:
    return [float(number) for number in intervals.ratio(above, below)]


def _row(name: str, values: Array, zeros: float = 0) -> list[JSON]:
    """Compute percentiles of values and a number of zeros, which are counted and never stored."""
    count = len(values) + zeros
    if not count:
        return [name, 0, None, None, None]
    ordered = np.sort(values)
    percentiles = []
    for percentile in _PERCENTILES:
        place = percentile / 100 * (count - 1) - zeros  # among the values; zeros come before them
        low = int(np.floor(place))
        below, above = (float(ordered[min(each, len(values) - 1)]) if each >= 0 else 0.0 for each in (low, low + 1))
        percentiles.append(below + (above - below) * (place - low))
    return [name, int(count), *percentiles]
