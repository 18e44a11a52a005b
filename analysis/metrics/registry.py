"""Every metric, once: command line, page and tutorial list the same ones, in this order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from . import acceptance, cost, drafter, experts, groups, guesses, times
from .result import MetricResult, UnknownError, unknown
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
    function: Callable[[Selection], MetricResult]


def measure(key: str, selection: Selection) -> MetricResult:
    """Compute a metric; where the record lacks what it needs, the result has the reason."""
    whole = selection.steps.columns.reasons
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is not finite becomes null
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
        "1 is decoding one token at a time. The interval is over questions: two numbers inside it do not differ.",
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
        "A sharp drop at one position usually means a wiring bug, not too little training.",
        "lines",
        acceptance.survival,
    ),
    Metric(
        "conditional_acceptance",
        "Conditional acceptance by position",
        "Acceptance",
        "steps that accepted at least i guesses / steps that accepted i - 1 and had another guess to judge",
        "Flat: each guess is as good as the first. Falling: the drafter degrades as it conditions on its own guesses.",
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
    Metric(
        "by_category",
        "By category",
        "Where",
        "tokens written / steps of the questions of a category",
        "A drafter is as good as its training text: a category that it never saw stands out.",
        "bars",
        groups.by_category,
    ),
    Metric(
        "by_context",
        "By context length",
        "Where",
        "tokens written / steps that began behind so many tokens",
        "A fall at one length is a window or a rotary embedding that the drafter has and the target has not.",
        "bars",
        groups.by_context,
    ),
    Metric(
        "by_entropy",
        "By the target's entropy",
        "Where",
        "tokens written / steps at whose root the target's distribution has such an entropy, in nats",
        "Where the target is sure (near 0) guesses should come true; if they do not there, the drafter is at fault.",
        "bars",
        groups.by_entropy,
    ),
    Metric(
        "reliability",
        "Reliability diagram",
        "Drafter",
        "accepted / judged guesses by the drafter's confidence; ECE: |confidence - accepted| of bins, by their guesses",
        "On the diagonal, a threshold on the confidence stops drafting at the right moment. Below it: too sure.",
        "lines",
        drafter.reliability,
    ),
    Metric(
        "rank_histogram",
        "Rank of the target's choice",
        "Drafter",
        "places where the target's choice was the drafter's r-th likeliest / places where the target decided",
        "If the target's choice is often ranked 1 to 3 (0 is the drafter's first), a tree pays off. If it is often "
        "unranked, the drafter does not know this kind of text.",
        "bars",
        drafter.rank_histogram,
    ),
    Metric(
        "p_against_q",
        "p against q",
        "Drafter",
        "judged guesses by the drafter's probability q and the target's p",
        "Mass at high q and low p is where the drafter is sure and wrong.",
        "heat",
        drafter.p_against_q,
    ),
    Metric(
        "alpha",
        "Alpha",
        "Drafter",
        "mean over places of the sum over all tokens of min(p, q)",
        "The best that sampling from this q can reach. Fewer accepted than that: q is not what was drawn from.",
        "lines",
        drafter.alpha,
    ),
    Metric(
        "confusion",
        "Drafter said, target said",
        "Guesses",
        "judged and rejected guesses by their token and what the target chose in its place",
        "Spaces, line ends and special tokens on top are a tokenizer or template that differs.",
        "table",
        guesses.confusion,
    ),
    Metric(
        "hit_ranks",
        "Hits by rank",
        "Guesses",
        "accepted / judged guesses by depth and rank among the guesses for the same place",
        "Ranks that never hit are rows that the target reads for nothing.",
        "heat",
        guesses.hit_ranks,
    ),
    Metric(
        "suggested_tree",
        "Suggested tree",
        "Guesses",
        "the tree of n guesses that expects the most tokens: 1 + the sum of the products of accuracies along its paths",
        "How little the last guesses gain: a tree is large enough where a guess gains less than its row costs.",
        "table",
        guesses.suggested_tree,
    ),
    Metric(
        "by_source",
        "By source",
        "Guesses",
        "proposed, judged and accepted guesses by the kind of their source",
        "A source that proposes much and brings little costs rows.",
        "bars",
        guesses.by_source,
    ),
    Metric(
        "step_time",
        "Step time",
        "Time",
        "milliseconds of a step behind the first one, and of its phases",
        "The target's pass should be most of it.",
        "bars",
        times.step_time,
    ),
    Metric(
        "throughput",
        "Tokens a second",
        "Time",
        "tokens / seconds of the steps behind the first; Spec-Bench: mean over questions of all tokens / all seconds",
        "Compare only numbers measured on the same machine in the same way.",
        "table",
        times.throughput,
    ),
    Metric(
        "latency",
        "Latency",
        "Time",
        "percentiles; all tokens of a step arrive together: the first after the step's time, the others after none",
        "Guessing makes the gaps longer and fewer: the median gap between tokens may be 0.",
        "table",
        times.latency,
    ),
    Metric(
        "step_cost",
        "Step cost",
        "Time",
        "milliseconds of a step / milliseconds of an autoregressive step of the same folder",
        "Guessing pays where a step writes more tokens than it costs steps.",
        "bars",
        cost.step_cost,
    ),
    Metric(
        "experts",
        "Experts by rows",
        "Time",
        "different experts of a layer that a pass reads, by its rows; steps behind the first one, mean over the layers",
        "Rising with the rows: a tree makes the pass read more weights, which costs more than its arithmetic.",
        "bars",
        experts.experts,
    ),
    Metric(
        "speedup",
        "Expected and measured speed-up",
        "Time",
        "tokens per step / (1 + draft + verification + time outside of passes), each in autoregressive steps",
        "The largest fall from one row to the next is what to mend.",
        "bars",
        cost.speedup,
    ),
    Metric(
        "best_gamma",
        "Best draft length",
        "Time",
        "(1 + a + ... + a^gamma) / (1 + c gamma): a = accepted / judged guesses, c = a guess's part of the step cost",
        "A flat top means that the length hardly matters.",
        "lines",
        cost.best_gamma,
    ),
)
