"""Which slots of the key/value cache a step wrote, read, overwrote and left alone, told from the record alone.

A token at place i of the text lies in slot i mod slots, and a step's rows lie behind the stored tokens (see
`model/cache.py`), so nothing has to be recorded beyond the number of slots and the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from .types import Header, Step


class Use(IntEnum):
    """What became of a slot in a step."""

    EMPTY = 0  # not written yet
    UNTOUCHED = 1  # holds a key that no row of the step sees any more, or one of a rejected guess
    READ = 2  # seen by some row
    STORED = 3  # written, and kept as part of the text
    REJECTED = 4  # written for a guess that was not accepted


@dataclass(frozen=True, slots=True)
class Memory:
    """The cache after a step, a column over the slots each."""

    uses: tuple[Use, ...]
    holds: tuple[int, ...]  # the place of the text whose key/value the slot holds; -1: none
    lost: tuple[int, ...]  # places of the text whose slots the step overwrote, whether stored or rejected


def memory(header: Header, steps: Sequence[Step], index: int) -> Memory:
    """The cache after step `index` of a run: all its slots, or those used so far where it never wraps."""
    highest = 0  # places ever written, rejected guesses included
    held: dict[int, int] = {}  # slot -> place of the text
    uses: dict[int, Use] = {}
    lost: list[int] = []
    for step in steps[: index + 1]:
        stored, root = step.start - 1 - step.pending, step.start - 1
        end, kept = stored + step.fed, root + min(step.accepted + 1, len(step.emitted))
        slots = header.slots or max(end, highest)
        seen = 0 if header.window is None else max(0, stored - header.window + 1)
        uses = {slot: Use.READ if place >= seen else Use.UNTOUCHED for slot, place in held.items()}
        lost = []
        for place in range(stored, end):  # chunk by chunk or at once, a place is written once
            slot = place % slots
            if held.get(slot, place) != place:
                lost.append(held.pop(slot))
            uses[slot] = Use.STORED if place < kept else Use.REJECTED
            if place < kept:
                held[slot] = place
            else:
                held.pop(slot, None)
        highest = max(highest, end)
    ring = range(header.slots or highest)
    return Memory(
        uses=tuple(uses.get(slot, Use.UNTOUCHED if slot < highest else Use.EMPTY) for slot in ring),
        holds=tuple(held.get(slot, -1) for slot in ring),
        lost=tuple(lost),
    )
