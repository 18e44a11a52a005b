"""A drafter that reads the target's features, then drafts on its own: a chain, or a tree of its likeliest guesses.

It has read the features of the stored text, each with the next token; the last of these tokens is the root. It reads
its drafts with features that it makes itself, which are forgotten after the step and replaced by the target's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import cosine_similarity

from ..model.download import fetch
from ..model.queued_tree import QueuedTree
from ..model.upload import upload
from ..outlook import surest, surest_of_few
from ..queued import Proposal, QueuedDraft
from ..types import Draft
from .device_tree import DeviceTree
from .guess_tree import Branches, GuessTree, OpenTree, TreeBounds
from .text_so_far import TextSoFar
from .unread import Unread
from .writer import CPU, Reads, Recordable, Writer

if TYPE_CHECKING:
    from ..model.graphs import Outputs
    from ..model.replays import Replayed, Replays
    from ..model.session import LayerStates
    from ..model.upload import Tokens
    from ..parts.eagle import Eagle, EagleSession

_CHUNK = 256  # rows of a long prompt that are read at once

Grow = Callable[[OpenTree, TreeBounds], None]  # a method's loop
TensorPair = tuple[torch.Tensor, torch.Tensor]
ReadRows = Callable[
    [torch.Tensor, torch.Tensor, torch.Tensor], TensorPair
]  # of tokens, features, parents: as `EagleSession`


class FeatureDrafter(Writer):
    """Drafts after a text that the target has read; `attach` names the drafter."""

    kind = "eagle"
    session: LayerStates
    drafter: EagleSession
    layers: tuple[int, ...]  # the target's layers whose inputs are read
    sayable: frozenset[int] | None  # tokens that can be drafted; None: all

    def __init__(self, session: LayerStates, context: TextSoFar, device: torch.device = CPU) -> None:
        super().__init__(context, device)
        self.session = session
        self._unread, self._pool = Unread(), context.session_pool
        self._final = self._feature = torch.empty(0)  # (1, H): after the text, for `logits` and for the next row
        self._made: dict[int, torch.Tensor] = {}  # the drafter's own features (1, H), by guess; -1: after the root
        self._rows: dict[int, int] = {-1: -1}  # rows of the drafter's tree, by guess
        self._logits: dict[int, torch.Tensor] = {}  # logits (n,) after a guess, of a tree in a detailed record

    def attach(self, eagle: Eagle, capacity: int, rows: int) -> None:
        """Draft with it on a text of up to `capacity` tokens, reading at most `rows` guesses in a step."""
        self.drafter = self._pool.lend(self, eagle, capacity, max(rows, _CHUNK))
        self.layers, self.vocabulary = eagle.layers, eagle.vocabulary
        self.sayable = None if eagle.vocabulary is None else eagle.vocabulary.members
        self.session.tap(*self.layers)

    @property
    def ready(self) -> bool:
        """Return True if the target has read all of the text but the root, and the drafter its features."""
        return 0 < self.session.length == len(self.text) - 1 and not len(self._unread)

    def catch_up(self) -> None:
        """Read the target's features of the text, unless the run is interrupted."""
        while len(self._unread) and not self.interrupted():
            first = self.drafter.length + 1
            states = self._unread.take(_CHUNK)
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

    @property
    def replays(self) -> Replays:
        """Return the drafter's recordings."""
        return self.drafter.replays

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

    def propose_tree(self, tree: GuessTree, bounds: TreeBounds, grow: Grow) -> Proposal:
        """Run a method's loop, which grows an empty tree."""
        if self.queues:
            return self._queue_tree(tree, bounds, grow)

        guesses = tree.guesses  # not the tree, which refers to this function: a cycle would keep the cache alive

        def likeliest(level: Sequence[int], k: int) -> Branches | None:
            if guesses and self.interrupted():
                return None
            above = [guesses[each] for each in level if each >= 0]
            final = self._read(level, [guess.token for guess in above], [guess.parent for guess in above])
            logits = self.drafter.logits(final)
            self._note(level, logits)
            indices, chances = surest_of_few(logits, k)
            tokens = indices if self.vocabulary is None else [self.vocabulary.listed[index] for index in indices]
            return _by_row(len(logits), tokens, [_chance(chance) for chance in chances])

        tree.likeliest = likeliest
        grow(tree, bounds)
        return self._draft(tree)

    def _queue_tree(self, tree: GuessTree, bounds: TreeBounds, grow: Grow) -> Proposal:
        """Queue the growth of the tree on the device."""
        noted = list[TensorPair]()  # of every level, for a detailed record
        replayed = None if self.detailed else self._replayed_tree(bounds, grow)
        if replayed is None:
            root, ends = upload(torch.tensor([*self.text[-1:], *self.end_tokens]), self.device).tensor_split((1,))
            outputs = self._grown(bounds, grow, root, ends, self.drafter.grow, self.interrupted, noted)
        else:
            outputs = replayed.outputs
        ids, parents, below, seen, chosen = outputs
        _, rows, width = chosen.shape

        def finished(fetched: Sequence[Sequence[float]]) -> Draft:
            [numbers] = fetched
            half = len(numbers) // 2
            branches, levels, size = iter(_by_row(rows, numbers[:half], numbers[half:])), iter(noted), 1

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
        drafter, device = self.drafter, self.device
        if not (width := drafter.width(bounds.k * (bounds.depth - 1))):
            return None
        ends = sorted(self.end_tokens)

        def work(numbers: torch.Tensor) -> Outputs:
            first, root, ends = numbers.long().tensor_split((1, 2))
            tree = QueuedTree.nothing(device)

            def read(tokens: torch.Tensor, feature: torch.Tensor, parents: torch.Tensor) -> TensorPair:
                nonlocal tree
                tree = tree.grown(parents)
                return drafter.behind(tokens, feature, tree, first, width)

            return self._grown(bounds, grow, root, ends, read, lambda: False, [])

        numbers = drafter.length, self.text[-1], *ends
        key = "tree", getattr(grow, "__func__", grow), bounds, len(ends), width
        return drafter.replays.run(key, numbers, (), device, work, self.outbox)

    def _grown(
        self,
        bounds: TreeBounds,
        grow: Grow,
        root: torch.Tensor,  # (1,)
        ends: torch.Tensor,  # (E,) tokens that end a text
        read: ReadRows,
        interrupted: Callable[[], bool],
        noted: list[TensorPair],
    ) -> Outputs:
        """Return a tree's ids, parents, depths and closure, and every row's likeliest tokens with p, (2, R, k)."""
        final, feature = self._final, self._feature
        base, rows = -1, 0  # of the drafter's tree: the first row of the previous level, and the number of rows

        def read_level(above: torch.Tensor, tokens: torch.Tensor, k: int) -> TensorPair:
            nonlocal final, feature, base, rows
            if len(tokens):
                final, feature = read(tokens, feature.index_select(0, above), above + base)
                base, rows = rows, rows + len(tokens)
            logits = self.drafter.logits(final)
            noted.append((logits, feature))
            return self._likeliest(logits, k)

        grown = DeviceTree(read_level, ends, interrupted)
        grow(grown, bounds)
        chosen, tree = torch.stack((torch.cat(grown.tokens).double(), torch.cat(grown.chances))), grown.tree
        return torch.cat((root, grown.kept)), tree.parents, tree.depths, tree.seen, chosen

    def _draft(self, tree: GuessTree) -> Draft:
        """Make the draft of a grown tree, for a detailed record with the drafter's distributions."""
        draft, parents = tree.draft(self.text[-1]), [guess.parent for guess in tree.best.values()]
        # Where a text is sampled, a q here would be read as that of a drawn guess, but these are point masses.
        if not parents or not self.detailed or not self.sampler.sampling.greedy:
            return draft
        logits = {parent: self._logits[parent] for parent in parents}
        q = dict(zip(logits, self.sampler.probabilities(self.widen(torch.stack([*logits.values()]))), strict=True))
        return replace(draft, q=(None, *(q[parent] for parent in parents)))

    def forget(self) -> None:
        """Rewind the drafter to the stored text, and keep the states that it has yet to read."""
        self._unread.follow(self.session, self.drafter)

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

    def _likeliest(self, logits: torch.Tensor, k: int) -> TensorPair:  # (R, n) -> (R, k) twice
        """Return the k likeliest tokens after every row, and their probabilities."""
        indices, chances = surest(logits, min(k, logits.shape[1]))
        ids = indices if self.vocabulary is None else self.vocabulary.ids[indices.long()]
        return ids, chances.double().nan_to_num(0.0).clamp(max=1.0)

    def _note(self, guesses: Sequence[int], logits: torch.Tensor, feature: torch.Tensor | None = None) -> None:
        """Keep, for a detailed record, the logits after some guesses, -1 being the root, and their features."""
        if self.detailed:
            self._logits |= dict(zip(guesses, logits, strict=False))
            self._made |= dict(zip(guesses, () if feature is None else torch.split(feature, 1), strict=False))


def _chance(share: float) -> float:
    """Return a share as a probability: rounding can exceed 1, and a row without finite numbers has none."""
    return 0.0 if math.isnan(share) else min(share, 1.0)


def _by_row(rows: int, tokens: Sequence[float], chances: Sequence[float]) -> Branches:
    """Split a level's tokens and probabilities into rows."""
    width = len(tokens) // rows
    parts = [slice(row * width, (row + 1) * width) for row in range(rows)]
    return [([int(token) for token in tokens[part]], chances[part]) for part in parts]
