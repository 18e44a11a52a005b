"""One model's training: the steps, what is kept of them, and going on after a kill."""

from __future__ import annotations

import copy
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from decoding.errors import ParamError

from ..training.checkpoint import CHECKPOINT, LOG, cut_log, damaged, read_checkpoint, write_checkpoint
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
    compiled: bool = True  # a minute at the start, a quarter less time for every step


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
        self._rows, self._draw, self._seed = rows, draw, seed
        self._keep_seconds = keep
        self._device = next(model.parameters()).device
        self._optimizers = Optimizers(model, recipe.muon_rate, recipe.adam_rate)
        self._fast = _Fast(model, compiled=recipe.compiled)
        self._fast_teacher = None if teacher is None else _Fast(teacher, compiled=recipe.compiled)
        # Compiled, it takes 31 ms of processor time instead of 77.
        self._losses = _quick(_losses, self._device, dynamic=True) if recipe.compiled else _losses
        self.step = 0
        self.seconds = 0.0  # of training, over all calls
        self.seen = 0  # tokens read

    def run(self, tell: Tell) -> None:
        """Train to the end; `tell` hears the loss, the time left and the share done."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._resume()
        begin = kept = time.monotonic()
        before = self.seconds
        with (self.folder / LOG).open("a", encoding="utf-8") as log:
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
        loss = self.learn(batch)
        self._optimizers.step(rate_share(self.step, recipe.steps))
        self._fast.take_weights(self.model)
        self.seen += batch.ids.numel()
        self.step += 1
        return loss

    def learn(self, batch: Batch) -> float:
        """Leave the gradients of a batch with the model; the mean loss over its learnt tokens."""
        logits = self._fast.logits(batch)
        wanted = _rounded_up(batch.answers).to(self._device)
        if self._fast_teacher is not None:
            with torch.no_grad():
                wanted = self._fast_teacher.logits(batch)
        loss: Tensor = self._losses(logits, wanted)[: len(batch.asked)].mean()
        loss.backward()  # type: ignore[no-untyped-call]
        self._fast.hand_gradients(self.model)
        return loss.item()

    def _news(self, loss: float) -> str:
        left = self.seconds / self.step * (self.recipe.steps - self.step)
        speed = self.seen / self.seconds
        return f"{self.recipe.name}: loss {loss:.2f}, {speed:,.0f} tokens/s, {left / 60:.0f} min left"

    def _keep(self) -> None:
        tensors = {f"model/{name}": weight for name, weight in self.model.named_parameters()}
        tensors |= {f"optimizer/{name}": tensor for name, tensor in self._optimizers.state().items()}
        count = {"step": self.step, "seconds": self.seconds, "seen": self.seen}
        about = {"recipe": asdict(self.recipe), "seed": self._seed, "count": count}
        write_checkpoint(self.folder / CHECKPOINT, tensors, about)

    def _resume(self) -> None:
        path = self.folder / CHECKPOINT
        if not path.is_file():
            cut_log(self.folder / LOG, 0)  # of a training that was killed before its first checkpoint
            return
        about, tensors = read_checkpoint(path)
        if (about.get("recipe"), about.get("seed")) != (asdict(self.recipe), self._seed):
            raise ParamError(f"{path} is of another recipe or seed: delete it, or name another folder")
        try:
            with torch.no_grad():
                for name, weight in self.model.named_parameters():
                    weight.copy_(tensors[f"model/{name}"])
            self._optimizers.restore({name[10:]: t for name, t in tensors.items() if name[:10] == "optimizer/"})
            self.step, self.seconds, self.seen = (about["count"][name] for name in ("step", "seconds", "seen"))
        except (KeyError, RuntimeError, ValueError, TypeError):
            raise damaged(path) from None
        self._fast.take_weights(self.model)
        cut_log(self.folder / LOG, self.step)


class _Fast:
    """A model's twin in bfloat16, which computes; the weights that learn stay in float32.

    Half the memory to move in every step.
    """

    def __init__(self, model: Any, *, compiled: bool) -> None:
        self._model = copy.deepcopy(model).to(torch.bfloat16)
        self._device = next(model.parameters()).device
        self._body = _quick(self._model.model, self._device, dynamic=False) if compiled else self._model.model

    def logits(self, batch: Batch) -> Tensor:
        """The logits where they are asked for, and a few rows more; the output layer is a fifth of the work."""
        ids, positions = batch.ids.to(self._device), batch.positions.to(self._device)
        hidden = self._body(input_ids=ids, position_ids=positions, use_cache=False).last_hidden_state
        logits: Tensor = self._model.lm_head(hidden.flatten(0, 1)[_rounded_up(batch.asked).to(self._device)])
        return logits

    def hand_gradients(self, model: Any) -> None:
        """Give the gradients to the weights that learn."""
        for ours, theirs in zip(self._model.parameters(), model.parameters(), strict=True):
            theirs.grad = None if ours.grad is None else ours.grad.float()
            ours.grad = None

    @torch.no_grad()
    def take_weights(self, model: Any) -> None:
        """Take over what was learnt."""
        for ours, theirs in zip(self._model.parameters(), model.parameters(), strict=True):
            ours.copy_(theirs)


def _losses(logits: Tensor, wanted: Tensor) -> Tensor:
    """The loss of every row, in float32: against tokens, or against a teacher's logits."""
    wanted = wanted.float().softmax(-1) if wanted.is_floating_point() else wanted
    return functional.cross_entropy(logits.float(), wanted, reduction="none")


def _rounded_up(places: Tensor) -> Tensor:
    """Padded so that few different lengths come: for every new one a kernel would be made, and kept."""
    return functional.pad(places, (0, -len(places) % _ROWS))


def _quick(work: Any, device: torch.device, *, dynamic: bool) -> Any:
    """The same, compiled where it can be."""
    can = device.type == "cuda" or shutil.which(os.environ.get("CXX", "g++")) is not None
    return torch.compile(work, dynamic=dynamic) if can else work
