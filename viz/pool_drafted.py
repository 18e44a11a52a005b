"""What a drafter or heads wrote: Medusa's guesses by head and rank, and how sure a drafter was of its tokens."""

from __future__ import annotations

from decoding.types import Header, Step

from . import panel
from .cells import PITCH, Board, Trace, axis, layout, lifted, line, packed, points, ticks
from .encode import pack
from .palette import Fate
from .story import Story, emitted_fates
from .unguessed import reason
from .view import Figure, Patch

_RANKS, _HEADS = 14, 12  # shown
_LINE = 8  # trace
_LOW = -0.16  # where tokens stand below the bars
# Why a draft ended, by the word in Kangaroo's panel.
_STOPPED = {
    "start": "no draft: the prompt has to be read first",
    "unsure": "stopped: less sure than the bound",
    "gamma": "stopped: γ tokens are written",
    "budget": "stopped: no more tokens are asked for",
    "end": "stopped: an end of text",
    "interrupted": "stopped: the run was interrupted",
}


# Medusa


def heads_base(header: Header) -> Figure:
    """Heads by ranks without a step."""
    data = [*Board.traces(), *[points("markers") for _ in range(5)]]
    data[6]["marker"] |= {"size": 30, "color": "$text"}
    names: dict[float, str] = {head: f"head {head}" for head in range(1, _HEADS + 1)}
    wide = 1.75  # a head's place is wider than a cell: few heads, and their tokens' texts stand out
    ranks: dict[float, str] = {rank: f"rank {rank}" for rank in range(_RANKS)} | {-1.5: "written"}
    yaxis = axis(-2.4, _RANKS + 0.4, down=True) | ticks(ranks)
    xaxis = axis(0.3, 6.7, side="top") | ticks(names)
    margin = {"l": 58, "r": 8, "t": 22, "b": 4, "pad": 2}
    figure = layout(round(PITCH * (_RANKS + 2.8)) + 26, xaxis, yaxis, margin=margin, yaxis3=lifted(yaxis))
    key = [{"symbol": "circle-open", "colour": "$text", "words": "a head's guess that was written"}]
    told = {"least": round(66 + wide * PITCH * 6), "label": "Heads and ranks", "key": key}
    told["table"] = Board.table("cell", "Rank", column="Head", signed={"100": "the target's own token"})
    return {"data": data, "layout": figure, **told}


def heads(story: Story, k: int) -> Patch:
    """Every guess of every head that the tree uses; a ring around what was written."""
    step, board = story.steps[k], Board()
    chosen: dict[tuple[int, int], int] = {}
    beyond, taken = 0, frozenset(step.path)
    for node in range(1, len(step.tokens)):
        kind, place = panel.detail(step.sources[node])
        if kind != "medusa" or len(place) != 2:
            continue
        head, rank = place
        if rank >= _RANKS or head > _HEADS:
            beyond += 1
            continue
        if (head, rank) not in chosen or node in taken:
            chosen[head, rank] = node
    for (head, rank), node in sorted(chosen.items()):
        board.guess(node, head, rank)
    hits = step.panel.get("hits")
    for head, rank in enumerate(hits[:_HEADS] if isinstance(hits, list) else (), start=1):
        if type(rank) is int and 0 <= rank < _RANKS and (head, rank) in chosen:
            board.mark(100, head, rank)
    for x, (token, fate) in enumerate(zip(step.emitted, emitted_fates(step), strict=True), start=1):
        if x <= _HEADS:
            board.learned(token, x, -1.5, fate)
    if beyond:
        board.outcome(f"and {beyond} guesses of higher ranks", 0.4, _RANKS)
    if len(step.tokens) < 2:
        why = reason(story, step)
        board.outcome(f"no guess{why and ': '}{why}", 0.4, 0)
    known = min(_HEADS, max(1, panel.whole(step.panel.get("heads"), 1)))
    return {"data": board.patch(step), "layout": {"xaxis": {"range": [0.3, known + 0.7]}}}


# A draft model's and Kangaroo's confidence


def confidence_base(header: Header) -> Figure:
    """The bars without a step."""
    gamma = min(24, panel.setting(header, "gamma", 1, 64, 6))
    bars: Trace = {"type": "bar", "x": [], "y": [], "width": 0.62, "hoverinfo": "none", "showlegend": False}
    bars["marker"] = {"color": "$proposed", "opacity": 0.75, "line": {"width": 0}, "pattern": {"shape": "", "size": 6}}
    data = [*Board.traces(), bars, line("$text", 1.5, "dash"), *[points("markers") for _ in range(3)]]
    bound = _bound(header)
    if bound is not None:
        data[_LINE] |= {"x": [0.4, gamma + 0.6], "y": [bound, bound]}
    levels: dict[float, str] = {0.0: "0", 0.5: "0.5", 1.0: "1"}
    yaxis = axis(-0.28, 1.22) | ticks(levels) | {"showgrid": True, "gridcolor": "$faint"}
    margin = {"l": 40, "r": 8, "t": 8, "b": 4, "pad": 2}
    figure = layout(260, axis(-0.4, gamma + 1.2), yaxis, margin=margin, yaxis3=lifted(yaxis, -0.08))
    name = "Confidence of the early exit" if header.method == "kangaroo" else "Confidence of the drafter"
    told = {"least": round(PITCH * (gamma + 1.6)) + 48, "label": name}
    told["table"] = Board.table("column", "Guess", told="Confidence")
    return {"data": data, "layout": figure, **told}


def confidence(story: Story, k: int) -> Patch:
    """How sure the drafter was of each token it wrote, and where it stopped."""
    step, board = story.steps[k], Board()
    if step.tokens:
        board.context(step.tokens[0], 0, _LOW, Fate.ROOT, 0)
    nodes = [*range(1, min(25, len(step.tokens)))]
    for node in nodes:
        board.guess(node, node, _LOW)
    sure = panel.shares(step.panel.get("confidence"))[: len(nodes)]
    values, words = [*sure], _words(story.header, step, bool(sure))
    if not sure and nodes and step.q and all(step.q[node] is not None for node in nodes):
        values = [share or 0.0 for share in step.q[1 : len(nodes) + 1]]
        words = "the drafter's probability of each token"
    board.outcome(words, -0.3, 1.14)
    for x, value in enumerate(values, start=1):
        board.outcome(f"{value:.2f}", x - 0.3, min(value + 0.06, 1.06))
    bars: Trace = {"x": packed([*range(1, len(values) + 1)]), "y": pack(values, "f4")} if values else {}
    bars |= {"customdata": packed([*range(1, len(values) + 1)])} if values else {}
    return {"data": [*board.patch(step), bars]}


def _bound(header: Header) -> float | None:
    """The confidence below which the drafter stops; None where nothing stops it."""
    return panel.share(header.params.get("eta" if header.method == "kangaroo" else "threshold")) or None


def _words(header: Header, step: Step, told: bool) -> str:
    """What there is to say about the end of the draft."""
    stopped = _STOPPED.get(panel.text(step.panel.get("stopped")), "")
    bound = _bound(header)
    if bound is None and not told:
        return "its confidence is not recorded, because nothing asked for it: set a bound to see it"
    if header.method == "draft_model" and told and bound is not None:
        sure = panel.shares(step.panel.get("confidence"))
        stopped = _STOPPED["unsure"] if sure and sure[-1] < bound else ""
    return f"bound {bound:g}, {stopped}" if bound is not None and stopped else stopped
