"""Run folders on the Cost page: every method by its own steps, compared with the tables read another way."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from analysis.store.folder import RunFolder, read_folder
from analysis.store.schema import NODES, RUNS, STEPS
from app.debug.folder_costs import folder_costs
from app.debug.query_workers import QueryWorkers
from app.pages.cost import functions
from app.state import AppState
from app.store.run_costs import RunCosts
from app.store.run_folders import SHIPPED, OpenFolder

SAMPLE = SHIPPED / "pocket"


def test_a_run_folders_methods_are_given_by_their_steps() -> None:
    app_state = AppState()
    answer = app_state.debug.call("costs", "")
    assert (answer["folder"], answer["name"]) == ("pocket", "Sample: pocket, 21 questions")
    labels = [run["label"] for run in answer["runs"]]
    assert "Draft model, short" in labels and "Autoregressive" not in labels
    run = answer["runs"][labels.index("Draft model, short")]
    runs, steps = (pq.read_table(SAMPLE / f"{name}.parquet").to_pylist() for name in ("runs", "steps"))
    chosen = {each["run"] for each in runs if (each["method"], each["setting"]) == ("draft_model", "short")}
    later = [each for each in steps if each["run"] in chosen and each["step"]]
    assert [run["fed"], run["wrote"]] == [[each[name] for each in later] for name in ("fed", "written")]
    assert run["at"] == [[each["run"], each["step"]] for each in later]
    base = {each["run"] for each in runs if each["method"] == "autoregressive"}
    plain = [each["total_ms"] for each in steps if each["run"] in base and each["step"]]
    one = sum(plain) / len(plain)
    assert run["drafting"] == pytest.approx([each["draft_ms"] / one for each in later], abs=1e-4)
    pace = sum(each["written"] for each in later) / sum(each["total_ms"] for each in later)
    assert run["later_speedup"] == pytest.approx(pace * one)


def test_what_a_run_folder_does_not_tell_is_not_projected() -> None:
    """An import may know neither what a step read nor what it took, and have no autoregressive runs."""
    tables = {name: pq.read_table(SAMPLE / f"{name}.parquet") for name in (RUNS, STEPS, NODES)}
    steps = tables[STEPS]
    fed = steps.column_names.index("fed")
    untold = steps.set_column(fed, steps.schema.field(fed), pa.nulls(len(steps), pa.int64()))
    summary = read_folder(SAMPLE).summary
    workers = QueryWorkers()
    assert folder_costs(OpenFolder("x", RunFolder(SAMPLE, tables[RUNS], untold, tables[NODES], summary), workers)) == []
    alone = tables[RUNS].filter(pc.not_equal(tables[RUNS]["method"], "autoregressive"))
    chosen = steps.filter(pc.is_in(steps["run"], alone["run"]))
    nodes = tables[NODES].filter(pc.is_in(tables[NODES]["run"], alone["run"]))
    runs = folder_costs(OpenFolder("x", RunFolder(SAMPLE, alone, chosen, nodes, summary), workers))
    assert len(runs) == 6 and {(each["later_speedup"], each["drafting"]) for each in runs} == {(None, None)}


def test_a_large_folder_is_cut_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.debug.folder_costs._MOST_STEPS", 60)
    opened = OpenFolder("x", read_folder(SAMPLE), QueryWorkers())
    assert [len(run["fed"]) for run in folder_costs(opened)] == 6 * [10] and folder_costs(opened) is folder_costs(
        opened
    )


@pytest.mark.parametrize("asked", [None, 3, ["pocket"], "../pocket", "nothing"])
def test_a_folder_that_is_none_is_refused(asked: object) -> None:
    app_state = AppState()
    listed = functions(app_state, RunCosts(app_state.recordings, app_state.lessons))
    call = next(each for each in listed if each.__name__ == "debug_costs")
    assert "run folder" in call(asked)["fault"]
