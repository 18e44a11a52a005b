"""The sentence of a step says what the record says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from decoding.types import Role, Step, Timing, Trace
from viz import narration
from viz.story import Story

from .records import METHODS, changed, record

TEXTS = {1: " the", 2: " quick", 3: " brown", 4: " fox", 5: " red", 6: "</s>"}


def step(**fields: Any) -> Step:
    """Guessed ' quick brown fox' behind ' the'; the target wanted ' red'."""
    chain: dict[str, Any] = {
        "index": 1,
        "start": 2,
        "pending": 0,
        "emitted": (2, 5),
        "accepted": 1,
        "drafted": 3,
        "fed": 4,
        "timing": Timing(),
        "tokens": (1, 2, 3, 4),
        "parents": (-1, 0, 1, 2),
        "roles": (Role.ROOT, Role.VERIFY, Role.VERIFY, Role.VERIFY),
        "sources": ("root", "draft:1", "draft:2", "draft:3"),
        "path": (0, 1),
        "choices": (2, 5, 4, 1),
        "p": (None, 0.9, 0.02, 0.001),
        "top": (((2, 0.9),), ((5, 0.61), (3, 0.02)), (), ()),
    }
    return Step(**{**chain, **fields})


def say(told: Step, method: str = "draft_model", **header: Any) -> str:
    known: dict[str, Any] = {"prompt": (1,), "end_tokens": (6,), "max_new_tokens": 99, "sampling": {}, **header}
    trace = Trace(replace(record("draft_model").header, method=method, **known), (), None, TEXTS)
    story = Story.of(trace)
    story.add(step(index=0, start=1, emitted=(1,), accepted=0))
    story.add(told)
    return narration.say(story, 1)


def test_the_sentence_of_the_handbook() -> None:
    """The example that the page's description gives."""
    assert say(step()) == (
        "Step 1: guessed 3 tokens ' quick brown fox' by the drafter; the target agreed with 1, wanted ' red' instead "
        "of ' brown' (p 0.61 against 0.02). 2 tokens for one pass."
    )


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"emitted": (2, 3, 4, 1), "accepted": 3, "path": (0, 1, 2, 3)}, "agreed with all 3 and added ' the'."),
        ({"emitted": (5,), "accepted": 0, "path": (0,)}, "agreed with none, wanted ' red' instead of ' quick'"),
        ({"p": (), "top": ()}, "wanted ' red' instead of ' brown'. 2 tokens"),
        ({"emitted": (2, 6)}, "The end of text ends the run."),
        ({"emitted": (2,)}, "the target agreed with 1. 1 token for one pass. The run was cut here."),
        ({"parents": (-1, 0, 1, 1)}, "guessed 3 tokens on 2 branches"),
        ({"parents": (-1, 0, 1, 1)}, "followed 1 token ' quick', wanted ' red' instead of ' brown' and 1 other"),
        ({"drafted": 0, "tokens": (1,), "parents": (-1,), "roles": (Role.ROOT,), "path": (0,)}, "no guess; the target"),
    ],
)
def test_what_became_of_the_guesses(fields: dict[str, Any], part: str) -> None:
    """Every outcome of a step has its words."""
    assert part in say(step(**fields))


def test_a_sampled_token_was_drawn() -> None:
    """The target wants nothing when it draws."""
    assert "drew ' red' instead" in say(step(), sampling={"temperature": 0.7})


def test_the_last_token_asked_for() -> None:
    """The budget ends a run as the end of text does."""
    assert say(step(), max_new_tokens=3).endswith("That is the last token asked for.")


@pytest.mark.parametrize(
    ("method", "panel", "part"),
    [
        ("jacobi", {}, "in its block;"),
        ("lookahead", {"guesses": [[2, 3, 4]], "phase": "steady"}, "from the pool's n-gram behind ' the'"),
        ("lookahead", {"guesses": [[2], [3]], "phase": "steady"}, "from the pool's 2 n-grams behind ' the'"),
        (
            "lookahead",
            {"phase": "steady", "rows": [], "pool": {"inserted": [[1, [2], "added"], [1, [3], "refreshed"]]}},
            "Harvested 2 n-grams, 1 of them new.",
        ),
        ("lookahead", {"phase": "fill", "rows": [[1], [2]]}, "The window grew to 3 rows."),
        ("prompt_lookup", {"ending": [1]}, ", token 1 of the draft model, behind an earlier ' the'"),
        (
            "ngrammys",
            {"rows": [{"strategy": "context"}, {"strategy": "bigram"}]},
            "1 from the text and 1 from the model",
        ),
        ("medusa", {"heads": 3}, "by 3 heads"),
        (
            "kangaroo",
            {"exit_layer": 2, "confidence": [0.5], "stopped": "unsure"},
            "first 2 layers, then was unsure (0.50)",
        ),
        (
            "ouroboros",
            {"passes": [1, 2], "suffixes": [], "inspired": [[1, [2], "added"]]},
            "3 by the drafter in 2 passes",
        ),
        (
            "ouroboros",
            {"suffixes": [[1]], "refined": [[2]], "inspired": [0]},
            "The target inspired 1 phrase and refined 1",
        ),
        ("rest", {"span": 1, "ending": [1], "hits": 4}, "from the datastore, where ' the' stands 4 times"),
        ("medusa", {"typical": {}}, "(1 of them typical enough without being its first choice)"),
    ],
)
def test_where_guesses_came_from(method: str, panel: dict[str, Any], part: str) -> None:
    """Each method names its own source of guesses, and what it learned."""
    choices = (3, 5, 4, 1) if "typical" in panel else (2, 5, 4, 1)
    assert part in say(step(panel=panel, choices=choices), method)


def test_the_prompt_is_read_in_chunks() -> None:
    """The first step says how much was read."""
    trace = record("lookahead")
    told = replace(trace, header=replace(trace.header, prefill_chunk=3))
    length = len(trace.header.prompt)
    assert f"Step 0: read {length} prompt tokens in {-(-(length - 1) // 3)} chunks." in narration.say(Story.of(told), 0)


def test_a_later_turn_reads_only_what_is_new() -> None:
    """A conversation keeps its cache, and the sentence says what that saves."""
    trace = record("lookahead")
    length = len(trace.header.prompt)
    told = changed(trace, 0, pending=2)
    assert f"read 3 new prompt tokens in 1 chunk; {length - 3} were kept" in narration.say(Story.of(told), 0)


@pytest.mark.parametrize("method", METHODS)
def test_every_step_has_a_sentence_that_counts_right(method: str) -> None:
    """And a changed record changes it: the sentence is not made of thin air."""
    trace = record(method)
    story = Story.of(trace)
    for k, told in enumerate(trace.steps):
        sentence = narration.say(story, k)
        assert f"{narration.count(len(told.emitted), 'token')} for one pass." in sentence
        if told.drafted:
            assert f"uessed {narration.count(told.drafted, 'token')}" in sentence
        other = changed(trace, k, drafted=told.drafted + 7) if told.drafted else changed(trace, k, emitted=(0, 0))
        assert narration.say(Story.of(other), k) != sentence
