"""Chooses the kernels of our own that a device runs: the preferred ones, or those that the environment names."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec

import torch

from ..errors import ModelError

VARIABLE = "SPECSCOPE_FUSED"  # names to run, separated by commas; "off" for none, "all" for all
POINTWISE = ("norm", "rotary", "swiglu", "merge")
# "products" are of few rows, and a row's numbers do not depend on how many there are. "layers" norm, gate and add
# themselves for a single row: faster, but its numbers differ, and in half precision so do the texts of methods.
PRODUCTS = ("products", "layers")
KERNELS = (*POINTWISE, "attention", "int8", *PRODUCTS)
PREFERRED = frozenset(KERNELS) - {"layers"}
OVERLAP = "overlap"  # not a kernel: lets each kernel start while the one before it ends; not measured yet


def chosen(device: torch.device, dtype: torch.dtype = torch.float32) -> frozenset[str]:
    """Name the kernels that a model on `device` runs; ModelError if the environment names one that does not exist."""
    named = os.environ.get(VARIABLE, "")
    names = frozenset(named.split(",")) if named not in ("", "all", "off") else frozenset[str]()
    if unknown := names - {*KERNELS, OVERLAP}:
        allowed = ", ".join((*KERNELS, OVERLAP))
        raise ModelError(f'{VARIABLE} must be "all", "off" or some of {allowed}, not {min(unknown)[:20]!r}')
    if not runs(device, dtype) or named == "off" or failure(device) is not None:
        return frozenset()
    if named:
        names = frozenset(KERNELS) if named == "all" else names
        return names if torch.cuda.get_device_capability(device) >= (9, 0) else names - {OVERLAP}
    # In float32, texts are the same by cuBLAS too, and weights of eight bits have not been measured.
    return PREFERRED - {"int8", "products"} if dtype == torch.float32 else PREFERRED


def runs(device: torch.device, dtype: torch.dtype = torch.float32) -> bool:
    """Return True if Triton supports a device (Ampere or later) and is installed; float64 is for references."""
    if dtype == torch.float64 or device.type != "cuda" or torch.version.hip is not None or find_spec("triton") is None:
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)


@cache
def failure(device: torch.device) -> str | None:
    """Return why a supported device cannot run Triton, such as a missing C compiler; None if it can."""
    try:
        from .probe import probe

        probe(device)
    except Exception as error:  # of any kind: torch's operations take over
        return f"{type(error).__name__}: {error}".splitlines()[0][:120]
    return None


def in_words(device: torch.device, dtype: torch.dtype) -> str:
    """Name the kernels other than products and attention for the user; those two are named elsewhere."""
    names = chosen(device, dtype)
    fused = [name for name in POINTWISE if name in names]
    if "products" in names:
        fused.append("products of few rows")
    overlap = ", each kernel starting while the one before it ends" if OVERLAP in names and len(names) > 1 else ""
    if fused or overlap:
        return (f", {', '.join(fused)} in Triton" if fused else "") + overlap
    if not names and runs(device, dtype) and os.environ.get(VARIABLE) != "off":
        return f", without Triton ({failure(device)})"
    return ""
