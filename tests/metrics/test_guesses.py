"""Pairs, hits by rank, suggested trees and sources, counted by hand."""

from __future__ import annotations

import pytest

from analysis.metrics import measure
from analysis.metrics.source_kinds import WORDS
from decoding.parts.medusa_tree import given
from viz.methods import SCREENS

from .tables import guess, root, run, selection, step


def said(at: int, token: int, wanted: int, **more: object) -> list[dict]:
    texts = {1: " red", 2: " blue", 3: "<b>", 4: None}
    words = {"token": token, "wanted": wanted, "text": texts[token], "wanted_text": texts[wanted]}
    return [root(at), guess(1, 0, 1, at=at, **words, **more)]


def test_confusion_counts_judged_rejected_guesses() -> None:
    """Red for blue twice, <b> for red once. An accepted guess and one that nobody judged say nothing."""
    nodes = [
        *said(1, 1, 2),
        *said(2, 1, 2),
        *said(3, 3, 1),
        *said(4, 1, 1, accepted=True),
        *said(5, 3, 4, judged=False),
    ]
    confusion = measure("confusion", selection(steps=[step(n, int(n == 4), 1) for n in range(1, 6)], nodes=nodes))
    third = pytest.approx(1 / 3)
    assert confusion["rows"] == [[" red", " blue", 2, pytest.approx(2 / 3), 1, 2], ["<b>", " red", 1, third, 3, 1]]
    assert ("nodes", "wanted", "=", 2) in confusion["where"][0] and "At 3 positions no guess" in confusion["sentence"]


def test_confusion_counts_a_position_once_and_only_where_all_guesses_fell() -> None:
    """A tree's second guess was right in step 1: the first one was no loss. In step 2 both fell, which is one."""
    second = {"sibling": 1, "token": 3, "text": "<b>", "wanted_text": " blue"}
    nodes = [
        *said(1, 1, 2),
        guess(2, 0, 1, at=1, wanted=2, accepted=True, **second | {"token": 2, "text": " blue"}),
        *(*said(2, 1, 2), guess(2, 0, 1, at=2, wanted=2, **second)),
    ]
    record = selection(steps=[step(1, 1, 2), step(2, 0, 2)], nodes=nodes)
    assert [row[:3] for row in measure("confusion", record)["rows"]] == [[" red", " blue", 1]]


def test_every_step_ended_for_one_reason() -> None:
    """The tree of the run has two guesses for a position at most; each step ends at one."""
    known = {"confidence": 0.5}
    nodes = [
        *(root(1), guess(1, 0, 1, at=1, rank=None, draftable=False, **known)),
        *(root(2), guess(1, 0, 1, at=2, rank=4, draftable=True, **known)),
        *(root(3), guess(1, 0, 1, at=3, rank=1, **known)),
        *(root(4), guess(1, 0, 1, at=4), guess(2, 0, 1, at=4, sibling=1)),
        *(root(5), guess(1, 0, 1, at=5, accepted=True, **known)),
        *(root(6), guess(1, 0, 1, at=6, accepted=True, **known)),  # cut by the end of the text
        *(root(7), guess(1, 0, 1, at=7, rank=None, **known)),  # not among the listed ones
    ]
    steps = [step(n, int(n in (5, 6)), 1, written=1) if n == 6 else step(n, int(n == 5), 1) for n in range(1, 8)]
    found = measure("lost_because", selection(steps=steps, nodes=nodes))
    counts = {row[0]: row[1] for row in found["rows"]}
    assert [*counts.values()] == [1, 1, 2, 1, 1] and sum(row[2] for row in found["rows"]) == pytest.approx(1.0)
    assert [*counts] == [
        *("not in the vocabulary", "cut by the tree", "ranked lower", "rank not recorded", "draft ended")
    ]
    assert found["sentence"].startswith("The most frequent known end of a step is 'ranked lower': 33% of 6 steps")
    assert found["sentence"].endswith("In 17%, the rank of the target's choice was not recorded.")


def test_a_rank_that_was_not_recorded_is_no_end_of_a_step() -> None:
    """Medusa's heads rank no other choice than their guesses."""
    nodes = [
        *(root(1), guess(1, 0, 1, at=1)),
        *(root(2), guess(1, 0, 1, at=2)),
        *(root(3), guess(1, 0, 1, at=3, accepted=True)),
    ]
    steps = [step(1, 0, 1), step(2, 0, 1), step(3, 1, 1)]
    sentence = measure("lost_because", selection(steps=steps, nodes=nodes))["sentence"]
    assert sentence.startswith("The most frequent known end of a step is 'draft ended': 33% of 3 steps")
    unknown = measure("lost_because", selection(steps=steps[:2], nodes=nodes[:4]))["sentence"]
    assert unknown.startswith("The rank of the target's choice was not recorded in any of 2 steps")


def test_a_sampled_guess_was_drawn_and_not_ranked() -> None:
    runs = [run(sampling='{"temperature": 1.0}')]
    nodes = [root(1), guess(1, 0, 1, at=1, rank=0, q=0.2, confidence=0.2)]
    found = measure("lost_because", selection(runs, [step(1, 0, 1)], nodes))
    assert found["rows"] == [["drawn otherwise", 1, 1.0]]


