"""Guesses drafted again at the recorded cuts are those of the run; where they are not, that is found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow.compute as pc
import pytest

from analysis.export import vllm
from analysis.imports import Imported, read_any
from analysis.restoring.restore import restore
from analysis.store.tables import tables_of
from decoding import load
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.types import JSON, Trace

from .samples import sample

PROMPT = "What is the dish of Ablow?"
CASES: list[tuple[str, Mapping[str, JSON]]] = [
    ("draft_model", {}),
    ("draft_model", {"gamma": 3, "threshold": 0.4}),
    ("prompt_lookup", {"K": 4}),
    ("medusa", {}),
    ("eagle3", {}),
    ("eagle3", {"form": "chain", "gamma": 3}),
    ("kangaroo", {}),
    ("token_recycling", {}),
    ("suffix", {}),
]
# Of these the first pass has no guess, as in vLLM: its own fields are enough, even where it leaves steps out.
CHAIN: Mapping[str, JSON] = {"form": "chain", "gamma": 8, "threshold": 0.0}
AS_IN_VLLM = [case for case in CASES if case[0] in ("prompt_lookup", "medusa", "eagle3")]


@pytest.fixture(scope="module")
def engine() -> Engine:
    return load("pocket")


def recorded(engine: Engine, method: str, params: Mapping[str, JSON], tokens: int = 32) -> Trace:
    result = engine.generate(PROMPT, method, params, {"temperature": 0}, tokens, record="full", memory={})
    return result.trace


def exported(trace: Trace, *, ours: bool = True) -> Imported:
    """Make a trace that went through vLLM's schema; without `ours`, vLLM's own fields alone."""
    response = vllm(trace)
    if not ours:
        del response["specscope"]
    return read_any(json.dumps(response).encode())


def nodes(table: Any) -> list[dict[str, Any]]:
    return [{**row, "run": 0} for row in table.to_pylist()]


@pytest.mark.sampled
@pytest.mark.parametrize(("method", "params"), CASES)
def test_restored_guesses_are_those_of_the_run(engine: Engine, method: str, params: Mapping[str, JSON]) -> None:
    """Every node with its place, fate, source, p and q: the record has lost nothing that cannot be made again."""
    trace = recorded(engine, method, params)
    restored = restore(exported(trace), engine)  # method and settings are in the record
    assert nodes(restored.nodes) == nodes(tables_of(trace).nodes)
    about = restored.summary["restored"]
    assert about["disagreements"] == about["other_lengths"] == about["other_choices"] == about["left"] == 0
    assert about["steps"] == sum(step.drafted > 0 for step in trace.steps) > 0
    assert restored.runs["reconstructed"].to_pylist() == [True]
    columns = ["step", "start", "drafted", "accepted", "written", "text", "entropy", "nodes"]
    assert restored.steps.select(columns) == tables_of(trace).steps.select(columns)


@pytest.mark.parametrize(("method", "params"), AS_IN_VLLM)
def test_vllms_own_fields_are_enough(engine: Engine, method: str, params: Mapping[str, JSON]) -> None:
    """It leaves steps without a guess out, so their places come from drafting, too."""
    trace = recorded(engine, method, params)
    restored = restore(exported(trace, ours=False), engine, method, params)
    assert nodes(restored.nodes) == nodes(tables_of(trace).nodes)
    assert restored.summary["restored"]["disagreements"] == 0
    assert restored.steps["start"].to_pylist() == [step.start for step in trace.steps]
    missing = restored.summary["missing"]
    assert "steps.start" not in missing and "nodes.token" not in missing
    assert not any("--restore" in reason for reason in missing.values())  # it has been done


@pytest.mark.parametrize(
    ("made", "restored"), [("medusa", "eagle3"), ("eagle3", "draft_model"), ("kangaroo", "medusa")]
)
def test_another_drafter_is_found_out(engine: Engine, made: str, restored: str) -> None:
    """The control: were the comparison empty, every restoring would agree."""
    trace = recorded(engine, made, {})
    guessed = restore(exported(trace), engine, restored)
    about = guessed.summary["restored"]
    assert about["disagreements"] >= about["steps"] // 2 > 0 and about["method"] == restored
    first = about["findings"][0]
    assert first["recorded"] != first["found"]
    assert (
        f"step {first['step']} of run 0, which accepted {first['recorded']} and now {first['found']}"
        in about["sentence"]
    )
    assert guessed.steps["accepted"].to_pylist() != [step.accepted for step in trace.steps] or about["other_lengths"]
    assert "".join(guessed.steps["text"].to_pylist()) == "".join(tables_of(trace).steps["text"].to_pylist())


def test_other_settings_and_a_changed_record_are_found_out(engine: Engine) -> None:
    trace = recorded(engine, "draft_model", {})
    about = restore(exported(trace), engine, "draft_model", {"gamma": 2}).summary["restored"]
    assert about["disagreements"] and about["other_lengths"]
    wrong = exported(trace)
    steps = wrong.steps.to_pylist()
    place = next(step["step"] for step in steps if step["accepted"] > 1)
    steps[place]["accepted"] -= 1
    changed = wrong._replace(steps=wrong.steps.from_pylist(steps, schema=wrong.steps.schema))
    findings = restore(changed, engine).summary["restored"]["findings"]
    assert {
        "run": 0,
        "step": place,
        "recorded": steps[place]["accepted"],
        "found": steps[place]["accepted"] + 1,
    } in findings


def test_another_target_is_found_out(engine: Engine) -> None:
    """Tokens that this target would not have chosen say that the record is of another model."""
    record = exported(recorded(engine, "prompt_lookup", {}))
    rows = record.runs.to_pylist()
    rows[0]["ids"][3] = (rows[0]["ids"][3] + 1) % 500
    changed = record._replace(runs=record.runs.from_pylist(rows, schema=record.runs.schema))
    about = restore(changed, engine).summary["restored"]
    assert about["other_choices"] >= 1 and about["sentence"].endswith("is it the same model?")


def test_the_samples_restore(engine: Engine) -> None:
    """The records of the tutorial have the guesses that our own run of them had."""
    params = {"form": "chain", "gamma": 4, "threshold": 0.0}
    restored = restore(read_any(sample("vllm.jsonl")), engine, "eagle3", params)
    about = restored.summary["restored"]
    assert about["disagreements"] == 0 and about["steps"] > 50 and len(restored.nodes) > about["steps"]
    assert restored.runs["method"].to_pylist() == ["eagle3"] * len(restored.runs)
    assert restored.runs["engine"].to_pylist() == ["vllm"] * len(restored.runs)  # who decoded


@pytest.mark.parametrize(
    ("name", "method", "params"), [("eagle", "eagle3", CHAIN), ("ngram", "prompt_lookup", {"K": 10})]
)
def test_steps_that_nobody_took_restore_as_well(
    engine: Engine, name: str, method: str, params: Mapping[str, JSON]
) -> None:
    """SpecDecode-Bench's records are lengths by place; those of a drafter that often has no guess leave nothing out."""
    record = read_any(sample("specdecode_bench.jsonl"))
    runs = record.runs.filter(pc.equal(record.runs["method"], name)).slice(0, 3)
    steps = record.steps.filter(pc.is_in(record.steps["run"], runs["run"]))
    about = restore(record._replace(runs=runs, steps=steps), engine, method, params).summary["restored"]
    assert about["steps"] > 5 and about["disagreements"] == about["left"] == 0


