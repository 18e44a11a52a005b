"""Traces in the forms of other tools."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.export import COLUMNS, perfetto, steps_csv, vllm
from cli.main import main
from decoding.trace.file import read_trace
from decoding.types import Timing, Trace
from tests import GOLDEN

TRACES = sorted(GOLDEN.glob("*.jsonl"))
TIMING = Timing(draft_ms=0.5, forward_ms=2.0, accept_ms=0.25, commit_ms=0.125, total_ms=3.0)


def timed(path: Path) -> Trace:
    """Make a golden trace with times in it: the files hold none."""
    trace = read_trace(path)
    assert trace.summary is not None
    steps = tuple(replace(step, timing=TIMING) for step in trace.steps)
    later = len(steps) - 1
    summary = replace(trace.summary, prefill_seconds=0.003, decode_seconds=0.003 * later)
    return replace(trace, steps=steps, summary=summary)


@pytest.fixture(params=TRACES, ids=[path.stem for path in TRACES])
def trace(request: pytest.FixtureRequest) -> Trace:
    return timed(request.param)


def test_the_table_adds_up_to_the_run(trace: Trace) -> None:
    rows = list(csv.DictReader(io.StringIO(steps_csv(trace))))
    assert tuple(rows[0]) == COLUMNS and len(rows) == len(trace.steps)
    for name in ("accepted", "drafted", "fed", "pending", "start"):
        assert [int(row[name]) for row in rows] == [getattr(step, name) for step in trace.steps]
    assert sum(int(row["written"]) for row in rows) == len(trace.ids) == int(rows[-1]["new_tokens"])
    assert float(rows[-1]["seconds"]) == pytest.approx(0.003 * len(rows))
    text = "".join(json.loads(row["text"]) for row in rows)
    assert text == "".join(trace.texts[token] for token in trace.ids)


def test_no_cell_is_a_formula(trace: Trace) -> None:
    """A spreadsheet runs what begins with one of these signs."""
    evil = replace(
        trace,
        texts=dict.fromkeys(trace.texts, '=HYPERLINK("http://x")\n+1'),
        steps=tuple(replace(s, sources=tuple("=cmd|x" for _ in s.sources)) for s in trace.steps),
    )
    got = steps_csv(evil)
    assert got.isascii()
    for row in csv.reader(io.StringIO(got)):
        assert not any(cell.startswith(("=", "+", "@", "\t", "\r", "-")) for cell in row)


def test_the_timeline_holds_every_step_with_its_phases(trace: Trace) -> None:
    got = perfetto(trace)
    assert json.loads(json.dumps(got)) == got
    blocks = [event for event in got["traceEvents"] if event["ph"] == "X"]
    steps = [event for event in blocks if event["tid"] == 1]
    assert len(steps) == len(trace.steps) and len(blocks) == 5 * len(steps)
    assert [step["ts"] for step in steps] == pytest.approx([3000.0 * index for index in range(len(steps))])
    for index, step in enumerate(steps):
        phases = [event for event in blocks if event["tid"] == 2 and event["args"]["step"] == index]
        assert [event["name"] for event in phases] == ["draft", "forward", "accept", "commit"]
        assert [event["dur"] for event in phases] == [500.0, 2000.0, 250.0, 125.0]
        assert phases[0]["ts"] == step["ts"] and phases[-1]["ts"] + 125.0 <= step["ts"] + step["dur"]
    counts = [event for event in got["traceEvents"] if event["name"] == "tokens written"]
    assert counts[-1]["args"]["tokens"] == len(trace.ids)


def test_vllms_metrics_keep_its_formulas(trace: Trace) -> None:
    """As docs/features/per_request_metrics and speculative_decoding/acceptance_metrics of vLLM define them."""
    got = vllm(trace)
    metrics, usage = got["metrics"], got["usage"]
    assert usage["prompt_tokens"] + usage["completion_tokens"] == usage["total_tokens"]
    (choice,), ours = got["choices"], got["specscope"]
    assert choice["prompt_token_ids"] == [*trace.header.prompt] and choice["token_ids"] == [*trace.ids]
    assert ours["method"] == trace.header.method and ours["params"] == trace.header.params
    assert metrics["time_to_first_token_ms"] == 3.0 and metrics["queue_time_ms"] is None
    assert metrics["tokens_per_second"] == pytest.approx(len(trace.ids) / (0.003 * len(trace.steps)), rel=1e-3)
    assert metrics["mean_itl_ms"] == pytest.approx(3.0 * (len(trace.steps) - 1) / (len(trace.ids) - 1), rel=1e-3)
    spec = metrics["speculative_decoding"]
    if trace.header.method == "autoregressive":
        assert spec is None
        return
    drafted = [step for step in trace.steps if step.drafted]
    assert spec["num_spec_steps"] == len(drafted) == sum(spec["acceptance_histogram"])
    assert spec["num_accepted_draft_tokens"] == sum(step.accepted for step in trace.steps)
    assert spec["num_draft_tokens"] == sum(step.drafted for step in trace.steps)
    assert len(spec["acceptance_histogram"]) == spec["num_spec_tokens"] + 1
    assert spec["mean_acceptance_length"] == 1 + spec["num_accepted_draft_tokens"] / spec["num_spec_steps"]
    assert spec["draft_acceptance_rate"] == spec["num_accepted_draft_tokens"] / spec["num_draft_tokens"]
    assert spec["per_step_accepted"] == [step.accepted for step in drafted]
    by_length = spec["acceptance_histogram_by_draft_length"]
    assert sum(map(sum, by_length.values())) == len(drafted)
    assert all(len(counts) == int(length) + 1 for length, counts in by_length.items())


def test_a_run_that_was_torn_off_or_wrote_nothing_is_told_too() -> None:
    torn = replace(timed(TRACES[0]), summary=None)
    assert vllm(torn)["choices"][0]["finish_reason"] == "abort"
    nothing = replace(torn, steps=())
    assert vllm(nothing)["metrics"]["time_to_first_token_ms"] is None
    assert steps_csv(nothing) == ",".join(COLUMNS) + "\n" and perfetto(nothing)["traceEvents"]


@pytest.mark.parametrize("form", ["csv", "perfetto", "vllm"])
def test_the_command_writes_what_it_is_asked_for(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / f"run.{form}"
    asked = ["trace", "export", "--format", form, "--out", str(out), str(TRACES[0])]
    assert main(asked) == 0 and out.stat().st_size > 100
    capsys.readouterr()
    before = out.read_bytes()
    assert main(asked) == 2
    assert "exists: name another file, or replace it with --force" in capsys.readouterr().err
    assert main([*asked, "--force", "--json"]) == 0 and out.read_bytes() == before
    assert json.loads(capsys.readouterr().out)["format"] == form


@pytest.mark.parametrize(
    "wrong",
    [
        ["--format", "xml", "--out", "x", str(TRACES[0])],
        ["--format", "csv", "--out", "/no/such/folder/x", str(TRACES[0])],
        ["--format", "csv", "--out", "/tmp", str(TRACES[0])],
        ["--format", "csv", "--out", "x.csv", "/no/such/trace.jsonl"],
        ["--format", "csv", str(TRACES[0])],
    ],
)
def test_mistakes_are_one_line(
    wrong: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["trace", "export", *wrong]) == 2
    err = capsys.readouterr().err
    assert err.startswith("specscope: ") and err.count("\n") == 1
    assert not list(tmp_path.iterdir())
