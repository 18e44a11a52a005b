"""The two drawings of a cache's slots: lines of a page, and a circle where the slots are a ring.

Both are given neighbouring positions of the text, and know their slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import atan2, degrees, hypot
from typing import Any

from decoding.types import Header

from ..cache_slots import CacheState, slot_ranges
from ..cells import LETTERS, PITCH, PlotTrace, axis, labels, layout, packed, points

WINDOW, NEXT, LOST = range(3)  # the marks, in their order
_WORDS = ("window", "next", "overwritten")
_LINES = 12  # of slots, at most, where their number is known beforehand
_NICE = 16  # a line holds a multiple of so many
_SPARE = 64  # slots after the longest text, for guesses
_STRIP = 0.9  # lines of the page that the words on the step's rows take, and the room below their tokens
_THICK, _THIN, _BELOW = 0.48, 0.1, 0.3
_CIRCLE, _NUMBERS, _ROW = 280, 24, 30  # pixels of the ring's circle, of the numbers around it, and of a row of tokens
_INNER, _OUTER, _OVERWRITTEN, _SEAM = 0.74, 0.92, 0.95, 0.68  # parts of the circle's radius
_SYMBOLS = ("triangle-up-open", "triangle-up", "square")  # of the marks on the ring and before their words
_HUB = ((-0.46, 0.2), (-0.46, 0.0), (-0.46, -0.2))  # where the words of the marks begin


class LinesOfSlots:
    """Slots in lines, each a bar along the line: of a cache that never wraps round."""

    across, rows = 12, 2  # tokens of the step's rows in a line below, and lines of them
    least = across * PITCH + 60  # pixels that the figure needs

    def __init__(self, header: Header) -> None:
        slots = len(header.prompt) + header.max_new_tokens + _SPARE
        self.width = -(-slots // _LINES // _NICE) * _NICE + _NICE * (slots == 0)  # slots of a line
        self.lines = -(-slots // self.width)
        self.room = self.width // 6  # slots that the name of a chunk takes
        self._below = self.rows + _STRIP - 0.3  # lines below the last one

    def layout(self) -> dict[str, Any]:
        """Return the layout of the figure."""
        x = axis(-0.01 * self.width, 1.01 * self.width, showticklabels=True)
        x |= {"tickmode": "linear", "tick0": 0, "dtick": max(_NICE, self.width // 8 // _NICE * _NICE)}
        names = [f"+{line * self.width}" for line in range(self.lines)]
        y = axis(-0.9, self.lines + self._below, down=True, showticklabels=True)
        y |= {"tickmode": "array", "tickvals": [*range(self.lines)], "ticktext": names}
        margin = {"l": 48, "r": 12, "t": 8, "b": 24}
        return layout(70 + round(28 * (self.lines + 0.3 + self._below)), x, y, margin=margin, barmode="overlay")

    def bars(self, look: dict[str, Any], *, lost: bool = False) -> PlotTrace:
        """Return bars of a look, without any."""
        empty = {"orientation": "h", "x": [], "y": [], "base": [], "width": _THIN if lost else _THICK}
        return {"type": "bar", "marker": look, "hoverinfo": "skip", "showlegend": False} | empty

    def every(self) -> dict[str, Any]:
        """Return all slots."""
        return self._whole(self.lines)

    def cover(self, runs: Iterable[range], *, lost: bool = False) -> dict[str, Any]:
        """Return the slots of neighbouring positions."""
        pieces = [piece for places in runs for piece in self._pieces(places)]
        if not pieces:
            return {}
        y = [line + _BELOW if lost else line for line, _, _ in pieces]
        return {"x": [stop - first for _, first, stop in pieces], "base": [first for _, first, _ in pieces], "y": y}

    def marks(self) -> list[PlotTrace]:
        """Return the looks of the marks, without any."""
        look = {"textposition": "middle right", "textfont": {"size": LETTERS, "color": "$text"}}
        signs = points("markers+text", marker={"symbol": "triangle-down", "size": 7, "color": "$text"}, **look)
        looks = (signs, signs, labels("right", "$text"))
        return [each | {"text": [words]} for each, words in zip(looks, _WORDS, strict=True)]

    def mark(self, which: int, places: Sequence[int], names: Sequence[str] = ()) -> dict[str, Any]:
        """Return a mark above the slot of each position, or below the first slot that was overwritten."""
        slots, by = (places[:1], 0.5) if which == LOST else (places, -0.5)
        if not slots:
            return {}
        x, y = [slot % self.width + 0.5 for slot in slots], [slot // self.width + by for slot in slots]
        sides = ["left" if slot % self.width > 0.8 * self.width else "right" for slot in slots]
        turned = {"textposition": [f"middle {side}" for side in sides]} if "left" in sides else {}
        return {"x": x, "y": y} | turned | ({"text": {"strings": [*names]}} if names else {})

    def top(self, cache: CacheState) -> int:
        """Return where the tokens of the step's rows begin: after all lines that are needed."""
        return max(self.lines, -(-cache.highest // self.width))

    def grown(self, cache: CacheState) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return all slots and the layout where a step needs more lines than were foreseen."""
        lines = self.top(cache)
        if lines == self.lines:
            return {}, {}
        return self._whole(lines), {"layout": {"yaxis": {"range": [lines + self._below, -0.9]}}}

    def _whole(self, lines: int) -> dict[str, Any]:
        return {"x": [self.width] * lines, "base": [0] * lines, "y": [*range(lines)]}

    def _pieces(self, places: range) -> Iterator[tuple[int, int, int]]:
        """Return line, first and stop of what neighbouring positions are on the page."""
        place = places.start
        while place < places.stop:
            first = place % self.width
            stop = min(first + places.stop - place, self.width)
            yield place // self.width, first, stop
            place += stop - first


class RingOfSlots:
    """Slots around a circle, each an arc: clockwise from the top, where the first comes after the last again."""

    across, rows, room = 8, 3, 0
    width, least = across, _CIRCLE + 60

    def __init__(self, slots: int) -> None:
        self.slots = slots

    def layout(self) -> dict[str, Any]:
        """Return the layout of the figure: the circle, and below it the strip of tokens."""
        strip = round(_ROW * (self.rows + _STRIP))
        plot = _CIRCLE + _NUMBERS + strip
        numbers = {"tickvals": [0, 90, 180, 270], "ticktext": [str(self.slots * quarter // 4) for quarter in range(4)]}
        quiet: dict[str, Any] = {
            "showgrid": False,
            "showline": False,
            "ticks": "",
            "tickfont": {"size": LETTERS, "color": "$muted"},
        }
        polar: dict[str, Any] = {
            "domain": {"x": [0, 1], "y": [1 - _CIRCLE / plot, 1]},
            "bgcolor": "rgba(0,0,0,0)",
            "radialaxis": {"visible": False, "range": [0, 1], "fixedrange": True},
            "angularaxis": {"direction": "clockwise", "rotation": 90, **numbers, **quiet},
        }
        y = axis(-0.4, self.rows + _STRIP - 0.4, down=True, domain=[0, strip / plot])
        margin = {"l": 8, "r": 8, "t": _NUMBERS, "b": 0}
        return layout(plot + _NUMBERS, axis(0, self.across), y, margin=margin, polar=polar)

    def bars(self, look: dict[str, Any], *, lost: bool = False) -> PlotTrace:
        """Return arcs of a look, without any."""
        ends = (_OVERWRITTEN, 1) if lost else (_INNER, _OUTER)
        empty = {"theta": [], "width": [], "r0": round(ends[1] - ends[0], 3), "dr": 0, "base": ends[0]}
        return {"type": "barpolar", "marker": look, "hoverinfo": "skip", "showlegend": False} | empty

    def every(self) -> dict[str, Any]:
        """Return all slots, and the seam at the top."""
        seam = {"r": [_OUTER - _INNER, _OVERWRITTEN - _SEAM], "base": [_INNER, _SEAM]}
        return {"theta": [180, 0], "width": [360, 0.6]} | seam

    def cover(self, runs: Iterable[range], *, lost: bool = False) -> dict[str, Any]:
        """Return the arcs of neighbouring positions; one that goes past the top goes on at the first slot."""
        slots = [piece for places in runs for piece in slot_ranges(places, self.slots)]
        if not slots:
            return {}
        turn = 360 / self.slots
        middles = [turn * (piece.start + piece.stop) / 2 for piece in slots]
        return {"theta": packed(middles), "width": packed([turn * len(piece) for piece in slots])}

    def marks(self) -> list[PlotTrace]:
        """Return the looks of the marks, without any."""
        look = {"textposition": "middle right", "textfont": {"size": LETTERS, "color": "$text"}}
        trace: PlotTrace = {"type": "scatterpolar", "mode": "markers+text", "r": [], "theta": [], "hoverinfo": "skip"}
        trace |= {"showlegend": False, "cliponaxis": False} | look
        return [trace | {"marker": {"symbol": symbol, "size": 9, "color": "$text"}} for symbol in _SYMBOLS]

    def mark(self, which: int, places: Sequence[int], names: Sequence[str] = ()) -> dict[str, Any]:
        """Return a mark inside the ring at the slot of each position, and words; overwritten slots have their arcs."""
        if not places:
            return {}
        slots = [] if which == LOST else [place % self.slots for place in places]
        words = f"slot {slots[0]}" if slots else f"{len(places)} slot{'s' * (len(places) > 1)}"
        words = f"{len(names)} chunks begin" if names else f"{_WORDS[which]}: {words}"
        angles = [360 * (slot + 0.5) / self.slots for slot in slots]
        x, y = _HUB[which]
        return {
            "r": packed([*[_SEAM] * len(slots), hypot(x, y)]),
            "theta": packed([*angles, degrees(atan2(x, y))]),
            "marker": {"angle": packed([*angles, 0])},
            "text": {"strings": [*[""] * len(slots), f"\N{NO-BREAK SPACE}{words}"]},
        }

    def top(self, cache: CacheState) -> int:
        """Return where the tokens of the step's rows begin."""
        return 0

    def grown(self, cache: CacheState) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return nothing: a ring has all its slots from the beginning."""
        return {}, {}


def drawing_of(header: Header) -> LinesOfSlots | RingOfSlots:
    """Return the drawing of a run's cache."""
    return RingOfSlots(header.slots) if header.slots else LinesOfSlots(header)
