"""A drafter under examination that reads the target's features: what its files show, and what a wiring changes."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch.nn.functional import linear

from decoding.errors import UnfitError
from decoding.model.rope import Rope
from decoding.parts.drafter_files import same_model

from .edits import edited
from .feature_probes import FeatureProbes, FeatureWiring
from .names import names_in
from .probes import Check, Probe
from .rest import (
    check_dtype,
    check_embedding,
    check_eps,
    check_norms,
    check_numbers,
    check_verifier,
    is_young,
)
from .rows import check_rows, match_rows

if TYPE_CHECKING:
    from decoding.model.split import AnyDecoder

    from .texts import Text

_DEPTH = 5


class ExaminedFeatures(ABC):
    """A drafter, as its folder holds it."""

    kind: ClassVar[str]  # its flag
    apart = ""
    _changes: FeatureProbes
    given: Any

    def __init__(self, folder: str, model: AnyDecoder, loaded: str = "") -> None:
        self.folder: Path | None = Path(folder)
        self._loaded = loaded
        self.model, self._refused = model, list[Check]()
        self._stored, self._names = self._read(folder), names_in(self.kind, folder)
        self.about, self.depth, self.young = self._stored.about, _DEPTH, is_young(self._stored.weights)
        weights = dict(self._stored.weights)
        ids = weights.pop("ids", None)
        self.drafted = None if ids is None else ids.long().to(model.device)
        self._weights, self._cast = weights, dict[torch.dtype, Mapping[str, torch.Tensor]]()
        self._embeddings = model.embeddings()
        self._embedding = "own" if "embed_tokens.weight" in weights else "target"
        self._by_rows: torch.Tensor | None = None
        self._block: tuple[FeatureWiring, Any] | None = None
        self._ropes = dict[tuple[str, int, torch.dtype], Rope]()

    @abstractmethod
    def _read_files(self, folder: str, *, lenient: bool = False) -> Any:
        """Read the folder."""

    @abstractmethod
    def _make(self, wiring: Any, weights: Mapping[str, torch.Tensor]) -> Any:
        """Make the arithmetic of a wiring."""

    @property
    @abstractmethod
    def taps(self) -> tuple[int, ...]:
        """The tapped layers of the files."""

    def _read(self, folder: str) -> Any:
        try:
            return self._read_files(folder)
        except UnfitError as error:
            stored = self._read_files(folder, lenient=True)  # raises what nothing can be measured with
            if error.flag != "verifier" or not same_model(stored.config.verifier, self._loaded):
                self._refused.append(self._explain(error, stored))
            return stored

    def _explain(self, error: UnfitError, stored: Any) -> Check:
        assert error.flag == "verifier"
        named, name = stored.config.verifier, self.model.card.name
        return Check("verifier", "verifier", fine=False, sentence=str(error), given=named, better=name)

    def checks(self) -> Sequence[Check]:
        """Check what the files show."""
        config, weights, model = self._stored.config, self._weights, self.model
        checks = [*self._refused]
        if not any(check.name == "verifier" for check in checks):
            checks.append(check_verifier(config.verifier, model.card.name, self._loaded))
        kept = f"{config.draft_vocabulary:,} of {model.shape.vocabulary:,} tokens, each once and in range"
        kept = kept if self.drafted is not None else "all tokens can be drafted"
        taps = ", ".join(map(str, self.taps))
        return [
            *checks,
            *self._names,
            Check("shapes", "shapes", fine=True, sentence=f"{len(weights)} weights have the sizes of config.json"),
            Check("vocabulary map", "vocabulary_map", fine=True, sentence=kept),
            Check("tapped layers", "taps", fine=True, sentence=f"{taps} of {model.shape.layers}"),
            *self._own_checks(),
            check_norms({name: weight for name, weight in weights.items() if name not in self._unasked}),
            check_eps(config.shape.eps, model.shape.eps),
            check_embedding(weights.get("embed_tokens.weight"), self._embeddings[0]),
            check_rows(weights.get("lm_head.weight"), self._embeddings[1], self.drafted),
            *check_numbers(weights),
            check_dtype(weights, model.dtype),
        ]

    def _own_checks(self) -> Sequence[Check]:
        """Check what only such a drafter has."""
        return ()

    @property
    def _unasked(self) -> set[str]:
        """Return the norms that no flag asks for, which `_explain` reports."""
        return set()

    def layers(self) -> Sequence[int]:
        """Return the tapped layers and their neighbours."""
        return sorted({tap + by for tap in self.taps for by in (-1, 0, 1) if self._has(tap + by)})

    def probes(self, wiring: Any) -> Sequence[Probe]:
        """Flip every entry, or move it by one."""
        return self._changes.probes(wiring)

    def edits(self, wiring: Any) -> Sequence[Probe]:
        """Put weights into other orders, change signs, and divide norms."""
        return self._changes.edits(wiring)

    def shares(self, wiring: Any) -> Sequence[Probe]:
        """Scale down what each part of the drafter adds."""
        return self._changes.shares(wiring)

    def block(self, wiring: Any) -> Any:
        """Make the arithmetic of a wiring, which is kept for the next text."""
        if self._block is None or self._block[0] is not wiring:
            self._block = wiring, self._make(wiring, self.held(wiring))
        return self._block[1]

    def rope(self, wiring: Any) -> Rope:
        """Make the rotary embedding of a wiring."""
        key = json.dumps(wiring.config.layer, sort_keys=True), wiring.config.shape.rotary, wiring.dtype
        if key not in self._ropes:
            self._ropes[key] = wiring.config.rope(self.model.device, wiring.dtype)
        return self._ropes[key]

    def held(self, wiring: Any) -> Mapping[str, torch.Tensor]:
        """Return all weights of a wiring on the model's device."""
        dtype = wiring.dtype
        if dtype not in self._cast:
            self._cast[dtype] = {name: weight.to(self.model.device, dtype) for name, weight in self._weights.items()}
        return edited(self._cast[dtype], wiring.edits)

    def states(self, wiring: Any, text: Text, count: int) -> torch.Tensor:  # (count, taps * H)
        """Return what the tapped layers read of the first tokens, as the wiring places it."""
        states = torch.cat([text.states[tap][:count] for tap in wiring.taps], 1).to(wiring.dtype)
        if wiring.feature_shift:
            states = torch.cat((states[:1].expand(-wiring.feature_shift, -1), states[: wiring.feature_shift]))
        return states

    def embed(self, wiring: Any, ids: torch.Tensor) -> torch.Tensor:  # (n,) -> (n, H)
        """Embed tokens."""
        table = self._weights["embed_tokens.weight"] if wiring.embedding == "own" else self._embeddings[0]
        return table.to(ids.device)[ids].to(wiring.dtype)

    def say(self, wiring: Any, rows: torch.Tensor) -> torch.Tensor:  # (..., H) -> (...) ids
        """Return the likeliest token after every row."""
        best = self._logits(wiring, rows).argmax(-1)
        return best if self.drafted is None else self._ids(wiring)[best]

    def _placed_logits(self, wiring: Any, rows: torch.Tensor) -> torch.Tensor:  # (R, H) -> (R, n)
        """Return the logits of `self.drafted`, whatever tokens the wiring takes the output layer's rows for."""
        logits = self._logits(wiring, rows)
        if self.drafted is not None and (wiring.by_rows or wiring.map_shift):
            wide = logits.new_full((len(logits), self.model.shape.vocabulary), -torch.inf)
            logits = wide.index_copy_(1, self._ids(wiring), logits)[:, self.drafted]
        return logits

    def _logits(self, wiring: Any, rows: torch.Tensor) -> torch.Tensor:  # (..., H) -> (..., n)
        output = self._cast[wiring.dtype].get("lm_head.weight")
        if output is None or wiring.output == "target":
            output = self._embeddings[1] if self.drafted is None else self._embeddings[1][self.drafted]
        return linear(rows, output.to(rows.dtype))

    def _ids(self, wiring: Any) -> torch.Tensor:  # (n,)
        """Return the token of every row of the output layer."""
        assert self.drafted is not None
        if wiring.by_rows and self._by_rows is None:
            self._by_rows = match_rows(self._weights["lm_head.weight"], self._embeddings[1])[0].to(self.model.device)
        ids = self._by_rows if wiring.by_rows and self._by_rows is not None else self.drafted
        shift: int = wiring.map_shift
        return (ids + shift).clamp(0, self.model.shape.vocabulary - 1)

    def _has(self, layer: int) -> bool:
        return 0 <= layer <= self.model.shape.layers
