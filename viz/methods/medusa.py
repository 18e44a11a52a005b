"""Medusa on the screen: the heads' guesses by head and rank."""

from __future__ import annotations

from collections.abc import Sequence

from decoding.methods.medusa import MedusaParams
from decoding.types import Header, Step

from ..boards.board import Board
from ..cells import DOWN, PITCH, SYMBOLS, Sign, axis, layout, lifted, points, ticks
from ..fates import emitted_fates
from ..params import read_params
from ..run_state import RunState
from ..sources import parse
from ..tables import Cell, Table, TableRow, fate_label, fate_of, text_of
from ..view import Figure, Patch, Picture
from ..wording import count
from .base import Screen
from .stages import medusa as on_stage
from .stages.medusa import panel_of

_MOST_RANKS, _HEADS = 14, 12  # shown
_WIDE = 1.75  # a head's place is wider than a cell: few heads, and their tokens' texts are long
_WRITTEN = -1.5  # the row of what was written
_MARKS = 6  # part of the figure: frames around what was written
_OF_RANK = (0.9, 0.3, 0.3)  # weights of a head's first guesses, of which no probability is recorded


def _ranks(header: Header) -> int:
    """Return rows of ranks that the tree can fill, as far as they are shown."""
    return min(_MOST_RANKS, read_params(MedusaParams, header).ranks)


def base(run: RunState) -> Figure:
    """Return heads by ranks without a step."""
    shown = _ranks(run.header)
    data = [*Board.layers(), *[points("markers") for _ in range(5)]]
    data[_MARKS] |= {"size": 30}
    names: dict[float, str] = {head: f"head {head}" for head in range(1, _HEADS + 1)}
    yaxis = axis(-2.4, shown + 0.4, down=True) | ticks({_WRITTEN: "written"})
    xaxis = axis(0.3, 6.7, side="top") | ticks(names)
    margin = {"l": 58, "r": 8, "t": 22, "b": 4, "pad": 2}
    figure = layout(round(DOWN * (shown + 2.8)) + 26, xaxis, yaxis, margin=margin, yaxis3=lifted(yaxis))
    key = [{"symbol": SYMBOLS[Sign.FRAME], "colour": "$text", "words": "a head's guess that was written"}]
    more: Figure = {"least": round(66 + _WIDE * PITCH * 6), "label": "Heads and ranks", "key": key}
    return {"data": data, "layout": figure, **more}


def frame(run: RunState, k: int) -> Patch:
    """Return every guess of every head that the tree uses; a frame around what was written."""
    step, board = run.steps[k], Board()
    shown = _ranks(run.header)
    guesses, beyond = _by_head_and_rank(step, shown, _HEADS)
    for (head, rank), node in sorted(guesses.items()):
        board.guess(node, head, rank)
    for head, hit in enumerate(panel_of(step).get("hits", [])[:_HEADS], start=1):
        if hit is not None and (head, hit) in guesses:
            board.mark(Sign.FRAME, head, hit)
    for x, (token, fate) in enumerate(zip(step.emitted, emitted_fates(step), strict=True), start=1):
        if x <= _HEADS:
            board.learned(token, x, _WRITTEN, fate)
    if beyond:
        board.outcome(f"and {beyond} lower-ranked guesses", 0.4, shown)
    if len(step.tokens) < 2:
        board.outcome(_no_guess(run, step), 0.4, 0)
    heads = min(_HEADS, max(1, panel_of(step).get("heads", 1)))
    lowest = max((rank for _, rank in guesses), default=-1)
    named = {_WRITTEN: "written"} | {rank: f"rank {rank}" for rank in range(lowest + 1)}
    yaxis = {"tickvals": [*named], "ticktext": {"strings": [*named.values()]}}
    return {"data": board.patch(step), "layout": {"xaxis": {"range": [0.3, heads + 0.7]}, "yaxis": yaxis}}


def rows(run: RunState, k: int) -> Table:
    """Return all guesses of all heads as a table, and what was written."""
    step, table_rows = run.steps[k], list[TableRow]()
    hits = dict(enumerate(panel_of(step).get("hits", []), start=1))
    lossless = run.header.lossless
    for x, (written, code) in enumerate(zip(step.emitted, emitted_fates(step), strict=True), start=1):
        table_rows.append(
            TableRow(
                (text_of(run, written), f"head {x}", "written", fate_label(code, lossless=lossless), None),
                since="commit",
            )
        )
    guesses, _ = _by_head_and_rank(step, len(step.tokens), len(step.tokens))
    for (head, rank), node in sorted(guesses.items(), key=lambda guess: (guess[0][1], guess[0][0])):
        target_sign: Cell = {"commit": "the target's own token"} if hits.get(head) == rank else None
        cells = (
            text_of(run, step.tokens[node]),
            f"head {head}",
            f"rank {rank}",
            fate_of(step, node, lossless=lossless),
            target_sign,
        )
        table_rows.append(TableRow(cells, node))
    return Table(("Token", "Head", "Rank", "Fate", "Sign"), table_rows, () if guesses else (_no_guess(run, step),))


def _no_guess(run: RunState, step: Step) -> str:
    why = SCREEN.why_no_guess(run, step)
    return f"no guess{why and ': '}{why}"


def _by_head_and_rank(step: Step, ranks: int, heads: int) -> tuple[dict[tuple[int, int], int], int]:
    """Return the node of every guess below these bounds, accepted ones before others; and how many lie beyond them."""
    shown: dict[tuple[int, int], int] = {}
    beyond, accepted = 0, frozenset(step.path)
    for node in range(1, len(step.tokens)):
        kind, place = parse(step.sources[node])
        if kind != "medusa" or len(place) != 2:
            continue
        head, rank = place
        if rank >= ranks or head > heads:
            beyond += 1
        elif (head, rank) not in shown or node in accepted:
            shown[head, rank] = node
    return shown, beyond


def _origin(run: RunState, step: Step) -> str:
    heads = panel_of(step).get("heads")
    return f" by {count(heads, 'head')}" if heads else ""


def _agreed(run: RunState, step: Step) -> str:
    """Return accepted guesses that are not the target's first choice, under typical acceptance."""
    if "typical" not in panel_of(step) or not step.choices:
        return ""
    steps_down = zip(step.path, step.path[1:], strict=False)
    unlikely = sum(step.choices[above] != step.tokens[node] for above, node in steps_down)
    return f"{unlikely} of them typical, but not its first choice" if unlikely else ""


def _weights(step: Step, guesses: Sequence[int]) -> dict[int, float]:
    weights: dict[int, float] = {}
    for node in guesses:
        kind, numbers = parse(step.sources[node])
        if kind == "medusa" and numbers and numbers[-1] < len(_OF_RANK):
            weights[node] = _OF_RANK[numbers[-1]]
    return weights


def _row_name(step: Step, node: int) -> str:
    kind, numbers = parse(step.sources[node])
    return f"rank {numbers[-1] if numbers else 0}" if kind == "medusa" else ""


SCREEN = Screen(
    sources={"medusa": "Medusa head {0}, rank {1}"},
    origin=_origin,
    agreed=_agreed,
    no_guess=lambda run, step: "" if step.index else "the heads have no hidden state yet",
    pool=Picture(base, frame, rows),
    stage=on_stage.STAGE,
    weights=_weights,
    weights_are_ranks="Only the rank of a head's guess is known; a thick edge marks its first choice.",
    row_name=_row_name,
    depth_name="head ",
)
