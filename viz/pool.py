"""What a method remembers and guesses from, each in its own way: n-grams, phrases, rows, copies, heads, confidence.

A method without any has no such view. The pools of n-grams are in pool_ngrams.py, what is found in texts in
pool_found.py, and what a drafter or heads wrote in pool_drafted.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from decoding.types import Header

from . import pool_drafted, pool_found, pool_ngrams
from .cells import Board
from .story import Story
from .view import Figure, Patch, View


class _Kind(NamedTuple):
    """The figure of a method."""

    base: Callable[[Header], Figure]
    frame: Callable[[Story, int], Patch]


_KINDS = {
    "lookahead": _Kind(pool_ngrams.base, pool_ngrams.lookahead),
    "draft_model": _Kind(pool_drafted.confidence_base, pool_drafted.confidence),
    "prompt_lookup": _Kind(pool_found.copies_base, pool_found.copies),
    "ngrammys": _Kind(pool_found.rows_base, pool_found.rows),
    "medusa": _Kind(pool_drafted.heads_base, pool_drafted.heads),
    "kangaroo": _Kind(pool_drafted.confidence_base, pool_drafted.confidence),
    "ouroboros": _Kind(pool_ngrams.base, pool_ngrams.ouroboros),
    "rest": _Kind(pool_found.hits_base, pool_found.hits),
}


def shows(header: Header) -> bool:
    """Whether the method guesses from something, and the record tells of it."""
    return header.method in _KINDS and header.record != "off"


def base(story: Story) -> Figure:
    """The figure without a step."""
    return _KINDS[story.header.method].base(story.header)


def frame(story: Story, k: int) -> Patch:
    """What step k guessed from, and what it learned."""
    return _KINDS[story.header.method].frame(story, k)


VIEW = View(
    name="pool",
    label="Pool",
    kind="plot",
    look_for="What the guesses are taken from, and which of them came true.",
    base=base,
    frame=frame,
    shows=shows,
    nodes=(*Board.nodes, "points", None, None, None, None),
    phases=(*Board.phases, "propose", "propose", "commit", "commit", "commit"),
)
