"""EAGLE-3's drafter: it reads the target's features, then drafts on its own, a chain or a tree.

It has read the features of the stored text, each with the next token; the last of these tokens is the root. It reads
its drafts with features that it makes itself, which are forgotten after the step and replaced by the target's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import cosine_similarity

from ..model.download import fetch
from ..model.queued_tree import QueuedTree
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
    from ..parts.eagle import Eagle, EagleSession

ReadRows = Callable[
    [torch.Tensor, torch.Tensor, torch.Tensor], TensorPair
]  # of tokens, features, parents: as `EagleSession`


class EagleDrafter(FeatureDrafter):
    """Drafts token by token, or level by level."""

    kind, kind_in_tree = "eagle", "branch"
    drafter: EagleSession

    def __init__(self, session: LayerStates, context: TextSoFar, device: torch.device, part: Eagle, rows: int) -> None:
        super().__init__(session, context, device, part, rows)
        self._final = self._feature = torch.empty(0)  # (1, H): after the text, for `logits` and for the next row
        self._made: dict[int, torch.Tensor] = {}  # the drafter's own features (1, H), by guess; -1: after the root
        self._rows: dict[int, int] = {-1: -1}  # rows of the drafter's tree, by guess

    def read_text(self, states: torch.Tensor) -> None:
        """Read the tapped states of the next tokens, each with the token after it."""
        first = self.drafter.length + 1
        tokens = self.text[first : first + len(states)]
        if self.queues:
            self._final, self._feature = self.drafter.follow(tokens, states)
        else:
            final, feature = self.drafter.read(tokens, states)
            self._final, self._feature = final[-1:], feature[-1:]

    def begin(self) -> None:
        """Forget the last step's drafts."""
        self.drafter.forget()
        self._made, self._rows, self._logits = {-1: self._feature}, {-1: -1}, {}

    @property
    def reads(self) -> Reads:
        """Return `read` alone."""
        return (self.read,)

    def read(self, written: Tokens) -> torch.Tensor:
        """Read the newest token with the drafter's feature of the one before it; return the next token's logits."""
        final = self._final
        if newest := len(written):
            final = self._read([newest - 1], written[-1:], [newest - 2])
        return self.drafter.logits(final)

    def recordable(self, count: int) -> Recordable | None:
        """Record: read each token with the feature of the one before it."""
        drafter, device = self.drafter, self.device
        if not (width := drafter.width(count)):
            return None

        def begin(first: torch.Tensor) -> tuple[Reads, Callable[[], Outputs]]:
            final, feature = drafter.last

            def read(written: torch.Tensor) -> torch.Tensor:
                nonlocal final, feature
                if size := len(written):
                    chain = QueuedTree.chain(size, device)
                    final, feature = drafter.behind(written[-1:], feature, chain, first.long(), width)
                return drafter.logits(final)

            return (read,), tuple

        return Recordable(width, (drafter.length,), (), begin, lambda count: None)

    def branches(self, level: Sequence[int], above: Sequence[TreeGuess], k: int) -> Branches:
        """Read the guesses of a level, and return the likeliest tokens after each."""
        final = self._read(level, [guess.token for guess in above], [guess.parent for guess in above])
        logits = self.drafter.logits(final)
        self._note(level, logits)
        indices, chances = surest_of_few(logits, k)
        return by_row(len(logits), self.named(indices), [chance(each) for each in chances])

    def read_levels(self, noted: list[TensorPair]) -> ReadLevel:
        """Read each guess of a level with its parent's feature."""
        return self._levels(self.drafter.grow, noted)

    def recordable_tree(self, bounds: TreeBounds) -> RecordableTree | None:
        """Record the reading of levels of fixed sizes."""
        drafter, device = self.drafter, self.device
        if not (width := drafter.width(bounds.k * (bounds.depth - 1))):
            return None

        def begin(root: torch.Tensor, first: torch.Tensor) -> ReadLevel:
            tree = QueuedTree.nothing(device)

            def read(tokens: torch.Tensor, feature: torch.Tensor, parents: torch.Tensor) -> TensorPair:
                nonlocal tree
                tree = tree.grown(parents)
                return drafter.behind(tokens, feature, tree, first, width)

            return self._levels(read, [])

        return RecordableTree(width, (drafter.length,), begin)

    def _levels(self, read: ReadRows, noted: list[TensorPair]) -> ReadLevel:
        final, feature = self._final, self._feature
        base, rows = -1, 0  # of the drafter's tree: the first row of the previous level, and the number of rows

        def read_level(above: torch.Tensor, tokens: torch.Tensor, k: int) -> TensorPair:
            nonlocal final, feature, base, rows
            if len(tokens):
                final, feature = read(tokens, feature.index_select(0, above), above + base)
                base, rows = rows, rows + len(tokens)
            logits = self.drafter.logits(final)
            noted.append((logits, feature))
            return self.likeliest(logits, k)

        return read_level

    def agreement(self, path: Sequence[int]) -> list[float]:
        """Return the cosines of the drafter's own features and the target's; call it after `forget`.

        The first is of the root, the others of the accepted guesses on `path`, as far as the drafter has read them.
        """
        ours = [self._made[guess] for guess in (-1, *path) if guess in self._made]
        states = self._unread.states[: len(ours)]
        if not len(states) or self.drafter.length + len(self._unread) != self.session.length:
            return []
        theirs = self.drafter.features(states)
        [cosines] = fetch(cosine_similarity(torch.cat(ours[: len(states)]).float(), theirs.float()))
        return [round(each, 4) for each in cosines]

    def _read(self, guesses: Sequence[int], tokens: Tokens, parents: Sequence[int]) -> torch.Tensor:
        """Read some guesses with their parents' features; keep their features, and return the input of `logits`."""
        if not len(tokens):
            return self._final
        above = [self._made[parent] for parent in parents]
        entering = torch.cat(above) if len(above) > 1 else above[0]
        final, feature = self.drafter.grow(tokens, entering, [self._rows[parent] for parent in parents])
        first = len(self._rows) - 1
        for row, (guess, made) in enumerate(zip(guesses, torch.split(feature, 1), strict=True)):
            self._rows[guess], self._made[guess] = first + row, made
        return final

    def _note(self, guesses: Sequence[int], logits: torch.Tensor, feature: torch.Tensor | None = None) -> None:
        """Keep, for a detailed record, the logits after some guesses, -1 being the root, and their features."""
        super()._note(guesses, logits)
        if self.detailed and feature is not None:
            self._made |= dict(zip(guesses, torch.split(feature, 1), strict=False))
