"""Token Recycling on the screen: the rows of the table that guesses were read from, and those that changed."""

from __future__ import annotations

from collections.abc import Sequence

from decoding.methods.token_recycling import TokenRecyclingParams
from decoding.types import Header, Step

from ..boards import board
from ..boards.board import OUTCOMES, Board, alone, key, shown_of
from ..boards.nodes import NodeIndex
from ..cells import Sign
from ..palette import Fate
from ..params import params_reader
from ..run_state import RunState
from ..sources import parse
from ..tables import Table, TableRow, fates_of, outcome_of, text_of, texts_of
from ..view import Figure, Patch, Picture
from ..wording import count
from .base import Screen
from .stages import token_recycling as on_stage
from .stages.token_recycling import panel_of

_ROWS, _WIDEST = 12, 8  # rows shown, and entries of a row
_APART = 5.2  # columns between both tables: room for words
_OF_RANK = (0.9, 0.4, 0.25)  # weights of the first entries, of which no probability is recorded

params_of = params_reader(TokenRecyclingParams)


def _wide(header: Header) -> int:
    return min(_WIDEST, params_of(header).k)


def base(run: RunState) -> Figure:
    """Return both tables without a step."""
    wide = _wide(run.header)
    figure = board.base(-1.6, 2 * wide + _APART + 2.2, _ROWS + 1.4, "Recycled rows")
    return figure | {"key": key(Sign.PLUS, Sign.DOWN), "draws": [Fate.EXPLORED]}


def frame(run: RunState, k: int) -> Patch:
    """Return on the left the rows that guesses were read from, on the right those that changed."""
    step, board, wide = run.steps[k], Board(), _wide(run.header)
    read, drawn, right = on_stage.rows_read(step), set[int](), wide + _APART
    board.outcome("read", 0.7, 0)
    if not read and step.tokens:
        board.context(step.tokens[0], 0, 1, Fate.ROOT, 0)
        board.outcome(alone(SCREEN.why_no_guess(run, step)), 0.7, 1)
    for y, (row, above) in enumerate(read[:_ROWS], start=1):
        board.context(row["token"], 0, y, Fate.PROMPT if above else Fate.ROOT, above)
        below = on_stage.entry_nodes(step, row)
        for x, token in enumerate(row["entries"][:wide], start=1):
            node = below.get(token, -1)
            if node > 0 and node not in drawn:
                drawn.add(node)
                board.guess(node, x, y)
            else:
                board.context(token, x, y, Fate.EXPLORED)
        board.outcome(on_stage.since(row), min(wide, len(row["entries"])) + 0.7, y)
    changed = panel_of(step).get("changed", [])
    board.outcome(f"{count(len(changed), 'row')} changed", right + 0.7, 0)
    for y, (token, before, after, _) in enumerate(changed[:_ROWS], start=1):
        board.learned(token, right, y, Fate.PROMPT)
        for x, entry in enumerate(after[:wide], start=1):
            board.learned(entry, right + x, y, Fate.EXPLORED)
        board.mark(OUTCOMES["refreshed" if before else "added"], right - 0.8, y)
    for left, number in ((0.5, len(read)), (right + 0.5, len(changed))):
        if words := shown_of(min(_ROWS, number), number):
            board.outcome(words, left, _ROWS + 0.9)
    return {"data": board.patch(step)}


def rows(run: RunState, k: int) -> Table:
    """Return the rows that guesses were read from, and those that changed, as a table."""
    step, nodes, table_rows = run.steps[k], NodeIndex(run.steps[k]), list[TableRow]()
    for row, above in on_stage.rows_read(step):
        below = on_stage.entry_nodes(step, row)
        guessed = [below[token] for token in row["entries"] if token in below]
        cells = (text_of(run, row["token"]), texts_of(run, row["entries"]), on_stage.since(row))
        table_rows.append(TableRow((*cells, fates_of(step, guessed), outcome_of(nodes.accepted(guessed))), above))
    for token, before, after, giver in panel_of(step).get("changed", []):
        was = f"was {texts_of(run, before)}" if before else "new"
        cells = (text_of(run, token), texts_of(run, after), f"{was}; from a node that was {giver}")
        table_rows.append(TableRow((*cells, None, None), since="commit"))
    say = alone(SCREEN.why_no_guess(run, step)) if not step.drafted else ""
    stored_rows = f"{count(panel_of(step).get('known', 0), 'row')} in the table"
    return Table(
        ("Token", "Likeliest next", "Since", "Fates", "Outcome"),
        table_rows,
        ([say] if say else []) + [{"commit": stored_rows}],
    )


def _origin(run: RunState, step: Step) -> str:
    read = on_stage.rows_read(step)
    return f", read from the rows of {count(len(read), 'token')}" if read else ""


def _agreed(run: RunState, step: Step) -> str:
    return "; ".join(on_stage.paid_off(run, step)[:1])


def _learned(run: RunState, step: Step) -> str:
    changed = panel_of(step).get("changed", [])
    rejected = sum(behind == "rejected" for *_, behind in changed)
    if not changed:
        return ""
    of_them = f", {rejected} of them after rejected guesses" if rejected else ""
    return f"{count(len(changed), 'row')} of the table changed{of_them}."


def _no_guess(run: RunState, step: Step) -> str:
    return "the table has no row for the last token yet" if "rows" in panel_of(step) else ""


def _weights(step: Step, guesses: Sequence[int]) -> dict[int, float]:
    """Return a weight by the rank of a guess in its row."""
    ranks = {node: parse(step.sources[node])[1][:1] for node in guesses}
    return {node: _OF_RANK[rank[0]] if rank[0] < len(_OF_RANK) else 0.15 for node, rank in ranks.items() if rank}


SCREEN = Screen(
    sources={"recycled": "entry {0} of the row of the token before it"},
    origin=_origin,
    agreed=_agreed,
    learned=_learned,
    no_guess=_no_guess,
    pool=Picture(base, frame, rows),
    stage=on_stage.STAGE,
    depth=lambda header: max(params_of(header).shape.depths),
    weights=_weights,
    weights_are_ranks="Only a guess's rank in its row is known; a thick edge marks the first.",
)
