"""Draws boards: rows of cells with tokens, words beside them, and signs for their fates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from decoding.types import Step

from ..cells import (
    DOWN,
    SYMBOLS,
    WIDE,
    WIDE_CUT,
    CellLayer,
    Sign,
    StepPhase,
    at,
    axis,
    labels,
    layout,
    lifted,
    line,
    named_signs,
    packed,
    points,
    signs,
    squares,
    texts,
)
from ..fates import node_fates
from ..palette import Fate
from ..stream.encode import Encoded, fates, node, pack
from ..view import Figure

_Cell = tuple[int, float, float, int, Fate]  # token, column, row, node, fate

_ABOVE = -0.8  # the upper edge of a board
# The sign of what the pool did with an n-gram.
OUTCOMES = {"added": Sign.PLUS, "refreshed": Sign.DOWN, "evicted-oldest": Sign.BOXED_PLUS}
GONE, GAINED = Sign.MINUS, Sign.STAR  # what was dropped, what the target helped to make
# The same signs in words, for tables.
SIGNED = {
    Sign.PLUS: "new",
    Sign.DOWN: "already held, now the newest",
    Sign.BOXED_PLUS: "new, replacing the oldest",
    GONE: "gone",
    GAINED: "helped by the target",
}


def key(*signs: Sign) -> list[dict[str, str]]:
    """Explain signs, for a view's own key."""
    return [{"symbol": SYMBOLS[sign], "colour": "$text", "words": SIGNED[sign]} for sign in signs]


def shown_of(shown: int, number: int) -> str:
    """Say how many rows are shown; "" if all are."""
    return f"{shown} of {number} shown" if shown < number else ""


def base(left: float, right: float, rows: float, label: str) -> Figure:
    """Return a board of cells without a step, from column `left` to `right`, and from row 0 down to `rows`."""
    layers = Board.layers(wide=True)
    data = [*layers, points("markers"), line("$muted", 1.2, "dot"), *[points("markers") for _ in range(3)]]
    height = round(DOWN * (rows - _ABOVE)) + 16
    yaxis = axis(_ABOVE, rows, down=True)
    figure = layout(height, axis(left, right), yaxis, yaxis3=lifted(yaxis))
    return {"data": data, "layout": figure, "least": round(WIDE * (right - left)) + 16, "label": label}


class Board:
    """The cells of one step, layer by layer; `layers` and `patch` have the same order."""

    phases: tuple[StepPhase, ...] = ("propose", "accept", "propose", "commit", "propose", "accept", "commit")
    nodes: tuple[str | None, ...] = ("points", None, "points", None, None, None, None)

    def __init__(self) -> None:
        self._guesses: list[tuple[float, float, int]] = []
        self._context: list[_Cell] = []
        self._learned: list[tuple[int, float, float, Fate]] = []
        self._words: dict[str, list[tuple[str, float, float]]] = {"label": [], "outcome": []}
        self._marks: list[tuple[Sign, float, float]] = []

    @staticmethod
    def layers(*, wide: bool = False) -> list[CellLayer]:
        """Return the layers without their places; wide cells need a row for each step of the axis of y."""
        return [
            squares(wide=wide),
            signs(lifted=True),
            squares(opacity=0.22, wide=wide),
            squares(opacity=0.3, wide=wide),
            labels("left"),
            labels("right", "$text"),
            named_signs(9),
        ]

    def guess(self, place: int, x: float, y: float) -> None:
        """Draw a node of the step that the target judges."""
        self._guesses.append((x, y, place))

    def context(self, token: int, x: float, y: float, fate: Fate, place: int = -1) -> None:
        """Draw a token that is known from the beginning of the step."""
        self._context.append((token, x, y, place, fate))

    def learned(self, token: int, x: float, y: float, fate: Fate) -> None:
        """Draw a token that is new in the step."""
        self._learned.append((token, x, y, fate))

    def label(self, words: str, x: float, y: float) -> None:
        """Draw words that end at a position."""
        self._words["label"].append((words, x, y))

    def outcome(self, words: str, x: float, y: float) -> None:
        """Draw words on what became of a guess, beginning at a position."""
        self._words["outcome"].append((words, x, y))

    def alone(self, why: str, x: float) -> None:
        """Draw words in the first row of a step without guesses."""
        self.outcome(alone(why), x, 0)

    def mark(self, sign: Sign, x: float, y: float) -> None:
        """Draw a sign for the fate of a row."""
        self._marks.append((sign, x, y))

    def patch(self, step: Step) -> list[CellLayer]:
        """Return the changes of every layer."""
        judged, marked = self._judged(step)
        return [
            judged,
            marked,
            _filled(self._context),
            _filled([(token, x, y, -1, fate) for token, x, y, fate in self._learned]),
            _written(self._words["label"]),
            _written(self._words["outcome"]),
            _marked(self._marks),
        ]

    def _judged(self, step: Step) -> tuple[CellLayer, CellLayer]:
        """Return the guesses in the order of their nodes, and the signs of their fates."""
        if not self._guesses:
            return {}, {}
        xs, ys, places = zip(*sorted(self._guesses, key=lambda guess: guess[2]), strict=True)
        columns, where = step_columns(step, places, WIDE_CUT), at(xs, ys)
        judged = where | {"text": columns["token"], "nodes": columns["id"], "fate": columns["fate"]}
        return judged, where | {"sign": columns["symbol"]}


def alone(why: str) -> str:
    """Say that a step has no guesses, and why."""
    return f"No guess{why and ': '}{why}"


def step_columns(step: Step, places: Sequence[int], cut: int) -> dict[str, Encoded]:
    """Return texts, fates, signs and numbers of some nodes: the step's own columns where the nodes lie side by side."""
    first, stop = places[0], places[0] + len(places)
    if [*places] == [*range(first, stop)]:
        names: tuple[Literal["token", "fate", "symbol", "id"], ...] = ("token", "fate", "symbol", "id")
        side_by_side = {name: node(name, first, stop) for name in names}
        return side_by_side | {"token": {**side_by_side["token"], "cut": cut}}
    codes = [node_fates(step)[place] for place in places]
    columns = {"token": texts([step.tokens[place] for place in places], cut), "id": packed(places)}
    return columns | {"fate": fates(codes), "symbol": {"symbols": pack(codes, "u1")}}


def _filled(given: Sequence[_Cell]) -> CellLayer:
    if not given:
        return {}
    ids, xs, ys, nodes, codes = zip(*given, strict=True)
    filled = at(xs, ys) | {"text": texts(ids, WIDE_CUT), "fate": packed(codes)}
    return filled | {"nodes": packed(nodes)} if any(place >= 0 for place in nodes) else filled


def _written(given: Sequence[tuple[str, float, float]]) -> CellLayer:
    if not given:
        return {}
    words, xs, ys = zip(*given, strict=True)
    return at(xs, ys) | {"text": {"strings": list(words)}}


def _marked(given: Sequence[tuple[Sign, float, float]]) -> CellLayer:
    if not given:
        return {}
    chosen, xs, ys = zip(*given, strict=True)
    return at(xs, ys) | {"sign": packed(chosen)}
