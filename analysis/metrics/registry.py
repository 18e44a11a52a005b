"""The list of all metrics: command line, page and tutorial show the same ones, in this order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from . import acceptance, cost, drafter, experts, groups, guesses, times
from .result import MetricResult, UnknownError, unknown
from .selection import Selection


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: its name, its computation, and how to read it."""

    key: str
    title: str
    group: str  # its heading
    formula: str  # for a tooltip
    look_for: str
    chart: str  # how its rows are drawn: "number", "bars", "lines", "heat" or "table"; x is the first column
    function: Callable[[Selection], MetricResult]

    def measure(self, selection: Selection) -> MetricResult:
        """Compute it; where the record lacks what it needs, the result has the reason."""
        whole = selection.steps.columns.reasons
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what is not finite becomes null
                return self.function(selection)
        except UnknownError as lacking:
            return unknown(whole.get(self.key, str(lacking)))


def measure(key: str, selection: Selection) -> MetricResult:
    """Compute a metric; where the record lacks what it needs, the result has the reason."""
    return METRICS[key].measure(selection)


def _listed(*metrics: Metric) -> dict[str, Metric]:
    return {metric.key: metric for metric in metrics}


METRICS = _listed(
    Metric(
        key="mean_acceptance_length",
        title="Mean acceptance length",
        group="Acceptance",
        formula="tokens written / steps, including the target's own token; vLLM: 1 + accepted / steps with guesses",
        look_for="1 is decoding one token at a time. The interval is over questions: differences within it are noise.",
        chart="number",
        function=acceptance.mean_acceptance_length,
    ),
    Metric(
        key="draft_acceptance_rate",
        title="Draft acceptance rate",
        group="Acceptance",
        formula="accepted guesses / drafted guesses",
        look_for="It falls as drafts get longer, even where longer ones are faster: compare drafts of the same length.",
        chart="number",
        function=acceptance.draft_acceptance_rate,
    ),
    Metric(
        key="survival",
        title="Survival by position",
        group="Acceptance",
        formula="steps that accepted at least i guesses / steps with guesses (vLLM's per-position acceptance rate)",
        look_for="A sharp drop at one position usually means a wiring bug, not too little training.",
        chart="lines",
        function=acceptance.survival,
    ),
    Metric(
        key="conditional_acceptance",
        title="Conditional acceptance by position",
        group="Acceptance",
        formula="steps that accepted at least i guesses / steps that accepted i - 1 and had one more guess",
        look_for=(
            "Flat: each guess is as good as the first. Falling: the drafter degrades as it conditions on its own "
            "guesses."
        ),
        chart="lines",
        function=acceptance.conditional_acceptance,
    ),
    Metric(
        key="ctar",
        title="CTAR(w)",
        group="Acceptance",
        formula="steps that wrote more than w tokens / steps (Kangaroo, equation 2)",
        look_for="The probability that w guesses in a row are accepted.",
        chart="lines",
        function=acceptance.consistent_token_acceptance,
    ),
    Metric(
        key="acceptance_histogram",
        title="Acceptance histogram",
        group="Acceptance",
        formula="steps with guesses that accepted exactly j of them",
        look_for="Two peaks, at none and at all, mean that the best draft length differs from step to step.",
        chart="bars",
        function=acceptance.acceptance_histogram,
    ),
    Metric(
        key="histogram_by_draft_length",
        title="Acceptance by draft length",
        group="Acceptance",
        formula="steps with k guesses that accepted exactly j of them",
        look_for="If long drafts are never accepted in full, they are too long.",
        chart="heat",
        function=acceptance.histogram_by_draft_length,
    ),
    Metric(
        key="fed_per_token",
        title="Rows per token",
        group="Acceptance",
        formula="rows that the target read / tokens written, without the first step",
        look_for="How much more the target computes because of guesses: 1 is decoding one token at a time.",
        chart="number",
        function=acceptance.fed_per_token,
    ),
    Metric(
        key="by_category",
        title="By category",
        group="Where",
        formula="tokens written / steps, over the questions of a category",
        look_for="A drafter is weakest on kinds of text that it was not trained on.",
        chart="bars",
        function=groups.by_category,
    ),
    Metric(
        key="by_context",
        title="By context length",
        group="Where",
        formula="tokens written / steps, by the length of the text before the step",
        look_for=(
            "A drop at one length: the drafter's window or rotary embedding ends there, and the target's does not."
        ),
        chart="bars",
        function=groups.by_context,
    ),
    Metric(
        key="by_entropy",
        title="By the target's entropy",
        group="Where",
        formula="tokens written / steps, by the entropy of the target's distribution at the root, in nats",
        look_for="Near 0 the target is certain. If guesses are rejected even there, the drafter is at fault.",
        chart="bars",
        function=groups.by_entropy,
    ),
    Metric(
        key="reliability",
        title="Reliability diagram",
        group="Drafter",
        formula="accepted / judged guesses by the drafter's confidence; ECE: weighted mean |confidence - accepted|",
        look_for="On the diagonal, a confidence threshold stops drafting at the right moment. Below it: overconfident.",
        chart="lines",
        function=drafter.reliability,
    ),
    Metric(
        key="rank_histogram",
        title="Rank of the target's choice",
        group="Drafter",
        formula=(
            "positions where the target's choice was the drafter's r-th likeliest / positions that the target decided"
        ),
        look_for="If the target's choice is often ranked 1 to 3 (0 is the drafter's first), a tree pays off. If it "
        "is often "
        "unranked, the drafter does not know this kind of text.",
        chart="bars",
        function=drafter.rank_histogram,
    ),
    Metric(
        key="p_against_q",
        title="p against q",
        group="Drafter",
        formula="judged guesses by the drafter's probability q and the target's p",
        look_for="At high q and low p the drafter is confident and wrong.",
        chart="heat",
        function=drafter.p_against_q,
    ),
    Metric(
        key="alpha",
        title="Alpha",
        group="Drafter",
        formula="mean over positions of the sum over all tokens of min(p, q)",
        look_for=(
            "The highest acceptance that sampling from q allows. If fewer are accepted, guesses were not drawn from q."
        ),
        chart="lines",
        function=drafter.alpha,
    ),
    Metric(
        key="confusion",
        title="Drafted token, target's token",
        group="Guesses",
        formula="positions where no guess was right, by the drafter's first guess and the token that the target chose",
        look_for="Spaces, line ends and special tokens at the top: tokenizer or chat template differ.",
        chart="table",
        function=guesses.confusion,
    ),
    Metric(
        key="lost_because",
        title="Why steps ended",
        group="Guesses",
        formula=(
            "steps by the drafter's rank of the token that the target chose where no guess was right: cut by the "
            "tree = the rank is below the most guesses that the run has for one position; ranked lower = it is not; "
            "draft ended = all guesses were right"
        ),
        look_for=(
            "Ranked lower: a better drafter. Cut by the tree: a tree of another shape. Not in the vocabulary: a larger "
            "draft vocabulary. Draft ended: longer drafts."
        ),
        chart="bars",
        function=guesses.lost_because,
    ),
    Metric(
        key="hit_ranks",
        title="Hits by rank",
        group="Guesses",
        formula="accepted / judged guesses by depth and rank among the guesses for the same position",
        look_for="A rank that is never accepted costs the target rows for nothing.",
        chart="heat",
        function=guesses.hit_ranks,
    ),
    Metric(
        key="suggested_tree",
        title="Suggested tree",
        group="Guesses",
        formula="the tree of n guesses with the most expected tokens: 1 + the sum over its nodes of accuracy products",
        look_for="The tree is large enough once another guess gains less than its row costs.",
        chart="table",
        function=guesses.suggested_tree,
    ),
    Metric(
        key="by_source",
        title="By source",
        group="Guesses",
        formula="proposed, judged and accepted guesses, by kind of source",
        look_for="A source with many guesses and few accepted ones wastes rows.",
        chart="bars",
        function=guesses.by_source,
    ),
    Metric(
        key="step_time",
        title="Step time",
        group="Time",
        formula="milliseconds of a step after the first, in total and by phase",
        look_for="Most of the time should be the target's pass.",
        chart="bars",
        function=times.step_time,
    ),
    Metric(
        key="throughput",
        title="Tokens per second",
        group="Time",
        formula=(
            "tokens / seconds after the first step; vLLM: of whole runs, the reading of the prompt included; "
            "Spec-Bench: mean over questions of all tokens / all seconds"
        ),
        look_for="Compare only numbers measured on the same machine in the same way.",
        chart="table",
        function=times.throughput,
    ),
    Metric(
        key="latency",
        title="Latency",
        group="Time",
        formula="percentiles; the tokens of a step arrive together, so all but the first have a gap of 0",
        look_for="With guesses there are fewer and longer gaps, so the median gap may be 0.",
        chart="table",
        function=times.latency,
    ),
    Metric(
        key="step_cost",
        title="Step cost",
        group="Time",
        formula="milliseconds of a step / milliseconds of an autoregressive step of the same run folder",
        look_for="Guessing pays if a step writes more tokens than the autoregressive steps it costs.",
        chart="bars",
        function=cost.step_cost,
    ),
    Metric(
        key="experts",
        title="Experts by rows",
        group="Time",
        formula=(
            "different experts that a pass reads per layer, by its rows; mean over layers and over steps after "
            "the first"
        ),
        look_for=(
            "If it rises with the rows, a larger tree makes the pass read more weights, which costs more than "
            "arithmetic."
        ),
        chart="bars",
        function=experts.experts,
    ),
    Metric(
        key="speedup",
        title="Expected and measured speed-up",
        group="Time",
        formula=(
            "tokens per step / (1 + drafting + verification + time outside passes), each in autoregressive steps; "
            "Spec-Bench also counts the reading of the prompt"
        ),
        look_for="Improve first what causes the largest drop from one row to the next.",
        chart="bars",
        function=cost.speedup,
    ),
    Metric(
        key="best_gamma",
        title="Best draft length",
        group="Time",
        formula=(
            "(1 + a + ... + a^gamma) / (1 + c gamma): a = accepted / judged guesses, c = the cost of a guess in steps"
        ),
        look_for="A flat maximum means that the length hardly matters.",
        chart="lines",
        function=cost.best_gamma,
    ),
)
