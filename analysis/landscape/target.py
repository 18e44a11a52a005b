"""The target's side of a landscape: it reads the text once, then the guesses that differ from the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch

from decoding.errors import ParamError
from decoding.model.session import ExitSession, TapSession, catch_up
from decoding.parts.base import TAPPING
from decoding.ranking import likeliest

from .joined_trees import ROWS, HangingTree, join, passes

if TYPE_CHECKING:
    from decoding.model.session import Model
    from decoding.request import Request
    from decoding.session_pool import SessionPool


class GuessPath(NamedTuple):
    """A token of the text, by its index, and the guesses that follow it; without any, that token itself."""

    token: int
    path: tuple[int, ...]


class UnreadError(Exception):
    """The target has not read a guess whose next token is needed."""


class Target:
    """The target's choices after every token of the text, and after the guesses that it has read.

    It borrows a session from the pool until it is closed.
    """

    def __init__(self, model: Model, pool: SessionPool, text: Sequence[int], requests: Sequence[Request]) -> None:
        """Make room for what the requests may write after the text."""
        largest_step = max(request.largest_step for request in requests)
        max_new_tokens = max(request.max_new_tokens for request in requests)
        rows = max(ROWS, largest_step)
        if model.rolling is not None:
            rows = max(rows, len(text))  # so that what was overwritten is never asked for again
        self.text, self.rows, self.passes = text, 0, 0
        self.choices: list[int] = []  # after every token of the text
        self.model, self.pool = model, pool
        self.session = pool.acquire(model, len(text) + max_new_tokens, rows)
        self._largest = min(ROWS, model.step_rows or ROWS)
        self._answers: dict[GuessPath, int] = {}
        self.hidden = torch.empty(0)  # (N, H), after every token of the text
        self._tapping = sorted({layer for request in requests for layer in _layers(request)})
        self._states: dict[int, torch.Tensor] = {}  # (N, H) entering a layer
        self._joined: dict[tuple[int, ...], torch.Tensor] = {}  # (N, layers * H), of several layers

    def close(self) -> None:
        """Return the session to the pool."""
        if isinstance(self.session, TapSession):
            self.session.tap()
        self.pool.release(self.model, self.session)

    @torch.inference_mode()
    def read_text(self) -> None:
        """Read the text, once, before anything else."""
        self.session.reset(len(self.text))
        if not self.session.keep(0, 1):  # its rotary embedding depends on how long a prompt is
            raise ParamError(
                f"this model reads a text of {len(self.text)} tokens in another way than its beginning: shorten it"
            )
        if self._tapping:
            assert isinstance(self.session, TapSession)
            self.session.tap(*self._tapping)
        hidden = list[torch.Tensor]()
        for start in range(0, len(self.text), self._largest):
            tokens = self.text[start : start + self._largest]
            reading = self.session.read(tokens, tuple(range(-1, len(tokens) - 1)))
            self.session.commit(range(len(tokens)))
            self._count(len(tokens))
            self.choices += likeliest(reading.logits)
            hidden.append(reading.hidden)
        self.hidden = torch.cat(hidden)
        if self._tapping:
            self._keep_states(self._tapping)

    def _keep_states(self, layers: Sequence[int]) -> None:
        """Keep the states that the session has recorded."""
        assert isinstance(self.session, TapSession)
        self._states |= zip(layers, self.session.tapped().chunk(len(layers), 1), strict=True)
        self.session.tap()

    def _count(self, rows: int) -> None:
        self.rows += rows
        self.passes += 1

    @torch.inference_mode()
    def states(self, layers: tuple[int, ...]) -> torch.Tensor:  # (N, layers * H)
        """Return the text's hidden states entering some layers; read it once more if they were not recorded."""
        if not {*layers} <= self._states.keys():
            assert isinstance(self.session, TapSession)
            self.session.reset(len(self.text))
            self.session.tap(*layers)
            catch_up(self.session, self.text, 0, self._largest)
            self.rows += len(self.text)
            self.passes += -(-len(self.text) // self._largest)
            self._keep_states(layers)
        if layers not in self._joined:
            self._joined[layers] = torch.cat([self._states[layer] for layer in layers], 1)
        return self._joined[layers]

    def enter(self, questions: Sequence[tuple[int, HangingTree]]) -> list[torch.Tensor]:
        """Run trees through the layers in front of one; return the hidden states of each."""
        [layer], start = {layer for layer, _ in questions}, self.session.length
        trees, states = [tree for _, tree in questions], dict[int, torch.Tensor]()
        assert isinstance(self.session, ExitSession)
        for group in passes(start, [(tree.length, tree.rows) for tree in trees], ROWS):
            joined = join(self.text, start, [trees[each] for each in group])
            hidden = self.session.enter(joined.tokens, layer, parents=joined.parents)
            states |= {each: hidden[rows] for each, rows in zip(group, joined.rows, strict=True)}
        return [states[each] for each in range(len(trees))]

    def hold(self, length: int) -> None:
        """Let the session hold this many tokens of the text."""
        if self.session.length < length:
            catch_up(self.session, self.text[self.session.length : length], 0, self._largest)
        self.session.rewind(length)

    def choice(self, guess: GuessPath) -> int:
        """Return the token that the target chooses after a guess."""
        if not guess.path:
            return self.choices[guess.token]
        if guess not in self._answers:
            raise UnreadError
        return self._answers[guess]

    def extend(self, guess: GuessPath, token: int) -> GuessPath:
        """Return the path with one more guess. As long as the guesses are the text's tokens, it stays on the text."""
        following = guess.token + 1
        if not guess.path and following < len(self.text) and token == self.text[following]:
            return GuessPath(following, ())
        return GuessPath(guess.token, (*guess.path, token))

    @torch.inference_mode()
    def read_guesses(self, units: Sequence[Sequence[GuessPath]]) -> None:
        """Read guesses; each unit holds guesses after one token of the text, none without those in front of it."""
        waiting = sorted(units, key=lambda unit: unit[0].token)
        while waiting:
            start = min(self.session.length, waiting[0][0].token)
            self.hold(waiting[0][0].token if waiting[0][0].token - start >= self._largest // 2 else start)
            start, end = self.session.length, waiting[0][0].token + 1
            together = dict.fromkeys(waiting.pop(0))
            while waiting:
                more, reach = together | dict.fromkeys(waiting[0]), waiting[0][0].token + 1
                if reach - start + len(more) > self._largest:
                    break
                together, end = more, reach
                waiting.pop(0)
            self._read(start, end, [*together])

    def _read(self, start: int, end: int, guesses: Sequence[GuessPath]) -> None:
        """Read a part of the text as a chain, with the guesses after its tokens, in one pass."""
        rows, chain = dict[GuessPath, int](), end - start
        parents = [*range(-1, chain - 1)]
        for guess in guesses:
            above = rows[GuessPath(guess.token, guess.path[:-1])] if guess.path[1:] else guess.token - start
            rows[guess] = chain + len(rows)
            parents.append(above)
        tokens = [*self.text[start:end], *(guess.path[-1] for guess in guesses)]
        reading = self.session.read(tokens, tuple(parents), skip=chain)
        self._count(len(tokens))
        self._answers |= zip(guesses, likeliest(reading.logits), strict=True)
        self.session.commit(range(chain - 1))  # the last may have more guesses, which the next pass reads


def _layers(request: Request) -> Sequence[int]:
    """Return the layers whose inputs a method's parts read."""
    if not request.method.needs & TAPPING:
        return ()
    parts = request.parts.values()
    return [layer for part in parts for layer in getattr(part, "layers", ())] + [
        part.layer for part in parts if hasattr(part, "layer")
    ]
