"""A window of guesses that iterations refine: the traces of its figure, and the headings of its table."""

from __future__ import annotations

from ..cells import Phase, Trace, cells, labels, line, signs

FRONT, DIAGONALS, PAST, SETTLED, CURRENT, SIGNS, ANSWERS, ROOT, LEARNED, NOTE = range(10)  # the traces
TRACES = 10
NODES: tuple[str | None, ...] = (None, None, "points", None, "points", None, "points", "points", None, None)
PHASES: tuple[Phase, ...] = (
    "propose",
    "commit",
    "propose",
    "propose",
    "propose",
    "accept",
    "verify",
    "propose",
    "commit",
    "propose",
)
HEADINGS = ("Token", "Row", "Place", "What")
ANSWER = "the target's answer"
MARGIN = {"l": 58, "r": 8, "t": 22, "b": 4, "pad": 2}


def traces(past: Trace, size: int, *, text: bool) -> list[Trace]:
    """The traces without their points."""
    return [
        line("$accepted", 2),
        line("$explored", 1),
        past,
        signs(5, lifted=True),
        cells(None, size=size, text=text),
        signs(lifted=True),
        cells("$explored", size=size, text=text, opacity=0.15) | {"hoverinfo": "none"},
        cells("$root", size=size, text=text, opacity=0.2),
        signs(9),
        labels("right"),
    ]
