"""Counters, the lossless check and the text: figures that must be the record's own numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from decoding.trace import metrics
from decoding.types import Role, Step, Timing
from tests.toys import counted_text, engine
from viz.fates import emitted_fates, node_fates
from viz.methods import screen_of
from viz.palette import Fate
from viz.run_state import RunState
from viz.stream import encode
from viz.stream.play import Play
from viz.views import check, counters, text

from .records import METHODS, changed, record, timed

EVERY = pytest.mark.parametrize("method", METHODS)


@EVERY
def test_counters_are_the_engines_metrics(method: str) -> None:
    """At the last step they equal the run's summary, and the paper's rates."""
    trace = timed(record(method))
    numbers, summary, steps = counters.numbers(RunState.of(trace), len(trace.steps) - 1), trace.summary, trace.steps
    assert summary is not None
    for name in ("tokens_per_second", "mean_acceptance_length", "draft_acceptance_rate", "fed_per_token", "new_tokens"):
        assert numbers[name] == pytest.approx(getattr(summary, name))
    assert tuple(numbers["histogram"]) == summary.acceptance_histogram
    assert tuple(numbers["survival"]) == metrics.survival(summary.acceptance_histogram)
    assert numbers["ctar"] == [metrics.consistent_acceptance(metrics.written(steps), w) for w in counters.CTAR]
    assert numbers["prefill_ms"] == pytest.approx(summary.prefill_seconds * 1000)
    total = metrics.add(step.timing for step in steps[1:])
    shares = [total.draft_ms, total.forward_ms, total.accept_ms, total.commit_ms, total.other_ms]
    assert numbers["time"] == pytest.approx([share / total.total_ms for share in shares])
    assert numbers["step_ms"] == pytest.approx(total.total_ms / (len(steps) - 1))


@EVERY
def test_counters_of_a_step_know_no_later_one(method: str) -> None:
    """The numbers under the scrubber are those of the run so far."""
    trace = timed(record(method))
    state = RunState.of(trace)
    keys = [row["key"] for row in counters.base(state)["rows"]]
    for k in range(len(trace.steps)):
        values = dict(zip(keys, counters.frame(state, k)["values"], strict=True))
        summary = metrics.summarise(trace.steps[: k + 1], "length", "")
        assert values["mean_acceptance_length"] == pytest.approx(summary.mean_acceptance_length, rel=1e-4)
        assert k == 0 or values["tokens_per_second"] == pytest.approx(summary.tokens_per_second, rel=1e-4)
        assert tuple(values.get("histogram", summary.acceptance_histogram)) == summary.acceptance_histogram
        assert values["new_tokens"] == sum(len(step.emitted) for step in trace.steps[: k + 1])
        assert counters.frame(RunState.of(trace), k) == counters.frame(state, k)  # asked for in any order
    last = len(trace.steps) - 1
    more = changed(trace, last, fed=trace.steps[last].fed + 1000)
    assert counters.frame(RunState.of(more), last) != counters.frame(state, last)
    assert last == 0 or counters.frame(RunState.of(more), 0) == counters.frame(state, 0)


@EVERY
def test_every_counter_says_how_it_is_made(method: str) -> None:
    """A number without a formula is a claim."""
    rows = counters.rows(record(method).header)
    assert all(row.formula.endswith(".") and row.label for row in rows)
    assert len({row.key for row in rows}) == len(rows)
    screen = screen_of(record(method).header)
    assert ("hit_rank" in {row.key for row in rows}) == (screen.guesses and not screen.chain)


def test_values_are_written_with_their_units() -> None:
    """Notebooks show the numbers as the page does."""
    rate = counters.CounterRow("rate", "Rate", "A share.", " %", 1, 100.0)
    assert counters.value_with_unit(rate, 0.5) == "50.0 %"
    assert counters.value_with_unit(replace(rate, first=1), [0.5, 0.25]) == "1: 50.0 %, 2: 25.0 %"
    assert counters.value_with_unit(replace(rate, parts=("a", "b")), [0.5, 0.25]) == "a: 50.0 %, b: 25.0 %"
    assert (counters.value_with_unit(rate, []), counters.value_with_unit(rate, None)) == ("none yet", "not known")


A, B, C, D, E = range(1, 6)
ROWS = Step(  # side by side " a b c" and " a d e"; the target writes a d e
    index=1,
    start=4,
    pending=0,
    emitted=(A, D, E, B),
    accepted=3,
    drafted=6,
    fed=7,
    timing=Timing(),
    tokens=(9, A, B, C, A, D, E),
    parents=(-1, 0, 1, 2, 0, 4, 5),
    roles=(Role.ROOT, *(Role.VERIFY,) * 6),
    path=(0, 4, 5, 6),
)


def test_hit_ranks_count_different_guesses() -> None:
    """Rows of equal beginnings guess for one place: a, guessed twice, is the first, and d follows the other b."""
    assert counters.accepted_ranks(ROWS) == [1, 2, 1]
    merged = replace(ROWS, tokens=(9, A, B, C, D, E), parents=(-1, 0, 1, 2, 1, 4), roles=ROWS.roles[:6])
    assert counters.accepted_ranks(replace(merged, path=(0, 1, 4, 5))) == [1, 2, 1]
    explored = replace(ROWS, roles=(Role.ROOT, *(Role.EXPLORE,) * 3, *(Role.VERIFY,) * 3))
    assert counters.accepted_ranks(explored) == [1, 1, 1]
    assert counters.accepted_ranks(replace(ROWS, path=())) == []


def test_hit_ranks_know_no_layout() -> None:
    """Lookahead's rows side by side and merged into a tree hold the same guesses, so what was right had one rank."""
    prompt = [1, 2, 3, 4, 5, 1, 2, 3, 4, 2, 3]
    ranks = []
    for layout in ("disjoint", "merged"):
        params = {"W": 5, "N": 4, "G": 5, "layout": layout}
        steps = engine(counted_text()).generate(prompt, "lookahead", params=params, max_new_tokens=40).trace.steps
        ranks.append([counters.accepted_ranks(step) for step in steps])
    assert ranks[0] == ranks[1] and max(max(step, default=0) for step in ranks[0]) > 1


