"""What a method remembers and guesses from, drawn in its own way: n-grams, phrases, rows, copies, heads, confidence.

A method without any has no such view.
"""

from __future__ import annotations

from decoding.types import Header

from ..boards.board import Board
from ..methods import screen_of
from ..run_state import RunState
from ..tables import Table
from ..view import Figure, Patch, View


def shows(header: Header) -> bool:
    """Return True if the method guesses from something, and the record holds it."""
    return screen_of(header).pool is not None and header.record != "off"


def base(run: RunState) -> Figure:
    """Return the figure without a step."""
    picture = screen_of(run.header).pool
    assert picture is not None
    return picture.base(run)


def frame(run: RunState, k: int) -> Patch:
    """Return what step k guessed from, and what it learned."""
    picture = screen_of(run.header).pool
    assert picture is not None
    return picture.frame(run, k)


def rows(run: RunState, k: int) -> Table:
    """Return what step k guessed from, and what it learned, as a table."""
    picture = screen_of(run.header).pool
    assert picture is not None
    return picture.rows(run, k)


VIEW = View(
    name="pool",
    label="Pool",
    kind="plot",
    look_for="What the guesses are taken from, and which of them were accepted.",
    base=base,
    frame=frame,
    shows=shows,
    rows=rows,
    nodes=(*Board.nodes, "points", None, None, None, None),
    phases=(*Board.phases, "propose", "propose", "commit", "commit", "commit"),
)
