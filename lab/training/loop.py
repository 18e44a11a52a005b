"""The training loop: steps, log, checkpoints and progress, for any learner."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Protocol

import torch

from decoding.errors import ParamError
from decoding.model.session import ProgressCallback
from decoding.types import JSON

from .batches import Batch, limit_lines
from .checkpoint import CHECKPOINT, LOG, cut_log, damaged, read_checkpoint, write_checkpoint
from .memory import ADVICE, memory_advice
from .optimizers import Optimizer
from .seeding import seeded
from .sources import Source

_CHECKPOINT_SECONDS = 120.0  # between two checkpoints: what a kill can cost
_MEASUREMENTS = 12  # on held-out rows while it trains, at most
_APART = 10  # steps between two of them: they took most of a short training's time

Measure = Callable[[Sequence[Batch]], Mapping[str, JSON]]


@dataclass(frozen=True, slots=True)
class TrainingBudget:
    """The amount of data that a training reads."""

    steps: int
    lines: int  # per step
    length: int  # tokens of a line


class Learner(Protocol):
    """The interface of what the loop trains."""

    about: Mapping[str, JSON]  # settings that must be the same where a training is resumed
    distances: int  # how far ahead of a position its labels go
    device: torch.device

    def learn(self, batch: Batch, counts: torch.Tensor, share: float) -> Mapping[str, float]:
        """Add the gradients of a batch to the weights, at that share of the training.

        The losses that it returns are parts of means over `counts` labels per distance: those of a whole step, of
        which the batch may be a part. The one named "loss" is what is minimised.
        """
        ...


class TrainingLoop:
    """Trains a learner in `folder`, from where an earlier call stopped.

    A step's batch and random numbers depend on the seed and the step alone, so a resumed training sees exactly the same
    as an uninterrupted one.
    """

    def __init__(
        self,
        budget: TrainingBudget,
        learner: Learner,
        optimizer: Optimizer,
        source: Source,
        folder: Path,
        seed: int,
        *,
        name: str = "training",  # in the progress
        at_once: int | None = None,  # lines in memory at a time; the gradients are the same
        measure: Measure | None = None,  # of held-out rows, for the log, up to a dozen times
        advice: str = ADVICE,  # where the memory ends
        checkpoint_seconds: float = _CHECKPOINT_SECONDS,
    ) -> None:
        self._budget, self._learner, self._optimizer, self._source = budget, learner, optimizer, source
        self._folder, self._seed, self._name, self._measure, self._advice = folder, seed, name, measure, advice
        self._at_once, self._checkpoint_seconds = at_once or budget.lines, checkpoint_seconds
        recipe = {**asdict(budget), **optimizer.about}
        about = {"recipe": recipe, "learner": learner.about, "source": source.about, "seed": seed}
        self._about = json.loads(json.dumps(about))
        self.step, self.seconds, self.tokens = 0, 0.0, 0  # over all calls

    def run(self, progress: ProgressCallback) -> None:
        """Train to the end; `progress` gets the loss with the time left, and the share done."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._resume()
        begin = saved = time.monotonic()
        before, steps = self.seconds, self._budget.steps
        what = f"with {self._at_once} lines of {self._budget.length} tokens at once"
        with (self._folder / LOG).open("a", encoding="utf-8") as log, memory_advice(what, self._advice):
            while self.step < steps:
                losses = self._train_step()
                if not isfinite(losses["loss"]):
                    raise ParamError(f"the loss is no number any more at step {self.step}: lower the rates")
                entry: dict[str, JSON] = {"step": self.step, "tokens": self.tokens, **losses}
                if self._measure and (self.step % max(_APART, steps // _MEASUREMENTS) == 0 or self.step == steps):
                    entry["held_out"] = self._measure(self._held_out())
                now = time.monotonic()
                self.seconds = entry["seconds"] = before + now - begin
                log.write(json.dumps(entry) + "\n")
                progress(self._news(losses["loss"]), self.step / steps)
                if now - saved > self._checkpoint_seconds or self.step == steps:
                    log.flush()
                    self._save()
                    saved = now

    def _train_step(self) -> dict[str, float]:
        """Make one update; return the mean losses before it."""
        batch = self._source.draw(self.step)
        counts = batch.counts(self._learner.distances).to(self._learner.device)
        losses: Counter[str] = Counter()
        with seeded(f"{self._seed}/{self.step}", self._learner.device):
            for part in batch.parts(self._at_once):
                share = self.step / self._budget.steps
                losses.update(self._learner.learn(part.to(self._learner.device), counts, share))
        self._optimizer.step(self.step, self._budget.steps)
        self.tokens += batch.ids.numel()
        self.step += 1
        return dict(losses)

    def _held_out(self) -> list[Batch]:
        """Return a quarter of the held-out rows, no more of them in memory than when learning."""
        held_out = self._source.held_out
        return limit_lines(held_out[: max(1, len(held_out) // 4)], self._at_once)

    def _news(self, loss: float) -> str:
        left = self.seconds / self.step * (self._budget.steps - self.step)
        speed = self.tokens / self.seconds
        return f"{self._name}: loss {loss:.3g}, {speed:,.0f} tokens/s, {left / 60:.0f} min left"

    def _save(self) -> None:
        """Write a checkpoint."""
        tensors = {f"weight/{name}": weight.detach() for name, weight in self._optimizer.weights.items()}
        tensors |= {f"optimizer/{name}": tensor for name, tensor in self._optimizer.state().items()}
        count = {"step": self.step, "seconds": self.seconds, "tokens": self.tokens}
        write_checkpoint(self._folder / CHECKPOINT, tensors, {"training": self._about, "count": count})

    def _resume(self) -> None:
        """Load the last checkpoint, if there is one; refuse one of another training."""
        path = self._folder / CHECKPOINT
        if not path.is_file():
            cut_log(self._folder / LOG, 0)  # of a training that was killed before its first checkpoint
            return
        about, tensors = read_checkpoint(path)
        if about.get("training") != self._about:
            raise ParamError(
                f"{path} is of {_difference(about.get('training'), self._about)}: delete it, or name another folder"
            )
        try:
            with torch.no_grad():
                for name, weight in self._optimizer.weights.items():
                    weight.copy_(tensors[f"weight/{name}"])
            prefix = "optimizer/"
            state = {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
            self._optimizer.restore(state)
            self.step, self.seconds, self.tokens = (about["count"][name] for name in ("step", "seconds", "tokens"))
        except (KeyError, RuntimeError, ValueError, TypeError):
            raise damaged(path) from None
        cut_log(self._folder / LOG, self.step)


def _difference(old: object, new: Mapping[str, JSON]) -> str:
    """Describe what differs between two trainings, in two words."""
    for part, what in (("seed", "another seed"), ("source", "other data"), ("learner", "another model or settings")):
        if isinstance(old, dict) and old.get(part) != new[part]:
            return what
    return "another recipe"
