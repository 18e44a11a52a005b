"""The formats in which a model's numbers are stored and computed, and their names."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..errors import ModelError

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, "float64": torch.float64}
_INT8 = "int8"


@dataclass(frozen=True, slots=True)
class Precision:
    """The formats of a model's numbers."""

    dtype: torch.dtype  # of what is computed, and of weights that are not quantised
    int8: bool = False  # whether matrices are held as whole numbers of eight bits

    @property
    def name(self) -> str:
        """Return the name for users, which `find_precision` reads."""
        return f"{_INT8}+{spelt(self.dtype)}" if self.int8 else spelt(self.dtype)

    def bytes(self, rows: int, columns: int) -> int:
        """Count the bytes of a weight matrix."""
        return rows * (columns + self.dtype.itemsize) if self.int8 else rows * columns * self.dtype.itemsize


def spelt(dtype: torch.dtype) -> str:
    """Return the name of a dtype."""
    return str(dtype).removeprefix("torch.")


def find_precision(named: str | torch.dtype | None, device: torch.device) -> Precision:
    """Return the precision of that name: a dtype, "int8", or "int8+" and the dtype to compute in."""
    if isinstance(named, str):
        first, _, rest = named.partition("+")
        if first == _INT8:
            return Precision(find_dtype(rest or None, device), int8=True)
    return Precision(find_dtype(named, device))


def find_dtype(dtype: str | torch.dtype | None, device: torch.device) -> torch.dtype:
    """Return the dtype of that name; by default bfloat16 if the device computes with it, else float32."""
    if dtype is None:
        return torch.bfloat16 if device.type == "cuda" or _processor_has_bfloat16() else torch.float32
    named = DTYPES.get(dtype) if isinstance(dtype, str) else dtype
    if named is None or named not in DTYPES.values():
        raise ModelError(
            f"the dtype {str(dtype)[:40]!r} cannot be used; choose one of {', '.join(DTYPES)}, "
            "or int8 for weights that are quantised"
        )
    return named


def _processor_has_bfloat16() -> bool:
    """Return True if the processor multiplies bfloat16 itself, by private functions of torch: there are no others."""
    names = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, name, lambda: False)() for name in names)
