"""Rotary position embeddings as tables: one row of cosines and sines per position.

Two kinds of scaling, dynamic and longrope, depend on the length of the text, which a decoding method must not
change: the same token would be rotated one way when it was drafted in a tree and another way when it was written
alone. So one rule holds for every method: the token at position p is rotated as it is when the prompt is read in
one pass and every later token alone, that is, for a text of max(p + 1, prompt length) tokens. Then a row depends on
its position and on the prompt only, and even these kinds are tables: one per kind of prompt.

With longrope, transformers' `generate` does one thing more. When a text outgrows the length of the short factors, it
reads all of it again with the long ones. `seam` is that length; the loop and `rescore` do the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import torch

from ..errors import ModelError
from .config import Shape


class RopeTables(NamedTuple):
    """Row p rotates position p: x * cos + (x with its halves swapped) * sin."""

    cos: torch.Tensor  # (N, 1, head_dim)
    sin: torch.Tensor  # (N, 1, head_dim); the first half is negated, as the rotation needs it

    def __eq__(self, other: object) -> bool:  # for keys, which keep the tables alive
        return isinstance(other, RopeTables) and self.cos is other.cos

    def __hash__(self) -> int:
        return id(self.cos)


class Rope:
    """Makes and caches the tables of a model's rotary embedding."""

    def __init__(self, config: Any, shape: Shape, device: torch.device, dtype: torch.dtype) -> None:
        self._config, self._shape, self._device, self._dtype = config, shape, device, dtype
        self._made: dict[int, RopeTables] = {}
        self._limit: int | None = None  # texts of up to this length are rotated alike
        if shape.rope == "dynamic":
            self._limit = shape.context
        elif shape.rope == "longrope":
            self._limit = config.rope_parameters["original_max_position_embeddings"]
        self.seam = self._limit if shape.rope == "longrope" else None
        # A text that grows by one token a step needs a new length each time, and the old ones in the next run.
        # A cached method of this object would keep it and its tables alive until a garbage collection.
        self._frequencies = lru_cache(maxsize=4096)(partial(_frequencies, config, shape))
        self._frequencies(0)  # refuses invalid settings now rather than in the first run

    @property
    def base(self) -> float:
        """Return the base of the frequencies, before any scaling."""
        return float(self.parameters.get("rope_theta") or 1e4)

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the settings, as transformers names them."""
        return getattr(self._config, "rope_parameters", None) or {}

    def with_parameters(self, parameters: Mapping[str, Any]) -> Rope:
        """Make a rotary embedding of the same sizes with other settings."""
        config = deepcopy(self._config)
        config.rope_parameters = dict(parameters)
        shape = replace(self._shape, rope=parameters.get("rope_type", "default"))
        return Rope(config, shape, self._device, self._dtype)

    def tables(self, prompt_length: int, size: int) -> RopeTables:
        """Return tables of at least `size` rows for texts that start with `prompt_length` tokens of prompt."""
        key = self.rotated_as(prompt_length)
        tables = self._made.get(key)
        if tables is None or tables.cos.shape[0] < size:
            tables = self._made[key] = self._build(key, size)
            if len(self._made) > 8:  # only dynamic scaling has more than two kinds of prompt
                del self._made[next(iter(self._made))]
        return tables

    def rotated_as(self, length: int) -> int:
        """Return the length of the shortest text that is rotated as a text of `length` is."""
        if self._limit is None or length <= self._limit:
            return 0
        return self._limit + 1 if self._shape.rope == "longrope" else length

    def _build(self, prompt_length: int, size: int) -> RopeTables:
        same = size if self._limit is None else min(size, max(prompt_length, self._limit))
        initial, scale = self._frequencies(prompt_length)
        rows = [initial.expand(same, -1)]
        if self._shape.rope == "longrope":
            rows.append(self._frequencies(self.rotated_as(size))[0].expand(size - same, -1))
        else:
            rows += [self._frequencies(length)[0][None] for length in range(same + 1, size + 1)]
        angles = torch.arange(size, dtype=torch.float32)[:, None] * torch.cat(rows)  # (N, rotary / 2)
        # Dimensions that are not rotated pair up after those that are: cosine 1, sine 0.
        still = (self._shape.head_dim - self._shape.rotary) // 2
        cos = torch.nn.functional.pad(angles.cos() * scale, (0, still), value=1.0)
        sin = torch.nn.functional.pad(angles.sin() * scale, (0, still))
        tables = torch.stack((torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1)))[:, :, None]
        return RopeTables(*tables.to(self._device, self._dtype).unbind(0))


def _frequencies(config: Any, shape: Shape, length: int) -> tuple[torch.Tensor, float]:
    """Return inverse frequencies (rotary / 2,) for a text of `length` (0: short), and the scale of cos and sin."""
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    kind, rotary = shape.rope, shape.rotary
    try:
        if kind == "default":  # transformers keeps this one in its model files
            exponents = torch.arange(0, rotary, 2, dtype=torch.float32) / rotary
            inverse, scale = 1.0 / (config.rope_parameters["rope_theta"] ** exponents), 1.0
        else:
            inverse, scale = ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"), seq_len=length or None)
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
        inverse, scale = torch.empty(0), 1.0
    if inverse.shape != (rotary // 2,) or not inverse.isfinite().all():
        raise ModelError(f"the settings of the {kind} rotary embedding do not fit the model; check config.json")
    return inverse, float(scale)


def halves(shape: Shape) -> list[int]:
    """Order a head's dimensions so that dimension i always rotates with i + head_dim / 2.

    If only the leading dimensions are rotated, the weights' partners are closer together. Queries and keys may share
    any order of their dimensions, so the weights are put into this one and no step has to split a head.
    """
    rotary, half = shape.rotary, shape.rotary // 2
    middle = (rotary + shape.head_dim) // 2
    return [*range(half), *range(rotary, middle), *range(half, rotary), *range(middle, shape.head_dim)]
