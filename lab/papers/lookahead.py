"""Lookahead decoding: Fu et al., 2024, arXiv 2402.02057."""

from __future__ import annotations

from collections.abc import Callable
from math import log2

from .claims import ROUGH, Claim, Judgement, Paper, Statement, beats, combine, more, rises
from .experiment import MEAN, TOKENS, Experiment, Setting, compare_by_kind, compare_tokens, using
from .scaling import Fit, ScalingPoint, compression, fit, fit_line
from .tables import ResultTable

BALANCED = using("lookahead", N=5, W=15, G=15)
CODE = ("code", "coding")  # what the embedded family and the toy call it

_LOOKUP, _SMALL, _MANY = "prompt lookup", "(10, 1, 3) with prompt", "(5, 1, 10) with prompt"
_THIRTY, _THIRTY_TOO, _WIDE = "(5, 1, 30)", "(5, 1, 30) with prompt", "(5, 30, 1)"
_EVEN, _EVEN_TOO = "(5, 15, 15)", "(5, 15, 15) with prompt"
TABLE_3: dict[str, Setting] = {  # N, W, G; "with prompt" pools the text
    _LOOKUP: using("prompt_lookup", max_ngram=2, min_ngram=1, K=10, tie="earliest", tail="short", stop_at_end=True),
    _SMALL: using("lookahead", N=10, W=1, G=3, prompt_as_reference=True),
    _MANY: using("lookahead", N=5, W=1, G=10, prompt_as_reference=True),
    _THIRTY: using("lookahead", N=5, W=1, G=30),
    _THIRTY_TOO: using("lookahead", N=5, W=1, G=30, prompt_as_reference=True),
    _WIDE: using("lookahead", N=5, W=30, G=1),
    _EVEN: BALANCED,
    _EVEN_TOO: using("lookahead", N=5, W=15, G=15, prompt_as_reference=True),
}
_THEIRS = "S in the paper"
_FOUND_3 = dict(zip(TABLE_3, (1.55, 1.45, 1.51, 1.12, 1.59, 1.79, 1.96, 2.05), strict=True))
_GREEDY, _SAMPLED = "greedy", "temperature 1"
_FOUND_2 = {_GREEDY: 1.72, _SAMPLED: 1.64}  # on CNN/Daily Mail
_SIZES, _WIDTHS = (3, 5, 7), (1, 2, 4, 8, 16, 32)  # N, and W = G = b
_STRAIGHT, _CLOSE = 0.95, 0.9  # shares of the variance that a line and the paper's law must explain
_FITTED = "equation 7"


def _table_3(*names: str) -> Callable[[Experiment], ResultTable]:
    return lambda experiment: compare_tokens(experiment, "N, W, G", {name: TABLE_3[name] for name in names}).beside(
        _THEIRS, _FOUND_3
    )


def judge_first(table: ResultTable) -> Judgement:
    """Judge whether the first setting gives more tokens per step than each of the others."""
    return beats(table, TOKENS)


def judge_prompt(table: ResultTable) -> Judgement:
    """Judge whether pooling the prompt gives more, with a window and without."""
    pairs = ((_EVEN_TOO, _EVEN), (_THIRTY_TOO, _THIRTY))
    return combine(*(more(rich, table.number(rich, TOKENS), bare, table.number(bare, TOKENS)) for rich, bare in pairs))


def _figure_4(experiment: Experiment) -> ResultTable:
    cells = [(N, b) for N in _SIZES for b in _WIDTHS]
    tallies = experiment.tally(*(using("lookahead", N=N, W=b, G=b) for N, b in cells))
    points = [ScalingPoint(N - 1, b, tally.per_step()) for (N, b), tally in zip(cells, tallies, strict=True)]
    fitted = fit(points)
    rows = tuple(
        (f"N={point.gamma + 1}, b={point.b}", point.gamma, point.b, point.S, _fitted(fitted, point)) for point in points
    )
    facts = {} if fitted is None else {"alpha": fitted.alpha, "f": fitted.f, "explained": fitted.explained}
    return ResultTable(("setting", "gamma", "b", TOKENS, _FITTED), rows, facts)


def _fitted(fit: Fit | None, point: ScalingPoint) -> float:
    return 1.0 if fit is None else compression(fit.alpha, fit.f, point.gamma, point.b)


def _points(table: ResultTable) -> list[ScalingPoint]:
    columns = (table.column(head) for head in ("gamma", "b", TOKENS))
    return [ScalingPoint(int(gamma), int(b), S) for gamma, b, S in zip(*columns, strict=True)]


def judge_logarithm(table: ResultTable) -> Judgement:
    """Judge whether S follows a straight line over log b for the largest gamma, and is largest where both are."""
    points = _points(table)
    deepest, widest = max(point.gamma for point in points), max(point.b for point in points)
    deep = sorted((point for point in points if point.gamma == deepest), key=lambda point: point.b)
    drawn = fit_line([log2(point.b) for point in deep], [point.S for point in deep])
    S = {(point.gamma, point.b): point.S for point in points}
    straight = Statement(
        f"a straight line over log b, {drawn.slope:+.3f} per doubling, explains {drawn.explained:.1%} of the variance",
        drawn.explained >= _STRAIGHT and drawn.slope > 0,
    )
    lesser = max(S[min(point.gamma for point in points), widest], S[deepest, min(point.b for point in points)])
    return combine(
        rises(f"gamma {deepest} with b doubled in turn", [point.S for point in deep]),
        straight,
        more("the largest gamma with the largest b", S[deepest, widest], "the better of each alone", lesser),
    )


