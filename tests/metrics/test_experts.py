"""The experts that a step reads: counted by hand, in a real mixture, and grey for models that have none."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from analysis.imports import read_any
from analysis.metrics import Selection, measure
from analysis.store.folder import read_folder, write_folder
from analysis.store.schema import DENSE
from analysis.store.tables import RunIdentity, joined, tables_of
from decoding.trace import write_trace
from tests import ROOT
from tests.model.test_transformers_hooks import by_token
from tests.toys import engine, hashed

from .tables import run, selection, step

SAMPLE = ROOT / "assets" / "runs" / "pocket"
# Trees of three and of five rows, whose passes read 4 and 5, and 6 and 7 experts; one row reads 2.
TREES = [
    step(0, 0, 0, fed=30, experts=8.0),
    *(step(1, 1, 2, fed=3, experts=4.0), step(2, 0, 2, fed=3, experts=5.0), step(3, 3, 4, fed=5, experts=6.0)),
    *(step(0, 0, 0, of=1, fed=30, experts=8.0), step(1, 3, 4, of=1, fed=5, experts=7.0)),
]
PLAIN = [step(0, 0, 0, of=2, fed=30, experts=8.0), *(step(n, 0, 0, of=2, fed=1, experts=2.0) for n in (1, 2))]
RUNS = [run(0, "a", experts=8), run(1, "b", experts=8), run(2, "a", method="autoregressive", experts=8)]


def test_experts_by_the_rows_of_a_pass() -> None:
    """The first step reads the prompt and says nothing of a tree."""
    result = measure("experts", selection(RUNS, [*TREES, *PLAIN]).where(method="draft_model"))
    assert result["value"] == (4 + 5 + 6 + 7) / 4 and result["low"] is not None
    assert [(row[0], row[1], row[4]) for row in result["rows"]] == [(3, 4.5, 2), (5, 6.5, 2)]
    assert result["rows"][1][2] < 6.5 < result["rows"][1][3]
    assert "5.50 of a layer's 8 experts, 2.75 times as many as one token at a time (2.00)" in result["sentence"]


def test_without_a_baseline_there_is_still_a_number() -> None:
    result = measure("experts", selection([run(0)], [step(1, 1, 2, experts=4.0), step(2, 1, 2, fed=3, experts=5.0)]))
    assert (result["value"], result["sentence"]) == (4.5, "A step reads 4.50 experts.")
    assert [row[0] for row in result["rows"]] == [3], "of the other pass nobody counted the rows"


def test_what_counts_none_is_grey_with_its_reason() -> None:
    """A dense model of ours has none; of another engine's nobody knows; of no steps there is nothing to say."""
    assert measure("experts", selection([run(0)], [step(1, 1, 2)]))["reason"] == DENSE
    other = measure("experts", selection([run(0, engine="vllm")], [step(1, 1, 2)]))
    assert "does not count the experts" in (other["reason"] or "")
    assert measure("experts", selection([run(0)], []))["reason"] == "no step is chosen"
    assert "no step but the first" in (measure("experts", selection([run(0)], [TREES[0]]))["reason"] or "")


def test_a_folder_older_than_the_column_opens(tmp_path: Path) -> None:
    """The sample was written before there was one, and so were other people's folders."""
    assert "experts" not in pq.read_schema(SAMPLE / "steps.parquet").names
    folder = read_folder(SAMPLE)
    assert folder.steps["experts"].null_count == len(folder.steps)
    assert measure("experts", Selection.from_folder(folder))["reason"] == DENSE


def test_a_mixtures_steps_are_counted_down_to_the_folder(tmp_path: Path) -> None:
    """From the model's own router to the chart."""
    options = {"max_new_tokens": 4, "end_tokens": ()}
    traces = [
        by_token().generate([0, 1, 2, 0], *method, **options).trace  # type: ignore[arg-type]
        for method in (("autoregressive",), ("prompt_lookup", {"max_ngram": 1, "min_ngram": 1, "K": 2}))
    ]
    tables = joined(tables_of(trace, RunIdentity(number, "q")) for number, trace in enumerate(traces))
    folder = read_folder(write_folder(tmp_path / "runs", *tables, {"source": "specscope", "name": "mixture"}))
    assert folder.steps["experts"].to_pylist() == [step.experts for trace in traces for step in trace.steps]
    assert folder.runs["experts"].to_pylist() == [6, 6]
    result = measure("experts", Selection.from_folder(folder).where(method="prompt_lookup"))
    assert result["reason"] is None and "of a layer's 6 experts" in result["sentence"]
    assert "as many as one token at a time (1.00)" in result["sentence"]


@pytest.mark.parametrize("dense", [True, False])
def test_an_imported_trace_says_whether_its_model_has_any(dense: bool, tmp_path: Path) -> None:
    engines = engine(hashed(31, 3, 3, sharpness=4.0)) if dense else by_token()
    trace = engines.generate([1, 2, 3], max_new_tokens=3, end_tokens=()).trace
    write_trace(trace, tmp_path / "one.jsonl")
    imported = read_any(tmp_path / "one.jsonl")
    assert imported.summary["missing"].get("steps.experts") == (DENSE if dense else None)
    assert json.dumps(imported.summary)
