"""Processes for queries stay warm, and one that was killed costs its own visitor a sentence."""

from __future__ import annotations

import threading

import pytest

from analysis.store import query_process
from analysis.store.query import Shown
from analysis.store.query_process import QueryProcess
from analysis.store.shared_tables import SharedTables
from analysis.store.sql import QueryBounds
from app.debug import query_workers
from app.debug.query_workers import QueryWorkers
from decoding.errors import ParamError
from tests.evaluate.made_tables import made_tables
from tests.evaluate.test_query_process import hanging

TABLES = SharedTables(made_tables())
COUNT = "SELECT count(*) AS n FROM steps"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[QueryProcess]:
    """Return the processes that were started."""
    processes = list[QueryProcess]()

    def start(memory: int) -> QueryProcess:
        processes.append(QueryProcess(memory))
        return processes[-1]

    monkeypatch.setattr(query_workers, "QueryProcess", start)
    return processes


def test_one_process_answers_query_after_query(started: list[QueryProcess]) -> None:
    workers = QueryWorkers()
    assert not started
    workers.start()
    for _ in range(3):
        assert workers.answer(TABLES, COUNT) == Shown(["n"], [[60]], False)
    with pytest.raises(ParamError):
        workers.answer(TABLES, "DROP TABLE runs")
    workers.start()
    assert len(started) == 1


def test_a_killed_process_is_replaced_at_once(started: list[QueryProcess], monkeypatch: pytest.MonkeyPatch) -> None:
    workers = QueryWorkers()
    workers.answer(TABLES, COUNT)
    with monkeypatch.context() as short:
        short.setattr(query_process, "SELECTED", QueryBounds(seconds=0.2))
        short.setattr(query_process, "_GRACE", 0.0)
        with pytest.raises(ParamError, match="took longer"):
            workers.answer(TABLES, hanging())
    assert [process.is_running for process in started] == [False, True]
    started[1]._child._process.kill()  # by somebody else, while nobody asks
    started[1]._child._process.wait()
    assert workers.answer(TABLES, COUNT) == Shown(["n"], [[60]], False) and len(started) == 3


def test_a_slow_query_keeps_no_other_waiting(started: list[QueryProcess], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_process, "_GRACE", 30.0)
    workers, sentences = QueryWorkers(), list[str]()

    def ask() -> None:
        try:
            workers.answer(TABLES, hanging())
        except ParamError as error:
            sentences.append(str(error))

    slow = threading.Thread(target=ask)
    slow.start()
    while not started:
        pass
    assert workers.answer(TABLES, COUNT) == Shown(["n"], [[60]], False)
    assert slow.is_alive() and len(started) == 2
    started[0]._child._process.kill()
    slow.join()
    assert len(sentences) == 1
