"""The step's tree of guesses: depth to the right, a row for every branch, and the fate of every guess.

The layout is that of `tree_layout`, so the page can compute it from the step's own columns. A window's cells are not
part of the tree. After the accepted path comes the target's own token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from decoding import tree
from decoding.types import Header, Step

from .. import ranks
from ..cells import LETTERS, axis, labels, layout, line, packed, points
from ..fates import emitted_fates, node_fates
from ..methods import inspired_nodes, screen_of
from ..palette import FATE_RANGE, FATE_SCALE, MEANINGS, Fate
from ..run_state import RunState
from ..stream import encode
from ..tree_layout import rows
from ..view import Figure, Patch, View

MOST = 512  # guesses that are drawn
NAMED = 40  # guesses that all carry their texts
_ANSWERED = 16  # guesses up to which the target's choice after wrong ones has room
_CUT = 12  # characters of a text beside a node
_LEAST, _WIDEST = 4, 12  # rows that there is room for; depth that the figure holds from the beginning
_LIKELY, _FAIR = 0.5, 0.1  # weights of a thick and of a middling edge
_LOOK_FOR = "Follow the thick line: it is the branch that the target followed, up to its own token."
_ROWS = 20  # names of rows that have room

_Named = TypeVar("_Named")


def shows(header: Header) -> bool:
    """Return True if a run has guesses, and its record holds them."""
    return screen_of(header).guesses and header.record != "off"


def base(run: RunState) -> Figure:
    """Return the figure without a step."""
    screen, deepest = screen_of(run.header), _deepest(run.header)
    fates = {"colorscale": FATE_SCALE, "cmin": FATE_RANGE[0], "cmax": FATE_RANGE[1], "showscale": False}
    small, quiet = {"size": LETTERS, "color": "$text"}, {"size": LETTERS, "color": "$muted"}
    chosen = _elbows("$text", 1.5, "dot") | {"mode": "lines+markers+text", "textposition": "top center"}
    wanted = MEANINGS[Fate.CORRECTION]
    mark = {"size": [0, 14], "opacity": 1, "line": {"width": 0}, "color": wanted.colour, "symbol": wanted.symbol}
    chosen |= {"marker": mark, "textfont": small, "hoverinfo": "none"}
    beneath = {"marker": {"size": 14, "opacity": 0}, "textposition": "bottom center"}
    data = [
        _elbows("$muted", 1),
        _elbows("$muted", 2.6),
        _elbows("$muted", 4.5),
        _elbows("$accepted", 5),
        chosen,
        _nodes(size=12, color=MEANINGS[Fate.ROOT].colour, symbol=MEANINGS[Fate.ROOT].symbol)
        | {"x": [0], "y": [0], "customdata": [0]},
        _nodes(size=12, line={"width": 1.5, "color": "$paper"}, **fates),
        points("markers", marker={"symbol": MEANINGS[Fate.INSPIRED].symbol, "size": 20, "color": "$inspired"}),
        points("text", textposition="top right", textfont=small),
        points("markers+text", textfont=small | {"style": "italic"}, **beneath),
        labels("right") if screen.notes_follow else points("text", textposition="bottom center", textfont=quiet),
    ]
    along = _depth_names(run.header, deepest)
    x = axis(-0.4, deepest + 1.5, showticklabels=True, tickmode="array")
    x |= {"tickvals": [*along], "ticktext": [*along.values()]}
    y = axis(-1, _LEAST, down=True, showticklabels=screen.row_name is not None, tickmode="array")
    margin = {"l": 76 if y["showticklabels"] else 12, "r": 8, "t": 8, "b": 24}
    height = 220 if screen.chain else 380
    least = 60 + 38 * (deepest + 1)  # pixels
    drawn = layout(height, x, y | {"tickvals": [], "ticktext": []}, margin=margin)
    key = [{"sample": "word", "words": "what the target would have written instead of a wrong guess"}]
    figure: Figure = {"least": least, "data": data, "layout": drawn, "table": {"kind": "branches"}}
    figure |= {"draws": [] if screen.inspired is None else [Fate.INSPIRED], "key": key}
    if ranks.shared(run.header):
        figure = ranks.extended(VIEW, figure, ranks.bands(), ranks.names())
    return figure | ({"look_for": f"{_LOOK_FOR} {screen.weights_are_ranks}"} if screen.weights_are_ranks else {})


def frame(run: RunState, k: int) -> Patch:
    """Return the tree of step k."""
    step = run.steps[k]
    if not step.tokens:
        return {}
    row_of = rows(step)
    guesses = [node for node, row in enumerate(row_of) if node and row is not None][:MOST]
    first, stop = guesses[0] if guesses else 1, guesses[-1] + 1 if guesses and guesses[-1] + 1 < len(row_of) else None
    changed: dict[str, Any] = {"yaxis": {"range": _room(row_of)}}
    depths = tree.depths(step.parents)
    depth = max([depths[node] for node in guesses], default=0)
    if depth > _deepest(run.header):
        along = _depth_names(run.header, depth)
        changed["xaxis"] = {"range": [-0.4, depth + 1.5], "tickvals": [*along]}
        changed["xaxis"]["ticktext"] = {"strings": [*along.values()]}
    if names := _row_names(run.header, step, row_of):
        changed["yaxis"] |= {"tickvals": [row for row, _ in names], "ticktext": {"strings": [n for _, n in names]}}
    likely = weights(run.header, step, guesses)
    data = [
        {"x": encode.edges("depth", first, stop), "y": encode.edges("row", first, stop)},
        _edges(step, [node for node in guesses if _FAIR <= likely.get(node, 0) < _LIKELY]),
        _edges(step, [node for node in guesses if likely.get(node, 0) >= _LIKELY]),
        _taken(step, len(guesses)),
        _own_token(step),
        {"text": encode.node("token", 0, 1)},
        _guesses(first, stop, len(guesses)),
        _at(step, sorted(inspired_nodes(run, k) & set(guesses))),
        _first_names(step, guesses) if len(guesses) > NAMED else {},
        _answers(step, guesses) if len(guesses) <= _ANSWERED else {},
        _notes(run, step, guesses),
    ]
    data = data if guesses else [{}] * 4 + data[4:6] + [{}] * 5
    if step.ranks:
        data += ranks.bands_of(step, row_of, max(depth, _deepest(run.header)) + 1.5)
    return {"data": data, "layout": changed}


def _guesses(first: int, stop: int | None, count: int) -> dict[str, Any]:
    marks = {"color": encode.node("fate", first, stop), "symbol": encode.node("symbol", first, stop)}
    drawn = {
        "x": encode.node("depth", first, stop),
        "y": encode.node("row", first, stop),
        "customdata": encode.node("id", first, stop),
        "marker": marks,
    }
    if count > NAMED:
        return drawn | {"marker": marks | {"size": 7}}
    return drawn | {"text": encode.node("token", first, stop) | {"cut": _CUT}}


def _taken(step: Step, count: int) -> dict[str, Any]:
    """Return the accepted path; its texts where not all guesses have theirs."""
    if len(step.path) < 2:
        return {}
    row_of = rows(step)
    drawn: dict[str, Any] = {"x": [*range(len(step.path))], "y": [row_of[node] or 0 for node in step.path]}
    if count <= NAMED:
        return drawn
    texts = encode.tokens([-1, *(step.tokens[node] for node in step.path[1:])])
    return drawn | {"mode": "lines+text", "text": texts | {"cut": _CUT}}


def _own_token(step: Step) -> dict[str, Any]:
    """Return the token that the target wrote itself, after the accepted path; none if the run was cut before it."""
    if len(step.emitted) <= step.accepted:
        return {}
    end, node_rows, fate = step.path[-1], rows(step), emitted_fates(step)[-1]
    depth, row = len(step.path) - 1, node_rows[end] or 0
    followed = any(parent == end and row is not None for parent, row in zip(step.parents, node_rows, strict=True))
    meaning = MEANINGS[fate]
    return {
        "x": [depth, depth + 1],
        "y": [row, row - (0.5 if row else round(_lift(node_rows), 1)) if followed else row],
        "text": encode.tokens([-1, step.emitted[-1]]),
    } | ({} if fate is Fate.CORRECTION else {"marker": {"color": meaning.colour, "symbol": meaning.symbol}})


def _answers(step: Step, guesses: Sequence[int]) -> dict[str, Any]:
    """Return what the target would have written after wrong guesses, once for each of them."""
    fates, behind = node_fates(step), dict[int, int]()
    for node in guesses:
        if fates[node] is Fate.REJECTED and step.parents[node] not in step.path:
            behind.setdefault(step.parents[node], node)
    if not behind or not step.choices:
        return {}
    texts = encode.tokens([step.choices[parent] for parent in behind])
    return _at(step, [*behind.values()]) | {"text": texts | {"cut": _CUT}}


def _first_names(step: Step, guesses: Sequence[int]) -> dict[str, Any]:
    """Return the texts of the root's children."""
    row_of = rows(step)
    first = _thinned([(row_of[node] or 0, node) for node in guesses if not step.parents[node]])
    return _at(step, [node for _, node in first]) | {
        "text": encode.tokens([step.tokens[node] for _, node in first]) | {"cut": _CUT}
    }


