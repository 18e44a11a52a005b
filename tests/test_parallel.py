"""Ranks in processes of their own write what one process writes, and end together."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

from decoding.native.build import library
from decoding.trace.file import read_trace
from decoding.types import Role, Step, Timing, Trace
from tests import ROOT
from tests.cli.conftest import Command, command
from tests.rank_worker import ON_DECODERS, ON_TOYS, run_all, run_and_die
from tests.tiers import choose, slow
from tools.page import free_port
from viz.cache_slots import cache_state

__all__ = ["command"]
TOGETHER = [*ON_TOYS, *ON_DECODERS]


def start(act: Callable[[Path, int, int, int], None], folder: Path, count: int) -> list[ForkServerProcess]:
    """Return the ranks of a world, without torchrun, which would end the others itself when one ends."""
    server = get_context("forkserver")
    server.set_forkserver_preload(["tests.rank_server"])
    port = free_port()
    ranks = [server.Process(target=act, args=(folder, rank, count, port)) for rank in range(count)]
    for rank in ranks:
        rank.start()
    return ranks


class World:
    """What the ranks of a world wrote down."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.count = folder, count
        for rank in start(run_all, folder, count):
            rank.join(120)
            assert rank.exitcode == 0
        self.reports = [json.loads((folder / f"report.{rank}.json").read_text()) for rank in range(count)]
        self.cases = TOGETHER if count == 2 else ON_TOYS
        # By case and rank.
        self.traces = [
            [read_trace(folder / f"{case}.{rank}.jsonl") for rank in range(count)] for case in range(len(self.cases))
        ]


@pytest.fixture(scope="module", params=choose([2, 3], [2]))  # how three share a tree, test_shares.py shows
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    """Return every case, run by two and by three ranks."""
    return World(tmp_path_factory.mktemp("ranks"), request.param)


@cache
def alone(case: int) -> Trace:
    """Return the same by one process."""
    run = TOGETHER[case].run()
    for _ in run:
        pass
    return run.trace


def common(steps: Sequence[Step]) -> list[Step]:
    """Return steps without what ranks may differ in."""
    return [replace(step, timing=Timing(), pending=0, fed=0, ranks=(), exchanged=0) for step in steps]


@slow  # processes of its own
def test_ranks_write_what_one_process_writes(world: World) -> None:
    """A wrong share, a choice of the wrong rank, a token that was never read, a draw at the wrong place."""
    for number, case in enumerate(world.cases):
        whole = alone(number)
        for trace in world.traces[number]:
            assert trace.ids == whole.ids, case
            # Compiled code gives a row the same numbers whatever is read with it; torch's kernels may differ in the
            # last bits, and so may choices where nobody walks.
            if case.model == "toy" or library() is not None:
                assert common(trace.steps) == common(whole.steps), case
            assert trace.summary and whole.summary and trace.summary.finish == whole.summary.finish


@slow  # processes of its own
def test_accepted_guesses_come_from_all_ranks(world: World) -> None:
    """Equality proves little where one rank reads all that is accepted."""
    owners = {step.ranks[node][0] for traces in world.traces for step in traces[0].steps for node in step.path}
    assert owners == set(range(world.count))


@slow  # processes of its own
def test_the_record_says_who_read_what(world: World) -> None:
    """Rank 0's own rows, and those of the others as their records have them."""
    for traces in world.traces:
        assert {trace.header.ranks for trace in traces} == {world.count}
        for steps in zip(*(trace.steps for trace in traces), strict=True):
            assert len({step.ranks for step in steps}) == 1
            for rank, step in enumerate(steps):
                assert step.fed - step.pending == sum(rank in readers for readers in step.ranks)
                assert step.ranks[0] == tuple(range(world.count))


@slow  # processes of its own
def test_accepted_tokens_that_a_rank_lacks_become_pending(world: World) -> None:
    """Their keys and values would be missing from its cache, or be read twice."""
    met = False
    for traces in world.traces:
        for rank, trace in enumerate(traces):
            for step, after in pairwise(trace.steps):
                stored = sum(rank in step.ranks[node] for node in step.path[: len(step.emitted)])
                assert after.pending == len(step.emitted) - stored
                met |= after.pending > 0
            if rank == 0:  # whose cache the record shows
                caches = [cache_state(trace.header, trace.steps, k) for k in range(len(trace.steps))]
                assert [cache.kept for cache in caches[:-1]] == [cache.stored for cache in caches[1:]]
    assert met


