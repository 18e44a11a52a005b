"""What is remembered of earlier answers: whole answers, not too many, and only those of this memory."""

from __future__ import annotations

import random
import threading

from decoding.drafting.earlier_answers import EarlierAnswers
from decoding.drafting.suffix_automaton import Ending, SuffixAutomaton


def times(automaton: SuffixAutomaton, run: list[int]) -> int:
    """How often a run occurs in the answers."""
    place = Ending()
    for token in run:
        automaton.advance(place, token)
    return automaton.count(place.state) if place.length == len(run) else 0


def test_an_answer_is_found_by_the_next_one() -> None:
    """And not by itself: what a run has written occurs in its own text already."""
    answers = EarlierAnswers(depth=8, most=9)
    count, automaton, answer = answers.begin()
    answer += [1, 2, 3]
    assert count == 0 and times(automaton, [2, 3]) == 0
    count, automaton, other = answers.begin()
    assert count == 1 and times(automaton, [2, 3]) == 1
    answer += [2, 3]  # a run that goes on beside it
    other += [5]
    count, automaton, _ = answers.begin()
    assert count == 2 and times(automaton, [2, 3]) == 2 and times(automaton, [5]) == 1
    assert times(automaton, [3, 5]) == 0  # no run goes from one answer into the next


def test_the_oldest_answers_make_room_whole() -> None:
    """Beyond either bound; what is left is counted as if the others had never been."""
    for most, largest in ((1, 1000), (4, 1000), (1000, 60)):
        answers, written = EarlierAnswers(8, most, largest), list[list[int]]()
        for number in range(40):
            count, automaton, answer = answers.begin()
            kept = written[len(written) - count :]
            assert answers.answers()[:-1] == kept
            assert count <= most and sum(map(len, kept)) <= largest
            assert count == number or count >= most / 2 or sum(map(len, kept)) >= largest / 2 - 10
            for run in ([1, 2], [2], [number - 1]):
                occurrences = sum(text[i : i + len(run)] == run for text in kept for i in range(len(text)))
                assert times(automaton, run) == occurrences
            answer += [1, 2, number, 2, 1, 2, number, 7, 7, 7]
            written.append(answer)
        assert 1 <= count < 40


def test_the_automaton_is_as_large_as_the_answers_that_stay() -> None:
    """Memory: states of answers that were evicted must not stay."""
    answers, source, most = EarlierAnswers(64, 1000, 2000), random.Random(1), 0
    for _ in range(60):
        _, automaton, answer = answers.begin()
        most = max(most, automaton.size)
        answer += [source.randrange(50) for _ in range(100)]
    assert most <= 2 * 2100


def test_runs_can_share_them() -> None:
    """Runs that go on at the same time read while another begins."""
    answers, wrong = EarlierAnswers(8, 50, 400), list[BaseException]()

    def go_on(seed: int) -> None:
        source = random.Random(seed)
        try:
            for _ in range(60):
                _, automaton, answer = answers.begin()
                place = Ending()
                for _ in range(20):
                    answer.append(source.randrange(4))
                    with answers.reading():
                        automaton.advance(place, answer[-1])
                        for _, state in automaton.endings(place):
                            automaton.children(state)
        except BaseException as error:  # noqa: BLE001  # shown by the test's own thread
            wrong.append(error)

    threads = [threading.Thread(target=go_on, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
