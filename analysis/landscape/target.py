"""The target's side of a landscape: it reads the text once, and behind it the guesses that leave the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch

from decoding.errors import ParamError
from decoding.model.session import ExitSession, TapSession, catch_up
from decoding.parts.base import TAPPING
from decoding.ranking import likeliest

from .first_layers import FirstLayers

if TYPE_CHECKING:
    from decoding.engine import Engine
    from decoding.request import Request

_ROWS = 512  # of a pass


class TreePlace(NamedTuple):
    """Where a guess stands: behind a token of the text, with the guesses on the way from there; none: that token."""

    token: int
    path: tuple[int, ...]


class UnreadError(Exception):
    """The target has not read a guess whose verdict is asked for."""


class Target:
    """What the target chooses behind every token of the text, and behind the guesses that it was asked to read.

    It has a session of the engine's until it is closed.
    """

    def __init__(self, engine: Engine, text: Sequence[int], requests: Sequence[Request]) -> None:
        """Room for what the requests ask for behind the text."""
        largest_step = max(request.largest_step for request in requests)
        max_new_tokens = max(request.max_new_tokens for request in requests)
        model, rows = engine.model, max(_ROWS, largest_step)
        if model.rolling is not None:
            rows = max(rows, len(text))  # so that what was overwritten is never asked for again
        self.text, self.rows, self.passes = text, 0, 0
        self.choices: list[int] = []  # behind every token of the text
        self._engine = engine
        self.session = engine.session_pool.acquire(model, len(text) + max_new_tokens, rows)
        self._largest = min(_ROWS, model.step_rows or _ROWS)
        self._answers: dict[TreePlace, int] = {}
        self._first_layers: dict[int, FirstLayers] = {}
        self._hidden = torch.empty(0)  # (N, H)
        self._tapping = sorted({layer for request in requests for layer in _layers(request)})
        self._states: dict[int, torch.Tensor] = {}  # (N, H) that enter a layer
        self._joined: dict[tuple[int, ...], torch.Tensor] = {}  # (N, layers * H), of several layers

    def close(self) -> None:
        """Give the session back."""
        if isinstance(self.session, TapSession):
            self.session.tap()
        self._engine.session_pool.release(self._engine.model, self.session)

    @torch.inference_mode()
    def read_text(self) -> None:
        """Read the text, once, in front of all questions."""
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
        self._hidden = torch.cat(hidden)
        if self._tapping:
            self._keep_states(self._tapping)

    def _keep_states(self, layers: Sequence[int]) -> None:
        """Take over what was recorded."""
        assert isinstance(self.session, TapSession)
        self._states |= zip(layers, self.session.tapped().chunk(len(layers), 1), strict=True)
        self.session.tap()

    def _count(self, rows: int) -> None:
        self.rows += rows
        self.passes += 1

    def hidden(self, place: int) -> torch.Tensor:  # (H,)
        """The hidden state behind a token of the text."""
        return self._hidden[place]

    @torch.inference_mode()
    def states(self, layers: tuple[int, ...]) -> torch.Tensor:  # (N, layers * H)
        """The hidden states with which the text enters some layers; of others than parts name it is read once more."""
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

    def first_layers(self, layer: int) -> FirstLayers:
        """The layers in front of one of them, for many places at once."""
        if layer not in self._first_layers:
            assert isinstance(self.session, ExitSession)
            self._first_layers[layer] = FirstLayers(self.text, self.session, layer)
        return self._first_layers[layer]

    def stand(self, length: int) -> None:
        """Let the session hold this many tokens of the text."""
        if self.session.length < length:
            catch_up(self.session, self.text[self.session.length : length], 0, self._largest)
        self.session.rewind(length)

    def choice(self, place: TreePlace) -> int:
        """What the target chooses behind a guess; behind the text itself if the path is empty."""
        if not place.path:
            return self.choices[place.token]
        if place not in self._answers:
            raise UnreadError
        return self._answers[place]

    def below(self, place: TreePlace, token: int) -> TreePlace:
        """Where a guess of this token behind another stands: on the text as long as it says the same."""
        behind = place.token + 1
        if not place.path and behind < len(self.text) and token == self.text[behind]:
            return TreePlace(behind, ())
        return TreePlace(place.token, (*place.path, token))

    @torch.inference_mode()
    def read_guesses(self, units: Sequence[Sequence[TreePlace]]) -> None:
        """Read guesses; each unit holds guesses behind one token of the text, none without those in front of it."""
        waiting = sorted(units, key=lambda unit: unit[0].token)
        while waiting:
            start = min(self.session.length, waiting[0][0].token)
            self.stand(waiting[0][0].token if waiting[0][0].token - start >= self._largest // 2 else start)
            start, end = self.session.length, waiting[0][0].token + 1
            together = dict.fromkeys(waiting.pop(0))
            while waiting:
                more, reach = together | dict.fromkeys(waiting[0]), waiting[0][0].token + 1
                if reach - start + len(more) > self._largest:
                    break
                together, end = more, reach
                waiting.pop(0)
            self._read(start, end, [*together])

    def _read(self, start: int, end: int, places: Sequence[TreePlace]) -> None:
        """One pass: a part of the text as a chain, and guesses behind its tokens."""
        rows, chain = dict[TreePlace, int](), end - start
        parents = [*range(-1, chain - 1)]
        for place in places:
            above = rows[TreePlace(place.token, place.path[:-1])] if place.path[1:] else place.token - start
            rows[place] = chain + len(rows)
            parents.append(above)
        tokens = [*self.text[start:end], *(place.path[-1] for place in places)]
        reading = self.session.read(tokens, tuple(parents), skip=chain)
        self._count(len(tokens))
        self._answers |= zip(places, likeliest(reading.logits), strict=True)
        self.session.commit(range(chain - 1))  # the last may have more guesses, which the next pass reads


def _layers(request: Request) -> Sequence[int]:
    """The layers whose inputs a method's parts read."""
    if not request.method.needs & TAPPING:
        return ()
    parts = request.parts.values()
    return [layer for part in parts for layer in getattr(part, "layers", ())] + [
        part.layer for part in parts if hasattr(part, "layer")
    ]
