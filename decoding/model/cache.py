"""The keys and values of one text: one tensor, allocated once, moved only when a tree's accepted rows are stored.

The token at position i is in slot i mod slots. So what a slot holds follows from `length` alone. There are two sizes:

- linear, where some layer sees the whole text: a slot for every token and for the largest step after them;
- rolling, where every layer has a sliding window W: W + 2 S slots, S being the largest step. No key that is still
  visible can have been overwritten. Let M be the greatest length the text ever had. Rows are written after `length`,
  so none was written after position M + S - 1, and the slots still hold every position from M - S - W on. A text is
  never rewound below M - S, and its next token, there or later, sees nothing in front of position M - S - W + 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..errors import ModelError
from . import quiet

Views = tuple[torch.Tensor, ...]  # key and value of layer 0, key and value of layer 1, ...: (1, kv_heads, P, D) each


class Cache:
    """Slots for every layer's keys and values, and the number of tokens stored."""

    def __init__(
        self,
        layers: int,
        kv_heads: int,
        head_dim: int,
        capacity: int,
        largest_step: int,
        window: int | None,
        device: torch.device,
        dtype: torch.dtype,
        spare: int = 0,
    ) -> None:
        """`window` is the sliding window that all layers have, or None; `spare` slots are never written, only read."""
        self.capacity, self.largest_step = capacity, largest_step
        self.slots, self._spare = capacity + largest_step + spare, spare
        if window is not None:
            self.slots = min(self.slots, window + 2 * largest_step)
        self.length = 0
        self._longest = 0
        with torch.inference_mode():
            try:  # zeros touch every page, so that a lack of memory shows here and not in the middle of a run
                self.data = quiet.zeros(layers, 2, self.slots, kv_heads, head_dim, device=device, dtype=dtype)
            except RuntimeError:
                raise ModelError(
                    f"there is no memory for the keys and values of {self.slots} tokens; ask for fewer tokens"
                ) from None
            self._flat = self.data.flatten(0, 1)  # (2 layers, slots, kv_heads, D): keys at even, values at odd indices

    def check(self, rows: int) -> None:
        """Raise ModelError unless a step of `rows` fits after the stored tokens."""
        if rows > self.largest_step:
            raise ModelError(f"a step of {rows} tokens is too large for a session opened for {self.largest_step}")
        if self.length + rows > self.capacity + self.largest_step:
            raise ModelError(
                f"{rows} tokens do not fit behind the {self.length} stored ones of a session for {self.capacity}; "
                "shorten the prompt or ask for fewer new tokens"
            )

    def slots_of(self, start: int, stop: int) -> slice | torch.Tensor:
        """Return the slots of the positions from `start` to `stop`: a slice unless they go round the ring's end."""
        first = start % self.slots
        if first + stop - start <= self.slots:
            return slice(first, first + stop - start)
        return torch.arange(start, stop, device=self.data.device) % self.slots

    def views(self, slots: slice) -> Views:
        """View every layer's keys and values at adjacent slots, as attention reads them, in one cheap call."""
        part = self._flat[:, slots]
        return part.transpose(1, 2).unsqueeze(1).unbind(0)

    def gather(self, layer: int, slots: torch.Tensor) -> Views:
        """Copy one layer's keys and values at scattered slots: (1, kv_heads, P, D) each."""
        return self.data[layer].index_select(1, slots).transpose(1, 2).unsqueeze(1).unbind(0)

    def commit(self, rows: Sequence[int]) -> None:
        """Store the rows of the last step that form a path: they move down to the stored tokens.

        Rows ascend, and the i-th of them is at least row i, so reading all of them before writing any is enough.
        """
        unmoved = next((index for index, row in enumerate(rows) if row != index), len(rows))
        if unmoved < len(rows):
            self._move_down(rows, unmoved)
        self.length += len(rows)
        self._longest = max(self._longest, self.length)

    def _move_down(self, rows: Sequence[int], unmoved: int) -> None:
        """Move all rows of a path but the first `unmoved`, which are in place; adjacent rows move together."""
        runs = [[rows[unmoved], rows[unmoved] + 1]]  # begin and end
        for row in rows[unmoved + 1 :]:
            if row == runs[-1][1]:
                runs[-1][1] += 1
            else:
                runs.append([row, row + 1])
        begin, end = self.length + unmoved, self.length + len(rows)
        overlaps = rows[unmoved] < len(rows)
        with torch.inference_mode():
            moved = [self._flat[:, self.slots_of(self.length + first, self.length + stop)] for first, stop in runs]
            self._flat[:, self.slots_of(begin, end)] = torch.cat(moved, 1) if overlaps or len(runs) > 1 else moved[0]

    def holds(self, length: int) -> bool:
        """Return True if a text can continue after the first `length` tokens; a ring may have overwritten some."""
        wraps = self.slots < self.capacity + self.largest_step
        return max(0, self._longest - self.largest_step if wraps else 0) <= length <= self.length

    def rewind(self, length: int) -> None:
        """Forget the tokens after `length`, which must be among those that the cache holds; 0 forgets all."""
        if length:
            assert self.holds(length)
            self.length = length
        else:
            self.reset()

    def reset(self) -> None:
        """Forget the text."""
        self.length = self._longest = 0
        if self._spare:  # slots after the text are read: a mask hides any number, but not a NaN
            self.data.zero_()
