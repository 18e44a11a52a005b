"""A scene as a figure that plotly draws, at one phase of the step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..cells import STEP_PHASES, StepPhase
from ..palette import MEANINGS, Meaning, meanings
from ..view import Figure, Patch
from .scene import seen_at, zone_of

_COLUMN, _ROW = 84, 36  # pixels
_INSET = 0.1  # rows by which a box is lower than its cell
_DASHES = {"dotted": "dot", "hollow": "dash", "hatched": "dashdot"}  # by a fate's decoration


def scene_figure(base: Figure, scene: Patch, colours: Mapping[str, str], phase: StepPhase, *, lossless: bool) -> Figure:
    """Return the figure of a scene whose columns are plain values."""
    drawn = _Drawing(base, scene, colours, phase, meanings(lossless=lossless))
    drawn.zones()
    drawn.frames()
    drawn.links()
    drawn.pieces()
    drawn.words()
    return drawn.figure()


class _Drawing:
    """Shapes and annotations of plotly, in the stage's own columns and rows."""

    def __init__(
        self, base: Figure, scene: Patch, colours: Mapping[str, str], phase: StepPhase, fates: Sequence[Meaning]
    ) -> None:
        self._base, self._scene, self._colours = base, scene, colours
        self._shapes, self._notes = list[dict[str, Any]](), list[dict[str, Any]]()
        self._phase, self._fates = phase, fates
        moves = zip(*scene.get("moves", ()), strict=True)
        self._moved = {
            move[0]: move[2:] for move in moves if move[1] <= STEP_PHASES.index(phase)
        }  # by a piece: zone, x, y
        self._spare = {*scene.get("some", {}).get("spare", ((),))[0]}
        self._places = dict(self._seen("pieces"))  # of the pieces that are seen, by their numbers

    def zones(self) -> None:
        """Draw titles above their zones."""
        for zone, (x, y) in zip(self._base["zones"], self._base["wide"]["places"], strict=True):
            self._note(zone["title"], x, y + self._base["title"] / 2, "left", "muted", 12)

    def frames(self) -> None:
        """Draw frames around cells."""
        frames = self._scene.get("frames", {})
        for number, (x, y) in self._seen("frames"):
            wide, high = frames["wide"][number], frames["high"][number]
            self._box(x, y, wide, high, "line")
            if "filled" in frames and (filled := frames["filled"][number]) >= 0:
                self._gauge(x, y + _INSET, wide, high - 2 * _INSET, filled, frames["limit"][number])
            self._note(frames["text"][number], x + 0.1, y + 0.25, "left", "muted", 11)

    def links(self) -> None:
        """Draw straight lines between the middles of pieces."""
        links = self._scene.get("links", {})
        for first, second, when in zip(*(links.get(name, ()) for name in ("from", "to", "when")), strict=True):
            if seen_at(when, self._phase) and first in self._places and second in self._places:
                (x, y), (u, v) = self._places[first], self._places[second]
                ends = {"x0": x + 0.46, "y0": y + 0.5, "x1": u + 0.46, "y1": v + 0.5}
                look = {"color": self._colours["muted"], "width": 1}
                self._shapes.append({"type": "line", "line": look, "layer": "below", **ends})

    def pieces(self) -> None:
        """Draw a box for each token, in the colour of its fate."""
        pieces = self._scene.get("pieces", {})
        for number, (x, y) in self._places.items():
            meaning = MEANINGS[pieces["fate"][number]]
            dash = _DASHES.get(meaning.decoration, "solid")
            self._box(x, y, 1, 1, meaning.colour[1:], dash=dash, fill=self._colours["paper"])
            self._note(pieces["text"][number], x + 0.46, y + 0.5, "center", "text", 13)
        if self._phase == "answers":
            for number, answer in zip(*self._scene.get("some", {}).get("answer", ((), ())), strict=True):
                if number in self._places:
                    x, y = self._places[number]
                    self._note(answer, x + 0.46, y + 0.95, "center", "own", 11)

    def words(self) -> None:
        """Draw words at their places."""
        words = self._scene.get("words", {})
        for number, (x, y) in self._seen("words"):
            anchor = ("left", "right", "center")[words["side"][number]]
            self._note(words["text"][number], x, y + 0.5, anchor, "muted", 11)

    def figure(self) -> Figure:
        """Return the whole figure, with the fate of every token as its hover text."""
        pieces = self._scene.get("pieces", {})
        labels = [f"{pieces['text'][number]}: {self._fates[pieces['fate'][number]].label}" for number in self._places]
        hover = {"type": "scatter", "mode": "markers", "marker": {"size": 24, "opacity": 0}, "showlegend": False}
        hover |= {"x": [x + 0.46 for x, _ in self._places.values()], "y": [y + 0.5 for _, y in self._places.values()]}
        hover |= {"text": labels, "hovertemplate": "%{text}<extra></extra>"}
        wide, bare = self._base["wide"], {"visible": False, "fixedrange": True}
        layout: dict[str, Any] = {"shapes": self._shapes, "annotations": self._notes}
        layout |= {"margin": {"l": 8, "r": 8, "t": 8, "b": 8}}
        layout |= {"height": round(_ROW * wide["rows"]) + 16, "width": round(_COLUMN * wide["columns"]) + 16}
        layout |= {"xaxis": {"range": [0, wide["columns"]], **bare}, "yaxis": {"range": [wide["rows"], 0], **bare}}
        return {"data": [hover], "layout": layout}

    def _seen(self, kind: str) -> Iterator[tuple[int, tuple[float, float]]]:
        """Return numbers and places of the pieces, words or frames that are on the stage."""
        columns = self._scene.get(kind, {})
        for number, when in enumerate(columns.get("when", ())):
            if kind == "pieces" and number in self._spare:
                continue
            place = zone_of(when), columns["x"][number], columns["y"][number]
            zone, x, y = self._moved.get(number, place) if kind == "pieces" else place
            left, top = self._base["wide"]["places"][zone]
            if seen_at(when, self._phase) and 0 <= x <= self._base["zones"][zone]["columns"]:
                yield number, (left + x, top + self._base["title"] + y)

    def _box(
        self, x: float, y: float, wide: float, high: float, colour: str, *, dash: str = "solid", fill: str = ""
    ) -> None:
        look = {"color": self._colours[colour], "width": 2, "dash": dash}
        ends = {"x0": x, "x1": x + wide - 0.08, "y0": y + _INSET, "y1": y + high - _INSET}
        self._shapes.append({"type": "rect", "line": look, **ends} | ({"fillcolor": fill} if fill else {}))

    def _gauge(self, x: float, y: float, wide: float, high: float, filled: float, limit: float) -> None:
        ends = {"x0": x, "x1": x + wide - 0.08}
        fill = {"fillcolor": self._colours["proposed"], "line": {"width": 0}}
        self._shapes.append({"type": "rect", **fill, **ends, "y0": y + high * (1 - filled), "y1": y + high})
        if limit:
            line, at = {"color": self._colours["text"], "width": 1, "dash": "dash"}, y + high * (1 - limit)
            self._shapes.append({"type": "line", "line": line, **ends, "y0": at, "y1": at})

    def _note(self, text: str, x: float, y: float, anchor: str, colour: str, size: int) -> None:
        font = {"color": self._colours[colour], "size": size}
        where = {"x": x, "y": y, "xanchor": anchor, "yanchor": "middle", "showarrow": False}
        self._notes.append({"text": text, "font": font, **where})
