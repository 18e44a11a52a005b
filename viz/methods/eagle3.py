"""EAGLE-3 on the screen: the drafter's guesses by depth and by the product of their probabilities."""

from __future__ import annotations

from collections.abc import Sequence

from decoding.methods.eagle3 import Eagle3Params
from decoding.types import Header, Step

from ..boards.board import Board
from ..cells import DOWN, PITCH, SYMBOLS, Sign, axis, layout, lifted, points, ticks
from ..fates import emitted_fates
from ..params import params_reader
from ..run_state import RunState
from ..stage.parts import depths_of
from ..tables import Cell, Table, TableRow, fate_label, fate_of, text_of
from ..view import Figure, Patch, Picture
from ..wording import count, share
from .base import Screen
from .stages import eagle3 as on_stage
from .stages.eagle3 import panel_of

_DEEPEST, _ROWS = 10, 14  # shown
_WIDE = 2.2  # columns of a depth: a guess, and its product beside it
_WRITTEN, _DRIFT = -1.5, -2.6  # the rows of what was written, and of how close the drafter's features came
_MARKS = 6  # part of the figure: signs at what was written

params_of = params_reader(Eagle3Params)


def _depth(header: Header) -> int:
    params = params_of(header)
    return params.depth if params.form == "tree" else params.gamma


def base(run: RunState) -> Figure:
    """Return depths by places without a step."""
    params, depth = params_of(run.header), min(_DEEPEST, _depth(run.header))
    rows = min(_ROWS, params.m if params.form == "tree" else 1)
    data = [*Board.layers(), *[points("markers") for _ in range(5)]]
    data[_MARKS] |= {"size": 12}
    names: dict[float, str] = {_WIDE * (place - 1): f"depth {place}" for place in range(1, depth + 1)}
    yaxis = axis(_DRIFT - 0.8, rows + 0.4, down=True) | ticks({_DRIFT: "own features", _WRITTEN: "written"})
    xaxis = axis(-0.7, _WIDE * depth - 0.5, side="top") | ticks(names)
    margin = {"l": 84, "r": 8, "t": 22, "b": 4, "pad": 2}
    figure = layout(round(DOWN * (rows + 4)) + 26, xaxis, yaxis, margin=margin, yaxis3=lifted(yaxis))
    words = "a token outside the drafter's vocabulary"
    key = [{"symbol": SYMBOLS[Sign.MINUS], "colour": "$text", "words": words}]
    least = round(92 + _WIDE * PITCH * depth)
    return {"data": data, "layout": figure, "least": least, "label": "Guesses by depth and product", "key": key}


def frame(run: RunState, k: int) -> Patch:
    """Return all guesses with their products, the largest on top; what was written; and the drift of the features."""
    step, board, depth = run.steps[k], Board(), min(_DEEPEST, _depth(run.header))
    beyond = 0
    for place, nodes in enumerate(_by_product(step), start=1):
        beyond += max(0, len(nodes) - _ROWS) if place <= depth else len(nodes)
        for row, node in enumerate(nodes[:_ROWS] if place <= depth else ()):
            board.guess(node, _WIDE * (place - 1), row)
            if (product := on_stage.products_of(step).get(node)) is not None:
                board.outcome(_short(product), _WIDE * (place - 1) + 0.55, row)
    foreign = on_stage.unsayable(step)
    for place, (token, fate) in enumerate(zip(step.emitted[:depth], emitted_fates(step), strict=False)):
        board.learned(token, _WIDE * place, _WRITTEN, fate)
        if place in foreign:
            board.mark(Sign.MINUS, _WIDE * place + 0.75, _WRITTEN)
    for place, cosine in enumerate(panel_of(step).get("agreement", [])[:depth]):
        board.outcome(f"{cosine:.2f}", _WIDE * place - 0.4, _DRIFT)
    if beyond:
        board.outcome(f"and {count(beyond, 'more guess', 'more guesses')}", -0.4, _ROWS)
    if len(step.tokens) < 2:
        board.alone(SCREEN.why_no_guess(run, step), -0.4)
    return {"data": board.patch(step)}


def rows(run: RunState, k: int) -> Table:
    """Return all guesses as a table, what was written, and what the drafter cannot say."""
    step, table_rows = run.steps[k], list[TableRow]()
    foreign, cosines = on_stage.unsayable(step), panel_of(step).get("agreement", [])
    for place, (token, code) in enumerate(zip(step.emitted, emitted_fates(step), strict=True)):
        drift = f"own feature {cosines[place]:.2f} of the target's" if place < len(cosines) else ""
        sign = ", ".join(filter(None, ("cannot be drafted" if place in foreign else "", drift)))
        sign_cell: Cell = {"commit": sign} if sign else None
        written = text_of(run, token), f"depth {place + 1}", "written", None, fate_label(code), sign_cell
        table_rows.append(TableRow(written, since="commit"))
    products, chances = on_stage.products_of(step), panel_of(step).get("chances", [])
    for place, nodes in enumerate(_by_product(step), start=1):
        for node in nodes:
            chance = share(chances[node - 1]) if node <= len(chances) else None
            product = share(products[node]) if node in products else None
            cells = (text_of(run, step.tokens[node]), f"depth {place}", chance, product, fate_of(step, node), None)
            table_rows.append(TableRow(cells, node))
    words = () if len(step.tokens) > 1 else (f"no guess: {SCREEN.why_no_guess(run, step)}",)
    return Table(("Token", "Depth", "Probability", "Product", "Fate", "Drafter"), table_rows, words)


def _short(product: float) -> str:
    return f"{product:.2f}" if product >= 0.005 else "<.01"


def _by_product(step: Step) -> list[list[int]]:
    """Return the guesses of every depth, the largest product first."""
    products, depths = on_stage.products_of(step), depths_of(step.parents) if step.parents else ()
    levels: list[list[int]] = [[] for _ in range(max(depths, default=0))]
    for node in range(1, len(step.tokens)):
        levels[depths[node] - 1].append(node)
    return [sorted(nodes, key=lambda node: (-products.get(node, 0.0), node)) for nodes in levels]


def _origin(run: RunState, step: Step) -> str:
    layers = panel_of(step).get("layers", [])
    made = panel_of(step).get("made", 0)
    by = f" by a drafter on {count(len(layers), 'layer')} of the target" if layers else " by the drafter"
    return by + (f", the best of {made}" if made > step.drafted > 0 else "")


def _learned(run: RunState, step: Step) -> str:
    words = on_stage.unsayable_words(run, step)
    return f"{words}." if words else ""


def _weights(step: Step, guesses: Sequence[int]) -> dict[int, float]:
    products = on_stage.products_of(step)
    return {node: products[node] for node in guesses if node in products}


SCREEN = Screen(
    sources={"eagle": "token {0} of the drafter", "branch": "guess {0} after the root, ranked {1} by the drafter"},
    origin=_origin,
    learned=_learned,
    no_guess=lambda run, step: on_stage.why_nothing(step),
    pool=Picture(base, frame, rows),
    stage=on_stage.STAGE,
    depth=_depth,
    weights=_weights,
    depth_name="depth ",
)
