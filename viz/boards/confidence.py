"""Draws a drafter's confidence in every token of its chain, as bars with the threshold below which it stops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from decoding.types import Header, Step

from ..cells import PITCH, PlotTrace, axis, layout, lifted, line, packed, points, ticks
from ..palette import Fate
from ..run_state import RunState
from ..sources import parse
from ..stream.encode import pack
from ..tables import Table, TableRow, fate_of, text_of
from ..view import Figure, Patch, Picture
from ..wording import under
from .board import Board

_LINE = 8  # part of the figure
_LOW = -0.16  # the row of the tokens, below the bars
_SHOWN = 24  # tokens of a chain


@dataclass(frozen=True, slots=True)
class ConfidenceBoard:
    """The bars of one method, with its longest chain, its threshold and its confidence."""

    label: str
    gamma: Callable[[Header], int]
    limit: Callable[[Header], float]  # 0 stops nothing
    confidence: Callable[[Step], Sequence[float]]
    why_stopped: Callable[[Header, Step], str]

    def picture(self) -> Picture:
        """Return the picture of the bars."""
        return Picture(self._base, self._frame, self._rows)

    def weights(self, step: Step, guesses: Sequence[int]) -> dict[int, float]:
        """Return the confidence of each guess, by its number in the chain."""
        confidence, weights = self.confidence(step), dict[int, float]()
        for node in guesses:
            _, numbers = parse(step.sources[node])
            if numbers and 0 < numbers[0] <= len(confidence):
                weights[node] = confidence[numbers[0] - 1]
        return weights

    def notes(self, run: RunState, step: Step, guesses: Sequence[int]) -> list[tuple[int, str]]:
        """Compare the confidence in each guess with the threshold."""
        limit, sure = self.limit(run.header), zip(guesses, self.confidence(step), strict=False)
        return [(node, f"{share:.2f}" + (f" &lt; {limit:g}" if share < limit else "")) for node, share in sure]

    def _base(self, run: RunState) -> Figure:
        gamma, limit = min(_SHOWN, self.gamma(run.header)), self.limit(run.header)
        bars: PlotTrace = {"type": "bar", "x": [], "y": [], "width": 0.62, "hoverinfo": "none", "showlegend": False}
        pattern = {"shape": "", "size": 6}
        bars["marker"] = {"color": "$proposed", "opacity": 0.75, "line": {"width": 0}, "pattern": pattern}
        data = [*Board.layers(), bars, line("$text", 1.5, "dash"), *[points("markers") for _ in range(3)]]
        if limit:
            data[_LINE] |= {"x": [0.4, gamma + 0.6], "y": [limit, limit]}
        levels: dict[float, str] = {0.0: "0", 0.5: "0.5", 1.0: "1"}
        yaxis = axis(-0.28, 1.22) | ticks(levels) | {"showgrid": True, "gridcolor": "$faint"}
        margin = {"l": 40, "r": 8, "t": 8, "b": 4, "pad": 2}
        figure = layout(260, axis(-0.4, gamma + 1.2), yaxis, margin=margin, yaxis3=lifted(yaxis, -0.08))
        return {"data": data, "layout": figure, "least": round(PITCH * (gamma + 1.6)) + 48, "label": self.label}

    def _frame(self, run: RunState, k: int) -> Patch:
        step, board = run.steps[k], Board()
        if step.tokens:
            board.context(step.tokens[0], 0, _LOW, Fate.ROOT, 0)
        nodes = [*range(1, min(_SHOWN + 1, len(step.tokens)))]
        for node in nodes:
            board.guess(node, node, _LOW)
        values, words = self._measured(run.header, step, nodes)
        board.outcome(words, -0.3, 1.14)
        for x, value in enumerate(values, start=1):
            board.outcome(f"{value:.2f}", x - 0.3, min(value + 0.06, 1.06))
        bars: PlotTrace = {"x": packed([*range(1, len(values) + 1)]), "y": pack(values, "f4")} if values else {}
        bars |= {"customdata": packed([*range(1, len(values) + 1)])} if values else {}
        return {"data": [*board.patch(step), bars]}

    def _rows(self, run: RunState, k: int) -> Table:
        step = run.steps[k]
        nodes = [*range(1, len(step.tokens))]
        values, words = self._measured(run.header, step, nodes)
        rows = [TableRow((text_of(run, step.tokens[0]), "root", fate_of(step, 0), None), 0)] if step.tokens else []
        for node, value in zip_longest(nodes, values):
            confidence = None if value is None else f"{value:.2f}"
            rows.append(TableRow((text_of(run, step.tokens[node]), node, fate_of(step, node), confidence), node))
        return Table(("Token", "Guess", "Fate", "Confidence"), rows, (words,) if words else ())

    def _measured(self, header: Header, step: Step, nodes: Sequence[int]) -> tuple[Sequence[float], str]:
        """Return the confidence in the guesses and a remark on it; the recorded q where no limit asked for it."""
        values = self.confidence(step)[: len(nodes)]
        if not values and nodes and step.q and all(step.q[node] is not None for node in nodes):
            return [step.q[node] or 0.0 for node in nodes], "The drafter's probability of each token"
        if values or self.limit(header):
            return values, self.why_stopped(header, step)
        return [], "Confidence is recorded only where a limit is set"


def unsure(values: Sequence[float], limit: float) -> str:
    """Say that the drafter stopped because its confidence was too low; "" if it was not."""
    if not values or values[-1] >= limit:
        return ""
    return f"Stopped: {under(values[-1], limit)}"


def shares(recorded: Sequence[float]) -> Sequence[float]:
    """Return the recorded confidences; none if one of them is not a probability."""
    return recorded if all(0 <= share <= 1 for share in recorded) else ()
