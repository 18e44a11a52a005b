"""A drafter that guesses a block of tokens at once: DFlash's.

It has read the features of the stored text; the root follows them. One pass over the root and mask tokens gives a
distribution of every token of the block. None of them knows which tokens the block has before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch

from ..outlook import surest_of_few
from .device_tree import ReadLevel
from .feature_drafter import FeatureDrafter, RecordableTree, TensorPair, by_row, chance
from .guess_tree import Branches, TreeBounds, TreeGuess
from .text_so_far import TextSoFar
from .writer import Reads, Recordable

if TYPE_CHECKING:
    from ..model.graphs import Outputs
    from ..model.session import LayerStates
    from ..model.upload import Tokens
    from ..parts.dflash import DFlash, DFlashSession


class BlockDrafter(FeatureDrafter):
    """Drafts all tokens of a step in one pass."""

    kind, kind_in_tree = "block", "place"
    drafter: DFlashSession

    def __init__(self, session: LayerStates, context: TextSoFar, device: torch.device, part: DFlash) -> None:
        super().__init__(session, context, device, part, part.config.block)
        self.guesses = part.config.guesses  # of a whole block
        self.anchored, self._mask = part.config.from_anchor, part.config.mask
        self._count = 0  # guesses of the step
        self._block: torch.Tensor | None = None  # (count, n) logits of every guess

    def read_text(self, states: torch.Tensor) -> None:
        """Read the tapped states of the next tokens of the text."""
        self.drafter.read(states)

    def begin(self, count: int) -> None:
        """Forget the last step's block; the next one guesses `count` tokens."""
        self._count, self._block, self._logits = count, None, {}

    @property
    def reads(self) -> Reads:
        """Return `read` alone."""
        return (self.read,)

    def read(self, written: Tokens) -> torch.Tensor:
        """Return the logits of the token after those written so far."""
        return self._filled()[len(written) : len(written) + 1]

    def recordable(self, count: int) -> Recordable | None:
        """Record: fill the block."""
        if not (width := self.drafter.width(self._rows)):
            return None

        def begin(numbers: torch.Tensor) -> tuple[Reads, Callable[[], Outputs]]:
            root, first = numbers.long().tensor_split((1,))
            block = self._filled_behind(root, first, width)
            return (lambda written: block[len(written) : len(written) + 1],), tuple

        return Recordable((width, self._count), (self.text[-1], self.drafter.length), (), begin, lambda count: None)

    def branches(self, level: Sequence[int], above: Sequence[TreeGuess], k: int) -> Branches:
        """Return the likeliest tokens of the level's place in the block, which are the same after every guess."""
        depth = above[0].depth if above else 0
        logits = self._filled()[depth : depth + 1]
        self._note(level, logits.expand(len(level), -1))
        indices, chances = surest_of_few(logits, k)
        [likeliest] = by_row(1, self.named(indices), [chance(each) for each in chances])
        return [likeliest] * len(level)

    def read_levels(self, noted: list[TensorPair]) -> ReadLevel:
        """Take the rows of the block one after the other."""
        return self._levels(self._filled(), noted)

    def recordable_tree(self, bounds: TreeBounds) -> RecordableTree | None:
        """Record: fill the block."""
        if not (width := self.drafter.width(self._rows)):
            return None

        def begin(root: torch.Tensor, first: torch.Tensor) -> ReadLevel:
            return self._levels(self._filled_behind(root, first, width), [])

        return RecordableTree((width, self._count), (self.drafter.length,), begin)

    @property
    def _rows(self) -> int:
        return self._count + (not self.anchored)

    def _filled(self) -> torch.Tensor:  # (count, n)
        """Fill the block, once a step, and return its logits."""
        if self._block is None:
            self._block = self.drafter.logits(self.drafter.fill(self.text[-1], self._count))
        return self._block

    def _filled_behind(self, root: torch.Tensor, first: torch.Tensor, width: int) -> torch.Tensor:
        ids = torch.cat((root, root.new_full((self._rows - 1,), self._mask)))
        return self.drafter.logits(self.drafter.fill_behind(ids, self._count, first, width))

    def _levels(self, block: torch.Tensor, noted: list[TensorPair]) -> ReadLevel:
        depth = 0

        def read_level(above: torch.Tensor, tokens: torch.Tensor, k: int) -> TensorPair:
            nonlocal depth
            logits, rows = block[depth : depth + 1], max(1, len(tokens))
            depth += 1
            noted.append((logits.expand(rows, -1), block))
            ids, chances = self.likeliest(logits, k)
            return ids.expand(rows, -1), chances.expand(rows, -1)

        return read_level
