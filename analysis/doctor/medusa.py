"""Examines Medusa heads: which head guesses which position, and from which hidden state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations, permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from decoding.model.files import read_json
from decoding.model.precision import spelt
from decoding.parts.heads import HeadWeights, features, load_heads

from .edits import Edit, Weights, edited, negated, shares_of, transposed
from .names import check_names
from .probes import Check, Probe, edit_probes, probe
from .rest import check_lost, check_rounding, check_verifier, refuse_infinite

if TYPE_CHECKING:
    from decoding.model.split import AnyDecoder

    from .texts import Text

_FEW = 4  # heads of which every order is tried
_KEPT = 2**28  # bytes of logits, at most


@dataclass(frozen=True, slots=True)
class MedusaWiring:
    """The settings that the heads' file, or the program that runs them, may get wrong."""

    order: tuple[int, ...]  # the head that guesses the first position, the second, ...
    normed: bool = True  # whether the hidden state has been through the final norm
    place: int = 0  # of the hidden state, beside the one with which the target chose the root
    edits: tuple[Edit, ...] = ()  # of the weights


class ExaminedHeads:
    """Heads, as their folder holds them."""

    method, apart = "medusa", "head"
    young = False  # heads have no norms

    def __init__(self, folder: str, model: AnyDecoder, loaded: str = "") -> None:
        self.folder: Path | None = Path(folder)
        self._loaded = loaded
        self.model, self._heads = model, load_heads(folder, model)
        weights = self._heads.weights
        refuse_infinite({"blocks": weights.weight, "biases": weights.bias, "output layers": weights.output})
        drafted = self._heads.vocabulary
        self.drafted = None if drafted is None else drafted.ids
        output = model.embeddings()[1]
        self._output = output if drafted is None else drafted.rows(output)
        config = read_json(Path(folder) / "config.json")
        self._names, named = check_names("medusa", config), config.get("base_model_name_or_path")
        self._named = named if isinstance(named, str) else ""
        self.about, self.depth = self._heads.about, self._heads.count
        self.given = MedusaWiring(tuple(range(self.depth)))
        self._answers = dict[tuple[Any, ...], torch.Tensor]()

    def checks(self) -> Sequence[Check]:
        """Check what the files show."""
        weights, name = self._heads.weights, self.model.card.name
        outputs = f"{len(weights.with_output)} of {self.depth} heads have their own output layer"
        return [
            check_verifier(self._named, name, self._loaded),
            self._names,
            Check("shapes", "shapes", fine=True, sentence=f"{self.depth} heads of the model's size; {outputs}"),
            self._check_biases(),
            self._check_blocks(),
            check_lost(self._stacks),
            check_rounding(self._stacks),
            Check("dtype", "dtype", fine=True, sentence=f"computed in {spelt(weights.weight.dtype)}"),
        ]

    def _check_blocks(self) -> Check:
        """Look for heads whose blocks are all zeros, or the same as another head's."""
        stored, name = self._heads.weights, "blocks"
        blocks = stored.weight.unbind(1)  # of every head
        mute = [head for head in range(self.depth) if not bool(blocks[head].any())]
        if mute:
            sentence = f"the blocks of {_listed(mute)} are all zeros: untrained"
            return Check(name, name, fine=False, sentence=sentence, given="zeros", better="trained")
        same = [
            (one, other)
            for one, other in combinations(range(self.depth), 2)
            if torch.equal(blocks[one], blocks[other]) and not {one, other} & {*stored.with_output}
        ]
        if same:
            sentence = f"the blocks of {_listed(sorted({*chain(*same)}))} hold the same numbers as another's"
            return Check(name, name, fine=False, sentence=sentence, given="the same", better="its own")
        return Check(name, name, fine=True, sentence="no block is all zeros, and no two heads have the same")

    def _check_biases(self) -> Check:
        """Look for biases that may have been lost: trained ones are not all zeros."""
        name, lost = "biases", not bool(self._heads.weights.bias.any())
        sentence = "all biases are zeros: if the heads were trained with biases, these were lost"
        return Check(name, name, fine=True, sentence=sentence if lost else "the heads have biases", note=lost)

    def layers(self) -> Sequence[int]:
        """Return the layer after the last: its input is what enters the final norm."""
        return [self.model.shape.layers]

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
        best = self._logits(wiring, text, places).argmax(-1)  # (K, P)
        best = best if self.drafted is None else self.drafted[best]
        return best.T[:, :depth]

    def rows(self, wiring: MedusaWiring, text: Text, places: Sequence[int]) -> tuple[torch.Tensor, list[int]]:
        """Return the logits of every head at every position, and the target's rows for the same tokens."""
        return self._logits(wiring, text, places).flatten(0, 1), [p + k for k in range(self.depth) for p in places]

    def edits(self, wiring: MedusaWiring) -> Sequence[Probe]:
        """Transpose the blocks, change their signs and biases, and turn their order."""
        edits = list[Edit]()
        blocks, biases = ([name for name in self._stacks if name.startswith(kind)] for kind in ("blocks", "biases"))
        for name in blocks:
            edits += [transposed(name), negated(name)]
        for name in biases:
            edits += [negated(name)]
        if len(blocks) > 1:
            back = dict(zip((*blocks, *biases), (*blocks[::-1], *biases[::-1]), strict=True))
            remedy = "turn the order of the blocks of every head"
            edits.append(Edit("blocks in reverse order", "block_order", remedy, lambda held: _taken(held, back)))
        return [*edit_probes(wiring, edits), *self._orders(wiring)]

    def _orders(self, wiring: MedusaWiring) -> list[Probe]:
        """Try every order of few heads, and every exchange of two of many."""
        given, places = wiring.order, range(self.depth)
        if self.depth <= _FEW:
            orders = [*permutations(places)]
        else:
            orders = [tuple({a: b, b: a}.get(each, each) for each in given) for a, b in combinations(places, 2)]
        return [
            probe(
                wiring,
                f"heads {listed}",
                "head_order",
                [*given],
                [*order],
                f"renumber the heads to {listed}",
                order=order,
            )
            for order in orders
            if order != given and (listed := ", ".join(str(each + 1) for each in order))
        ]

    def shares(self, wiring: MedusaWiring) -> Sequence[Probe]:
        """Take a share of every block's weights."""
        parts = {f"the weights of block {at + 1}": [f"blocks.{at}", f"biases.{at}"] for at in range(self._blocks)}
        return edit_probes(
            wiring, [edit for what, names in parts.items() for edit in shares_of(what, names, vital=True)]
        )

    @property
    def _blocks(self) -> int:
        return len(self._heads.weights.weight)

    @property
    def _stacks(self) -> Weights:
        weights = self._heads.weights
        stacks = {"blocks": weights.weight, "biases": weights.bias}
        return {f"{kind}.{at}": each for kind, stack in stacks.items() for at, each in enumerate(stack)}

    def _logits(self, wiring: MedusaWiring, text: Text, places: Sequence[int]) -> torch.Tensor:  # (K, P, n)
        """Return the heads' predictions in this order. They are cached by head, since many orders are tried."""
        key = wiring.edits, wiring.normed, wiring.place, id(text), tuple(places)
        if key not in self._answers:
            made = self._answer(wiring, text, places)
            if sum(map(_bytes, self._answers.values())) + _bytes(made) > _KEPT:
                self._answers.clear()
            self._answers[key] = made
        return self._answers[key][[*wiring.order]]

    @torch.inference_mode()
    def _answer(self, wiring: MedusaWiring, text: Text, places: Sequence[int]) -> torch.Tensor:  # (K, P, n)
        """Compute the logits of every head, by its number in the file."""
        stored, held = self._heads.weights, edited(self._stacks, wiring.edits)
        blocks = range(self._blocks)
        weight, bias = (torch.stack([held[f"{kind}.{at}"] for at in blocks]) for kind in ("blocks", "biases"))
        hidden = text.hidden if wiring.normed else text.states[self.model.shape.layers]
        rows = hidden[[max(0, place - 1 + wiring.place) for place in places]]
        made = features(HeadWeights(weight, bias, stored.output, stored.with_output), rows)
        logits = [
            made[head]
            @ (stored.output[stored.with_output.index(head)] if head in stored.with_output else self._output).T
            for head in range(self.depth)
        ]
        return torch.stack(logits)


def _listed(heads: Sequence[int]) -> str:
    return f"head{'s' if len(heads) > 1 else ''} {', '.join(str(head + 1) for head in heads)}"


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _taken(held: Weights, names: dict[str, str]) -> Weights:
    return {name: held[other] for name, other in names.items()}
