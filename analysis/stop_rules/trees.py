"""Replays smaller trees, with the guesses of the largest products of probabilities, as in EAGLE-2.

Growing a tree does not depend on how much of it is kept, so the smaller tree of a recorded step is known. Once it
accepts less than the recorded one, the next step begins where no recorded step begins. Its tree is unknown, since the
drafter reads the target's features there; it is estimated by what the recorded tree has below that position.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..metrics.columns import Array
from ..metrics.result import UnknownError
from ..metrics.selection import Selection
from .positions import Positions
from .replay import Certainty, Replay, RulePath

_ROUNDED = 1e-5  # products of probabilities of six digits: closer ones may be in either order
_DEEPEST = 64

EXACT = "the smaller trees accept what the recorded ones do, so that every step begins where it did"
ESTIMATED = (
    "assumes that where no recorded step begins, the drafter would guess what the tree around it has below there"
)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Every accepted guess, as seen from each position before it on its path."""

    position: Array
    rank: Array  # among the guesses below the position, by product
    product: Array  # of the probabilities from the position on


@dataclass(frozen=True, slots=True)
class TreeRecord:
    """Recorded trees."""

    at: Positions
    step: Array  # (N,) of every guess
    product: Array  # (N,)
    tied: Array  # (K,) whether rounding may have exchanged a guess of this rank with the next one, in some step
    pairs: _Pairs
    leaf: Array  # (S,) whether nothing was guessed after the accepted path
    sizes: Array  # (S,) guesses of each step
    deepest: int  # guesses of the longest path
    above: dict[float, tuple[Array, bool]] = field(default_factory=dict)  # by threshold

    @classmethod
    def of(cls, selection: Selection) -> TreeRecord:
        """Read the trees of a selection of EAGLE's."""
        at, nodes, guesses = Positions.of(selection), selection.nodes, selection.guesses
        count = len(at.start)
        step = selection.step_of_node[guesses]
        drafted = selection.steps.maybe("drafted")
        sizes = np.bincount(step, minlength=count)
        if not (np.isnan(drafted) | (drafted == sizes)).all():
            raise UnknownError("this record lacks some of the guesses of its steps")
        hit = nodes.maybe("accepted")[guesses] > 0
        depth = nodes.maybe("depth")[guesses].astype(np.int64)
        if (np.bincount(step[hit], minlength=count) != at.accepted).any() or (depth > at.accepted[step])[hit].any():
            raise UnknownError("this record's steps accept other guesses than those on a path")
        if depth.max(initial=0) > _DEEPEST:
            raise UnknownError(f"this record has trees deeper than {_DEEPEST} guesses")
        product, reached = _along_paths(selection, step, depth, hit)
        order = np.lexsort((-product, step))
        rank, gap = _ranks(step[order]), product[order][:-1] - product[order][1:]
        tied = np.bincount(rank[:-1][(rank[1:] > 0) & (gap <= _ROUNDED)], minlength=int(sizes.max(initial=0)) + 1) > 0
        pairs = _pairs(at, step, depth, hit, product, reached, order)
        goes_on = np.zeros(count, bool)  # whether something was guessed after the accepted path
        goes_on[step[~hit & (reached == at.accepted[step]) & (depth == reached + 1)]] = True
        return cls(at, step, product, tied, pairs, ~goes_on, sizes, int(depth.max(initial=0)))

    def replay(self, size: int, least: float) -> Replay:
        """Replay trees of at most `size` guesses, none with a product below `least`."""
        at, pairs = self.at, self.pairs
        surviving = (pairs.rank < size) & (pairs.product >= least)
        accepted = np.bincount(pairs.position[surviving], minlength=len(at.step))
        after = at.after(accepted)
        visited = at.walk(after)
        likely, near = self._likely(least)
        verified = np.minimum(likely, size)  # the likeliest guesses are kept
        doubtful = near or bool(self.tied[size - 1 : size].any())
        slow = self._path(after, visited, verified)
        if not doubtful and not at.offset[visited].any():
            return Replay(Certainty.EXACT, EXACT, slow)
        # All that is known of the path was accepted, and the recorded tree had nothing to guess after it.
        left = at.accepted[at.step] - at.offset
        lacking = (at.offset > 0) & (accepted == left) & self.leaf[at.step]
        following = at.next_step(at.step)
        lacking &= following < at.limit
        furthest = at.after(np.full(len(after), min(size, self.deepest)))
        fastest = after.copy()
        fastest[lacking] = np.minimum(furthest, after[np.minimum(following, len(after) - 1)])[lacking]
        fast = self._path(fastest, at.walk(fastest), verified)
        return Replay(Certainty.ESTIMATED, ESTIMATED, slow, fast)

    def _likely(self, least: float) -> tuple[Array, bool]:
        """Count the guesses of every step whose products reach a threshold; whether any product is as good as equal."""
        if least not in self.above:
            counts = (
                self.sizes if least <= 0 else np.bincount(self.step[self.product >= least], minlength=len(self.sizes))
            )
            near = least > 0 and bool((np.abs(self.product - least) <= _ROUNDED).any())
            self.above[least] = counts, near
        return self.above[least]

    def _path(self, after: Array, visited: Array, verified: Array) -> RulePath:
        """Count the steps that begin at these positions; where the tree is unknown it has the average size."""
        at = self.at
        later = visited[~at.reads_prompt[visited]]
        recorded_start = at.offset[later] == 0
        others = ~at.reads_prompt[at.start]
        counts = []
        for each in (verified, self.sizes):
            mean = each[others].mean() if others.any() else 0.0
            counts.append(np.where(recorded_start, each[at.step[later]], mean))
        return RulePath(len(visited), int((after[later] - later).sum()), counts[0], counts[1])


