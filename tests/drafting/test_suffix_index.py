"""The suffix index against a scan of the whole text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from decoding.drafting.suffix_index import SuffixIndex

texts = st.lists(st.integers(0, 2), max_size=40)


def scanned(text: list[int], ending: tuple[int, ...], room: int) -> list[int]:
    """Return every place after an occurrence of `ending` that at least `room` tokens follow."""
    ends = range(len(ending), len(text) - room + 1)
    return [end for end in ends if tuple(text[end - len(ending) : end]) == ending]


@given(texts, st.integers(1, 3), st.integers(0, 2), st.lists(st.integers(0, 9), max_size=6), st.integers(1, 5))
def test_the_index_finds_what_a_scan_finds(
    text: list[int], shortest: int, more: int, parts: list[int], room: int
) -> None:
    """An occurrence missed at the seam of two updates, a self-match of the ending, or too little room after it."""
    index, size = SuffixIndex(shortest, shortest + more), 0
    for part in [*parts, len(text)]:
        size = min(len(text), size + part) if part < len(text) else len(text)
        index.update(text[:size])
    for n in range(1, 6):
        for start in range(max(1, len(text) - n + 1)):
            ending = tuple(text[start : start + n])
            places = scanned(text, ending, room) if shortest <= len(ending) <= shortest + more else []
            assert index.find(ending, latest=True, room=room) == (places[-1] if places else None)
            assert index.find(ending, latest=False, room=room) == (places[0] if places else None)
            places_of_one = scanned(text, ending, 1) if shortest <= len(ending) <= shortest + more else []
            assert [*index.places(ending)] == places_of_one


def test_an_ending_that_never_occurred_is_not_found() -> None:
    """The ending itself, at the very end, has nothing after it to copy."""
    index = SuffixIndex(1, 2)
    index.update([1, 2, 3])
    assert index.find((3,), latest=True) is None and index.find((2, 3), latest=True) is None
    assert index.find((1, 2), latest=True) == 2 and index.find((9,), latest=False) is None
