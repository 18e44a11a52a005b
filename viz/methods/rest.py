"""REST on the screen: what the datastore holds after the end of the text."""

from __future__ import annotations

from collections.abc import Sequence

from decoding.methods.panels import RestPanel
from decoding.methods.rest import RestParams
from decoding.types import Header, Step

from ..boards import board, counted
from ..boards.board import Board, alone
from ..palette import Fate
from ..params import read_params
from ..run_state import RunState
from ..sources import parse
from ..tables import Table, TableRow, fates_of, texts_of
from ..view import Figure, Patch, Picture
from ..wording import count, quote
from .base import Screen
from .stages import rest as on_stage
from .stages.rest import panel_of

_DEEPEST, _ENDING, _BRANCHES = 12, 4, 7  # depths shown of the tree, tokens of the ending that was found, and branches

_WORDS = 10  # columns that the words above the tree need


def _length(header: Header) -> int:
    """Return how deep the tree can be."""
    return read_params(RestParams, header).length


def base(run: RunState) -> Figure:
    """Return the hits without a step."""
    right = max(min(_DEEPEST, _length(run.header)) + 3.4, _WORDS)
    return board.base(-_ENDING - 0.6, right, _BRANCHES + 1.4, "Datastore hits")


def frame(run: RunState, k: int) -> Patch:
    """Return the ending that was found and the tree of what followed it: a row for every leaf, the commonest on top."""
    step, board = run.steps[k], Board()
    panel, deep = panel_of(step), min(_DEEPEST, _length(run.header))
    ending = panel.get("ending", [])[-_ENDING:]
    for back, token in enumerate(reversed(ending)):
        board.context(token, -back, 0, Fate.PROMPT if back else Fate.ROOT, -1 if back else 0)
    if ending:
        board.outcome(_found(panel), 0.7, 0)
    elif step.tokens:
        board.context(step.tokens[0], 0, 0, Fate.ROOT, 0)
        board.alone(SCREEN.why_no_guess(run, step), 0.7)
    counted.draw(board, step, deep, _BRANCHES)
    return {"data": board.patch(step)}


def rows(run: RunState, k: int) -> Table:
    """Return the ending that was found and every branch after it, as a table."""
    step = run.steps[k]
    ending = panel_of(step).get("ending", [])
    first = [*ending[:-1], *step.tokens[:1]] if ending else step.tokens[:1]
    what = _found(panel_of(step)) if ending else alone(SCREEN.why_no_guess(run, step))
    cells = (texts_of(run, first), None, None, fates_of(step, range(len(step.tokens[:1])), len(first) - 1), what)
    table_rows = [TableRow(cells, 0)] if step.tokens else []
    table_rows += counted.rows(run, step)
    return Table(("Tokens", "Found", "From depth", "Fates", "Outcome"), table_rows)


def _found(panel: RestPanel) -> str:
    """Say how much of the text's ending was found in the datastore, and where."""
    words = f"{count(panel.get('span', 0), 'token')} found at {_many(panel.get('hits', 0), 'position')}"
    return f"{words}, {panel.get('read', 0):,} read"


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def _origin(run: RunState, step: Step) -> str:
    ending, hits = panel_of(step).get("ending"), panel_of(step).get("hits")
    if not ending or not hits:
        return " from the datastore"
    return f" from the datastore, where {quote(run, ending)} occurs {count(hits, 'time')}"


def _no_guess(run: RunState, step: Step) -> str:
    panel = panel_of(step)
    if "span" not in panel:
        return ""
    if panel["span"]:
        return "nothing follows the end of the text in the datastore"
    return "the end of the text is not in the datastore"


def _weights(step: Step, guesses: Sequence[int]) -> dict[int, float]:
    """Return the share of the positions after the node above that go on with a guess."""
    return counted.weights(step, guesses, ("datastore",), panel_of(step).get("read", 0))


def _row_name(step: Step, node: int) -> str:
    kind, numbers = parse(step.sources[node])
    return count(numbers[-1] if numbers else 0, "hit") if kind == "datastore" else ""


SCREEN = Screen(
    sources={"datastore": "from the datastore, where it comes next {0} times"},
    origin=_origin,
    no_guess=_no_guess,
    pool=Picture(base, frame, rows),
    stage=on_stage.STAGE,
    depth=_length,
    weights=_weights,
    row_name=_row_name,
)
