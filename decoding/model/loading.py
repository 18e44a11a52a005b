"""Decoders from model folders, the hub, or a transformers model in memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import torch

from ..errors import ModelError
from ..native.build import library, must_compile
from ..types import JSON, ModelCard
from .config import NOT_THE_MODEL, Shape, has_decoder, read_shape
from .decoder import Decoder
from .files import ModelFolder, TensorFiles, find_folder, public_name, read_config
from .layout import Layout, Sizes, find_devices, lay_out
from .linear import packs
from .memory import check_memory
from .precision import Precision, find_precision
from .rope import Rope
from .session import ProgressCallback
from .split import AnyDecoder, SplitDecoder
from .weights import DecoderWeights, assemble

if TYPE_CHECKING:
    from .transformers_model import AnyModel

_EDGE = 4096  # bytes of each end of a tensor that go into a model's hash


def load_model(
    name: str,
    device: str | torch.device = "cpu",
    dtype: str | torch.dtype | None = None,
    progress: ProgressCallback | None = None,
    *,
    download: bool = True,
) -> AnyModel:
    """Load a model by its name, from a folder, a GGUF file or the hub, into our decoder if it runs the family.

    `device` may be a comma-separated list, over which the layers are split. `progress` is called with the current
    activity and the share of it that is done.
    """
    report = progress or (lambda what, share: None)
    devices = find_devices(device)
    precision = find_precision(dtype, devices[-1])
    path = find_folder(name, report, precision.dtype, download=download)
    folder = ModelFolder(path, *read_config(path), public_name(name), devices, precision, report)
    if has_decoder(folder.raw):
        return _read_decoder(folder)
    if len(devices) > 1:
        raise ModelError(
            f"models of type {str(folder.config.model_type)[:40]!r} cannot be split over devices here: name one device"
        )
    from .transformers_loading import load_modules

    return load_modules(folder)


def _read_decoder(folder: ModelFolder) -> AnyDecoder:
    path, raw, config, name, devices, precision, report = folder
    if any(each.type == "cpu" for each in devices) and must_compile():
        report("compiling for this processor, once", 0.0)
        library()
    shape = read_shape(config)
    with TensorFiles(path) as files:
        tied = shape.tied and "lm_head.weight" not in files.shapes
        check_tensors(shape, tied, files.shapes)
        digest, layout = Digest(raw), lay_out(shape, precision, devices)
        check_memory(name, Sizes.of(shape, precision).held(tied), layout.devices, precision.name)

        def get(weight: str) -> torch.Tensor:
            tensor = files.get(weight)
            digest.add(weight, tensor)
            return tensor.to(layout.device_of(weight), precision.dtype)

        with torch.inference_mode():
            weights = assemble(shape, get, tied, partial(report, "reading weights"), int8=precision.int8)
    return _decoder(config, shape, weights, _card(name, shape, tied, digest.hex, layout, precision), layout)


def from_transformers(
    model: Any, dtype: str | torch.dtype | None = None, devices: Sequence[torch.device] = ()
) -> AnyDecoder:
    """Make a decoder of a transformers model in memory, on the same device or split over others."""
    shape, state = read_shape(model.config), model.state_dict()
    first = state["model.embed_tokens.weight"]
    devices = devices or (first.device,)
    precision = find_precision(dtype or first.dtype, devices[-1])
    layout = lay_out(shape, precision, devices)
    if shape.tied:
        state.pop("lm_head.weight", None)
    check_tensors(shape, shape.tied, {name: tuple(tensor.shape) for name, tensor in state.items()})
    digest = Digest(model.config.to_diff_dict())

    def get(name: str) -> torch.Tensor:
        digest.add(name, state[name])
        weight: torch.Tensor = state[name].detach()
        return weight.to(layout.device_of(name), precision.dtype, copy=True)  # the model's weights may change later

    with torch.inference_mode():
        weights = assemble(shape, get, shape.tied, lambda share: None, int8=precision.int8)
    name = model.config.name_or_path or f"{shape.family} in memory"
    card = _card(name, shape, shape.tied, digest.hex, layout, precision)
    return _decoder(model.config, shape, weights, card, layout)


def decoder_of(model: Any, dtype: str | torch.dtype | None = None) -> Decoder:
    """Make a decoder of a transformers model in memory, on the same device."""
    made = from_transformers(model, dtype)
    assert isinstance(made, Decoder)
    return made


def _decoder(config: Any, shape: Shape, weights: DecoderWeights, card: ModelCard, layout: Layout) -> AnyDecoder:
    ropes = [Rope(config, shape, device, weights.precision.dtype) for device in layout.devices]
    if len(ropes) > 1:
        return SplitDecoder(shape, weights, ropes, card, layout)
    return Decoder(shape, weights, ropes[0], card)


def check_tensors(shape: Shape, tied: bool, sizes: dict[str, tuple[int, ...]]) -> None:
    """Raise ModelError unless every weight of the configuration exists in its size."""
    for name, size in shape.tensors(tied):
        if name not in sizes:
            raise ModelError(f"the weight {name} is missing: the weight files do not belong to this config.json")
        if sizes[name] != size:
            raise ModelError(
                f"the weight {name} has shape {list(sizes[name])}, but config.json asks for {list(size)}: "
                "the weight files do not belong to it"
            )


def _card(name: str, shape: Shape, tied: bool, digest: str, layout: Layout, precision: Precision) -> ModelCard:
    sizes, dtype = Sizes.of(shape, precision), precision.dtype
    # A head that is quantised, packed or on another device than the embedding is a copy of it.
    copied = precision.int8 or len(layout.devices) > 1 or packs(layout.devices[-1], dtype)
    cached = 2 * shape.layers * shape.kv_heads * shape.head_dim
    return ModelCard(
        name,
        shape.family,
        digest,
        sum(prod(size) for _, size in shape.tensors(tied)),
        shape.vocabulary,
        shape.reach,
        weight_bytes=sizes.total - (sizes.head if tied and not copied else 0),
        # A pass reads all of the head, and a few rows of the embedding. Layers that see different parts of the text
        # read different numbers of keys, which one number per token cannot express.
        pass_bytes=sizes.total - sizes.embedding if len(set(shape.windows)) == 1 else None,
        token_bytes=cached * dtype.itemsize,
    )


class Digest:
    """A model's hash: sha256 over its configuration and every weight's name, shape, dtype and two ends.

    Enough to tell models apart without hashing every byte. Dequantised weights have the hash of their file, whatever
    their dtype.
    """

    def __init__(self, config: dict[str, JSON]) -> None:
        kept = {name: value for name, value in config.items() if name not in NOT_THE_MODEL}
        self._sha = hashlib.sha256(json.dumps(kept, sort_keys=True, default=str).encode())
        self._dequantised = "gguf_sha256" in config

    def add(self, name: str, tensor: torch.Tensor) -> None:
        """Add one weight to the hash."""
        if self._dequantised:
            return
        flat = tensor.detach().contiguous().flatten()
        edge = _EDGE // flat.element_size()
        self._sha.update(f"{name} {list(tensor.shape)} {tensor.dtype}".encode())
        for part in (flat[:edge], flat[-edge:]):
            self._sha.update(part.cpu().view(torch.uint8).numpy().tobytes())

    @property
    def hex(self) -> str:
        """Return the hash of everything added."""
        return self._sha.hexdigest()
