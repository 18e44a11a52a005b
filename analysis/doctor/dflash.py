"""DFlash's drafter under examination: what its files show, and its arithmetic with a wiring.

Blocks are filled at all places of a text at once. This is what `DFlashSession` computes for one place after the other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import linear

from decoding.model.files import read_json
from decoding.model.kernels import by_torch
from decoding.model.rope import RopeTables
from decoding.parts.dflash import BlockLayers
from decoding.parts.dflash_files import StoredDFlash, read_dflash
from decoding.parts.layer_math import attend

from .dflash_probes import DFlashProbes, DFlashWiring
from .feature_drafter import ExaminedFeatures
from .probes import Check

if TYPE_CHECKING:
    from decoding.model.split import AnyDecoder

    from .texts import Text

_LAST = 4  # ids at the end of the vocabulary that may be the mask's


class ExaminedDFlash(ExaminedFeatures):
    """A drafter, as its folder holds it."""

    kind, method, apart = "dflash", "dflash", "guess"
    _stored: StoredDFlash

    def __init__(self, folder: str, model: AnyDecoder, loaded: str = "", special: Collection[int] = ()) -> None:
        """`special`: the ids of the tokenizer's special tokens."""
        super().__init__(folder, model, loaded)
        config = self._stored.config
        self.depth = min(self.depth, config.block - 1)  # with either value of sample_from_anchor
        changes = DFlashProbes(model, self._weights, self.drafted, self.layers(), self.rope)
        vocabulary = model.shape.vocabulary
        near = (*range(vocabulary - _LAST, vocabulary), config.mask - 1, config.mask + 1, 0, *special)
        changes.masks = sorted({mask for mask in near if 0 <= mask < vocabulary})
        changes.published = "speculators_model_type" in read_json(Path(folder) / "config.json")
        self._changes, self._special = changes, special
        self.given = DFlashWiring(config, config.taps, model.dtype, self._embedding)

    def _read_files(self, folder: str, *, lenient: bool = False) -> StoredDFlash:
        return read_dflash(folder, self.model, lenient=lenient)

    @property
    def taps(self) -> tuple[int, ...]:
        """The tapped layers of the files."""
        return self._stored.config.taps

    def _own_checks(self) -> Sequence[Check]:
        config = self._stored.config
        special = "a special token" if config.mask in self._special else "no special token"
        guesses = f"{config.block} rows, of which {config.guesses} guess"
        return [
            Check("block", "block_size", fine=True, sentence=guesses),
            Check("mask token", "mask_token_id", fine=True, sentence=f"{config.mask}, {special} of the target's"),
        ]

    def guess(self, wiring: DFlashWiring, text: Text, places: Sequence[int], depth: int) -> torch.Tensor:  # (P, depth)
        """Return the likeliest token of every place in the blocks."""
        return self.say(wiring, self._fill(wiring, text, places, depth))

    def rows(self, wiring: DFlashWiring, text: Text, places: Sequence[int]) -> tuple[torch.Tensor, list[int]]:
        """Return the logits of every guess at every position, and the target's rows for the same tokens."""
        made = self._fill(wiring, text, places, self.depth).transpose(0, 1).flatten(0, 1)
        return self._placed_logits(wiring, made), [place + ahead for ahead in range(self.depth) for place in places]

    def _make(self, wiring: DFlashWiring, weights: Mapping[str, torch.Tensor]) -> BlockLayers:
        return BlockLayers(wiring.config, weights, lambda weight, bias: lambda x: linear(x, weight, bias))

    @torch.inference_mode()
    def _fill(
        self, wiring: DFlashWiring, text: Text, places: Sequence[int], depth: int
    ) -> torch.Tensor:  # (P, depth, H)
        """Fill a whole block at every place; return the output layer's input of the first guesses."""
        config, layers, device = wiring.config, self.block(wiring), text.hidden.device
        roots, last, size = torch.tensor([*places], device=device), places[-1], config.block
        states = self.states(wiring, text, last)
        features = layers.fuse(states) if wiring.normed else linear(states, self.held(wiring)["fc.weight"])
        tables = self.rope(wiring).tables(1, last + size + 2)
        before, offsets = torch.arange(last, device=device), torch.arange(size, device=device)
        keys, values = layers.remember(features, _turned(tables, before))  # (T, layers, kv_heads, D)
        ids = torch.full((len(places), size), config.mask, device=device)
        ids[:, 0] = torch.tensor([text.ids[place] for place in places], device=device)
        apart = (roots[:, None] - before)[:, None].expand(-1, size, -1)  # (P, B, T) how far the text's rows are
        reach = apart + offsets[:, None] if wiring.edge == "each row" else apart
        beside = torch.ones(len(places), size, size, dtype=torch.bool, device=device)

        def mix(layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            near, window = apart > 0, config.shape.windows[layer]
            near = near & (reach <= window) if window else near
            seen = torch.cat((near, beside.tril() if config.causal[layer] else beside), -1)
            text = [each[:, layer].expand(len(places), -1, -1, -1) for each in (keys, values)]
            key, value = (torch.cat(both, 1) for both in zip(text, (key, value), strict=True))
            return attend(query, key, value, seen, by_torch)

        where = (roots[:, None] + offsets + wiring.draft_shift).clamp(min=0)
        x: torch.Tensor = layers.forward(self.embed(wiring, ids), _turned(tables, where), mix)
        first = 0 if config.from_anchor else 1
        return x[:, first : first + depth]

    def _has(self, layer: int) -> bool:
        return 0 <= layer < self.model.shape.layers  # no entry tells which state that leaves the last is meant


def _turned(tables: RopeTables, where: torch.Tensor) -> RopeTables:
    return RopeTables(*(table[where] for table in tables))
