"""The stage: the method's idea in one picture, from left to right, and a token is one object wherever it goes."""

from __future__ import annotations

from dataclasses import replace

from decoding.types import Header

from ..methods import screen_of
from ..run_state import RunState
from ..stage import plain
from ..view import Figure, Patch, View


def shows(header: Header) -> bool:
    """Return True if the record holds what a stage shows."""
    return header.record != "off"


def base(run: RunState) -> Figure:
    """Return the stage without a step."""
    picture = screen_of(run.header).stage
    return plain_base(run) if picture is None else picture.base(run)


def frame(run: RunState, k: int) -> Patch:
    """Return the scene of step k; nothing where the step was recorded without its tokens."""
    if not run.steps[k].tokens:
        return {}
    picture = screen_of(run.header).stage
    return plain_frame(run, k) if picture is None else picture.frame(run, k)


def plain_base(run: RunState) -> Figure:
    """Return the stage without a step, and without what the method knows."""
    return plain.base(run, screen_of(run.header).depth(run.header))


def plain_frame(run: RunState, k: int) -> Patch:
    """Return the text and the guesses of step k alone."""
    return plain.frame(run, k, screen_of(run.header).depth(run.header)) if run.steps[k].tokens else {}


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
