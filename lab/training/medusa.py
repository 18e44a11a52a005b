"""Trains Medusa heads: alone on a frozen model, or together with it.

Cai et al., 2024, arXiv 2401.10774, sections 3.2 and 3.3.2. At position t the model predicts token t + 1; head k (1..K)
learns token t + k + 1. Its loss counts lambda_k = 0.8^k; together with the model, all heads count lambda_0 times that
beside the model's own loss, which is either that of the tokens or the divergence from the original model's
distributions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from math import pi, sin
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from decoding.parts.heads import HeadWeights, features
from decoding.types import JSON

from .backbone import Backbone, Lora
from .batches import IGNORED, Batch
from .measures import overlap, rank_of
from .optimizers import Group
from .part_folder import save_heads

RANKS = 10  # per head, of which is measured how often each is right
SCHEDULES = ("two-stage", "sine", "constant")
_LOGITS = 2**22  # of one head in memory at a time


@dataclass(frozen=True, slots=True)
class Joint:
    """The settings of the model's training together with its heads."""

    lora: Lora = field(default_factory=Lora)
    rate: float = 5e-4
    weight: float = 0.2  # lambda_0
    schedule: str = "two-stage"  # of lambda_0 and of the adapter: see `MedusaLearner._stage`
    first_stage: float = 0.4  # the share of the training in which the heads warm up alone
    distilled: bool = False  # learn the original model's distributions instead of the tokens


@dataclass(frozen=True, slots=True)
class HeadSettings:
    """The settings of heads and of their training."""

    heads: int = 5
    layers: int = 1
    own_output: bool = False  # an output layer for every head, as in the paper, instead of the model's
    rate: float = 1e-3
    decay: float = 0.8  # lambda_k is its k-th power
    joint: Joint | None = None


