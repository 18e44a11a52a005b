"""A stranger's query runs in a process that can be killed, and is answered as it would be here."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis.store import query_process
from analysis.store.query import ChosenSteps, Shown, answer_query
from analysis.store.query_process import QueryProcess
from analysis.store.shared_tables import SharedTables
from analysis.store.sql import QueryBounds
from decoding.errors import ParamError

from .made_tables import ALL, made_tables

ROOT = Path(__file__).parents[2]
MEMORY = 4 * 2**30
TABLES = SharedTables(made_tables())


def hanging() -> str:
    """A query that DuckDB's parser doubles forty times: CASE copies what it compares, and nobody can look before."""
    text = "run"
    for _ in range(40):
        text = f"CASE {text} WHEN 1 THEN 2 WHEN 3 THEN 4 END"
    return f"SELECT {text} FROM runs"


@pytest.fixture(scope="module")
def process() -> Iterator[QueryProcess]:
    process = QueryProcess(MEMORY)
    yield process
    assert process.is_running  # whatever it was asked here


@pytest.mark.slow
def test_steps_and_tables_are_those_of_the_same_query_here(process: QueryProcess) -> None:
    answered, here = process.answer(TABLES, ALL), answer_query(TABLES.tables, ALL)
    assert isinstance(answered, ChosenSteps) and isinstance(here, ChosenSteps) and len(answered) == 60
    assert answered.runs.tolist() == here.runs.tolist() and answered.steps.tolist() == here.steps.tolist()
    answered = process.answer(TABLES, "SELECT category, count(*) AS runs, '<b>\n' AS x FROM runs GROUP BY 1 ORDER BY 1")
    rows = [["chat", 2, "<b>\n"], ["code", 2, "<b>\n"], ["maths", 2, "<b>\n"]]
    assert answered == Shown(["category", "runs", "x"], rows, False)
    answered = process.answer(TABLES, "SELECT run, step FROM steps WHERE run < 0")
    assert isinstance(answered, ChosenSteps) and len(answered) == 0


def test_a_refusal_is_the_same_sentence(process: QueryProcess) -> None:
    for query in ("DROP TABLE runs", "SELECT nothing FROM runs", "SELECT run, step, step FROM steps", "\0", ""):
        with pytest.raises(ParamError) as here:
            answer_query(TABLES.tables, query)
        with pytest.raises(ParamError) as apart:
            process.answer(TABLES, query)
        assert str(apart.value) == str(here.value)


def test_a_query_that_nothing_interrupts_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would go on for hours, long after its visitor has left, and grow all the while."""
    process = QueryProcess(MEMORY)
    process.answer(TABLES, "SELECT 1")
    monkeypatch.setattr(query_process, "SELECTED", QueryBounds(seconds=0.3))
    monkeypatch.setattr(query_process, "_GRACE", 0.0)
    began = time.monotonic()
    with pytest.raises(ParamError, match="took longer"):
        process.answer(TABLES, hanging())
    assert time.monotonic() - began < 3.0 and not process.is_running


@pytest.mark.skipif(sys.platform == "win32", reason="memory is bounded by what Unix offers")
def test_a_query_that_takes_too_much_memory_ends_its_process_alone() -> None:
    """DuckDB's own bound holds for the data, not for what a query is parsed and planned into."""
    process = QueryProcess(MEMORY // 100)
    with pytest.raises(ParamError, match="more memory"):
        process.answer(TABLES, hanging())


def test_the_process_is_light() -> None:
    """There may be two of them beside a server that holds a model."""
    code = "import sys, analysis.store.query_process; "
    code += "print([m for m in ('torch', 'gradio', 'transformers', 'plotly', 'app', 'viz') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
