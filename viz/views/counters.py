"""The numbers of the run so far, under their usual names, each with its formula."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import isfinite
from operator import add
from typing import Any, NamedTuple

from decoding.trace import metrics
from decoding.types import TIME_PARTS, Header, Step, Summary

from ..cache_slots import cache_state
from ..fates import siblings_of
from ..methods import screen_of
from ..ranks import shared
from ..run_state import RunState
from ..view import Figure, Patch, View

CTAR = (1, 2, 3, 4)
_STEADY = 1.15  # by what factor two measurements of one machine may differ
_EVERY = 32  # every how many steps sums are remembered: of a long run all of them would take more than its record


@dataclass(frozen=True, slots=True)
class CounterRow:
    """A number on the screen: value * scale, rounded to `digits` digits, then the unit."""

    key: str
    label: str
    formula: str
    unit: str = ""
    digits: int = 2
    scale: float = 1.0
    parts: tuple[str, ...] = ()  # names of a list's numbers; they count from `first` where there are none
    first: int = 0

    def plain(self) -> dict[str, Any]:
        """Return as the page reads it."""
        shown = {"unit": self.unit, "digits": self.digits, "scale": self.scale}
        shown |= {"parts": self.parts} if self.parts else {"first": self.first}
        return {"key": self.key, "label": self.label, "formula": self.formula, **shown}


_PERCENT: dict[str, Any] = {"unit": " %", "digits": 1, "scale": 100.0}
_SPEED = CounterRow(
    "tokens_per_second",
    "Tokens per second",
    "Tokens written after the first step, which reads the prompt, divided by the time of those steps.",
    digits=1,
)
_MEAN = CounterRow(
    "mean_acceptance_length",
    "Tokens per step",
    "New tokens divided by steps; without speculation it is 1. vLLM calls it the mean acceptance length.",
)
_RATE = CounterRow(
    "draft_acceptance_rate", "Draft acceptance rate", "Accepted guesses divided by drafted ones.", **_PERCENT
)
_VERIFIED = CounterRow(
    "draft_acceptance_rate",
    "Accepted of verified nodes",
    "Accepted guesses divided by all guesses of all branches; of branches at most one can be right.",
    **_PERCENT,
)
_HIT = CounterRow(
    "hit_rank",
    "Mean hit rank",
    "The mean rank of accepted guesses among the guesses for the same position; 1 is the first.",
)
_COMMON = (
    CounterRow(
        "fed_per_token",
        "Tokens the target processed per new token",
        "Tokens that went through the target, prompt and guesses included, divided by new tokens.",
    ),
    CounterRow("step_ms", "Time per step", "The time of all steps after the first, divided by their number.", " ms"),
    CounterRow("prefill_ms", "Prefill", "The time of the first step, which reads the prompt.", " ms", 1),
    CounterRow(
        "memory",
        "Memory",
        "The weights of the target and of a draft model, and for each the keys and values of the most tokens that the "
        "target's cache has held, guesses included, or of all slots of a ring. Heads, adapters and tables are not "
        "counted.",
        " MB",
        1,
        1e-6,
    ),
    CounterRow("new_tokens", "New tokens", "Tokens written so far.", digits=0),
    CounterRow(
        "survival",
        "Acceptance by position",
        "For each position the share of steps that accepted a guess there and at every position before it.",
        first=1,
        **_PERCENT,
    ),
    CounterRow("histogram", "Acceptance histogram", "How many steps accepted exactly 0, 1, 2, ... guesses.", digits=0),
    CounterRow(
        "ctar", "CTAR(w)", "The share of steps that wrote more than w tokens, for w from 1 to 4.", first=1, **_PERCENT
    ),
    CounterRow(
        "time",
        "Time by phase",
        "The share of the time after the first step in draft, forward, accept, commit and the rest.",
        parts=TIME_PARTS,
        **_PERCENT,
    ),
    CounterRow(  # after all that grows from step to step
        "bandwidth",
        "Share of the bandwidth measured here",
        "The weights, keys and values that the target's passes after the first step had to read, divided by the time "
        "of those passes and by the bytes per second that this device was measured to read before and after the run, "
        "with as many threads. Known when the run has ended, and the same at every step.",
    ),
    CounterRow(
        "speedup",
        "Speed-up of the whole run",
        "Tokens per second of all steps, the first one included, divided by those of our own autoregressive run of the "
        "same prompt on the same machine. The same at every step. A measurement above the tokens per step is not "
        "shown: a step does all that an autoregressive one does, so it cannot be faster.",
        unit="×",
    ),
)
_EXCHANGED = CounterRow(
    "exchanged",
    "Exchanged per step",
    "Bytes of chosen tokens that each rank received, its own included, divided by the number of steps.",
    " bytes",
    0,
)
_EXPERTS = CounterRow(
    "experts",
    "Experts read per step",
    "Different experts that a step's pass read in a layer, on average over the layers that have any and over the steps "
    "after the first: each node of a tree selects some, and the weights of each are read once.",
    digits=1,
)
_OF_GUESSES = ("survival", "histogram", "speedup", "ctar")


def rows(header: Header) -> tuple[CounterRow, ...]:
    """Return the numbers that make sense for a run: where guesses branch, most must be wrong, so no rate is shown."""
    screen, mixture = screen_of(header), header.model.experts is not None
    some = (*((_EXCHANGED,) if shared(header) else ()), *((_EXPERTS,) if mixture else ()))
    if not screen.guesses:
        return (_SPEED, _MEAN, *(row for row in _COMMON if row.key not in _OF_GUESSES), *some)
    return (_SPEED, _MEAN, *((_RATE,) if screen.chain else (_VERIFIED, _HIT)), *some, *_COMMON)


class Totals(NamedTuple):
    """Sums up to a step, so that no step is counted twice in a long run."""

    counts: tuple[int, ...]  # new, drafted, accepted, fed, hits, sum of their ranks, bytes exchanged
    accepted: Counter[int]  # steps by accepted guesses
    written: Counter[int]  # and by tokens written
    times: tuple[float, ...]  # of `TIME_PARTS`, and the total; the first step, which reads the prompt, is left out
    seen: int  # cached tokens that a pass looked at; without the first step as well
    cached: int  # the most tokens that the cache held
    experts: float  # read in a layer, summed over the steps after the first

    @classmethod
    def of(cls, header: Header, step: Step) -> Totals:
        """Return those of one step."""
        ranks, written, cache = accepted_ranks(step), metrics.written([step]), cache_state(header, [step], 0)
        counts = (len(step.emitted), step.drafted, step.accepted, step.fed, len(ranks), sum(ranks), step.exchanged)
        times = (*(getattr(step.timing, f"{phase}_ms") for phase in TIME_PARTS), step.timing.total_ms)
        later = bool(step.index)
        times, seen = tuple(time * later for time in times), (cache.end - cache.seen) * later
        experts = (step.experts or 0.0) * later
        return cls(counts, Counter([step.accepted]), written, times, seen, cache.slots, experts)

    def plus(self, other: Totals) -> Totals:
        """Return the sums of both."""
        counts, times = map(add, self.counts, other.counts), map(add, self.times, other.times)
        accepted, written = self.accepted + other.accepted, self.written + other.written
        cached = max(self.cached, other.cached)
        seen, experts = self.seen + other.seen, self.experts + other.experts
        return Totals(tuple(counts), accepted, written, tuple(times), seen, cached, experts)


def numbers(run: RunState, k: int) -> dict[str, Any]:
    """Return the value of every number after step k; None if nothing was measured."""
    totals = _totals(run, k)
    new, drafted, accepted, fed, hits, ranks, exchanged = totals.counts
    by_accepted, by_written, (*phases, total) = totals.accepted, totals.written, totals.times
    first = run.steps[0]
    histogram = [by_accepted[guesses] for guesses in range(max(by_accepted) + 1)]
    return {
        "tokens_per_second": (new - len(first.emitted)) / (total / 1000) if total > 0 else None,
        "mean_acceptance_length": metrics.compression_rate(by_written),
        "draft_acceptance_rate": accepted / drafted if drafted else None,
        "hit_rank": ranks / hits if hits else None,
        "survival": [*metrics.survival(histogram)],
        "histogram": histogram,
        "fed_per_token": fed / new if new else None,
        "speedup": None,
        "ctar": [metrics.consistent_acceptance(by_written, w) for w in CTAR],
        "time": [phase / total for phase in phases] if total > 0 else None,
        "step_ms": total / k if k else None,
        "prefill_ms": first.timing.total_ms,
        "bandwidth": None,
        "memory": _memory(run.header, totals.cached),
        "new_tokens": new,
        "exchanged": exchanged / (k + 1),
        "experts": totals.experts / k if k else None,
    }


def _totals(run: RunState, k: int) -> Totals:
    """Return the sums up to step k, from the last stored ones: the newest, and one of every few steps."""
    sums: dict[int, Totals] = run.memo.setdefault("totals", {})
    at = max((step for step in [*sums] if step <= k), default=-1)
    total = sums.get(at)
    for place in range(at + 1, k + 1):
        one = Totals.of(run.header, run.steps[place])
        total = total.plus(one) if total else one
        if place % _EVERY == 0:
            sums[place] = total
    assert total is not None
    if k == len(run.steps) - 1:
        sums[k] = total
        if at % _EVERY:
            sums.pop(at, None)
    return total


def bandwidth(run: RunState, summary: Summary | None) -> str | None:
    """Say what share of the device's bandwidth the passes of a whole run reached, or why none is given.

    The share is a lower bound, as what passes wrote is not counted. None if nothing is known.
    """
    header, k, card = run.header, len(run.steps) - 1, run.header.model
    if k < 1 or card.pass_bytes is None or card.token_bytes is None:
        return None
    if not screen_of(header).bandwidth_known:
        return "Not known: this method runs layers of the model while it drafts."
    if header.cache is not None and metrics.may_be_cached(card.pass_bytes, header.cache):
        return "Not given: the processor's cache may hold the weights."
    measured = [each for each in (header.bandwidth, summary and summary.bandwidth) if each]
    if len(measured) < 2:
        return "Not known: it was not measured both before and after the run." if measured else None
    low, high = min(measured), max(measured)
    if high > low * _STEADY:
        return f"Not given: the machine read {low / 1e9:.0f} and {high / 1e9:.0f} GB/s before and after the run."
    totals = _totals(run, k)
    seconds = totals.times[TIME_PARTS.index("forward")] / 1000
    size = k * card.pass_bytes + totals.seen * card.token_bytes
    if not seconds or not isfinite(size / seconds / low):
        return None
    shares = [size / seconds / each for each in (high, low)]
    if shares[1] > 1:
        return "Not given: the run read faster than the measurements say the machine can."
    least, most = (f"{100 * share:.0f}" for share in shares)
    return f"{least} %" if least == most else f"{least} to {most} %"


def largest_memory(run: RunState) -> int | None:
    """Return bytes that the models and their caches take in the end."""
    return _memory(run.header, max(cache_state(run.header, [step], 0).slots for step in run.steps))


def _memory(header: Header, cached: int) -> int | None:
    """Return bytes that the models and their caches take."""
    held = 0
    for card in filter(None, (header.model, header.draft)):
        if card.weight_bytes is None or card.token_bytes is None:
            return None
        held += card.weight_bytes + cached * card.token_bytes
    return held


def accepted_ranks(step: Step) -> list[int]:
    """Return the rank of every accepted guess among the different guesses for its position, from 1."""
    behind = siblings_of(step, step.path[:-1])
    return [[*rivals.values()].index(node) + 1 for rivals, node in zip(behind, step.path[1:], strict=True)]


def base(run: RunState) -> Figure:
    """Return the rows without their values."""
    return {"rows": [row.plain() for row in rows(run.header)]}


def frame(run: RunState, k: int) -> Patch:
    """Return the values up to step k."""
    values = numbers(run, k)
    return {"values": [_short(values[row.key]) for row in rows(run.header)]}


def value_with_unit(row: CounterRow, value: Any) -> str:
    """Return a value with its unit."""
    if isinstance(value, list):
        names = row.parts or [str(row.first + place) for place in range(len(value))]
        parts = (f"{name}: {_digits(row, part)}" for name, part in zip(names, value, strict=True))
        return ", ".join(parts) or "none yet"
    if value is None or isinstance(value, str):
        return value or "not known"
    return _digits(row, value)


def _digits(row: CounterRow, value: float) -> str:
    return f"{value * row.scale:.{row.digits}f}{row.unit}"


def _short(value: Any) -> Any:
    """Round to five digits, which is more than the screen shows."""
    if isinstance(value, list):
        return [_short(part) for part in value]
    if isinstance(value, float) and not isfinite(value):
        return None  # a record from elsewhere may divide by next to nothing
    return float(f"{value:.5g}") if isinstance(value, float) else value


VIEW = View(
    name="counters",
    label="Counters",
    kind="numbers",
    look_for="Tokens per step show how often guesses are accepted; tokens the target processed show what they cost.",
    base=base,
    frame=frame,
)
