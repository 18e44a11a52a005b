"""The kind `translation`: both grammars read what they write, and the checker judges by meaning."""

from __future__ import annotations

from random import Random

import pytest

from decoding.training.language import translation, velan, velan_english
from decoding.training.language.translation import make, right
from decoding.training.language.velan import ADJECTIVES, NOUNS, SETTINGS, VERBS, Clause, Phrase, Voice

SEEDS = range(1200)
TABLES = (NOUNS, VERBS, ADJECTIVES, SETTINGS)
CATS = Phrase(NOUNS.index(next(word for word in NOUNS if "cat" in word.english)), None, True)
PROMPT = "Say this in Velan: The man finds a stone. The fox runs."
ANSWER = "gorda gromum tormis. reshu rastis."


def parts(seed: int) -> tuple[list[Clause], str, int]:
    """The clauses, the language and the layout of a question like those of `make`."""
    rng = Random(seed)
    return translation._clauses(rng), ("Velan", "English")[seed % 2], seed // 2 % 3


def answer_of(seed: int, voice: int, clauses: list[Clause] | None = None) -> str:
    own, to, layout = parts(seed)
    return translation._answer(own if clauses is None else clauses, to, layout, Random(voice))


def test_every_word_has_one_meaning() -> None:
    for language in (0, 1):
        words = [form for table in TABLES for word in table for form in word[language]]
        assert len(words) == len(set(words))
    velan_forms = (velan._NOUN_FORMS, velan._ADJECTIVE_FORMS, velan._VERB_FORMS, velan._SETTING_FORMS)
    stems = [sum(len(word.velan) for word in table) for table in (NOUNS, ADJECTIVES, VERBS, SETTINGS)]
    assert [len(forms) for forms in velan_forms] == [stems[0] * 4, stems[1] * 8, stems[2] * 3, stems[3]]
    forms = [form for table in velan_forms for form in table]
    particles = [velan._NOT, velan._TOPIC, *velan._COURTESY]
    assert len({*forms, *particles}) == len(forms) + len(particles)


def test_english_forms_are_apart() -> None:
    tables = (velan_english._BASES, velan_english._THIRDS, velan_english._PASTS_READ)
    verbs = [form for table in tables for form in table]
    assert len(set(verbs)) == len(verbs) == 3 * len(velan_english._PAST)
    assert len(velan_english._NOUN_FORMS) == 2 * len(velan_english._PLURAL)
    assert not set(velan_english._NOUN_FORMS) & set(velan_english._ADJECTIVE_FORMS)


@pytest.mark.parametrize("grammar", [velan, velan_english])
def test_a_grammar_reads_back_what_it_writes_and_nothing_shorter(grammar: object) -> None:
    for seed in SEEDS:
        for clause in parts(seed)[0]:
            text = grammar.write(clause, Voice(Random(seed)))  # type: ignore[attr-defined]
            assert grammar.read(text) == clause  # type: ignore[attr-defined]
            assert grammar.read(text + " ") is None  # type: ignore[attr-defined]
            assert grammar.read(text[:-1]) is None  # type: ignore[attr-defined]
            assert grammar.read(text.replace(" ", "  ", 1)) is None  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        "The cat finds a old stone.",
        "The cat finds an stone.",
        "The cats finds a stone.",
        "The cat find a stone.",
        "A cats ran.",
        "Some cat ran.",
        "The cat finds.",
        "The cat runs the stone.",
        "The cat not runs.",
        "The cat does not ran.",
        "The cat are going to run.",
        "the cat runs.",
        "At night the cat runs in town.",
        "gorda gromum tormis.",
        ".",
        "",
    ],
)
def test_wrong_english_is_not_read(text: str) -> None:
    assert velan_english.read(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "gorda grela rastis nel.",
        "gorda grelu rastis.",
        "gorda grelari rastis.",
        "gorda gromum rastis.",
        "gorda tormis.",
        "gorda reshu rastis.",
        "gromum tormis.",
        "ta gorda rastis.",
        "gorda gromum ta tormis.",
        "gorda ta ta rastis.",
        "rastis gorda.",
        "noshe gorda silve rastis.",
        "gorda rastis sen lio.",
        "Gorda rastis.",
        "sen.",
        ".",
        "",
    ],
)
def test_wrong_velan_is_not_read(text: str) -> None:
    assert velan.read(text) is None