def _at(step: Step, nodes: Sequence[int]) -> dict[str, Any]:
    """Return where nodes are drawn."""
    if not nodes:
        return {}
    row_of, depths = rows(step), tree.depths(step.parents)
    return {"x": packed([depths[node] for node in nodes]), "y": packed([row_of[node] or 0 for node in nodes])}


def _edges(step: Step, nodes: Sequence[int]) -> dict[str, Any]:
    """Return the edges that lead to some of the nodes."""
    if not nodes:
        return {}
    row_of, depths = rows(step), tree.depths(step.parents)
    ends = [(step.parents[node], node) for node in nodes]
    return {
        "x": [place for above, node in ends for place in (depths[above], depths[node], None)],
        "y": [row for above, node in ends for row in (row_of[above], row_of[node], None)],
    }


def _lift(node_rows: Sequence[int | None]) -> float:
    """Return how many rows above the first one the target's own token is clear of the texts below it."""
    return max(0.75, 0.08 * max(row for row in node_rows if row is not None))


def _room(node_rows: Sequence[int | None]) -> list[float]:
    last = max(row for row in node_rows if row is not None)
    spare = max(0, _LEAST - 1 - last) / 2
    return [round(last + 0.9 + spare, 1), round(-max(0.6, 0.07 * last) - spare - _lift(node_rows), 1)]


