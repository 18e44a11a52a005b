"""Records that nobody has changed: a check that cries wolf is switched off."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch

from analysis.recheck.again import run_again
from analysis.recheck.derived import contradictions
from analysis.recheck.record import recheck
from decoding import load
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.methods import METHODS
from decoding.trace import read_trace
from decoding.types import Role, Step, Timing, Trace
from tests import ROOT
from tests.families import machine as with_parts
from tests.tiers import choose, few, sampled
from tests.toys import CASES, engine, prompt_for, title, toy

SETTINGS: tuple[Mapping[str, Any], ...] = (
    {},
    {"temperature": 1.0},
    {"repetition_penalty": 1.3},
    {"temperature": 0.8, "top_k": 3, "top_p": 0.9, "repetition_penalty": 1.2},
    {"temperature": 1.5, "min_p": 0.2},
)
RECORDS = [
    path
    for pattern in ("tests/golden/*.jsonl", "assets/traces/*.gz", "assets/runs/**/*.gz")
    for path in sorted(ROOT.glob(pattern))
]


@sampled
@pytest.mark.parametrize(("method", "params"), few(1, CASES), ids=title)
def test_a_runs_own_record_has_no_contradiction(method: str, params: Mapping[str, Any], everything: bool) -> None:
    """By default each method has two of five settings in turn: each of these is met by five methods."""
    at, records = [*METHODS].index(method), ("full", "light", "full", "off", "full")
    for seed in range(5) if everything else (at % 5, (at + 2) % 5):
        record = records[seed]
        machine = engine(toy(seed, seed))
        sampling = {**SETTINGS[seed], "seed": seed}
        prompt = prompt_for(machine.model, seed)
        trace = machine.generate(prompt, method, params, sampling, 24, record=record, memory={}).trace
        checked = recheck(machine, trace, again=True)
        assert [each.sentence for each in checked.contradictions] == [] and not checked.tokens.violations
        assert contradictions(replace(trace, summary=None, steps=trace.steps[:2])) == []


@pytest.mark.parametrize("record", choose([path.name for path in RECORDS], [path.name for path in RECORDS[::2]]))
def test_shipped_records_have_no_contradiction(record: str) -> None:
    path = next(path for path in RECORDS if path.name == record)
    assert [each.sentence for each in contradictions(read_trace(path))] == []


@pytest.fixture(scope="module")
def speaking() -> Engine:
    """Return an engine whose tokens are text."""
    return load("toy")


@pytest.mark.parametrize(
    ("prompt", "options"),
    [
        ("Monday: high tide at six,", {"stop": ["calm", "rough"]}),
        ("Monday: high tide at six,", {"stop": ["no such text"]}),
        ("\N{SNOWMAN}\N{GREEK SMALL LETTER ALPHA} Tuesday:", {}),
        ("<|user|>\nWhen is high tide?<|end|>\n<|assistant|>\n", {}),
    ],
)
def test_texts_stops_and_bytes_are_no_contradiction(speaking: Engine, prompt: str, options: dict[str, Any]) -> None:
    for sampling in ({}, {"temperature": 100.0, "seed": 2}):  # so hot that tokens are parts of characters
        trace = speaking.generate(prompt, "draft_model", {}, sampling, 32, record="full", **options).trace
        assert [each.sentence for each in recheck(speaking, trace, again=True).contradictions] == []


@pytest.mark.parametrize("sampling", [{}, {"temperature": 1.0, "seed": 1}])
def test_a_branch_draws_on_where_its_run_was(speaking: Engine, sampling: dict[str, Any]) -> None:
    run = speaking.generate("Monday: high tide at six,", "prompt_lookup", {}, sampling, 20, record="full").trace
    branch = speaking.branch(run, 3, token=" noon", record="full")
    list(branch)
    checked = recheck(speaking, branch.trace, again=True)
    assert checked.contradictions == [] and not checked.tokens.violations


@pytest.mark.parametrize("sampling", [{}, {"temperature": 0.7, "top_p": 0.9, "seed": 3}])
def test_roundings_of_bf16_are_no_contradiction(sampling: dict[str, Any]) -> None:
    machine = with_parts("llama", torch.empty(0, dtype=torch.bfloat16))
    trace = machine.generate(range(20), "medusa", {}, sampling, 40, end_tokens=(), record="full").trace
    assert [each.sentence for each in recheck(machine, trace).contradictions] == []


def test_what_was_not_checked_is_said(speaking: Engine) -> None:
    trace = speaking.generate("Monday:", "draft_model", {}, {"temperature": 1.0}, 24, record="full").trace
    plain, again = (recheck(speaking, trace, again=again).unchecked for again in (False, True))
    assert any("off the accepted paths" in each for each in plain) and any("which depend on" in each for each in plain)
    assert set(again) < set(plain) and "times, beyond their sums" in again
    light = speaking.generate("Monday:", "jacobi", {}, {}, 24).trace
    assert "probabilities: the record is light" in recheck(speaking, light).unchecked


def test_what_a_header_names_and_nobody_checked_is_said(speaking: Engine) -> None:
    trace = speaking.generate("Monday:", "draft_model", {}, {}, 8).trace
    header = trace.header
    assert header.draft is not None
    assert not any("drafter 'toy" in each for each in recheck(speaking, trace).unchecked)
    for changed, words in (
        (replace(trace, header=replace(header, draft=replace(header.draft, hash="0"))), "which has another hash than"),
        (replace(trace, header=replace(header, method="zzz", params={"no": [1]}, parts={"x": "y"})), "method 'zzz'"),
        (replace(trace, summary=None), "the record stops before its summary"),
        (replace(trace, header=replace(header, parts={"medusa": "heads"})), "its parts ('medusa') made"),
    ):
        assert any(words in each for each in recheck(speaking, changed).unchecked)
    alone = Engine(speaking.model, speaking.codec)
    assert any("drafter 'toy-draft', which is not here" in each for each in recheck(alone, trace).unchecked)


def test_a_run_that_cannot_be_repeated_is_one_sentence(speaking: Engine) -> None:
    trace = speaking.generate("Monday:", "draft_model", {}, {}, 8).trace
    assert trace.header.draft is not None
    for header, sentence in (
        (replace(trace.header, ranks=2), "2 processes"),
        (replace(trace.header, method="mine"), "none of ours"),
        (replace(trace.header, draft=replace(trace.header.draft, hash="0")), "name it with --draft"),
    ):
        with pytest.raises(ParamError, match=sentence):
            run_again(speaking, replace(trace, header=header))


def test_what_a_method_remembers_is_no_contradiction(speaking: Engine) -> None:
    """The second run copies from the first one's answer, which is in neither record."""
    memory = dict[str, Any]()
    first, second = (
        speaking.generate("Monday:", "suffix", {"alpha": 4.0}, {}, 40, memory=memory).trace for _ in range(2)
    )
    assert first.steps[0].drafted != second.steps[0].drafted or len(first.steps) != len(second.steps)
    for trace, remembered in ((first, False), (second, True)):
        checked = recheck(speaking, trace, again=True)
        assert checked.contradictions == []
        assert any("remembers earlier runs" in each for each in checked.unchecked) == remembered


def test_a_large_record_is_checked_in_a_time_that_grows_with_its_nodes() -> None:
    """A stranger's file has thousands of nodes a step: pairs of them would take minutes."""
    count = 4_096
    header = read_trace(RECORDS[0]).header
    header = replace(header, method="mine", ranks=2, model=replace(header.model, vocabulary=count))
    roles = (Role.ROOT, *(Role.VERIFY,) * (count - 1))
    columns: dict[str, Any] = {"tokens": (*range(count),), "parents": (-1, *(0,) * (count - 1)), "roles": roles}
    columns |= {"sources": ("a",) * count, "path": (0,), "choices": (0,) * count, "p": (None, *(0.0,) * (count - 1))}
    columns |= {"q": (0.5,) * count, "top": (((0, 1.0),),) * count, "draft_top": (((0, 0.5, 1.0),),) * count}
    steps = tuple(Step(n, 1, 0, (0,), 0, count - 1, count, Timing(), **columns) for n in range(8))
    begun = time.process_time()
    contradictions(Trace(header, steps, None, {}))
    assert time.process_time() - begun < 2.0
