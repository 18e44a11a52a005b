"""The guesses of a drafter on the target's features, by depth and by the product of their probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from decoding.types import Header, Step

from ..boards.board import Board
from ..cells import DOWN, PITCH, SYMBOLS, Sign, axis, layout, lifted, points, ticks
from ..fates import emitted_fates
from ..run_state import RunState
from ..stage.parts import depths_of
from ..tables import Cell, Table, TableRow, fate_label, fate_of, text_of
from ..view import Figure, Patch, Picture
from ..wording import count, share
from .stages.features import panel_of, products_of, unsayable, unsayable_words

_DEEPEST, _ROWS = 10, 14  # shown
_WIDE = 2.2  # columns of a depth: a guess, and its product beside it
_WRITTEN, _DRIFT = -1.5, -2.6  # the rows of what was written, and of how close the drafter's features came
_MARKS = 6  # part of the figure: signs at what was written


@dataclass(frozen=True, slots=True)
class ProductBoard:
    """The guesses of one method: how deep they may get, and how many there may be at a depth."""

    depth: Callable[[Header], int]
    width: Callable[[Header], int]
    why_no_guess: Callable[[RunState, Step], str]
    agreement: Callable[[Step], Sequence[float]] | None = None  # cosines of the drafter's own features, if it has any

    def picture(self) -> Picture:
        """Return the view of the guesses."""
        return Picture(self._base, self._frame, self._rows)

    @staticmethod
    def weights(step: Step, guesses: Sequence[int]) -> dict[int, float]:
        """Return the product of each guess."""
        products = products_of(step)
        return {node: products[node] for node in guesses if node in products}

    def _base(self, run: RunState) -> Figure:
        """Return depths by places without a step."""
        depth, rows = min(_DEEPEST, self.depth(run.header)), min(_ROWS, self.width(run.header))
        data = [*Board.layers(), *[points("markers") for _ in range(5)]]
        data[_MARKS] |= {"size": 12}
        names: dict[float, str] = {_WIDE * (place - 1): f"depth {place}" for place in range(1, depth + 1)}
        above: dict[float, str] = {_WRITTEN: "written"} | ({_DRIFT: "own features"} if self.agreement else {})
        yaxis = axis(min(above) - 0.8, rows + 0.4, down=True) | ticks(above)
        xaxis = axis(-0.7, _WIDE * depth - 0.5, side="top") | ticks(names)
        margin = {"l": 84, "r": 8, "t": 22, "b": 4, "pad": 2}
        figure = layout(round(DOWN * (rows + 1.4 - min(above))) + 26, xaxis, yaxis, margin=margin, yaxis3=lifted(yaxis))
        words = "a token outside the drafter's vocabulary"
        key = [{"symbol": SYMBOLS[Sign.MINUS], "colour": "$text", "words": words}]
        least = round(92 + _WIDE * PITCH * depth)
        return {"data": data, "layout": figure, "least": least, "label": "Guesses by depth and product", "key": key}

    def _frame(self, run: RunState, k: int) -> Patch:
        """Return all guesses with their products, the largest on top; what was written; the drift of the features."""
        step, board, depth = run.steps[k], Board(), min(_DEEPEST, self.depth(run.header))
        beyond = 0
        for place, nodes in enumerate(_by_product(step), start=1):
            beyond += max(0, len(nodes) - _ROWS) if place <= depth else len(nodes)
            for row, node in enumerate(nodes[:_ROWS] if place <= depth else ()):
                board.guess(node, _WIDE * (place - 1), row)
                if (product := products_of(step).get(node)) is not None:
                    board.outcome(_short(product), _WIDE * (place - 1) + 0.55, row)
        foreign = unsayable(step)
        for place, (token, fate) in enumerate(zip(step.emitted[:depth], emitted_fates(step), strict=False)):
            board.learned(token, _WIDE * place, _WRITTEN, fate)
            if place in foreign:
                board.mark(Sign.MINUS, _WIDE * place + 0.75, _WRITTEN)
        for place, cosine in enumerate(self._agreement(step)[:depth]):
            board.outcome(f"{cosine:.2f}", _WIDE * place - 0.4, _DRIFT)
        if beyond:
            board.outcome(f"and {count(beyond, 'more guess', 'more guesses')}", -0.4, _ROWS)
        if len(step.tokens) < 2:
            board.alone(self.why_no_guess(run, step), -0.4)
        return {"data": board.patch(step)}

    def _rows(self, run: RunState, k: int) -> Table:
        """Return all guesses as a table, what was written, and what the drafter cannot say."""
        step, table_rows = run.steps[k], list[TableRow]()
        foreign, cosines = unsayable(step), self._agreement(step)
        for place, (token, code) in enumerate(zip(step.emitted, emitted_fates(step), strict=True)):
            drift = f"own feature {cosines[place]:.2f} of the target's" if place < len(cosines) else ""
            sign = ", ".join(filter(None, ("cannot be drafted" if place in foreign else "", drift)))
            sign_cell: Cell = {"commit": sign} if sign else None
            written = text_of(run, token), f"depth {place + 1}", "written", None, fate_label(code), sign_cell
            table_rows.append(TableRow(written, since="commit"))
        products, chances = products_of(step), panel_of(step).get("chances", [])
        for place, nodes in enumerate(_by_product(step), start=1):
            for node in nodes:
                chance = share(chances[node - 1]) if node <= len(chances) else None
                product = share(products[node]) if node in products else None
                cells = (text_of(run, step.tokens[node]), f"depth {place}", chance, product, fate_of(step, node), None)
                table_rows.append(TableRow(cells, node))
        words = () if len(step.tokens) > 1 else (f"no guess: {self.why_no_guess(run, step)}",)
        return Table(("Token", "Depth", "Probability", "Product", "Fate", "Drafter"), table_rows, words)

    def _agreement(self, step: Step) -> Sequence[float]:
        return self.agreement(step) if self.agreement else ()


def origin(step: Step, by: str) -> str:
    """Say which layers the drafter reads, and of how many guesses the best are kept; `by` are the words before it."""
    layers = panel_of(step).get("layers", [])
    made = panel_of(step).get("made", 0)
    drafter = f"a drafter on {count(len(layers), 'layer')} of the target" if layers else "the drafter"
    return f" {by} {drafter}" + (f", the best of {made}" if made > step.drafted > 0 else "")


def learned(run: RunState, step: Step) -> str:
    """Say which written tokens the drafter's vocabulary lacks."""
    words = unsayable_words(run, step)
    return f"{words}." if words else ""


def _short(product: float) -> str:
    return f"{product:.2f}" if product >= 0.005 else "<.01"


def _by_product(step: Step) -> list[list[int]]:
    """Return the guesses of every depth, the largest product first."""
    products, depths = products_of(step), depths_of(step.parents) if step.parents else ()
    levels: list[list[int]] = [[] for _ in range(max(depths, default=0))]
    for node in range(1, len(step.tokens)):
        levels[depths[node] - 1].append(node)
    return [sorted(nodes, key=lambda node: (-products.get(node, 0.0), node)) for nodes in levels]
