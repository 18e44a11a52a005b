"""The sentence of a step says what the record says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from decoding.model.table import TableSession
from decoding.types import Role, Step, Timing, Trace
from tests.toys import counted_text, engine
from viz import narration
from viz.run_state import RunState

from .records import METHODS, changed, record

TEXTS = {1: " the", 2: " quick", 3: " brown", 4: " fox", 5: " red", 6: "</s>"}


def step(**fields: Any) -> Step:
    """Guessed ' quick brown fox' after ' the'; the target wanted ' red'."""
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


NOTHING: dict[str, Any] = {
    "drafted": 0,
    "accepted": 0,
    "emitted": (5,),
    "tokens": (1,),
    "parents": (-1,),
    "roles": (Role.ROOT,),
    "sources": ("root",),
    "path": (0,),
}


def say(given: Step, method: str = "draft_model", **header: Any) -> str:
    fields: dict[str, Any] = {"prompt": (1,), "end_tokens": (6,), "max_new_tokens": 99, "sampling": {}, **header}
    trace = Trace(replace(record("draft_model").header, method=method, **fields), (), None, TEXTS)
    state = RunState.of(trace)
    state.add(step(index=0, start=1, emitted=(1,), accepted=0))
    state.add(given)
    return narration.say(state, 1)


def test_the_sentence_of_the_handbook() -> None:
    """The example that the page's description gives."""
    assert say(step()) == (
        "Step 1: guessed 3 tokens ' quick brown fox' by the drafter; the target agreed with 1, wanted ' red' instead "
        "of ' brown' (p 0.61 against 0.02). 2 tokens from one pass."
    )


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"emitted": (2, 3, 4, 1), "accepted": 3, "path": (0, 1, 2, 3)}, "agreed with all 3 and added ' the'."),
        ({"emitted": (5,), "accepted": 0, "path": (0,)}, "agreed with none, wanted ' red' instead of ' quick'"),
        ({"p": (), "top": ()}, "wanted ' red' instead of ' brown'. 2 tokens"),
        ({"emitted": (2, 6)}, "The end of text ends the run."),
        ({"emitted": (2,)}, "the target agreed with 1. 1 token from one pass. The run was stopped here."),
        ({"parents": (-1, 0, 1, 1)}, "guessed 3 tokens on 2 branches"),
        ({"parents": (-1, 0, 1, 1)}, "followed 1 token ' quick', wanted ' red' instead of ' brown' and 1 other"),
        (NOTHING, "no guess; the target"),
    ],
)
def test_what_became_of_the_guesses(fields: dict[str, Any], part: str) -> None:
    """Every outcome of a step has its words."""
    assert part in say(step(**fields))


@pytest.mark.parametrize(
    ("own", "rejected", "words"),
    [
        (0.344, 0.335, "p 0.344 against 0.335"),
        (0.3441, 0.3439, "p 0.3441 against 0.3439"),
        (0.001, 0.0004, "p 0.001 against 0.000"),
        (0.61, 0.02, "p 0.61 against 0.02"),
    ],
)
def test_close_probabilities_have_the_digits_that_decided(own: float, rejected: float, words: str) -> None:
    """Nobody reads that 0.34 was better than 0.34."""
    given = step(p=(None, 0.9, rejected, 0.001), top=(((2, 0.9),), ((5, own), (3, rejected)), (), ()))
    assert f"instead of ' brown' ({words})." in say(given)


@pytest.mark.parametrize(
    ("fields", "header", "words"),
    [
        ({"q": (None, 0.9, 0.4, 0.1)}, {}, " (p 0.02, q 0.40: accepted with probability 0.05)"),
        ({"q": (None, 0.9, 0.01, 0.1)}, {}, " (p 0.02, q 0.01: accepted with probability 1.00)"),
        ({"q": (None, None, None, None)}, {}, " (copied, so accepted with probability p 0.02)"),
        ({"p": ()}, {}, ""),
    ],
)
def test_a_sampled_token_was_drawn(fields: dict[str, Any], header: dict[str, Any], words: str) -> None:
    """The target wants nothing when it draws: the rejected guess had a chance of min(1, p/q)."""
    sentence = say(step(**fields), sampling={"temperature": 0.7}, **header)
    assert f"drew ' red' instead of ' brown'{words}. 2 tokens" in sentence


def test_typical_acceptance_agrees_with_nothing() -> None:
    """A guess that is likely enough is accepted whatever the target's own choice is."""
    sentence = say(step(), sampling={"temperature": 0.7}, lossless=False)
    assert "the target found 1 token ' quick' likely enough and drew ' red'. 2 tokens" in sentence


def test_the_last_token_asked_for() -> None:
    """The budget ends a run as the end of text does."""
    assert say(step(), max_new_tokens=3).endswith("The token limit is reached.")


