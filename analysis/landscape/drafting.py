"""A draft model that reads behind many places of a text in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch

from decoding.model.queued_tree import on_host
from decoding.model.session import Reading, catch_up
from decoding.model.upload import upload

from .hanging import HangingTree, hang, parted
from .together import ask

if TYPE_CHECKING:
    from decoding.engine import Engine
    from decoding.model.queued_tree import Parents
    from decoding.model.session import Model, Session
    from decoding.model.upload import Tokens

_ROWS = 512  # of a pass


class _Asked(NamedTuple):
    """A tree, and the rows of it that are asked for."""

    tree: HangingTree
    rows: Sequence[int]


class DraftReader:
    """The draft model's session, which holds a part of the text.

    A pass reads the text on, as a chain, and hangs off it what is asked for behind its tokens. Rows that see the same
    are one row.
    """

    def __init__(self, engine: Engine, model: Model, text: Sequence[int], room: int, largest_step: int) -> None:
        """`room` is for what may be written behind the text, in steps of at most `largest_step` rows."""
        rows = max(_ROWS, 2 * largest_step)  # a step's own, behind what was stored in front of them
        if model.rolling is not None:
            rows = max(rows, len(text))  # so that what was overwritten is never asked for again
        self.device = model.device
        self._engine, self._model, self._text = engine, model, text
        self.session = engine.session_pool.acquire(model, len(text) + room, rows)
        self._largest = min(_ROWS, model.step_rows or _ROWS)
        self.session.reset(len(text))
        # Scaled rotary embeddings of some models depend on how long a prompt is: then a pass serves one place.
        self.joins_places = self.session.keep(0, 1)

    def close(self) -> None:
        """Give the session back."""
        self._engine.session_pool.release(self._model, self.session)

    def at(self, length: int) -> Session:
        """A session for one place, which holds so many tokens of the text."""
        return _DraftSession(self, length)

    def answer(self, questions: Sequence[_Asked]) -> list[Reading]:
        """Read trees, in as few passes as their rows fit into."""
        start = min(asked.tree.length for asked in questions)
        self._stand(start)
        found = dict[int, Reading]()
        for part in parted(start, [(asked.tree.length, asked.tree.rows) for asked in questions], self._largest):
            made = hang(self._text, start, [questions[one].tree for one in part])
            wanted = [[rows[row] for row in questions[one].rows] for one, rows in zip(part, made.rows, strict=True)]
            only = sorted({row for rows in wanted for row in rows})
            reading = self.session.read(made.tokens, made.parents, only=only)
            place = {row: answer for answer, row in enumerate(only)}
            for one, rows in zip(part, wanted, strict=True):
                at = [place[row] for row in rows]
                found[one] = Reading(_pick(reading.logits, at), _pick(reading.hidden, at))
        return [found[one] for one in range(len(questions))]

    def _stand(self, length: int) -> None:
        """Let the session hold this many tokens of the text, as a run begins whose prompt is one token longer."""
        if not self.session.keep(min(self.session.length, length), length + 1):
            self.session.reset(length + 1)
        catch_up(self.session, self._text[self.session.length : length], 0, self._largest)


def _pick(answers: torch.Tensor, rows: list[int]) -> torch.Tensor:
    """Some of the answers."""
    first = rows[0] if rows else 0
    if rows == [*range(first, first + len(rows))]:  # logits are too large to be copied for nothing
        return answers[first : first + len(rows)]
    return answers.index_select(0, upload(torch.tensor(rows), answers.device))


class _DraftSession:
    """The draft model's session as a run meets it at one place."""

    def __init__(self, reader: DraftReader, length: int) -> None:
        self.capacity, self.largest_step = reader.session.capacity, reader.session.largest_step
        self.seam = reader.session.seam
        self._reader, self._start = reader, length
        self._stored, self._tokens = list[int](), list[int]()  # behind the text, and of the last reading

    @property
    def length(self) -> int:
        """Tokens stored."""
        return self._start + len(self._stored)

    def read(self, tokens: Tokens, parents: Parents, skip: int = 0, only: Sequence[int] | None = None) -> Reading:
        """Feed a tree whose root stands right behind the stored tokens; answer for rows `skip` and later."""
        self._tokens = tokens.tolist() if isinstance(tokens, torch.Tensor) else [*tokens]
        tree = HangingTree(self._start, tuple(self._stored), tuple(self._tokens), on_host(parents))
        return ask(self._reader, _Asked(tree, range(skip, len(parents)) if only is None else only))

    def commit(self, rows: Sequence[int]) -> None:
        """Store the rows of the last reading that form a path from its root."""
        self._stored += [self._tokens[row] for row in rows]

    def rewind(self, length: int) -> None:
        """Forget stored tokens behind `length`, which is not inside of the text."""
        assert self._start <= length <= self.length
        del self._stored[length - self._start :]

    def keep(self, length: int, prompt_length: int) -> bool:
        """Not asked for: a run begins once."""
        raise AssertionError("a method only guesses here")

    def reset(self, prompt_length: int) -> None:
        """Not asked for either."""
        raise AssertionError("a method only guesses here")
