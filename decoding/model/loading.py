"""Decoders from model folders, the hub, or a transformers model in memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from math import prod
from typing import Any

import torch

from ..errors import ModelError
from ..native.build import library, must_compile
from ..types import JSON, ModelCard
from .config import Shape, read_shape
from .decoder import Decoder
from .files import TensorFiles, find_folder, public_name, read_config
from .linear import packs
from .rope import Rope
from .weights import assemble

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float64": torch.float64,
}
_EDGE = 4096  # bytes of each end of a tensor that go into a model's hash


def load_decoder(
    name: str,
    device: str | torch.device = "cpu",
    dtype: str | torch.dtype | None = None,
    progress: Callable[[str, float], None] | None = None,
    *,
    download: bool = True,
) -> Decoder:
    """Load a model by its name, from a folder, a GGUF file or the hub.

    `progress` hears what is going on and how much of it is done.
    """
    report = progress or (lambda what, share: None)
    where, kind = find_device(device), find_dtype(dtype, find_device(device))
    folder = find_folder(name, report, kind, download=download)
    if where.type == "cpu" and must_compile():
        report("compiling for this processor, once", 0.0)
        library()
    raw, config = read_config(folder)
    shape = read_shape(config)
    with TensorFiles(folder) as files:
        tied = shape.tied and "lm_head.weight" not in files.shapes
        check_tensors(shape, tied, files.shapes)
        digest = Digest(raw)

        def get(weight: str) -> torch.Tensor:
            tensor = files.get(weight)
            digest.add(weight, tensor)
            return tensor.to(where, kind)

        with torch.inference_mode():
            weights = assemble(shape, get, tied, lambda share: report("reading weights", share))
    rope = Rope(config, shape, where, kind)
    return Decoder(shape, weights, rope, _card(public_name(name), shape, tied, digest.hex, where, kind))


def from_transformers(model: Any, dtype: str | torch.dtype | None = None) -> Decoder:
    """The decoder for a transformers model that is in memory already, on the same device."""
    shape, state = read_shape(model.config), model.state_dict()
    where = state["model.embed_tokens.weight"].device
    kind = find_dtype(dtype or state["model.embed_tokens.weight"].dtype, where)
    if shape.tied:
        state.pop("lm_head.weight", None)
    check_tensors(shape, shape.tied, {name: tuple(tensor.shape) for name, tensor in state.items()})
    digest = Digest(model.config.to_diff_dict())

    def get(name: str) -> torch.Tensor:
        digest.add(name, state[name])
        weight: torch.Tensor = state[name].detach()
        return weight.to(where, kind, copy=True)  # the model's own weights may change later

    with torch.inference_mode():
        weights = assemble(shape, get, shape.tied, lambda share: None)
    name = model.config.name_or_path or f"{shape.family} in memory"
    card = _card(name, shape, shape.tied, digest.hex, where, kind)
    return Decoder(shape, weights, Rope(model.config, shape, where, kind), card)


def find_device(device: str | torch.device) -> torch.device:
    """The device, or ModelError where it does not exist."""
    try:
        found = torch.device(device)
    except RuntimeError:
        raise ModelError(f"there is no device {str(device)[:40]!r}; use cpu or cuda") from None
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise ModelError(f"there is no device {str(found)!r} on this machine; use cpu")
    if found.type not in ("cpu", "cuda"):
        raise ModelError(f"the device {str(found)!r} cannot run models here; use cpu or cuda")
    return found


def find_dtype(dtype: str | torch.dtype | None, device: torch.device) -> torch.dtype:
    """The dtype of that name; by default bfloat16 where the device computes with it, else float32."""
    if dtype is None:
        return torch.bfloat16 if device.type == "cuda" or _processor_has_bfloat16() else torch.float32
    found = DTYPES.get(dtype) if isinstance(dtype, str) else dtype
    if found is None or found not in DTYPES.values():
        raise ModelError(f"the dtype {str(dtype)[:40]!r} cannot be used; choose one of {', '.join(DTYPES)}")
    return found


def _processor_has_bfloat16() -> bool:
    """Whether the processor multiplies bfloat16 itself; torch offers these questions under private names only."""
    for question in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        ask = getattr(torch.cpu, question, None)
        if ask is not None and ask():
            return True
    return False


def check_tensors(shape: Shape, tied: bool, found: dict[str, tuple[int, ...]]) -> None:
    """Raise ModelError unless every weight that the configuration speaks of is there in its size."""
    for name, wanted in shape.tensors(tied):
        if name not in found:
            raise ModelError(f"the weight {name} is missing: the weight files do not belong to this config.json")
        if found[name] != wanted:
            raise ModelError(
                f"the weight {name} has shape {list(found[name])}, but config.json asks for {list(wanted)}: "
                "the weight files do not belong to it"
            )


def _card(name: str, shape: Shape, tied: bool, digest: str, device: torch.device, dtype: torch.dtype) -> ModelCard:
    def count(tied: bool) -> int:
        return sum(prod(size) for _, size in shape.tensors(tied))

    embedding, cached = shape.vocabulary * shape.hidden, 2 * shape.layers * shape.kv_heads * shape.head_dim
    return ModelCard(
        name,
        shape.family,
        digest,
        count(tied),
        shape.vocabulary,
        shape.reach,
        weight_bytes=count(tied and not packs(device, dtype)) * dtype.itemsize,  # a packed head is a copy
        # The head is read whole, of the embedding a few rows. Layers that see different parts of the text read
        # different numbers of keys, which one number for each token cannot express.
        pass_bytes=(count(False) - embedding) * dtype.itemsize if len(set(shape.windows)) == 1 else None,
        token_bytes=cached * dtype.itemsize,
    )


class Digest:
    """A model's hash: sha256 over its configuration and, for every weight in the order of reading, its name,
    shape, dtype and the first and last 4096 bytes. Enough to tell models apart without reading each byte twice.
    Weights that were dequantised have the hash of their file, whichever dtype they were dequantised to.
    """

    _NOT_THE_MODEL = ("_name_or_path", "transformers_version", "dtype", "torch_dtype")  # vary with who saved it

    def __init__(self, config: dict[str, JSON]) -> None:
        kept = {name: value for name, value in config.items() if name not in self._NOT_THE_MODEL}
        self._sha = hashlib.sha256(json.dumps(kept, sort_keys=True, default=str).encode())
        self._dequantised = "gguf_sha256" in config

    def add(self, name: str, tensor: torch.Tensor) -> None:
        """Count one weight in."""
        if self._dequantised:
            return
        flat = tensor.detach().contiguous().flatten()
        edge = _EDGE // flat.element_size()
        self._sha.update(f"{name} {list(tensor.shape)} {tensor.dtype}".encode())
        for part in (flat[:edge], flat[-edge:]):
            self._sha.update(part.cpu().view(torch.uint8).numpy().tobytes())

    @property
    def hex(self) -> str:
        """The hash of what was counted in."""
        return self._sha.hexdigest()
