"""Evaluates on several processes or machines, with Ray Data: workers that hold the model answer questions.

Answers come back through Ray and are written by the process that requested them, so machines need no common disk.
"""

from __future__ import annotations

import logging
import os
import socket
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import torch

from decoding.errors import ParamError, SpecscopeError
from decoding.installation import required

from ..store.schema import SCHEMAS
from ..store.tables import RunTables, by_name, joined
from .evaluation import Answers
from .plan import EvaluationPlan
from .question import Answered, answer_question, check_engine, warm_up

_NOTHING = Answered(joined([]), {})
_PATIENCE = 5.0  # seconds for a cluster to answer
_STAYS = "finished questions are kept: the same command resumes after them"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the workers run, and the resources of each."""

    address: str | None = None  # None: a cluster of this machine, started for the evaluation
    workers: int = 2
    num_gpus: float = 0.0
    threads: int = 1


class Worker:
    """Holds the model, in a process of Ray's, and answers questions."""

    def __init__(self, model: str, flags: Mapping[str, Any], threads: int, plan: EvaluationPlan) -> None:
        torch.set_num_threads(threads)
        self._plan, self._refusal = plan, ""
        try:
            from decoding.loader import load

            self._engine = load(model, **flags)
            check_engine(self._engine, plan)
            warm_up(self._engine, plan)
        except SpecscopeError as error:  # an error here would be tried again and again
            self._refusal = str(error)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Answer a batch of questions."""
        numbers = [int(number) for number in batch["number"]]
        answers = [
            _NOTHING if self._refusal else answer_question(self._engine, self._plan, number) for number in numbers
        ]
        return {
            "number": numbers,
            **{name: [_packed(table) for table in tables] for name, tables in _columns(answers).items()},
            "traces": [[*answered.traces] for answered in answers],
            "files": [[*answered.traces.values()] for answered in answers],
            "refusal": [self._refusal] * len(numbers),
            "process": [os.getpid()] * len(numbers),
        }


def _columns(answers: Sequence[Answered]) -> dict[str, list[pa.Table]]:
    rows = [by_name(answered.tables) for answered in answers]
    return {name: [row[name] for row in rows] for name in SCHEMAS}


def _packed(table: pa.Table) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)
    packed: bytes = out.getvalue().to_pybytes()
    return packed


def _unpacked(row: Mapping[str, Any]) -> Answered:
    """Unpack what a worker answered from its row."""
    tables = RunTables(*(pa.ipc.open_stream(row[name]).read_all() for name in SCHEMAS))
    return Answered(tables, dict(zip(row["traces"], row["files"], strict=True)))


def on_ray(cluster: Cluster, model: str, flags: Mapping[str, Any]) -> Answers:
    """Let workers answer, each with a model that it loads itself; answers come as they are ready."""
    _import_ray()

    def answers(plan: EvaluationPlan, numbers: Sequence[int]) -> Iterator[tuple[int, Answered]]:
        for number, answered, _ in ray_answers(cluster, model, flags, plan, numbers):
            yield number, answered

    return answers


def ray_answers(
    cluster: Cluster, model: str, flags: Mapping[str, Any], plan: EvaluationPlan, numbers: Sequence[int]
) -> Iterator[tuple[int, Answered, int]]:
    """Yield the answers, each with the id of the process that gave it."""
    ray, data = _import_ray()
    begun = not ray.is_initialized()
    try:
        if begun:
            start(cluster)
        questions = data.from_items([{"number": number} for number in numbers], override_num_blocks=len(numbers))
        answered = questions.map_batches(
            Worker,
            fn_constructor_args=(model, dict(flags), cluster.threads, plan),
            batch_size=1,
            concurrency=min(cluster.workers, len(numbers)),
            num_cpus=cluster.threads if not cluster.num_gpus else None,
            num_gpus=cluster.num_gpus or None,
        )
        for row in answered.iter_rows():
            if row["refusal"]:
                raise ParamError(row["refusal"])
            yield int(row["number"]), _unpacked(row), int(row["process"])
    except (ray.exceptions.RayError, ConnectionError, RuntimeError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[-1][:200]
        raise ParamError(f"the Ray cluster failed ({reason}); {_STAYS}") from None
    finally:
        if begun:
            ray.shutdown()


def start(cluster: Cluster) -> None:
    """Start a cluster on this machine, without a dashboard, or join the one at the address."""
    ray, _ = _import_ray()
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if cluster.address is None:
        gpus = -(-int(cluster.num_gpus * cluster.workers * 1000) // 1000) or None
        cpus = cluster.workers * cluster.threads
        ray.init(num_cpus=cpus, num_gpus=gpus, include_dashboard=False, **quiet)
    else:
        _check_reachable(cluster.address)
        ray.init(address=cluster.address, **quiet)


def _check_reachable(address: str) -> None:
    """Raise ParamError if nothing listens there: Ray itself would retry for minutes."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not colon or not port.isdecimal():
        return  # "auto", which Ray answers at once
    try:
        socket.create_connection((host, int(port)), _PATIENCE).close()
    except (OSError, OverflowError):
        raise ParamError(
            f"no Ray cluster answers at {address[:60]!r}: start one with `ray start --head`, or leave the address out"
        ) from None


def _import_ray() -> tuple[Any, Any]:
    """Import Ray and Ray Data, without usage reports."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # it would write about every worker's start and end
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what Ray itself calls deprecated
        with required("evaluating on several processes"):
            import ray
            import ray.data
        context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = False  # a finished question is written at once
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    return ray, ray.data
