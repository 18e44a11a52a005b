"""Races: lanes, and the assertion that lossless greedy runs agree."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import replace
from typing import Any

import pytest

from app.controls import Order
from app.jobs.race import Race, first_difference
from app.jobs.runner import JobRunner
from app.server.limits import LIMITS
from app.server.log import facts_of
from decoding import METHODS, load
from decoding.errors import ParamError
from decoding.trace.rescore import Mismatch, Rescore
from decoding.types import Trace

from .conftest import TABLES, TOY, asked, lines

NAMES = ("autoregressive", "lookahead", "prompt_lookup")


def race(jobs: JobRunner, *names: str) -> list[dict[str, Any]]:
    orders = [asked(method=name, params={}) for name in names]
    return lines(deque(jobs.start(Race(orders, "screen=race"), "tab"), maxlen=1).pop())


def test_a_lane_that_cannot_start_is_counted_as_a_refusal(jobs: JobRunner, caplog: pytest.LogCaptureFixture) -> None:
    """It was only shown, so the metrics counted none."""
    caplog.set_level(logging.INFO, "app")
    long = replace(asked(), entry=replace(TOY, max_prompt_tokens=2))
    got = lines(deque(jobs.start(Race([asked(method="jacobi", params={}), long], ""), "tab"), maxlen=1).pop())
    refused = [facts_of(record) for record in caplog.records if facts_of(record).get("event") == "refusal"]
    assert [line["lane"] for line in got if line["kind"] == "fault"] == [1] and len(got[-1]["runs"]) == 1
    assert refused == [{"event": "refusal", "reason": "settings"}]


def test_every_lane_is_told_whole_and_all_write_the_same(jobs: JobRunner) -> None:
    got = race(jobs, *NAMES)
    labels = [METHODS[name].label for name in NAMES]
    assert got[1] == {"kind": "race", "labels": labels, "settings": [""] * 3} and got[-1]["kind"] == "done"
    for (label, run), name in zip(got[-1]["runs"], NAMES, strict=True):
        kept = jobs.store.get(run)
        assert label == METHODS[name].label and kept is not None and kept.trace.header.method == name
        assert kept.proof.check is not None and kept.proof.check["violations"] == 0
    texts = []
    for lane in range(3):
        mine = [line for line in got if line.get("lane") == lane]
        order = [line["kind"] for line in mine if line["kind"] not in (*TABLES, "state")]
        assert order == ["play", *["step"] * order.count("step"), "end", "check"]
        assert [line["header"]["method"] for line in mine if line["kind"] == "play"] == [NAMES[lane]]
        texts.append([token for line in mine if line["kind"] == "step" for token in line["emitted"]])
    assert texts[0] == texts[1] == texts[2] and len(texts[0]) == 24
    assert len(jobs.queue) == 0 and jobs.active == 0


def test_stopping_ends_the_lanes_that_are_left(jobs: JobRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("app.jobs.live_run", "app.jobs.runner"):  # every step is seen
        monkeypatch.setattr(f"{module}.LIMITS", replace(LIMITS, live_gap=0.0))
    orders = [asked(method=name, params={}, max_new_tokens=200) for name in NAMES]
    text = ""
    for text in jobs.start(Race(orders, ""), "tab"):
        if '"kind":"step"' in text:
            jobs.stop("tab", Race)
    got = lines(text)
    assert [line["finish"] for line in got if line["kind"] == "end"] == ["cancelled"]
    assert [line["lane"] for line in got if line["kind"] == "fault"] == [1, 2]
    assert len(jobs.queue) == 0


def test_time_that_is_over_is_told_from_a_stop(jobs: JobRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.jobs.race.LIMITS", replace(LIMITS, race_seconds=1e-9))
    got = race(jobs, *NAMES)
    faults = [line["sentence"] for line in got if line["kind"] == "fault"]
    assert len(faults) == 3 and all("seconds were over before it began" in sentence for sentence in faults)
    assert got[-1]["runs"] == []


def test_two_races_begin_differently(jobs: JobRunner) -> None:
    """A page tells a new text from one that grew by its first line."""
    assert race(jobs, *NAMES[:2])[0]["run"] != race(jobs, *NAMES[:2])[0]["run"]


def test_a_lane_that_fails_leaves_the_others(jobs: JobRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object, draft: object, verdict: object) -> None:
        raise ParamError("this lane is meant to fail")

    monkeypatch.setattr(METHODS["lookahead"], "observe", fail)
    got = race(jobs, "lookahead", "autoregressive")
    assert [(line["lane"], line["sentence"]) for line in got if line["kind"] == "fault"] == [
        (0, "This lane is meant to fail.")
    ]
    assert [line["lane"] for line in got if line["kind"] == "end"] == [1]


def test_lanes_of_one_method_are_titled_by_their_settings(jobs: JobRunner) -> None:
    orders = [asked(params={"W": 4}), asked(params={}), asked(method="jacobi", params={"n": 1})]
    got = lines(deque(jobs.start(Race(orders, ""), "tab"), maxlen=1).pop())
    titles = ["Lookahead (W=4)", "Lookahead (defaults)", "Jacobi"]
    assert got[1] == {"kind": "race", "labels": titles, "settings": ["", "", "SmolLM2 on a CPU"]}
    assert [label for label, _ in got[-1]["runs"]] == titles


def test_lanes_of_one_method_begin_with_the_same_knowledge(jobs: JobRunner) -> None:
    """The second found the text in the pool that the first had filled with it."""
    one, other = (asked(method="ouroboros", params={"warm_start": "across", "gamma": gamma}) for gamma in (3, 4))

    def entries(tab: str, *orders: Order) -> list[int]:
        """Phrases in each lane's pool after its first step."""
        runs = lines(deque(jobs.start(Race(orders, ""), tab), maxlen=1).pop())[-1]["runs"]
        return [jobs.store.find(run).trace.steps[0].panel["pool"]["entries"] for _, run in runs]

    first, swapped = entries("tab", one, other), entries("another tab", other, one)
    assert first == swapped[::-1]
    assert min(entries("tab", one, other)) > max(first)  # what a lane learnt stays with the tab


