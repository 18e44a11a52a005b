"""The layers of a decoder in compiled code, and the inputs that they need."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Self, cast

import numpy as np
import torch

from ..errors import ModelError
from ..native.products import NativeProduct, ProductStruct, function
from ..tree import depths, remembered
from .cache import Cache
from .config import Shape
from .rope import RopeTables
from .weights import LayerWeights

if TYPE_CHECKING:
    from .upload import Tokens

_LANES = 16  # numbers of a vector


class LayerStruct(ctypes.Structure):
    """`Layer` of decoder.cpp."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("attention_norm", "qk_norm", "mlp_norm")),
        *((name, ProductStruct) for name in ("qkv", "out", "gate_up", "down")),
        *((name, ctypes.c_int32) for name in ("window", "number")),
    ]


class StepStruct(ctypes.Structure):
    """`Step` of decoder.cpp."""

    _fields_ = [
        *((name, ctypes.c_int32) for name in ("rows", "hidden", "heads", "kv_heads", "head_dim")),
        *((name, ctypes.c_int32) for name in ("slots", "length", "threads")),
        ("eps", ctypes.c_float),
        *((name, ctypes.c_int32) for name in ("width", "wider")),
        *((name, ctypes.c_void_p) for name in ("depths", "ends", "paths")),
        *((name, ctypes.c_void_p) for name in ("cos", "sin", "cache", "beside", "tapped", "taps")),
        ("tap_count", ctypes.c_int32),
        *((name, ctypes.c_void_p) for name in ("entry_norm", "beside_norm", "final_norm", "final")),
    ]


class NativeInputs:
    """The inputs of a forward pass over a tree of tokens after a cached text."""

    __slots__ = ("_keep", "cache", "ids", "struct")

    def __init__(
        self, tokens: Tokens, parents: tuple[int, ...], cache: Cache, tables: RopeTables, shape: Shape, ahead: int = 0
    ) -> None:
        """`ahead`: rows of a chain between the stored tokens and this tree.

        If there are fewer tokens than parents, they are the tree's last rows: the others have been read before.
        """
        first = cache.length + ahead
        assert first + len(parents) <= len(tables.cos)
        self._fill(tokens, _paths(parents, len(tokens)), first, cache, tables, shape)

    @classmethod
    def of_texts(
        cls, tokens: Tokens, positions: np.ndarray, slots: np.ndarray, cache: Cache, tables: RopeTables, shape: Shape
    ) -> Self:
        """Prepare rows of several texts, with each row's position in its text and that text's slots."""
        made = cls.__new__(cls)
        assert positions.max() < len(tables.cos)
        made._fill(tokens, _Paths.of(positions, positions + 1, slots), 0, cache, tables, shape)
        return made

    @classmethod
    def of_block(cls, tokens: Tokens, cache: Cache, tables: RopeTables, shape: Shape) -> Self:
        """Prepare rows after the text that all see each other; a window counts the tokens before them."""
        made = cls.__new__(cls)
        made._fill(tokens, _block(len(tokens)), cache.length, cache, tables, shape)
        made.struct.wider = len(tokens)
        return made

    def _fill(self, tokens: Tokens, paths: _Paths, first: int, cache: Cache, tables: RopeTables, shape: Shape) -> None:
        self.ids, self.cache = tokens, cache
        self._keep = paths, tables  # as long as the structure holds their addresses
        self.struct = StepStruct(
            rows=len(tokens),
            hidden=shape.hidden,
            heads=shape.heads,
            kv_heads=shape.kv_heads,
            head_dim=shape.head_dim,
            slots=cache.slots,
            length=first,
            threads=torch.get_num_threads(),
            eps=shape.eps,
            width=paths.width,
            depths=paths.depths_at,
            ends=paths.ends_at,
            paths=paths.rows_at,
            cos=tables.cos.data_ptr(),
            sin=tables.sin.data_ptr(),
            cache=cache.data.data_ptr(),
        )


class _Paths(NamedTuple):
    """Every row's depth, the rows that it sees and their number, and the addresses of these arrays."""

    keep: tuple[np.ndarray, ...]  # as long as the addresses are used
    width: int
    depths_at: int
    ends_at: int
    rows_at: int

    @classmethod
    def of(cls, *arrays: np.ndarray) -> Self:
        """Look up the addresses of depths, (T,), ends, (T,), and rows, (T, width): that takes longer than all else."""
        arrays = tuple(np.ascontiguousarray(array, dtype=np.int32) for array in arrays)
        return cls(arrays, arrays[-1].shape[1], *(array.ctypes.data for array in arrays))


@remembered
def _paths(parents: tuple[int, ...], count: int) -> _Paths:
    """Return the paths of the tree's last `count` rows."""
    below = np.array(depths(parents), dtype=np.int32)
    paths = np.zeros((len(parents), len(parents)), dtype=np.int32)
    for row, parent in enumerate(parents):
        if parent >= 0:
            paths[row] = paths[parent]
        paths[row, below[row]] = row
    below, paths = below[len(parents) - count :], paths[len(parents) - count :]
    return _Paths.of(below, below + 1, paths)