def test_times_stay_those_of_the_engine(engine: Engine) -> None:
    """Drafting again takes other times, on another machine."""
    restored = restore(exported(recorded(engine, "medusa", {})), engine)
    assert (
        restored.steps["forward_ms"].null_count == len(restored.steps)
        and "steps.forward_ms" in restored.summary["missing"]
    )
    assert restored.runs["prefill_seconds"].null_count == 0 and restored.runs["fed"].null_count == 1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"ids": None}, "lacks its tokens"),
        ({"prompt_ids": []}, "lacks its tokens"),
        ({"sampling": '{"temperature": 0.7}'}, "only greedy text"),
        ({"ids": [10**6]}, "load its own model"),
        ({"prompt_ids": [1] * 20_000}, "context"),
    ],
)
def test_what_cannot_be_restored_is_one_sentence(engine: Engine, change: dict[str, Any], sentence: str) -> None:
    record = read_any(sample("vllm.jsonl"))
    rows = record.runs.to_pylist()
    rows[0] |= change
    changed = record._replace(runs=record.runs.from_pylist(rows, schema=record.runs.schema))
    with pytest.raises(ParamError, match=sentence):
        restore(changed, engine, "eagle3")


def test_a_histogram_has_no_cuts(engine: Engine) -> None:
    """Its steps stand in an order of ours: drafting there would find nothing but disagreement."""
    response = vllm(recorded(engine, "medusa", {}))
    del response["specscope"]
    spec = response["metrics"]["speculative_decoding"]
    del spec["per_step_accepted"], spec["per_step_drafted"]
    with pytest.raises(ParamError, match="knows no order, so their cuts are unknown"):
        restore(read_any(json.dumps(response).encode()), engine, "medusa")


def test_records_without_steps_cannot_be_restored(engine: Engine) -> None:
    record = read_any(sample("vllm.jsonl"))
    with pytest.raises(ParamError, match="does not say how many guesses"):
        restore(record._replace(steps=record.steps.slice(0, 0)), engine, "eagle3")
    with pytest.raises(ParamError, match="lacks its tokens"):
        restore(read_any(sample("spec_bench.jsonl")), engine, "eagle3")
