"""The stage: the method's idea in one picture, from left to right, in which a token stays the same object.

A method without its own picture has a plain stage: the text, and the guesses as a tree.
"""

from __future__ import annotations

from dataclasses import replace

from decoding.types import Header

from ..methods import screen_of
from ..run_state import RunState
from ..stage.parts import DEEPEST, Room, StepScene, text_zone
from ..stage.scene import stage
from ..view import Figure, Patch, View

_ROWS = 6  # of guesses on the plain stage


def shows(header: Header) -> bool:
    """Return True if the record holds what a stage shows."""
    return header.record != "off"


def base(run: RunState) -> Figure:
    """Return the stage without a step."""
    picture = screen_of(run.header).stage
    return plain_base(run) if picture is None else picture.base(run)


def frame(run: RunState, k: int) -> Patch:
    """Return the scene of step k; nothing if the step was recorded without its tokens."""
    if not run.steps[k].tokens:
        return {}
    picture = screen_of(run.header).stage
    return plain_frame(run, k) if picture is None else picture.frame(run, k)


def plain_base(run: RunState) -> Figure:
    """Return the stage without a step, and without what the method knows."""
    return stage([[text_zone()]], [[_room(run.header).zone()]])


def plain_frame(run: RunState, k: int) -> Patch:
    """Return the text and the guesses of step k alone."""
    if not run.steps[k].tokens:
        return {}
    scene = StepScene.begin(plain_base(run), run, k, _room(run.header))
    scene.draw_text()
    scene.draw_guesses()
    return scene.patch()


def _room(header: Header) -> Room:
    """Return room for guesses as deep as the method's."""
    return Room(max(1, min(screen_of(header).depth(header), DEEPEST)), _ROWS)


VIEW = View(
    name="stage",
    label="Stage",
    kind="stage",
    look_for="The method guesses from what it knows, the target reads the guesses, and accepted ones join the text.",
    base=base,
    frame=frame,
    shows=shows,
    columns=(("Token", "token"), ("Fate", "fate"), ("Where from", "source")),
)
PLAIN = replace(VIEW, base=plain_base, frame=plain_frame)  # of a record that does not hold what the method knows
