"""What a session is fed in front of a tree, and what it stores of both."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from decoding.drafting.chain import Chain
from decoding.model.session import Reading
from decoding.model.table import TableModel, TableSession
from decoding.model.tree_reader import TreeReader
from decoding.tree import Builder
from decoding.types import Draft
from tests.toys import hashed

MODEL = hashed(vocabulary=9, order=3, seed=1)
TEXT = [1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2]


class Counting(TableSession):
    """A session that notes the rows of every reading."""

    def __init__(self, model: TableModel) -> None:
        super().__init__(model, 64, 64)
        self.rows: list[int] = []

    def read(
        self, tokens: Sequence[int], parents: tuple[int, ...], skip: int = 0, only: Sequence[int] | None = None
    ) -> Reading:
        """Note the rows, then read."""
        self.rows.append(len(tokens))
        return super().read(tokens, parents, skip, only)


def fork() -> Draft:
    """Make a root with two children, the first of which has a child."""
    tree = Builder(TEXT[-1])
    tree.add(5, tree.add(4, 0, "a"), "b")
    tree.add(6, 0, "c")
    return tree.draft()


@pytest.mark.parametrize("chunk", [1, 3, 4, 64])
@pytest.mark.parametrize("room", [0, 2, 3, 20])
def test_a_tree_is_read_behind_the_whole_text(chunk: int, room: int) -> None:
    """Rows in front of the tree shift its parents; a chunk too many or too few shifts its places."""
    session = Counting(MODEL)
    reader = TreeReader(session, chunk)
    reading = reader.read(TEXT[:-1], fork(), room, lambda: False)
    assert reading is not None
    *chunks, last = session.rows
    assert all(rows <= chunk for rows in chunks) and last - 4 == len(TEXT) - 1 - sum(chunks) <= room
    ways = [[], [4], [4, 5], [6]]
    assert torch.equal(reading.logits, torch.stack([MODEL.logits([*TEXT, *way]) for way in ways]))
    reader.commit([0, 1])
    assert session._text == [*TEXT, 4]
    assert reader.read([], fork(), 0, lambda: False) is not None
    reader.commit([0, 3])
    assert session._text == [*TEXT, 4, TEXT[-1], 6], "what was pending once is not pending again"


def test_an_interruption_leaves_what_was_stored() -> None:
    """The next turn goes on from there."""
    session = Counting(MODEL)
    reader = TreeReader(session, 4)
    root = Chain().draft(Chain().tree(TEXT[-1], "draft"))
    assert reader.read(TEXT[:-1], root, 1, lambda: len(session.rows) == 2) is None
    assert session._text == TEXT[:8]
    assert reader.read(TEXT[8:-1], root, 1, lambda: False) is not None
    reader.commit([0])
    assert session._text == TEXT


def test_hidden_states_are_gone_on_from_where_nothing_is_pending() -> None:
    """The states of a tree say nothing of tokens in front of it that were never read."""
    session, draft = Counting(MODEL), fork()
    hidden = torch.full((4, 3), -1.0, dtype=torch.float64)
    hidden[:, -1] = torch.tensor([0.0, 1.0, 2.0, 3.0])
    entered = Draft(draft.tokens, draft.parents, draft.roles, draft.sources, entry=(1, hidden))
    reader = TreeReader(session, 64)
    behind = reader.read(TEXT[:-1], entered, 20, lambda: False)
    assert behind is not None and torch.equal(behind.logits[0], MODEL.logits(TEXT))
    reader.commit([0])
    alone = reader.read([], entered, 20, lambda: False)
    expected = torch.stack([MODEL.logits([token]) for token in range(4)])
    assert alone is not None and torch.equal(alone.logits, expected)
