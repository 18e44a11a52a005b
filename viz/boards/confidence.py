"""How sure a drafter was of every token of its chain, as bars with the limit below which it stops."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from decoding.types import Step

from ..cells import PITCH, Trace, axis, layout, lifted, line, packed, points, ticks
from ..palette import Fate
from ..run_state import RunState
from ..sources import parse
from ..stream.encode import pack
from ..tables import Row, Table, fate_of, text_of
from ..view import Figure, Patch
from ..wording import under
from .board import Board

_LINE = 8  # part of the figure
_LOW = -0.16  # where tokens stand below the bars
_SHOWN = 24  # tokens of a chain


def base(label: str, gamma: int, limit: float) -> Figure:
    """The bars without a step, of chains of up to `gamma` tokens; a `limit` of 0 stops nothing."""
    gamma = min(_SHOWN, gamma)
    bars: Trace = {"type": "bar", "x": [], "y": [], "width": 0.62, "hoverinfo": "none", "showlegend": False}
    bars["marker"] = {"color": "$proposed", "opacity": 0.75, "line": {"width": 0}, "pattern": {"shape": "", "size": 6}}
    data = [*Board.layers(), bars, line("$text", 1.5, "dash"), *[points("markers") for _ in range(3)]]
    if limit:
        data[_LINE] |= {"x": [0.4, gamma + 0.6], "y": [limit, limit]}
    levels: dict[float, str] = {0.0: "0", 0.5: "0.5", 1.0: "1"}
    yaxis = axis(-0.28, 1.22) | ticks(levels) | {"showgrid": True, "gridcolor": "$faint"}
    margin = {"l": 40, "r": 8, "t": 8, "b": 4, "pad": 2}
    figure = layout(260, axis(-0.4, gamma + 1.2), yaxis, margin=margin, yaxis3=lifted(yaxis, -0.08))
    return {"data": data, "layout": figure, "least": round(PITCH * (gamma + 1.6)) + 48, "label": label}


def frame(step: Step, confidence: Sequence[float], limit: float, stopped: str) -> Patch:
    """How sure the drafter was of each token that it wrote, and why it stopped, as far as that is known."""
    board = Board()
    if step.tokens:
        board.context(step.tokens[0], 0, _LOW, Fate.ROOT, 0)
    nodes = [*range(1, min(_SHOWN + 1, len(step.tokens)))]
    for node in nodes:
        board.guess(node, node, _LOW)
    values, words = _measured(step, nodes, confidence, limit, stopped)
    board.outcome(words, -0.3, 1.14)
    for x, value in enumerate(values, start=1):
        board.outcome(f"{value:.2f}", x - 0.3, min(value + 0.06, 1.06))
    bars: Trace = {"x": packed([*range(1, len(values) + 1)]), "y": pack(values, "f4")} if values else {}
    bars |= {"customdata": packed([*range(1, len(values) + 1)])} if values else {}
    return {"data": [*board.patch(step), bars]}


def table(run: RunState, k: int, confidence: Sequence[float], limit: float, stopped: str) -> Table:
    """The chain as a table: how sure the drafter was of each token, and what became of it."""
    step = run.steps[k]
    nodes = [*range(1, len(step.tokens))]
    values, words = _measured(step, nodes, confidence, limit, stopped)
    rows = [Row((text_of(run, step.tokens[0]), "root", fate_of(step, 0), None), 0)] if step.tokens else []
    for node, value in zip_longest(nodes, values):
        confidence_of = None if value is None else f"{value:.2f}"
        rows.append(Row((text_of(run, step.tokens[node]), node, fate_of(step, node), confidence_of), node))
    return Table(("Token", "Guess", "Fate", "Confidence"), rows, (words,) if words else ())


def _measured(
    step: Step, nodes: Sequence[int], confidence: Sequence[float], limit: float, stopped: str
) -> tuple[Sequence[float], str]:
    """The confidence in the guesses, and what is to be said of it; the recorded q where nothing asked the drafter."""
    values = confidence[: len(nodes)]
    if not values and nodes and step.q and all(step.q[node] is not None for node in nodes):
        return [step.q[node] or 0.0 for node in nodes], "The drafter's probability of each token"
    if values or limit:
        return values, stopped
    return [], "Its confidence is not recorded, because nothing asked for it: set a limit to see it"


def why_stopped(values: Sequence[float], limit: float) -> str:
    """Why a drafter stopped that was not sure enough of the last token that it wrote; nothing where it was."""
    if not values or values[-1] >= limit:
        return ""
    return f"Stopped: {under(values[-1], limit)}"


def shares(recorded: Sequence[float]) -> Sequence[float]:
    """Recorded confidences; none where one of them is no probability."""
    return recorded if all(0 <= share <= 1 for share in recorded) else ()


def weights(step: Step, guesses: Sequence[int], confidence: Sequence[float]) -> dict[int, float]:
    """The confidence of each guess, by its place in the chain."""
    found: dict[int, float] = {}
    for node in guesses:
        _, numbers = parse(step.sources[node])
        if numbers and 0 < numbers[0] <= len(confidence):
            found[node] = confidence[numbers[0] - 1]
    return found


def notes(guesses: Sequence[int], confidence: Sequence[float], limit: float) -> list[tuple[int, str]]:
    """How sure the drafter was of each guess, against the limit below which it stops."""
    sure = zip(guesses, confidence, strict=False)
    return [(node, f"{share:.2f}" + (f" &lt; {limit:g}" if share < limit else "")) for node, share in sure]
