"""Trains a drafter: a small model that learns to predict as a large one does, for speculative decoding.

Leviathan et al., 2023, arXiv 2211.17192, where a drafter is any model with the same tokens; here it learns by
distillation, from the large model's distribution at every position of an answer. Its embedding, which is its output
layer too and nearly all of its weights, starts as the large one's in the directions in which that differs the most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from decoding.codec import Codec
from decoding.errors import ParamError
from decoding.types import JSON

from .backbone import Backbone
from .batches import Batch
from .drafted import DraftedTokens, DraftScores
from .fresh_weights import SPREAD
from .optimizers import Group
from .pieces import learn_in_pieces
from .saving import save_model
from .seeding import seeded
from .teacher import TOP, Teacher

_LOGITS = 2**23  # in memory at a time


@dataclass(frozen=True, slots=True)
class DrafterSettings:
    """The settings of a drafter and of its training."""

    hidden: int = 96
    layers: int = 4
    heads: int = 3
    intermediate: int = 256
    rate: float = 2e-3

    def check(self) -> None:
        """Refuse heads that cannot be rotated."""
        if self.hidden % self.heads or self.hidden // self.heads % 2:
            raise ParamError(f"--hidden must be an even multiple of --heads, not {self.hidden} for {self.heads} heads")


class DrafterLearner:
    """A small model beside a frozen backbone, as the loop's learner."""

    distances = 1

    def __init__(self, backbone: Backbone, settings: DrafterSettings, seed: int) -> None:
        settings.check()
        self.backbone, self.settings, self.device = backbone, settings, backbone.device
        self.model = _fresh(backbone, settings, seed)
        weights = dict(self.model.named_parameters())
        self.groups: Mapping[str, Group] = {"drafter": Group(weights, settings.rate)}
        self.about: Mapping[str, JSON] = {"kind": "drafter", "model": backbone.hash, "top": TOP, **asdict(settings)}
        self._teacher = Teacher(backbone)

    def learn(self, batch: Batch, counts: Tensor, share: float) -> dict[str, float]:
        """Leave the gradients of a batch: of the cross-entropy with what the model holds likely."""
        likeliest, (places, _) = self._teacher.predict(batch), batch.labels(1)
        made = self._read(batch)[places]

        def loss_of(hidden: Tensor, piece: slice) -> Tensor:
            chances: Tensor = self.model.lm_head(hidden).log_softmax(-1).gather(1, likeliest.tokens[piece])
            return -(likeliest.shares[piece] * chances).sum() / counts[0]

        total, gradient = learn_in_pieces(made, max(1, _LOGITS // self.backbone.shape.vocabulary), loss_of)
        made.backward(gradient)  # type: ignore[no-untyped-call]
        return {"loss": total}

    def _read(self, batch: Batch) -> Tensor:  # (lines * length, H) after the final norm
        outputs = self.model.model(input_ids=batch.ids, position_ids=batch.positions, use_cache=False)
        hidden: Tensor = outputs.last_hidden_state
        return hidden.flatten(0, 1)

    @torch.no_grad()
    def measure(self, batches: Sequence[Batch]) -> dict[str, JSON]:
        """Compare its drafts with the model's choices."""
        scores, drafted = DraftScores(), DraftedTokens(self.backbone, None)
        for batch in batches:
            place = batch.to(self.device)
            places, _ = place.labels(1)
            made, final = self._read(place)[places], self.backbone.read(place).final.flatten(0, 1)[places]
            for draft, target in zip(
                *(torch.split(each, self.backbone.logit_rows) for each in (made, final)), strict=True
            ):
                drafted.score(scores, self.model.lm_head(draft), self.backbone.logits(target))
        return {"heads": [scores.to_json()]}

    def save(self, folder: Path, codec: Codec) -> None:
        """Save an ordinary transformers folder in bfloat16, with the tokenizer of both models."""
        dtype = next(self.model.parameters()).dtype
        self.model.to(torch.bfloat16)
        try:
            save_model(self.model, folder)
        finally:
            self.model.to(dtype)
        codec.tokenizer.save_pretrained(folder)


def _fresh(backbone: Backbone, settings: DrafterSettings, seed: int) -> Any:
    """Make a Llama with fresh weights, and the embedding of the backbone, as far as there is room for it."""
    from transformers import LlamaConfig, LlamaForCausalLM

    shape, theirs = backbone.shape, backbone.model.config
    config = LlamaConfig(
        vocab_size=shape.vocabulary,
        hidden_size=settings.hidden,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        num_key_value_heads=settings.heads,
        intermediate_size=settings.intermediate,
        max_position_embeddings=theirs.max_position_embeddings,
        tie_word_embeddings=True,
        bos_token_id=theirs.bos_token_id,
        eos_token_id=theirs.eos_token_id,
        pad_token_id=theirs.pad_token_id,
        attn_implementation="eager",  # plain products: the fastest backward pass for short rows on a CPU
    )
    with seeded(f"{seed}/drafter", backbone.device):
        model = LlamaForCausalLM(config).to(backbone.device, torch.float32)
    with torch.no_grad():
        model.get_input_embeddings().weight.copy_(
            _reduced(backbone.model.get_output_embeddings().weight, settings.hidden)
        )
    return model.train(False)


def _reduced(embedding: Tensor, size: int) -> Tensor:  # (V, H) -> (V, size)
    """Project the embedding on the directions in which tokens differ the most, spread out as fresh weights are."""
    wide = embedding.detach().double()
    wide = wide - wide.mean(0)
    _, directions = torch.linalg.eigh(wide.T @ wide)  # in rising order
    count = min(size, wide.shape[1])
    reduced = wide.new_zeros(len(wide), size)
    reduced[:, :count] = wide @ directions[:, -count:].flip(1)
    return (reduced * (SPREAD / reduced.std())).float()


def parameters(model: nn.Module) -> int:
    """Count the numbers of a model; tied ones count once."""
    return sum(weight.numel() for weight in model.parameters())
