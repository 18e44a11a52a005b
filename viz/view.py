"""What a view is: a name, and two pure functions from the record to a figure and its patches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from decoding.types import Header

from .cells import StepPhase
from .run_state import RunState
from .tables import Table

# {"data": [...], "layout": {...}} of plotly and of cells.py, with the encodings of stream/encode.py in it
Figure = dict[str, Any]
Patch = dict[str, Any]  # {"data": [{attribute: value} per part], "layout": {...}}: only what changes


OF_A_RUN = ("label", "look_for", "columns", "nodes", "phases")  # what a run's figure may have otherwise than its view


class StagePicture(NamedTuple):
    """What one method draws on the stage."""

    base: Callable[[RunState], Figure]  # without a step
    frame: Callable[[RunState, int], Patch]  # the scene of step k


class Picture(NamedTuple):
    """What one method draws in a view that methods fill in their own ways."""

    base: Callable[[RunState], Figure]  # without a step
    frame: Callable[[RunState, int], Patch]  # what step k changes
    rows: Callable[[RunState, int], Table]  # step k as a table


@dataclass(frozen=True, slots=True)
class View:
    """One view of a run. The page's player knows it by its name and handles it by its kind.

    kind "plot": `base` gives {"data", "layout"} and `frame` {"data": one dict per part, "layout"?: a few values}.
    A part of a figure's data is a trace of plotly or a layer of cells: see cells.py.
    kind "text" and "numbers": plain JSON that the player writes as text; notebook.py makes their figures.
    kind "stage": zones, and scenes in them: see stage/scene.py.
    A view that grows sends with each frame only the points of that step: the player shows all up to the step.
    """

    name: str
    label: str
    kind: Literal["plot", "text", "numbers", "stage"]
    look_for: str  # one line: what to look for
    # Once: layout, axes, parts without their points. "draws" may hold fates that it draws though no node has them, for
    # the legend, and "key" what it draws that is no fate: a colour, hatch and ink, a symbol or a sample, with words.
    # What it holds by a name of `OF_A_RUN` takes the place of the view's own.
    base: Callable[[RunState], Figure]
    frame: Callable[[RunState, int], Patch]  # step k: what changes
    # Step k as it is shown when a node is pinned: for each node, then for the token that the target wrote itself.
    pinned: Callable[[RunState, int], Sequence[Patch]] | None = None
    shows: Callable[[Header], bool] = lambda header: True  # whether a run has it
    grows: bool = False
    # Per part of a plot: "points" where a column holds each point's node, -1 for none ("nodes" of a layer, "customdata"
    # of a trace); "rows" where the rows of a matrix are the step's nodes; "own" where a line leads from a node to the
    # token that the target wrote itself after it; None if the part shows no nodes.
    nodes: tuple[str | None, ...] = ()
    # Per part: the phase of the step from which it is seen.
    phases: tuple[StepPhase, ...] = ()
    # The view as a table. Where its rows are the step's nodes, the player has all columns of them: these are headings
    # and names of columns, and a "table" of the base names other rows. All other rows are made here when asked for.
    columns: tuple[tuple[str, str], ...] = ()
    rows: Callable[[RunState, int], Table] | None = None