def judge_scaling(table: ResultTable) -> Judgement:
    """Judge whether Equation 7 explains nearly all of the measured S."""
    facts = table.facts
    if not facts:
        return combine(Statement("no setting gives more than 1 token per step, so there is nothing to fit", False))
    says = (
        f"alpha {facts['alpha']:.3f} and f {facts['f']:.3f} fit best and explain {facts['explained']:.1%} of the "
        "variance, where the paper draws its curve with 0.425 and 3.106"
    )
    return combine(Statement(says, facts["explained"] >= _CLOSE))


def _sampled(experiment: Experiment) -> ResultTable:
    sampled = using("lookahead", temperature=1.0, N=5, W=15, G=15)
    return compare_tokens(experiment, "sampling", {_GREEDY: BALANCED, _SAMPLED: sampled}).beside(_THEIRS, _FOUND_2)


def judge_sampled(table: ResultTable) -> Judgement:
    """Judge whether sampling still saves steps, but fewer."""
    greedy, sampled = table.number(_GREEDY, TOKENS), table.number(_SAMPLED, TOKENS)
    return combine(
        more("sampling", sampled, "autoregressive decoding", 1.0, ROUGH),
        more("greedy decoding", greedy, "sampling", sampled, ROUGH),
    )


def _kinds(experiment: Experiment) -> ResultTable:
    experiment.find_kind(*CODE)
    return compare_by_kind(experiment, "setting", {_EVEN: BALANCED})


def judge_kinds(table: ResultTable) -> Judgement:
    """Judge whether code gains the most."""
    kinds = {head: table.number(_EVEN, head) for head in table.heads[1:] if head != MEAN}
    code = next(kinds.pop(name) for name in CODE if name in kinds)
    if not kinds:
        return combine(Statement("there is no other kind to compare code with", False))
    best, mean = max(kinds, key=lambda kind: kinds[kind]), sum(kinds.values()) / len(kinds)
    return combine(
        more("code", code, "the other kinds' mean", mean), more("code", code, f"the best of them, {best}", kinds[best])
    )


_IN_TABLE_3 = 'Lookahead with the paper\'s N, W and G; "with prompt" pools n-grams of prompt and output as well'
_SCALE = f"Lookahead with N {', '.join(map(str, _SIZES))} (gamma is N - 1) and W = G = b from 1 to {max(_WIDTHS)}."

PAPER = Paper(
    "lookahead",
    "Lookahead decoding",
    "Fu et al. 2024, arXiv 2402.02057",
    (
        Claim(
            place="Table 3",
            title="balanced branches beat tiny ones",
            finding="Window and guesses of equal size save more steps than a window of one column, even one that the "
            "prompt helps, and than a single guess.",
            measured=f"{_IN_TABLE_3}.",
            rule=f"{_EVEN} gives more tokens per step than each of the others.",
            take=_table_3(_EVEN, _WIDE, _THIRTY, _SMALL, _MANY, _THIRTY_TOO),
            judge=judge_first,
        ),
        Claim(
            place="Table 3",
            title="the prompt as reference adds",
            finding="Pooling the prompt's n-grams saves further steps, with a large window and with a tiny one.",
            measured=f"{_IN_TABLE_3}.",
            rule="Both settings give more tokens per step with the prompt than without.",
            take=_table_3(_EVEN, _EVEN_TOO, _THIRTY, _THIRTY_TOO),
            judge=judge_prompt,
        ),
        Claim(
            place="Table 3",
            title="prompt lookup uses the prompt better",
            finding="Prompt lookup, which matches more than one token, surpasses a tiny window with the prompt as "
            "reference; in the paper's table it does at 3 and at 10 guesses, and not at 30.",
            measured=f"{_IN_TABLE_3}; prompt lookup as in transformers.",
            rule="Prompt lookup gives more tokens per step than both.",
            take=_table_3(_LOOKUP, _SMALL, _MANY),
            judge=judge_first,
        ),
        Claim(
            place="Figure 4, section 4.2",
            title="steps fall with the logarithm of what is spent",
            finding="Given a large enough gamma, S grows linearly with log b, and growing gamma and b together meets "
            "no bound.",
            measured=_SCALE,
            rule=f"For the largest gamma S rises with b, a straight line over log b explains {_STRAIGHT:.0%} of its "
            "variance, and the largest gamma with the largest b gives more than either with the other's smallest.",
            take=_figure_4,
            judge=judge_logarithm,
        ),
        Claim(
            place="Equations 4 to 7",
            title="one alpha and one f explain all of it",
            finding="The measured trend follows S = (f - 1 + E) / f, with E the expected tokens of b guesses of gamma "
            "tokens, each token accepted with the chance alpha.",
            measured=f"{_SCALE} Alpha and f by least squares over all settings.",
            rule=f"The fit explains {_CLOSE:.0%} of the variance of S.",
            take=_figure_4,
            judge=judge_scaling,
        ),
        Claim(
            place="Table 2",
            title="sampling saves fewer steps",
            finding="At temperature 1 Lookahead still saves steps, but fewer than greedily.",
            measured=f"{_EVEN}, greedily and at temperature 1.",
            rule="Temperature 1 gives more than 1 token per step and less than greedy decoding.",
            take=_sampled,
            judge=judge_sampled,
        ),
        Claim(
            place="Figure 5",
            title="code gains most",
            finding="Code repeats itself more than other texts, so Lookahead does best on it.",
            measured=f"{_EVEN}, by kind of question.",
            rule="Code gives more tokens per step than the mean of the other kinds, and than each of them.",
            take=_kinds,
            judge=judge_kinds,
        ),
    ),
)
