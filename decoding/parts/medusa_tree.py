"""Medusa's trees: the combinations of the heads' guesses, given by hand or grown from accuracies.

A path (i1, ..., ik) is guess i1 of head 1, guess i2 of head 2, and so on; ranks count from 0. Every prefix of a path is
a path of the tree too. From sections 3.1.2 and 3.3.3 of Cai et al., 2024, arXiv 2401.10774.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush
from itertools import accumulate, product
from operator import mul

from ..errors import ParamError
from ..params import shown
from ..types import JSON

Path = tuple[int, ...]
Accuracies = Sequence[Sequence[float]]  # [k][r]: how often guess r of head k + 1 is the token that comes

RANKS = 10  # guesses of a head that a grown tree chooses from
NODES = 63  # guesses of the default tree: with the root, a step of 64
_MOST = 4095  # guesses of any tree: with the root, as many nodes as a step may hold
_DEEPEST, _LAST_RANK = 64, 255
_LONGEST = 65_536  # characters of a tree that is written out


@dataclass(frozen=True, slots=True)
class TreeShape:
    """Columns over the nodes. Node 0 is the root; a node at depth k holds a guess of head k."""

    parents: tuple[int, ...]
    depths: tuple[int, ...]
    ranks: tuple[int, ...]  # 0 for the root, where it means nothing

    @property
    def rows(self) -> list[tuple[int, int, int, int]]:
        """Return number, parent, depth and rank of every node but the root."""
        columns = range(len(self.parents)), self.parents, self.depths, self.ranks
        return [*zip(*columns, strict=True)][1:]

    @property
    def paths(self) -> list[Path]:
        """Return the path of every node but the root."""
        paths: list[Path] = [()]
        for _, parent, _, rank in self.rows:
            paths.append((*paths[parent], rank))
        return paths[1:]

    @property
    def text(self) -> str:
        """Return the tree as text that `given` reads."""
        return ";".join(",".join(map(str, path)) for path in self.paths)


def from_paths(paths: Iterable[Path]) -> TreeShape:
    """Make the tree of these paths, each after its prefix; ParamError if one has none."""
    place: dict[Path, int] = {(): 0}
    parents, depths, ranks = [-1], [0], [0]
    for path in paths:
        if path in place:
            raise ParamError(f"the path {_spelt(path)} is in the tree twice: leave one out")
        if path[:-1] not in place:
            raise ParamError(f"the path {_spelt(path)} has no parent: add the path {_spelt(path[:-1])} to the tree")
        place[path] = len(place)
        parents.append(place[path[:-1]])
        depths.append(len(path))
        ranks.append(path[-1])
    return TreeShape(tuple(parents), tuple(depths), tuple(ranks))


def sizes_in(text: str) -> tuple[int, ...]:
    """Read the sizes of a Cartesian tree, written as "2,3"."""
    sizes = _numbers(text) if len(text) <= _LONGEST else None
    if sizes is None or not 1 <= min(sizes) <= max(sizes) <= _LAST_RANK + 1 or len(sizes) > _DEEPEST:
        raise ParamError(
            f'sizes must be a number from 1 to {_LAST_RANK + 1} for each head, written as "4,3,2", not {shown(text)}'
        )
    if sum(accumulate(sizes, mul)) > _MOST:
        raise ParamError(f"this Cartesian tree has more than {_MOST} guesses: lower its sizes")
    return sizes


@lru_cache(maxsize=16)
def cartesian(sizes: Sequence[int]) -> TreeShape:
    """Combine the best sizes[0] guesses of head 1 with the best sizes[1] of head 2, and so on."""
    return from_paths(path for heads in range(len(sizes)) for path in product(*map(range, sizes[: heads + 1])))


@lru_cache(maxsize=16)
def given(text: str) -> TreeShape:
    """Read a tree of paths written as "0;1;0,0", as JSON, or as the list of tuples in which trees are published."""
    paths = _read(text) if len(text) <= _LONGEST else None
    if not paths or not all(0 < len(path) <= _DEEPEST and max(path) <= _LAST_RANK for path in paths):
        raise ParamError(
            f'paths must be ranks from 0 to {_LAST_RANK}, written as "0;1;0,0", one path for each of 1 to {_MOST} '
            f"guesses and at most {_DEEPEST} ranks long, not {shown(text)}"
        )
    if len(paths) > _MOST:
        raise ParamError(f"this tree has {len(paths)} guesses, above {_MOST}: leave some out")
    return from_paths(sorted(paths, key=lambda path: (len(path), path)))


def grow(accuracies: Accuracies, nodes: int, ranks: int = RANKS) -> TreeShape:
    """Grow the tree of at most `nodes` guesses with the most expected accepted tokens, the best guess first.

    A guess is worth the product of the accuracies along its path, as if heads erred independently. No guess is worth
    more than its parent, so repeatedly adding the best neighbour of the tree is optimal. Guesses that are never right
    are left out, so a tree may have fewer than `nodes`.
    """
    orders = [sorted(range(min(len(row), ranks)), key=lambda rank: -row[rank]) for row in accuracies]
    worth: dict[Path, float] = {(): 1.0}
    heap: list[tuple[float, int, Path, int]] = []  # the best first; of equals the shallowest, then the lowest ranks

    def offer(parent: Path, place: int) -> None:
        depth = len(parent)
        if depth < len(orders) and place < len(orders[depth]):
            rank = orders[depth][place]
            value = worth[parent] * accuracies[depth][rank]
            if value > 0.0:
                heappush(heap, (-value, depth + 1, (*parent, rank), place))

    offer((), 0)
    while heap and len(worth) <= nodes:
        negative, _, path, place = heappop(heap)
        worth[path] = -negative
        offer(path[:-1], place + 1)  # its next sibling
        offer(path, 0)  # its first child
    return from_paths(path for path in worth if path)


def expected_length(tree: TreeShape, accuracies: Accuracies) -> float:
    """Estimate the tokens per step, the target's own included, if heads err independently."""
    return sum(_worths(tree, accuracies))


