"""The training that heads and adapters share: steps, what is kept of them, and going on after a kill."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import cos, isfinite, pi
from pathlib import Path
from typing import Protocol
from zlib import crc32

import torch
from torch import Tensor, nn

from decoding.errors import ModelError, ParamError
from decoding.types import JSON

from .checkpoint import CHECKPOINT, LOG, cut_log, damaged, read_checkpoint, write_checkpoint
from .conversations import Tell
from .rows import Batch, smaller
from .sources import Source

_KEEP_SECONDS = 120.0  # between two checkpoints: what a kill can cost
_LOOKS = 12  # measurements on held-out rows while it trains
_ADVICE = (
    "halve --at-once, and the training goes on from its last checkpoint, or train anew in another folder with a "
    "shorter --length or, on a GPU, with --quantise"
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How long and how fast anything is trained."""

    steps: int
    lines: int  # per step
    length: int  # tokens of a line
    warm_up: int  # steps until the full rate
    clip: float = 1.0  # the longest gradient of a group


@dataclass(frozen=True, slots=True)
class Group:
    """Weights that learn at one rate."""

    weights: Mapping[str, nn.Parameter]
    rate: float
    start: float = 0.0  # the share of the training before which they rest
    decay: float = 0.0  # of the weights


class Learner(Protocol):
    """What the loop trains."""

    about: Mapping[str, JSON]  # what must be the same where a training goes on
    groups: Mapping[str, Group]
    distances: int  # how far ahead of a place its labels go
    device: torch.device

    def learn(self, batch: Batch, counts: Tensor, share: float) -> Mapping[str, float]:
        """Leave gradients with the weights; the losses, as parts of means over `counts` labels per distance."""
        ...

    def measure(self, batches: Sequence[Batch]) -> Mapping[str, JSON]:
        """How good it is on rows that it does not learn from."""
        ...


