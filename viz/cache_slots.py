"""Computes from a trace which slots of the key/value cache a step wrote, read, overwrote or did not touch.

The token at place i of the text is in slot i mod slots, and the rows of a step come after the stored tokens (see
`model/cache.py`). So the slots always hold consecutive places, up to the furthest one ever written, and a few
boundaries between these places describe the whole cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice

from decoding.types import Header, Step

_LARGEST = 4096  # rows of the largest step of any run


class Use(IntEnum):
    """How a step used a slot."""

    EMPTY = 0  # not written yet
    UNTOUCHED = 1  # holds a key that no row of the step sees, or one of a rejected guess
    READ = 2  # seen by some row
    STORED = 3  # written and committed
    REJECTED = 4  # written, but not committed there: a rejected guess, or an accepted one that was moved down


@dataclass(frozen=True, slots=True)
class CacheState:
    """The cache after a step. Places are positions of the text and, after its end, of the fed guesses."""

    slots: int  # of the ring buffer, or those used so far where it never wraps round
    first: int  # the earliest place that still has a slot
    seen: int  # the earliest place that some row of the step saw
    stored: int  # places below it were stored before the step
    kept: int  # places below it are stored after the step
    end: int  # after the last row of the step
    highest: int  # after the furthest row ever fed
    lost: range  # positions of the text whose slots the step overwrote, whether stored or rejected

    @property
    def parts(self) -> Iterator[tuple[range, Use]]:
        """All places that have a slot, in ranges, with the use of their slots."""
        bounds = (self.first, self.seen, self.stored, self.kept, self.end, self.highest)
        uses = (Use.UNTOUCHED, Use.READ, Use.STORED, Use.REJECTED, Use.UNTOUCHED)
        begin = self.first
        for stop, use in zip(bounds[1:], uses, strict=True):
            if begin < stop:
                yield range(begin, stop), use
                begin = stop

    @property
    def uses(self) -> tuple[Use, ...]:
        """The use of every slot."""
        uses = [Use.EMPTY] * self.slots
        for places, use in self.parts:
            for place in places:
                uses[place % self.slots] = use
        return tuple(uses)

    @property
    def holds(self) -> tuple[int, ...]:
        """The position of the text whose key/value every slot holds; -1: none."""
        holds = [-1] * self.slots
        for place in range(self.first, self.kept):
            holds[place % self.slots] = place
        return tuple(holds)


def cache_state(header: Header, steps: Sequence[Step], index: int) -> CacheState:
    """Return the cache after step `index` of a run: all its slots, or those used so far where it never wraps round."""
    step = steps[index]
    root = step.start - 1
    stored = root - step.pending
    end, kept = _end(step), root + min(step.accepted + 1, len(step.emitted)) - _elsewhere(step)
    before = max(stored, _furthest(header, steps, index))
    highest = max(before, end)
    slots = header.slots or highest
    first = max(0, highest - slots)
    # A slot keeps its key until the place that lies `slots` further is written.
    lost = range(max(0, before - slots), max(0, min(end - slots, kept)))
    return CacheState(
        slots=slots,
        first=first,
        seen=0 if header.window is None else max(0, stored - header.window + 1),
        stored=stored,
        kept=min(kept, end),
        end=end,
        highest=highest,
        lost=lost,
    )


def slot_ranges(places: range, slots: int) -> Iterator[range]:
    """Return the slots of neighbouring positions: in a ring, the first slot follows the last."""
    place = places.start
    while place < places.stop:
        first = place % slots if slots else place
        stop = min(first + places.stop - place, slots or places.stop)
        yield range(first, stop)
        place += stop - first


def fed_nodes(step: Step) -> Sequence[int]:
    """Return the nodes that went through this cache, row by row: of several ranks it is the first one's."""
    if not step.ranks:
        return range(len(step.tokens))
    return [node for node, readers in enumerate(step.ranks) if 0 in readers]


def _elsewhere(step: Step) -> int:
    """Return accepted nodes that other ranks alone have read."""
    return len({*step.path[: len(step.emitted)]}.difference(fed_nodes(step)))


def _furthest(header: Header, steps: Sequence[Step], index: int) -> int:
    """Return the end of the furthest row fed before a step. Each step writes a token, so only the last few matter."""
    rolling = header.slots and header.window is not None
    largest = (header.slots - (header.window or 0)) // 2 if rolling else _LARGEST
    recent = islice(reversed(steps[max(0, index - max(0, largest)) : index]), _LARGEST)
    return max(map(_end, recent), default=0)


def _end(step: Step) -> int:
    """Return the end of the last row fed; a record from elsewhere may claim any number of rows."""
    return step.start - 1 + min(step.fed - step.pending, _LARGEST)


def chunks(header: Header, step: Step) -> list[range]:
    """Return the positions of pending tokens by chunks; the last chunk may have gone in with the step's tree."""
    root = step.start - 1
    size = max(1, header.prefill_chunk)
    return [range(begin, min(begin + size, root)) for begin in range(root - step.pending, root, size)]
