"""Attention kernels, chosen by name once for a model.

Torch's own choice is never used on CUDA: on some devices it is cuDNN, which plans anew for every new length. Most
kernels here also return the logarithm of the sum that their softmax divides by, with which attention to several parts
of a text is merged.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import version
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from ..errors import ModelError
from ..gpu.choice import OVERLAP, chosen

# Takes queries (1, kv_heads, N, D), keys and values (1, kv_heads, P, D), and a bias (N, P) in the query's dtype or
# None; returns the attention output (1, kv_heads, N, D) in that dtype or a wider one.
MaskedKernel = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None], torch.Tensor]
# The attention output, and the log-sum-exp (1, kv_heads, N): natural, float32 or wider.
Mixed = tuple[torch.Tensor, torch.Tensor]
TailKernel = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None], Mixed]
# Takes the number of keys, (1,) int32 on the device, in place of a bias.
PrefixKernel = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], Mixed]
# Takes queries (T, repeats * kv_heads, D), every slot of a layer's keys and values, and on the device the slot of the
# first row (1,) and the closure of the rows (T, T); returns the attention output (T, repeats * kv_heads * D).
TreeKernel = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]

VARIABLE = "SPECSCOPE_ATTENTION"  # names the prefix's kernel, one of `PREFIXES`, or "masked" for none
HUB_KERNEL, HUB_VERSION = "kernels-community/flash-attn2", 3  # the first that one build serves all torch from 2.9 on
TREE_ROWS = 128  # most rows of a step for our kernel: longer steps are compute-bound
_HALF = (torch.bfloat16, torch.float16)


@dataclass(frozen=True, slots=True)
class Prefix:
    """The kernel for the part of a text that all rows of a step see."""

    name: str
    attend: PrefixKernel
    whole: bool = False  # whether it takes every slot of the cache, and reads the number of keys on the device


@dataclass(frozen=True, slots=True)
class Kernels:
    """The kernels of one model."""

    name: str  # in words, shown to the user
    masked: MaskedKernel  # for all keys of a step
    tail: TailKernel  # for the last keys
    prefix: Prefix | None  # for the keys before these; None: all keys go through `masked`
    alignment: int  # rows of a bias begin at multiples of this many numbers
    tree: TreeKernel | None = None  # for all keys of a step of up to `TREE_ROWS` rows, if no window hides any

    def aligned(self, width: int) -> int:
        """Return the length of a row of a bias, with its padding."""
        return -(-width // self.alignment) * self.alignment

    def attend(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, visible: torch.Tensor | None
    ) -> torch.Tensor:
        """Call `masked` with one matrix of visible keys, (..., N, P); None: all are visible."""
        bias = None
        if visible is not None:
            hidden = ~visible.view(visible.shape[-2:])
            padded = query.new_zeros(len(hidden), self.aligned(hidden.shape[1]))
            bias = padded[:, : hidden.shape[1]].masked_fill_(hidden, -torch.inf)
        return self.masked(query, key, value, bias)


def choose(device: torch.device, dtype: torch.dtype, head_dim: int) -> Kernels:
    """Choose the kernels of a model; raise ModelError if the environment names one that cannot run here."""
    named = os.environ.get(VARIABLE, "")
    if named not in ("", "masked", *PREFIXES):
        raise ModelError(f"{VARIABLE} must be one of {', '.join(PREFIXES)} and masked, not {named[:40]!r}")
    masked, tail, name = _bases(device, dtype, head_dim)
    alignment, first = 1 if tail is plain else 16, ""
    # A named kernel takes precedence.
    if (tree := None if named else _tree(device, dtype, head_dim)) is not None:
        first = f"split tree attention in Triton up to {TREE_ROWS} rows, above that "
    # On a CPU one call is as fast.
    if named == "masked" or (device.type == "cpu" and not named):
        return Kernels(f"{first}{name}, query heads packed", masked, tail, None, alignment, tree)
    for prefix in (PREFIXES[each](device, dtype, head_dim) for each in ([named] if named else PREFERRED)):
        if prefix is not None:
            name = f"{first}{prefix.name} on the prefix, {name} on the rest"
            return Kernels(f"{name}, query heads packed", masked, tail, prefix, alignment, tree)
    raise ModelError(f"{named} cannot run {dtype} with heads of {head_dim} on {device} here: leave {VARIABLE} out")


def _tree(device: torch.device, dtype: torch.dtype, head_dim: int) -> TreeKernel | None:
    """Return our kernel if it is chosen and takes such queries."""
    names = chosen(device, dtype)
    if "attention" not in names or dtype not in (*_HALF, torch.float32) or head_dim > 256:
        return None
    from ..gpu import tree_attention

    return partial(tree_attention.tree_attention, overlap=OVERLAP in names)


def _bases(device: torch.device, dtype: torch.dtype, head_dim: int) -> tuple[MaskedKernel, TailKernel, str]:
    if device.type == "cpu":
        return by_torch, plain, "torch scaled_dot_product_attention"
    if efficient_runs(dtype, head_dim):
        return lambda *inputs: efficient(*inputs)[0], efficient, "torch memory-efficient attention"
    return lambda *inputs: plain(*inputs)[0], plain, "matrix products"


def by_torch(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """Call torch's function, which chooses a kernel itself; gradients flow."""
    return scaled_dot_product_attention(query, key, value, attn_mask=bias)


