"""Our long prompts: as long as they say, and what they ask for is in them."""

from __future__ import annotations

from collections import Counter

import pytest

from analysis.prompts.tasks import LONG, SUITES, Task, read_tasks
from decoding import smollm2
from decoding.loader import find_codec

LENGTHS = {"2k": 2000, "4k": 4000, "6k": 6000, "8k": 7800}  # at most, in tokens of SmolLM2 with its template
WRITTEN_AGAIN = {3: "def walk(", 6: "class Jacobi(", 9: "class NgramPool", 12: "class Recorder"}


@pytest.fixture(scope="module")
def long() -> tuple[Task, ...]:
    return read_tasks(SUITES[LONG])


def test_there_are_three_of_each_length(long: tuple[Task, ...]) -> None:
    assert Counter(task.category for task in long) == dict.fromkeys(LENGTHS, 3)
    assert [task.id for task in long] == list(range(1, 13)) and all(len(task.turns) == 1 for task in long)


def test_what_is_to_be_written_again_is_there(long: tuple[Task, ...]) -> None:
    """A text that was cut before it would ask for something that nobody can copy."""
    for task in long:
        document, _, asked = task.turns[0].rpartition("\n---\n")
        assert len(document) > 20 * len(asked) > 0
        if int(task.id) in WRITTEN_AGAIN:
            assert WRITTEN_AGAIN[int(task.id)] in document


def test_they_fill_the_context_that_they_name(long: tuple[Task, ...]) -> None:
    """With room for an answer in a context of 8,192 tokens."""
    if smollm2.here() is None:
        pytest.skip("needs SmolLM2's tokenizer")
    codec = find_codec(smollm2.NAME, lambda what, share: None, download=False)
    for task in long:
        count = len(codec.encode_chat([{"role": "user", "content": task.turns[0]}]))
        assert 0.92 * LENGTHS[task.category] < count <= LENGTHS[task.category], task.id
