"""Examines EAGLE-3's drafter: the checks of its files, and its arithmetic with a wiring."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import linear

from decoding.errors import UnfitError
from decoding.model.rope import Rope
from decoding.parts.eagle import Block
from decoding.parts.eagle_config import FLAGS
from decoding.parts.drafter_files import same_model
from decoding.parts.eagle_files import StoredEagle, fc_norms, read_eagle

from .eagle_guesses import EagleGuesses
from .eagle_probes import EagleProbes, EagleWiring
from .edits import edited
from .names import names_in
from .probes import UNDECIDED, Check
from .rest import check_dtype, check_embedding, check_eps, check_norms, check_numbers, check_verifier, is_young
from .rows import check_rows, match_rows

if TYPE_CHECKING:
    from decoding.model.split import AnyDecoder

    from .texts import Text

_DEPTH = 5


class ExaminedEagle:
    """A drafter, as its folder holds it."""

    method = "eagle3"

    def __init__(self, folder: str, model: AnyDecoder, loaded: str = "") -> None:
        self.folder: Path | None = Path(folder)
        self._loaded = loaded
        self.model, self._refused = model, list[Check]()
        self._stored, self._names = self._read(folder), names_in("eagle", folder)
        self.about, self.depth, self.young = self._stored.about, _DEPTH, is_young(self._stored.weights)
        weights = dict(self._stored.weights)
        ids = weights.pop("ids", None)
        self.drafted = None if ids is None else ids.long().to(model.device)
        self._weights, self._cast = weights, dict[torch.dtype, Mapping[str, torch.Tensor]]()
        self._embeddings = model.embeddings()
        self._by_rows: torch.Tensor | None = None
        self._block: tuple[EagleWiring, Block] | None = None
        self._ropes = dict[tuple[str, int, torch.dtype], Rope]()
        changes = EagleProbes(model, weights, self.drafted, self.layers(), self.rope)
        self.probes, self.edits, self.shares = changes.probes, changes.edits, changes.shares
        embedding = "own" if "embed_tokens.weight" in weights else "target"
        self.given = EagleWiring(self._stored.config, self._stored.taps, model.dtype, embedding)

    def _read(self, folder: str) -> StoredEagle:
        try:
            return read_eagle(folder, self.model)
        except UnfitError as error:
            stored = read_eagle(folder, self.model, lenient=True)  # raises what nothing can be measured with
            if error.flag != "verifier" or not same_model(stored.config.verifier, self._loaded):
                self._refused.append(self._explain(error, stored))
            return stored

    def _explain(self, error: UnfitError, stored: StoredEagle) -> Check:
        config, name = stored.config, self.model.card.name
        if error.flag == "verifier":
            return Check("verifier", "verifier", fine=False, sentence=str(error), given=config.verifier, better=name)
        if error.flag in FLAGS:
            sentence = str(error).partition(": ")[0]  # which value it should have is measured
            return Check(error.flag, error.flag, fine=False, sentence=sentence, better=UNDECIDED)
        names = fc_norms(config, len(stored.taps)).keys() & stored.weights.keys()
        flag = "norm_before_fc" if "input_norm.weight" in names or (not names and config.norm_before_fc) else "fc_norm"
        given = getattr(config, flag)
        remedy = f"set {flag} to {str(not given).lower()} in config.json"
        sentence = f"{str(error).partition(': ')[0]}: {remedy}{', or add the weight' if given else ''}"
        return Check(flag, flag, fine=False, sentence=sentence, given=given, better=not given)

    def checks(self) -> Sequence[Check]:
        """Check what the files show."""
        config, weights, model = self._stored.config, self._weights, self.model
        checks = [*self._refused]
        if not any(check.name == "verifier" for check in checks):
            checks.append(check_verifier(config.verifier, model.card.name, self._loaded))
        kept = f"{config.draft_vocabulary:,} of {model.shape.vocabulary:,} tokens, each once and in range"
        kept = kept if self.drafted is not None else "all tokens can be drafted"
        taps = ", ".join(map(str, self._stored.taps))
        embedding = weights.get("embed_tokens.weight")
        return [
            *checks,
            *self._names,
            Check("shapes", "shapes", fine=True, sentence=f"{len(weights)} weights have the sizes of config.json"),
            Check("vocabulary map", "vocabulary_map", fine=True, sentence=kept),
            Check("tapped layers", "taps", fine=True, sentence=f"{taps} of {model.shape.layers}"),
            check_norms({name: weight for name, weight in weights.items() if name not in self._unasked}),
            check_eps(config.shape.eps, model.shape.eps),
            check_embedding(embedding, self._embeddings[0]),
            check_rows(weights.get("lm_head.weight"), self._embeddings[1], self.drafted),
            *check_numbers(weights),
            check_dtype(weights, model.dtype),
        ]

    @property
    def _unasked(self) -> set[str]:
        """Return the norms before fc that no flag asks for, which `_explain` reports."""
        config, taps = self._stored.config, len(self._stored.taps)
        asked = fc_norms(config, taps) if config.norm_before_fc or config.fc_norm else {}
        return {name for name in self._weights if name.startswith(("input_norm.", "fc_norm."))} - asked.keys()

    def layers(self) -> Sequence[int]:
        """Return the tapped layers and their neighbours."""
        return sorted({tap + by for tap in self._stored.taps for by in (-1, 0, 1) if self._has(tap + by)})

    def guess(self, wiring: EagleWiring, text: Text, places: Sequence[int], depth: int) -> torch.Tensor:  # (P, depth)
        """Return the likeliest chain at every position."""
        return EagleGuesses(self, wiring, text, places).guess(depth)

    def rows(
        self, wiring: EagleWiring, text: Text, places: Sequence[int]
    ) -> tuple[torch.Tensor, list[int]]:  # (P, n), P
        """Return the logits of the first guess at every position, and the target's rows for the same tokens."""
        logits = self._logits(wiring, EagleGuesses(self, wiring, text, places).first())
        if self.drafted is not None and (wiring.by_rows or wiring.map_shift):
            wide = logits.new_full((len(logits), self.model.shape.vocabulary), -torch.inf)
            logits = wide.index_copy_(1, self._ids(wiring), logits)[:, self.drafted]
        return logits, [*places]

    def block(self, wiring: EagleWiring) -> Block:
        """Make the arithmetic of a wiring, which is kept for the next text."""
        if self._block is None or self._block[0] is not wiring:
            weights = self._held(wiring)
            made = Block(wiring.config, weights, lambda weight, bias: lambda x: linear(x, weight, bias))
            self._block = wiring, made
        return self._block[1]

    def rope(self, wiring: EagleWiring) -> Rope:
        """Make the rotary embedding of a wiring."""
        key = json.dumps(wiring.config.layer, sort_keys=True), wiring.config.shape.rotary, wiring.dtype
        if key not in self._ropes:
            self._ropes[key] = wiring.config.rope(self.model.device, wiring.dtype)
        return self._ropes[key]

    def _held(self, wiring: EagleWiring) -> Mapping[str, torch.Tensor]:
        """Return all weights on the model's device; norm scales that the flags ask for and no file has are 1."""
        dtype, config = wiring.dtype, wiring.config
        if dtype not in self._cast:
            self._cast[dtype] = {name: weight.to(self.model.device, dtype) for name, weight in self._weights.items()}
        held = edited(self._cast[dtype], wiring.edits)
        one = next(iter(held.values()))
        asked = fc_norms(config, len(self._stored.taps)) if config.norm_before_fc or config.fc_norm else {}
        return {**{name: one.new_ones(size) for name, size in asked.items()}, **held}

    def embed(self, wiring: EagleWiring, ids: torch.Tensor) -> torch.Tensor:  # (n,) -> (n, H)
        """Embed tokens."""
        table = self._weights["embed_tokens.weight"] if wiring.embedding == "own" else self._embeddings[0]
        return table.to(ids.device)[ids].to(wiring.dtype)

    def say(self, wiring: EagleWiring, rows: torch.Tensor) -> torch.Tensor:  # (R, H) -> (R,) ids
        """Return the likeliest token after every row."""
        best = self._logits(wiring, rows).argmax(-1)
        if self.drafted is None:
            return best
        return self._ids(wiring)[best]

    def _logits(self, wiring: EagleWiring, rows: torch.Tensor) -> torch.Tensor:  # (R, H) -> (R, n)
        output = self._cast[wiring.dtype].get("lm_head.weight")
        if output is None or wiring.output == "target":
            output = self._embeddings[1] if self.drafted is None else self._embeddings[1][self.drafted]
        return linear(rows, output.to(rows.dtype))

    def _ids(self, wiring: EagleWiring) -> torch.Tensor:  # (n,)
        """Return the token of every row of the output layer."""
        assert self.drafted is not None
        if wiring.by_rows and self._by_rows is None:
            self._by_rows = match_rows(self._weights["lm_head.weight"], self._embeddings[1])[0].to(self.model.device)
        ids = self._by_rows if wiring.by_rows and self._by_rows is not None else self.drafted
        return (ids + wiring.map_shift).clamp(0, self.model.shape.vocabulary - 1)

    def _has(self, layer: int) -> bool:
        return 0 <= layer <= self.model.shape.layers
