"""Chooses the device of every weight of a model: each device has layers that follow one another.

The embedding is with the first layers, the final norm and the output layer with the last.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch

from ..errors import ModelError
from .config import Shape
from .precision import Precision

_ROOM = 0.8  # share of a device's free memory for weights: the rest is for keys, values and activations
_LAYER = re.compile(r"model\.layers\.(\d+)\.")


@dataclass(frozen=True, slots=True)
class Layout:
    """The devices in order, and the layers of each."""

    devices: tuple[torch.device, ...]
    layers: tuple[range, ...]

    def device_of(self, weight: str) -> torch.device:
        """Return the device of the weight of that name."""
        layer = _LAYER.match(weight)
        if layer is None:
            return self.devices[0 if weight == "model.embed_tokens.weight" else -1]
        return next(device for device, part in zip(self.devices, self.layers, strict=True) if int(layer[1]) in part)


def find_device(device: str | torch.device) -> torch.device:
    """Return a device that exists; raise ModelError for any other."""
    try:
        named = torch.device(device)
    except RuntimeError:
        raise ModelError(f"there is no device {str(device)[:40]!r}; use cpu or cuda") from None
    if named.type == "cuda" and (named.index or 0) >= torch.cuda.device_count():
        raise ModelError(f"there is no device {str(named)!r} on this machine; use cpu")
    if named.type not in ("cpu", "cuda"):
        raise ModelError(f"the device {str(named)!r} cannot run models here; use cpu or cuda")
    return named


def find_devices(named: str | torch.device) -> tuple[torch.device, ...]:
    """Return the devices of a comma-separated list."""
    return tuple(find_device(name) for name in named.split(",")) if isinstance(named, str) else (find_device(named),)


def lay_out(shape: Shape, precision: Precision, devices: Sequence[torch.device]) -> Layout:
    """Distribute the layers in proportion to the devices' free memory, or evenly if one of them is a CPU.

    "cuda" without a number means the first device if the model fits into it, else all of them.
    """
    sizes = Sizes.of(shape, precision)
    if tuple(devices) == (torch.device("cuda"),) and torch.cuda.device_count() > 1:
        every = [torch.device("cuda", index) for index in range(torch.cuda.device_count())]
        if sizes.total > _ROOM * _free(every[0]):
            devices = every[: shape.layers]
    if len(devices) == 1:
        return Layout(tuple(devices), (range(shape.layers),))
    if len(devices) > shape.layers:
        raise ModelError(f"{len(devices)} devices are more than the model's {shape.layers} layers: name fewer")
    even = any(device.type == "cpu" for device in devices)
    return Layout(tuple(devices), share_out(sizes, [1.0 if even else _free(device) for device in devices]))


@dataclass(frozen=True, slots=True)
class Sizes:
    """The bytes of a model's parts."""

    embedding: int
    layer: int
    layers: int
    norm: int
    head: int

    @classmethod
    def of(cls, shape: Shape, precision: Precision) -> Sizes:
        """Count a model's bytes; a head that is the embedding counts twice, as it may be on another device."""
        layer = sum(
            precision.bytes(size[0], size[1]) if len(size) == 2 else prod(size) * precision.dtype.itemsize
            for name, size in shape.tensors(tied=True)
            if name.startswith("model.layers.0.")
        )
        item = precision.dtype.itemsize
        embedding, norm = shape.vocabulary * shape.hidden * item, shape.hidden * item
        return cls(embedding, layer, shape.layers, norm, precision.bytes(shape.vocabulary, shape.hidden))

    @property
    def total(self) -> int:
        """Count the bytes of all parts."""
        return self.embedding + self.layers * self.layer + self.norm + self.head

    def held(self, tied: bool) -> int:
        """Count the fewest bytes of all parts: a head that is the embedding may be stored once."""
        return self.total - (self.head if tied else 0)


def share_out(sizes: Sizes, rooms: Sequence[float]) -> tuple[range, ...]:
    """Give each device at least one layer, so that bytes are in proportion to `rooms`."""
    parts, start, reached = list[range](), 0, 0.0
    for number, room in enumerate(rooms, 1):
        reached += room
        goal = sizes.total * reached / sum(rooms) - sizes.embedding
        after = len(rooms) - number  # devices that still need a layer
        stop = min(max(round(goal / sizes.layer), start + 1), sizes.layers - after) if after else sizes.layers
        parts.append(range(start, stop))
        start = stop
    return tuple(parts)


def _free(device: torch.device) -> float:
    """Return the bytes that can still be allocated on a CUDA device."""
    return float(torch.cuda.mem_get_info(device)[0])
