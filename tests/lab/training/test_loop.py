"""The training loop: log, checkpoints, and what it says when it cannot go on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from decoding.errors import ModelError, ParamError
from lab.training.batches import Batch
from lab.training.checkpoint import read_log
from lab.training.loop import TrainingBudget, TrainingLoop
from lab.training.memory import memory_advice
from lab.training.optimizers import Group, GroupedAdamW

from .test_medusa import Fixed

BUDGET = TrainingBudget(steps=24, lines=2, length=4)


class Line:
    """Learns one number."""

    about: Mapping[str, Any] = {"kind": "line"}
    distances = 1
    device = torch.device("cpu")

    def __init__(self, error: Exception | None = None, size: float = 1.0) -> None:
        self.measured: list[int] = []
        self.weight, self.error, self.size = nn.Parameter(torch.tensor([5.0])), error, size
        self.groups = {"line": Group({"weight": self.weight}, rate=0.2)}

    def learn(self, batch: Batch, counts: Tensor, share: float) -> dict[str, float]:
        if self.error is not None and share > 0.5:
            raise self.error
        loss = self.weight.square().sum() * self.size * len(batch.ids) / 2
        loss.backward()
        return {"loss": float(loss.detach())}

    def measure(self, batches: Sequence[Batch]) -> dict[str, Any]:
        self.measured += [len(batch.ids) for batch in batches]
        return {"heads": [{"loss": float(self.weight.detach()), "top": [0.1, 0.2, 0.3, 0.4, 0.5], "acceptance": 0.5}]}


def batch() -> Batch:
    ids = torch.arange(8).view(2, 4)
    return Batch(ids, torch.arange(4).expand(2, 4), ids % 4 > 0)


def loop(
    folder: Path, learner: Line | None = None, budget: TrainingBudget = BUDGET, seed: int = 1, **options: Any
) -> TrainingLoop:
    learner = learner or Line()
    optimizer = GroupedAdamW(learner.groups, warm_up=options.pop("warm_up", 4))
    return TrainingLoop(budget, learner, optimizer, Fixed(batch()), folder, seed, measure=learner.measure, **options)


def quiet(what: str, share: float) -> None:
    """Ignore all progress."""


def test_every_step_is_logged_and_some_are_measured(tmp_path: Path) -> None:
    heard: list[tuple[str, float]] = []
    loop(tmp_path).run(lambda what, share: heard.append((what, share)))
    log = read_log(tmp_path / "log.jsonl")
    assert [entry["step"] for entry in log] == list(range(1, 25))
    assert log[-1]["loss"] < log[0]["loss"] and log[-1]["tokens"] == 24 * 8
    assert heard[-1][1] == 1.0 and "min left" in heard[-1][0]


@pytest.mark.parametrize(("steps", "measured"), [(24, [10, 20, 24]), (240, [*range(20, 241, 20)])])
def test_held_out_rows_are_measured_a_dozen_times_at_most(tmp_path: Path, steps: int, measured: list[int]) -> None:
    """In a short training fewer times, or it would take most of its time."""
    loop(tmp_path, budget=TrainingBudget(steps=steps, lines=2, length=4)).run(quiet)
    assert [entry["step"] for entry in read_log(tmp_path / "log.jsonl") if "held_out" in entry] == measured


def test_a_finished_training_is_not_trained_again(tmp_path: Path) -> None:
    loop(tmp_path).run(quiet)
    again = Line()
    loop(tmp_path, again, at_once=1).run(quiet)
    assert float(again.weight.detach()) != 5.0, "the weights came back"
    assert len(read_log(tmp_path / "log.jsonl")) == 24


def test_lines_at_once_change_nothing(tmp_path: Path) -> None:
    one, other = Line(), Line()
    loop(tmp_path / "a", one).run(quiet)
    loop(tmp_path / "b", other, at_once=1).run(quiet)
    assert torch.equal(one.weight, other.weight)
    assert set(one.measured) == {2} and set(other.measured) == {1}, "measuring takes no more memory than learning"
    assert sum(one.measured) == sum(other.measured)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"seed": 2}, "another seed"),
        ({"budget": TrainingBudget(25, 2, 4)}, "another recipe"),
        ({"warm_up": 5}, "another recipe"),
        ({"learner": type("Other", (Line,), {"about": {"kind": "curve"}})()}, "another model or settings"),
    ],
)
def test_a_checkpoint_of_another_training_is_refused(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    loop(tmp_path).run(quiet)
    with pytest.raises(ParamError, match=f"is of {reason}: delete it"):
        loop(tmp_path, **change).run(quiet)


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    loop(tmp_path).run(quiet)
    path = tmp_path / "checkpoint.safetensors"
    for content in (b"", b"no checkpoint", path.read_bytes()[:-3]):
        path.write_bytes(content)
        with pytest.raises(ParamError, match="is damaged"):
            loop(tmp_path).run(quiet)
    about = {"training": loop(tmp_path)._about, "count": {"step": 1, "seconds": 1.0, "tokens": 8}}
    for tensors in (
        {},
        {"weight/line/weight": torch.zeros(7, 7)},
        {"weight/line/weight": torch.zeros(1), "optimizer/x/y": torch.zeros(1)},
    ):
        save_file(tensors, path, {"about": json.dumps(about)})
        with pytest.raises(ParamError, match="is damaged"):
            loop(tmp_path).run(quiet)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 7 bytes."),
    ],
)
def test_where_the_memory_ends_one_sentence_says_what_to_do(tmp_path: Path, error: Exception) -> None:
    """And what was learnt so far is there when it goes on."""
    advice = r"with 2 lines of 4 tokens at once: halve --at-once.*goes on.*anew in another folder.*--length.*--quantise"
    with pytest.raises(ModelError, match=advice):
        loop(tmp_path, Line(error), checkpoint_seconds=0.0).run(quiet)
    resumed = loop(tmp_path, at_once=1)
    resumed.run(quiet)
    assert [entry["step"] for entry in read_log(tmp_path / "log.jsonl")] == list(range(1, 25))


def test_other_errors_are_no_matter_of_memory(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="a bug"):
        loop(tmp_path, Line(RuntimeError("a bug"))).run(quiet)
    with pytest.raises(ModelError, match="for this: eat less"), memory_advice("for this", "eat less"):
        raise MemoryError


def test_a_training_that_explodes_says_so_and_keeps_its_last_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(ParamError, match="no number any more at step 1: lower the rates"):
        loop(tmp_path, Line(size=float("inf"))).run(quiet)
    assert not (tmp_path / "checkpoint.safetensors").exists()


def test_a_log_that_was_cut_off_is_read_up_to_the_cut(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"step": 1}\n{"step": 2}\n{"st')
    assert [entry["step"] for entry in read_log(tmp_path / "log.jsonl")] == [1, 2]
    assert read_log(tmp_path / "missing") == []
    (tmp_path / "log.jsonl").write_text('{"step": 1}\n[]\n')
    assert len(read_log(tmp_path / "log.jsonl")) == 1
