"""A draft model that reads behind many places of a text in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch

from ..model.queued_tree import on_host
from ..model.session import Reading, catch_up
from ..model.upload import upload
from .together import ask

if TYPE_CHECKING:
    from ..engine import Engine
    from ..model.queued_tree import Parents
    from ..model.session import Model, Session, Tokens

_ROWS = 512  # of a pass


class _Asked(NamedTuple):
    """A tree that stands behind some tokens, and these behind a part of the text."""

    length: int  # of the part
    stored: tuple[int, ...]
    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    asked: tuple[int, ...]  # rows of the tree

    @property
    def rows(self) -> int:
        return len(self.stored) + len(self.tokens)


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
        found, waiting = dict[int, Reading](), sorted(range(len(questions)), key=lambda i: questions[i].length)
        while waiting:
            first, rows, count = questions[waiting[0]].length, 0, 0
            for i in waiting:
                rows += questions[i].rows
                if count and questions[i].length - first + rows > self._largest:
                    break
                count += 1
            part, waiting = waiting[:count], waiting[count:]
            found |= zip(part, self._read([questions[i] for i in part]), strict=True)
        return [found[i] for i in range(len(questions))]

    def _read(self, questions: Sequence[_Asked]) -> list[Reading]:
        """One pass; the questions ascend along the text."""
        start, end = questions[0].length, questions[-1].length
        self._stand(start)
        tokens, parents, known = list[int](), list[int](), dict[tuple[int, int], int]()

        def row(token: int, parent: int) -> int:
            if (parent, token) not in known:
                known[parent, token] = len(tokens)
                tokens.append(token)
                parents.append(parent)
            return known[parent, token]

        chain = [-1]
        for token in self._text[start:end]:
            chain.append(row(token, chain[-1]))
        roots = [chain[asked.length - start] for asked in questions]
        for i, asked in enumerate(questions):
            for token in asked.stored:
                roots[i] = row(token, roots[i])
        places = list[list[int]]()
        for asked, root in zip(questions, roots, strict=True):
            rows = list[int]()
            for token, parent in zip(asked.tokens, asked.parents, strict=True):
                rows.append(row(token, root if parent < 0 else rows[parent]))
            places.append([rows[place] for place in asked.asked])
        answering = sorted({place for rows in places for place in rows})
        reading = self.session.read(tokens, tuple(parents), only=answering)
        at = {place: answer for answer, place in enumerate(answering)}
        picked = [[at[place] for place in rows] for rows in places]
        return [Reading(_pick(reading.logits, rows), _pick(reading.hidden, rows)) for rows in picked]

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
        asked = tuple(range(skip, len(parents)) if only is None else only)
        question = _Asked(self._start, tuple(self._stored), tuple(self._tokens), on_host(parents), asked)
        return ask(self._reader, question)

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
