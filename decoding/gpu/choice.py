"""Which kernels of our own a device runs: the preferred ones, or those that the environment names."""

from __future__ import annotations

import os
from importlib.util import find_spec

import torch

from ..errors import ModelError

VARIABLE = "SPECSCOPE_FUSED"  # names to run, separated by commas; "off" for none, "all" for all
KERNELS = ("norm", "rotary", "swiglu", "merge", "attention", "products")
PREFERRED = frozenset(KERNELS) - {"products"}


def chosen(device: torch.device) -> frozenset[str]:
    """The names of the kernels that a model on `device` runs; ModelError if the environment names one there is not."""
    asked = os.environ.get(VARIABLE, "")
    names = frozenset(asked.split(",")) if asked not in ("", "all", "off") else frozenset[str]()
    if unknown := names - {*KERNELS}:
        raise ModelError(f'{VARIABLE} must be "all", "off" or some of {", ".join(KERNELS)}, not {min(unknown)[:20]!r}')
    if not runs(device) or asked == "off":
        return frozenset()
    return {"": PREFERRED, "all": frozenset(KERNELS)}.get(asked, names)


def runs(device: torch.device) -> bool:
    """Whether Triton can compile for a device: Ampere or later, with the package that torch brings along."""
    if device.type != "cuda" or torch.version.hip is not None or find_spec("triton") is None:
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)
