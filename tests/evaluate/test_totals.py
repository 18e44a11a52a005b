"""Numbers that are possible one by one and nonsense together are refused, and the first wrong row is named."""

from __future__ import annotations

import random
import time
from typing import Any

import pyarrow as pa
import pytest

from analysis.metrics import METRICS, Selection, measure
from analysis.store.checks import check_table, check_tables
from analysis.store.schema import NODES, RUNS, SCHEMAS, STEPS
from analysis.store.tables import RunIdentity, by_name, joined, tables_of
from decoding.errors import TraceError
from decoding.trace.file import read_trace
from tests import GOLDEN
from tests.evaluate.made_tables import made_tables

Tables = dict[str, pa.Table]


@pytest.fixture(scope="module")
def tables() -> Tables:
    """Return two runs with all that we record."""
    traces = [read_trace(GOLDEN / f"{name}.jsonl") for name in ("autoregressive", "eagle3")]
    return by_name(joined(tables_of(trace, RunIdentity(run=run)) for run, trace in enumerate(traces)))


def changed(tables: Tables, table: str, row: int, **cells: Any) -> Tables:
    rows = tables[table]
    for name, value in cells.items():
        values = rows[name].to_pylist()
        values[row] = value
        field = SCHEMAS[table].field(name)
        rows = rows.set_column(rows.schema.get_field_index(name), field, pa.array(values, field.type))
    return tables | {table: rows}


def check(tables: Tables) -> None:
    for name, table in tables.items():
        check_table(table, name, name)
    check_tables(*tables.values())


LAST, TREE = 19, 139  # rows of the last step, and of its root
WRONG: dict[str, tuple[str, int, dict[str, Any], str]] = {
    "more accepted than drafted": (STEPS, LAST, {"accepted": 61, "written": 62}, "accepts 61 of 60 drafted"),
    "millions accepted": (STEPS, LAST, {"accepted": 10**6, "drafted": 10**6}, "accepted 1,000,000, more than"),
    "more written than accepted": (STEPS, LAST, {"written": 9}, "writes 9 tokens, but accepts 2"),
    "nothing written": (STEPS, LAST, {"written": 0}, "writes 0 tokens"),
    "more guesses than nodes": (STEPS, LAST, {"nodes": 60}, "drafts 60 guesses with 60 nodes"),
    "more fed than there is": (STEPS, LAST, {"fed": 82}, "feeds 82 rows, but from 1 to 81"),
    "another start": (STEPS, LAST, {"start": 22}, "starts after 22 tokens, but 21"),
    "a start that is not the prompt's": (STEPS, 16, {"start": 7, "fed": 7}, "starts after 7 tokens, but 8"),
    "phases beyond the step": (STEPS, LAST, {"draft_ms": 2.0, "total_ms": 1.0}, "spends 2 ms in its phases, but 1 ms"),
    "accepted guesses of a run": (RUNS, 1, {"accepted": 13}, "has accepted 13, but its steps make 12"),
    "drafted guesses of a run": (RUNS, 1, {"drafted": 181}, "has drafted 181, but its steps make 180"),
    "a run's share above one": (RUNS, 1, {"accepted": 181}, "accepts 181 of 180"),
    "rows of a run": (RUNS, 1, {"fed": 10**9}, "has fed 1,000,000,000, but its steps make 191"),
    "steps of a run": (RUNS, 1, {"steps": 5}, "has steps 5, but its steps make 4"),
    "tokens of a run": (RUNS, 1, {"new_tokens": 18}, "has 18 new tokens, but its steps write 16"),
    "fewer tokens of a run": (RUNS, 1, {"new_tokens": 9}, "has 9 new tokens, but its steps write 16"),
    "ids of a run": (RUNS, 1, {"ids": [1, 2]}, "has new_tokens 16, but 2 tokens in ids"),
    "ids of a prompt": (RUNS, 1, {"prompt_ids": [1]}, "has prompt_tokens 8, but 1 tokens in prompt_ids"),
    "the mean": (RUNS, 1, {"mean_acceptance_length": 13369.0}, "mean_acceptance_length 13,369, but its steps make 4"),
    "seconds of the prompt": (RUNS, 1, {"prefill_seconds": 7.0}, "prefill_seconds 7, but its steps make 0"),
    "seconds of a run": (RUNS, 1, {"decode_seconds": 7.0}, "decode_seconds 7, but its steps make 0"),
    "experts": (STEPS, LAST, {"experts": 9.0}, ""),
    "an entropy": (STEPS, LAST, {"entropy": 65.0}, "column entropy must hold numbers from 0 to 64"),
    "a gap in the nodes": (NODES, 199, {"node": 99}, "is node 60 of its step"),
    "a depth": (NODES, 199, {"depth": 3}, "has depth 3, but 2 by its parent"),
    "a second root": (NODES, 199, {"role": "root"}, "must have the role root"),
    "a root that is a guess": (NODES, TREE, {"role": "verify"}, "must have the role root"),
    "an accepted cell": (NODES, 199, {"role": "explore", "accepted": True}, "is accepted, but is no guess"),
    "an orphan": (NODES, 199, {"accepted": True, "judged": True}, "is accepted, but its parent is not"),
    "a judgement of nobody": (NODES, 199, {"judged": True}, "was judged, but"),
    "a place among siblings": (NODES, 199, {"sibling": 1}, "has sibling 1, but is guess 0"),
    "another token": (NODES, 140, {"token": 4}, "is accepted as token 4, but the target wanted 3"),
    "two accepted guesses": (NODES, 141, {"accepted": True}, "row 141 (run 1, step 3, node 1) is accepted beside"),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_first_wrong_row_is_named(tables: Tables, name: str) -> None:
    """A rate of 13,369 would come out of a chart, with nobody to see why."""
    table, row, cells, sentence = WRONG[name]
    check(tables)
    wrong = changed(tables, table, row, **cells)
    if name == "experts":
        wrong, sentence = changed(wrong, RUNS, 1, experts=8), "reads 9 experts of 8"
    with pytest.raises(TraceError) as caught:
        check(wrong)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)
    assert "column" in sentence or "row" in sentence or f"{table}: row {row + 1} (run 1" in str(caught.value)


