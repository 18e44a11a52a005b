"""The node columns of a step's record, at the level of detail that the run asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from ..sampling import Outlook, ranked
from ..types import JSON, Draft, Verdict

LEVELS = ("off", "light", "full")


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


def detail(draft: Draft, outlook: Outlook) -> dict[str, Any]:
    """The columns that a full record adds: p and q of every guess, and how the distributions at every node look."""
    p = (
        outlook.at(torch.tensor(draft.parents[1:]), torch.tensor(draft.tokens[1:])).tolist()
        if draft.parents[1:]
        else []
    )
    q = draft.q or (None,) * len(draft.tokens)
    nodes, best = torch.arange(len(draft.tokens))[:, None], outlook.best
    sampled = {draft.parents[node]: row for node, row in enumerate(q) if row is not None}
    return {
        "p": (None, *(round(value, 6) for value in p)),
        "q": tuple(None if row is None else round(float(row[draft.tokens[i]]), 6) for i, row in enumerate(q)),
        "top": tuple(_rows(best, outlook.at(nodes, best))),
        "draft_top": _draft_top(draft, sampled, outlook),
        "entropy": tuple(round(value, 6) for value in outlook.entropy().tolist()),
        "overlap": _overlap(draft, sampled, outlook),
    }


def _overlap(draft: Draft, sampled: Mapping[int, torch.Tensor], outlook: Outlook) -> tuple[float | None, ...]:
    """How far p and q agree at every node whose children were sampled."""
    if not sampled:
        return ()
    shares = outlook.overlap([*sampled], [*sampled.values()])
    known = {node: min(1.0, round(share, 6)) for node, share in zip(sampled, shares, strict=True)}
    return tuple(known.get(node) for node in range(len(draft.tokens)))


def _draft_top(
    draft: Draft, distributions: Mapping[int, torch.Tensor], outlook: Outlook
) -> tuple[tuple[tuple[int, float, float], ...], ...]:
    """The drafter's best tokens at every node whose children it sampled, without those of probability 0."""
    if not distributions:
        return ()
    listed = [ranked(q[None], outlook.best.shape[1])[0] for q in distributions.values()]
    best, shares = torch.stack(listed), [q[ids] for q, ids in zip(distributions.values(), listed, strict=True)]
    target = outlook.at(torch.tensor([*distributions])[:, None], best)
    rows = zip(distributions, _rows(best, torch.stack(shares), target), strict=True)
    known = {node: tuple(row for row in best_of if row[1] > 0.0) for node, best_of in rows}
    return tuple(known.get(node, ()) for node in range(len(draft.tokens)))


def _rows(best: torch.Tensor, *shares: torch.Tensor) -> Iterator[tuple[Any, ...]]:  # all (R, n)
    """Row by row the best tokens, each with its probability in every distribution."""
    for ids, *values in zip(best.tolist(), *(each.tolist() for each in shares), strict=True):
        yield tuple((token, *(round(p, 6) for p in row)) for token, *row in zip(ids, *values, strict=True))
