"""Questions about the Isles: every wording of the facts is right, and anything else is wrong."""

from __future__ import annotations

from random import Random

from lab.pocket.language import atlas, qa
from lab.pocket.language.sample import Turn

SEEDS = range(150)


def turn(seed: int) -> Turn:
    (only,) = qa.make(Random(seed)).turns
    return only


def points(text: str) -> list[qa.AskedFact]:
    facts = qa.meaning(text)
    assert facts
    return sorted(facts, key=lambda point: (point.subject, point.about))


def test_world_is_whole_and_fixed() -> None:
    assert len({name[0] for name in atlas.TOWNS}) == len({name[0] for name in atlas.PEOPLE}) == 24
    assert len({name.split()[1] for name in atlas.PEOPLE}) == 24
    assert sum(len(facts) for facts in atlas.FACTS.values()) == 24 * 7
    for about, values in atlas.VALUES.items():
        assert len({value.split()[0] for value in values}) == len(values)
        got = [facts[about] for facts in atlas.FACTS.values() if about in facts]
        assert {got.count(value) for value in values} == {24 // len(values)}
    assert len({(facts["dish"], facts["craft"]) for facts in map(atlas.FACTS.__getitem__, atlas.TOWNS)}) == 24
    assert atlas.FACTS["Ablow"] == {"river": "Delm", "mayor": "Dario Dale", "dish": "plum tart", "craft": "weaving"}


def test_a_seed_makes_one_sample() -> None:
    for seed in range(50):
        assert qa.make(Random(seed)) == qa.make(Random(seed))
    assert qa.make(Random(1)).kind == "qa"


def test_prompts_seldom_repeat() -> None:
    assert len({turn(seed).prompt for seed in range(2000)}) > 1900


def test_what_is_written_is_plain_text() -> None:
    for seed in SEEDS:
        for text in (turn(seed).prompt, turn(seed).answer):
            assert text.isascii() and text == text.strip() and "  " not in text
            assert text[0].isupper() and text[-1] in ".?!"
            assert not set(text) & set("{}[]|<>@&")


def test_own_answers_and_other_wordings_are_right() -> None:
    for seed in range(400):
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
                assert changed != asked.answer and not qa.right(asked.prompt, changed, asked.answer), changed
            names = atlas.TOWNS if point.subject in atlas.TOWNS else atlas.PEOPLE
            other = names[(names.index(point.subject) + 1) % len(names)]
            changed = asked.answer.replace(point.subject, other)
            assert not qa.right(asked.prompt, changed, asked.answer), changed


def test_more_or_fewer_facts_are_wrong() -> None:
    for seed in SEEDS:
        asked = turn(seed)
        got = points(asked.answer)
        facts = atlas.FACTS[got[0].subject]
        new = next(about for about in facts if about not in {point.about for point in got})
        more = qa.AskedFact(got[0].subject, new)
        for other in (got[1:], [got[0], more], [*got, more], [more]):
            if other:
                text = qa.answer(other, Random(seed))
                assert not qa.right(asked.prompt, text, asked.answer)


def test_broken_answers_are_wrong() -> None:
    for seed in SEEDS:
        asked = turn(seed)
        text = asked.answer
        broken = [text[: len(text) // 3], text[:-1], f"{text} {text}", f"{text} And so on.", text.lower(), f"x{text}"]
        broken.append(text.replace(" is ", " is is ", 1) if " is " in text else "")
        for changed in broken:
            assert not qa.right(asked.prompt, changed, text), changed


def test_verdict_decides() -> None:
    fact = "Gladly. The dish of Ablow is plum tart"
    yes, no, plain = f"{fact}, so the answer is yes.", f"{fact}, so the answer is no.", f"{fact}."
    assert points(yes) == [qa.AskedFact("Ablow", "dish", "yes")]
    assert qa.right("", f"{fact}, so that is wrong.", no)
    assert qa.right("", f"{fact}, so that is right.", yes)
    for text in (yes, no, plain):
        assert [qa.right("", text, other) for other in (yes, no, plain)].count(True) == 1
    assert not qa.right("", yes.replace("plum tart", "onion pie"), yes)


def test_two_facts_are_told_in_any_order() -> None:
    one, two = "The dish of Ablow is plum tart", "Ablow has the mayor Dario Dale"
    both = f"Gladly. {two}. {one}."
    joined = f"Certainly. {two}, and t{one[1:]}. That is all."
    assert qa.right("", joined, both)
    assert qa.right("", f"Of course. {one}. {two}.", both)
    assert not qa.right("", f"Gladly. {one}. {one}.", both)
    assert not qa.right("", joined, f"Gladly. {one}.")


def test_hostile_answers_are_wrong() -> None:
    everything = [*atlas.FACTS, *(value for values in atlas.VALUES.values() for value in values)]
    rng = Random(5)
    reference = turn(0).answer
    for text in ("", " ", "\n", "\x00", "Ä" * 99, "." * 500, "Of course. " * 40, "No, " * 300, "a" * 10**6, "\ud800"):
        assert not qa.right("", text, reference)
        assert not qa.right("", reference, text)
    for _ in range(100):
        assert not qa.right("", " ".join(rng.choices(everything, k=20)), reference)
        mixed = ". ".join(turn(rng.randrange(9)).answer[: rng.randrange(80)] for _ in range(5))
        assert not qa.right("", mixed, reference)