def test_steps_and_their_nodes_must_agree(tables: Tables) -> None:
    """A whole run of numbers that agree among themselves is no better than one."""
    more = {"accepted": 3, "written": 4}
    wrong = changed(tables, STEPS, LAST, **more)
    wrong = changed(wrong, RUNS, 1, accepted=13, new_tokens=17, ids=[1] * 17, mean_acceptance_length=4.25)
    with pytest.raises(TraceError, match=r"steps: row 20 \(run 1, step 3\) has accepted 3, but 2 by its nodes"):
        check(wrong)


def test_no_change_of_a_number_makes_an_impossible_figure(tables: Tables) -> None:
    """Whatever is read gives shares from 0 to 1 and no more tokens per step than a step can write."""
    chance, read = random.Random(7), 0
    numbers = [(t, f.name) for t in (RUNS, STEPS, NODES) for f in SCHEMAS[t] if pa.types.is_primitive(f.type)]
    for _ in range(100):
        table, column = chance.choice(numbers)
        kind = SCHEMAS[table].field(column).type
        value = chance.choice((True, False)) if pa.types.is_boolean(kind) else chance.choice((0, 1, 2, 10**6, 2**53))
        wrong = changed(tables, table, chance.randrange(len(tables[table])), **{column: value})
        try:
            check(wrong)
        except TraceError as error:
            assert "\n" not in str(error)
            continue
        read += 1
        selection = Selection.of(*wrong.values())
        for key in METRICS:
            result = measure(key, selection)
            if result["unit"] == "share" and result["value"] is not None:
                assert 0 <= result["value"] <= 1, (key, table, column, value)
            if result["unit"] == "tokens" and result["value"] is not None:
                assert result["value"] <= 7, (key, table, column, value)
    assert read > 10


@pytest.mark.slow
def test_a_million_nodes_are_checked_at_once() -> None:
    """While a folder is read, its visitor waits."""
    tables = made_tables(1000, 250, 3)
    began = time.process_time()
    check_tables(*tables.values())
    assert time.process_time() - began < 1.0
