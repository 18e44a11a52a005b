"""The kind `translation`: both languages read what they write, and the checker judges by meaning."""

from __future__ import annotations

from random import Random

import pytest

from lab.pocket.language import translation
from lab.pocket.language.translation import make, right
from lab.pocket.language.velan import (
    ACTING,
    ADJECTIVES,
    ENGLISH,
    NOUNS,
    PAST,
    SETTINGS,
    VELAN,
    VERBS,
    Action,
    Clause,
    Language,
    NounPhrase,
)

SEEDS = range(500)
PROMPT = "Say this in Velan: The sailor finds the stone. The cat runs every day."
ANSWER = "yolna gromum tormis. mishu rastis todele."


def parts(seed: int) -> tuple[list[Clause], str, bool]:
    """Return the clauses, the language and the layout of a question like those of `make`."""
    return translation._clauses(Random(seed)), ("Velan", "English")[seed % 2], seed // 2 % 2 > 0


def answer_of(seed: int, voice: int, clauses: list[Clause] | None = None) -> str:
    written, to, numbered = parts(seed)
    return translation._answer(written if clauses is None else clauses, to, numbered, Random(voice))


def test_every_word_has_one_meaning() -> None:
    tables = (NOUNS, VERBS, ADJECTIVES, SETTINGS)
    stems = [word.velan for table in tables for word in table]
    words = [form for table in tables for word in table for form in word.english]
    assert len(set(stems)) == len(stems) == 46
    assert len(set(words)) == len(words) == 64
    assert not set(stems) & set(words)


@pytest.mark.parametrize("language", [VELAN, ENGLISH])
def test_every_form_has_one_meaning(language: Language) -> None:
    for meanings, texts in zip(language._phrases, language._phrase_of, strict=True):
        assert len(texts) == sum(map(len, meanings.values())) >= len(meanings) == len(NOUNS) * 9 * 2
    assert len(language._action_of) == sum(map(len, language._actions.values()))
    assert len(language._setting_of) == sum(map(len, language._settings.values()))
    assert not set(language._setting_of) & set(language._phrase_of[0])


@pytest.mark.parametrize("language", [VELAN, ENGLISH])
def test_a_language_reads_back_what_it_writes_and_nothing_shorter(language: Language) -> None:
    for seed in SEEDS:
        for clause in parts(seed)[0]:
            text = language.write(clause, Random(seed))
            assert language.read(text) == clause
            assert 3 <= len(text.split()) <= 13
            for wrong in (text + " ", text[:-1], text.replace(" ", "  ", 1), text.swapcase(), text + "\n"):
                assert language.read(wrong) is None


@pytest.mark.parametrize(
    "text",
    [
        "The cat finds a stone.",
        "The cat finds an stone.",
        "The cats finds the stone.",
        "The cat find the stone.",
        "A cat ran.",
        "The cat finds.",
        "The cat runs the stone.",
        "The cat not runs.",
        "The cat does not ran.",
        "The cats does not run.",
        "The cat is going to run.",
        "the cat runs.",
        "At night, cat runs.",
        "At night,the cat runs.",
        "At Night, the cat runs.",
        "at night, the cat runs.",
        "At night, The cat runs.",
        "At night, the cat runs in town.",
        "yolna gromum tormis.",
        ".",
        "",
    ],
)
def test_wrong_english_is_not_read(text: str) -> None:
    assert ENGLISH.read(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "yolna grele rastis nel.",
        "yolna greleri rastis.",
        "yolna grelem rastis.",
        "yolna gromurim grelem tormis.",
        "yolna gromum rastis.",
        "yolna tormis.",
        "yolna mishu rastis.",
        "gromum tormis.",
        "gromum yolna tormis.",
        "rastis yolna.",
        "nel yolna rastis.",
        "noshe yolna rastis horte.",
        "yolna noshe rastis.",
        "yolna rastis sen sen.",
        "yolna rastis sen noshe.",
        "Yolna rastis.",
        "sen.",
        ".",
        "",
    ],
)
def test_wrong_velan_is_not_read(text: str) -> None:
    assert VELAN.read(text) is None


def test_some_sentences_mean_what_they_should() -> None:
    cats = NounPhrase(next(index for index, word in enumerate(NOUNS) if "cat" in word.english), None, True)
    slept = Clause(cats, Action(ACTING + 1, PAST, True), None, 0)
    assert ENGLISH.read("At dawn, the cats did not sleep.") == VELAN.read("mishuri nel somen aurite sen.") == slept
    stone = ENGLISH.read("In the city, the large sailor will discover the rocks.")
    assert stone is not None
    assert stone == VELAN.read("burge yolna grele gromurim tormol.") == VELAN.read("yolna grele gromurim tormol burge.")


