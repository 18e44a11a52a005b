"""Streamed text: exactly the run's final text, as early as stop strings allow."""

from __future__ import annotations

import random

import pytest

from cli.stream import Piece, Stream
from decoding.stops import trim

from .conftest import Command


def cut(rng: random.Random, pieces: list[str], stops: tuple[str, ...]) -> list[list[Piece]]:
    """Return steps of pieces, ended after the piece that completes a stop string, as a run is."""
    steps, text = [list[Piece]()], ""
    for piece in pieces:
        steps[-1].append(Piece(piece, ""))
        text += piece
        if any(stop in text for stop in stops):
            break
        if rng.random() < 0.5:
            steps.append([])
    return steps


@pytest.mark.parametrize("seed", range(8))
def test_the_stream_ends_where_the_text_does(seed: int) -> None:
    """A stop string completed inside a long token must not leave its first letters on the screen."""
    rng = random.Random(seed)
    for _ in range(300):
        pieces = ["".join(rng.choices("abc", k=rng.randint(0, 6))) for _ in range(rng.randint(1, 12))]
        stops = tuple("".join(rng.choices("abc", k=rng.randint(1, 6))) for _ in range(rng.randint(0, 3)))
        steps, written = cut(rng, pieces, stops), list[str]()
        stream = Stream(lambda piece, written=written: written.append(piece.text), stops)  # type: ignore[misc]
        for step in steps:
            stream.add(step)
        final = trim("".join(piece.text for step in steps for piece in step), stops)
        stream.finish(final)
        assert "".join(written) == final, (pieces, stops)


def test_the_stream_holds_back_no_more_than_a_stop_string_needs() -> None:
    """A stream that waits for the end is none."""
    written = list[str]()
    stream = Stream(lambda piece: written.append(piece.text), ("xyz",))
    for letter in "abcdef":
        stream.add([Piece(letter, "")])
    assert written == list("abcd")


@pytest.mark.parametrize("stop", ["s the l", "e l"])
def test_a_stop_string_that_ends_inside_a_token(command: Command, stop: str) -> None:
    """The last token runs past the stop string's end, so that counting letters back from its end is not enough."""
    flags = ("--prompt", "Every evening", "--max-new-tokens", "14", "--stop", stop)
    text = command("run", "--json", *flags).json["text"]
    assert command("run", *flags).out.split("\n\n")[1] == text