def test_some_sentences_mean_what_they_should() -> None:
    cats = Clause(CATS, 0, velan.PAST, True, None, None)._replace(verb=velan.ACTING + 6)
    assert velan_english.read("Some cats did not dash.") == velan.read("mishuri ta nel zulen sen.") == cats
    stone = velan_english.read("At dawn, a large man is going to discover the rocks.")
    assert stone is not None
    assert (
        stone
        == velan.read("gromurim ta aurite gorda voma tormol.")
        == velan.read("aurite gorda grela gromurim tormol.")
    )


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


def test_another_meaning_is_wrong() -> None:
    rng = Random(5)
    for seed in SEEDS:
        clauses = parts(seed)[0]
        reference = answer_of(seed, seed)
        for other in (clauses[1:], clauses[:-1], [*clauses, clauses[-1]], clauses[::-1], parts(seed + 6)[0]):
            assert not right("", answer_of(seed, seed, other), reference)
        at = rng.randrange(len(clauses))
        for change in _changes(clauses[at]):
            assert not right("", answer_of(seed, seed, [*clauses[:at], change, *clauses[at + 1 :]]), reference)


def _changes(clause: Clause) -> list[Clause]:
    """The clause with each of its facts changed in turn."""
    subject = clause.subject
    changes = [
        clause._replace(tense=(clause.tense + 1) % 3),
        clause._replace(negative=not clause.negative),
        clause._replace(subject=subject._replace(plural=not subject.plural)),
        clause._replace(subject=subject._replace(noun=(subject.noun + 1) % len(NOUNS))),
        clause._replace(subject=subject._replace(adjective=0 if subject.adjective is None else None)),
        clause._replace(setting=0 if clause.setting is None else None),
    ]
    if clause.object is not None:
        changes.append(clause._replace(verb=(clause.verb + 1) % velan.ACTING))
        changes.append(clause._replace(object=clause.object._replace(plural=not clause.object.plural)))
        changes.append(clause._replace(subject=clause.object, object=subject))
    return [change for change in changes if change != clause]


def test_another_language_layout_cut_or_rubbish_is_wrong() -> None:
    for seed in SEEDS:
        turn = make(Random(seed)).turns[0]
        clauses, to, layout = parts(seed)
        reference = answer_of(seed, seed)
        assert not right("", translation._answer(clauses, translation._OTHER[to], layout, Random(seed)), reference)
        assert not right("", translation._answer(clauses, to, (layout + 1) % 3, Random(seed)), reference)
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
        "In English this is: " + ANSWER,
        "In Velan this is: In Velan this is: " + ANSWER,
        ANSWER.replace(". ", ".\n"),
        ANSWER + " Tell me if a word is unclear. Tell me if a word is unclear. Other words would do as well. no.",
        ANSWER * 100_000,
        "1. " * 100_000,
        ":" * 100_000,
        "gorda gromurim tormis. reshu rastis.",
        "gorda gromum tormis. reshu rasten.",
    ],
)
def test_hostile_and_wrong_answers(answer: str) -> None:
    assert not right(PROMPT, answer, ANSWER)


@pytest.mark.parametrize(
    "answer",
    [
        "gromum ta gorda tormis lio. reshu zulis sen.",
        "Gladly. My translation:\n" + ANSWER,
        "The Velan text is: " + ANSWER + " Other words would do as well.",
    ],
)
def test_other_wordings_by_hand(answer: str) -> None:
    assert right(PROMPT, answer, ANSWER)
    assert not right(PROMPT, answer, "no reference")
