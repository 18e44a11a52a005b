"""Questions on passages: the right passage, its own words and their value are right, and anything else is wrong."""

from __future__ import annotations

from random import Random

from decoding.training.language import rag
from decoding.training.language.sample import Turn

SEEDS = range(200)
PROMPT = """Read these notes.
1. Belarsa Inn was founded by Ada and opened in 1874. Belarsa Inn is used for dances.
2. Coranvik Inn is made of oak. Coranvik Inn was founded by Emil and has red doors.
3. Dalilzo Inn belongs to Ada and stands in Yarorfell.
Who founded Coranvik Inn?"""
GOOD = (
    'Sure. Passage 2 says: "Coranvik Inn was founded by Emil and has red doors." So Coranvik Inn was founded by Emil.'
)


def turn(seed: int) -> Turn:
    (only,) = rag.make(Random(seed)).turns
    return only


def points(asked: Turn) -> list[rag.Point]:
    found = rag.meaning(asked.prompt, asked.answer)
    assert found
    return sorted(found, key=lambda point: point.passage)


def test_a_seed_makes_one_sample() -> None:
    for seed in range(50):
        assert rag.make(Random(seed)) == rag.make(Random(seed))
    assert rag.make(Random(1)).kind == "rag"
    assert len({turn(seed).prompt for seed in range(1000)}) == 1000


def test_what_is_written_is_plain_text() -> None:
    for seed in SEEDS:
        asked = turn(seed)
        assert asked.answer.isascii() and asked.answer[0].isupper() and asked.answer[-1] == "."
        assert asked.prompt == asked.prompt.strip() and "  " not in asked.prompt + asked.answer
        assert not set(asked.prompt + asked.answer) & set("{}[]|@")
        assert len(asked.prompt.split()) + len(asked.answer.split()) < 190


def test_own_answers_and_other_wordings_are_right() -> None:
    for seed in range(1000):
        asked = turn(seed)
        assert rag.right(asked.prompt, asked.answer, asked.answer), asked
        other = rag.answer(points(asked), Random(seed + 10_000))
        assert rag.right(asked.prompt, f"\n{other} ", asked.answer), other


def test_passages_tell_what_was_put_in() -> None:
    told = {(point.passage, point.name, point.about, point.value) for point in rag.told(PROMPT)}
    assert told == {
        (1, "Belarsa Inn", "maker", "Ada"),
        (1, "Belarsa Inn", "year", "1874"),
        (1, "Belarsa Inn", "use", "dances"),
        (2, "Coranvik Inn", "material", "oak"),
        (2, "Coranvik Inn", "maker", "Emil"),
        (2, "Coranvik Inn", "colour", "red doors"),
        (3, "Dalilzo Inn", "owner", "Ada"),
        (3, "Dalilzo Inn", "place", "Yarorfell"),
    }


def test_every_other_point_is_wrong() -> None:
    for seed in range(60):
        asked = turn(seed)
        wanted = points(asked)
        for point in rag.told(asked.prompt):
            if [point] != wanted:
                assert not rag.right(asked.prompt, rag.answer([point], Random(seed)), asked.answer), point


def test_changed_facts_are_wrong() -> None:
    for seed in SEEDS:
        asked = turn(seed)
        for point in points(asked):
            name, value = point.name.split()[0], point.value
            end = asked.answer.rindex(value)
            wrong = [
                asked.answer.replace(value, "2041"),
                asked.answer[:end] + "Noone" + asked.answer[end + len(value) :],
                asked.answer.replace(value, "Noone", 1),
                asked.answer.replace(name, "Nowhere"),
                asked.answer.replace(point.sentence, point.sentence[:-1]),
                asked.answer.replace(point.sentence, point.sentence.replace(" ", " quite ", 1)),
            ]
            for changed in wrong:
                assert not rag.right(asked.prompt, changed, asked.answer), changed


def test_broken_answers_are_wrong() -> None:
    for seed in SEEDS:
        asked, other = turn(seed), turn(seed + 1)
        text = asked.answer
        for changed in (text[: len(text) // 2], text[:-1], f"{text} {text}", f"{text} So.", text.lower(), other.answer):
            assert not rag.right(asked.prompt, changed, text), changed


def test_right_is_exact() -> None:
    assert rag.right(PROMPT, GOOD, GOOD)
    assert rag.right(PROMPT, GOOD.replace("Passage 2", "The second text"), GOOD)
    assert rag.right(PROMPT, GOOD.replace('"', "'"), GOOD)
    assert rag.right(PROMPT, GOOD.replace("So Coranvik Inn", "Therefore this inn"), GOOD)
    assert rag.right(PROMPT, GOOD + " Passages 1 and 3 describe other things.", GOOD)
    for old, new in (
        ("Passage 2", "Passage 1"),
        ("Passage 2", "The third text"),
        ("Emil.", "Ada."),
        ("has red doors", "has blue doors"),
        ("Inn was founded by Emil and has red doors", "Inn is made of oak"),
        ("So Coranvik", "So Belarsa"),
        ("So Coranvik Inn was founded by Emil", "So Coranvik Inn has red doors"),
        (" So Coranvik Inn was founded by Emil.", ""),
        ('"Coranvik Inn was founded by Emil and has red doors."', '"Coranvik Inn was founded by Emil."'),
        ('doors."', "doors.'"),
    ):
        assert old in GOOD
        assert not rag.right(PROMPT, GOOD.replace(old, new), GOOD), new
    assert not rag.right(PROMPT, GOOD + " Passages 1 and 2 describe other things.", GOOD)


def test_hostile_answers_are_wrong() -> None:
    for text in ("", " ", "\x00", '"' * 1500, "Sure. " * 200, "a" * 10**6, "\ud800", PROMPT, PROMPT * 3):
        assert not rag.right(PROMPT, text, GOOD)
        assert not rag.right(PROMPT, GOOD, text)
    for prompt in ("", "1. ", "1. .\n2. and and\n3. A B and.", GOOD, "1. a" * 10**5, PROMPT.replace("Emil", "Ugo")):
        assert not rag.right(prompt, GOOD, GOOD)