def _deepest(header: Header) -> int:
    """Return how deep the figure is from the beginning."""
    return min(_WIDEST, screen_of(header).depth(header))


def _depth_names(header: Header, deepest: int) -> dict[int, str]:
    """Return the names of depths: of those that guesses have, since after them the target is alone."""
    places = [*range(1, _WIDEST + 1), 16, 24, 32, 48, 64, 96, 128]
    name = screen_of(header).depth_name
    return {0: "root"} | {place: f"{name}{place}" for place in places if place <= deepest}


def weights(header: Header, step: Step, guesses: Sequence[int]) -> dict[int, float]:
    """Return the method's probabilities of its guesses: the recorded ones, else those in its panel."""
    recorded = {node: q for node in guesses if (q := step.q[node]) is not None} if step.q else {}
    return {**screen_of(header).weights(step, guesses), **recorded}


def _notes(run: RunState, step: Step, guesses: Sequence[int]) -> dict[str, Any]:
    """Return the method's words beside nodes."""
    screen, node_rows, depths = screen_of(run.header), rows(step), tree.depths(step.parents)
    right, down = (0.25, 0) if screen.notes_follow else (0, 0.5)
    notes = screen.notes(run, step, guesses)
    if not notes:
        return {}
    x, y = [depths[node] + right for node, _ in notes], [(node_rows[node] or 0) + down for node, _ in notes]
    return {"x": x, "y": y, "text": [words for _, words in notes]}


def _row_names(header: Header, step: Step, node_rows: Sequence[int | None]) -> list[tuple[int, str]]:
    """Return what the branches of the root are called."""
    name = screen_of(header).row_name
    if name is None:
        return []
    begins = [(row, node) for node, row in enumerate(node_rows) if row is not None and step.parents[node] == 0]
    named = ((row, name(step, node)) for row, node in begins)
    return _thinned([(row, words) for row, words in named if words])


def _thinned(names: Sequence[tuple[int, _Named]]) -> list[tuple[int, _Named]]:
    """Keep as many of the names in rows as there is room for, in their order."""
    placed = list[tuple[int, _Named]]()
    apart = names[-1][0] // _ROWS + 1 if names else 1
    for row, name in names:
        if not placed or row - placed[-1][0] >= apart:
            placed.append((row, name))
    return placed


def _elbows(colour: str, width: float, dash: str = "solid") -> dict[str, Any]:
    drawn = line(colour, width, dash)
    text = {"textposition": "top right", "textfont": {"size": LETTERS, "color": "$text"}}
    return drawn | {"line": drawn["line"] | {"shape": "hvh"}} | text


def _nodes(**marker: Any) -> dict[str, Any]:
    text = {"textposition": "top center", "textfont": {"size": LETTERS, "color": "$text"}}
    return points("markers+text", marker=marker, hoverinfo="none", **text)


VIEW = View(
    name="tree",
    label="Token tree",
    kind="plot",
    look_for=_LOOK_FOR,
    base=base,
    frame=frame,
    shows=shows,
    nodes=(None, None, None, None, "own", "points", "points", None, None, None, None),
    phases=(*("propose",) * 3, "accept", "accept", *("propose",) * 4, "accept", "propose"),
    columns=(
        ("Token", "token"),
        ("Node", "number"),
        ("Depth", "depth"),
        ("Parent node", "parent"),
        ("Where from", "source"),
        ("Fate", "fate"),
        ("Drafter's probability", "q"),
        ("Target's next token", "choice"),
    ),
)
