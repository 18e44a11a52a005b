"""Every metric, once: command line, page and tutorial list the same ones, in this order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import acceptance
from .result import Result, UnknownError, unknown
from .selection import Selection


@dataclass(frozen=True, slots=True)
class Metric:
    """What a metric is called, how it is computed, and how to read it."""

    key: str
    title: str
    group: str  # the heading that it stands below
    formula: str  # for a tooltip
    look_for: str
    chart: str  # how its rows are drawn: "number", "bars", "lines", "heat" or "table"; x is the first column
    function: Callable[[Selection], Result]


def measure(key: str, selection: Selection) -> Result:
    """The result of a metric; where the record cannot answer, its reason says why."""
    whole = selection.steps.columns.reasons
    try:
        return METRICS[key].function(selection)
    except UnknownError as lacking:
        return unknown(whole.get(key, str(lacking)))


def _listed(*metrics: Metric) -> dict[str, Metric]:
    return {metric.key: metric for metric in metrics}


METRICS = _listed(
    Metric(
        "mean_acceptance_length",
        "Mean acceptance length",
        "Acceptance",
        "tokens written / steps, the target's own token included; vLLM: 1 + accepted / steps with guesses",
        "1 is decoding one token at a time. The interval is over questions: two numbers within it are no difference.",
        "number",
        acceptance.mean_acceptance_length,
    ),
    Metric(
        "draft_acceptance_rate",
        "Draft acceptance rate",
        "Acceptance",
        "accepted guesses / drafted guesses",
        "It falls with longer drafts even where these pay: compare drafts of one length.",
        "number",
        acceptance.draft_acceptance_rate,
    ),
    Metric(
        "survival",
        "Survival by position",
        "Acceptance",
        "steps that accepted at least i guesses / steps with guesses (vLLM's per-position acceptance rate)",
        "A cliff at one position is a fault of the drafter's wiring more often than of its training.",
        "lines",
        acceptance.survival,
    ),
    Metric(
        "conditional_acceptance",
        "Conditional acceptance by position",
        "Acceptance",
        "steps that accepted at least i guesses / steps that accepted i - 1 and had another guess to judge",
        "Flat: each guess is as good as the first. Falling: the drafter loses the thread behind its own guesses.",
        "lines",
        acceptance.conditional_acceptance,
    ),
    Metric(
        "ctar",
        "CTAR(w)",
        "Acceptance",
        "steps that wrote more than w tokens / steps (Kangaroo, equation 2)",
        "The chance that w guesses in a row come true.",
        "lines",
        acceptance.consistent_token_acceptance,
    ),
    Metric(
        "acceptance_histogram",
        "Acceptance histogram",
        "Acceptance",
        "steps with guesses that accepted exactly j",
        "Two humps, at none and at all, are a drafter that would profit from a length of its own for each step.",
        "bars",
        acceptance.acceptance_histogram,
    ),
    Metric(
        "histogram_by_draft_length",
        "Acceptance by draft length",
        "Acceptance",
        "steps with k guesses that accepted exactly j of them",
        "Long drafts that are never accepted whole are longer than they need be.",
        "heat",
        acceptance.histogram_by_draft_length,
    ),
    Metric(
        "fed_per_token",
        "Rows per token",
        "Acceptance",
        "rows that went through the target / tokens written, without the first step",
        "The price of guessing in arithmetic: 1 is decoding one token at a time.",
        "number",
        acceptance.fed_per_token,
    ),
)
