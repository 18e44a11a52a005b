"""The step that a recording opens at: words that were guessed, early, and with a rejection where there is one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.jobs.opening_step import is_word, opening_step
from app.store.recordings import Recordings
from decoding.types import Step, Timing, Trace

TEXTS = {1: " the", 2: " sun", 3: " 1", 4: ",", 5: "n", 6: " rises"}


def trace_of(*steps: tuple[tuple[int, ...], int]) -> Trace:
    """Make a trace whose steps emit these tokens, all accepted but the last, of so many guesses."""
    header = Recordings().header("lookahead")
    made = tuple(
        Step(
            index=index,
            start=1 + index,
            pending=0,
            emitted=emitted,
            accepted=len(emitted) - 1,
            drafted=drafted,
            fed=1 + drafted,
            timing=Timing(),
        )
        for index, (emitted, drafted) in enumerate(steps)
    )
    return replace(Trace(header, made, None), texts=TEXTS)


NOTHING = ((4,), 3)


@pytest.mark.parametrize(
    ("steps", "opened"),
    [
        ([NOTHING, NOTHING, ((3, 4, 3, 4), 3), ((1, 2, 4), 2)], 3),  # two words before three signs
        ([NOTHING, NOTHING, ((1, 2, 4), 2), ((1, 2, 4), 2)], 2),  # of two equal ones the earlier
        ([NOTHING, NOTHING, ((1, 2, 4), 2), ((1, 2, 4), 5)], 3),  # both fates are worth a few steps
        ([NOTHING, NOTHING, ((1, 2, 4), 2), *[NOTHING] * 20, ((1, 2, 6, 4), 3)], 2),  # one more word, too late
        ([NOTHING, NOTHING, *[NOTHING] * 30, ((1, 4), 1)], 32),  # a word late rather than none
        ([((1, 2, 6, 4), 9), NOTHING, NOTHING, ((5,), 0), ((2,), 0)], 4),  # nothing accepted: the first word written
        ([NOTHING], 0),
    ],
)
def test_the_step_worth_most_is_chosen(steps: list[tuple[tuple[int, ...], int]], opened: int) -> None:
    assert opening_step(trace_of(*steps)) == opened


def test_a_token_without_a_text_is_no_word() -> None:
    """A file may lack texts: that must not end a recording."""
    assert opening_step(replace(trace_of(NOTHING, NOTHING, ((1, 2), 4)), texts={})) == 2


@pytest.mark.parametrize("text", [" return", "Ünter", "\nif", "ing"])
def test_words(text: str) -> None:
    assert is_word(text)


@pytest.mark.parametrize("text", ["", " ", "n", " 12", "):", "<|im_end|>", "x1", "\u202eab"])
def test_no_words(text: str) -> None:
    assert not is_word(text)
