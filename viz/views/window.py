"""The window of guesses that iterations refine, as the run's method draws it."""

from __future__ import annotations

from ..boards.window import NODES, PART_PHASES
from .pictures import picture_view

VIEW = picture_view(
    "window",
    label="Jacobi window",
    look_for="The target's answers to the guesses of one step are the guesses of the next.",
    nodes=NODES,
    phases=PART_PHASES,
)
