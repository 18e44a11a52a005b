"""Medusa heads: small layers on the target's last hidden state that guess the tokens after the next one.

Head k (1..K) is n residual blocks x + SiLU(W x + b), then an output layer: its own, or the model's. From the hidden
state after the final norm, of which the model's own output layer makes the next token, it guesses the one k later.
Cai et al., 2024, arXiv 2401.10774, section 3.1.1.

A folder of heads holds config.json and medusa_lm_head.safetensors in the layout in which heads are published:
"2.0.linear.weight" is W of block 0 of the third head, "2.1.weight" its own output layer after that one block.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch.nn.functional import silu

from ..errors import ModelError
from ..model.draft_vocabulary import DraftVocabulary
from ..model.files import FLOATS, PICKLES, read_json
from ..model.linear import Linear, linear
from ..native.products import has_native
from ..packed import open_tensors, stored
from ..params import shown
from ..ranking import ranked
from ..types import JSON
from .draft_vocabulary import read_vocabulary
from .medusa_tree import Accuracies

if TYPE_CHECKING:
    from ..model.transformers_model import AnyModel

FILE, _OTHER_FILE = "medusa_lm_head.safetensors", "model.safetensors"
_PREFIX = "medusa_head."  # of heads that were saved together with their model
_NAME = re.compile(r"(0|[1-9][0-9]?)\.(0|[1-9][0-9]?)\.(linear\.weight|linear\.bias|weight)")
_BLOCK = ("linear.weight", "linear.bias")  # the tensors of one residual block
_EDGE = 4096  # bytes of each end of a tensor that go into the hash of a folder
_MOST_RANKS = 256  # accuracies that a head may have

TensorKey = tuple[int, int, str]  # head, layer in it, and which tensor of that layer


class Guesser(Protocol):
    """The interface of heads for a method."""

    about: str
    count: int
    accuracies: Accuracies | None  # how often each head's guesses are right, if measured

    def top(self, hidden: torch.Tensor, ranks: int) -> torch.Tensor:  # (H,) -> (K, ranks) ids
        """Return every head's `ranks` likeliest tokens, the best first; all of a smaller vocabulary."""
        ...


@dataclass(frozen=True, slots=True)
class HeadWeights:
    """K heads of n blocks each, stacked, so that all are computed at once."""

    weight: torch.Tensor  # (n, K, H, H)
    bias: torch.Tensor  # (n, K, H)
    output: torch.Tensor  # (len(with_output), V, H)
    with_output: tuple[int, ...]  # the heads with an output layer; the others share the model's


def features(weights: HeadWeights, hidden: torch.Tensor) -> torch.Tensor:  # (R, H) -> (K, R, H)
    """Return the input of every head's output layer; gradients flow."""
    x = hidden.expand(weights.weight.shape[1], -1, -1)
    for weight, bias in zip(weights.weight, weights.bias, strict=True):
        x = x + silu(torch.baddbmm(bias[:, None], x, weight.transpose(1, 2)))
    return x


class Heads:
    """Heads and their model."""

    def __init__(
        self,
        weights: HeadWeights,
        head: Callable[[torch.Tensor], torch.Tensor],  # the model's own output layer: (R, H) -> (R, V)
        about: str,
        accuracies: Accuracies | None = None,
        vocabulary: DraftVocabulary | None = None,  # that all output layers are cut to
    ) -> None:
        self.vocabulary = vocabulary
        self.weights, self.about, self.accuracies = weights, about, accuracies
        self.count: int = weights.weight.shape[1]
        self._head = head
        self._blocks = _native_blocks(weights)
        # A list as an index would be copied to the device at every step.
        self._with_output = torch.tensor(weights.with_output, dtype=torch.long, device=weights.weight.device)
        self._all_have_output = weights.with_output == tuple(range(self.count))

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:  # (H,) after the final norm -> (K, V)
        """Return every head's logits."""
        logits = self._logits(hidden)
        return logits if self.vocabulary is None else self.vocabulary.widen(logits)

    def _features(self, row: torch.Tensor) -> torch.Tensor:  # (1, H) -> (K, H)
        if self._blocks is None:
            return features(self.weights, row)[:, 0].contiguous()
        x = row.expand(self.count, -1)
        for heads in self._blocks:
            x = x + silu(torch.cat([product(x[k : k + 1]) for k, product in enumerate(heads)]))
        return x

    def top(self, hidden: torch.Tensor, ranks: int) -> torch.Tensor:  # (H,) -> (K, ranks) ids
        """Return every head's likeliest tokens, the best first."""
        indices = ranked(self._logits(hidden), ranks)
        return indices if self.vocabulary is None else self.vocabulary.ids[indices]

    @torch.inference_mode()
    def _logits(self, hidden: torch.Tensor) -> torch.Tensor:  # (H,) -> (K, tokens that may be drafted)
        weights = self.weights
        x = self._features(hidden[None])
        if not weights.with_output:
            return self._head(x)
        rows = x if self._all_have_output else x.index_select(0, self._with_output)
        logits = torch.bmm(weights.output, rows[:, :, None])[:, :, 0]
        return logits if self._all_have_output else self._head(x).index_copy_(0, self._with_output, logits)


