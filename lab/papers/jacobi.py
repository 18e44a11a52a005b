"""Jacobi decoding, as the Lookahead paper judges it: Fu et al., 2024, arXiv 2402.02057, section 2."""

from __future__ import annotations

from .claims import Claim, Judgement, Paper, Statement, combine, more
from .experiment import TOKENS, Experiment, compare_tokens, using
from .lookahead import BALANCED
from .tables import ResultTable

_BLOCKS = (4, 8, 16, 32)
_LITTLE = 1.1  # tokens per step up to which "hardly" is the word
_LOOKAHEAD = "Lookahead"


def _take(experiment: Experiment) -> ResultTable:
    settings = {f"block of {n}": using("jacobi", n=n) for n in _BLOCKS}
    return compare_tokens(experiment, "setting", settings | {_LOOKAHEAD: BALANCED})


def judge(table: ResultTable) -> Judgement:
    """Judge whether no block gains much, and Lookahead gains far more."""
    blocks = {name: table.number(name, TOKENS) for name in table.names if name != _LOOKAHEAD}
    best = max(blocks, key=lambda name: blocks[name])
    return combine(
        Statement(f"the best of the blocks, the {best}, reaches {blocks[best]:.3f}", blocks[best] <= _LITTLE),
        more(_LOOKAHEAD, table.number(_LOOKAHEAD, TOKENS), "that block", blocks[best]),
    )


PAPER = Paper(
    "jacobi",
    "Jacobi decoding",
    "Song et al. 2021, arXiv 2002.03629; Santilli et al. 2023, arXiv 2305.10427",
    (
        Claim(
            place="Section 2 of Lookahead",
            title="it hardly saves steps",
            finding="Jacobi decoding hardly reduces the number of steps: right tokens come up at wrong positions, and "
            "those at the right ones are overwritten.",
            measured="Jacobi with blocks of 4 to 32 guesses, and Lookahead with W=15, N=5, G=15.",
            rule=f"No block gives more than {_LITTLE} tokens per step, and Lookahead gives more than the best of them.",
            take=_take,
            judge=judge,
        ),
    ),
)