def widest() -> Kernels:
    """Return kernels that compute in float64, so that rounding the result hides the order of the keys."""

    def tail(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: torch.Tensor | None) -> Mixed:
        return plain(query.double(), key, value, bias)

    return Kernels("matrix products in float64", lambda *inputs: tail(*inputs)[0], tail, None, 1)


def plain(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: torch.Tensor | None) -> Mixed:
    """Compute attention by its definition, in float32, or float64 for float64."""
    wide = torch.float64 if query.dtype == torch.float64 else torch.float32
    scores = torch.matmul(query.to(wide), key.to(wide).mT) * query.shape[-1] ** -0.5
    if bias is not None:
        scores = scores + bias
    total = scores.logsumexp(-1)
    return torch.matmul((scores - total[..., None]).exp(), value.to(wide)), total


def efficient_runs(dtype: torch.dtype, head_dim: int) -> bool:
    """Return True if torch's memory-efficient kernel takes such queries."""
    return dtype in (*_HALF, torch.float32) and head_dim * dtype.itemsize % 16 == 0


def efficient(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: torch.Tensor | None) -> Mixed:
    """Call torch's memory-efficient kernel for CUDA, which takes a bias and float32, and does not split the keys."""
    _, heads, rows, _ = query.shape
    shared = None if bias is None else bias.expand(1, heads, rows, -1)
    mixed, total, *_ = torch.ops.aten._scaled_dot_product_efficient_attention(query, key, value, shared, True)
    return mixed, total[..., :rows]  # the kernel pads them to a multiple of 32


def _sdpa(device: torch.device, dtype: torch.dtype, head_dim: int) -> Prefix | None:
    if device.type == "cpu":
        flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        return Prefix("torch flash attention for CPUs", lambda query, key, value, length: flash(query, key, value))
    if not efficient_runs(dtype, head_dim):
        return None
    return Prefix(
        "torch memory-efficient attention", lambda query, key, value, length: efficient(query, key, value, None)
    )


def _flash_runs(device: torch.device, dtype: torch.dtype, head_dim: int) -> bool:
    """Return True if flash kernels of any package run on a device with such sizes."""
    if device.type != "cuda" or dtype not in _HALF or head_dim % 8 or head_dim > 256:
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)


def _torch_flash(device: torch.device, dtype: torch.dtype, head_dim: int) -> Prefix | None:
    if not _flash_runs(device, dtype, head_dim) or not torch.backends.cuda.is_flash_attention_available():
        return None

    flash = torch.ops.aten._scaled_dot_product_flash_attention
    return Prefix("torch flash attention", lambda query, key, value, length: flash(query, key, value)[:2])


def _flash_attn(device: torch.device, dtype: torch.dtype, head_dim: int) -> Prefix | None:
    package = _imported("flash_attn") if _flash_runs(device, dtype, head_dim) else None
    return package and _packaged(f"flash-attn {version('flash-attn')}", package, device, dtype, head_dim)


