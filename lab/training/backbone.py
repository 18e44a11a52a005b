"""The model of heads and adapters: frozen, or learning through LoRA, with its original still inside."""

from __future__ import annotations

import copy
import hashlib
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from analysis.plain_folder import plain_folder
from decoding.codec import Codec
from decoding.errors import ModelError
from decoding.installation import required
from decoding.loader import load_codec
from decoding.model.config import Shape, read_shape
from decoding.model.files import TensorFiles, find_folder, read_config
from decoding.model.layout import find_device
from decoding.model.loading import Digest, check_tensors
from decoding.model.precision import find_dtype
from decoding.model.session import ProgressCallback
from decoding.model.weights import assemble
from decoding.types import JSON

from .batches import Batch
from .memory import memory_advice
from .saving import save_model
from .seeding import seeded

_SHORT = 512  # tokens up to which plain products are the fastest attention on a CPU, and small
_LOGITS = 2**22  # in memory at a time
_NEEDS_CUDA = (
    "--quantise needs a CUDA device and bitsandbytes: pip install bitsandbytes on a machine that has one, or leave "
    "it out"
)


@dataclass(frozen=True, slots=True)
class Lora:
    """How the model learns beside its heads; the paper's numbers."""

    rank: int = 32
    alpha: int = 16
    dropout: float = 0.05


class HiddenStates(NamedTuple):
    """The model's hidden states for a batch."""

    final: Tensor  # (lines, length, H) after the final norm
    # The states entering the requested layers, side by side and not normed: (lines, length, layers * H).
    entering: Tensor | None


class Backbone:
    """A transformers model of the Llama family."""

    def __init__(self, model: Any, name: str, *, quantised: bool = False, card_hash: str = "") -> None:
        self.model, self.name, self.quantised = model.eval().requires_grad_(False), name, quantised
        self.card_hash = card_hash  # by which the engine knows the model's folder; empty if it came from none
        self.shape: Shape = _shape(model.config)
        weight = model.get_input_embeddings().weight
        self.device: torch.device = weight.device
        self.dtype: torch.dtype = weight.dtype
        self.hash = _fingerprint(model)
        self._lora: Any = None

    def read(self, batch: Batch, *, learning: bool = False, layers: Sequence[int] = ()) -> HiddenStates:
        """Run the model; gradients reach the adapter where it is learning."""
        entering: list[Tensor] = []
        inner = self.model.model
        places = [inner.layers[layer] if layer < len(inner.layers) else inner.norm for layer in layers]
        hooks = [place.register_forward_pre_hook(lambda module, inputs: entering.append(inputs[0])) for place in places]
        self.model.train(learning)
        try:
            with torch.set_grad_enabled(learning), self.cast():
                # Without a mask, transformers keeps the rows of a line apart by their positions.
                outputs = inner(input_ids=batch.ids, position_ids=batch.positions, use_cache=False)
        finally:
            for hook in hooks:
                hook.remove()
        return HiddenStates(outputs.last_hidden_state, torch.cat(entering, -1) if entering else None)

    @property
    def logit_rows(self) -> int:
        """Count the rows of logits that are in memory at a time."""
        return max(1, _LOGITS // self.shape.vocabulary)

    def logits(self, hidden: Tensor) -> Tensor:  # (..., H) after the final norm -> (..., V) in float32
        """Apply the model's output layer."""
        with self.cast():
            logits: Tensor = self.model.get_output_embeddings()(hidden)
        return logits.float()

    def cast(self) -> AbstractContextManager[Any]:
        """Compute products in bfloat16 where the model is in it, also of weights that learn in float32."""
        if self.dtype != torch.bfloat16:
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)

    @property
    def adapted(self) -> dict[str, nn.Parameter]:
        """The weights of the LoRA adapter, by name."""
        return {name: weight for name, weight in self.model.named_parameters() if weight.requires_grad}

    def adapt(self, lora: Lora, seed: int) -> None:
        """Put a LoRA adapter beside every linear layer; the output layer's only where it is not the embedding too."""
        targets = {name for name, module in self.model.named_modules() if isinstance(module, nn.Linear)}
        if self.model.config.tie_word_embeddings:  # merged, it would change what the tokens mean at the entrance
            targets.discard("lm_head")
        config = _peft().LoraConfig(
            r=lora.rank, lora_alpha=lora.alpha, lora_dropout=lora.dropout, target_modules=sorted(targets), bias="none"
        )
        with seeded(f"{seed}/lora", self.device):
            self._lora = _adapted(self.model, config)

    @contextmanager
    def original(self) -> Iterator[None]:
        """Switch the adapter off, so that the model is as it was before it learnt."""
        with nullcontext() if self._lora is None else self._lora.disable_adapter():
            yield

    def unquantised(self) -> Backbone:
        """Return the model with the weights to merge the adapter into; the same model if these are its own."""
        return Backbone(self._opened_anew().to(self.device), self.name) if self.quantised else self

    def merge(self) -> None:
        """Merge the adapter into the plain weights."""
        if self._lora is None:
            return
        if self.quantised:
            self.model = self._merged_anew()
            self.quantised = False
        else:
            self.model = self._lora.merge_and_unload()
        self._lora = None
        self.model.eval().requires_grad_(False)

    def _merged_anew(self) -> Any:
        """Merge the adapter into unquantised weights: rounding a quantised sum would lose most of what was learnt."""
        peft = _peft()
        fresh = _adapted(self._opened_anew(), self._lora.peft_config["default"])
        learnt = peft.get_peft_model_state_dict(self._lora, save_embedding_layers=False)  # what was learnt, not more
        peft.set_peft_model_state_dict(fresh, learnt)
        return fresh.merge_and_unload().to(self.device)

    def _opened_anew(self) -> Any:
        return _open(self.name, torch.bfloat16, "sdpa")

    def save(self, folder: Path, codec: Codec) -> None:
        """Save an ordinary transformers folder."""
        save_model(self.model, folder)
        codec.tokenizer.save_pretrained(folder)