@pytest.mark.parametrize(
    ("method", "panel", "part"),
    [
        ("jacobi", {}, "in its block;"),
        ("lookahead", {"guesses": [[2, 3, 4]], "phase": "steady"}, "from the pool's n-gram after ' the'"),
        ("lookahead", {"guesses": [[2], [3]], "phase": "steady"}, "from the pool's 2 n-grams after ' the'"),
        (
            "lookahead",
            {"phase": "steady", "rows": [], "pool": {"inserted": [[1, [2], "added"], [1, [3], "refreshed"]]}},
            "Harvested 2 n-grams, 1 of them new.",
        ),
        ("lookahead", {"phase": "fill", "rows": [[1], [2]]}, "The window grew to 3 rows."),
        ("prompt_lookup", {"ending": [1]}, ", token 1 of the draft model, after an earlier ' the'"),
        (
            "ngrammys",
            {"rows": [{"strategy": "context"}, {"strategy": "bigram"}]},
            "1 from the text and 1 from the model",
        ),
        ("medusa", {"heads": 3}, "by 3 heads"),
        (
            "kangaroo",
            {"exit_layer": 2, "confidence": [0.5], "stopped": "unsure"},
            "first 2 layers (stopped: 0.50 is under the limit 0.6)",
        ),
        (
            "ouroboros",
            {"passes": [1, 2], "suffixes": [], "inspired": [[1, [2], "added"]]},
            "2 drafter passes wrote 1 + 2 tokens",
        ),
        ("ouroboros", {"passes": [1, 1, 1]}, "wrote 1 + 1 + 1 tokens, so phrases took no part;"),
        ("ouroboros", {"passes": [1, 2]}, "wrote 1 + 2 tokens, and no phrase lengthened the draft;"),
        (
            "ouroboros",
            {"suffixes": [[1]], "refined": [[2]], "inspired": [[1, [2], "added"], [1, [3], "refreshed"]]},
            "The target inspired 1 phrase and refined 1",
        ),
        ("rest", {"span": 1, "ending": [1], "hits": 4}, "from the datastore, where ' the' occurs 4 times"),
        ("medusa", {"typical": {}}, "(1 of them typical, but not its first choice)"),
    ],
)
def test_where_guesses_came_from(method: str, panel: dict[str, Any], part: str) -> None:
    """Each method names its own source of guesses, and what it learned."""
    choices = (3, 5, 4, 1) if "typical" in panel else (2, 5, 4, 1)
    assert part in say(step(panel=panel, choices=choices), method)


@pytest.mark.parametrize(
    ("passes", "part"),
    [
        (
            [1, 1],
            "2 drafter passes wrote 1 + 1 tokens, so phrases took no part in these, and 1 from 1 phrase after them",
        ),
        ([2], "1 drafter pass wrote 2 tokens, 1 from 1 phrase after them"),
    ],
)
def test_phrases_that_only_follow_the_drafters_tokens_are_told_from_those_within(passes: list[int], part: str) -> None:
    """With passes of one token each, no phrase saved one, though the draft ends with phrases."""
    given = step(sources=("root", "draft:1", "draft:2", "pool:0,0"), panel={"passes": passes, "suffixes": [[4]]})
    assert part in say(given, "ouroboros")


@pytest.mark.parametrize(
    ("method", "panel", "params", "part"),
    [
        ("prompt_lookup", {}, {}, "no guess: the end of the text did not occur before; the target wrote ' red'."),
        (
            "prompt_lookup",
            {},
            {"tail": "full", "K": 4},
            "no earlier occurrence of the end of the text is followed by 4 tokens",
        ),
        ("prompt_lookup", {"n": 1, "ending": [1]}, {"stop_at_end": True}, "the copy begins with an end of text;"),
        ("rest", {"span": 0}, {}, "the end of the text is not in the datastore;"),
        ("rest", {"span": 2}, {}, "nothing follows the end of the text in the datastore;"),
        (
            "ngrammys",
            {"w": 4, "rows": [], "matches": 0},
            {"strategy": "context"},
            "the end of the text did not occur before;",
        ),
        ("ngrammys", {"w": 4, "rows": [], "matches": 2}, {"tail": "full"}, "is followed by 4 tokens;"),
        ("lookahead", {"phase": "fill"}, {}, "the window is not full yet;"),
        ("lookahead", {"phase": "steady"}, {}, "the pool holds no n-gram after ' the';"),
        ("kangaroo", {"stopped": "start"}, {}, "the prompt has to be read first;"),
        ("rest", {}, {}, "no guess; the target"),
    ],
)
def test_why_there_is_no_guess(method: str, panel: dict[str, Any], params: dict[str, Any], part: str) -> None:
    """An empty draft is a failed search only where something was searched, and says what was missing."""
    got = step(**NOTHING, panel=panel)
    assert part in say(got, method, params=params)
    asked = "no guess: only one more token is needed;" in say(got, method, params=params, max_new_tokens=2)
    assert asked == (method != "lookahead")
    assert "no guess; the target" in say(replace(got, tokens=(1, 2), parents=(-1, 0), sources=("root", "prompt:0"),
                                                 roles=(Role.ROOT, Role.EXPLORE)), method, params=params)  # fmt: skip
    bare: dict[str, Any] = dict.fromkeys(("tokens", "parents", "roles", "sources", "path", "choices", "p", "top"), ())
    assert "no guess; the target" in say(replace(got, **bare, panel={}), method, params=params)


