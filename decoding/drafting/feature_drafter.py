"""Drafters that read the target's features of the text: they draft a chain, or a tree of their likeliest guesses."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from ..model.queued_tree import QueuedTree
from ..model.upload import upload
from ..outlook import surest
from ..queued import Proposal, QueuedDraft
from ..types import Draft
from .device_tree import DeviceTree, ReadLevel
from .guess_tree import Branches, GuessTree, OpenTree, TreeBounds, TreeGuess
from .text_so_far import TextSoFar
from .unread import Unread
from .writer import Writer

if TYPE_CHECKING:
    from ..model.graphs import Outputs
    from ..model.replays import Replayed, Replays
    from ..model.session import LayerStates
    from ..parts.dflash import DFlash
    from ..parts.eagle import Eagle

CHUNK = 256  # rows of a long prompt that are read at once

Grow = Callable[[OpenTree, TreeBounds], None]  # a method's loop
TensorPair = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True, slots=True)
class RecordableTree:
    """A tree that a device can grow as one graph."""

    key: Hashable
    numbers: tuple[float, ...]  # what differs from step to step
    begin: Callable[[torch.Tensor, torch.Tensor], ReadLevel]  # of the root, (1,), and these numbers, on the device


class FeatureDrafter(Writer):
    """Drafts after a text that the target has read."""

    kind_in_tree: ClassVar[str]  # of the sources of a tree's guesses

    session: LayerStates
    drafter: Any  # the session of the drafter: an `EagleSession` or a `DFlashSession`
    layers: tuple[int, ...]  # the target's layers whose inputs are read
    sayable: frozenset[int] | None  # tokens that can be drafted; None: all

    def __init__(
        self, session: LayerStates, context: TextSoFar, device: torch.device, part: Eagle | DFlash, rows: int
    ) -> None:
        """Draft with a part that reads at most `rows` guesses in a step, after the text of a session of the target."""
        super().__init__(context, device)
        self.session, self._unread = session, Unread()
        capacity = context.prompt_length + context.max_new_tokens
        self.drafter = context.session_pool.lend(self, part, capacity, max(rows, CHUNK))
        self.layers, self.vocabulary = part.layers, part.vocabulary
        self.sayable = None if part.vocabulary is None else part.vocabulary.members
        self._logits = dict[int, torch.Tensor]()  # logits (n,) after a guess, of a tree in a detailed record
        self.session.tap(*self.layers)

    @property
    def ready(self) -> bool:
        """Return True if the target has read all of the text but the root, and the drafter its features."""
        return 0 < self.session.length == len(self.text) - 1 and not len(self._unread)

    def catch_up(self) -> None:
        """Read the target's features of the text, unless the run is interrupted."""
        while len(self._unread) and not self.interrupted():
            self.read_text(self._unread.take(CHUNK))

    @abstractmethod
    def read_text(self, states: torch.Tensor) -> None:  # (n, taps * H)
        """Read the tapped states of the next tokens of the text."""

    def forget(self) -> None:
        """Rewind the drafter to the stored text, and keep the states that it has yet to read."""
        self._unread.follow(self.session, self.drafter)

    @property
    def replays(self) -> Replays:
        """Return the drafter's recordings."""
        replays: Replays = self.drafter.replays
        return replays

    @abstractmethod
    def branches(self, level: Sequence[int], above: Sequence[TreeGuess], k: int) -> Branches:
        """Return the `k` likeliest tokens after each guess of a level: -1, the root, or all guesses `above`."""

    @abstractmethod
    def read_levels(self, noted: list[TensorPair]) -> ReadLevel:
        """Return what reads the levels of a tree on the device, and notes logits and features of each."""

    @abstractmethod
    def recordable_tree(self, bounds: TreeBounds) -> RecordableTree | None:
        """Return how a device grows a tree as one graph; None if it cannot."""

    def propose_tree(self, tree: GuessTree, bounds: TreeBounds, grow: Grow) -> Proposal:
        """Run a method's loop, which grows an empty tree."""
        if self.queues:
            return self._queue_tree(tree, bounds, grow)

        guesses = tree.guesses  # not the tree, which refers to this function: a cycle would keep the cache alive

        def likeliest(level: Sequence[int], k: int) -> Branches | None:
            if guesses and self.interrupted():
                return None
            return self.branches(level, [guesses[each] for each in level if each >= 0], k)

        tree.likeliest = likeliest
        grow(tree, bounds)
        return self._draft(tree)

    def _queue_tree(self, tree: GuessTree, bounds: TreeBounds, grow: Grow) -> Proposal:
        """Queue the growth of the tree on the device."""
        noted = list[TensorPair]()  # of every level, for a detailed record
        replayed = None if self.detailed else self._replayed_tree(bounds, grow)
        if replayed is None:
            root, ends = upload(torch.tensor([*self.text[-1:], *self.end_tokens]), self.device).tensor_split((1,))
            outputs = _grown(bounds, grow, root, ends, self.read_levels(noted), self.interrupted)
        else:
            outputs = replayed.outputs
        ids, parents, below, seen, chosen = outputs
        _, rows, width = chosen.shape

        def finished(fetched: Sequence[Sequence[float]]) -> Draft:
            [numbers] = fetched
            half = len(numbers) // 2
            branches, levels, size = iter(by_row(rows, numbers[:half], numbers[half:])), iter(noted), 1

            def likeliest(level: Sequence[int], k: int) -> Branches | None:
                nonlocal size
                grown, size = [*islice(branches, size)], min(k, size * width)
                for logits, feature in islice(levels, 1):
                    self._note(level, logits, feature)
                return grown[: len(level)] or None

            tree.likeliest = likeliest
            grow(tree, bounds)
            return self._draft(tree)

        shape = QueuedTree(parents, below, seen, bounds.depth)
        nothing, fixed = (None,) * len(shape), replayed and replayed.fixed
        return QueuedDraft(ids, shape, nothing, (chosen,), finished, fixed=fixed)

    def _replayed_tree(self, bounds: TreeBounds, grow: Grow) -> Replayed | None:
        """Return what `_grown` returns, computed as one graph."""
        if (recordable := self.recordable_tree(bounds)) is None:
            return None
        ends = sorted(self.end_tokens)

        def work(numbers: torch.Tensor) -> Outputs:
            root, ends_there, rest = numbers.long().tensor_split((1, 1 + len(ends)))
            return _grown(bounds, grow, root, ends_there, recordable.begin(root, rest), lambda: False)

        numbers = self.text[-1], *ends, *recordable.numbers
        key = "tree", getattr(grow, "__func__", grow), bounds, len(ends), recordable.key
        return self.replays.run(key, numbers, (), self.device, work, self.outbox)

    def _draft(self, tree: GuessTree) -> Draft:
        """Make the draft of a grown tree, for a detailed record with the drafter's distributions."""
        draft, parents = tree.draft(self.text[-1], self.kind_in_tree), [guess.parent for guess in tree.best.values()]
        # Where a text is sampled, a q here would be read as that of a drawn guess, but these are point masses.
        if not parents or not self.detailed or not self.sampler.sampling.greedy:
            return draft
        logits = {parent: self._logits[parent] for parent in parents}
        q = dict(zip(logits, self.sampler.probabilities(self.widen(torch.stack([*logits.values()]))), strict=True))
        return replace(draft, q=(None, *(q[parent] for parent in parents)))

    def likeliest(self, logits: torch.Tensor, k: int) -> TensorPair:  # (R, n) -> (R, k) twice
        """Return the k likeliest tokens after every row, and their probabilities, on the device."""
        indices, chances = surest(logits, min(k, logits.shape[1]))
        ids = indices if self.vocabulary is None else self.vocabulary.ids[indices.long()]
        return ids, chances.double().nan_to_num(0.0).clamp(max=1.0)

    def named(self, indices: Sequence[int]) -> Sequence[int]:
        """Return the ids of tokens by their places in the draft vocabulary."""
        return indices if self.vocabulary is None else [self.vocabulary.listed[index] for index in indices]

    def _note(self, guesses: Sequence[int], logits: torch.Tensor, feature: torch.Tensor | None = None) -> None:
        """Keep, for a detailed record, the logits after some guesses, -1 being the root."""
        if self.detailed:
            self._logits |= dict(zip(guesses, logits, strict=False))


def _grown(
    bounds: TreeBounds,
    grow: Grow,
    root: torch.Tensor,  # (1,)
    ends: torch.Tensor,  # (E,) tokens that end a text
    read: ReadLevel,
    interrupted: Callable[[], bool],
) -> Outputs:
    """Return a tree's ids, parents, depths and closure, and every row's likeliest tokens with p, (2, R, k)."""
    grown = DeviceTree(read, ends, interrupted)
    grow(grown, bounds)
    chosen, tree = torch.stack((torch.cat(grown.tokens).double(), torch.cat(grown.chances))), grown.tree
    return torch.cat((root, grown.kept)), tree.parents, tree.depths, tree.seen, chosen


def chance(share: float) -> float:
    """Return a share as a probability: rounding can exceed 1, and a row without finite numbers has none."""
    return 0.0 if math.isnan(share) else min(share, 1.0)


def by_row(rows: int, tokens: Sequence[float], chances: Sequence[float]) -> Branches:
    """Split a level's tokens and probabilities into rows."""
    width = len(tokens) // rows
    parts = [slice(row * width, (row + 1) * width) for row in range(rows)]
    return [([int(token) for token in tokens[part]], chances[part]) for part in parts]
