"""SuffixDecoding on the screen: the ending that both suffix trees look for, and the guesses of the better one."""

from __future__ import annotations

from collections.abc import Sequence

from decoding.methods.suffix import SuffixParams
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
from .stages import suffix as on_stage
from .stages.suffix import panel_of

_DEEPEST, _ENDING, _BRANCHES = 12, 4, 7  # depths shown of the tree, tokens of the ending, and branches
_WORDS = 14  # columns that the words above the tree need


def _depth(header: Header) -> int:
    """Return how deep the tree can be."""
    params = read_params(SuffixParams, header)
    return min(params.c, params.depth - 1)


def base(run: RunState) -> Figure:
    """Return the matches without a step."""
    right = max(min(_DEEPEST, _depth(run.header)) + 3.4, _WORDS)
    return board.base(-_ENDING - 0.6, right, _BRANCHES + 1.4, "Suffix matches")


def frame(run: RunState, k: int) -> Patch:
    """Return the ending, what both suffix trees hold of it, and a row for every leaf of the better one."""
    step, board = run.steps[k], Board()
    ending = panel_of(step).get("ending", [])[-_ENDING:]
    for back, token in enumerate(reversed(ending)):
        board.context(token, -back, 0, Fate.PROMPT if back else Fate.ROOT, -1 if back else 0)
    if ending:
        board.outcome(_scores(step), 0.7, 0)
    elif step.tokens:
        board.context(step.tokens[0], 0, 0, Fate.ROOT, 0)
        board.alone(SCREEN.why_no_guess(run, step), 0.7)
    counted.draw(board, step, min(_DEEPEST, _depth(run.header)), _BRANCHES)
    return {"data": board.patch(step)}


def rows(run: RunState, k: int) -> Table:
    """Return the ending and every branch after it, as a table."""
    step = run.steps[k]
    ending = panel_of(step).get("ending", [])
    first = [*ending[:-1], *step.tokens[:1]] if ending else step.tokens[:1]
    what = _scores(step) if ending else alone(SCREEN.why_no_guess(run, step))
    cells = (texts_of(run, first), None, None, fates_of(step, range(len(step.tokens[:1])), len(first) - 1), what)
    table_rows = [TableRow(cells, 0)] if step.tokens else []
    return Table(("Tokens", "Came next", "From depth", "Fates", "Outcome"), [*table_rows, *counted.rows(run, step)])


def _scores(step: Step) -> str:
    """Say what both suffix trees offer."""
    panel = panel_of(step)
    sides = (("this text", panel.get("local")), ("earlier answers", panel.get("earlier")))
    return "; ".join(f"{where}: {on_stage.offer(side)}" for where, side in sides if side)


def _origin(run: RunState, step: Step) -> str:
    panel = panel_of(step)
    if "ending" not in panel or "chosen" not in panel:
        return ""
    local = panel["chosen"] == "local"
    where, side = ("this text", panel.get("local")) if local else ("earlier answers", panel.get("earlier"))
    times = f" {count(side.get('count', 0), 'time')}" if side else ""
    return f": {quote(run, panel['ending'])} occurs{times} in {where}"


def _no_guess(run: RunState, step: Step) -> str:
    params, panel = read_params(SuffixParams, run.header), panel_of(step)
    if "local" not in panel and "earlier" not in panel:
        return ""
    places = [] if params.look_in == "global" else ["earlier in this text"]
    places += [] if params.look_in == "local" else ["in an earlier answer"]
    return f"the last token does not occur {' or '.join(places)}, or too many tokens followed it"


def _weights(step: Step, guesses: Sequence[int]) -> dict[int, float]:
    """Return the share of the positions after the node above that go on with a guess."""
    panel = panel_of(step)
    side = panel.get("local") if panel.get("chosen") == "local" else panel.get("earlier")
    return counted.weights(step, guesses, ("local", "global"), side.get("count", 0) if side else 0)


def _row_name(step: Step, node: int) -> str:
    kind, numbers = parse(step.sources[node])
    return count(numbers[-1] if numbers else 0, "time") if kind in ("local", "global") else ""


SCREEN = Screen(
    sources={
        "local": "what came next earlier in this text, {0} ×",
        "global": "what came next in earlier answers, {0} ×",
    },
    origin=_origin,
    no_guess=_no_guess,
    pool=Picture(base, frame, rows),
    stage=on_stage.STAGE,
    depth=_depth,
    weights=_weights,
    row_name=_row_name,
)
