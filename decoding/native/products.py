"""Products with weights in the layout of the compiled code."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import torch
from torch.nn.functional import pad

from .build import library
from .large_pages import in_large_pages

_BLOCK = 32  # outputs whose weights are interleaved, as in decoder.cpp
_DTYPES = {torch.float32: "float32", torch.bfloat16: "bfloat16"}


class ProductStruct(ctypes.Structure):
    """`Product` of decoder.cpp."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("weight", "bias")),
        *((name, ctypes.c_int32) for name in ("outputs", "inputs")),
    ]


class NativeProduct:
    """A linear layer of compiled code: (T, inputs) -> (T, outputs). A row's numbers do not depend on its neighbours."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:  # (outputs, inputs), (outputs,)
        self.outputs, self.inputs = weight.shape
        missing, step = -self.outputs % _BLOCK, 2 if weight.dtype == torch.bfloat16 else 1
        blocks = pad(weight, (0, 0, 0, missing)).view(-1, _BLOCK, self.inputs // step, step)
        self._weight = in_large_pages(blocks.transpose(1, 2))
        self._bias = None if bias is None else pad(bias, (0, missing)).contiguous()
        self.struct = ProductStruct(
            self._weight.data_ptr(), None if self._bias is None else self._bias.data_ptr(), self.outputs, self.inputs
        )
        self._call = function("product", weight.dtype)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Multiply."""
        x, y = x.contiguous(), x.new_empty(x.shape[0], self.outputs)
        self._call(ctypes.byref(self.struct), x.data_ptr(), x.shape[0], y.data_ptr(), torch.get_num_threads())
        return y


def has_native(device: torch.device, dtype: torch.dtype) -> bool:
    """Return True if the compiled code runs numbers of that dtype on that device."""
    return device.type == "cpu" and dtype in _DTYPES and library() is not None


def fits(weight: torch.Tensor) -> bool:
    """Return True if a weight can have the layout of the compiled code."""
    return weight.shape[1] % 2 == 0 and has_native(weight.device, weight.dtype)


@cache
def function(name: str, dtype: torch.dtype) -> Any:
    """Return one of the compiled functions."""
    loaded = library()
    assert loaded is not None
    compiled = getattr(loaded, f"{name}_{_DTYPES[dtype]}")
    compiled.restype, compiled.argtypes = ctypes.c_int, _ARGUMENTS[name]
    return compiled


_ADDRESS, _COUNT, _NUMBER = ctypes.c_void_p, ctypes.c_int, ctypes.c_float
_ARGUMENTS = {
    "product": [_ADDRESS, _ADDRESS, _COUNT, _ADDRESS, _COUNT],
    "norm": [_ADDRESS, _ADDRESS, _ADDRESS, _COUNT, _COUNT, _NUMBER],
    "summarize": [_ADDRESS, _COUNT, _COUNT, _COUNT, _NUMBER, *[_ADDRESS] * 4, _COUNT],
    "softmax": [_ADDRESS, _COUNT, _COUNT, _ADDRESS, _COUNT],
    "describe": [_ADDRESS, _ADDRESS, _ADDRESS, _COUNT, _ADDRESS],
    "compare": [_ADDRESS, _ADDRESS, _ADDRESS, _COUNT, _ADDRESS, _ADDRESS, _COUNT, _ADDRESS, _ADDRESS, _COUNT],
    "gather": [_ADDRESS, _COUNT, _COUNT, _ADDRESS, _COUNT, _ADDRESS],
    "forward": [_ADDRESS, _ADDRESS, _COUNT, _ADDRESS],
}