@pytest.fixture(scope="module")
def traces() -> tuple[Trace, Trace]:
    engine = load("toy")
    one, other = (engine.generate("Monday: high tide", name, max_new_tokens=12).trace for name in NAMES[:2])
    return one, other


def proof(*places: Mismatch, violations: int = 0) -> Rescore:
    return Rescore(12, 12 - len(places), len(places) - violations, violations, 0.01, places)


def changed(trace: Trace, at: int) -> Trace:
    """The same run with another token at place `at`."""
    left, steps = at, []
    for step in trace.steps:
        emitted = list(step.emitted)
        if 0 <= left < len(emitted):
            emitted[left] += 1
        left -= len(emitted)
        steps.append(replace(step, emitted=tuple(emitted)))
    return replace(trace, steps=tuple(steps))


def test_equal_outputs_are_equal(traces: tuple[Trace, Trace]) -> None:
    assert first_difference([(trace, proof()) for trace in traces]) is None


def test_a_difference_is_found_with_its_margin_or_without(traces: tuple[Trace, Trace]) -> None:
    """The control: an assertion that nothing can fail is none."""
    one, other = traces[0], changed(traces[1], 7)
    difference = first_difference([(one, proof()), (other, proof())])
    assert difference is not None and difference.at == 7 and difference.margin is None
    assert difference.methods == ("autoregressive", "lookahead")
    tie = Mismatch(7, other.ids[7], one.ids[7], 0.004)
    near = first_difference([(one, proof()), (other, proof(tie))])
    assert near is not None and near.margin == 0.004
    elsewhere = first_difference([(one, proof()), (other, proof(replace(tie, position=3)))])
    assert elsewhere is not None and elsewhere.margin is None
    wrong = first_difference([(one, proof()), (other, proof(tie, violations=1))])
    assert wrong is not None and wrong.margin is None


def test_runs_that_need_not_agree_are_left_out(traces: tuple[Trace, Trace]) -> None:
    one, other = traces[0], changed(traces[1], 7)
    sampled = replace(other, header=replace(other.header, sampling={**other.header.sampling, "temperature": 1.0}))
    typical = replace(other, header=replace(other.header, lossless=False))
    assert other.summary is not None
    stopped = replace(other, summary=replace(other.summary, finish="cancelled"))
    for free in (sampled, typical, stopped):
        assert first_difference([(one, proof()), (free, proof())]) is None
