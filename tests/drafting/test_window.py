"""The window against its description, and the sizes that a session is opened for."""

from __future__ import annotations

import random
from itertools import count

import pytest

from decoding.drafting.window import Window, largest_pass, largest_window
from decoding.tree import Builder, path_to
from decoding.types import Role

SIZES = [(1, 3), (1, 7), (2, 4), (6, 4), (15, 5), (3, 16)]


@pytest.mark.parametrize(("W", "N"), SIZES)
def test_a_window_grows_to_its_size_and_stays_there(W: int, N: int) -> None:
    """A row too many is one that no n-gram of N tokens has room for; a session too small ends the run."""
    window, sizes = Window(W, N, lambda: 0), []
    for turn in range(N + 3):
        tree = Builder(9)
        window.put(tree)
        sizes.append(len(tree))
        assert window.full == (turn >= N - 2)
        window.move(window.answers(range(100, 100 + len(tree))))
    assert max(sizes) == largest_window(W, N) and sizes[-1] == (N - 1) * W
    assert [len(row) for row in window.rows] == [W - 1, *[W] * (N - 2)]
    assert largest_pass(W, N, 4) == largest_window(W, N) + 4 * (N - 1) + N
    assert largest_pass(0, N, 4) == 1 + 4 * (N - 1) + N, "without a window the root is left"


@pytest.mark.parametrize(("W", "N"), SIZES)
def test_a_column_is_the_path_to_its_end(W: int, N: int) -> None:
    """What is harvested must be what the model has read, with its answer after it."""
    numbers = count()
    window = Window(W, N, lambda: next(numbers))
    for _ in range(N + 3):
        tree = Builder(-1)
        window.put(tree)
        draft = tree.draft()
        assert set(draft.roles[1:]) <= {Role.EXPLORE}
        argmax = [1000 + node for node in range(len(draft.tokens))]
        new = window.answers(argmax)
        if window.full:
            for i, (column, answer) in enumerate(zip(window.columns(-1, new), new, strict=True)):
                read = [draft.tokens[node] for node in path_to(draft.parents, answer - 1000)]
                assert read == [-1, *window.rows[0][:i], *column[1:-1]] and read[i] == column[0]
                assert column[-1] == answer and len(column) == N
        window.move(new)


def test_dropped_columns_are_refilled_at_the_end() -> None:
    """Rows that became shorter would lose the columns that the next step harvests."""
    chance = random.Random(3)
    for columns in range(9):
        numbers = count(500)
        window = Window(5, 4, lambda: chance.randrange(9))
        for _ in range(5):
            tree = Builder(0)
            window.put(tree)
            window.move([chance.randrange(9) for _ in window.answers(range(len(tree)))])
        before = window.rows
        window._refill = lambda numbers=numbers: next(numbers)  # type: ignore[misc]
        window.drop(columns)
        for row, old in zip(window.rows, before, strict=True):
            assert len(row) == len(old) and row[: max(0, len(old) - columns)] == old[columns:]
            assert all(token >= 500 for token in row[max(0, len(old) - columns) :])
