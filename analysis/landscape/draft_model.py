"""A draft model that reads after many positions of a text in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from decoding.model.queued_tree import on_host
from decoding.model.session import Reading, catch_up
from decoding.model.upload import upload

from .joined_trees import ROWS, HangingTree, join, passes

if TYPE_CHECKING:
    from decoding.model.queued_tree import Parents
    from decoding.model.session import Model, TreeSession
    from decoding.model.upload import Tokens
    from decoding.session_pool import SessionPool

    from .questions import Ask


class DraftReader:
    """The draft model's session, which holds a part of the text.

    A pass reads the text on, as a chain, with the trees of many positions attached to it.
    """

    def __init__(self, model: Model, pool: SessionPool, text: Sequence[int], room: int, largest_step: int) -> None:
        """Make `room` for what may be written after the text, in steps of at most `largest_step` rows."""
        rows = max(ROWS, 2 * largest_step)  # a step's own, after what was stored in front of them
        if model.rolling is not None:
            rows = max(rows, len(text))  # so that what was overwritten is never asked for again
        self.model = model
        self._pool, self._text = pool, text
        self.session = pool.acquire(model, len(text) + room, rows)
        self._largest = min(ROWS, model.step_rows or ROWS)
        self.session.reset(len(text))
        # Scaled rotary embeddings of some models depend on how long a prompt is: then a pass serves one position.
        self.joins_positions = self.session.keep(0, 1)

    def close(self) -> None:
        """Return the session to the pool."""
        self._pool.release(self.model, self.session)

    def at(self, length: int, ask: Ask) -> TreeSession:
        """Make a session for one position, which holds `length` tokens of the text."""
        return _SessionAt(self, length, ask)

    def read(self, questions: Sequence[tuple[HangingTree, Sequence[int]]]) -> list[Reading]:
        """Read trees, and answer for some rows of each."""
        start = min(tree.length for tree, _ in questions)
        self._hold(start)
        answers = dict[int, Reading]()
        for group in passes(start, [(tree.length, tree.rows) for tree, _ in questions], self._largest):
            joined = join(self._text, start, [questions[each][0] for each in group])
            wanted = [[rows[row] for row in questions[each][1]] for each, rows in zip(group, joined.rows, strict=True)]
            only = sorted({row for rows in wanted for row in rows})
            reading = self.session.read(joined.tokens, joined.parents, only=only)
            index = {row: answer for answer, row in enumerate(only)}
            for each, rows in zip(group, wanted, strict=True):
                chosen = [index[row] for row in rows]
                answers[each] = Reading(_select(reading.logits, chosen), _select(reading.hidden, chosen))
        return [answers[each] for each in range(len(questions))]

    def _hold(self, length: int) -> None:
        """Let the session hold `length` tokens of the text, as at the start of a run with one token more."""
        if not self.session.keep(min(self.session.length, length), length + 1):
            self.session.reset(length + 1)
        catch_up(self.session, self._text[self.session.length : length], 0, self._largest)


def _select(answers: torch.Tensor, rows: list[int]) -> torch.Tensor:
    first = rows[0] if rows else 0
    if rows == [*range(first, first + len(rows))]:  # logits are too large to be copied for nothing
        return answers[first : first + len(rows)]
    return answers.index_select(0, upload(torch.tensor(rows), answers.device))


class _SessionAt:
    """The draft model's session at one position."""

    def __init__(self, reader: DraftReader, length: int, ask: Ask) -> None:
        self.largest_step = reader.session.largest_step
        self._reader, self._start, self._ask = reader, length, ask
        self._stored, self._tokens = list[int](), list[int]()  # after the text, and of the last reading

    @property
    def length(self) -> int:
        """Tokens stored."""
        return self._start + len(self._stored)

    def read(self, tokens: Tokens, parents: Parents, skip: int = 0, only: Sequence[int] | None = None) -> Reading:
        """Read a tree after the stored tokens; answer for rows `skip` and later, or `only` some."""
        self._tokens = tokens.tolist() if isinstance(tokens, torch.Tensor) else [*tokens]
        tree = HangingTree(self._start, tuple(self._stored), tuple(self._tokens), on_host(parents))
        return self._ask(self._reader.read, (tree, range(skip, len(parents)) if only is None else only))

    def commit(self, rows: Sequence[int]) -> None:
        """Store the rows of the last reading that form a path from its root."""
        self._stored += [self._tokens[row] for row in rows]

    def rewind(self, length: int) -> None:
        """Forget stored tokens after `length`, which is not inside the text."""
        assert self._start <= length <= self.length
        del self._stored[length - self._start :]
