"""Summaries of rows of logits, each read once: its largest numbers, and sums over it."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence

import torch

from ..model.download import split
from .products import function, has_native

_FEW = 1024  # numbers of a row below which there is nothing to gain


def summarizes(rows: torch.Tensor) -> bool:  # (R, V)
    """Return True if the compiled code reads such rows."""
    return rows.dim() == 2 and rows.shape[1] >= _FEW and has_native(rows.device, rows.dtype)


def summarize(
    rows: torch.Tensor, count: int, scale: float | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor] | None:
    """Return the ids of the largest numbers of every row (R, V), ties by the lowest id; those numbers; and two sums.

    With d = (x - largest) * scale these are the sums of exp(d) and of exp(d) * d over the row. Without `scale` they are
    left out: they take most of the time. Return None if a number is NaN.
    """
    rows = rows.contiguous()
    count = min(count, rows.shape[1])
    ids, values = torch.empty(len(rows), count, dtype=torch.int64), torch.empty(len(rows), count)
    totals, moments = (torch.empty(len(rows) if scale is not None else 0) for _ in range(2))
    has_nan = function("summarize", rows.dtype)(
        rows.data_ptr(),
        *rows.shape,
        count,
        scale or 0.0,
        ids.data_ptr(),
        values.data_ptr(),
        totals.data_ptr() if scale is not None else None,
        moments.data_ptr() if scale is not None else None,
        torch.get_num_threads(),
    )
    return None if has_nan else (ids, values, totals, moments)


def largest(
    rows: torch.Tensor, count: int = 1, shares: bool = False
) -> tuple[list[int], list[float]] | None:  # (R, V) -> R * count each
    """Return the ids of the largest numbers of every row, ties by the lowest id; with `shares` their softmax too.

    For a few rows most of the time of `summarize` goes into making tensors. Return None if a number is NaN.
    """
    rows = rows.contiguous()
    count, size = min(count, rows.shape[1]), len(rows)
    ids, values = (ctypes.c_int64 * (size * count))(), (ctypes.c_float * (size * count))()
    totals, moments = ((ctypes.c_float * size)() if shares else None for _ in range(2))
    has_nan = function("summarize", rows.dtype)(
        rows.data_ptr(), *rows.shape, count, 1.0, ids, values, totals, moments, torch.get_num_threads()
    )
    if has_nan:
        return None
    if totals is None:
        return ids[:], []
    distances = [value - values[at - at % count] for at, value in enumerate(values)]
    return ids[:], [math.exp(distance) / totals[at // count] for at, distance in enumerate(distances)]


def softmax(rows: torch.Tensor) -> torch.Tensor | None:  # (R, V) -> (R, V)
    """Compute the softmax of every row, in float32; None if a number is NaN."""
    rows = rows.contiguous()
    shares = torch.empty(rows.shape)
    call = function("softmax", rows.dtype)
    has_nan = call(rows.data_ptr(), *rows.shape, shares.data_ptr(), torch.get_num_threads())
    return None if has_nan else shares


class _NodesStruct(ctypes.Structure):
    """`Nodes` of decoder.cpp."""

    _fields_ = [
        ("x", ctypes.c_void_p),
        *[(name, ctypes.c_int32) for name in ("rows", "size", "count")],
        ("scale", ctypes.c_float),
        *[(name, ctypes.c_void_p) for name in ("values", "totals", "moments")],
    ]


class NativeNodes:
    """The distributions of a step's nodes, for a full record: rows of scores (T, V) with their summary.

    All probabilities and entropies are rounded to six decimals.
    """

    def __init__(
        self, rows: torch.Tensor, scale: float, values: torch.Tensor, totals: torch.Tensor, moments: torch.Tensor
    ) -> None:
        self._tensors = rows, values, totals, moments  # keeps their memory alive
        self._count = values.shape[1]
        addresses = (each.data_ptr() for each in (values, totals, moments))
        self._struct = ctypes.byref(_NodesStruct(rows.data_ptr(), *rows.shape, self._count, scale, *addresses))
        self._dtype = rows.dtype

    def describe(self, parents: Sequence[int], tokens: Sequence[int]) -> list[list[float]]:
        """Return p of the largest scores row by row, the entropy of every row, and p of tokens after their parents."""
        rows = len(self._tensors[0])
        sizes = rows * self._count, rows, len(tokens)
        out = (ctypes.c_double * sum(sizes))()
        function("describe", self._dtype)(self._struct, _whole(parents), _whole(tokens), len(tokens), out)
        return split(out[:], sizes)

    def compare(
        self, q: Sequence[torch.Tensor], nodes: Sequence[int], rows: Sequence[int], tokens: Sequence[int]
    ) -> tuple[list[int], list[list[float]]] | None:
        """Compare distributions q, float32 (V,) each, with those of the nodes that they follow.

        Return the ids of the largest of each; their probabilities in q, and at the node; the sums over all tokens of
        min(p, q); and the probabilities of `tokens`, each in the q of its row. Return None if a number is NaN.
        """
        sizes = len(q) * self._count, len(q) * self._count, len(q), len(tokens)
        ids, out = (ctypes.c_int64 * sizes[0])(), (ctypes.c_double * sum(sizes))()
        has_nan = function("compare", self._dtype)(
            self._struct,
            _whole([row.data_ptr() for row in q]),
            _whole(nodes),
            len(q),
            _whole(rows),
            _whole(tokens),
            len(tokens),
            ids,
            out,
            torch.get_num_threads(),
        )
        return None if has_nan else (ids[:], split(out[:], sizes))


def _whole(numbers: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * len(numbers))(*numbers)
