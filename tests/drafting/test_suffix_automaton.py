"""The suffix automaton against a scan of all texts, however they repeat themselves."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from decoding.drafting.suffix_automaton import Ending, GrowingText, SuffixAutomaton

Text = list[int]
texts = st.lists(st.lists(st.integers(0, 2), max_size=25), min_size=1, max_size=4)


def behind(held: Sequence[Text], run: Text) -> list[tuple[int, int]]:
    """Where a run of tokens ends: the number of the text, and the place after it."""
    n = len(run)
    return [(i, end) for i, text in enumerate(held) for end in range(n, len(text) + 1) if text[end - n : end] == run]


def followed(held: Sequence[Text], run: Text) -> Counter[int]:
    """How often each token came after a run."""
    return Counter(held[i][end] for i, end in behind(held, run) if end < len(held[i]))


def check(automaton: SuffixAutomaton, place: Ending, held: Sequence[Text], read: Text) -> None:
    """What the automaton says of every ending of `read` is what a scan finds."""
    runs = range(min(automaton.depth, len(read)) + 1)
    longest = max(n for n in runs if n == 0 or behind(held, read[len(read) - n :]))
    assert place.length == longest
    endings = [(n, state) for lengths, state in automaton.endings(place) for n in lengths]
    assert [n for n, _ in endings] == [*range(longest, 0, -1)]
    for n, state in endings:
        run = read[len(read) - n :]
        assert automaton.count(state) == len(behind(held, run))
        if n < automaton.depth:
            children = automaton.children(state)
            assert {child.token: child.count for child in children} == followed(held, run)
            assert [child.count for child in children] == sorted((child.count for child in children), reverse=True)


@given(texts, st.integers(1, 6))
def test_a_text_finds_all_its_endings_while_it_grows(given_texts: list[Text], depth: int) -> None:
    """A state that is split too late, or a count that its new part does not inherit."""
    automaton, held = SuffixAutomaton(depth), list[Text]()
    for text in given_texts:
        entry = GrowingText(automaton)
        held.append([])
        for token in text:
            held[-1].append(token)
            entry.update(held[-1])
            check(automaton, entry.ending, held, held[-1])


@given(texts, st.lists(st.integers(0, 3), max_size=20), st.integers(1, 6))
def test_a_reader_finds_its_endings_in_texts_of_others(given_texts: list[Text], read: Text, depth: int) -> None:
    """The texts grow while the reader reads them: the state that it was in may have been split since."""
    automaton, held, place = SuffixAutomaton(depth), list[Text](), Ending()
    for number, token in enumerate(read, start=1):
        if number <= len(given_texts):
            held.append(given_texts[number - 1])
            GrowingText(automaton).update(held[-1])
        automaton.advance(place, token)
        if number >= len(given_texts):  # before, a longer ending may have come into the texts than was found
            again = Ending()
            for each in read[max(0, number - depth) : number]:
                automaton.advance(again, each)
            check(automaton, again, held, read[:number])
    assert place.length <= depth


def test_of_equals_the_latest_comes_first() -> None:
    """Prompt lookup copies the latest of several places: so must guesses of equal counts."""
    automaton = SuffixAutomaton(8)
    entry = GrowingText(automaton)
    entry.extend([1, 2, 1, 3, 1, 2, 1, 3, 1])
    [state] = [state for lengths, state in automaton.endings(entry.ending) if 1 in lengths]
    assert [(child.token, child.count) for child in automaton.children(state)] == [(3, 2), (2, 2)]


def test_a_long_loop_costs_no_more_than_other_texts() -> None:
    """Every ending of a loop occurs everywhere: without a bound of depth each token would count all of them."""
    states = []
    for text in ([7] * 4000, [*range(500)] * 8, [i * i % 997 for i in range(4000)]):
        automaton, begin = SuffixAutomaton(64), time.thread_time()  # other threads may be at work
        GrowingText(automaton).extend(text)
        assert time.thread_time() - begin < 1.0  # measured: 0.02 s
        states.append(automaton.size)
    assert max(states) <= 2 * 4000


def test_sorted_followers_move_up_as_in_the_reference_code() -> None:
    """After 1 came 2, 3 and 4, each once, in this order; then one of them once more, and another."""
    for again, order in (([4], [4, 2, 3]), ([4, 3], [4, 3, 2]), ([4, 2], [2, 4, 3]), ([2, 4], [2, 4, 3])):
        automaton = SuffixAutomaton(4, sorts=True)
        entry = GrowingText(automaton)
        entry.extend([each for token in (2, 3, 4, *again) for each in (1, token)] + [1])
        [state] = [state for lengths, state in automaton.endings(entry.ending) if 1 in lengths]
        assert [child.token for child in automaton.children(state)] == order, again
