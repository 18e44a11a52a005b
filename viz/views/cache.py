"""The slots of the key/value cache after a step: which were read, written, committed, left or overwritten.

A step's rows are written after the stored tokens; then the accepted ones move down, and the rest is free to be
overwritten. Below all slots are the tokens of these rows, in the order of their slots.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from decoding.types import Header, Role, Step

from .. import ranks
from ..cache_slots import CacheState, Use, cache_state, chunks, fed_nodes, slot_ranges
from ..cells import PlotTrace, labels, packed, squares, texts
from ..fates import node_fates
from ..palette import MEANINGS, Fate
from ..run_state import RunState
from ..stream import encode
from ..tables import Cell, Table, TableRow
from ..view import Figure, Patch, View
from .cache_drawings import LOST, NEXT, WINDOW, LinesOfSlots, RingOfSlots, drawing_of

SlotRun = tuple[range, Fate]  # neighbouring places and what was fed for them

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
    drawing = drawing_of(run.header)
    data = [
        drawing.bars({"color": "$paper", "line": {"width": 1, "color": "$line"}}) | drawing.every(),
        drawing.bars(_look(**_READ)),
        drawing.bars(_look(**_UNTOUCHED)),
        *(drawing.bars(_look(MEANINGS[fate].colour, _HATCHES.get(fate, ""))) for fate in (*_FED, *_LEFT)),
        drawing.bars(_look(**_MOVED)),
        drawing.bars(_look("$text"), lost=True),
        *drawing.marks(),
        squares(),
        labels("right"),
    ]
    named = {"label": f"{VIEW.label} of rank 0"} if ranks.shared(run.header) else {}
    return {"data": data, "layout": drawing.layout(), "key": _KEY, "least": drawing.least} | named


def frame(run: RunState, k: int) -> Patch:
    """Return the cache as step k found it, wrote it and left it."""
    header, step = run.header, run.steps[k]
    cache, drawing = cache_state(header, run.steps, k), drawing_of(run.header)

    def bars(parts: Iterable[range]) -> dict[str, Any]:
        return drawing.cover(range(max(cache.first, places.start), places.stop) for places in parts)

    parts, before, after = list(cache.parts), fed(step, cache), left(step, cache)
    named = _chunks(header, step, cache, drawing.room)
    window = [cache.seen] if cache.seen > cache.first else []
    more, layout = drawing.grown(cache)
    data = [
        more,
        bars(places for places, use in parts if use is Use.READ),
        bars(places for places, use in parts if use is Use.UNTOUCHED),
        *(bars(places for places, fate in before if fate is wanted) for wanted in _FED),
        *(bars(places for places, fate in after if fate is wanted) for wanted in _LEFT),
        bars(moved(step, cache)),
        drawing.cover([cache.lost], lost=True),
        drawing.mark(WINDOW, [*named] or window, [*named.values()]),
        drawing.mark(NEXT, [cache.kept]),
        drawing.mark(LOST, cache.lost),
        *_strip(step, cache, header.slots, drawing),
    ]
    return {"data": data} | layout


def rows(run: RunState, k: int) -> Table:
    """Return the slots as a table: before the step, as it wrote them, and as it left them."""
    header, step = run.header, run.steps[k]
    cache = cache_state(header, run.steps, k)
    drawing, ring = drawing_of(header), header.slots
    slots = ring or int(drawing.top(cache) * drawing.width)

    def pieces(places: range) -> Iterator[range]:
        return slot_ranges(range(max(cache.first, places.start), places.stop), ring)

    def looks(runs: Iterable[tuple[range, str]]) -> list[tuple[range, str]]:
        return [(piece, words) for places, words in runs for piece in pieces(places)]

    def marks(named: Iterable[tuple[int, str]]) -> dict[int, str]:
        return {place % ring if ring else place: words for place, words in named}

    before = [(range(slots), _FREE), *looks((places, _USES[use]) for places, use in cache.parts if use in _USES)]
    written = before + looks((places, _WRITTEN[fate]) for places, fate in fed(step, cache))
    after = written + looks((places, _WRITTEN[fate]) for places, fate in left(step, cache) if fate in _LEFT)
    after += looks((places, _LEFT_BEHIND) for places in moved(step, cache))
    lost = [*slot_ranges(cache.lost, ring)]
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
    """Return the written tokens, in the order of the rows: unread text, the root, guesses and explored cells."""
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


def _chunks(header: Header, step: Step, cache: CacheState, room: int) -> dict[int, str]:
    """Return which chunk of a prefill begins where."""
    pending = chunks(header, step) if step.pending else []
    if not 1 < len(pending) <= _NAMED:
        return {}
    shown = range(cache.first, cache.kept - room)
    return {part.start: f"chunk {i}" for i, part in enumerate(pending, start=1) if part.start in shown}


def _strip(
    step: Step, cache: CacheState, ring: int, drawing: LinesOfSlots | RingOfSlots
) -> tuple[PlotTrace, PlotTrace]:
    """Return the tokens of the step's rows below all slots, and words on their slots."""
    nodes = fed_nodes(step) if step.tokens else []
    if not nodes:
        return {}, {}
    across, most = drawing.across, drawing.across * drawing.rows
    shown, fates, first = nodes[:most], node_fates(step), step.start - 1
    slots = [
        f"{part.start} to {part.stop - 1}" if len(part) > 1 else str(part.start)
        for part in slot_ranges(range(first, first + len(nodes)), ring)
    ]
    words = f"written in this step, slots {', then '.join(slots)}"
    more = f" (the first {most} of {len(nodes)} rows)" if len(nodes) > len(shown) else ""
    top = drawing.top(cache)
    tokens = {
        "x": [(i % across + 0.5) * drawing.width / across for i in range(len(shown))],
        "y": [top + 1 + i // across for i in range(len(shown))],
        "nodes": packed(shown),
        "fate": encode.fates([fates[node] for node in shown]),
        "text": texts([step.tokens[node] for node in shown]),
    }
    return tokens, {"x": [0], "y": [top + 0.1], "text": {"strings": [words + more]}}


def _look(colour: str, hatch: str = "", ink: str = "$paper") -> dict[str, Any]:
    """Return how slots are filled."""
    look: dict[str, Any] = {"color": colour, "line": {"width": 0}}
    if hatch:
        look["pattern"] = {"shape": hatch, "fillmode": "overlay", "fgcolor": ink, "size": 6}
    return look


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
