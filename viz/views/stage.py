"""The stage: the method's idea in one picture, from left to right, and a token is one object wherever it goes."""

from __future__ import annotations

from decoding.types import Header

from ..methods import screen_of
from ..run_state import RunState
from ..stage import plain
from ..view import Figure, Patch, View


def shows(header: Header) -> bool:
    """Whether the record holds what a stage shows."""
    return header.record != "off"


def base(run: RunState) -> Figure:
    """The stage without a step."""
    screen = screen_of(run.header)
    return plain.base(run, screen.depth(run.header)) if screen.stage is None else screen.stage.base(run)


def frame(run: RunState, k: int) -> Patch:
    """The scene of step k; nothing where the step was recorded without its tokens."""
    if not run.steps[k].tokens:
        return {}
    screen = screen_of(run.header)
    return plain.frame(run, k, screen.depth(run.header)) if screen.stage is None else screen.stage.frame(run, k)


VIEW = View(
    name="stage",
    label="Stage",
    kind="stage",
    look_for="Guesses come out of what the method knows, the target reads them, and what holds goes into the text.",
    base=base,
    frame=frame,
    shows=shows,
    columns=(("Token", "token"), ("Fate", "fate"), ("Where from", "source")),
)
