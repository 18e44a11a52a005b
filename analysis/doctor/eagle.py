"""Examines EAGLE-3's drafter: the checks of its files, and its arithmetic with a wiring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import linear

from decoding.errors import UnfitError
from decoding.parts.eagle import Block
from decoding.parts.eagle_config import FLAGS
from decoding.parts.eagle_files import StoredEagle, fc_norms, read_eagle

from .eagle_guesses import EagleGuesses
from .eagle_probes import EagleProbes
from .feature_drafter import ExaminedFeatures
from .feature_probes import FeatureWiring
from .probes import UNDECIDED, Check

if TYPE_CHECKING:
    from decoding.model.split import AnyDecoder

    from .texts import Text


class ExaminedEagle(ExaminedFeatures):
    """A drafter, as its folder holds it."""

    kind, method = "eagle", "eagle3"
    _stored: StoredEagle

    def __init__(self, folder: str, model: AnyDecoder, loaded: str = "") -> None:
        super().__init__(folder, model, loaded)
        self._changes = EagleProbes(model, self._weights, self.drafted, self.layers(), self.rope)
        self.given = FeatureWiring(self._stored.config, self.taps, model.dtype, self._embedding)

    def _read_files(self, folder: str, *, lenient: bool = False) -> StoredEagle:
        return read_eagle(folder, self.model, lenient=lenient)

    @property
    def taps(self) -> tuple[int, ...]:
        """The tapped layers of the files, or the usual ones."""
        return self._stored.taps

    def _explain(self, error: UnfitError, stored: StoredEagle) -> Check:
        if error.flag == "verifier":
            return super()._explain(error, stored)
        config = stored.config
        if error.flag in FLAGS:
            sentence = str(error).partition(": ")[0]  # which value it should have is measured
            return Check(error.flag, error.flag, fine=False, sentence=sentence, better=UNDECIDED)
        names = fc_norms(config, len(stored.taps)).keys() & stored.weights.keys()
        flag = "norm_before_fc" if "input_norm.weight" in names or (not names and config.norm_before_fc) else "fc_norm"
        given = getattr(config, flag)
        remedy = f"set {flag} to {str(not given).lower()} in config.json"
        sentence = f"{str(error).partition(': ')[0]}: {remedy}{', or add the weight' if given else ''}"
        return Check(flag, flag, fine=False, sentence=sentence, given=given, better=not given)

    @property
    def _unasked(self) -> set[str]:
        """Return the norms before fc that no flag asks for, which `_explain` reports."""
        config = self._stored.config
        asked = fc_norms(config, len(self.taps)) if config.norm_before_fc or config.fc_norm else {}
        return {name for name in self._weights if name.startswith(("input_norm.", "fc_norm."))} - asked.keys()

    def guess(self, wiring: FeatureWiring, text: Text, places: Sequence[int], depth: int) -> torch.Tensor:  # (P, depth)
        """Return the likeliest chain at every position."""
        return EagleGuesses(self, wiring, text, places).guess(depth)

    def rows(
        self, wiring: FeatureWiring, text: Text, places: Sequence[int]
    ) -> tuple[torch.Tensor, list[int]]:  # (P, n), P
        """Return the logits of the first guess at every position, and the target's rows for the same tokens."""
        return self._placed_logits(wiring, EagleGuesses(self, wiring, text, places).first()), [*places]

    def _make(self, wiring: FeatureWiring, weights: Mapping[str, torch.Tensor]) -> Block:
        return Block(wiring.config, weights, lambda weight, bias: lambda x: linear(x, weight, bias))

    def held(self, wiring: FeatureWiring) -> Mapping[str, torch.Tensor]:
        """Return all weights on the model's device; norm scales that the flags ask for and no file has are 1."""
        config, held = wiring.config, super().held(wiring)
        one = next(iter(held.values()))
        asked = fc_norms(config, len(self.taps)) if config.norm_before_fc or config.fc_norm else {}
        return {**{name: one.new_ones(size) for name, size in asked.items()}, **held}
