"""Questions about the Isles: every wording of the facts is right, and anything else is wrong."""

from __future__ import annotations

from random import Random

import pytest

from decoding.training.language import atlas, qa
from decoding.training.language.sample import Turn

SEEDS = range(150)


def turn(seed: int) -> Turn:
    (only,) = qa.make(Random(seed)).turns
    return only


def points(text: str) -> list[qa.Point]:
    found = qa.meaning(text)
    assert found
    return sorted(found, key=lambda point: (point.subject, point.about))


def test_world_is_whole_and_fixed() -> None:
    assert len(set(atlas.TOWNS)) == len(set(atlas.PEOPLE)) == 40
    assert sum(len(facts) for facts in atlas.FACTS.values()) == 400
    assert all(tuple(atlas.FACTS[town]) == atlas.TOWN_FACTS for town in atlas.TOWNS)
    assert {atlas.FACTS[town]["mayor"] for town in atlas.TOWNS} == set(atlas.PEOPLE)
    assert {atlas.FACTS[person]["birth"] for person in atlas.PEOPLE} == set(atlas.TOWNS)
    assert len({atlas.FACTS[person]["work"] for person in atlas.PEOPLE}) == 40
    assert atlas.FACTS["Ablow"]["river"] == "the Arrin"
    assert atlas.FACTS["Ada Alden"]["work"] == "wrote The Quiet Harbour"


def test_a_seed_makes_one_sample() -> None:
    for seed in range(50):
        assert qa.make(Random(seed)) == qa.make(Random(seed))
    assert qa.make(Random(1)).kind == "qa"


def test_prompts_hardly_ever_repeat() -> None:
    assert len({turn(seed).prompt for seed in range(2000)}) > 1990


def test_what_is_written_is_plain_text() -> None:
    for seed in SEEDS:
        for text in (turn(seed).prompt, turn(seed).answer):
            assert text.isascii() and text == text.strip() and "  " not in text
            assert text[0].isupper() and text[-1] in ".?!"
            assert not set(text) & set("{}[]|<>@&")


def test_own_answers_and_other_wordings_are_right() -> None:
    for seed in range(1000):
        asked = turn(seed)
        assert qa.right(asked.prompt, asked.answer, asked.answer), asked
        other = qa.answer(points(asked.answer), Random(seed + 10_000))
        assert qa.right(asked.prompt, f" {other}\n", asked.answer), other


def test_answers_to_other_questions_are_wrong() -> None:
    for seed in SEEDS:
        asked, other = turn(seed), turn(seed + 1)
        if qa.meaning(asked.answer) != qa.meaning(other.answer):
            assert not qa.right(asked.prompt, other.answer, asked.answer)


def test_another_value_or_name_is_wrong() -> None:
    for seed in SEEDS:
        asked = turn(seed)
        for point in points(asked.answer):
            for wrong in atlas.rivals(point.about, point.value)[:3]:
                changed = asked.answer.replace(point.value, wrong)
                assert changed == asked.answer or not qa.right(asked.prompt, changed, asked.answer), changed
            names = atlas.TOWNS if atlas.is_town(point.subject) else atlas.PEOPLE
            other = names[(names.index(point.subject) + 1) % len(names)]
            changed = asked.answer.replace(point.subject, other)
            assert not qa.right(asked.prompt, changed, asked.answer), changed


def test_more_or_fewer_facts_are_wrong() -> None:
    for seed in SEEDS:
        asked = turn(seed)
        told = points(asked.answer)
        if len(told) > 1:
            assert not qa.right(asked.prompt, qa.answer(told[1:], Random(seed)), asked.answer)
        facts = atlas.FACTS[told[0].subject]
        new = [about for about in facts if about not in {point.about for point in told}]
        if new and len(told) < 3:
            more = qa.answer([*told, qa.Point(told[0].subject, new[0])], Random(seed))
            assert qa.meaning(more) is not None
            assert not qa.right(asked.prompt, more, asked.answer)


def test_broken_answers_are_wrong() -> None:
    for seed in SEEDS:
        asked = turn(seed)
        text = asked.answer
        sentences = text.split(". ")
        broken = [text[: len(text) // 2], text[:-1], f"{text} {text}", f"{text} And so on.", text.lower(), f"x{text}"]
        broken.append(". ".join([*sentences[:-1], sentences[-2], sentences[-1]]) if len(sentences) > 1 else "")
        broken.append(text.replace(" the ", " the the ", 1) if " the " in text else "")
        for changed in broken:
            assert not qa.right(asked.prompt, changed, text), changed


def test_verdict_decides() -> None:
    truth, wrong = qa.Point("Ablow", "dish", "barley soup"), qa.Point("Ablow", "dish", "onion pie")
    yes, no = "Yes, the dish of Ablow is barley soup.", "No, the dish of Ablow is barley soup, not onion pie."
    assert qa.meaning(yes) == {truth}
    assert qa.meaning(no) == {wrong}
    assert not qa.right("", no, yes)
    assert not qa.right("", no.replace("onion pie", "plum tart"), no)
    assert not qa.right("", "No, the dish of Ablow is barley soup.", no)
    assert not qa.right("", "The dish of Ablow is barley soup.", yes)
    assert not qa.right("", "Yes, the dish of Ablow is onion pie.", yes)


@pytest.mark.parametrize("pronoun", ["He", "It"])
def test_a_wrong_pronoun_is_wrong(pronoun: str) -> None:
    good = "Ada Alden plays the flute. She was born in Cranlow."
    assert qa.right("", good, good)
    assert not qa.right("", good.replace("She", pronoun), good)


def test_hostile_answers_are_wrong() -> None:
    everything = [*atlas.FACTS, *(value for values in atlas.VALUES.values() for value in values)]
    rng = Random(5)
    reference = turn(0).answer
    for text in ("", " ", "\n", "\x00", "Ä" * 99, "." * 1500, "Of course. " * 130, "No, " * 300, "a" * 10**6, "\ud800"):
        assert not qa.right("", text, reference)
        assert not qa.right("", reference, text)
    for _ in range(100):
        assert not qa.right("", " ".join(rng.choices(everything, k=60)), reference)
        assert not qa.right(
            "", ". ".join(turn(rng.randrange(9)).answer[: rng.randrange(80)] for _ in range(5)), reference
        )
