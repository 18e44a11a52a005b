"""Trains an EAGLE-3 drafter beside a frozen model, by training-time test (Li et al., 2025, arXiv 2503.01840).

At position t the drafter has the model's states of token t and token t + 1 itself; it learns what the model predicts at
position t + 1. Then it goes on as it will when it drafts: with its own output instead of the model's states, and the
next token of the text instead of a guess, for `guesses` guesses in all. Losses are soft cross-entropies against the
model's distribution over the tokens that may be drafted. The output layer is the model's own, frozen, cut to those
tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from decoding.errors import ParamError
from decoding.model.rope import RopeTables
from decoding.parts.drafter_files import verifier_name
from decoding.parts.eagle import Block
from decoding.parts.eagle_config import FLAGS, EagleConfig, read_config, usual_taps
from decoding.parts.layer_math import attend
from decoding.types import JSON

from .backbone import Backbone
from .batches import IGNORED, Batch
from .drafted import DraftedTokens, DraftScores
from .drafter_folder import layer_config
from .eagle_folder import save_eagle
from .fresh_weights import fresh_weights
from .optimizers import Group
from .pieces import learn_in_pieces
from .seeding import seeded
from .state_reader import StateReader


@dataclass(frozen=True, slots=True)
class EagleSettings:
    """The settings of a drafter and of its training."""

    taps: tuple[int, ...] | None = None  # the model's layers whose inputs it reads; None: `usual_taps`
    guesses: int = 3  # one after the other, of training-time test
    intermediate: int | None = None  # width of its feed-forward part; None: the model's
    norm_before_residual: bool = True
    norm_before_fc: bool = False
    fc_norm: bool = False
    norm_output: bool = False
    rate: float = 1e-3


class Eagle3Learner:
    """A drafter beside a backbone, as the loop's learner."""

    def __init__(
        self, backbone: Backbone, settings: EagleSettings, ids: Tensor | None, seed: int, *, repeats: bool = False
    ) -> None:
        """Make a drafter of the tokens `ids`, or of all; `repeats`: lines come again, so their states are kept."""
        self.backbone, self.settings, self.device = backbone, settings, backbone.device
        self.distances = settings.guesses + 1
        self.config = _config(backbone, settings, ids)
        self._ids = None if ids is None else ids.to(self.device)
        self._drafted = DraftedTokens(backbone, ids)
        self._reader = StateReader(backbone, self._taps, remembers=repeats)
        self._weights = self._fresh(seed)
        self._rope = self.config.rope(self.device, torch.float32)
        self.groups: Mapping[str, Group] = {"drafter": Group(self._weights, settings.rate)}
        drafted = {"drafted": self.config.draft_vocabulary, "taps": list(self._taps)}
        self.about: Mapping[str, JSON] = {"kind": "eagle3", "model": backbone.hash, **asdict(settings), **drafted}

    @property
    def _taps(self) -> tuple[int, ...]:
        assert self.config.taps is not None
        return self.config.taps

    def _fresh(self, seed: int) -> dict[str, nn.Parameter]:
        """Start with a feature that is the highest tapped state, and a layer that adds nothing to it yet."""
        hidden, given = self.config.shape.hidden, {"norm.weight": self.backbone.model.model.norm.weight}
        silent = ("layers.0.self_attn.o_proj.weight", "layers.0.mlp.down_proj.weight")
        with seeded(f"{seed}/eagle3", self.device):
            weights = fresh_weights(self.config.tensors(len(self._taps)), given, silent, self.device)
        with torch.no_grad():
            weights["fc.weight"][:, -hidden:] += torch.eye(hidden, device=self.device)
        return weights

    def learn(self, batch: Batch, counts: Tensor, share: float) -> dict[str, float]:
        """Leave the gradients of a batch."""
        places, labels = batch.labels(self.distances)
        made, final = self._read(batch)
        if not len(places):
            return {"loss": 0.0, **{f"guess {step}": 0.0 for step in range(1, len(made) + 1)}}
        wanted = self._targets(final)
        reached, losses = list[Tensor](), dict[str, float]()
        for step, rows in enumerate(made, start=1):
            at = places[labels[:, step] != IGNORED]
            loss, gradient = self._pull(rows.detach().flatten(0, 1), at, at + step, wanted, counts[step] * len(made))
            reached.append(gradient.view_as(rows))
            losses[f"guess {step}"] = loss * len(made)
        torch.autograd.backward(made, reached)
        return {"loss": sum(losses.values()) / len(made), **losses}

    def _pull(
        self, rows: Tensor, at: Tensor, where: Tensor, wanted: Callable[[Tensor], Tensor], count: Tensor
    ) -> tuple[float, Tensor]:
        """Return the loss of the rows `at` against the model's distributions `where`, and its gradient by all rows."""

        def loss_of(hidden: Tensor, piece: slice) -> Tensor:
            with torch.no_grad():
                p = wanted(where[piece]).softmax(-1)
            return functional.cross_entropy(self._drafted.logits(hidden), p, reduction="sum") / count.clamp(min=1)

        total, reached = learn_in_pieces(rows[at], self._drafted.rows, loss_of)
        gradient = torch.zeros_like(rows)
        gradient[at] = reached
        return total, gradient

    def _targets(self, final: Tensor) -> Callable[[Tensor], Tensor]:
        """Return the model's logits over the tokens that may be drafted, at flat positions."""
        flat = final.flatten(0, 1)
        return lambda places: self._drafted.logits(flat[places])

    def _read(self, batch: Batch) -> tuple[list[Tensor], Tensor]:
        """Return what enters the output layer at every step, (lines, length, H) each; and the model's final states."""
        final, states = self._reader.read(batch)
        block = Block(self.config, self._weights, _product)
        seen, length = batch.visible(self.config.window), batch.ids.shape[1]
        keys, values, made = list[Tensor](), list[Tensor](), list[Tensor]()
        tables = self._rope.tables(1, length + self.settings.guesses + 1)
        with self.backbone.cast():
            feature = block.fuse(states.float())
            for step in range(self.settings.guesses):
                ids = functional.pad(batch.ids[:, 1 + step :], (0, 1 + step))
                turn = RopeTables(*(table[batch.positions + 1 + step] for table in tables))
                look = partial(_look, block, turn, keys, values, seen)
                x = block.forward(self._embed(ids), feature, look)
                leaving, feature = block.leave(x)
                made.append(leaving)
        return made, final

    def _embed(self, ids: Tensor) -> Tensor:
        embedded: Tensor = self.backbone.model.get_input_embeddings()(ids).detach().float()
        return embedded

    @torch.no_grad()
    def measure(self, batches: Sequence[Batch]) -> dict[str, JSON]:
        """Compare every guess, one after the other along the text's own tokens, with the model's choices."""
        scores = [DraftScores() for _ in range(self.settings.guesses)]
        for batch in batches:
            place = batch.to(self.device)
            places, labels = place.labels(self.distances)
            made, final = self._read(place)
            flat = final.flatten(0, 1)
            for step, rows in enumerate(made):
                at = places[labels[:, step + 1] != IGNORED]
                for piece in torch.split(at, self.backbone.logit_rows):
                    logits = self._drafted.logits(rows.flatten(0, 1)[piece])
                    self._drafted.score(scores[step], logits, self.backbone.logits(flat[piece + step + 1]))
        return {"heads": [each.to_json() for each in scores]}

    def save(self, folder: Path) -> None:
        """Write the drafter in the model's dtype, with the model's output layer for the tokens that it drafts."""
        dtype = self.backbone.dtype
        weights = {name: weight.detach().to(dtype) for name, weight in self._weights.items()}
        weights["lm_head.weight"] = self._drafted.head.to(dtype)
        save_eagle(folder, self.config, weights, self._ids, self.settings.guesses)


