"""A DFlash drafter as it learns beside a frozen model (Chen et al., 2026, arXiv 2602.06036).

Blocks begin at random tokens of the text whose next tokens an answer wrote. The row i places after a block's first
token, its root, learns what the model predicts for the i-th token after the root, from the model's states of the text
before the root and nothing of the text after it. Losses are soft cross-entropies against the model's distribution over
the tokens that may be drafted, and count less the further a guess is from the root. The output layer is the model's
own, frozen, cut to those tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from decoding.errors import ParamError
from decoding.model.rope import RopeTables
from decoding.parts.dflash import BlockLayers
from decoding.parts.dflash_config import DFlashConfig, read_dflash_config
from decoding.parts.drafter_files import verifier_name
from decoding.parts.eagle_config import usual_taps
from decoding.types import JSON

from .backbone import Backbone
from .batches import IGNORED, Batch
from .drafted import DraftedTokens, DraftScores
from .drafter_folder import FORMAT, layer_config, save_drafter
from .fresh_weights import fresh_weights
from .optimizers import Group
from .pieces import learn_in_pieces
from .seeding import seeded
from .state_reader import StateReader


@dataclass(frozen=True, slots=True)
class DFlashSettings:
    """What the drafter is, and how it learns."""

    taps: tuple[int, ...] | None = None  # the model's layers whose inputs it reads; None: `usual_taps`
    layers: int = 2
    block: int = 8  # rows: the root and the guesses after it
    mask: int | None = None  # id of the token in the place of guesses; None: the padding, or the last id
    intermediate: int | None = None  # width of its feed-forward parts; None: the model's
    blocks: int = 24  # per line of text
    decay: float = 4.0  # guesses over which a guess comes to count 1 / e
    rate: float = 1e-3


class Blocks(NamedTuple):
    """Blocks of a batch, (lines, blocks); those that make up the number have no labels."""

    roots: Tensor  # columns of their first tokens
    labelled: Tensor  # (lines, blocks, guesses): guesses that are learnt


class DFlashLearner:
    """A drafter beside a backbone, as the loop's learner."""

    def __init__(
        self, backbone: Backbone, settings: DFlashSettings, ids: Tensor | None, seed: int, *, repeats: bool = False
    ) -> None:
        """Make a drafter of the tokens `ids`, or of all; `repeats`: lines come again, so their states are kept."""
        self.backbone, self.settings, self.device = backbone, settings, backbone.device
        self.config = _config(backbone, settings, ids)
        self.distances = self._guesses = self.config.guesses
        self._ids = None if ids is None else ids.to(self.device)
        self._drafted = DraftedTokens(backbone, ids)
        self._reader = StateReader(backbone, self.config.taps, remembers=repeats)
        given = {"norm.weight": backbone.model.model.norm.weight}
        ends = ("self_attn.o_proj.weight", "mlp.down_proj.weight")
        silent = {f"layers.{layer}.{end}" for layer in range(settings.layers) for end in ends}
        with seeded(f"{seed}/dflash", self.device):
            self._weights = fresh_weights(self.config.tensors(), given, silent, self.device)
        self._rope = self.config.rope(self.device, torch.float32)
        self._decay = torch.exp(-torch.arange(self._guesses, device=self.device) / settings.decay)
        self.groups: Mapping[str, Group] = {"drafter": Group(self._weights, settings.rate)}
        drafted = {"drafted": self.config.draft_vocabulary, "taps": list(self.config.taps), "mask": self.config.mask}
        self.about: Mapping[str, JSON] = {"kind": "dflash", "model": backbone.hash, **asdict(settings), **drafted}

    def learn(self, batch: Batch, counts: Tensor, share: float) -> dict[str, float]:
        """Leave the gradients of a batch."""
        blocks, seen = self._choose(batch, self.settings.blocks)
        names = [f"guess {number}" for number in range(1, self._guesses + 1)]
        if not blocks.labelled.any():
            return dict.fromkeys(["loss", *names], 0.0)
        made, final = self._fill(batch, blocks)
        # Only some positions begin a block, so a batch's losses are parts of means over as many of all labels.
        labels = counts * (blocks.labelled[..., 0].sum() / max(1, seen))
        flat, wanted, reached = made.detach().flatten(0, 2), self._targets(final), torch.zeros_like(made).flatten(0, 2)
        losses, total = list[float](), float(self._decay.sum())
        for guess in range(self._guesses):
            at, where = self._rows(batch, blocks, guess)
            loss, gradient = self._pull(flat[at], where, wanted, labels[guess])
            reached[at] = gradient * (self._decay[guess] / total)
            losses.append(loss)
        made.backward(reached.view_as(made))  # type: ignore[no-untyped-call]
        weights = (self._decay / total).tolist()
        mean = sum(weight * loss for weight, loss in zip(weights, losses, strict=True))
        return {"loss": mean, **dict(zip(names, losses, strict=True))}

    def _pull(
        self, rows: Tensor, where: Tensor, wanted: Callable[[Tensor], Tensor], count: Tensor
    ) -> tuple[float, Tensor]:
        """Return the loss of rows against the model's distributions `where`, and its gradient by these rows."""

        def loss_of(hidden: Tensor, piece: slice) -> Tensor:
            with torch.no_grad():
                p = wanted(where[piece]).softmax(-1)
            return functional.cross_entropy(self._drafted.logits(hidden), p, reduction="sum") / count.clamp(min=1)

        return learn_in_pieces(rows, self._drafted.rows, loss_of)

    def _targets(self, final: Tensor) -> Callable[[Tensor], Tensor]:
        """Return the model's logits over the tokens that may be drafted, at flat positions."""
        flat = final.flatten(0, 1)
        return lambda places: self._drafted.logits(flat[places])

    def _choose(self, batch: Batch, most: int | None) -> tuple[Blocks, int]:
        """Choose roots at random, at most `most` of every line or all; also count those that could be chosen."""
        lines, length = batch.ids.shape
        places, labels = batch.labels(self.distances)
        after = labels.new_full((lines * length, self.distances), IGNORED)
        after[places] = labels
        after = after.view(lines, length, -1) != IGNORED
        after[batch.positions == 0] = False  # before a root there must be text
        eligible = after[..., 0]
        order = (torch.rand(lines, length, device=self.device) + (~eligible)).argsort(1)
        roots = order[:, : min(most or length, max(1, int(eligible.sum(1).max())))].sort(1).values
        labelled = after.gather(1, roots[..., None].expand(-1, -1, self.distances))
        return Blocks(roots, labelled), int(eligible.sum())

    def _rows(self, batch: Batch, blocks: Blocks, guess: int) -> tuple[Tensor, Tensor]:
        """Return a guess's flat rows, and the flat positions whose predictions they learn."""
        lines, length = batch.ids.shape
        at = blocks.labelled[..., guess].flatten().nonzero().flatten()
        columns = (blocks.roots + torch.arange(lines, device=self.device)[:, None] * length).flatten()
        return at * self._guesses + guess, columns[at] + guess

    def _fill(self, batch: Batch, blocks: Blocks) -> tuple[Tensor, Tensor]:
        """Return the output layer's input of every guess, (lines, blocks, guesses, H); and the model's final states."""
        config, (lines, count), rows = self.config, blocks.roots.shape, self.config.block
        final, states = self._reader.read(batch)
        roots, line = blocks.roots, torch.arange(lines, device=self.device)[:, None]
        text = (batch.positions == 0).cumsum(1)
        root_positions = batch.positions.gather(1, roots)
        apart = root_positions[..., None] - batch.positions[:, None, :]
        window = config.shape.rolling
        seen = (text[:, None, :] == text.gather(1, roots)[..., None]) & (apart > 0)
        seen = seen & (apart <= window) if window else seen  # (lines, blocks, length)
        tables = self._rope.tables(1, batch.ids.shape[1] + rows)
        ids = torch.full((lines, count, rows), config.mask, device=self.device)
        ids[..., 0] = batch.ids[line, roots]
        with self.backbone.cast():
            layers = BlockLayers(config, self._weights, _product)
            remembered = layers.remember(layers.fuse(states.float()), _turned(tables, batch.positions))
            turn = _turned(tables, root_positions[..., None] + torch.arange(rows, device=self.device))

            def mix(layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
                before = [each[:, :, layer] for each in remembered]
                return _attend(query, key, value, before[0], before[1], seen)

            embedded: Tensor = self.backbone.model.get_input_embeddings()(ids).detach().float()
            made = layers.forward(embedded, turn, mix)
        return made[..., rows - self._guesses :, :], final

    @torch.no_grad()
    def measure(self, batches: Sequence[Batch]) -> dict[str, JSON]:
        """Compare every guess of every block along the text with the model's choices."""
        scores = [DraftScores() for _ in range(self._guesses)]
        for batch in batches:
            place = batch.to(self.device)
            blocks, _ = self._choose(place, None)
            made, final = self._fill(place, blocks)
            flat, whole = made.flatten(0, 2), final.flatten(0, 1)
            for guess, score in enumerate(scores):
                rows, where = self._rows(place, blocks, guess)
                for at, position in zip(
                    *(torch.split(each, self.backbone.logit_rows) for each in (rows, where)), strict=True
                ):
                    logits = self._drafted.logits(flat[at])
                    self._drafted.score(score, logits, self.backbone.logits(whole[position]))
        return {"heads": [each.to_json() for each in scores]}

    def save(self, folder: Path) -> None:
        """Write the drafter in the model's dtype; with few tokens also the model's output layer for these."""
        dtype = self.backbone.dtype
        weights = {name: weight.detach().to(dtype) for name, weight in self._weights.items()}
        if self._ids is not None:
            weights["lm_head.weight"] = self._drafted.head.to(dtype)
        save_drafter(folder, weights, self._ids, self.config.shape.vocabulary, _config_json(self.config))


def _product(weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
    return lambda rows: functional.linear(rows, weight, bias)


def _turned(tables: RopeTables, positions: Tensor) -> RopeTables:
    return RopeTables(*(table[positions] for table in tables))


def _attend(query: Tensor, key: Tensor, value: Tensor, keys: Tensor, values: Tensor, seen: Tensor) -> Tensor:
    """Let the rows of every block, (L, A, B, heads, D), attend to the text before their root and to their block.

    `keys` and `values` of the text: (L, T, kv_heads, D); `seen`: (L, A, T). Return (L, A, B, heads * D).
    """
    (lines, count, rows, heads, size), kv_heads = query.shape, key.shape[3]
    packed = query.view(lines, count, rows, kv_heads, -1, size)
    before = torch.einsum("labkrd,ltkd->labkrt", packed, keys).masked_fill(~seen[:, :, None, None, None], -torch.inf)
    beside = torch.einsum("labkrd,lackd->labkrc", packed, key)
    weights = (torch.cat((before, beside), -1).float() * size**-0.5).softmax(-1).to(value.dtype)
    length = keys.shape[1]
    mixed = torch.einsum("labkrt,ltkd->labkrd", weights[..., :length], values)
    mixed = mixed + torch.einsum("labkrc,lackd->labkrd", weights[..., length:], value)
    return mixed.reshape(lines, count, rows, heads * size)


def _config(backbone: Backbone, settings: DFlashSettings, ids: Tensor | None) -> DFlashConfig:
    """Configure a drafter of the model's sizes. It sees as far as the layers do: further back all is new to it."""
    shape = backbone.shape
    taps = usual_taps(shape.layers) if settings.taps is None else settings.taps
    if not 0 <= taps[0] <= taps[-1] < shape.layers or any(one >= other for one, other in pairwise(taps)):
        raise ParamError(f"--taps must be layers in rising order, from 0 to the model's {shape.layers - 1}")
    padding = getattr(backbone.model.config, "pad_token_id", None)
    usual = padding if type(padding) is int else shape.vocabulary - 1
    mask = usual if settings.mask is None else settings.mask
    if not 0 <= mask < shape.vocabulary:
        raise ParamError(f"--mask-token must be one of the model's {shape.vocabulary} tokens, not {mask}")
    return read_dflash_config(
        {
            "speculators_model_type": "dflash",
            "transformer_layer_config": layer_config(backbone, "qwen3", settings.layers, settings.intermediate),
            "draft_vocab_size": shape.vocabulary if ids is None else len(ids),
            "target_hidden_size": shape.hidden,
            "aux_hidden_state_layer_ids": list(taps),
            "block_size": settings.block,
            "mask_token_id": mask,
            "sample_from_anchor": False,
            "sliding_window_non_causal": True,
            "speculators_config": {"verifier": {"name_or_path": verifier_name(backbone.name)}},
        }
    )


def _config_json(config: DFlashConfig) -> dict[str, JSON]:
    proposal = {"proposal_type": "greedy", "speculative_tokens": config.guesses, "verifier_accept_k": 1}
    return {
        "architectures": ["DFlashDraftModel"],
        "speculators_model_type": "dflash",
        "speculators_version": FORMAT,
        "transformer_layer_config": dict(config.layer),
        "draft_vocab_size": config.draft_vocabulary,
        "target_hidden_size": config.target_hidden,
        "aux_hidden_state_layer_ids": list(config.taps),
        "block_size": config.block,
        "mask_token_id": config.mask,
        "sample_from_anchor": config.from_anchor,
        "sliding_window_non_causal": True,
        "tie_word_embeddings": False,
        "speculators_config": {
            "algorithm": "dflash",
            "default_proposal_method": "greedy",
            "proposal_methods": [{**proposal, "accept_tolerance": 0.0}],
            "verifier": {"name_or_path": config.verifier, "architectures": []},
        },
    }
