"""The window of guesses that iterations refine, as the run's method draws it."""

from __future__ import annotations

from decoding.types import Header

from ..boards.window import NODES, PHASES
from ..methods import screen_of
from ..run_state import RunState
from ..tables import Table
from ..view import Figure, Patch, View


def shows(header: Header) -> bool:
    """Return True if the method has a window, and the record holds it."""
    return screen_of(header).window is not None and header.record != "off"


def base(run: RunState) -> Figure:
    """Return the figure without a step."""
    picture = screen_of(run.header).window
    assert picture is not None
    return picture.base(run)


def frame(run: RunState, k: int) -> Patch:
    """Return the window as step k fed it, and what the target answered."""
    picture = screen_of(run.header).window
    assert picture is not None
    return picture.frame(run, k)


def rows(run: RunState, k: int) -> Table:
    """Return the window of step k as a table."""
    picture = screen_of(run.header).window
    assert picture is not None
    return picture.rows(run, k)


VIEW = View(
    name="window",
    label="Jacobi window",
    kind="plot",
    look_for="The target's answers to the guesses of one step are the guesses of the next.",
    base=base,
    frame=frame,
    shows=shows,
    rows=rows,
    nodes=NODES,
    phases=PHASES,
)
