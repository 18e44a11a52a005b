"""Small talk: what is made is accepted, in every wording; what is wrong, broken or about something else is not."""

from __future__ import annotations

import random
import re
from functools import cache

import pytest

from lab.pocket.language.chat import expected, make, right
from lab.pocket.language.chat_phrases import BAD_CAUSES, PET_NAMES, SUBJECTS, THINGS
from lab.pocket.language.phrases import write
from lab.pocket.language.sample import Sample, Turn
from lab.pocket.language.words import PEOPLE

SEEDS = 400
RECALL = re.compile(r"what (?:is|was) my name")


@cache
def samples() -> tuple[Sample, ...]:
    return tuple(make(random.Random(seed)) for seed in range(SEEDS))


@cache
def turns() -> tuple[Turn, ...]:
    return tuple(turn for sample in samples() for turn in sample.turns)


def swapped(text: str, words: tuple[str, ...]) -> str:
    """Return the text with the first of the words in it replaced by the next of the words."""
    for word in re.findall(r"\w+", text):
        if word.lower() in {known.lower() for known in words}:
            names = [known.lower() for known in words]
            other = words[(names.index(word.lower()) + 1) % len(words)]
            return re.sub(rf"\b{word}\b", other.capitalize() if word[0].isupper() else other, text)
    return text


def test_is_the_same_for_the_same_seed() -> None:
    assert make(random.Random(7)) == make(random.Random(7))
    assert make(random.Random(7)) != make(random.Random(8))


def test_has_two_or_three_turns_of_plain_text() -> None:
    for sample in samples():
        assert sample.kind == "chat"
        assert len(sample.turns) in (2, 3)
        for turn in sample.turns:
            for text in (turn.prompt, turn.answer):
                assert re.fullmatch(r"[A-Za-z ,.!?:]+[.!?]", text)
                assert "  " not in text and " ." not in text
            assert 2 <= len(re.findall(r"[.!?](?= |$)", turn.answer)) <= 6


def test_prompts_hardly_ever_repeat() -> None:
    firsts = {sample.turns[0].prompt for sample in samples()}
    assert len(firsts) > 0.99 * SEEDS


def test_accepts_what_it_makes() -> None:
    for turn in turns():
        assert right(turn.prompt, turn.answer, turn.answer), turn
        assert right(turn.prompt, f"\n {turn.answer} ", turn.answer)


def test_accepts_every_paraphrase() -> None:
    rng = random.Random(5)
    differ = 0
    for turn in turns():
        wanted = expected(turn.prompt, turn.answer)
        assert wanted is not None
        phrase, values = wanted
        if "idea" in values:
            values = values | {"idea": values["idea"][:3], "other": values["idea"][3:]}
        other = write(phrase, values, rng)
        differ += other != turn.answer
        assert right(turn.prompt, other, turn.answer), (turn, other)
    assert differ > 0.99 * len(turns())


def test_refuses_missing_and_doubled_parts() -> None:
    for turn in turns()[::8]:
        sentences = re.findall(r"[^.!?]+[.!?] ?", turn.answer)
        for wrong in (
            "",
            turn.answer[:-1],
            turn.answer[: len(turn.answer) // 2],
            sentences[-1],
            "".join(sentences[:-1]),
            f"{turn.answer} {sentences[-1]}",
            f"{turn.answer} {turn.answer}",
            f"{sentences[0].strip()} {turn.answer}",
            f"{turn.answer} ok",
            turn.answer.lower(),
            turn.prompt,
        ):
            assert not right(turn.prompt, wrong, turn.answer), (turn, wrong)


def test_refuses_words_in_a_wrong_order() -> None:
    rng = random.Random(3)
    for turn in turns():
        words = turn.answer.split(" ")
        at = rng.randrange(len(words) - 1)
        words[at], words[at + 1] = words[at + 1], words[at]
        wrong = " ".join(words)
        if wrong != turn.answer and words[at] != words[at + 1]:
            assert not right(turn.prompt, wrong, turn.answer), (turn, wrong)


@pytest.mark.parametrize("words", [PEOPLE, PET_NAMES, tuple(THINGS)], ids=["name", "pet", "hobby"])
def test_refuses_another_name(words: tuple[str, ...]) -> None:
    tried = 0
    for turn in turns():
        wrong = swapped(turn.answer, words)
        if wrong != turn.answer:
            tried += 1
            assert not right(turn.prompt, wrong, turn.answer), (turn, wrong)
    assert tried > 50


def test_refuses_the_answer_to_something_else() -> None:
    everything = turns()
    wanted = re.compile(r"(?:suggest|would like) (.+) for ")
    for turn, other in zip(everything, everything[7:], strict=False):
        asked = [found and found[1] for found in (wanted.search(turn.prompt), wanted.search(other.prompt))]
        if asked[0] and asked[0] == asked[1]:  # an answer need not name the occasion
            continue
        if expected(turn.prompt, turn.answer) != expected(other.prompt, other.answer) and other.answer != turn.answer:
            fits = right(turn.prompt, other.answer, turn.answer)
            assert not fits, (turn, other)


def test_moods_hobbies_and_subjects_get_what_fits_them() -> None:
    sad = "I am sad because I lost my keys."
    answer = "Oh no, that sounds hard. I understand that you are sad because {}. Maybe a cup of tea will help."
    for cause in BAD_CAUSES.values():
        assert right(sad, answer.format(cause), "") == (cause == "you lost your keys")
    assert not right(sad, answer.format("you lost your keys").replace("Oh no, that sounds hard.", "How nice!"), "")
    assert not right(sad, "I am glad that you lost your keys. Enjoy the day!", "")
    for thing in THINGS.values():
        answer = f"Many people like sailing because of the {thing}. When did you start sailing?"
        assert right("My hobby is sailing.", answer, "") == (thing == "waves")
    for subject, (mild, harsh) in SUBJECTS.items():
        for quality in (mild, harsh):
            answer = f"I think tea is {quality}. How about you?"
            assert right("Do you like tea?", answer, "") == (quality == "relaxing"), subject


def test_another_idea_is_another_one() -> None:
    asked = "Can you suggest a game for a quiet evening?"
    answer = "Chess would be nice for a quiet evening. If you do not like that, try {}. Does that help?"
    assert right(asked, answer.format("a puzzle"), "")
    assert not right(asked, answer.format("chess"), "")
    assert not right(asked, answer.format("a pie"), "")


def test_recalls_what_was_told_before() -> None:
    recalled = 0
    for sample in samples():
        for turn in sample.turns[1:]:
            if RECALL.search(turn.prompt.lower()):
                recalled += 1
                name = next(word for word in re.findall(r"\w+", sample.turns[0].prompt) if word in PEOPLE)
                assert f"our name is {name}" in turn.answer
    assert recalled > 50


@pytest.mark.parametrize("text", ["", "\0", "a" * 100_000, "Hello " * 20_000, "\ud800", "{name}", "é" * 99, "[(*"])
def test_hostile_texts_are_wrong_not_errors(text: str) -> None:
    turn = turns()[0]
    assert not right(turn.prompt, text, turn.answer)
    assert not right(text, turn.answer, turn.answer)
    assert not right("What is my name?", turn.answer, text)