def test_why_there_is_no_guess_in_runs() -> None:
    """The reasons are those of the methods: each run below has steps whose draft is empty for a reason of its own."""
    runs = [
        ("prompt_lookup", {"K": 6, "tail": "full"}, (), [1, 2, 3, 1, 2], "is followed by 6 tokens"),
        ("prompt_lookup", {"stop_at_end": True, "min_ngram": 1}, (3,), [1, 2, 3, 1, 2], "begins with an end of text"),
        ("prompt_lookup", {}, (), [1, 2, 3], "did not occur before"),
        (
            "ngrammys",
            {"w": 8, "strategy": "context", "tail": "full"},
            (),
            [1, 2, 3, 1, 2, 1],
            "is followed by 8 tokens",
        ),
        ("medusa", {}, (), [1, 2, 3], "the heads have no hidden state yet"),
    ]
    for method, params, ends, prompt, words in runs:
        made = engine(counted_text()).generate(prompt, method, params=params, end_tokens=ends, max_new_tokens=20)
        state = RunState.of(made.trace)
        assert f"{words}; the target" in narration.say(state, 0)
        last = state.steps[-1]
        if last.start == len(prompt) + 19:
            assert "no guess: only one more token is needed" in narration.say(state, last.index)


@pytest.mark.parametrize("chunk", [2, 3, 4, 11, 12, 64])
@pytest.mark.parametrize("method", ["autoregressive", "lookahead", "medusa"])
def test_the_prompt_is_read_in_chunks(monkeypatch: pytest.MonkeyPatch, method: str, chunk: int) -> None:
    """The first step says how much was read, and in how many passes; every pass is counted."""
    read, passes = TableSession.read, list[int]()
    monkeypatch.setattr(
        TableSession, "read", lambda self, *given, **more: passes.append(1) or read(self, *given, **more)
    )
    made = engine(counted_text()).generate([*range(12)], method, prefill_chunk=chunk, max_new_tokens=1)
    sentence = narration.say(RunState.of(made.trace), 0)
    assert f"Step 0: read 12 prompt tokens in {narration.count(-(-11 // chunk), 'chunk')}." in sentence
    assert f"1 token from {'one pass' if len(passes) == 1 else f'{len(passes)} passes'}." in sentence


def test_passes_that_are_not_recorded_are_not_named() -> None:
    """A large tree may not have fitted into the pass of the last chunk."""
    trace = record("lookahead")
    got = changed(trace, 0, fed=300)
    assert "1 token. " in narration.say(RunState.of(got), 0) and "pass" not in narration.say(RunState.of(got), 0)


@pytest.mark.parametrize("method", METHODS)
def test_a_hostile_panel_is_not_quoted(method: str) -> None:
    """What a file claims of heads, hits, layers and rows is said where it is a number, and never at length."""
    trace = record(method)
    names = {name for step in trace.steps for name in step.panel} | {
        "heads",
        "hits",
        "exit_layer",
        "ending",
        "inspired",
    }
    for junk in (None, True, "<b>" * 10_000, [[]], {"a": 1}, [10**40], -1, 1e300, [[1, [2], "added"]]):
        odd = [replace(got, panel=dict.fromkeys(names, junk)) for got in trace.steps]
        odd = [replace(got, sources=("prompt:\u202e" * 9,) * len(got.sources)) for got in odd]
        state = RunState.of(replace(trace, steps=tuple(odd)))
        sentences = [narration.say(state, k) for k in range(len(odd))]
        assert not any("<b>" in words or "\u202e" in words or len(words) > 700 for words in sentences)


def test_a_later_turn_reads_only_what_is_new() -> None:
    """A conversation keeps its cache, and the sentence says what that saves."""
    trace = record("lookahead")
    length = len(trace.header.prompt)
    got = changed(trace, 0, pending=2)
    assert f"read 3 new prompt tokens in 1 chunk; {length - 3} were cached" in narration.say(RunState.of(got), 0)


@pytest.mark.parametrize("method", METHODS)
def test_every_step_has_a_sentence_that_counts_right(method: str) -> None:
    """And a changed record changes it: the sentence is not made of thin air."""
    trace = record(method)
    state = RunState.of(trace)
    for k, got in enumerate(trace.steps):
        sentence = narration.say(state, k)
        assert f"{narration.count(len(got.emitted), 'token')} from one pass." in sentence
        if got.drafted:
            assert f"uessed {narration.count(got.drafted, 'token')}" in sentence
        other = changed(trace, k, drafted=got.drafted + 7) if got.drafted else changed(trace, k, emitted=(0, 0))
        assert narration.say(RunState.of(other), k) != sentence