@lru_cache(maxsize=256)
def _block(count: int) -> _Paths:
    places = np.arange(count)
    return _Paths.of(places, np.full(count, count), np.tile(places, (count, 1)))


class NativeLayers:
    """The layers of one model."""

    def __init__(
        self, shape: Shape, layers: Sequence[LayerWeights], norm: torch.Tensor, *, normed: bool = False
    ) -> None:
        """`norm` (H,) is the final norm; with `normed`, the input of a layer has been normed already."""
        self._layers, self._last, self._shape = layers, norm.contiguous(), shape
        self._forward, self._norm = function("forward", norm.dtype), function("norm", norm.dtype)
        self._structs = (LayerStruct * shape.layers)(*map(_struct, layers, shape.windows, range(shape.layers)))
        if normed:
            for struct in self._structs:
                struct.attention_norm = None

    def forward(
        self, x: torch.Tensor, step: NativeInputs, start: int, stop: int, beside: torch.Tensor | None = None
    ) -> torch.Tensor:  # (T, H) -> (T, H)
        """Run the layers from `start` to `stop`, overwriting `x`; write keys and values to the step's cache.

        Attention reads `beside`, (T, H), before its normed input, if its weights are made for both.
        """
        if start == stop:
            return x
        step.struct.beside = None if beside is None else beside.data_ptr()
        assert x.is_contiguous()
        part = ctypes.byref(self._structs, start * ctypes.sizeof(LayerStruct))
        if self._forward(ctypes.byref(step.struct), part, stop - start, x.data_ptr()):
            raise ModelError("there is no memory for a step of so many tokens; shorten the prompt")
        return x

    def tapped(
        self, x: torch.Tensor, step: NativeInputs, start: int, stop: int, taps: Sequence[int]
    ) -> tuple[torch.Tensor, torch.Tensor]:  # (T, H) -> (T, taps * H), (T, H)
        """Run the layers; return the states entering `taps`, and the output of the last layer."""
        if start == stop:
            return x, x  # only the output of the last layer is tapped
        states = x.new_empty(len(x), len(taps) * x.shape[1])
        layers = (ctypes.c_int32 * len(taps))(*taps)
        step.struct.tapped, step.struct.tap_count = states.data_ptr(), len(taps)
        step.struct.taps = ctypes.addressof(layers)
        x = self.forward(x, step, start, stop)
        step.struct.tap_count = 0
        return states, x

    def beside(
        self, x: torch.Tensor, other: torch.Tensor, step: NativeInputs, norms: tuple[torch.Tensor | None, torch.Tensor]
    ) -> torch.Tensor:  # (T, H) twice -> (T, H)
        """Run the only layer on `x`, overwriting it, with `other` beside it, and the final norm.

        The first of `norms`, if any, is applied to `x` before all else, the second to `other`.
        """
        struct, (entry, beside) = step.struct, norms
        struct.entry_norm, struct.beside_norm = None if entry is None else entry.data_ptr(), beside.data_ptr()
        return self.through(x, step, other)

    def through(
        self, x: torch.Tensor, step: NativeInputs, beside: torch.Tensor | None = None
    ) -> torch.Tensor:  # (T, H) -> (T, H)
        """Run all layers, overwriting `x`, and the final norm."""
        final = torch.empty_like(x)
        step.struct.final_norm, step.struct.final = self._last.data_ptr(), final.data_ptr()
        self.forward(x, step, 0, self._shape.layers, beside)
        return final

    def final(self, x: torch.Tensor) -> torch.Tensor:  # (R, H) -> (R, H)
        """Apply the final norm."""
        x, y = x.contiguous(), torch.empty_like(x, memory_format=torch.contiguous_format)
        self._norm(x.data_ptr(), y.data_ptr(), self._last.data_ptr(), *x.shape, self._shape.eps)
        return y


def suits(shape: Shape, layers: Sequence[LayerWeights]) -> bool:
    """Return True if the compiled code can run layers: weights in its layout, and sizes of whole vectors."""
    sizes = (shape.hidden, shape.head_dim, shape.intermediate, shape.head_dim // 2 * 2)
    products = (product for layer in layers for product in layer.products)
    return all(size % _LANES == 0 for size in sizes) and all(isinstance(each, NativeProduct) for each in products)


def _struct(layer: LayerWeights, window: int | None, number: int) -> LayerStruct:
    norms = (
        None if norm is None else norm.data_ptr() for norm in (layer.attention_norm, layer.qk_norm, layer.mlp_norm)
    )
    products = (cast(NativeProduct, product).struct for product in layer.products)
    return LayerStruct(*norms, *products, window or 0, number)
