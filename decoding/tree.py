"""Trees of tokens as parent arrays: parents[0] == -1 and parents[i] < i.

The attention mask of every step of every method is the ancestor closure computed here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

import numpy as np
import numpy.typing as npt

from .errors import ParamError
from .types import Draft, Role

if TYPE_CHECKING:
    import torch

_REMEMBERED, _LARGEST_REMEMBERED = 64, 512  # cached masks, and the most nodes of their trees

_Rest = TypeVarTuple("_Rest")
_Mask = TypeVar("_Mask")


def check(parents: Sequence[int]) -> None:
    """Raise ParamError unless `parents` is a tree whose only root is node 0."""
    if not parents or parents[0] != -1:
        raise ParamError("a tree's first node must be its root, with parent -1")
    for node, parent in enumerate(parents[1:], start=1):
        if not 0 <= parent < node:
            raise ParamError(f"node {node} of a tree must hang off an earlier node, not off {parent}")


def is_chain(parents: Sequence[int]) -> bool:
    """Return True if the parent of every node is the node before it."""
    return all(parent == node - 1 for node, parent in enumerate(parents))


@lru_cache(maxsize=256)
def depths(parents: tuple[int, ...]) -> tuple[int, ...]:
    """Return the distance of every node from the root."""
    depth: list[int] = []
    for parent in parents:
        depth.append(0 if parent < 0 else depth[parent] + 1)
    return tuple(depth)


def remembered(make: Callable[[tuple[int, ...], *_Rest], _Mask]) -> Callable[[tuple[int, ...], *_Rest], _Mask]:
    """Cache the masks of small trees. A few dozen masks of thousands of nodes would fill the memory."""
    cached = lru_cache(maxsize=_REMEMBERED)(make)

    @wraps(make)
    def mask(parents: tuple[int, ...], *rest: *_Rest) -> _Mask:
        if len(parents) > _LARGEST_REMEMBERED:
            return make(parents, *rest)
        return cached(parents, *rest)

    return mask


@remembered
def closure(parents: tuple[int, ...]) -> npt.NDArray[np.bool_]:  # (T, T)
    """Return the attention mask: row i is true at i and at i's ancestors. Read-only, as it may be cached."""
    if is_chain(parents):
        mask = np.tri(len(parents), dtype=np.bool_)
    else:
        mask = np.zeros((len(parents), len(parents)), dtype=np.bool_)
        for node, parent in enumerate(parents):
            if parent >= 0:
                mask[node] = mask[parent]
            mask[node, node] = True
    mask.flags.writeable = False
    return mask


def path_to(parents: Sequence[int], node: int) -> tuple[int, ...]:
    """Return the nodes from the root to `node`, both included."""
    path = []
    while node >= 0:
        path.append(node)
        node = parents[node]
    return tuple(reversed(path))


def paths(parents: Sequence[int], tokens: Sequence[int], before: Sequence[int] = ()) -> list[list[int]]:
    """Return, for every node, the tokens `before` and those after the root up to and including the node's."""
    ways: list[list[int]] = []
    for token, parent in zip(tokens, parents, strict=True):
        ways.append([*before] if parent < 0 else [*ways[parent], token])
    return ways


def after_chain(length: int, parents: Sequence[int]) -> tuple[int, ...]:
    """Return the tree with a chain of `length` nodes before its root."""
    return (*range(-1, length - 1), *(parent + length if parent >= 0 else length - 1 for parent in parents))


class Builder:
    """Grows a draft node by node."""

    def __init__(self, root: int) -> None:
        self._tokens = [root]
        self._parents = [-1]
        self._roles = [Role.ROOT]
        self._sources = ["root"]
        self._children: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self._tokens)

    def add(self, token: int, parent: int, source: str, role: Role = Role.VERIFY) -> int:
        """Add `token` below `parent` and return the new node."""
        self._tokens.append(token)
        self._parents.append(parent)
        self._roles.append(role)
        self._sources.append(source)
        return len(self._tokens) - 1

    def chain(self, tokens: Iterable[int], sources: Iterable[str], parent: int = 0, *, merge: bool = False) -> int:
        """Add `tokens` below `parent`, one after the other, and return the last node.

        With `merge`, nodes that earlier merged chains added for the same tokens are shared: the result is a trie.
        """
        for token, source in zip(tokens, sources, strict=True):
            shared = self._children.get((parent, token)) if merge else None
            node = self.add(token, parent, source) if shared is None else shared
            if merge:
                self._children[parent, token] = node
            parent = node
        return parent

    def draft(self, q: tuple[torch.Tensor | None, ...] | None = None, fixed: Hashable = None) -> Draft:
        """Return the finished draft; `q` and `fixed` are as in `Draft`."""
        tokens, parents = tuple(self._tokens), tuple(self._parents)
        return Draft(tokens, parents, tuple(self._roles), tuple(self._sources), q, fixed=fixed)
