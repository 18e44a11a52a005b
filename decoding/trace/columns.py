"""The node columns of a step's record, at the level of detail that the run asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from ..sampling import ranked
from ..types import JSON, Draft, Verdict

LEVELS = ("off", "light", "full")
_TOP = 5  # alternatives recorded per node with record="full"


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
    """The columns that a full record adds: p and q of every guess, and the best tokens at every node."""
    parents, tokens = list(draft.parents[1:]), list(draft.tokens[1:])
    p = probabilities[parents, tokens].tolist() if parents else []
    q = draft.q or (None,) * len(draft.tokens)
    best = ranked(probabilities, _TOP)
    return {
        "p": (None, *(round(value, 6) for value in p)),
        "q": tuple(None if row is None else round(float(row[draft.tokens[i]]), 6) for i, row in enumerate(q)),
        "top": tuple(_rows(best, probabilities)),
        "draft_top": _draft_top(draft, probabilities),
    }


def _draft_top(draft: Draft, probabilities: torch.Tensor) -> tuple[tuple[tuple[int, float, float], ...], ...]:
    """The drafter's best tokens at every node whose children it sampled, without those of probability 0."""
    distributions = {draft.parents[node]: row for node, row in enumerate(draft.q or ()) if row is not None}
    if not distributions:
        return ()
    q = torch.stack([*distributions.values()])
    best = ranked(q, _TOP)
    rows = zip(distributions, _rows(best, q, probabilities[[*distributions]]), strict=True)
    known = {node: tuple(row for row in listed if row[1] > 0.0) for node, listed in rows}
    return tuple(known.get(node, ()) for node in range(len(draft.tokens)))


def _rows(best: torch.Tensor, *distributions: torch.Tensor) -> Iterator[tuple[Any, ...]]:  # (R, n), each (R, V)
    """Row by row the best tokens, each with its probability in every distribution."""
    shares = (each.gather(-1, best).tolist() for each in distributions)
    for ids, *values in zip(best.tolist(), *shares, strict=True):
        yield tuple((token, *(round(p, 6) for p in row)) for token, *row in zip(ids, *values, strict=True))