def _product(weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    return lambda rows: functional.linear(rows, weight, bias)


def _look(
    block: Block, turn: RopeTables, keys: list[Tensor], values: list[Tensor], seen: Tensor, qkv: Tensor
) -> Tensor:  # (B, T, (heads + 2 kv_heads) * D) -> (B, T, heads * D)
    """Attend in a step: every row sees the text up to itself as the first step read it, and its own later guesses.

    The lists grow by the keys and values of this step.
    """
    query, key, value = block.split(qkv, turn)
    keys.append(key)
    values.append(value)
    if len(keys) == 1:
        return attend(query, key, value, seen, functional.scaled_dot_product_attention)
    (batch, rows, heads, size), kv_heads = query.shape, key.shape[2]
    packed = query.view(batch, rows, kv_heads, -1, size)
    scores = torch.einsum("btkrd,bpkd->btkrp", packed, keys[0]).masked_fill(~seen[:, :, None, None], -torch.inf)
    later = torch.stack([(packed * each[:, :, :, None]).sum(-1) for each in keys[1:]], -1)
    weights = (torch.cat((scores, later), -1).float() * size**-0.5).softmax(-1).to(value.dtype)
    mixed = torch.einsum("btkrp,bpkd->btkrd", weights[..., :rows], values[0])
    for step, each in enumerate(values[1:]):
        mixed = mixed + weights[..., rows + step, None] * each[:, :, :, None]
    return mixed.reshape(batch, rows, heads * size)


def _config(backbone: Backbone, settings: EagleSettings, ids: Tensor | None) -> EagleConfig:
    """Configure a drafter of the model's sizes. It sees as far as the layers do: further back all is new to it."""
    shape = backbone.shape
    taps = usual_taps(shape.layers) if settings.taps is None else settings.taps
    if not 0 <= taps[0] <= taps[-1] <= shape.layers or any(one >= other for one, other in pairwise(taps)):
        raise ParamError(f"--taps must be layers in rising order, from 0 to the model's {shape.layers}")
    layer = {**layer_config(backbone, "llama", 1, settings.intermediate), "mlp_bias": False}
    draft = {} if ids is None else {"draft_vocab_size": len(ids)}
    flags = {name: getattr(settings, name) for name in FLAGS}
    raw = {"speculators_model_type": "eagle3", "transformer_layer_config": layer, **draft, **flags}
    return replace(read_config(raw), taps=tuple(taps), verifier=verifier_name(backbone.name))
