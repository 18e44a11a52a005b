"""Draws trees whose sources are counts: "kind:12" is a guess that came next at 12 positions. A row is a branch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from decoding.types import Header, Step

from ..palette import Fate
from ..run_state import RunState
from ..sources import parse
from ..tables import Table, TableRow, fates_of, outcome_of, texts_of
from ..view import Figure, Patch
from . import board as boards
from .board import Board
from .nodes import NodeIndex

_DEEPEST, _ENDING, _BRANCHES = 12, 4, 7  # depths shown of the tree, tokens of the ending, and branches


@dataclass(frozen=True, slots=True)
class CountedEnding:
    """The picture of the text's ending, and of what followed it elsewhere."""

    heading: str
    seen: str  # the head of the table's column of counts
    wide: int  # columns that the words above the tree need
    depth: Callable[[Header], int]  # how deep the tree can be
    ending: Callable[[Step], list[int]]
    matches: Callable[[Step], str]  # words on the matches of the ending
    why_none: Callable[[RunState, Step], str]

    def base(self, run: RunState) -> Figure:
        """Return the figure without a step."""
        right = max(min(_DEEPEST, self.depth(run.header)) + 3.4, self.wide)
        return boards.base(-_ENDING - 0.6, right, _BRANCHES + 1.4, self.heading)

    def frame(self, run: RunState, k: int) -> Patch:
        """Return the ending and the tree of what followed it: a row for every leaf, the commonest on top."""
        step, board = run.steps[k], Board()
        ending = self.ending(step)[-_ENDING:]
        for back, token in enumerate(reversed(ending)):
            board.context(token, -back, 0, Fate.PROMPT if back else Fate.ROOT, -1 if back else 0)
        if ending:
            board.outcome(self.matches(step), 0.7, 0)
        elif step.tokens:
            board.context(step.tokens[0], 0, 0, Fate.ROOT, 0)
            board.alone(self.why_none(run, step), 0.7)
        draw_branches(board, step, min(_DEEPEST, self.depth(run.header)), _BRANCHES)
        return {"data": board.patch(step)}

    def rows(self, run: RunState, k: int) -> Table:
        """Return the ending and every branch after it, as a table."""
        step = run.steps[k]
        ending = self.ending(step)
        first = [*ending[:-1], *step.tokens[:1]] if ending else step.tokens[:1]
        what = self.matches(step) if ending else boards.alone(self.why_none(run, step))
        cells = (texts_of(run, first), None, None, fates_of(step, range(len(step.tokens[:1])), len(first) - 1), what)
        heads = ("Tokens", self.seen, "From depth", "Fates", "Outcome")
        return Table(heads, [*([TableRow(cells, 0)] if step.tokens else []), *rows(run, step)])


def draw_branches(board: Board, step: Step, deep: int, most: int) -> None:
    """Draw at most `most` branches of at most `deep` guesses from row 1 on, each with how often it came."""
    branches, accepted = branches_of(step), frozenset(step.path)
    for y, branch in enumerate(branches[:most], start=1):
        depth = {node: x for x, node in branch}
        board.label(f"{hits(step, branch[0][1]):,} ×", min(depth.values()) - 0.6, y)
        for x, node in branch:
            if x <= deep:
                board.guess(node, x, y)
        if right := sum(node in accepted for node in depth):
            board.outcome(f"{right} accepted", min(deep, branch[-1][0]) + 0.7, y)
    if len(branches) > most:
        board.label(f"and {len(branches) - most} more branches", 3.4, most + 1)


def rows(run: RunState, step: Step) -> list[TableRow]:
    """Return a table row for every branch: tokens, how often they came, first depth, fates, how many were accepted."""
    rows, accepted = list[TableRow](), frozenset(step.path)
    for branch in branches_of(step):
        nodes = [node for _, node in branch]
        words = texts_of(run, (step.tokens[node] for node in nodes))
        right = outcome_of(len(accepted.intersection(nodes)))
        rows.append(
            TableRow((words, f"{hits(step, nodes[0]):,} ×", branch[0][0], fates_of(step, nodes), right), nodes[0])
        )
    return rows


def branches_of(step: Step) -> list[list[tuple[int, int]]]:
    """Return rows of (depth, node), depth first and the commonest child first; every node is in one row."""
    below = NodeIndex(step).below
    rows: list[list[tuple[int, int]]] = []
    stack = [(1, node, True) for node in reversed(_commonest(step, below.get(0, [])))]
    while stack:
        depth, node, begins = stack.pop()
        rows += [[]] if begins else []
        rows[-1].append((depth, node))
        children = _commonest(step, below.get(node, []))
        stack += [(depth + 1, child, place > 0) for place, child in reversed([*enumerate(children)])]
    return rows


def _commonest(step: Step, nodes: list[int]) -> list[int]:
    return sorted(nodes, key=lambda node: -hits(step, node))


def hits(step: Step, node: int) -> int:
    """Return the number of positions at which the text up to a node was found."""
    numbers = parse(step.sources[node])[1]
    return numbers[0] if numbers else 0


def shares_below(step: Step, guesses: Sequence[int], kinds: Sequence[str], places: int) -> dict[int, float]:
    """Return which share of the positions after the parent continue with a guess; after the root there are `places`."""
    shares: dict[int, float] = {}
    for node in guesses:
        kind, numbers = parse(step.sources[node])
        if kind in kinds and numbers:
            above = parse(step.sources[step.parents[node]])[1]
            behind = above[0] if above else places
            shares[node] = min(1.0, numbers[0] / behind) if behind else 0.0
    return shares