def _along_paths(selection: Selection, step: Array, depth: Array, hit: Array) -> tuple[Array, Array]:
    """Return every guess's product of probabilities, and the depth of the last accepted guess on its path."""
    nodes, guesses = selection.nodes, selection.guesses
    share = nodes.maybe("confidence")[guesses]
    if np.isnan(share).any():
        raise UnknownError("this record lacks the drafter's probabilities: record it with --record full")
    parent, node = nodes.maybe("parent")[guesses].astype(np.int64), nodes.maybe("node")[guesses].astype(np.int64)
    key = step * 2**31 + node
    above = np.minimum(np.searchsorted(key, step * 2**31 + parent), max(0, len(key) - 1))
    if ((key[above] != step * 2**31 + parent) & (depth > 1)).any() or (
        depth[depth > 1] != depth[above][depth > 1] + 1
    ).any():
        raise UnknownError("these drafts are no trees of guesses")
    product, reached = share.copy(), np.where(hit & (depth == 1), 1, 0)
    for level in range(2, int(depth.max(initial=0)) + 1):
        rows = np.flatnonzero(depth == level)
        product[rows] = share[rows] * product[above[rows]]
        reached[rows] = np.where(hit[rows], level, reached[above[rows]])
    return product, reached


def _pairs(
    at: Positions,
    step: Array,
    depth: Array,
    hit: Array,
    product: Array,
    reached: Array,
    order: Array,
) -> _Pairs:
    """Rank each accepted guess among the guesses below every earlier position on its path."""
    parts = list[tuple[Array, Array, Array]]()
    path = np.flatnonzero(hit)
    products = np.ones((len(at.start), int(depth.max(initial=0)) + 1))
    products[step[path], depth[path]] = product[path]
    below = order
    for offset in range(int(at.accepted.max(initial=0))):
        below = below[(reached[below] >= offset) & (depth[below] > offset)]
        accepted = hit[below]
        rows, rank = below[accepted], _ranks(step[below])[accepted]
        relative = product[rows] / np.maximum(products[step[rows], offset], 1e-300)
        parts.append((at.start[step[rows]] + offset, rank, relative))
    if not parts:
        return _Pairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    return _Pairs(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _ranks(step: Array) -> Array:
    """Number the guesses of each step from 0; those of one step are adjacent."""
    place = np.arange(len(step))
    begins = np.append(True, step[1:] != step[:-1])[: len(step)]
    return np.asarray(place - np.maximum.accumulate(np.where(begins, place, 0)))