def _native_blocks(weights: HeadWeights) -> list[list[Linear]] | None:
    """Make the blocks' linear layers in compiled code, so that torch's threads stay asleep; None without it."""
    if not has_native(weights.weight.device, weights.weight.dtype):
        return None
    pairs = (zip(*block, strict=True) for block in zip(weights.weight, weights.bias, strict=True))
    return [[linear(weight, bias) for weight, bias in block] for block in pairs]


def load_heads(folder: str, model: AnyModel) -> Heads:
    """Read heads that were trained for `model`; ModelError if they do not fit it.

    The file determines the number of heads: the configurations of published heads name fewer.
    """
    path = _find(folder)
    config = read_json(path.parent / "config.json")
    with open_tensors(path, f"{path.name} is damaged or cut short: fetch or train the heads again") as file:
        names = _names(path, file)
        count, blocks, with_output = _arrangement(path, names)
        _check_config(path, config, count, blocks)
        accuracies = _accuracies(path, config, count)
        size, vocabulary = model.shape.hidden, model.shape.vocabulary
        shapes = {"linear.weight": (size, size), "linear.bias": (size,), "weight": (vocabulary, size)}
        for (_, _, kind), name in names.items():
            _check_tensor(path, name, file.get_slice(name), shapes[kind], model.card.name)
        to: dict[str, Any] = {"dtype": model.dtype, "device": model.device}
        stacks = {
            "linear.weight": torch.empty(blocks, count, size, size, **to),
            "linear.bias": torch.empty(blocks, count, size, **to),
            "weight": torch.empty(len(with_output), vocabulary, size, **to),
        }
        digest = hashlib.sha256()
        for (number, layer, kind), name in sorted(names.items()):
            tensor = file.get_tensor(name)
            digest.update(f"{number}.{layer}.{kind} {tensor.dtype}".encode() + _edges(tensor))
            stacks[kind][with_output.index(number) if kind == "weight" else (layer, number)].copy_(tensor)
    output = stacks["weight"]
    head: Callable[[torch.Tensor], torch.Tensor] = model.head
    if (drafted := read_vocabulary(path.parent, model)) is not None:
        digest.update(drafted.about.encode())
        output, head = drafted.rows(output), drafted.head(model.embeddings()[1])
    weights = HeadWeights(stacks["linear.weight"], stacks["linear.bias"], output, with_output)
    about = f"{path.parent.resolve().name} {digest.hexdigest()[:12]}"
    return Heads(weights, head, about, accuracies, drafted)


def _find(folder: str) -> Path:
    """Find the file of the heads."""
    place = Path(folder)
    try:
        if not place.is_dir():
            raise ModelError(f"{folder[:200]!r} is no folder: name one with heads and their config.json")
        for path in (stored(place / name) for name in (FILE, _OTHER_FILE)):
            if path.is_file():
                if not (place / "config.json").is_file():
                    raise ModelError(f"the heads in {folder[:200]!r} have no config.json: fetch them again")
                return path
        pickles = [path.name for pattern in PICKLES for path in place.glob(pattern)]
    except OSError:
        raise ModelError(f"{folder[:200]!r} cannot be read: name the folder that holds the heads") from None
    if pickles:
        raise ModelError(
            f"{folder[:200]!r} holds pickled heads only ({pickles[0][:80]}), and those can run code: "
            f"convert them to {FILE}"
        )
    raise ModelError(f"{folder[:200]!r} holds no {FILE}: name a folder of Medusa heads")