class MedusaLearner:
    """Heads on a backbone, as the loop's learner."""

    def __init__(self, backbone: Backbone, settings: HeadSettings, seed: int) -> None:
        self.backbone, self.settings, self.device = backbone, settings, backbone.device
        count, layers, size = settings.heads, settings.layers, backbone.shape.hidden
        to: dict[str, Any] = {"device": backbone.device, "dtype": torch.float32}
        # With blocks that do nothing yet, every head predicts at first what the model does.
        self._weight = nn.Parameter(torch.zeros(layers, count, size, size, **to))
        self._bias = nn.Parameter(torch.zeros(layers, count, size, **to))
        head = backbone.model.get_output_embeddings().weight.detach()
        outputs = count if settings.own_output else 0
        self._output = nn.Parameter(head.to(**to).expand(outputs, -1, -1).clone())
        self._weights = HeadWeights(self._weight, self._bias, self._output, tuple(range(outputs)))
        self.distances = count + 1
        named = {"weight": self._weight, "bias": self._bias} | ({"output": self._output} if outputs else {})
        groups = {"heads": Group(named, settings.rate)}
        if settings.joint is not None:
            backbone.adapt(settings.joint.lora, seed)
            start = settings.joint.first_stage if settings.joint.schedule == "two-stage" else 0.0
            groups["model"] = Group(backbone.adapted, settings.joint.rate, start)
        self.groups: Mapping[str, Group] = groups
        self.about: Mapping[str, JSON] = {"kind": "medusa", "model": backbone.hash, **asdict(settings)}

    def learn(self, batch: Batch, counts: Tensor, share: float) -> dict[str, float]:
        """Leave the gradients of a batch."""
        model_weight, heads_weight = self._stage(share)
        together = model_weight > 0
        places, labels = batch.labels(self.distances)
        distilled = together and self.settings.joint is not None and self.settings.joint.distilled
        original = self._original(batch, places) if distilled else None
        asked = self.backbone.read(batch, learning=together).final.flatten(0, 1)[places]
        lambdas = [model_weight, *(heads_weight * self.settings.decay**k for k in range(1, self.distances))]
        scale = torch.tensor(lambdas, device=self.device) / counts.clamp(min=1)
        total, gradients = torch.zeros(self.distances, device=self.device), []
        rows = max(1, _LOGITS // self.backbone.shape.vocabulary)
        for begin in range(0, len(places), rows):
            piece = slice(begin, begin + rows)
            # A leaf of its own: only one piece's logits are ever in memory.
            hidden = asked[piece].detach().float().requires_grad_(together)
            losses = self._losses(hidden, labels[piece], None if original is None else original[piece], together)
            (losses * scale).sum().backward()  # type: ignore[no-untyped-call]
            gradients.append(hidden.grad)
            total += losses.detach()
        if together and len(places):
            reached = torch.cat([gradient for gradient in gradients if gradient is not None])
            asked.backward(reached.to(asked.dtype))  # type: ignore[no-untyped-call]
        return self._report(total / counts.clamp(min=1), float((total * scale).sum()), together)

    def _stage(self, share: float) -> tuple[float, float]:
        """Return the weights of the model's own loss and of the heads' at this share of the training; 0: a frozen
        model.

        Two-stage: the heads alone, then all at once. Sine: lambda_0 rises from nothing to its full weight at the end.
        """
        joint = self.settings.joint
        if joint is None or (joint.schedule == "two-stage" and share < joint.first_stage):
            return 0.0, 1.0
        return 1.0, joint.weight * (sin(pi / 2 * share) if joint.schedule == "sine" else 1.0)

    @torch.no_grad()
    def _original(self, batch: Batch, places: Tensor) -> Tensor:  # (N, H)
        """Return the original model's hidden states at those positions."""
        with self.backbone.original():
            return self.backbone.read(batch).final.flatten(0, 1)[places]

    def _losses(self, hidden: Tensor, labels: Tensor, original: Tensor | None, together: bool) -> Tensor:
        """Return the summed losses of the model and of every head, (K + 1,); the model's is 0 while it is frozen."""
        model_loss = torch.zeros((), device=self.device)
        if together and original is not None:
            with torch.no_grad(), self.backbone.original():
                wanted = self.backbone.logits(original).log_softmax(-1)
            predicted = self.backbone.logits(hidden).log_softmax(-1)
            model_loss = functional.kl_div(predicted, wanted, reduction="sum", log_target=True)
        elif together:
            model_loss = functional.cross_entropy(self.backbone.logits(hidden), labels[:, 0], reduction="sum")
        losses = [model_loss]
        for k, inner in enumerate(self._features(hidden), start=1):
            inside = labels[:, k] != IGNORED
            losses.append(functional.cross_entropy(self._logits(k, inner[inside]), labels[inside, k], reduction="sum"))
        return torch.stack(losses)

    def _features(self, hidden: Tensor) -> Tensor:  # (N, H) -> (K, N, H)
        with self.backbone.cast():
            return features(self._weights, hidden)

    def _logits(self, k: int, inner: Tensor) -> Tensor:  # of head k, (N, H) -> (N, V)
        if not self._weights.with_output:
            return self.backbone.logits(inner)
        with self.backbone.cast():
            return functional.linear(inner, self._output[k - 1]).float()

    def _report(self, means: Tensor, loss: float, together: bool) -> dict[str, float]:
        model_loss, *heads = means.tolist()
        return {
            "loss": loss,
            **({"model": model_loss} if together else {}),
            **{f"head {k}": x for k, x in enumerate(heads, 1)},
        }

    @torch.no_grad()
    def measure(self, batches: Sequence[Batch]) -> dict[str, JSON]:
        """Return losses on the tokens; for every head how often its ranks are the model's own greedy choice at that
        distance, and how likely a draft from its whole distribution would be accepted: the sum of min(p, q).
        """
        count = self.settings.heads
        loss, judged = torch.zeros(count + 1), torch.zeros(count + 1)
        ranks, accepted = torch.zeros(count, RANKS), torch.zeros(count)
        for batch in batches:
            place = batch.to(self.device)
            places, labels = place.labels(self.distances)
            hidden = self.backbone.read(place).final.flatten(0, 1)[places]
            rows = max(self.distances, _LOGITS // self.backbone.shape.vocabulary)
            for begin in range(0, len(places), rows):
                # Heads are judged by what the model predicts further on: each piece reads that much of the next.
                ahead = slice(begin, begin + rows + count)
                self._judge(hidden[ahead], labels[ahead], rows, (loss, judged, ranks, accepted))
        judged = judged.clamp(min=1)
        losses = (loss / judged).tolist()
        accuracies = (ranks / judged[1:, None]).tolist()
        return {
            "model": losses[0],
            "heads": [
                {
                    "loss": losses[k + 1],
                    "top": _cumulated(accuracies[k]),
                    "acceptance": float(accepted[k] / judged[k + 1]),
                }
                for k in range(count)
            ],
            "accuracies": accuracies,
        }

    def _judge(self, hidden: Tensor, labels: Tensor, rows: int, sums: tuple[Tensor, ...]) -> None:
        """Add what the first `rows` positions of a piece show."""
        loss, judged, ranks, accepted = sums
        model_logits = self.backbone.logits(hidden)  # (rows + K, V)
        loss[0] += float(functional.cross_entropy(model_logits[:rows], labels[:rows, 0], reduction="sum"))
        judged[0] += len(model_logits[:rows])
        choices, distributions = model_logits.argmax(-1), model_logits.softmax(-1)
        for k, inner in enumerate(self._features(hidden[:rows]), start=1):
            at = (labels[:rows, k] != IGNORED).nonzero().flatten()
            logits = self._logits(k, inner[at])
            loss[k] += float(functional.cross_entropy(logits, labels[at, k], reduction="sum"))
            judged[k] += len(at)
            ranks[k - 1] += torch.bincount(rank_of(logits, choices[at + k]), minlength=RANKS)[:RANKS].cpu()
            accepted[k - 1] += overlap(logits, distributions[at + k])

    def save(self, folder: Path, base: str, accuracies: Sequence[Sequence[float]]) -> None:
        """Write the heads as they are published, in the model's dtype."""
        parts = (self._weight, self._bias, self._output)
        weight, bias, output = (part.detach().to(self.backbone.dtype) for part in parts)
        save_heads(folder, HeadWeights(weight, bias, output, self._weights.with_output), base, accuracies)


def _cumulated(accuracies: Sequence[float]) -> list[float]:
    """Return top-1 to top-5 accuracy."""
    return list(accumulate(accuracies[:5]))
