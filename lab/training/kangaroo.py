"""A Kangaroo adapter as it learns, behind a shallow part of a frozen model.

From the hidden state with which the token at place t leaves layer l, the adapter guesses what the whole model says at
the same place: soft cross-entropy against the model's distribution over the tokens that may be drafted, and no
regression of features (equation 3 of the paper). Its draft logits are the model's own output layer over what it makes
of that state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from decoding.errors import ParamError
from decoding.parts.adapter import forward_rows
from decoding.parts.adapter_config import AdapterConfig
from decoding.parts.adapter_files import save_adapter
from decoding.types import JSON

from .backbone import Backbone
from .batches import Batch
from .drafted import RANKS, DraftedTokens
from .optimizers import Group
from .seeding import seeded

_LOGITS = 2**22  # in memory at a time
_SPREAD = 0.02  # of fresh weights


@dataclass(frozen=True, slots=True)
class AdapterSettings:
    """What the adapter is, and how it learns."""

    exit_layer: int
    architecture: str = "kangaroo"
    rate: float = 3e-4


def usual_exit(layers: int) -> int:
    """The paper's choice, scaled: behind layer 2 of 32, behind layer 3 of 40."""
    return max(1, round(layers / 14))


class KangarooLearner:
    """An adapter on a backbone, as the loop's learner."""

    distances = 1

    def __init__(self, backbone: Backbone, settings: AdapterSettings, seed: int, ids: Tensor | None = None) -> None:
        """`ids` are the tokens that it may draft; None: all."""
        if not 1 <= settings.exit_layer <= backbone.shape.layers:
            raise ParamError(f"--exit-layer must be from 1 to the model's {backbone.shape.layers} layers")
        self.backbone, self.settings, self.device = backbone, settings, backbone.device
        self.config = AdapterConfig.fit(backbone.shape, settings.exit_layer, settings.architecture)
        self._drafted = DraftedTokens(backbone, ids)
        self._weights = self._fresh(seed)
        self.groups: Mapping[str, Group] = {"adapter": Group(self._weights, settings.rate)}
        drafted = {} if ids is None else {"draft vocabulary": self._drafted.count}
        self.about: Mapping[str, JSON] = {"kind": "kangaroo", "model": backbone.hash, **asdict(settings), **drafted}

    def _fresh(self, seed: int) -> dict[str, nn.Parameter]:
        """Weights to start from: the model's own last norm and head, and parts that add nothing yet.

        So the first guess is what the model would say if it ended at the exit.
        """
        model, weights = self.backbone.model, dict[str, nn.Parameter]()
        with seeded(f"{seed}/adapter", self.device):
            for name, size in self.config.tensors(self.backbone.shape.hidden, self.backbone.shape.vocabulary).items():
                if name == "norm.weight":
                    start = model.model.norm.weight
                elif name == "lm_head.weight":
                    start = model.get_output_embeddings().weight
                elif name.endswith("norm.weight"):
                    start = torch.ones(size)
                elif name in ("self_attn.o_proj.weight", "mlp.down_proj.weight"):
                    start = torch.zeros(size)
                else:
                    start = torch.randn(size) * _SPREAD
                weights[name] = nn.Parameter(start.detach().to(self.device, torch.float32, copy=True))
        return weights

    def learn(self, batch: Batch, counts: Tensor, share: float) -> dict[str, float]:
        """Leave the gradients of a batch."""
        made, final, _ = self._read(batch)
        total, gradients = 0.0, []
        for begin in range(0, len(made), self._drafted.rows):
            piece = slice(begin, begin + self._drafted.rows)
            hidden = made[piece].detach().requires_grad_()  # a leaf: only one piece's logits are ever in memory
            with torch.no_grad():
                wanted = self._drafted.logits(final[piece]).softmax(-1)
            loss = functional.cross_entropy(self._logits(hidden), wanted, reduction="sum") / counts[0]
            loss.backward()  # type: ignore[no-untyped-call]
            gradients.append(hidden.grad)
            total += float(loss.detach())
        if gradients:
            reached = torch.cat([gradient for gradient in gradients if gradient is not None])
            made.backward(reached)  # type: ignore[no-untyped-call]
        return {"loss": total}

    def _read(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:  # (N, H), (N, H), (N,)
        """What adapter and model have at the places whose next token is learnt, and that token."""
        places, labels = batch.labels(1)
        final, entering = self.backbone.read(batch, layers=(self.config.exit_layer,))
        assert entering is not None
        with self.backbone.cast():
            mask = batch.visible(self.config.window)
            made = forward_rows(self.config, self._weights, entering, batch.positions, mask)
        return made.flatten(0, 1)[places], final.flatten(0, 1)[places], labels[:, 0]

    def _logits(self, made: Tensor) -> Tensor:  # (N, H) -> (N, n)
        own = self._weights.get("lm_head.weight")
        return self._drafted.logits(made, None if own is None else self._drafted.narrow(own, 0))

    @torch.no_grad()
    def measure(self, batches: Sequence[Batch]) -> dict[str, JSON]:
        """The loss; how often the adapter's one to five likeliest tokens hold the model's greedy choice; and how
        likely a token drawn from its distribution would be accepted, the sum of min(p, q).
        """
        loss, accepted, count, ranks = 0.0, 0.0, 0, torch.zeros(RANKS)
        for batch in batches:
            made, final, _ = self._read(batch.to(self.device))
            size = max(1, _LOGITS // self.backbone.shape.vocabulary)
            for draft, target in zip(torch.split(made, size), torch.split(final, size), strict=True):
                lost, agreed, ranked = self._drafted.score(self._logits(draft), self.backbone.logits(target))
                loss, accepted, count, ranks = loss + lost, accepted + agreed, count + len(draft), ranks + ranked
        found = max(1, count)
        top = (ranks.cumsum(0) / found).tolist()
        return {"heads": [{"loss": loss / found, "top": top, "acceptance": accepted / found}]}

    def save(self, folder: Path) -> None:
        """Write the adapter in the model's dtype, with the model that it belongs to."""
        config = replace(self.config, base_model=self.backbone.name, base_hash=self.backbone.card_hash)
        save_adapter(folder, config, {name: w.detach().to(self.backbone.dtype) for name, w in self._weights.items()})