def test_make_is_deterministic_short_and_varied() -> None:
    samples = [make(Random(seed)) for seed in SEEDS]
    assert samples == [make(Random(seed)) for seed in SEEDS]
    assert {sample.kind for sample in samples} == {"translation"}
    turns = [turn for sample in samples for turn in sample.turns]
    assert len({turn.prompt for turn in turns}) == len(turns) == len(SEEDS)
    assert all(turn.prompt.isascii() and turn.answer.isascii() for turn in turns)
    assert max(len((turn.prompt + " " + turn.answer).split()) for turn in turns) < 130
    assert not any("{" in turn.prompt or "  " in turn.prompt + turn.answer for turn in turns)


def test_the_reference_and_every_other_wording_are_right() -> None:
    for seed in SEEDS:
        turn = make(Random(seed)).turns[0]
        assert right(turn.prompt, turn.answer, turn.answer)
        assert right(turn.prompt, f"\n{turn.answer} ", turn.answer)
        assert right("", answer_of(seed, seed + 1), answer_of(seed, seed))


def test_another_meaning_is_wrong(everything: bool) -> None:
    rng = Random(5)
    for seed in SEEDS if everything else SEEDS[:100]:
        clauses = parts(seed)[0]
        reference = answer_of(seed, seed)
        for other in (clauses[1:], clauses[:-1], [*clauses, clauses[-1]], clauses[::-1], parts(seed + 4)[0]):
            assert not right("", answer_of(seed, seed, other), reference)
        at = rng.randrange(len(clauses))
        for change in _changes(clauses[at]):
            assert not right("", answer_of(seed, seed, [*clauses[:at], change, *clauses[at + 1 :]]), reference)


def _changes(clause: Clause) -> list[Clause]:
    """Return the clause with each of its facts changed in turn."""
    subject, action = clause.subject, clause.action
    changes = [
        clause._replace(action=action._replace(tense=(action.tense + 1) % 3)),
        clause._replace(action=action._replace(negative=not action.negative)),
        clause._replace(subject=subject._replace(plural=not subject.plural)),
        clause._replace(subject=subject._replace(noun=(subject.noun + 1) % len(NOUNS))),
        clause._replace(subject=subject._replace(adjective=0 if subject.adjective is None else None)),
        clause._replace(setting=0 if clause.setting is None else None),
    ]
    if clause.object is not None:
        changes.append(clause._replace(action=action._replace(verb=(action.verb + 1) % ACTING)))
        changes.append(clause._replace(object=clause.object._replace(plural=not clause.object.plural)))
        changes.append(clause._replace(subject=clause.object, object=subject))
    return [change for change in changes if change != clause]


def test_another_language_layout_cut_or_rubbish_is_wrong() -> None:
    for seed in SEEDS:
        turn = make(Random(seed)).turns[0]
        clauses, to, numbered = parts(seed)
        reference = answer_of(seed, seed)
        assert not right("", translation._answer(clauses, translation._OTHER[to], numbered, Random(seed)), reference)
        assert not right("", translation._answer(clauses, to, not numbered, Random(seed)), reference)
        for wrong in ("", turn.prompt, turn.answer[:-1], turn.answer + " yes", turn.answer * 2, "x " + turn.answer):
            assert not right(turn.prompt, wrong, turn.answer)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        " ",
        ":",
        ". ",
        "1. ",
        "\n\n",
        "\x00\ud800",
        "In Velan this is:",
        "In Velan this is:\n\n" + ANSWER,
        "In Velan this is: " + ANSWER,
        "In English this is:\n" + ANSWER,
        "In Velan this is:\nIn Velan this is:\n" + ANSWER,
        "In Velan this is:\n",
        "Sure. " + ANSWER,
        "Sure. Of course. In Velan this is:\n" + ANSWER,
        ANSWER.replace(". ", ".\n"),
        ANSWER + " I hope that helps.",
        ANSWER + "\nI hope that helps.\nTell me if a word is unclear.",
        "1. " + ANSWER,
        "1. yolna gromum tormis.\n1. mishu rastis todele.",
        "1. yolna gromum tormis.\n2. mishu rastis todele.",
        ANSWER * 100_000,
        "1. " * 100_000,
        ":" * 100_000,
        "yolna gromurim tormis. mishu rastis todele.",
        "yolna gromum tormis. mishu rasten todele.",
    ],
)
def test_hostile_and_wrong_answers(answer: str) -> None:
    assert not right(PROMPT, answer, ANSWER)


@pytest.mark.parametrize(
    "answer",
    [
        "yolna gromum tormis sen. todele mishu rastis sen.",
        "Sure. My translation:\n" + ANSWER,
        "Here is the Velan text:\n" + ANSWER + "\nOther words would do as well.",
    ],
)
def test_other_wordings_by_hand(answer: str) -> None:
    assert right(PROMPT, answer, ANSWER)
    assert not right(PROMPT, answer, "no reference")
