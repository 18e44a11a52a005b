"""Finds the nodes of a step that a method's panel refers to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from decoding.types import Role, Step


class NodeIndex:
    """The guesses of a step, by their sources and their parents."""

    def __init__(self, step: Step) -> None:
        self._step, self._accepted = step, frozenset(step.path)
        self._sources: dict[str, int] = {}
        self._children: dict[tuple[int, int], int] = {}
        self.below: dict[int, list[int]] = {}
        for node in range(1, len(step.tokens)):
            if step.roles[node] is Role.EXPLORE and not step.sources[node].startswith("pool"):
                continue
            self._sources.setdefault(step.sources[node], node)
            self._children.setdefault((step.parents[node], step.tokens[node]), node)
            self.below.setdefault(step.parents[node], []).append(node)

    def chain(self, tokens: Sequence[int], above: int, entry: int | None = None) -> list[int]:
        """Return the nodes of a chain below `above`, by its number in the pool, else by its tokens; -1: not fed."""
        nodes: list[int] = []
        for place, token in enumerate(tokens):
            node = -1 if entry is None else self._sources.get(f"pool:{entry},{place}", -1)
            if node < 0 or self._step.tokens[node] != token:
                node = self._children.get((above, token), -1) if above >= 0 else -1
            nodes.append(node)
            above = node
        return nodes

    def rows(self, rows: Iterable[Sequence[int]], *, merged: bool) -> list[list[int]]:
        """Return the nodes of rows below the root: one after another, or merged by equal beginnings; -1: not fed."""
        if merged:
            return [self.chain(row, 0) for row in rows]
        nodes, first, given = list[list[int]](), 1, self._step.tokens
        for row in rows:
            fits = [first + i < len(given) and given[first + i] == token for i, token in enumerate(row)]
            fed = fits.index(False) if False in fits else len(fits)
            nodes.append([first + i if i < fed else -1 for i in range(len(row))])
            first += fed
        return nodes

    def accepted(self, nodes: Iterable[int]) -> int:
        """Return how many of some nodes were accepted; the root among them is no guess."""
        return sum(node in self._accepted for node in nodes if node > 0)


def root(step: Step) -> int:
    """Return the last token of the text; -1 if no nodes are recorded."""
    return step.tokens[0] if step.tokens else -1