CARD = replace(record("jacobi").header.model, weight_bytes=1000, pass_bytes=900, token_bytes=10)


def sized(**fields: Any) -> RunState:
    """Return four prompt tokens, then steps of 3 rows and of 1 after 4 and 6 stored tokens; 5 ms of reading in all."""
    facts = {"model": CARD, "bandwidth": 1e6, "prompt": (1, 2, 3, 4), "window": None, "slots": 0}
    steps = [
        Step(0, 4, 3, (5,), 0, 0, 4, Timing(forward_ms=9.0, total_ms=9.0)),
        Step(1, 5, 0, (6, 7), 1, 2, 3, Timing(forward_ms=2.0, total_ms=4.0)),
        Step(2, 7, 0, (8,), 0, 0, 1, Timing(forward_ms=3.0, total_ms=4.0)),
    ]
    return RunState(replace(record("jacobi").header, **facts | fields), {}, steps)


@pytest.mark.parametrize(
    ("fields", "held"),
    [
        ({}, 1000 + 7 * 10),
        ({"window": 3, "slots": 5}, 1000 + 5 * 10),
        ({"draft": replace(CARD, weight_bytes=100, token_bytes=1)}, 1000 + 7 * 10 + 100 + 7),
        ({"draft": replace(CARD, token_bytes=None)}, None),
        ({"model": record("jacobi").header.model}, None),
    ],
)
def test_memory_is_counted_in_bytes(fields: Any, held: int | None) -> None:
    """Weights, and keys and values that the cache held; what was not measured is not known."""
    state = sized(**fields)
    assert counters.numbers(state, 2)["memory"] == held
    assert json.loads(Play(state.header).end(None))["memory"] is None  # before the first step
    rows = {row.key: row for row in counters.rows(state.header)}
    assert counters.value_with_unit(rows["memory"], held) == ("not known" if held is None else "0.0 MB")


@pytest.mark.parametrize(
    ("fields", "after", "words"),
    [
        ({}, 1.1e6, "35 to 39 %"),  # (2 * 900 + (7 + 7) * 10) / 0.005 bytes per second
        ({}, 1e6, "39 %"),
        ({"window": 3, "slots": 5}, 1e6, "38 %"),
        ({}, 1.2e6, "Not given: the machine read 0 and 0 GB/s before and after the run."),
        ({"bandwidth": 3.4e5}, 3.7e5, "Not given: the run read faster than the measurements say the machine can."),
        ({"bandwidth": 1e-300}, 1e-300, "Not given: the run read faster than the measurements say the machine can."),
        ({"cache": 450}, 1e6, "Not given: the processor's cache may hold the weights."),
        ({"cache": 449}, 1e6, "39 %"),
        ({}, None, "Not known: it was not measured both before and after the run."),
        ({"bandwidth": None}, None, None),
        ({"method": "kangaroo"}, 1e6, "Not known: this method runs layers of the model while it drafts."),
        ({"model": replace(CARD, pass_bytes=None)}, 1e6, None),
        ({"model": record("jacobi").header.model}, 1e6, None),
    ],
)
def test_a_share_of_the_bandwidth_is_given_only_where_it_can_be_true(
    fields: Any, after: float | None, words: str | None
) -> None:
    """Shares of 159 to 305% were shown: no measurement that is too low may be cut down to 100%, it has no share."""
    state = sized(**fields)
    summary = replace(metrics.summarise(state.steps, "length", ""), bandwidth=after)
    assert counters.bandwidth(state, summary) == words
    assert counters.bandwidth(RunState(state.header, {}, state.steps[:1]), summary) is None
    assert counters.numbers(state, 2)["bandwidth"] is None  # while it goes on nothing was measured after it