@slow  # processes of its own
def test_bytes_are_those_of_the_exchange(world: World) -> None:
    """The number that scripts rely on, counted where the tensors go: 4 bytes a node, and a few beside them."""
    for number, case in enumerate(world.cases):
        steps = world.traces[number][0].steps
        counted, hello = world.reports[0]["counted"][number]
        assert sum(step.exchanged for step in steps) == counted
        assert hello == 16 * world.count
        for step in steps:
            chosen = [
                [node for node, readers in enumerate(step.ranks) if readers[0] == rank] for rank in range(world.count)
            ]
            numbers = [
                sum(1 if not case.sampling or step.roles[node] is Role.EXPLORE else 2 for node in nodes)
                for nodes in chosen
            ]
            assert step.exchanged == 4 * world.count * (2 + max(numbers))


@slow  # processes of its own
def test_all_ranks_end_at_the_same_step(world: World) -> None:
    """One that goes on alone waits for the others for ever."""
    for name, expected in (
        ("cancelled by the last", ["cancelled", 5]),
        ("out of time on the last", ["time", 1]),
        ("out of time in the prompt", ["time", 0]),
    ):
        assert [report["special"][name] for report in world.reports] == [expected] * world.count


@slow  # processes of its own
def test_ranks_that_differ_are_refused(world: World) -> None:
    """They would write a text that is nobody's."""
    for report in world.reports:
        assert report["special"]["another seed"].startswith("RankError: the ranks differ in their arguments")
        assert report["special"]["another guess"].startswith("RankError: the ranks of this run drafted different")


@slow  # processes of its own
@pytest.mark.parametrize("method", ["medusa", "kangaroo", "draft_model", "ouroboros"])
def test_a_method_that_does_not_split_says_so(world: World, method: str) -> None:
    """Run whole on every rank it would take the devices and give nothing for them."""
    for report in world.reports:
        assert report["special"][f"refused {method}"].startswith(f"ParamError: {method} does not split over ranks: ")


@slow  # processes of its own
def test_what_ranks_cannot_judge_or_record_is_refused(world: World) -> None:
    """Half a record would look like a whole one; a method of one's own may sample guesses too."""
    for report in world.reports:
        assert "choose record light" in report["special"]["refused jacobi"]
        assert "with a distribution" in report["special"]["refused q"]
        assert "torchrun" in report["special"]["no ranks at all"]


@pytest.mark.slow
def test_a_killed_rank_ends_the_others(tmp_path: Path) -> None:
    """They must neither wait for it nor end with a traceback."""
    first, last = start(run_and_die, tmp_path, 2)
    last.join(60)
    first.join(60)
    assert (first.exitcode, last.exitcode) == (2, -signal.SIGKILL)
    errors = (tmp_path / "err.0").read_text()
    assert errors.startswith("specscope: another rank of this run has ended") and errors.count("\n") == 1


@pytest.mark.slow  # ranks are started without it above
def test_json_through_torchrun(tmp_path: Path, command: Command) -> None:
    """Scripts read one object, of which rank 0 alone is the author."""
    arguments = ("run", "--model", "toy", "--method", "lookahead", "--max-new-tokens", "24", "--json")
    place = str(tmp_path / "run.jsonl")
    torchrun = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(free_port()))
    done = subprocess.run(
        [sys.executable, *torchrun, "-m", "decoding", *arguments, "--parallel", "--trace", place],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    together, single = json.loads(done.stdout), command(*arguments).json
    assert together["ids"] == single["ids"] and together["rescore"]["violations"] == 0
    steps = read_trace(place).steps
    assert together["ranks"] == 2 and single["ranks"] == 1 and single["bytes_per_step"] == 0.0
    assert together["bytes_per_step"] == sum(step.exchanged for step in steps) / len(steps) > 0


def test_parallel_says_how_it_is_started(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process alone would wait for ranks that never come."""
    monkeypatch.delenv("RANK", raising=False)
    done = command("run", "--parallel")
    assert (done.code, done.out) == (2, "") and "torchrun --nproc-per-node 2 -m decoding run --parallel" in done.err
