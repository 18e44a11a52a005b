"""What a step's record holds beyond its outcome, as detailed as the run asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from .sampling import ranked
from .types import JSON, Draft, Verdict

LEVELS = ("off", "light", "full")
_TOP = 5  # alternatives kept per node with record="full"


def columns(draft: Draft, verdict: Verdict, panel: Mapping[str, JSON]) -> dict[str, Any]:
    """The node columns of a light record."""
    return {
        "tokens": draft.tokens,
        "parents": draft.parents,
        "roles": draft.roles,
        "sources": draft.sources,
        "path": verdict.path,
        "choices": verdict.argmax,
        "panel": panel,
    }


def detail(draft: Draft, probabilities: torch.Tensor) -> dict[str, Any]:  # (T, V)
    """The columns that a full record adds: p and q of every guess, and the target's best tokens at every node."""
    parents, tokens = list(draft.parents[1:]), list(draft.tokens[1:])
    p = probabilities[parents, tokens].tolist() if parents else []
    q = draft.q or (None,) * len(draft.tokens)
    best = ranked(probabilities, _TOP)
    return {
        "p": (None, *(round(value, 6) for value in p)),
        "q": tuple(None if row is None else round(float(row[draft.tokens[i]]), 6) for i, row in enumerate(q)),
        "top": tuple(
            tuple((token, round(value, 6)) for token, value in zip(ids, values, strict=True))
            for ids, values in zip(best.tolist(), probabilities.gather(-1, best).tolist(), strict=True)
        ),
    }
