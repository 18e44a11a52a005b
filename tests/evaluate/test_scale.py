"""Evaluations on a cluster of Ray's, here one of this machine with two workers."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from analysis.evaluate.evaluation import evaluate, in_this_process
from analysis.evaluate.plan import EvaluationPlan, make_plan
from analysis.evaluate.question import Answered
from analysis.evaluate.scale import Cluster, on_ray, ray_answers, start
from analysis.prompts.toy import TASKS
from analysis.store.folder import read_folder
from decoding.errors import ExtraError, ParamError
from decoding.toy import toy

from .test_evaluation import ABOUT, without_times

pytestmark = pytest.mark.filterwarnings("ignore")  # of Ray's own, of which there are many


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Yield two workers for all tests of this file: a cluster takes seconds to start.

    Ray's workers are as important as other tests: with the niceness that it gives them, 15, they took six minutes.
    """
    ray = pytest.importorskip("ray", reason="the extra [scale] is not installed")
    chosen = Cluster(workers=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")
        start(chosen)
    yield chosen
    ray.shutdown()


@pytest.mark.long
@pytest.mark.slow  # a cluster starts for it; how answers become a folder, test_evaluation.py shows
def test_a_killed_worker_loses_nothing_and_changes_nothing(cluster: Cluster, tmp_path: Path) -> None:
    """The tables are those of one process, row by row; every question comes once, whoever died over it."""
    plan = make_plan(TASKS, ["draft_model", "lookahead"], max_new_tokens=8, sampling={"temperature": 0.8}, traces=True)
    given, killed = list[int](), list[int]()

    def answers(plan: EvaluationPlan, numbers: Sequence[int]) -> Iterator[tuple[int, Answered]]:
        for number, answered, process in ray_answers(cluster, "toy", {}, plan, numbers):
            given.append(number)
            yield number, answered
            if not killed:
                killed.append(process)
                os.kill(process, signal.SIGKILL)

    evaluate(plan, tmp_path / "ray", answers, ABOUT)
    evaluate(plan, tmp_path / "one", in_this_process(toy()), ABOUT)
    assert sorted(given) == [*range(len(TASKS))] and killed and killed[0] != os.getpid()
    ours, theirs = read_folder(tmp_path / "one"), read_folder(tmp_path / "ray")
    assert without_times(theirs) == without_times(ours)
    assert all((theirs.path / name).is_file() for name in theirs.runs["trace"].to_pylist())


@pytest.mark.slow
def test_what_a_worker_lacks_is_a_sentence_here(cluster: Cluster, tmp_path: Path) -> None:
    """An error while a worker starts would be tried again for ever."""
    plan = make_plan(TASKS[:2], ["medusa"], max_new_tokens=8)
    with pytest.raises(ParamError, match="medusa needs"):
        evaluate(plan, tmp_path / "lacking", on_ray(cluster, "toy", {}), ABOUT)


@pytest.mark.slow
def test_a_cluster_that_does_not_answer_is_a_sentence() -> None:
    """Ray goes on trying for minutes, and writes a page of warnings."""
    pytest.importorskip("ray", reason="the extra [scale] is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(ParamError, match="no Ray cluster answers"):
            start(Cluster(address))


def test_without_ray_a_sentence_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ExtraError, match=r"\[scale\]"):
        on_ray(Cluster(), "toy", {})
