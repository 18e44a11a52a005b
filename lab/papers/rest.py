"""REST: He et al., 2023, arXiv 2311.08252."""

from __future__ import annotations

from .claims import Claim, Judgement, Paper, Statement, combine, is_more, more, rises
from .experiment import TOKENS, Experiment, compare_by_kind, compare_tokens, using
from .lookahead import CODE
from .tables import ResultTable, UnmeasuredError

_LONGEST = (1, 2, 4, 8, 16)
_CHAT = ("chat", "mt_bench", "conversation")


def _stores(experiment: Experiment) -> ResultTable:
    stores = {name: variant for name, variant in experiment.variants.items() if variant.part == "datastore"}
    if not stores:
        raise UnmeasuredError("stores of several sizes are made of the text that comes with pocket only")
    return compare_tokens(experiment, "datastore", {name: using("rest", variant=name) for name in stores})


def judge_stores(table: ResultTable) -> Judgement:
    """Judge whether a larger store gives more."""
    return combine(rises("the store growing,", table.column(TOKENS)))


def _suffixes(experiment: Experiment) -> ResultTable:
    return compare_tokens(experiment, "n_max", {str(n): using("rest", longest=n, shortest=1) for n in _LONGEST})


def judge_suffixes(table: ResultTable) -> Judgement:
    """Judge whether longer suffixes give more at first, and nothing in the end."""
    tokens = table.column(TOKENS)
    before, last = tokens[-2:]
    level = not is_more(before, last) and not is_more(last, before)
    return combine(
        rises(f"n_max {', '.join(table.names[:3])}", tokens[:3]),
        Statement(f"from {table.names[-2]} to {table.names[-1]} it goes from {before:.3f} to {last:.3f}", level),
    )


def _kinds(experiment: Experiment) -> ResultTable:
    experiment.find_kind(*CODE)
    experiment.find_kind(*_CHAT)
    return compare_by_kind(experiment, "method", {"REST": using("rest")})


def judge_kinds(table: ResultTable) -> Judgement:
    """Judge whether code gains more than chat."""
    code, chat = (next(name for name in names if name in table.heads) for names in (CODE, _CHAT))
    return combine(more("code", table.number("REST", code), "chat", table.number("REST", chat)))


PAPER = Paper(
    "rest",
    "REST",
    "He et al. 2023, arXiv 2311.08252",
    (
        Claim(
            place="ablation of the datastore",
            title="a larger datastore gives more",
            finding="The mean generated length grows with the size of the datastore.",
            measured="REST on a sixteenth, a quarter and all of pocket's text for retrieval.",
            rule="Tokens per step rise with the store.",
            take=_stores,
            judge=judge_stores,
        ),
        Claim(
            place="ablation of n_max",
            title="a longer suffix helps at first",
            finding=(
                "Looking for a longer end of the text gives better guesses at first, and no more from a few tokens on."
            ),
            measured=f"REST with n_max {', '.join(map(str, _LONGEST))} and n_min 1.",
            rule=f"Tokens per step rise up to n_max {_LONGEST[2]}, and neither of the last two gives more than the "
            "other.",
            take=_suffixes,
            judge=judge_suffixes,
        ),
        Claim(
            place="Table 1 of N-Grammys",
            title="code is retrieved better than chat",
            finding="Code gains more from retrieval than chat does: 2.12 against 1.69 times the speed.",
            measured="REST, by kind of question.",
            rule="Code gives more tokens per step than chat.",
            take=_kinds,
            judge=judge_kinds,
        ),
    ),
)
