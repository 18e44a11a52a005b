"""The stage of a method that has none of its own: the text, and the guesses as a tree."""

from __future__ import annotations

from decoding.types import Header

from ..run_state import RunState
from ..view import Figure, Patch
from .parts import DEEPEST, Room, StepScene, text_zone
from .scene import stage

_ROWS = 6


def room_of(header: Header, depth: int) -> Room:
    """Return room for guesses of some depth."""
    return Room(max(1, min(depth, DEEPEST)), _ROWS)


def base(run: RunState, depth: int) -> Figure:
    """Return the stage without a step."""
    room = room_of(run.header, depth)
    return stage([[text_zone()]], [[room.zone()]])


def frame(run: RunState, k: int, depth: int) -> Patch:
    """Return the scene of step k."""
    room = room_of(run.header, depth)
    scene = StepScene.begin(base(run, depth), run, k, room)
    scene.draw_text()
    scene.draw_guesses()
    return scene.patch()
