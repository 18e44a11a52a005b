"""Why a row of the attention mask sees what it sees, in words.

The page's player says the same from the step's columns, with the same templates. For a node, in this order:

    text    what it sees of the text: "text" from place 0 on, "window" where a sliding window hides its beginning,
            "root" where nothing but the root itself is left of it, "nothing" where not even that; for the root itself
            only what stands in front of it, and "begins" where there is nothing
    level   a window's cell: the cells of row 0, itself excluded, that it sees
    above   a window's cell: the cells of rows 1 and later, itself excluded, that it sees
    before  any other node but the root: the nodes between the root and itself that it sees
    itself  always

and the reason: "root", "row 0", "column", "chain" (the step is one chain) or "guess". {cells} are the shown texts, at
most eight of them, with blanks between.
"""

from __future__ import annotations

from collections.abc import Sequence

from decoding import tree
from decoding.types import Step

from .. import token_text
from ..run_state import RunState
from ..sources import window_cell

_CELLS = 8  # texts named of a row of cells

WORDS: dict[str, str] = {
    "subject": '"{token}" (id {id}, place {place}) sees {parts}. {reason}',
    "join": ", ",
    "last": " and ",
    "cut": "…",
    "text": "the text from place {first} to {last}",
    "window": "the text from place {first} to {last}, where this model's window of {window} begins for it",
    "root": "of the text only its last token",
    "nothing": "nothing of the text, which lies behind this model's window of {window}",
    "begins": "no text in front of it",
    "level": "row 0 of the guess window up to column {column} ({cells})",
    "above": "what stands above it in its own column ({cells})",
    "before": "the tokens in front of it in its own guess ({cells})",
    "itself": "itself",
    "unread": "each of them the text from its beginning to itself",
    "unread.window": "each of them at most {window} places: itself and those in front of it",
    "reason.root": "It is the last token of the text: what the target says here is written in any case.",
    "reason.row 0": "Row 0 is read like a text: every cell goes on from the one to its left.",
    "reason.column": "A column is one imagined sentence: row 0 leads up to it, and each later row goes on from the row "
    "above.",
    "reason.chain": "The guesses are one chain, read like a text.",
    "reason.guess": "It sees no other guess, because only one of them can come true.",
}


def explain(run: RunState, k: int, node: int) -> str:
    """A sentence on what a node of step k sees, and one on the reason."""
    step = run.steps[k]
    places = tree.depths(step.parents)
    depth, window = places[node], run.header.window
    near = [
        other for other in tree.path_to(step.parents, node)[1:-1] if window is None or depth - places[other] < window
    ]
    parts = [_text(step, depth, window)]
    row, column = window_cell(step.sources[node])
    if row >= 0:
        level = [other for other in near if window_cell(step.sources[other])[0] == 0]
        above = [other for other in near if window_cell(step.sources[other])[0] > 0]
        parts += [WORDS["level"].format(column=column - (row == 0), cells=_cells(run, step, level))] if level else []
        parts += [WORDS["above"].format(cells=_cells(run, step, above))] if above else []
    elif near:
        parts.append(WORDS["before"].format(cells=_cells(run, step, near)))
    reason = "root" if not node else "row 0" if row == 0 else "column" if row > 0 else _guess(step)
    return WORDS["subject"].format(
        token=token_text.shown(run.text(step.tokens[node])),
        id=step.tokens[node],
        place=step.start - 1 + depth,
        parts=WORDS["join"].join(parts) + WORDS["last"] + WORDS["itself"],
        reason=WORDS[f"reason.{reason}"],
    )


def _text(step: Step, depth: int, window: int | None) -> str:
    last = step.start - 1 if depth else step.start - 2
    first = 0 if window is None else max(0, step.start + depth - window)
    name = "text" if first == 0 else "window"
    if last < 0:
        name = "begins"
    elif first > last:
        name = "nothing"
    elif depth and first == last:
        name = "root"
    return WORDS[name].format(first=first, last=last, window=window)


def _guess(step: Step) -> str:
    return "chain" if tree.is_chain(step.parents) else "guess"


def _cells(run: RunState, step: Step, nodes: Sequence[int]) -> str:
    texts = [token_text.shown(run.text(step.tokens[node])) for node in nodes[:_CELLS]]
    return " ".join(texts) + WORDS["cut"] * (len(nodes) > _CELLS)