def default(heads: int, accuracies: Accuracies | None = None, nodes: int = NODES) -> TreeShape:
    """Grow a tree for `heads` heads, from assumed accuracies if none were measured."""
    return _grown(tuple(tuple(row) for row in (accuracies or assumed(heads))[:heads]), nodes)


_grown = lru_cache(maxsize=16)(grow)  # every run asks for the same few


def assumed(heads: int) -> Accuracies:
    """Assume accuracies: each head a quarter less often right than the one before, rank r by 1 / (r + 1)^2."""
    return [[0.62 * 0.75**head / (rank + 1) ** 2 for rank in range(RANKS)] for head in range(heads)]


def _worths(tree: TreeShape, accuracies: Accuracies) -> list[float]:
    """Estimate the probability that the target accepts each node; a guess without an accuracy counts as wrong."""
    worths = [1.0]
    for _, parent, depth, rank in tree.rows:
        row = accuracies[depth - 1] if depth <= len(accuracies) else ()
        worths.append(worths[parent] * (row[rank] if rank < len(row) else 0.0))
    return worths


def _read(text: str) -> list[Path] | None:
    """Read the paths in a text, if it holds any."""
    if not text.lstrip().startswith("["):
        paths = [_numbers(part) for part in text.split(";")]
        return [path for path in paths if path is not None] if None not in paths else None
    text = re.sub(r",\s*\]", "]", text.replace("(", "[").replace(")", "]"))  # Python writes a path as (0,)
    try:
        rows: JSON = json.loads(text)
    except (ValueError, RecursionError):
        return None
    fine = all(type(row) is list and all(type(rank) is int and rank >= 0 for rank in row) for row in rows)
    return [tuple(row) for row in rows] if fine else None


def _numbers(text: str) -> Path | None:
    """Read numbers separated by commas."""
    parts = [part.strip() for part in text.split(",")]
    return tuple(map(int, parts)) if all(re.fullmatch("[0-9]{1,4}", part) for part in parts) else None


def _spelt(path: Path) -> str:
    return ",".join(map(str, path))