def load_backbone(
    name: str, *, device: str, dtype: str | None, length: int, quantised: bool, progress: ProgressCallback
) -> tuple[Backbone, Codec]:
    """Load a model of the Llama family and its tokenizer, from a folder, the hub, or the embedded family."""
    where = find_device(device)
    kind = find_dtype(dtype, where)
    if kind not in (torch.float32, torch.bfloat16):
        raise ModelError("heads and adapters are trained with models in float32 or bfloat16: leave --dtype out")
    if quantised and (where.type != "cuda" or find_spec("bitsandbytes") is None):
        raise ModelError(_NEEDS_CUDA)
    folder = find_folder(name, progress, kind)
    raw, config = read_config(folder)
    shape = read_shape(config)
    with TensorFiles(folder) as files:  # transformers would fill what is missing with chance
        tied = shape.tied and "lm_head.weight" not in files.shapes
        check_tensors(shape, tied, files.shapes)
        card_hash = _card_hash(raw, shape, tied, files)
    if length > shape.reach:
        raise ModelError(f"--length {length} exceeds the model's context of {shape.reach}: shorten it")
    codec = _codec(folder)
    attention = "eager" if where.type == "cpu" and length <= _SHORT else "sdpa"
    progress("reading weights", 0.5)
    with memory_advice("for the model", "name a smaller one, or on a GPU add --quantise"):
        model = _open(name, kind, attention, where) if quantised else _open(name, kind, attention).to(where)
    return Backbone(model, name, quantised=quantised, card_hash=card_hash), codec


def _card_hash(raw: dict[str, JSON], shape: Shape, tied: bool, files: TensorFiles) -> str:
    """Compute the hash on the card of the decoder of these files, without keeping its weights in memory."""
    digest = Digest(raw)

    def get(name: str) -> Tensor:
        tensor = files.get(name)
        digest.add(name, tensor)
        return tensor.to("meta")

    assemble(shape, get, tied, lambda share: None)
    return digest.hex


def _open(name: str, dtype: torch.dtype, attention: str, quantised_on: torch.device | None = None) -> Any:
    import transformers

    folder = find_folder(name, lambda what, share: None, dtype)
    more: dict[str, Any] = {}
    if quantised_on is not None:
        more["quantization_config"] = transformers.BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=dtype
        )
        more["device_map"] = {"": quantised_on}
    try:
        with plain_folder(folder) as plain:
            return transformers.AutoModelForCausalLM.from_pretrained(
                plain,
                dtype=dtype,
                attn_implementation=attention,
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
                **more,
            )
    except (OSError, ValueError, KeyError, TypeError, ImportError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelError(f"transformers cannot open the model in {str(folder)!r}: {reason}") from None


def _codec(folder: Path) -> Codec:
    """Read the tokenizer and the ends of a text as the engine does."""
    codec = load_codec(folder)
    if codec.tokenizer is None:
        raise ModelError(f"{str(folder)!r} has no tokenizer: training needs one to read conversations")
    return codec


def _peft() -> Any:
    with required("training the model itself, with LoRA,"):
        return import_module("peft")


def _adapted(model: Any, config: Any) -> Any:
    """Put the model inside an adapter, which changes it in place."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft asks transformers by names that will go
        return _peft().get_peft_model(model, config)


def _shape(config: Any) -> Shape:
    """Return the sizes; a quantised model's are those of the weights it was made from."""
    plain = copy.deepcopy(config)
    if getattr(plain, "quantization_config", None) is not None:
        del plain.quantization_config
    return read_shape(plain)


def _fingerprint(model: nn.Module) -> str:
    """Hash a few numbers of every weight, to tell models apart."""
    digest = hashlib.sha256()
    for name, weight in model.named_parameters():
        digest.update(f"{name} {list(weight.shape)}".encode())
        digest.update(weight.detach().flatten()[:64].to("cpu").float().numpy().tobytes())
    return digest.hexdigest()[:16]
