"""One model's training: the steps, what is kept of them, and going on after a kill."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ..errors import ParamError
from .batches import Batch, Rows, pack
from .language.kinds import DRILLED, long_training_sample
from .language.sample import Sample
from .optimizer import Optimizers, rate_share

Tell = Callable[[str, float], None]
Draw = Callable[[Random, float], Sample]  # a conversation, given the share of the training that is done

_ROWS = 256
_KEEP_SECONDS = 120.0  # between two checkpoints: what a kill can cost


@dataclass(frozen=True, slots=True)
class Recipe:
    """A model's shape, and how it is trained."""

    name: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    intermediate: int
    tied: bool
    steps: int
    lines: int  # per step, all of
    length: int  # tokens, questions included; a longer conversation is passed over
    muon_rate: float
    adam_rate: float
    long_every: int = 10  # one step in so many has lines twice as long, and conversations to fill them
    compiled: bool = True  # a minute at the start, a third less time for every step


class Trainer:
    """Trains a model by its recipe in `folder`, from where an earlier call has stopped.

    Every step draws its own conversations from (seed, step), so a resumed training sees exactly what an unbroken one
    would have seen. With a teacher, the model learns the teacher's distributions instead of the texts' tokens.
    """

    def __init__(
        self,
        recipe: Recipe,
        model: Any,
        rows: Rows,
        draw: Draw,
        folder: Path,
        seed: int,
        *,
        teacher: Any = None,
        keep: float = _KEEP_SECONDS,
    ) -> None:
        self.recipe, self.model, self.folder = recipe, model, folder
        self._rows, self._draw, self._seed, self._teacher = rows, draw, seed, teacher
        self._keep_seconds = keep
        self._device = next(model.parameters()).device
        self._optimizers = Optimizers(model, recipe.muon_rate, recipe.adam_rate)
        self._body = _body(model, compiled=recipe.compiled)
        self._body_of_teacher = None if teacher is None else _body(teacher, compiled=recipe.compiled)
        self.step = 0
        self.seconds = 0.0  # of training, over all calls
        self.seen = 0  # tokens read

    def run(self, tell: Tell) -> None:
        """Train to the end; `tell` hears the loss, the time left and the share done."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._resume()
        begin = kept = time.monotonic()
        before = self.seconds
        with (self.folder / "log.jsonl").open("a", encoding="utf-8") as log:
            while self.step < self.recipe.steps:
                loss = self._train_step()
                now = time.monotonic()
                self.seconds = before + now - begin
                entry = {"step": self.step, "loss": loss, "seconds": self.seconds, "tokens": self.seen}
                log.write(json.dumps(entry) + "\n")
                tell(self._news(loss), self.step / self.recipe.steps)
                if now - kept > self._keep_seconds or self.step == self.recipe.steps:
                    log.flush()
                    self._keep()
                    kept = now

    def _train_step(self) -> float:
        """One update; the mean loss per learnt token before it, in nats."""
        recipe, share = self.recipe, self.step / self.recipe.steps
        rng = Random(f"{self._seed}/{self.step}")
        if self.step % recipe.long_every == 0 and share > DRILLED:
            batch = pack(self._rows, lambda: long_training_sample(rng), recipe.lines // 2, recipe.length * 2)
        else:
            batch = pack(self._rows, lambda: self._draw(rng, share), recipe.lines, recipe.length)
        loss = self.loss(batch)
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizers.step(rate_share(self.step, recipe.steps))
        self.seen += batch.ids.numel()
        self.step += 1
        return loss.item()

    def loss(self, batch: Batch) -> Tensor:
        """The mean loss over the learnt tokens of a batch."""
        logits = self._logits(self.model, self._body, batch)
        if self._teacher is None:
            return functional.cross_entropy(logits, batch.answers.to(self._device))
        with torch.no_grad():
            wanted = self._logits(self._teacher, self._body_of_teacher, batch).softmax(-1)
        return functional.cross_entropy(logits, wanted)

    def _logits(self, model: Any, body: Any, batch: Batch) -> Tensor:
        """The logits where they are asked for only: the output layer is a fifth of the work elsewhere."""
        ids, positions = batch.ids.to(self._device), batch.positions.to(self._device)
        with torch.autocast(self._device.type, torch.bfloat16):
            hidden = body(input_ids=ids, position_ids=positions, use_cache=False).last_hidden_state
            # Rounded up, their numbers are few: for every new one a kernel would be made, and kept.
            asked = functional.pad(batch.asked, (0, -len(batch.asked) % _ROWS)).to(self._device)
            logits: Tensor = model.lm_head(hidden.flatten(0, 1)[asked])[: len(batch.asked)]
        return logits.float()

    def _news(self, loss: float) -> str:
        left = self.seconds / self.step * (self.recipe.steps - self.step)
        speed = self.seen / self.seconds
        return f"{self.recipe.name}: loss {loss:.2f}, {speed:,.0f} tokens/s, {left / 60:.0f} min left"

    def _keep(self) -> None:
        """Write the checkpoint whole or not at all."""
        state = {
            "recipe": asdict(self.recipe),
            "seed": self._seed,
            "step": self.step,
            "seconds": self.seconds,
            "seen": self.seen,
            "model": self.model.state_dict(),
            "optimizers": self._optimizers.state(),
        }
        fresh = self.folder / "checkpoint.new"
        torch.save(state, fresh)
        fresh.replace(self.folder / "checkpoint.pt")

    def _resume(self) -> None:
        path = self.folder / "checkpoint.pt"
        if not path.is_file():
            return
        try:
            state = torch.load(path, map_location=self._device, weights_only=True)
        except Exception:  # a damaged file raises errors of many kinds
            raise ParamError(f"{path} is damaged: delete it to train {self.recipe.name} anew") from None
        if state["recipe"] != asdict(self.recipe) or state["seed"] != self._seed:
            raise ParamError(f"{path} is of another recipe or seed: delete it, or name another folder")
        self.model.load_state_dict(state["model"])
        self._optimizers.restore(state["optimizers"])
        self.step, self.seconds, self.seen = state["step"], state["seconds"], state["seen"]
        _cut_log(self.folder / "log.jsonl", self.step)


def read_log(path: Path) -> list[dict[str, float]]:
    """The entries of a log, one a step; a line cut off by a kill is left out."""
    return list(_entries(path))


def _entries(path: Path) -> Iterator[dict[str, float]]:
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        try:
            yield json.loads(line)
        except ValueError:
            return


def _cut_log(path: Path, step: int) -> None:
    """Drop what the log says of steps behind the checkpoint: they come again."""
    kept = [entry for entry in _entries(path) if entry["step"] <= step]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in kept), encoding="utf-8")


def _body(model: Any, *, compiled: bool) -> Any:
    """The model without its output layer, compiled if that is wanted and a compiler is at hand."""
    can = next(model.parameters()).is_cuda or shutil.which(os.environ.get("CXX", "g++")) is not None
    return torch.compile(model.model, dynamic=False) if compiled and can else model.model
