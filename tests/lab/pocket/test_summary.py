"""Summaries: every wording of the five facts is right; another fact, a missing one or a side remark is not."""

from __future__ import annotations

import random
import re
from functools import cache

import pytest

from lab.pocket.language.phrases import write
from lab.pocket.language.sample import Turn
from lab.pocket.language.summary import expected, make, right
from lab.pocket.language.summary_phrases import DAYS, STORIES
from lab.pocket.language.words import PEOPLE

SEEDS = 300
_OWN = ("role", "why", "result")


@cache
def turns() -> tuple[Turn, ...]:
    return tuple(make(random.Random(seed)).turns[0] for seed in range(SEEDS))


def values(turn: Turn) -> dict[str, tuple[str, ...]]:
    wanted = expected(turn.prompt, turn.answer)
    assert wanted is not None
    return wanted[1]


def sentences(text: str) -> list[str]:
    return re.findall(r"[^.!?]+[.!?]", text)


def test_is_the_same_for_the_same_seed() -> None:
    assert make(random.Random(7)) == make(random.Random(7))
    assert make(random.Random(7)) != make(random.Random(8))
    assert make(random.Random(7)).kind == "summary"


def test_reports_are_plain_and_differ() -> None:
    assert len({turn.prompt for turn in turns()}) == SEEDS
    for turn in turns():
        assert re.fullmatch(r"[A-Za-z0-9 ,.\n]+", turn.prompt)
        assert re.fullmatch(r"[A-Z0-9][A-Za-z0-9 ,.;:]+\.", turn.answer)
        assert "  " not in turn.prompt + turn.answer
        report = max(turn.prompt.split("\n\n"), key=len)
        assert len(sentences(report)) in (7, 8)
        assert all(sentence.strip()[0].isupper() or sentence.strip()[0].isdigit() for sentence in sentences(report))


def test_every_fact_is_in_the_report_and_in_the_summary() -> None:
    seen = set()
    for turn in turns():
        facts = values(turn)
        seen.add(facts["role"])
        assert {"place", "day", "person", "n", "role", "things", "why", "result"} == facts.keys()
        for (fact,) in facts.values():
            assert re.search(rf"\b{fact}\b", turn.prompt) and re.search(rf"\b{fact}\b", turn.answer)
    assert seen == {(role,) for story in STORIES.values() for role in story.roles}


def test_accepts_what_it_makes() -> None:
    for turn in turns():
        assert right(turn.prompt, turn.answer, turn.answer), turn
        assert right(turn.prompt, f"\n{turn.answer} \n", turn.answer)


def test_accepts_every_paraphrase() -> None:
    rng = random.Random(5)
    for turn in turns():
        wanted = expected(turn.prompt, turn.answer)
        assert wanted is not None
        other = write(*wanted, rng)
        assert other != turn.answer
        assert right(turn.prompt, other, turn.answer), (turn, other)


def test_refuses_another_value() -> None:
    for turn in turns()[::4]:
        facts = values(turn)
        story = next(
            one for one in STORIES.values() if all(facts[slot][0] in getattr(one, slot + "s") for slot in _OWN)
        )
        tables = {"day": DAYS, "person": PEOPLE, "role": story.roles, "things": story.things}
        tables |= {"why": story.whys, "result": story.results, "n": tuple(str(n) for n in range(2, 100))}
        for slot, table in tables.items():
            (fact,) = facts[slot]
            other = table[(table.index(fact) + 1) % len(table)]
            wrong = re.sub(rf"\b{fact}\b", other, turn.answer)
            assert wrong != turn.answer
            assert not right(turn.prompt, wrong, turn.answer), (turn, wrong)
        for wrong in (turn.answer.replace(facts["place"][0], "Torafell"), turn.answer.replace(facts["n"][0], "1")):
            assert not right(turn.prompt, wrong, turn.answer)


def test_refuses_missing_doubled_and_added_sentences() -> None:
    for turn in turns()[::20]:
        parts = sentences(turn.answer)
        report = sentences(max(turn.prompt.split("\n\n"), key=len))
        wrongs = ["".join(parts[:at] + parts[at + 1 :]) for at in range(len(parts))]
        wrongs += ["".join((*parts[: at + 1], " " + parts[at].strip(), *parts[at + 1 :])) for at in range(len(parts))]
        wrongs += [f"{turn.answer} {sentence.strip()}" for sentence in report]
        wrongs += ["", turn.answer[:-1], turn.answer[:60], turn.answer + " ok", turn.answer.lower(), turn.prompt]
        for wrong in wrongs:
            assert not right(turn.prompt, wrong, turn.answer), (turn, wrong)


def test_refuses_the_summary_of_another_report() -> None:
    for turn, other in zip(turns(), turns()[1:], strict=False):
        assert not right(turn.prompt, other.answer, turn.answer)


def test_is_two_sentences_and_needs_a_request() -> None:
    for turn in turns():
        assert len(sentences(turn.answer)) == 2
        report = max(turn.prompt.split("\n\n"), key=len)
        assert not right(report, turn.answer, turn.answer)
        assert not right(turn.prompt, turn.answer.replace(". ", "; "), turn.answer)


@pytest.mark.parametrize("text", ["", "\0", "9" * 100_000, "In short, " * 20_000, "\ud800", "{n}", "é" * 99, "[(*"])
def test_hostile_texts_are_wrong_not_errors(text: str) -> None:
    turn = turns()[0]
    assert not right(turn.prompt, text, turn.answer)
    assert not right(text, turn.answer, turn.answer)
    assert not right(turn.prompt, turn.answer, text)
