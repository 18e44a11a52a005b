"""The rows of a trace, against the trace itself and against steps that were counted by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.store.folder import read_folder, write_folder
from analysis.store.schema import NODES_SCHEMA, RUNS_SCHEMA, STEPS_SCHEMA
from analysis.store.tables import RunIdentity, by_name, failed, joined, tables_of
from decoding.types import Role, Step, Timing, Trace
from tests.tiers import few, sampled
from tests.toys import CASES, engine, hashed, plain, title

MODEL = hashed(31, 3, 3, sharpness=4.0)
PROMPT = (1, 2, *plain(MODEL, (1, 2), 20), 1, 2)
V, X = Role.VERIFY, Role.EXPLORE


def trace_of(method: str, params: Any = None, record: str = "full", **sampling: Any) -> Trace:
    return engine(MODEL).generate(PROMPT, method, params, sampling, 24, record=record).trace  # type: ignore[arg-type]


@sampled
@pytest.mark.parametrize(("method", "params"), few(1, CASES), ids=title)
def test_the_rows_of_every_method_pass_the_readers_checks(method: str, params: Any, tmp_path: Path) -> None:
    """A method whose rows a reader refuses would make a folder that nobody can open."""
    parts = [
        tables_of(trace_of(method, params, temperature=heat), RunIdentity(run=run)) for run, heat in enumerate((0, 1.0))
    ]
    tables = joined(parts)
    read = read_folder(write_folder(tmp_path / "folder", *tables, {"source": "specscope", "name": method}))
    assert [read.runs, read.steps, read.nodes] == [*tables]


@pytest.mark.parametrize("record", ["off", "light", "full"])
def test_the_rows_say_what_the_trace_says(record: str) -> None:
    """The sums of each table are those of the run."""
    trace = trace_of("draft_model", record=record)
    assert trace.summary is not None
    runs, steps, nodes = (table.to_pylist() for table in tables_of(trace, RunIdentity(4, "q1", "c", 2, setting="s")))
    (run,) = runs
    assert (run["run"], run["question"], run["turn"], run["setting"], run["method"]) == (4, "q1", 2, "s", "draft_model")
    assert run["ids"] == [*trace.ids] and run["prompt_ids"] == [*PROMPT] and run["text"] == trace.summary.text
    assert run["new_tokens"] == sum(row["written"] for row in steps) == 24
    assert run["steps"] == len(steps) and run["accepted"] == sum(row["accepted"] for row in steps)
    assert run["prompt"] == "".join(f" {token}" for token in PROMPT)
    assert "".join(row["text"] for row in steps) == "".join(f" {token}" for token in trace.ids)
    assert run["mean_acceptance_length"] == 24 / len(steps) and run["finish"] == "length"
    assert len(nodes) == sum(len(step.tokens) for step in trace.steps) and bool(nodes) == (record != "off")
    assert sum(row["accepted"] for row in nodes if row["role"] == "verify") == (run["accepted"] if nodes else 0)
    filled = {name for row in nodes for name, value in row.items() if value is not None}
    full = {"p", "q", "entropy", "overlap", "rank"}
    assert filled & full == (full if record == "full" else set())
    for row, node in zip(nodes, [node for step in trace.steps for node in step.nodes], strict=True):
        assert (row["token"], row["parent"], row["depth"]) == (node.token, node.parent, node.depth)
        assert (row["p"], row["q"], row["confidence"]) == (node.p, node.q, node.q)


STEP = Step(
    index=0,
    start=3,
    pending=0,
    emitted=(5, 8),
    accepted=1,
    drafted=4,
    fed=6,
    timing=Timing(1.0, 2.0, 0.5, 0.25, 4.0),
    tokens=(2, 5, 6, 7, 9, 3),
    parents=(-1, 0, 0, 1, 2, 0),
    roles=(Role.ROOT, V, V, V, V, X),
    sources=("root", "draft:1", "pool:0,1", "draft:2", "pool:0,2", "window:1,2"),
    path=(0, 1),
    choices=(5, 8, 4, 1, 1, 1),
    p=(None, 0.5, 0.25, 0.125, 0.1, 0.0),
    q=(None, 0.75, None, 0.5, None, None),
    draft_top=(((6, 0.8, 0.2), (5, 0.75, 0.5)), ((7, 0.5, 0.1),), (), (), (), ()),
    entropy=(1.5, 0.5, 0.25, 0.0, 0.0, 0.0),
    overlap=(0.625, 0.375, None, None, None, None),
)


def rows(step: Step, trace: Trace) -> list[dict[str, Any]]:
    nodes: list[dict[str, Any]] = tables_of(replace(trace, steps=(step,), texts={5: "five"})).nodes.to_pylist()
    return nodes


def test_a_step_counted_by_hand() -> None:
    """Which node was judged, by what and against which distribution decides every chart of acceptance."""
    got = rows(STEP, trace_of("draft_model"))
    names = ("judged", "accepted", "sibling", "wanted", "confidence", "rank", "entropy", "overlap")
    assert [tuple(row[name] for name in names) for row in got] == [
        (False, True, None, None, None, None, None, None),
        (True, True, 0, 5, 0.75, 1, 1.5, 0.625),
        (True, False, 1, 5, None, 1, 1.5, 0.625),
        (True, False, 0, 8, 0.5, None, 0.5, 0.375),
        (False, False, 0, 4, None, None, 0.25, None),
        (False, False, None, 5, None, 1, 1.5, 0.625),
    ]
    assert [(row["source"], row["detail"]) for row in got[1:4]] == [("draft", "1"), ("pool", "0,1"), ("draft", "2")]
    assert [row["wanted_text"] for row in got] == [None, "five", "five", None, None, "five"]
    step = tables_of(replace(trace_of("draft_model"), steps=(STEP,))).steps.to_pylist()[0]
    assert (step["entropy"], step["other_ms"], step["nodes"], step["written"]) == (1.5, 0.25, 6, 2)


def test_nothing_is_judged_behind_a_text_that_was_cut() -> None:
    """A last step may end with an accepted token: of the guesses after it, nobody said whether they were right."""
    cut = replace(STEP, emitted=(5,))
    assert [row["judged"] for row in rows(cut, trace_of("draft_model"))] == [False, True, True, False, False, False]


def test_what_was_drawn_is_wanted_where_the_target_drew() -> None:
    """In a sampled text the likeliest token is not what a rejected guess was replaced by."""
    for step, run in zip((trace := trace_of("prompt_lookup", temperature=1.5)).steps, range(99), strict=False):
        nodes = tables_of(replace(trace, steps=(step,)), RunIdentity(run)).nodes.to_pylist()
        for row in nodes:
            if row["judged"]:
                assert row["wanted"] == step.emitted[step.path.index(row["parent"])]
                assert row["accepted"] == (row["wanted"] == row["token"])


@pytest.mark.parametrize(
    ("method", "params", "heat", "known"),
    [
        ("draft_model", {"threshold": 0.1}, 0, True),
        ("draft_model", {"threshold": 0.1}, 1.0, False),
        ("kangaroo", {}, 0, True),
        ("eagle3", {"form": "chain"}, 0, True),
        ("eagle3", {"form": "chain"}, 1.0, False),
        ("eagle3", {"form": "tree"}, 1.0, True),
        ("prompt_lookup", {}, 0, False),
    ],
)
def test_a_panel_gives_the_confidence_where_it_is_the_guesss_own(
    method: str, params: dict[str, Any], heat: float, known: bool
) -> None:
    """Of a drawn token the panel holds another one's probability: calibration would be made up."""
    light = tables_of(trace_of(method, params, "light", temperature=heat)).nodes.to_pylist()
    given = [row["confidence"] for row in light if row["role"] == "verify"]
    assert given and all((share is not None) == known for share in given)
    if known and heat == 0:
        full = tables_of(trace_of(method, params, temperature=heat)).nodes.to_pylist()
        shares = [row["confidence"] for row in full if row["role"] == "verify"]
        assert shares == pytest.approx(given, abs=2e-6)