def _names(path: Path, file: Any) -> dict[TensorKey, str]:
    """Read the names of the heads' tensors; heads with a prefix may be among other weights."""
    stored = list(file.keys())
    prefixed = {name: name.removeprefix(_PREFIX) for name in stored if name.startswith(_PREFIX)}
    names: dict[TensorKey, str] = {}
    for name, short in (prefixed or {name: name for name in stored}).items():
        match = _NAME.fullmatch(short)
        if match is None:
            raise ModelError(f"{path.name} holds {name[:80]!r}, which is no weight of a Medusa head: name other heads")
        names[int(match[1]), int(match[2]), match[3]] = name
    if not names:
        raise ModelError(f"{path.name} holds no weights: fetch or train the heads again")
    return names


def _arrangement(path: Path, names: Mapping[TensorKey, str]) -> tuple[int, int, tuple[int, ...]]:
    """Return the number of heads, the number of blocks of each, and the heads with an output layer."""
    count = 1 + max(head for head, _, _ in names)
    blocks = len({layer for head, layer, kind in names if head == 0 and kind in _BLOCK})
    with_output = tuple(sorted(head for head, _, kind in names if kind == "weight"))
    expected = {(head, layer, kind) for head in range(count) for layer in range(blocks) for kind in _BLOCK}
    expected |= {(head, blocks, "weight") for head in with_output}
    if expected != names.keys():
        head, layer, kind = min(expected ^ names.keys())
        word = "lacks" if (head, layer, kind) in expected else "has no place for"
        raise ModelError(
            f"{path.name} {word} the weight {head}.{layer}.{kind}: each of its {count} heads must have the {blocks} "
            "blocks of the first, and after them an output layer or none"
        )
    return count, blocks, with_output


def _check_config(path: Path, config: Mapping[str, JSON], count: int, blocks: int) -> None:
    """Raise ModelError if the configuration belongs to another file."""
    allowed = {"medusa_num_heads": (range(1, count + 1), "heads"), "medusa_num_layers": ((blocks,), "blocks a head")}
    for name, (fine, what) in allowed.items():
        given = config.get(name, fine[-1])
        if type(given) is not int or given not in fine:
            raise ModelError(
                f"{name} in config.json is {shown(given)}, but {path.name} holds {fine[-1]} {what}: "
                "take both files from the same place"
            )


def _check_tensor(path: Path, name: str, part: Any, expected: tuple[int, ...], model: str) -> None:
    shape = tuple(part.get_shape())
    if shape != expected:
        raise ModelError(
            f"{name[:80]} in {path.name} has shape {list(shape)[:8]}, but heads for {model[:80]} have {list(expected)} "
            "there: name heads that were trained for this model"
        )
    if part.get_dtype() not in FLOATS:
        raise ModelError(f"{name[:80]} in {path.name} is stored as {part.get_dtype()}: convert the heads to float32")


def _accuracies(path: Path, config: Mapping[str, JSON], count: int) -> Accuracies | None:
    """Read the measured accuracies, if there are any."""
    rows = config.get("accuracies")
    if rows is None:
        return None
    fine = type(rows) is list and len(rows) == count and all(type(row) is list for row in rows)
    if not fine or not all(0 < len(row) <= _MOST_RANKS and all(map(_is_share, row)) for row in rows):
        raise ModelError(
            f"accuracies in config.json beside {path.name} must be {count} lists of numbers from 0 to 1: "
            "leave them out or measure them again"
        )
    return [list(map(float, row)) for row in rows]


def _is_share(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and 0.0 <= value <= 1.0


def _edges(tensor: torch.Tensor) -> bytes:
    """Return the first and last bytes: enough to distinguish heads without hashing every byte."""
    flat, edge = tensor.flatten(), _EDGE // tensor.element_size()
    return b"".join(part.view(torch.uint8).numpy().tobytes() for part in (flat[:edge], flat[-edge:]))