def test_texts_are_those_of_the_selection() -> None:
    """The rows of a part are not those of the whole."""
    nodes = [*said(1, 1, 2), *said(2, 3, 1), *said(3, 3, 4)]
    whole = selection(steps=[step(n, 0, 1) for n in range(1, 4)], nodes=nodes)
    part = whole.masked(whole.steps.maybe("step") > 1)
    assert [row[:3] for row in measure("confusion", part)["rows"]] == [["<b>", " red", 1], ["<b>", None, 1]]


def test_hits_by_rank() -> None:
    """Depth 1: the first guess right in step 1, the second in step 2. Depth 2: judged once below each."""
    nodes = [
        *(root(1), guess(1, 0, 1, accepted=True), guess(2, 0, 1, sibling=1), guess(3, 1, 2, accepted=True)),
        *(root(2), guess(1, 0, 1, at=2), guess(2, 0, 1, at=2, sibling=1, accepted=True), guess(3, 2, 2, at=2)),
    ]
    hits = measure("hit_ranks", selection(steps=[step(1, 2, 3), step(2, 1, 3)], nodes=nodes))
    assert [row[:5] for row in hits["rows"]] == [[1, 0, 2, 1, 0.5], [1, 1, 2, 1, 0.5], [2, 0, 2, 1, 0.5]]
    assert "33% of the accepted guesses were not the first ones" in hits["sentence"]


def ranked(ranks: list[int | None]) -> list[dict]:
    return [
        row
        for at, rank in enumerate(ranks)
        for row in (root(at), guess(1, 0, 1, at=at, rank=rank, confidence=0.5, accepted=rank == 0))
    ]


def test_the_tree_that_ranks_suggest() -> None:
    """First in 10 of 20 places, second in 6, not listed in 4: one guess gains 0.5, two gain 0.8."""
    ranks: list[int | None] = [0] * 10 + [1] * 6 + [None] * 4
    tree = measure(
        "suggested_tree", selection(steps=[step(n, int(ranks[n] == 0), 1) for n in range(20)], nodes=ranked(ranks))
    )
    assert tree["rows"] == [[1, 1.5, 0.5, "0"], [2, pytest.approx(1.8), pytest.approx(0.4), "0;1"]]
    assert tree["value"] == 1.5  # with as many guesses as now
    assert given(tree["rows"][1][3]).paths == [(0,), (1,)]


def test_drawn_guesses_are_not_judged_by_their_ranks() -> None:
    """Drawn, a guess of any rank may be accepted: all 20 were, though ten were not what the target wanted most."""
    nodes = [row | ({"accepted": True} if row["node"] else {}) for row in ranked([0, 1] * 10)]
    drawn = [run(sampling='{"temperature": 1.0}')]
    tree = measure("suggested_tree", selection(drawn, [step(n, 1, 1) for n in range(20)], nodes))
    assert tree["rows"] == [[1, 2.0, 1.0, "0"]]


def test_without_ranks_the_siblings_decide() -> None:
    """The second guess is right in 12 of 20 places, the first in 4; below the root nothing is known."""
    nodes = [
        row
        for at in range(20)
        for row in (
            root(at),
            guess(1, 0, 1, at=at, accepted=at < 4),
            guess(2, 0, 1, at=at, sibling=1, accepted=4 <= at < 16),
        )
    ]
    tree = measure("suggested_tree", selection(steps=[step(at, int(at < 16), 2) for at in range(20)], nodes=nodes))
    assert [row[0] for row in tree["rows"]] == [1, 2]
    assert [row[3] for row in tree["rows"]] == ["1", "1;0"]
    assert tree["rows"][1][1] == pytest.approx(1 + 0.6 + 0.2)


def test_too_few_places_grow_no_tree() -> None:
    tree = measure("suggested_tree", selection(steps=[step(0, 1, 1)], nodes=ranked([0])))
    assert tree["reason"] and "too few" in tree["reason"]


def test_sources() -> None:
    """A window cell is no guess; a guess below a rejected one was proposed and not judged."""
    nodes = [
        root(1),
        guess(1, 0, 1, source="pool", accepted=True),
        guess(2, 1, 2, source="pool"),
        guess(3, 2, 3, source="pool", judged=False),
        guess(4, 0, 1, source="prompt", sibling=1),
        {**guess(5, 0, 1, source="window", judged=False), "role": "explore"},
    ]
    sources = measure("by_source", selection(steps=[step(1, 1, 4)], nodes=nodes))
    assert [row[:5] for row in sources["rows"]] == [
        ["pool of n-grams", 3, 2, 1, 0.5],
        ["prompt", 1, 1, 0, 0.0],
    ]
    assert sources["sentence"] == "1 of 1 accepted guesses came from the pool of n-grams, which proposed 3."
    assert sources["where"][0][0] == ("nodes", "source", "=", "pool")  # as the record calls it


def test_every_kind_of_source_has_words_of_its_own() -> None:
    """A new method's guesses would be listed under an internal name, or two kinds under the same words."""
    kinds = {kind for screen in SCREENS.values() for kind in screen.source_words} - {"root"}
    assert kinds == set(WORDS) and len(set(WORDS.values())) == len(WORDS)


def test_a_source_of_another_engine_keeps_its_name() -> None:
    nodes = [root(1), guess(1, 0, 1, source="mtp", accepted=True)]
    sources = measure("by_source", selection(steps=[step(1, 1, 1)], nodes=nodes))
    assert sources["rows"][0][0] == "mtp" and "came from 'mtp', which" in sources["sentence"]
