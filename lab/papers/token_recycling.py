"""Token Recycling: Luo et al., 2024, arXiv 2408.08696."""

from __future__ import annotations

from .claims import Claim, Judgement, Paper, combine, more
from .experiment import Experiment, compare_by_kind, compare_tokens, using
from .tables import ResultTable, UnmeasuredError

# Kinds whose answers copy from their prompts, by the names that pocket, our English prompts and Spec-Bench give them.
COPYING = ("summary", "summarization", "rag", "retrieval", "rewrite", "correction")
_OURS, _COPIES = "Token Recycling", "prompt lookup"
_COLD, _WARM = "empty for every answer", "kept from answer to answer"


def _without_match(experiment: Experiment) -> ResultTable:
    if set(experiment.kinds) <= {*COPYING}:
        raise UnmeasuredError("all questions are of kinds whose answers copy from the prompt")
    settings = {_OURS: using("token_recycling", alone=True, warm_start="across"), _COPIES: using("prompt_lookup")}
    return compare_by_kind(experiment, "method", settings)


def judge_without_match(table: ResultTable) -> Judgement:
    """Judge whether it writes more than prompt lookup on every kind whose answers do not copy."""
    kinds = [head for head in table.heads[2:] if head not in COPYING]
    return combine(
        *(more(f"on {kind} it", table.number(_OURS, kind), _COPIES, table.number(_COPIES, kind)) for kind in kinds)
    )


def _starts(experiment: Experiment) -> ResultTable:
    settings = {_COLD: using("token_recycling"), _WARM: using("token_recycling", alone=True, warm_start="across")}
    return compare_tokens(experiment, "table", settings)


def judge_starts(table: ResultTable) -> Judgement:
    """Judge whether a table that stays gives more."""
    cold, warm = table.column("tokens/step")
    return combine(more(f"a table {_WARM}", warm, f"one {_COLD}", cold))


PAPER = Paper(
    "token_recycling",
    "Token Recycling",
    "Luo et al. 2024, arXiv 2408.08696",
    (
        Claim(
            place="main results",
            title="it guesses where nothing matches",
            finding="Rows of likely tokens guess in every step, prompt lookup only where the text's ending occurred "
            "before: where answers do not copy from their prompts, recycling gives more.",
            measured="Token Recycling with the paper's tree and a table kept from answer to answer, and prompt lookup, "
            "by kind.",
            rule="On every kind whose answers do not copy, Token Recycling gives more tokens per step.",
            take=_without_match,
            judge=judge_without_match,
        ),
        Claim(
            place="hot start",
            title="what earlier answers left is of use",
            finding="The table is kept from one text to the next, so that guessing need not begin anew.",
            measured="Token Recycling with the paper's tree, its table emptied before every answer or not.",
            rule="The kept table gives more tokens per step.",
            take=_starts,
            judge=judge_starts,
        ),
    ),
)