@pytest.mark.parametrize("panel", [{"chances": "x"}, {"chances": [2.0, None, True, "y"]}, {"confidence": {"a": 1}}])
def test_a_panel_of_a_file_may_hold_anything(panel: dict[str, Any]) -> None:
    bare = replace(STEP, panel=panel, q=(), p=(), draft_top=(), entropy=(), overlap=())
    assert all(row["confidence"] is None for row in rows(bare, trace_of("draft_model")))


def test_what_the_drafter_cannot_draft_is_in_the_row_of_each_guess() -> None:
    panel = {"vocabulary": 12, "unsayable": [STEP.emitted[0], "x"]}
    said = rows(replace(STEP, panel=panel), trace_of("draft_model"))
    assert {row["draftable"] for row in said if row["wanted"] == STEP.emitted[0]} == {False}
    assert {row["draftable"] for row in said if row["wanted"] not in (None, STEP.emitted[0])} <= {True}
    assert all(row["draftable"] is None for row in rows(STEP, trace_of("draft_model")))


def test_lone_surrogates_are_replaced() -> None:
    """A file of tables holds UTF-8, which has no half characters."""
    trace = replace(trace_of("autoregressive"), texts=dict.fromkeys(range(31), "\ud800"))
    assert tables_of(trace).steps["text"].to_pylist()[0] == "?"


def test_a_run_that_could_not_begin_has_a_row() -> None:
    tables = failed(RunIdentity(2, "q", "c", 1, "medusa", prompt="p", error="no heads"), {"heads": 2}, {})
    (run,) = tables.runs.to_pylist()
    assert (run["finish"], run["error"], run["method"], run["params"]) == (
        "error",
        "no heads",
        "medusa",
        '{"heads": 2}',
    )
    assert [table.schema for table in tables] == [RUNS_SCHEMA, STEPS_SCHEMA, NODES_SCHEMA]
    assert list(by_name(tables)) == ["runs", "steps", "nodes"]
