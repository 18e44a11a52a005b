"""Runs that no engine made: within what a reader lets through, none makes a view slow or large."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from decoding.types import Role, Step, Timing, Trace
from tests.tiers import choose, slow
from viz.run_state import RunState
from viz.stream.play import Play, lines

from .records import record

Made = tuple[str, dict[str, Any], list[Step]]
LAST = 5  # the token of every root


def step(k: int, start: int, count: int = 1, **fields: Any) -> Step:
    """A step that accepts nothing of a chain of guesses."""
    guesses = count - 1
    plain: dict[str, Any] = {
        "tokens": (LAST,) * count,
        "parents": tuple(range(-1, guesses)),
        "roles": (Role.ROOT, *[Role.VERIFY] * guesses),
        "sources": ("root", *["draft:1"] * guesses),
        "path": (0,),
        "emitted": (LAST,),
        "accepted": 0,
        "drafted": guesses,
        "fed": count,
        "timing": Timing(),
    }
    return Step(index=k, start=start, pending=0, **plain | fields)


def all_accepted() -> Made:
    """Chains of a thousand guesses, all right: each has to be found among its siblings."""
    chain: dict[str, Any] = {"path": tuple(range(1024)), "emitted": (LAST,) * 1024, "accepted": 1023}
    return "rest", {}, [step(k, 2 + 1024 * k, 1024, **chain) for k in range(63)]


def without_nodes() -> Made:
    """Steps that say to have accepted much, each another number: histograms as long as that."""
    steps, start = list[Step](), 2
    bare: dict[str, Any] = dict.fromkeys(("tokens", "parents", "roles", "sources", "path"), ())
    for k in range(1000):
        accepted = 1000 if k == 0 else k % 60
        outcome = {"emitted": (LAST,) * (accepted + 1), "accepted": accepted, "drafted": accepted}
        steps.append(step(k, start, **bare | outcome))
        start += accepted + 1
    return "rest", {}, steps


def one_key() -> Made:
    """A pool into which nothing but n-grams of one key go, while others are guessed."""
    pool = {"inserted": [[LAST, [k, 1, 1, 1], "added"] for k in range(60)], "entries": 1}
    got = {"phase": "steady", "guesses": [[7, k, 7, 7] for k in range(30)], "pool": pool}
    return "lookahead", {"W": 15, "N": 5, "G": 256}, [step(k, 2 + k, 2, panel=got) for k in range(600)]


def many_phrases() -> Made:
    """Phrases learned in every step, and looked for in every step."""
    rows = [[k, k] for k in range(30)]
    got = {
        "suffixes": rows,
        "refined": [[k, 1] for k in range(30)],
        "inspired": [[LAST, [k], "added"] for k in range(30)],
    }
    sources = ("root", "draft:1", *(f"pool:{k},0" for k in range(30)))
    return "ouroboros", {"N": 16, "K": 64}, [step(k, 2 + k, 32, panel=got, sources=sources) for k in range(700)]


def far_ending() -> Made:
    """A match that says to be as long as a long prompt."""
    got = {"n": 100_000, "ending": [LAST]}
    sources = ("root", "prompt:100000", "prompt:100001")
    return "prompt_lookup", {}, [step(k, 100_000 + k, 3, panel=got, sources=sources) for k in range(400)]


def long_sources() -> Made:
    """A source of many numbers, of which every view asks its kind."""
    name = "medusa:" + ",".join(["1"] * 100_000)
    return "medusa", {}, [step(k, 2 + k, 3, sources=("root", name, name)) for k in range(100)]


HOSTILE = [all_accepted, without_nodes, one_key, many_phrases, far_ending, long_sources]


@slow
@pytest.mark.parametrize("make", choose(HOSTILE, [all_accepted, without_nodes, far_ending, long_sources]))  # the quick
def test_no_view_takes_the_square_of_a_run(make: Callable[[], Made]) -> None:
    """Each of these took from five seconds to minutes, during which nobody else's file was read.

    Half of the run takes half of the time, on a processor of any speed: of a square it would take a quarter.
    """
    method, params, steps = make()
    half, whole = (seconds_of(run(method, params, some)) for some in (steps[: len(steps) // 2], steps))
    assert all(took < 3 * before + 0.5 for before, took in zip(half, whole, strict=True)), (half, whole)


def seconds_of(trace: Trace) -> tuple[float, float]:
    """Return the processor's time for the lines of a run, and for the rows of all its steps."""
    begin = time.process_time()
    got = lines(trace)
    wrote = time.process_time()
    assert got.count('"kind":"step"') >= 30
    play = Play(trace.header)
    play.run = RunState.of(trace)
    assert all(len(play.rows(k)) < 100_000 for k in range(len(trace.steps)))
    return wrote - begin, time.process_time() - wrote


def run(method: str, params: Mapping[str, Any], steps: list[Step]) -> Trace:
    """A run of such steps."""
    header = replace(
        record("rest").header, method=method, params=params, prompt=(LAST,) * steps[0].start, record="full"
    )
    return Trace(header, tuple(steps), None, {})


def test_long_texts_are_not_put_together() -> None:
    """A sentence quotes sixty characters: a thousand texts of a megabyte in a row would fill the memory."""
    trace = replace(run("rest", {}, [step(0, 2, 1024)]), texts={LAST: "x" * 2**20})
    tracemalloc.start()
    assert len(lines(trace)) < 200_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * 2**20


def test_what_divides_by_next_to_nothing_is_not_known() -> None:
    """A number that JSON cannot spell made the whole answer fail."""
    trace = run("rest", {}, [step(k, 2 + k, timing=Timing(forward_ms=1.0, total_ms=1e-300)) for k in range(3)])
    card = replace(trace.header.model, weight_bytes=1, pass_bytes=10**18, token_bytes=1)
    assert '"kind":"end"' in lines(replace(trace, header=replace(trace.header, bandwidth=1e-300, model=card)))
