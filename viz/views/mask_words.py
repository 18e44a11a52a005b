"""Explains what every row of the attention mask sees, and why."""

from __future__ import annotations

from collections.abc import Sequence

from decoding import tree
from decoding.types import Step

from .. import token_text
from ..run_state import RunState
from ..sources import window_cell

_MOST = 8  # tokens that a sentence names
_REASONS = {
    "root": "It is the last token of the text, so the token that the target chooses after it is always written.",
    "row 0": "Row 0 is read like a text: each cell continues the one to its left.",
    "column": "A column is one imagined sentence: row 0 leads up to it, and each later row continues the row above.",
    "chain": "The guesses are one chain, read like a text.",
    "guess": "It sees no other guess, because only one of them can come true.",
}


def sentences(run: RunState, k: int) -> list[str]:
    """Explain what each node of step k sees."""
    step, window = run.steps[k], run.header.window
    depths, cells = tree.depths(step.parents), [window_cell(source) for source in step.sources]
    other = "chain" if tree.is_chain(step.parents) else "guess"
    begins = list[tuple[int, ...]]([()])  # of the way to each node as much as a sentence names
    explained = list[str]()
    for node, (row, column) in enumerate(cells):
        if node:
            way = begins[step.parents[node]]
            begins.append((*way, node) if len(way) <= _MOST else way)
        before: Sequence[int] = begins[step.parents[node]] if node else ()
        if row >= 0 or window is not None:
            first = 0 if window is None else depths[node] - window + 1
            before = [each for each in tree.path_to(step.parents, node)[1:-1] if depths[each] >= first]
        parts = [_text(step, depths[node], window)]
        level = [each for each in before if cells[each][0] == 0]
        higher = [each for each in before if cells[each][0] > 0]
        if row < 0 and before:
            parts.append(f"the tokens before it in its own guess ({_tokens(run, step, before)})")
        if row >= 0 and level:
            parts.append(f"row 0 of the guess window up to column {column - (row == 0)} ({_tokens(run, step, level)})")
        if row >= 0 and higher:
            parts.append(f"the cells above it in its own column ({_tokens(run, step, higher)})")
        reason = "root" if not node else "row 0" if row == 0 else "column" if row > 0 else other
        explained.append(f"Sees {', '.join(parts)} and itself. {_REASONS[reason]}")
    return explained


def _text(step: Step, depth: int, window: int | None) -> str:
    """Say which part of the text before the step's nodes is seen at a depth."""
    last = step.start - 1 if depth else step.start - 2
    first = 0 if window is None else max(0, step.start + depth - window)
    if last < 0:
        return "no text before it"
    if first > last:
        return f"none of the text, which lies beyond this model's window of {window}"
    if depth and first == last:
        return "only the last token of the text"
    words = f"the text from position {first} to {last}"
    return words if first == 0 else f"{words}, where this model's window of {window} begins for it"


def _tokens(run: RunState, step: Step, nodes: Sequence[int]) -> str:
    shown = " ".join(token_text.shown(run.text(step.tokens[node])) for node in nodes[:_MOST])
    return shown + "…" * (len(nodes) > _MOST)
