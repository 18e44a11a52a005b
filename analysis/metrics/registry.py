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
    group: str  # its heading
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
        "tokens written / steps, including the target's own token; vLLM: 1 + accepted / steps with guesses",
        "1 is decoding one token at a time. The interval is over questions: differences within it are noise.",
        "number",
        acceptance.mean_acceptance_length,
    ),
    Metric(
        "draft_acceptance_rate",
        "Draft acceptance rate",
        "Acceptance",
        "accepted guesses / drafted guesses",
        "It falls as drafts get longer, even where longer ones are faster: compare drafts of the same length.",
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
        "steps that accepted at least i guesses / steps that accepted i - 1 and had one more guess",
        "Flat: each guess is as good as the first. Falling: the drafter degrades as it conditions on its own guesses.",
        "lines",
        acceptance.conditional_acceptance,
    ),
    Metric(
        "ctar",
        "CTAR(w)",
        "Acceptance",
        "steps that wrote more than w tokens / steps (Kangaroo, equation 2)",
        "The probability that w guesses in a row are accepted.",
        "lines",
        acceptance.consistent_token_acceptance,
    ),
    Metric(
        "acceptance_histogram",
        "Acceptance histogram",
        "Acceptance",
        "steps with guesses that accepted exactly j of them",
        "Two peaks, at none and at all, mean that the best draft length differs from step to step.",
        "bars",
        acceptance.acceptance_histogram,
    ),
    Metric(
        "histogram_by_draft_length",
        "Acceptance by draft length",
        "Acceptance",
        "steps with k guesses that accepted exactly j of them",
        "If long drafts are never accepted in full, they are too long.",
        "heat",
        acceptance.histogram_by_draft_length,
    ),
    Metric(
        "fed_per_token",
        "Rows per token",
        "Acceptance",
        "rows that the target read / tokens written, without the first step",
        "How much more the target computes because of guesses: 1 is decoding one token at a time.",
        "number",
        acceptance.fed_per_token,
    ),
    Metric(
        "by_category",
        "By category",
        "Where",
        "tokens written / steps, over the questions of a category",
        "A drafter is weakest on kinds of text that it was not trained on.",
        "bars",
        groups.by_category,
    ),
    Metric(
        "by_context",
        "By context length",
        "Where",
        "tokens written / steps, by the length of the text before the step",
        "A drop at one length: the drafter's window or rotary embedding ends there, and the target's does not.",
        "bars",
        groups.by_context,
    ),
    Metric(
        "by_entropy",
        "By the target's entropy",
        "Where",
        "tokens written / steps, by the entropy of the target's distribution at the root, in nats",
        "Near 0 the target is certain. If guesses are rejected even there, the drafter is at fault.",
        "bars",
        groups.by_entropy,
    ),
    Metric(
        "reliability",
        "Reliability diagram",
        "Drafter",
        "accepted / judged guesses by the drafter's confidence; ECE: weighted mean |confidence - accepted|",
        "On the diagonal, a confidence threshold stops drafting at the right moment. Below it: overconfident.",
        "lines",
        drafter.reliability,
    ),
    Metric(
        "rank_histogram",
        "Rank of the target's choice",
        "Drafter",
        "positions where the target's choice was the drafter's r-th likeliest / positions that the target decided",
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
        "At high q and low p the drafter is confident and wrong.",
        "heat",
        drafter.p_against_q,
    ),
    Metric(
        "alpha",
        "Alpha",
        "Drafter",
        "mean over positions of the sum over all tokens of min(p, q)",
        "The highest acceptance that sampling from q allows. If it is lower, guesses were not drawn from this q.",
        "lines",
        drafter.alpha,
    ),
    Metric(
        "confusion",
        "Drafted token, target's token",
        "Guesses",
        "rejected guesses by their token and the token that the target chose instead",
        "Spaces, line ends and special tokens at the top: tokenizer or chat template differ.",
        "table",
        guesses.confusion,
    ),
    Metric(
        "hit_ranks",
        "Hits by rank",
        "Guesses",
        "accepted / judged guesses by depth and rank among the guesses for the same position",
        "A rank that is never accepted costs the target rows for nothing.",
        "heat",
        guesses.hit_ranks,
    ),
    Metric(
        "suggested_tree",
        "Suggested tree",
        "Guesses",
        "the tree of n guesses with the most expected tokens: 1 + the sum over its nodes of accuracy products",
        "The tree is large enough once another guess gains less than its row costs.",
        "table",
        guesses.suggested_tree,
    ),
    Metric(
        "by_source",
        "By source",
        "Guesses",
        "proposed, judged and accepted guesses, by kind of source",
        "A source with many guesses and few accepted ones wastes rows.",
        "bars",
        guesses.by_source,
    ),
    Metric(
        "step_time",
        "Step time",
        "Time",
        "milliseconds of a step after the first, in total and by phase",
        "Most of the time should be the target's pass.",
        "bars",
        times.step_time,
    ),
    Metric(
        "throughput",
        "Tokens per second",
        "Time",
        "tokens / seconds after the first step; Spec-Bench: mean over questions of all tokens / all seconds",
        "Compare only numbers measured on the same machine in the same way.",
        "table",
        times.throughput,
    ),
    Metric(
        "latency",
        "Latency",
        "Time",
        "percentiles; the tokens of a step arrive together, so all but the first have a gap of 0",
        "With guesses there are fewer and longer gaps, so the median gap may be 0.",
        "table",
        times.latency,
    ),
    Metric(
        "step_cost",
        "Step cost",
        "Time",
        "milliseconds of a step / milliseconds of an autoregressive step of the same run folder",
        "Guessing pays if a step writes more tokens than the autoregressive steps it costs.",
        "bars",
        cost.step_cost,
    ),
    Metric(
        "experts",
        "Experts by rows",
        "Time",
        "different experts that a pass reads per layer, by its rows; mean over layers and over steps after the first",
        "If it rises with the rows, a larger tree makes the pass read more weights, which costs more than arithmetic.",
        "bars",
        experts.experts,
    ),
    Metric(
        "speedup",
        "Expected and measured speed-up",
        "Time",
        "tokens per step / (1 + drafting + verification + time outside passes), each in autoregressive steps",
        "Improve first what causes the largest drop from one row to the next.",
        "bars",
        cost.speedup,
    ),
    Metric(
        "best_gamma",
        "Best draft length",
        "Time",
        "(1 + a + ... + a^gamma) / (1 + c gamma): a = accepted / judged guesses, c = the cost of a guess in steps",
        "A flat maximum means that the length hardly matters.",
        "lines",
        cost.best_gamma,
    ),
)
