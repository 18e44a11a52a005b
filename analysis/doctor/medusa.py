"""Medusa heads under examination: which head guesses which position, and from which hidden state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from decoding.model.files import read_json
from decoding.parts.heads import load_heads

from .probes import Check, Probe, probe, word
from .rest import check_verifier

if TYPE_CHECKING:
    from decoding.model.split import AnyDecoder

    from .texts import Text


@dataclass(frozen=True, slots=True)
class MedusaWiring:
    """All that the program which runs the heads, or the file that holds them, may have wrong."""

    order: tuple[int, ...]  # the head that guesses the first position, the second, ...
    normed: bool = True  # whether the hidden state has been through the final norm
    place: int = 0  # of the hidden state, beside the one with which the target chose the root


class ExaminedHeads:
    """Heads, as their folder holds them."""

    method = "medusa"

    def __init__(self, folder: str, model: AnyDecoder) -> None:
        self._model, self._heads = model, load_heads(folder, model)
        named = read_json(Path(folder) / "config.json").get("base_model_name_or_path")
        self._named = named if isinstance(named, str) else ""
        self.about, self.depth = self._heads.about, self._heads.count
        self.given = MedusaWiring(tuple(range(self.depth)))

    def checks(self) -> Sequence[Check]:
        """Check what the files show."""
        weights, name = self._heads.weights, self._model.card.name
        stored = {"blocks": weights.weight, "biases": weights.bias, "output layers": weights.output}
        spoilt = [what for what, each in stored.items() if not bool(each.isfinite().all())]
        mute = [head + 1 for head in range(self.depth) if not bool(weights.weight[:, head].any())]
        outputs = f"{len(weights.with_output)} of {self.depth} heads have their own output layer"
        return [
            check_verifier(self._named, name),
            Check("shapes", "shapes", fine=True, sentence=f"{self.depth} heads of the model's size; {outputs}"),
            Check(
                "weights",
                "weights",
                fine=not spoilt,
                sentence=f"{spoilt[0]} hold values that are not numbers" if spoilt else "all weights are numbers",
                given=spoilt,
                better=[],
            ),
            Check(
                "blocks",
                "blocks",
                fine=True,
                sentence=f"the blocks of head {mute[0]} are all zeros: untrained" if mute else "no block is all zeros",
            ),
            Check("dtype", "dtype", fine=True, sentence=f"computed in {word(weights.weight.dtype)}"),
        ]

    def layers(self) -> Sequence[int]:
        """Return the layer after the last: its input is what enters the final norm."""
        return [self._model.shape.layers]

    def probes(self, wiring: MedusaWiring) -> Sequence[Probe]:
        """Try other orders of the heads, and other hidden states."""
        probes, order = list[Probe](), wiring.order
        orders = {
            "heads moved by +1": (*order[-1:], *order[:-1]),
            "heads moved by -1": (*order[1:], *order[:1]),
            "heads reversed": order[::-1],
        }
        for name, other in orders.items():
            if other != order and other not in [probe.wiring.order for probe in probes]:
                remedy = "renumber the heads in the file"
                probes.append(probe(wiring, name, "head_order", [*order], [*other], remedy, order=other))
        normed, state = not wiring.normed, f"hidden state {'before' if wiring.normed else 'after'} the final norm"
        remedy = f"give the heads the {state}"
        probes.append(probe(wiring, state, "normed", wiring.normed, normed, remedy, normed=normed))
        for shift in sorted({-1, 0} - {wiring.place}):
            name, remedy = f"hidden state {shift:+d}", f"give the heads the hidden state {1 - shift} before the root"
            probes.append(probe(wiring, name, "hidden_place", wiring.place, shift, remedy, place=shift))
        return probes

    def guess(self, wiring: MedusaWiring, text: Text, places: Sequence[int], depth: int) -> torch.Tensor:  # (P, depth)
        """Return the likeliest token of every head."""
        hidden = text.hidden if wiring.normed else text.states[self._model.shape.layers]
        rows = [max(0, place - 1 + wiring.place) for place in places]
        best = torch.stack([self._heads.top(hidden[row], 1)[:, 0] for row in rows])  # (P, K)
        return best[:, [*wiring.order]][:, :depth]
