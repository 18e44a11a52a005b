"""What a method remembers and guesses from, drawn in its own way: n-grams, phrases, rows, copies, heads, confidence."""

from __future__ import annotations

from ..boards.board import Board
from .pictures import picture_view

VIEW = picture_view(
    "pool",
    label="Pool",
    look_for="What the guesses are taken from, and which of them were accepted.",
    nodes=(*Board.nodes, "points", None, None, None, None),
    phases=(*Board.phases, "propose", "propose", "commit", "commit", "commit"),
)
