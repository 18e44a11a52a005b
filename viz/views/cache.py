"""The slots of the key/value cache after a step: what was read, written, committed, left behind and overwritten.

A ring is drawn as lines of a page: after the last slot of the last line comes the first one again. A step's rows are
written after the stored tokens; then the accepted ones move down, and the rest is free to be overwritten. Below the
page are the tokens of these rows, in the order of their slots.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from decoding.types import Header, Role, Step

from .. import ranks
from ..cache_slots import CacheState, Use, cache_state, chunks, fed_nodes
from ..cells import LETTERS, PITCH, PlotTrace, axis, labels, layout, packed, points, squares, texts
from ..fates import node_fates
from ..palette import MEANINGS, Fate
from ..run_state import RunState
from ..stream import encode
from ..tables import Cell, Table, TableRow
from ..view import Figure, Patch, View

SlotRun = tuple[range, Fate]  # neighbouring places and what was fed for them

_LINES = 12  # of slots, at most, where their number is known beforehand
_NICE = 16  # a line holds a multiple of so many
_SPARE = 64  # slots after the longest text, for guesses
_ACROSS, _TOKENS = 12, 24  # tokens of the step's rows in a line, and in all
_STRIP = 2.9  # lines of the page that they take, with their words
_NAMED = 8  # chunks that have room for their names
_HATCHES = {Fate.PROMPT: ".", Fate.REJECTED: "/", Fate.EXPLORED: "x", Fate.PROPOSED: "."}
_FREE, _LOST = "free", "overwritten: held text"
_USES = {Use.READ: "read", Use.UNTOUCHED: "not read: out of sight, or left by a rejected guess"}
_WRITTEN = {
    Fate.PROMPT: "unread text: written and kept",
    Fate.ROOT: "last token of the text: written and kept",
    Fate.EXPLORED: "window cells: written, then free again",
    Fate.PROPOSED: "guesses: written, not judged yet",
    Fate.ACCEPTED: "accepted guesses: written and kept",
    Fate.REJECTED: "rejected guesses: written, then free again",
}
_LEFT_BEHIND = "left by accepted guesses, which moved down"
# What a step's rows are before the target has judged, and what is in their slots in the end.
_FED = (Fate.PROMPT, Fate.ROOT, Fate.EXPLORED, Fate.PROPOSED)
_LEFT = (Fate.ACCEPTED, Fate.REJECTED)  # explored cells stay as they are
_THICK, _THIN, _BELOW = 0.48, 0.1, 0.3
_READ = {"colour": "$line"}
_UNTOUCHED = {"colour": "$panel", "hatch": "x", "ink": "$line"}
_MOVED = {"colour": "$faint", "hatch": "-", "ink": "$line"}
_KEY = [
    _READ | {"words": "read"},
    _UNTOUCHED | {"words": "seen by no row: too old, or left by an earlier guess"},
    _MOVED | {"words": "left by an accepted guess, which moved to the text"},
    {"colour": "$text", "thin": True, "words": "overwritten"},
]


def base(run: RunState) -> Figure:
    """Return all slots, empty, and the looks of the others."""
    page, lines = _page(run.header)
    marker = {"symbol": "triangle-down", "size": 7, "color": "$text"}
    look = {"textposition": "middle right", "textfont": {"size": LETTERS, "color": "$text"}}
    signs = points("markers+text", marker=marker, **look)
    data = [
        _bars("$paper", line={"width": 1, "color": "$line"}) | _all(lines, page, run.header.slots),
        _bars(**_READ),
        _bars(**_UNTOUCHED),
        *(_bars(MEANINGS[fate].colour, _HATCHES.get(fate, "")) for fate in (*_FED, *_LEFT)),
        _bars(**_MOVED),
        _bars("$text") | {"width": _THIN},
        signs | {"text": ["window"]},
        signs | {"text": ["next"]},
        labels("right", "$text") | {"text": ["overwritten"]},
        squares(),
        labels("right"),
    ]
    x = axis(-0.01 * page, 1.01 * page, showticklabels=True)
    x |= {"tickmode": "linear", "tick0": 0, "dtick": max(_NICE, page // 8 // _NICE * _NICE)}
    names = [f"+{line * page}" for line in range(lines)]
    y = axis(-0.9, lines - 0.3 + _STRIP, down=True, showticklabels=True)
    y |= {"tickmode": "array", "tickvals": [*range(lines)], "ticktext": names}
    margin = {"l": 48, "r": 12, "t": 8, "b": 24}
    figure = layout(70 + round(28 * (lines + _STRIP)), x, y, margin=margin, barmode="overlay")
    named = {"label": f"{VIEW.label} of rank 0"} if ranks.shared(run.header) else {}
    return {"data": data, "layout": figure, "key": _KEY, "least": _ACROSS * PITCH + 60} | named


def frame(run: RunState, k: int) -> Patch:
    """Return the cache as step k found it, wrote it and left it."""
    header, step = run.header, run.steps[k]
    cache = cache_state(header, run.steps, k)
    page, lines = _page(header)
    ring = header.slots or None

    def bars(parts: Iterable[range]) -> dict[str, Any]:
        there = (range(max(cache.first, places.start), places.stop) for places in parts)
        return _at([piece for places in there for piece in _pieces(places, ring, page)])

    shown = max(lines, 0 if ring else -(-cache.highest // page))
    parts, before, after = list(cache.parts), fed(step, cache), left(step, cache)
    data = [
        {} if shown == lines else _all(shown, page),
        bars(places for places, use in parts if use is Use.READ),
        bars(places for places, use in parts if use is Use.UNTOUCHED),
        *(bars(places for places, fate in before if fate is wanted) for wanted in _FED),
        *(bars(places for places, fate in after if fate is wanted) for wanted in _LEFT),
        bars(moved(step, cache)),
        _at(list(_pieces(cache.lost, ring, page)), _BELOW),
        _chunks(header, step, cache, page) or _signs([cache.seen] if cache.seen > cache.first else [], ring, page),
        _signs([cache.kept], ring, page),
        _signs(cache.lost[:1], ring, page, 0.5),
        *_strip(step, cache, ring, page, shown),
    ]
    if shown == lines:
        return {"data": data}
    return {"data": data, "layout": {"yaxis": {"range": [shown - 0.3 + _STRIP, -0.9]}}}


def rows(run: RunState, k: int) -> Table:
    """Return the slots as a table: before the step, as it wrote them, and as it left them."""
    header, step = run.header, run.steps[k]
    cache = cache_state(header, run.steps, k)
    page, lines = _page(header)
    ring = header.slots or None
    slots = ring or max(lines, -(-cache.highest // page)) * page

    def pieces(places: range) -> list[range]:
        there = range(max(cache.first, places.start), places.stop)
        return [range(first, stop) for _, first, stop in _pieces(there, ring, slots)]

    def looks(runs: Iterable[tuple[range, str]]) -> list[tuple[range, str]]:
        return [(piece, words) for places, words in runs for piece in pieces(places)]

    def marks(named: Iterable[tuple[int, str]]) -> dict[int, str]:
        return {place % ring if ring else place: words for place, words in named}

    before = [(range(slots), _FREE), *looks((places, _USES[use]) for places, use in cache.parts if use in _USES)]
    written = before + looks((places, _WRITTEN[fate]) for places, fate in fed(step, cache))
    after = written + looks((places, _WRITTEN[fate]) for places, fate in left(step, cache) if fate in _LEFT)
    after += looks((places, _LEFT_BEHIND) for places in moved(step, cache))
    lost = [range(first, stop) for _, first, stop in _pieces(cache.lost, ring, slots)]
    pending = chunks(header, step)
    begins = [(part.start, f"chunk {i}") for i, part in enumerate(pending, start=1)] if len(pending) > 1 else []
    begins += [(cache.seen, "the window begins")] if cache.seen > cache.first and len(pending) < 2 else []
    table_rows = [
        *(TableRow(cells, since="propose", until="verify") for cells in _slots(before, [], marks(begins))),
        *(TableRow(cells, since="verify", until="commit") for cells in _slots(written, lost, marks(begins))),
        *(
            TableRow(cells, since="commit")
            for cells in _slots(after, lost, marks([(cache.kept, "written next"), *begins]))
        ),
    ]
    return Table(("What", "First slot", "Last slot", "Slots", "Sign"), table_rows)


def _slots(looks: Sequence[tuple[range, str]], lost: Sequence[range], begins: Mapping[int, str]) -> list[list[Cell]]:
    """Return the cells of rows of slots: neighbours that look alike are one row, unless something begins there.

    What comes later in `looks` hides what comes before.
    """
    ranges = [*(places for places, _ in looks), *lost]
    cuts = sorted({end for places in ranges for end in (places.start, places.stop)} | begins.keys())
    seen, gone = [""] * len(cuts), [False] * len(cuts)
    for places, words in looks:
        first, stop = bisect_left(cuts, places.start), bisect_left(cuts, places.stop)
        seen[first:stop] = [words] * (stop - first)
    for places in lost:
        first, stop = bisect_left(cuts, places.start), bisect_left(cuts, places.stop)
        gone[first:stop] = [True] * (stop - first)
    cells = list[list[Cell]]()
    for i, (first, stop) in enumerate(pairwise(cuts)):
        if i and (seen[i], gone[i]) == (seen[i - 1], gone[i - 1]) and first not in begins:
            cells[-1][2:4] = [stop - 1, stop - int(str(cells[-1][1]))]
        else:
            signs = ([begins[first]] if first in begins else []) + [_LOST] * gone[i]
            cells.append([seen[i], first, stop - 1, stop - first, ", ".join(signs)])
    return cells


def fed(step: Step, cache: CacheState) -> list[SlotRun]:
    """Return what was written, in the order of the rows: unread text, the root, guesses and explored cells."""
    root = step.start - 1
    runs = [(range(cache.stored, root), Fate.PROMPT), (range(root, root + 1), Fate.ROOT)]
    return runs + _rows(step, cache, root + 1, Fate.PROPOSED)


def left(step: Step, cache: CacheState) -> list[SlotRun]:
    """Return what is after the root after the step: the accepted guesses, and what the other rows left."""
    accepted = (range(step.start, cache.kept), Fate.ACCEPTED)
    return [accepted, *_rows(step, cache, cache.kept, Fate.REJECTED)]


def moved(step: Step, cache: CacheState) -> list[range]:
    """Return where accepted guesses were before they moved to the text."""
    runs = list[range]()
    row = {node: row for row, node in enumerate(fed_nodes(step))}
    for place in (step.start - 1 + row[node] for node in step.path if node in row):
        if runs and place == runs[-1].stop:
            runs[-1] = range(runs[-1].start, place + 1)
        elif place >= cache.kept:
            runs.append(range(place, place + 1))
    return runs


def _rows(step: Step, cache: CacheState, begin: int, guess: Fate) -> list[SlotRun]:
    """Return the rows from a place on, neighbours of one kind together."""
    root = step.start - 1
    roles = [step.roles[node] for node in fed_nodes(step)[begin - root :]] or [Role.VERIFY] * (cache.end - begin)
    runs, at = list[SlotRun](), begin
    for role, group in groupby(roles):
        stop = at + sum(1 for _ in group)
        runs.append((range(at, stop), Fate.EXPLORED if role is Role.EXPLORE else guess))
        at = stop
    return runs


def _chunks(header: Header, step: Step, cache: CacheState, page: int) -> dict[str, Any]:
    """Return which chunk of a prefill writes what."""
    pending = chunks(header, step) if step.pending else []
    if not 1 < len(pending) <= _NAMED:
        return {}
    named = [
        (part.start, f"chunk {i}")
        for i, part in enumerate(pending, start=1)
        if cache.first <= part.start < cache.kept - page // 6
    ]
    signs = _signs([place for place, _ in named], header.slots or None, page)
    return signs | {"text": {"strings": [name for _, name in named]}}


def _signs(places: Sequence[int], ring: int | None, page: int, lower: float = -0.5) -> dict[str, Any]:
    """Return small marks above places, or below them."""
    slots = [place % ring if ring else place for place in places]
    if not slots:
        return {}
    signs: dict[str, Any] = {"x": [slot % page + 0.5 for slot in slots], "y": [slot // page + lower for slot in slots]}
    sides = ["left" if slot % page > 0.8 * page else "right" for slot in slots]
    return signs | ({"textposition": [f"middle {side}" for side in sides]} if "left" in sides else {})


def _strip(step: Step, cache: CacheState, ring: int | None, page: int, top: int) -> tuple[PlotTrace, PlotTrace]:
    """Return the tokens of the step's rows below the page, and words on their slots."""
    nodes = fed_nodes(step) if step.tokens else []
    if not nodes:
        return {}, {}
    shown, fates, first = nodes[:_TOKENS], node_fates(step), step.start - 1
    slots = [
        f"{line * page + begin} to {line * page + stop - 1}" if stop - begin > 1 else str(line * page + begin)
        for line, begin, stop in _pieces(range(first, first + len(nodes)), ring, ring or max(page, cache.end))
    ]
    words = f"written in this step, slots {', then '.join(slots)}"
    more = f" (the first {_TOKENS} of {len(nodes)} rows)" if len(nodes) > len(shown) else ""
    tokens = {
        "x": [(i % _ACROSS + 0.5) * page / _ACROSS for i in range(len(shown))],
        "y": [top + 1 + i // _ACROSS for i in range(len(shown))],
        "nodes": packed(shown),
        "fate": encode.fates([fates[node] for node in shown]),
        "text": texts([step.tokens[node] for node in shown]),
    }
    return tokens, {"x": [0], "y": [top + 0.1], "text": {"strings": [words + more]}}


def _page(header: Header) -> tuple[int, int]:
    """Return slots of a line, and lines."""
    slots = header.slots or len(header.prompt) + header.max_new_tokens + _SPARE
    page = -(-slots // _LINES // _NICE) * _NICE + _NICE * (slots == 0)
    return page, -(-slots // page)


def _all(lines: int, page: int, slots: int = 0) -> dict[str, Any]:
    """Return whole lines, but of a ring only as many slots as it has."""
    last = slots - (lines - 1) * page if slots else page
    return {"x": [page] * (lines - 1) + [last], "base": [0] * lines, "y": [*range(lines)]}


def _pieces(places: range, ring: int | None, page: int) -> Iterator[tuple[int, int, int]]:
    """Return line, first and stop of what neighbouring places are on the page."""
    place = places.start
    while place < places.stop:
        slot = place % ring if ring else place
        length = min(places.stop - place, page - slot % page, ring - slot if ring else page)
        yield slot // page, slot % page, slot % page + length
        place += length


def _at(pieces: Sequence[tuple[int, int, int]], lower: float = 0) -> dict[str, Any]:
    if not pieces:
        return {}
    lines = [line + lower if lower else line for line, _, _ in pieces]
    return {"x": [stop - first for _, first, stop in pieces], "base": [first for _, first, _ in pieces], "y": lines}


def _bars(colour: str, hatch: str = "", ink: str = "$paper", **marker: Any) -> dict[str, Any]:
    """Return bars along the lines."""
    look: dict[str, Any] = {"color": colour, "line": {"width": 0}} | marker
    if hatch:
        look["pattern"] = {"shape": hatch, "fillmode": "overlay", "fgcolor": ink, "size": 6}
    empty: dict[str, Any] = {"type": "bar", "orientation": "h", "x": [], "y": [], "base": [], "width": _THICK}
    return empty | {"marker": look, "hoverinfo": "skip", "showlegend": False}


VIEW = View(
    name="cache",
    label="Cache slots",
    kind="plot",
    look_for="The next step overwrites what rejected guesses left, but never a key that is still visible.",
    base=base,
    frame=frame,
    rows=rows,
    nodes=(*(None,) * 14, "points", None),
    phases=(*("propose",) * 3, *("verify",) * 4, *("commit",) * 3, "verify", "propose", "commit", *("verify",) * 3),
)
