"""Questions on passages: the right passage, its own words and their value are right, and anything else is wrong."""

from __future__ import annotations

from random import Random

from lab.pocket.language import rag
from lab.pocket.language.sample import Turn

SEEDS = range(200)
PROMPT = """Read these notes.
Belarsa Inn was built by Ada [1]. Belarsa Inn was opened in 1874 [1].
Coranvik Inn is made of oak [2]. Coranvik Inn was built by Emil [2].
Dalilzo Inn belongs to Ada [3]. Dalilzo Inn stands in Ablow [3].
Who built Coranvik Inn?"""
GOOD = "Of course. Look: Coranvik Inn was built by Emil [2]. So Coranvik Inn was built by Emil."


def turn(seed: int) -> Turn:
    (only,) = rag.make(Random(seed)).turns
    return only


def point(asked: Turn) -> rag.StatedFact:
    fact = rag.meaning(asked.prompt, asked.answer)
    assert fact
    return fact


def test_a_seed_makes_one_sample() -> None:
    for seed in range(50):
        assert rag.make(Random(seed)) == rag.make(Random(seed))
    assert rag.make(Random(1)).kind == "rag"
    assert len({turn(seed).prompt for seed in range(1000)}) == 1000


def test_what_is_written_is_plain_text() -> None:
    for seed in SEEDS:
        asked = turn(seed)
        assert asked.answer.isascii() and asked.answer[0].isupper() and asked.answer[-1] in ".!"
        assert asked.prompt == asked.prompt.strip() and "  " not in asked.prompt + asked.answer
        assert not set(asked.prompt + asked.answer) & set("{}|@")
        assert len(asked.prompt.split()) + len(asked.answer.split()) < 110


def test_own_answers_and_other_wordings_are_right() -> None:
    for seed in range(400):
        asked = turn(seed)
        assert rag.right(asked.prompt, asked.answer, asked.answer), asked
        other = rag.answer(point(asked), Random(seed + 10_000))
        assert rag.right(asked.prompt, f"\n{other} ", asked.answer), other


def test_passages_tell_what_was_put_in() -> None:
    assert list(rag.facts(PROMPT)) == [
        rag.StatedFact(1, "Belarsa Inn", "builder", "Ada"),
        rag.StatedFact(1, "Belarsa Inn", "year", "1874"),
        rag.StatedFact(2, "Coranvik Inn", "material", "oak"),
        rag.StatedFact(2, "Coranvik Inn", "builder", "Emil"),
        rag.StatedFact(3, "Dalilzo Inn", "owner", "Ada"),
        rag.StatedFact(3, "Dalilzo Inn", "place", "Ablow"),
    ]


def test_passages_are_easy_to_tell_apart() -> None:
    for seed in SEEDS:
        facts = list(rag.facts(turn(seed).prompt))
        assert len(facts) == 6
        assert len({point.name[:3] for point in facts}) == 3
        assert len({point.value[:2] for point in facts}) == 6


def test_every_other_point_is_wrong() -> None:
    for seed in SEEDS:
        asked = turn(seed)
        others = [other for other in rag.facts(asked.prompt) if other != point(asked)]
        assert len(others) == 5
        for other in others:
            assert not rag.right(asked.prompt, rag.answer(other, Random(seed)), asked.answer), other


def test_changed_facts_are_wrong() -> None:
    for seed in SEEDS:
        asked = turn(seed)
        text, made = asked.answer, point(asked)
        name, end = made.name.split()[0], text.rindex(made.value)
        for changed in (
            text.replace(made.value, "2041"),
            text[:end] + "Noone" + text[end + len(made.value) :],
            text.replace(made.value, "Noone", 1),
            text.replace(name, "Nowhere"),
            text.replace(f"[{made.passage}]", f"[{made.passage % 3 + 1}]"),
            text.replace(made.sentence, made.sentence[:-1]),
            text.replace(made.sentence, made.sentence.replace(" ", " quite ", 1)),
        ):
            assert changed != text and not rag.right(asked.prompt, changed, text), changed


def test_broken_answers_are_wrong() -> None:
    for seed in SEEDS:
        asked, other = turn(seed), turn(seed + 1)
        text = asked.answer
        for changed in (text[: len(text) // 2], text[:-1], f"{text} {text}", f"{text} So.", text.lower(), other.answer):
            assert not rag.right(asked.prompt, changed, text), changed


def test_right_is_exact() -> None:
    assert rag.right(PROMPT, GOOD, GOOD)
    assert rag.right(PROMPT, GOOD.replace("Of course. Look", "Here is the sentence"), GOOD)
    assert rag.right(PROMPT, GOOD.replace("So Coranvik Inn", "Therefore this inn"), GOOD)
    assert rag.right(PROMPT, GOOD.replace("So Coranvik Inn", "So it"), GOOD)
    assert rag.right(PROMPT, GOOD + " The others do not help.", GOOD)
    for old, new in (
        ("[2]", "[1]"),
        ("Emil.", "Ada."),
        ("Inn was built by Emil", "Inn is made of oak"),
        ("So Coranvik", "So Belarsa"),
        ("So Coranvik Inn", "So this mill"),
        ("So Coranvik Inn was built by Emil", "So Coranvik Inn is made of oak"),
        (" So Coranvik Inn was built by Emil.", ""),
        ("Look: Coranvik Inn was built by Emil", "Look: Coranvik Inn was built by Ada"),
        (" [2]. So", " [2], so"),
    ):
        assert old in GOOD
        assert not rag.right(PROMPT, GOOD.replace(old, new), GOOD), new
    assert not rag.right(PROMPT, GOOD + " Passages 1 and 2 do not help.", GOOD)


def test_hostile_answers_are_wrong() -> None:
    for text in ("", " ", "\x00", '"' * 1500, "Sure. " * 200, "a" * 10**6, "\ud800", PROMPT, PROMPT * 3):
        assert not rag.right(PROMPT, text, GOOD)
        assert not rag.right(PROMPT, GOOD, text)
    for prompt in ("", "1. ", "[1].\nand and [2].\nA B and [3].", "1. a" * 10**5, PROMPT.replace("Emil", "Ugo")):
        assert not rag.right(prompt, GOOD, GOOD)
