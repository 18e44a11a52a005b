"""The node columns of a step's record, at the level of detail that the run asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from ..model.download import fetch
from ..sampling import Outlook, ranked
from ..types import JSON, Draft, Verdict

LEVELS = ("off", "light", "full")
_DECIMALS = 6  # of every probability, and of entropies


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
    """The columns that a full record adds: p and q of every guess, and how the distributions at every node look.

    All their numbers are computed for all nodes at once, and come to the host together.
    """
    numbers = [outlook.shares(), outlook.entropy()]
    sampled, rows = _sampled(draft)
    if len(draft.tokens) > 1:
        parents, tokens = torch.tensor(draft.parents), torch.tensor(draft.tokens)
        numbers.append(outlook.at(parents[1:], tokens[1:]))
    if rows:
        behind = torch.tensor([parent for parent, _ in rows])
        q = torch.stack([*rows.values()]).to(outlook.device)
        best = ranked(q, outlook.best.shape[1])
        own = q[torch.tensor([*sampled.values()]), tokens[[*sampled]]]
        numbers += [own, q.gather(1, best), outlook.at(behind[:, None], best), outlook.overlap(behind, q)]
    shares, entropy, *more = fetch(*numbers, decimals=_DECIMALS)
    p, *drafter = more or [[]]
    found = {"p": (None, *p), "top": _lists(outlook.best, shares), "entropy": tuple(entropy)}
    if not drafter:
        return found | {"q": (None,) * len(draft.tokens)}
    known, mine, theirs, overlaps = drafter
    lists = [tuple(row for row in listed if row[1] > 0.0) for listed in _lists(best, mine, theirs)]
    return found | {
        "q": _column(draft, sampled, known, None),
        "draft_top": _column(draft, behind.tolist(), lists, ()),
        "overlap": _column(draft, behind.tolist(), overlaps, None),
    }


def _sampled(draft: Draft) -> tuple[dict[int, int], dict[tuple[int, int], torch.Tensor]]:
    """Every node that was sampled, with its place among the distributions; and these, by the nodes behind which they are.

    Nodes that were sampled from the same distribution behind the same node share it.
    """
    nodes, rows, places = dict[int, int](), dict[tuple[int, int], torch.Tensor](), dict[tuple[int, int], int]()
    for node, row in enumerate(draft.q or ()):
        if row is not None:
            key = draft.parents[node], id(row)
            nodes[node] = places.setdefault(key, len(places))
            rows[key] = row
    return nodes, rows


def _column(draft: Draft, nodes: Iterable[int], values: Iterable[Any], empty: Any) -> tuple[Any, ...]:
    """A column that has values at some nodes."""
    known = dict(zip(nodes, values, strict=True))
    return tuple(known.get(node, empty) for node in range(len(draft.tokens)))


def _lists(best: torch.Tensor, *shares: list[float]) -> tuple[tuple[tuple[Any, ...], ...], ...]:  # (R, n), R * n each
    """Row by row the best tokens, each with its probability in every distribution."""
    entries = zip(best.flatten().tolist(), *shares, strict=True)
    return tuple(zip(*[entries] * best.shape[1], strict=True))
