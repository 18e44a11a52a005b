"""SuffixDecoding: Oliaro et al., 2024, arXiv 2411.04975."""

from __future__ import annotations

from .claims import Claim, Judgement, Paper, combine, more, rises
from .experiment import TOKENS, Experiment, compare_tokens, using
from .tables import ResultTable, UnmeasuredError

_TIMES = (1, 2, 4)
_LOCAL, _GLOBAL, _BOTH = "this text", "earlier answers", "both"


def _orders(questions: int) -> dict[str, list[int]]:
    """Make rows of as many answers each: to all questions once, to half of them twice, ..."""
    return {str(times): [number // times * times for number in range(questions)] for times in _TIMES}


def _repetition(experiment: Experiment) -> ResultTable:
    if len(experiment.questions) < _TIMES[1]:
        raise UnmeasuredError("there is only one question")
    orders = _orders(len(experiment.questions))
    settings = {times: using("suffix", alone=True, order=order) for times, order in orders.items()}
    return compare_tokens(experiment, "times asked", settings)


def judge_repetition(table: ResultTable) -> Judgement:
    """Judge whether the more of the answers were written before, the more is guessed right."""
    return combine(rises(f"a step, with each question {', '.join(table.names)} times,", table.column(TOKENS)))


def _trees(experiment: Experiment) -> ResultTable:
    settings = {
        _LOCAL: using("suffix", look_in="local"),
        _GLOBAL: using("suffix", alone=True, look_in="global"),
        _BOTH: using("suffix", alone=True),
    }
    return compare_tokens(experiment, "suffix trees", settings)


def judge_trees(table: ResultTable) -> Judgement:
    """Judge whether both trees give more than either."""
    value = {name: table.number(name, TOKENS) for name in table.names}
    return combine(
        *(more("the better of both trees", value[_BOTH], f"{name} alone", value[name]) for name in (_LOCAL, _GLOBAL))
    )


PAPER = Paper(
    "suffix",
    "SuffixDecoding",
    "Oliaro et al. 2024, arXiv 2411.04975",
    (
        Claim(
            place="agentic workloads",
            title="it grows with repetition",
            finding="The more often the same is asked for, as by agents, the longer are the guesses that come true.",
            measured=f"SuffixDecoding on as many answers each time: all questions once, or fewer of them {_TIMES[1]} "
            f"and {_TIMES[2]} times in a row.",
            rule="Tokens per step rise with how often each question is asked.",
            take=_repetition,
            judge=judge_repetition,
        ),
        Claim(
            place="ablation of the trees",
            title="both trees together are best",
            finding="A tree over this text and one over earlier answers find different repetitions.",
            measured="SuffixDecoding with either tree and with both.",
            rule="Both trees give more tokens per step than each alone.",
            take=_trees,
            judge=judge_trees,
        ),
    ),
)
