"""Speculative decoding: Leviathan et al., 2023, arXiv 2211.17192; its equation is number 4 of the Lookahead paper."""

from __future__ import annotations

from decoding.trace.metrics import expected_tokens

from .claims import ROUGH, Claim, Judgement, Paper, Statement, combine, more, rises
from .distributions import measure_overlap
from .experiment import TOKENS, Experiment, using
from .scaling import expected_steps
from .tables import ResultTable

_GAMMAS = range(1, 9)
_DOUBLED = (1, 2, 4, 8)  # far enough apart for sampled texts to show
_NEAR = 0.1  # how far off an equation may be
_EQUATION, _OWN = "equation 4", "by own chances"
_USUAL = 5  # gamma where only the temperature differs


def _expected(experiment: Experiment) -> ResultTable:
    met = measure_overlap(experiment, 1.0)
    tallies = experiment.tally(*(using("draft_model", temperature=1.0, gamma=gamma) for gamma in _GAMMAS))
    tokens = sum(map(len, met.chances))
    rows = []
    for gamma, tally in zip(_GAMMAS, tallies, strict=True):
        steps = sum(expected_steps(chances, gamma) for chances in met.chances)
        rows.append((f"{gamma}", tally.per_step(), expected_tokens(gamma, met.alpha), tokens / steps, tally.acceptance))
    facts = {"alpha": met.alpha, "correlation of neighbours": met.correlation}
    return ResultTable(("gamma", TOKENS, _EQUATION, _OWN, "acceptance"), tuple(rows), facts)


def judge_expected(table: ResultTable) -> Judgement:
    """Judge whether tokens per step grow with gamma, and as the equation says."""
    measured = table.column(TOKENS)
    off = [guess / real - 1 for guess, real in zip(table.column(_EQUATION), measured, strict=True)]
    errors = [guess / real - 1 for guess, real in zip(table.column(_OWN), measured, strict=True)]
    worst, counted = max(off, key=abs), max(map(abs, errors))
    alpha, neighbours = table.facts["alpha"], table.facts["correlation of neighbours"]
    near = Statement(
        f"equation 4 with the measured alpha of {alpha:.3f} is off by {worst:+.1%} where it is off most",
        abs(worst) <= _NEAR,
    )
    why = (
        f"the equation takes guesses for independent and texts for endless; the chances of neighbouring guesses "
        f"correlate by {neighbours:+.2f}, and counted guess by guess to each text's end the prediction is off by "
        f"{counted:.1%} at most"
    )
    return combine(
        rises("gamma doubled in turn", [table.number(str(gamma), TOKENS) for gamma in _DOUBLED], ROUGH),
        near,
        remark=why,
    )


def _temperatures(experiment: Experiment) -> ResultTable:
    settings = [using("draft_model", temperature=temperature, gamma=_USUAL) for temperature in (0.0, 1.0)]
    rows = [
        (name, measure_overlap(experiment, setting.temperature).alpha, tally.per_step(), tally.acceptance)
        for name, setting, tally in zip(("greedy", "temperature 1"), settings, experiment.tally(*settings), strict=True)
    ]
    return ResultTable(("sampling", "alpha", TOKENS, "acceptance"), tuple(rows))


def judge_temperatures(table: ResultTable) -> Judgement:
    """Judge whether both alpha and tokens per step are lower at temperature 1."""
    (alpha, less), (greedy, sampled) = table.column("alpha"), table.column(TOKENS)
    return combine(
        more("alpha of greedy decoding", alpha, "sampling at temperature 1", less, ROUGH),
        more("a step of greedy decoding", greedy, "sampling", sampled, ROUGH),
    )


PAPER = Paper(
    "speculative",
    "Speculative decoding",
    "Leviathan et al. 2023, arXiv 2211.17192",
    (
        Claim(
            place="Equation 1, and equation 4 of Lookahead",
            title="the expected tokens of a step",
            finding="A drafter whose guesses are accepted with the chance alpha, gamma guesses a step, writes "
            "(1 - alpha^(gamma+1)) / (1 - alpha) tokens per step.",
            measured="Draft model at temperature 1, gamma 1 to 8. Alpha is exact: the mean of sum min(p, q) over both "
            "models' distributions in front of every token that the target itself writes. The last prediction gives "
            "every guess the chance of its own position in these texts.",
            rule=f"Tokens per step rise as gamma doubles, and equation 4 is nowhere off by more than {_NEAR:.0%}.",
            take=_expected,
            judge=judge_expected,
        ),
        Claim(
            place="Table 2",
            title="sampling lowers acceptance",
            finding="Drafts are accepted more often when both models decode greedily than at temperature 1.",
            measured=f"Draft model with gamma {_USUAL}, greedily and at temperature 1; alpha as above, which greedily "
            "is how often the likeliest tokens agree.",
            rule="Alpha and tokens per step are both lower at temperature 1.",
            take=_temperatures,
            judge=judge_temperatures,
        ),
    ),
)
