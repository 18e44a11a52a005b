"""Reads the header of an untrusted GGUF file, and its tensors one at a time."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..errors import ModelError

if TYPE_CHECKING:
    from gguf import GGMLQuantizationType

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
# Metadata types of fixed size by their number in the format; 8 is a string, 9 an array.
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_MOST_KEYS, _MOST_TENSORS = 2**16, 2**16
_MOST_ELEMENTS = 2**40
_EDGE = 4096  # bytes of each end of a tensor that go into the hash of a file
_CHUNK = 2**24  # numbers that are dequantised at a time: its temporary copies are several times as large

MetadataValue = int | float | bool | str


@dataclass(frozen=True, slots=True)
class Stored:
    """The bytes of a tensor in the file, and their format."""

    shape: tuple[int, ...]  # in the order of torch
    kind: GGMLQuantizationType
    start: int
    size: int  # bytes


class GgufFile:
    """A GGUF file: its metadata and the positions of its tensors. Raises ModelError for a damaged or foreign file."""

    def __init__(self, path: Path) -> None:
        try:
            self._bytes = np.memmap(path, mode="r", dtype=np.uint8)
        except (OSError, ValueError) as error:  # ValueError: an empty file
            reason = getattr(error, "strerror", None) or "it is empty"
            raise ModelError(f"{path.name} cannot be read: {reason}") from None
        self.name = path.name
        reader = _Reader(self._bytes.data, path.name)
        if reader.take(4) != _MAGIC:
            raise ModelError(f"{path.name} is no GGUF file; name a model folder or a GGUF file")
        version, tensors, keys = reader.number("I"), reader.number("Q"), reader.number("Q")
        if version not in _VERSIONS:
            raise ModelError(f"{path.name} is of GGUF version {version}, but only 2 and 3 can be read: convert it anew")
        if tensors > _MOST_TENSORS or keys > _MOST_KEYS:
            raise reader.damaged()
        # Only the length of arrays is kept: the long ones are the tokenizer's.
        self.metadata: dict[str, MetadataValue] = {reader.text(): reader.value() for _ in range(keys)}
        self.tensors: dict[str, Stored] = self._table(reader, int(tensors))

    @property
    def architecture(self) -> str:
        """Return the family's name in llama.cpp."""
        return str(self.metadata.get("general.architecture", ""))[:40]

    @property
    def has_tokenizer(self) -> bool:
        """Return True if it holds a tokenizer, as all but hand-made files do."""
        return "tokenizer.ggml.model" in self.metadata

    def digest(self) -> str:
        """Hash the header and the ends of every tensor: enough to tell files apart without reading each byte."""
        sha = hashlib.sha256(self._bytes[: self._header].tobytes())
        for stored in self.tensors.values():
            content = self._bytes[stored.start : stored.start + stored.size]
            sha.update(content[:_EDGE].tobytes() + content[-_EDGE:].tobytes())
        return sha.hexdigest()

    def get(self, name: str, dtype: torch.dtype) -> torch.Tensor:
        """Read one tensor and dequantise it."""
        from gguf import dequantize

        stored = self.tensors[name]
        rows, columns = prod(stored.shape[:-1]), stored.shape[-1]
        packed = self._bytes[stored.start : stored.start + stored.size].reshape(rows, -1)
        result = torch.empty(rows, columns, dtype=dtype)
        step = max(1, _CHUNK // columns)
        try:
            for row in range(0, rows, step):
                # A copy, since the tensor may begin at any byte of the file, aligned or not.
                numbers = dequantize(packed[row : row + step].copy(), stored.kind).astype(np.float32, copy=False)
                result[row : row + step] = torch.from_numpy(numbers)
        except NotImplementedError:
            raise ModelError(f"{self.name} is quantised as {stored.kind.name}, which cannot be read here") from None
        return result.view(stored.shape)

    def _table(self, reader: _Reader, count: int) -> dict[str, Stored]:
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

        listed: dict[str, tuple[tuple[int, ...], GGMLQuantizationType, int]] = {}
        for _ in range(count):
            name, dimensions = reader.text(), reader.number("I")
            if not 1 <= dimensions <= 4:
                raise reader.damaged()
            shape = tuple(reader.number("Q") for _ in range(dimensions))[::-1]
            number, offset = reader.number("I"), reader.number("Q")
            try:
                kind = GGMLQuantizationType(number)
            except ValueError:
                raise ModelError(f"{self.name} is quantised in a form of number {number}, which is not known") from None
            if name in listed or not all(shape) or prod(shape) > _MOST_ELEMENTS:
                raise reader.damaged()
            listed[name] = shape, kind, offset
        alignment = self.metadata.get("general.alignment", 32)
        if type(alignment) is not int or not 1 <= alignment <= 2**16:
            raise reader.damaged()
        self._header = reader.position
        begin = -(-self._header // alignment) * alignment
        table: dict[str, Stored] = {}
        for name, (shape, kind, offset) in listed.items():
            block, block_size = GGML_QUANT_SIZES[kind]
            stored = Stored(shape, kind, begin + offset, prod(shape) // block * block_size)
            if shape[-1] % block or stored.start + stored.size > len(self._bytes):
                raise reader.damaged()
            table[name] = stored
        return table


class _Reader:
    """Reads values from the beginning of a file, and refuses to read beyond its end."""

    def __init__(self, data: memoryview, name: str) -> None:
        self._data, self._name = data, name
        self.position = 0

    def damaged(self) -> ModelError:
        return ModelError(f"{self._name} is damaged or cut short; fetch the model again")

    def skip(self, count: int) -> int:
        start, self.position = self.position, self.position + count
        if self.position > len(self._data):
            raise self.damaged()
        return start

    def take(self, count: int) -> bytes:
        start = self.skip(count)
        return bytes(self._data[start : self.position])

    def number(self, form: str) -> int:
        return int(self._scalar(form))

    def text(self) -> str:
        try:
            return self.take(self.number("Q")).decode()
        except UnicodeDecodeError:
            raise self.damaged() from None

    def value(self) -> MetadataValue:
        kind = self.number("I")
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY:
            return self._array()
        if kind not in _SCALARS:
            raise self.damaged()
        return self._scalar(_SCALARS[kind])

    def _scalar(self, form: str) -> MetadataValue:
        value: MetadataValue = struct.unpack(f"<{form}", self.take(struct.calcsize(f"<{form}")))[0]
        return value

    def _array(self) -> int:
        """Skip an array; return its length."""
        kind, count = self.number("I"), self.number("Q")
        if kind in _SCALARS:
            self.skip(count * struct.calcsize(f"<{_SCALARS[kind]}"))
        elif kind == _STRING and count <= len(self._data) // 8:
            read, data, at, end = struct.Struct("<Q").unpack_from, self._data, self.position, len(self._data) - 8
            for _ in range(count):  # without a call per string: most files have two hundred thousand
                if at > end:
                    raise self.damaged()
                at += 8 + read(data, at)[0]
            self.position = at
            self.skip(0)
        else:  # the format allows arrays of arrays, but no model has any
            raise self.damaged()
        return count