def _flash_attn_3(device: torch.device, dtype: torch.dtype, head_dim: int) -> Prefix | None:
    if not _flash_runs(device, dtype, head_dim) or torch.cuda.get_device_capability(device)[0] != 9:
        return None
    package = _imported("flash_attn_interface")
    return package and _packaged("flash-attn 3", package, device, dtype, head_dim)


def _flash_attn_hub(device: torch.device, dtype: torch.dtype, head_dim: int) -> Prefix | None:
    """Fetch the same kernel from the hub: it is compiled code of others, so only if the user names it."""
    package = _imported("kernels") if _flash_runs(device, dtype, head_dim) else None
    if package is None:
        return None
    try:
        fetched = package.get_kernel(HUB_KERNEL, version=HUB_VERSION)
    except Exception as error:  # of the network, of the hub, or no build for this torch
        reason = " ".join(str(error).split())[:200]
        raise ModelError(f"{HUB_KERNEL} cannot be fetched ({reason}): leave {VARIABLE} out") from None
    return _packaged(f"{HUB_KERNEL} {HUB_VERSION}", fetched, device, dtype, head_dim)


def _packaged(name: str, package: Any, device: torch.device, dtype: torch.dtype, head_dim: int) -> Prefix | None:
    """Return the kernel of both flash-attn packages that splits the keys, if its results are right here."""

    def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, length: torch.Tensor) -> Mixed:
        query, key, value = query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)
        mixed, total, *_ = package.flash_attn_with_kvcache(
            query, key, value, cache_seqlens=length, return_softmax_lse=True
        )
        return mixed.transpose(1, 2), total

    return Prefix(name, attend, whole=True) if agrees(attend, device, dtype, head_dim) else None


def agrees(attend: PrefixKernel, device: torch.device, dtype: torch.dtype, head_dim: int) -> bool:
    """Return True if a kernel compiled elsewhere returns the definition's values and natural logarithms."""
    numbers = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(1, 2, rows, head_dim, generator=numbers).to(device, dtype) for rows in (3, 40, 40))
    length = torch.full((1,), 33, dtype=torch.int32, device=device)
    try:
        mixed, total = attend(query, key, value, length)
    except (RuntimeError, TypeError, ValueError):  # built for another torch, or with another signature
        return False
    expected, logarithm = plain(query, key[:, :, :33], value[:, :, :33], None)
    close = [
        one.shape == other.shape and torch.allclose(one.float(), other, atol=4 * torch.finfo(dtype).eps, rtol=1e-2)
        for one, other in ((mixed, expected), (total, logarithm))
    ]
    return all(close)


def _imported(module: str) -> Any:
    try:
        return import_module(module)
    except (ImportError, OSError, RuntimeError):  # not installed, or built for another torch
        return None


def _flex(device: torch.device, dtype: torch.dtype, head_dim: int) -> Prefix | None:
    try:
        from torch.nn.attention.flex_attention import AuxRequest, flex_attention
    except ImportError:  # a torch without this request
        return None
    if dtype == torch.float64 and device.type != "cpu":
        return None
    # Compiled for a CPU it returns no logarithms.
    run: Any = flex_attention if device.type == "cpu" else torch.compile(flex_attention)

    def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, length: torch.Tensor) -> Mixed:
        mixed, more = run(query, key, value, return_aux=AuxRequest(lse=True))
        return mixed, more.lse

    return Prefix("torch FlexAttention", attend)


PREFIXES: dict[str, Callable[[torch.device, torch.dtype, int], Prefix | None]] = {
    "flash-attn-3": _flash_attn_3,
    "flash-attn": _flash_attn,
    "flash-attn-hub": _flash_attn_hub,
    "torch-flash": _torch_flash,
    "flex": _flex,
    "sdpa": _sdpa,
    "plain": lambda *_: Prefix("matrix products", lambda query, key, value, length: plain(query, key, value, None)),
}
PREFERRED = ("flash-attn-3", "flash-attn", "torch-flash", "sdpa", "plain")  # the first that runs is taken