def test_memory_grows_to_the_most_that_the_cache_held() -> None:
    """Guesses that were rejected took room as well, and a later, smaller step gives none back."""
    state = sized()
    assert [counters.numbers(state, k)["memory"] for k in range(3)] == [1040, 1070, 1070]


RESULT: dict[str, Any] = {"checked": 128, "exact": 128, "near_ties": 0, "violations": 0, "noise": 1e-4, "places": ()}
PLACES = (
    {"position": 7, "token": 1, "choice": 2, "margin": 2e-5},
    {"position": 9, "token": 1, "choice": 2, "margin": 1e-5},
)


@pytest.mark.parametrize(
    ("changes", "tone", "sentence"),
    [
        ({}, "exact", "128 of 128 tokens are the target's own choice."),
        (
            {"exact": 126, "near_ties": 2, "places": PLACES},
            "near",
            "128 of 128 tokens are the target's own choice, 2 at near-ties "
            "(largest margin 2e-05, rounding noise 0.0001).",
        ),
        (
            {"exact": 127, "violations": 1, "places": ({**PLACES[0], "margin": 3.5},)},
            "broken",
            "1 of 128 tokens are not the target's own choice, by a margin of up to 3.5: this must not happen.",
        ),
    ],
)
def test_the_check_says_its_outcome(changes: dict[str, Any], tone: str, sentence: str) -> None:
    """What differs is never hidden, and a near-tie comes with its margin."""
    got = check.outcome(RESULT | changes, replace(record("jacobi").header, sampling={"temperature": 0.0}))
    assert (got["tone"], got["say"]) == (tone, sentence)
    assert got["places"] == list((RESULT | changes)["places"])


def test_a_run_that_is_not_lossless_is_grey() -> None:
    """Typical acceptance never claims more than it does."""
    header = replace(record("medusa").header, lossless=False, sampling={})
    result = RESULT | {"exact": 100, "violations": 28}
    assert check.outcome(result, header)["tone"] == "grey"
    assert (
        check.outcome_in_words(result, header)
        == "Not lossless by design: 100 of 128 tokens are the target's own choice."
    )
    assert check.base(RunState(header))["tone"] == "grey"
    assert check.base(RunState(record("medusa").header))["say"] == "Not checked yet."


def test_a_sampled_text_is_possible_and_not_the_only_one() -> None:
    """Sampling has no single right token."""
    header = replace(record("jacobi").header, sampling={"temperature": 1.0})
    assert check.outcome_in_words(RESULT, header) == "128 of 128 tokens are possible under the target's distribution."


@EVERY
def test_the_text_names_the_node_of_every_token(method: str) -> None:
    """A token that points at another node would tell a wrong state."""
    trace = record(method)
    state = RunState.of(trace)
    for k, step in enumerate(trace.steps):
        patch = text.frame(state, k)
        nodes = encode.unpack(patch["nodes"]).tolist()
        assert len(nodes) == len(step.emitted)
        fates = emitted_fates(step)
        for node, token, fate in zip(nodes, step.emitted, fates, strict=True):
            if fate is Fate.ACCEPTED:
                assert step.tokens[node] == token
                assert node_fates(step)[node] is Fate.ACCEPTED
            else:
                assert node == step.path[-1]  # where the target said it
        ghosts = encode.unpack(patch["ghosts"]).tolist() if "ghosts" in patch else []
        above = step.path[-1]
        for node in ghosts:
            assert step.parents[node] == above
            assert node_fates(step)[node] in (Fate.REJECTED, Fate.MATCHED)
            above = node
        below = {node for node, parent in enumerate(step.parents) if parent == step.path[-1]}
        missed = [node for node in below if node_fates(step)[node] is Fate.REJECTED]
        assert bool(missed) <= bool(ghosts)


def test_experts_are_a_mean_over_the_steps_behind_the_first() -> None:
    """The prompt's pass reads nearly all of them; where no layer has any, no row speaks of them."""
    state = sized(model=replace(CARD, experts=8))
    state.steps[:] = [replace(step, experts=count) for step, count in zip(state.steps, (8.0, 5.5, 2.0), strict=True)]
    rows = {row.key: row for row in counters.rows(state.header)}
    assert [counters.numbers(state, k)["experts"] for k in range(3)] == [None, 5.5, 3.75]
    assert counters.value_with_unit(rows["experts"], 3.75) == "3.8"
    assert "experts" not in {row.key for row in counters.rows(sized().header)}
    lines = [json.loads(line) for line in Play(state.header).step(state.steps[0]).splitlines()]
    assert [line["experts"] for line in lines if line["kind"] == "step"] == [8.0]
    plain = Play(sized().header).step(sized().steps[0])
    assert all("experts" not in json.loads(line) for line in plain.splitlines())
