"""Makes the node columns of a step's record, at the level of detail that the run asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..outlook import DECIMALS, Outlook
from ..types import JSON, Draft, Verdict

LEVELS = ("off", "light", "full")


def light_columns(draft: Draft, verdict: Verdict, panel: Mapping[str, JSON]) -> dict[str, Any]:
    """Return the node columns of a light record."""
    return {
        "tokens": draft.tokens,
        "parents": draft.parents,
        "roles": draft.roles,
        "sources": draft.sources,
        "path": verdict.path,
        "choices": verdict.argmax,
        "panel": panel,
    }


def detail(draft: Draft, verdict: Verdict, outlook: Outlook) -> dict[str, Any]:
    """Return the columns that a full record adds: p and q of every guess, and a summary of the nodes' distributions."""
    shares, entropy, p = outlook.listed(draft.parents[1:], draft.tokens[1:])
    best: list[int] = outlook.best.flatten().tolist()
    tested = verdict.tested
    return {
        "p": (None, *p),
        "q": (None,) * len(draft.tokens),
        "top": _lists(outlook.count, best, shares),
        "entropy": tuple(entropy),
        "u": _column(draft, tested, (round(u, DECIMALS) for u in tested.values()), None) if tested else (),
        **_drafted(draft, outlook),
    }


def _drafted(draft: Draft, outlook: Outlook) -> dict[str, Any]:
    """Return the columns about the distributions that guesses were sampled from.

    A distribution shared by guesses after the same node is compared once.
    """
    sampled = {node: row for node, row in enumerate(draft.q or ()) if row is not None}
    if not sampled:
        return {}
    keys = {node: (draft.parents[node], id(row)) for node, row in sampled.items()}
    rows = {keys[node]: row for node, row in sampled.items()}
    row_of = {key: row for row, key in enumerate(rows)}
    nodes = [parent for parent, _ in rows]
    drafted = [draft.tokens[node] for node in sampled]
    compared = outlook.beside([*rows.values()], nodes, [row_of[key] for key in keys.values()], drafted)
    every = _lists(outlook.count, compared.best, compared.mine, compared.theirs)
    lists = [tuple(entry for entry in listed if entry[1] > 0.0) for listed in every]
    return {
        "q": _column(draft, sampled, compared.shares, None),
        "draft_top": _column(draft, nodes, lists, ()),
        "overlap": _column(draft, nodes, compared.overlaps, None),
    }


def _column(draft: Draft, nodes: Iterable[int], values: Iterable[Any], empty: Any) -> tuple[Any, ...]:
    """Make a column with values at `nodes`, and `empty` elsewhere."""
    filled = dict(zip(nodes, values, strict=True))
    return tuple(filled.get(node, empty) for node in range(len(draft.tokens)))


def _lists(count: int, best: list[int], *shares: list[float]) -> tuple[tuple[tuple[Any, ...], ...], ...]:
    """Group the best tokens and their probabilities, `count` per distribution."""
    entries = zip(best, *shares, strict=True)
    return tuple(zip(*[entries] * count, strict=True))
