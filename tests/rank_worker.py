"""One rank of the worlds of test_parallel.py: runs every case together with the others, and writes down what it saw."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from cli.main import main as command_line
from decoding.engine import Engine
from decoding.errors import SpecscopeError
from decoding.exchange import hindrance
from decoding.methods import METHODS
from decoding.methods.autoregressive import Autoregressive
from decoding.ranks import Ranks
from decoding.request import find_sampling
from decoding.run import Run
from decoding.trace.file import write_trace
from decoding.tree import Builder
from decoding.types import Draft
from tests.toys import CASES, counted_text, engine

PROMPT = (3, 1, 4, 1, 5, 9, 2, 6)
SAMPLINGS: tuple[Mapping[str, Any], ...] = (
    {},
    {"temperature": 0.9, "top_p": 0.95, "repetition_penalty": 1.1, "seed": 3},
)


class Case(NamedTuple):
    """A run that a world of ranks makes, and one process as well."""

    model: str
    method: str
    params: Mapping[str, Any]
    sampling: Mapping[str, Any]

    def run(self, **options: Any) -> Run:
        """Make it."""
        options |= {"max_new_tokens": 20, "end_tokens": (), "memory": {}, "prefill_chunk": 3}
        return machine(self.model).decode(PROMPT, self.method, self.params, self.sampling, **options)


def splits(method: str, params: Mapping[str, Any], sampling: Mapping[str, Any]) -> bool:
    """Return whether several ranks may read it."""
    kind = METHODS[method]
    return hindrance(kind, kind.Params.parse(params), find_sampling(sampling)) is None


ON_TOYS = [
    Case("toy", method, params, sampling)
    for method, params in CASES
    for sampling in SAMPLINGS
    if splits(method, params, sampling)
]
# One setting of a method each, whose trees branch: the numbers of a real forward pass depend on what is read together.
ON_DECODERS = [
    case._replace(model=model)
    for model in ("float32", "bfloat16")
    for case in {(case.method, bool(case.sampling)): case for case in ON_TOYS}.values()
    if case.method in ("lookahead", "ngrammys", "ouroboros", "rest", "suffix")
]


@cache
def machine(model: str) -> Engine:
    """Return the engine of a case."""
    if model == "toy":
        return engine(counted_text())
    from tests.families import machine as with_parts

    return with_parts("llama", torch.empty(0, dtype=getattr(torch, model)))


class Counted(Ranks):
    """Counts what really goes through the group."""

    counted = 0

    def gather(self, numbers: Sequence[int]) -> list[list[int]]:
        """Return the same, with a sum that is not this class's own."""
        real: Callable[..., Any] = dist.all_gather

        def counting(outputs: list[torch.Tensor], mine: torch.Tensor, **options: Any) -> Any:
            type(self).counted += sum(each.nbytes for each in outputs)
            return real(outputs, mine, **options)

        dist.all_gather = counting  # type: ignore[assignment]
        try:
            return super().gather(numbers)
        finally:
            dist.all_gather = real


class Divided(Autoregressive):
    """Guesses another token on every rank, as a drafter does whose numbers are rounded in another way."""

    rank = 0

    def propose(self) -> Draft:
        """Return the root, and the rank's own number."""
        tree = Builder(self._context.text[-1])
        tree.add(self.rank, 0, "own")
        return tree.draft()


class Doubtful(Autoregressive):
    """Calls its guess a sampled one."""

    def propose(self) -> Draft:
        """Return the root, and a guess with a distribution."""
        tree = Builder(self._context.text[-1])
        tree.add(1, 0, "own")
        return tree.draft((None, torch.full((12,), 1 / 12, dtype=torch.float64)))


def outcome(act: Callable[[], Any]) -> Any:
    """Return what came out, or the sentence of the error."""
    try:
        return act()
    except SpecscopeError as error:
        return f"{type(error).__name__}: {error}"


def ended(run: Run, cancel_at: int | None = None) -> list[Any]:
    """Return how a run ended."""
    for step in run:
        if step.index == cancel_at:
            run.cancel()
    return [run.finish, len(run.steps)]


def special(ranks: Ranks) -> dict[str, Any]:
    """Return what ranks do that do not all want the same."""
    toy, last = machine("toy"), ranks.rank == ranks.count - 1
    long = PROMPT * 8
    refused = [
        ("medusa", {"max_new_tokens": 2}),
        ("kangaroo", {"max_new_tokens": 2}),
        ("draft_model", {"max_new_tokens": 2, "sampling": {"temperature": 1.0}}),
        ("ouroboros", {"max_new_tokens": 2, "sampling": {"temperature": 1.0}}),
        ("jacobi", {"record": "full"}),
        (Doubtful, {}),
    ]
    Divided.rank = ranks.rank
    return {
        "cancelled by the last": ended(toy.decode(PROMPT, ranks=ranks), 3 if last else None),
        "out of time on the last": ended(toy.decode(PROMPT, ranks=ranks, time_budget=1e-9 if last else 1e9)),
        "out of time in the prompt": ended(
            toy.decode(long, ranks=ranks, time_budget=1e-9 if last else 1e9, prefill_chunk=2)
        ),
        "another seed": outcome(lambda: ended(toy.decode(PROMPT, sampling={"seed": int(last)}, ranks=ranks))),
        "another guess": outcome(lambda: ended(toy.decode(PROMPT, Divided, ranks=ranks))),
        **{
            f"refused {getattr(method, 'name', method) if isinstance(method, str) else 'q'}": outcome(
                lambda method=method, options=options: ended(toy.decode(PROMPT, method, ranks=ranks, **options))
            )
            for method, options in refused
        },
        "no ranks at all": outcome(lambda: toy.decode(PROMPT, ranks=2)),  # type: ignore[typeddict-item]
    }


def environment(rank: int, count: int, port: int) -> None:
    """Set what torchrun would tell this rank."""
    names = {"RANK": rank, "WORLD_SIZE": count, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": count, "MASTER_PORT": port}
    os.environ |= {"MASTER_ADDR": "127.0.0.1"} | {name: str(value) for name, value in names.items()}


def run_all(folder: Path, rank: int, count: int, port: int) -> None:
    """Run everything."""
    environment(rank, count, port)
    ranks = Counted.join("cpu")
    counted = []
    for number, case in enumerate([*ON_TOYS, *(ON_DECODERS if count == 2 else [])]):
        run, before = case.run(ranks=ranks), Counted.counted
        first = next(run)
        hello = Counted.counted - before - first.exchanged  # ranks first ask whether they run the same
        for _ in run:
            pass
        counted.append([Counted.counted - before - hello, hello])
        write_trace(run.trace, folder / f"{number}.{rank}.jsonl")
    report = {"counted": counted, "special": special(ranks)}
    (folder / f"report.{rank}.json").write_text(json.dumps(report))
    ranks.leave()


def run_and_die(folder: Path, rank: int, count: int, port: int) -> None:
    """Type the command; the last rank is killed while it runs."""
    environment(rank, count, port)
    if rank == count - 1:
        calls = iter(range(20))
        gather = Ranks.gather

        def dying(ranks: Ranks, numbers: Sequence[int]) -> list[list[int]]:
            if next(calls, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            return gather(ranks, numbers)

        Ranks.gather = dying  # type: ignore[method-assign]
    with (folder / f"out.{rank}").open("w") as out, (folder / f"err.{rank}").open("w") as err:
        sys.stdout, sys.stderr = out, err
        code = command_line(["run", "--parallel", "--model", "toy", "--max-new-tokens", "200"])
    sys.exit(code)
