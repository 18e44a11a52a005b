"""Trains a Kangaroo adapter, after the first layers of a frozen model.

From the hidden state with which the token at position t leaves layer l, the adapter guesses what the whole model
predicts there: soft cross-entropy against the model's distribution over the tokens that may be drafted, and no
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
from decoding.types import JSON

from .backbone import Backbone
from .batches import Batch
from .drafted import DraftedTokens, DraftScores
from .fresh_weights import fresh_weights
from .optimizers import Group
from .part_folder import save_adapter
from .pieces import learn_in_pieces
from .seeding import seeded


@dataclass(frozen=True, slots=True)
class AdapterSettings:
    """The settings of an adapter and of its training."""

    exit_layer: int
    architecture: str = "kangaroo"
    rate: float = 3e-4


def usual_exit(layers: int) -> int:
    """Scale the paper's choice: after layer 2 of 32, after layer 3 of 40."""
    return max(1, round(layers / 14))


class KangarooLearner:
    """An adapter on a backbone, as the loop's learner."""

    distances = 1

    def __init__(self, backbone: Backbone, settings: AdapterSettings, seed: int, ids: Tensor | None = None) -> None:
        """Make an adapter that drafts the tokens `ids`, or all."""
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
        """Start with the model's own last norm and head, and parts that add nothing yet.

        So the first guess is what the model would predict if it ended at the exit.
        """
        model, shape = self.backbone.model, self.backbone.shape
        given = {"norm.weight": model.model.norm.weight, "lm_head.weight": model.get_output_embeddings().weight}
        silent = ("self_attn.o_proj.weight", "mlp.down_proj.weight")
        with seeded(f"{seed}/adapter", self.device):
            return fresh_weights(self.config.tensors(shape.hidden, shape.vocabulary), given, silent, self.device)

    def learn(self, batch: Batch, counts: Tensor, share: float) -> dict[str, float]:
        """Leave the gradients of a batch."""
        made, final, _ = self._read(batch)

        def loss_of(rows: Tensor, piece: slice) -> Tensor:
            with torch.no_grad():
                wanted = self._drafted.logits(final[piece]).softmax(-1)
            return functional.cross_entropy(self._logits(rows), wanted, reduction="sum") / counts[0]

        total, gradient = learn_in_pieces(made, self._drafted.rows, loss_of)
        made.backward(gradient)  # type: ignore[no-untyped-call]
        return {"loss": total}

    def _read(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:  # (N, H), (N, H), (N,)
        """Return what adapter and model have at the positions whose next token is learnt, and that token."""
        places, labels = batch.labels(1)
        final, entering = self.backbone.read(batch, layers=(self.config.exit_layer,))
        assert entering is not None
        with self.backbone.cast():
            mask = batch.visible(self.config.window)
            made = forward_rows(self.config, self._weights, entering, batch.positions, mask)
        return made.flatten(0, 1)[places], final.flatten(0, 1)[places], labels[:, 0]

    def _logits(self, made: Tensor) -> Tensor:  # (N, H) -> (N, n)
        head = self._weights.get("lm_head.weight")
        return self._drafted.logits(made, None if head is None else self._drafted.narrow(head, 0))

    @torch.no_grad()
    def measure(self, batches: Sequence[Batch]) -> dict[str, JSON]:
        """Compare its drafts with the model's choices."""
        scores = DraftScores()
        for batch in batches:
            made, final, _ = self._read(batch.to(self.device))
            for draft, target in zip(
                *(torch.split(each, self.backbone.logit_rows) for each in (made, final)), strict=True
            ):
                self._drafted.score(scores, self._logits(draft), self.backbone.logits(target))
        return {"heads": [scores.to_json()]}

    def save(self, folder: Path) -> None:
        """Write the adapter in the model's dtype, with the model that it belongs to."""
        config = replace(self.config, base_model=self.backbone.name, base_hash=self.backbone.card_hash)
        save_adapter(folder, config, {name: w.detach().to(self.backbone.dtype) for name, w in self._weights.items()})
