"""Writes the text of a run while it is decoded, each token with the kind of its guess."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from decoding.codec import Codec
from decoding.types import Step

from .paint import kind_of

_LONGEST_HELD = 8  # tokens: more than any one character has bytes


@dataclass(frozen=True, slots=True)
class Piece:
    """The text of one token."""

    text: str
    kind: str  # of an accepted guess; "" for the target's own token


def origins(step: Step) -> list[str]:
    """Return the kind of guess of every emitted token, or "" if the target wrote it itself."""
    kinds = [kind_of(step.sources[node]) for node in step.path[1:]]
    unknown = ["guess"] * (step.accepted - len(kinds))  # of a step that was recorded without its tree
    return [*kinds, *unknown, ""][: len(step.emitted)]


class PieceCutter:
    """Cuts a run's text into pieces; a character whose bytes are spread over tokens comes with the last of them."""

    def __init__(self, codec: Codec, prompt: Sequence[int]) -> None:
        self._codec, self._before, self._held = codec, list(prompt[-8:]), list[int]()
        self._first = True

    def of(self, step: Step) -> list[Piece]:
        """Return the pieces that a step adds."""
        pieces = []
        for token, kind in zip(step.emitted, origins(step), strict=True):
            self._held.append(token)
            text = self._codec.continuation(self._before, self._held)
            if self._codec.tokenizer is None and not self._first:
                text = f" {text}"  # ids are written with spaces between
            if text.endswith("\N{REPLACEMENT CHARACTER}") and len(self._held) < _LONGEST_HELD:
                continue
            pieces.append(Piece(text, kind))
            self._before, self._held = [*self._before, *self._held][-8:], []
            self._first = False
        return pieces


class Stream:
    """Calls `write` with each piece as soon as no stop string can begin in it."""

    def __init__(self, write: Callable[[Piece], None], stops: Sequence[str]) -> None:
        self._write, self._stops = write, tuple(stops)
        self._delay = max((len(stop) for stop in stops), default=1) - 1
        self._waiting: deque[Piece] = deque()
        self._written = 0

    def add(self, pieces: Sequence[Piece]) -> None:
        """Add the pieces of a step."""
        self._waiting.extend(pieces)
        text = "".join(piece.text for piece in self._waiting)
        if any(stop in text for stop in self._stops):
            return  # the run ends in these pieces: `finish` knows where
        length = len(text)
        while self._waiting and length - len(self._waiting[0].text) >= self._delay:
            piece = self._waiting.popleft()
            length -= len(piece.text)
            self._put(piece)

    def finish(self, text: str) -> None:
        """Write the remaining pieces, up to the end of the run's final text."""
        for piece in self._waiting:
            room = max(0, len(text) - self._written)
            self._put(Piece(piece.text[:room], piece.kind))
        self._waiting.clear()
        self._put(Piece(text[self._written :], ""))  # bytes of a character that the run did not finish

    def _put(self, piece: Piece) -> None:
        self._written += len(piece.text)
        self._write(piece)
