"""The parts of the figure of a window of guesses that iterations refine, and the headings of its table."""

from __future__ import annotations

from ..cells import CellLayer, PlotTrace, StepPhase, labels, line, named_signs, signs, squares

FRONT, DIAGONALS, PAST, SETTLED, CURRENT, SIGNS, ANSWERS, ROOT, LEARNED, NOTE = range(10)  # the parts
PARTS = 10
NODES: tuple[str | None, ...] = (None, None, "points", None, "points", None, "points", "points", None, None)
PART_PHASES: tuple[StepPhase, ...] = (
    "propose",
    "commit",
    "propose",
    "propose",
    "propose",
    "accept",
    "answers",
    "propose",
    "commit",
    "propose",
)
HEADINGS = ("Token", "Row", "Position", "What")
ANSWER = "the target's answer"
MARGIN = {"l": 76, "r": 8, "t": 24, "b": 4, "pad": 2}


def parts(past: CellLayer, size: int, *, text: bool) -> list[CellLayer | PlotTrace]:
    """Return the layers and lines without their places."""
    return [
        line("$accepted", 2),
        line("$explored", 1),
        past,
        signs(5, lifted=True),
        squares(size=size, text=text),
        signs(lifted=True),
        squares("$explored", size=size, text=text, opacity=0.15),
        squares("$root", size=size, text=text, opacity=0.2),
        named_signs(9),
        labels("right"),
    ]