class Loop:
    """Trains a learner in `folder`, from where an earlier call has stopped."""

    def __init__(
        self,
        recipe: Recipe,
        learner: Learner,
        source: Source,
        folder: Path,
        seed: int,
        *,
        at_once: int | None = None,  # lines in memory at a time; the gradients are the same
        keep: float = _KEEP_SECONDS,
    ) -> None:
        self._recipe, self._learner, self._source = recipe, learner, source
        self._folder, self._seed = folder, seed
        self._at_once, self._keep_seconds = at_once or recipe.lines, keep
        groups = learner.groups.values()
        self._optimizer = torch.optim.AdamW(
            [{"params": [*group.weights.values()], "weight_decay": group.decay} for group in groups], betas=(0.9, 0.95)
        )
        about = {"recipe": asdict(recipe), "learner": learner.about, "source": source.about, "seed": seed}
        self._about = json.loads(json.dumps(about))
        self.step, self.seconds, self.tokens = 0, 0.0, 0  # over all calls

    def run(self, tell: Tell) -> None:
        """Train to the end; `tell` hears the loss, the time left and the share done."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._resume()
        begin = kept = time.monotonic()
        before, steps = self.seconds, self._recipe.steps
        few = smaller(self._source.held_out[: max(1, len(self._source.held_out) // 4)], self._at_once)
        with (self._folder / LOG).open("a", encoding="utf-8") as log, self._advice():
            while self.step < steps:
                losses = self._train_step()
                if not isfinite(losses["loss"]):
                    raise ParamError(f"the loss is no number any more at step {self.step}: lower the rates")
                entry: dict[str, JSON] = {"step": self.step, "tokens": self.tokens, **losses}
                if self.step % max(1, steps // _LOOKS) == 0 or self.step == steps:
                    entry["held_out"] = self._learner.measure(few)
                now = time.monotonic()
                self.seconds = entry["seconds"] = before + now - begin
                log.write(json.dumps(entry) + "\n")
                tell(self._news(losses["loss"]), self.step / steps)
                if now - kept > self._keep_seconds or self.step == steps:
                    log.flush()
                    self._keep()
                    kept = now

    def _train_step(self) -> dict[str, float]:
        """One update; the mean losses before it."""
        share = self.step / self._recipe.steps
        batch = self._source.draw(self.step)
        counts = batch.counts(self._learner.distances).to(self._learner.device)
        losses: Counter[str] = Counter()
        with seeded(f"{self._seed}/{self.step}", self._learner.device):
            for part in batch.parts(self._at_once):
                losses.update(self._learner.learn(part.to(self._learner.device), counts, share))
        for group, settings in zip(self._learner.groups.values(), self._optimizer.param_groups, strict=True):
            settings["lr"] = group.rate * rate_share(self.step, self._recipe, group.start)
            if share < group.start:
                for weight in group.weights.values():
                    weight.grad = None
            # Each group for itself: a loud one does not silence the others.
            nn.utils.clip_grad_norm_([*group.weights.values()], self._recipe.clip)
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self.tokens += batch.ids.numel()
        self.step += 1
        return dict(losses)

    def _news(self, loss: float) -> str:
        left = self.seconds / self.step * (self._recipe.steps - self.step)
        return f"training: loss {loss:.3g}, {self.tokens / self.seconds:,.0f} tokens/s, {left / 60:.0f} min left"

    @contextmanager
    def _advice(self) -> Iterator[None]:
        with memory_advice(f"with {self._at_once} lines of {self._recipe.length} tokens at once"):
            yield

    def _weights(self) -> dict[str, nn.Parameter]:
        return {f"{name}/{key}": w for name, group in self._learner.groups.items() for key, w in group.weights.items()}

    def _keep(self) -> None:
        tensors: dict[str, Tensor] = {f"weight/{name}": weight for name, weight in self._weights().items()}
        for index, values in self._optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer/{index}/{name}": torch.as_tensor(value) for name, value in values.items()}
        count = {"step": self.step, "seconds": self.seconds, "tokens": self.tokens}
        write_checkpoint(self._folder / CHECKPOINT, tensors, {"training": self._about, "count": count})

    def _resume(self) -> None:
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
                for name, weight in self._weights().items():
                    weight.copy_(tensors[f"weight/{name}"])
            state: dict[int, dict[str, Tensor]] = {}
            for name, tensor in tensors.items():
                kind, _, rest = name.partition("/")
                if kind == "optimizer":
                    index, _, key = rest.partition("/")
                    state.setdefault(int(index), {})[key] = tensor
            self._optimizer.load_state_dict(
                {"state": state, "param_groups": self._optimizer.state_dict()["param_groups"]}
            )
            self.step, self.seconds, self.tokens = (about["count"][name] for name in ("step", "seconds", "tokens"))
        except (KeyError, RuntimeError, ValueError, TypeError):
            raise damaged(path) from None
        cut_log(self._folder / LOG, self.step)


def rate_share(step: int, recipe: Recipe, start: float = 0.0) -> float:
    """The share of the full rate: a straight rise, then half a cosine to nothing; it begins when a group does."""
    first = start * recipe.steps
    done = max(0.0, step - first)
    rise = min(1.0, (done + 1) / max(1, recipe.warm_up))
    return rise * 0.5 * (1 + cos(pi * done / max(1.0, recipe.steps - first)))


@contextmanager
def seeded(seed: str, device: torch.device) -> Iterator[None]:
    """Chance that depends on `seed` alone inside, and is untouched outside."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(crc32(seed.encode()))
        yield


@contextmanager
def memory_advice(what: str, advice: str = _ADVICE) -> Iterator[None]:
    """Turn running out of memory into one sentence that says what to do."""
    sentence = f"the memory does not suffice {what}: {advice}"
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError):
        raise ModelError(sentence) from None
    except RuntimeError as error:  # what torch raises where the memory of the processor ends
        if "can't allocate memory" not in str(error):
            raise
        raise ModelError(sentence) from None


def _difference(old: object, new: Mapping[str, JSON]) -> str:
    """What differs between two trainings, in two words."""
    for part, what in (("seed", "another seed"), ("source", "other data"), ("learner", "another model or settings")):
        if isinstance(old, dict) and old.get(part) != new[part]:
            return what
    return "another recipe"
