"""Scenes as plain values, and what tests ask of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from decoding.trace.file import read_trace
from decoding.types import Step, Trace
from tests import ROOT
from viz.cells import STEP_PHASES, StepPhase
from viz.run_state import RunState
from viz.stage.scene import LINKS, seen_at, zone_of
from viz.stream.encode import unpack
from viz.views import stage


@dataclass(frozen=True)
class Shown:
    """A piece in one phase."""

    id: int
    token: int
    zone: str
    x: float
    y: float
    fate: int
    node: int
    origin: int | None  # the id of the piece that it comes out of
    cached: bool
    answer: int  # the target's token for its position, -1 where it has none


def numbers(column: Any) -> list[Any]:
    """A column's values."""
    return unpack(column).tolist() if isinstance(column, dict) else list(column)


def _at(when: int, phase: StepPhase) -> tuple[int, bool]:
    return zone_of(when), seen_at(when, phase)


class Scene:
    """The scene of a step, read as the player reads it."""

    def __init__(self, run: RunState, k: int) -> None:
        self.base, self.patch = stage.base(run), stage.frame(run, k)
        columns = self.patch["pieces"]
        self._columns = {name: numbers(columns[name]) for name in ("id", "x", "y", "when", "nodes")}
        slots = self.patch.get("some", {}).get("slot", ((), ()))
        self._slots = dict(zip(*map(numbers, slots), strict=True))
        self._spare = {*numbers(self.patch.get("some", {}).get("spare", ((),))[0])}
        answered, answers = self.patch.get("some", {}).get("answer", ((), {"tokens": ()}))
        self._answers = dict(zip(numbers(answered), numbers(answers["tokens"]), strict=True))
        self._columns["token"] = numbers(columns["text"]["tokens"])
        self._columns["fate"] = numbers(columns["fate"]["fates"])
        self._columns["origin"] = numbers(columns["origin"]) if "origin" in columns else [0] * len(self._columns["id"])

    def pieces(self, phase: StepPhase) -> list[Shown]:
        """What is seen in a phase, and where it is then."""
        moved = {}
        for number, since, zone, x, y in zip(*map(numbers, self.patch.get("moves", [()] * 5)), strict=True):
            if since <= STEP_PHASES.index(phase):
                moved[number] = zone, x, y
        links = []
        for i, when in enumerate(self._columns["when"]):
            zone, seen = _at(when, phase)
            zone, x, y = moved.get(i, (zone, self._columns["x"][i], self._columns["y"][i]))
            if seen and i not in self._spare:
                origin = self._columns["origin"][i]
                values = {name: self._columns[name][i] for name in ("id", "token", "fate")}
                links.append(
                    Shown(
                        zone=self.base["zones"][zone]["name"], x=x, y=y, node=self._columns["nodes"][i],
                        origin=self._columns["id"][origin - 1] if origin else None,
                        cached=_at(self._slots.get(i, 0), phase)[1], answer=self._answers.get(i, -1), **values,
                    )
                )  # fmt: skip
        return links

    def rows(self, zone: str, phase: StepPhase = "propose") -> list[list[Shown]]:
        """Return the pieces of a zone, row by row."""
        rows: dict[float, list[Shown]] = {}
        for piece in self.pieces(phase):
            if piece.zone == zone:
                rows.setdefault(piece.y, []).append(piece)
        return [sorted(rows[y], key=lambda piece: piece.x) for y in sorted(rows)]

    def links(self, kind: str, phase: StepPhase) -> list[tuple[int, int]]:
        """The ids of linked pieces."""
        links = self.patch.get("links", {"from": (), "to": (), "when": ()})
        rows = zip(*(numbers(links[name]) for name in ("from", "to", "when")), strict=True)
        seen = ((one, other, *_at(when, phase)) for one, other, when in rows)
        ids = self._columns["id"]
        return [(ids[one], ids[other]) for one, other, of, now in seen if now and LINKS[of] == kind]

    def words(self, phase: str) -> list[str]:
        """The words that are seen in a phase."""
        return self._texts("words", phase)

    def frames(self, phase: str) -> list[str]:
        """What the frames say that are seen in a phase."""
        return self._texts("frames", phase)

    def _texts(self, kind: str, phase: str) -> list[str]:
        words = self.patch.get(kind, {"text": {"strings": ()}, "when": ()})
        pairs = zip(words["text"]["strings"], numbers(words["when"]), strict=True)
        return [text for text, when in pairs if _at(when, phase)[1]]


def scenes(trace: Trace) -> list[Scene]:
    """The scenes of all steps."""
    run = RunState.of(trace)
    return [Scene(run, k) for k in range(len(trace.steps)) if trace.steps[k].tokens]


def steps(trace: Trace) -> Iterator[tuple[RunState, Step, Scene]]:
    """Yield every step with its scene."""
    run = RunState.of(trace)
    for k, step in enumerate(run.steps):
        yield run, step, Scene(run, k)


def shipped(name: str) -> Trace:
    """Read a recording that comes with the page."""
    return read_trace(ROOT / "assets" / "traces" / f"{name}.jsonl.gz")
