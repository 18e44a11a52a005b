"""Compressed files: NAME.packed holds the bytes of the file NAME, and is read if NAME is missing.

The first line is JSON: the size of NAME, the SHA-256 of its bytes, the base, and the parts that follow. The bytes are
read as little-endian numbers of 16 bits, since nearly all of them are weights in bfloat16. With a base, which is
another file of the same size in assets/, each number is its difference from the base's, zigzag-encoded. One part holds
all numbers; two parts hold the high bytes and the low bytes, since exponents compress and mantissas hardly do.
tools/pack_assets.py writes such files. Any folder may contain them.
"""

from __future__ import annotations

import json
import lzma
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import ModelError

if TYPE_CHECKING:
    import torch

ASSETS = Path(__file__).parents[1] / "assets"
SUFFIX = ".packed"
LARGEST = 2**26  # bytes of a file, packed or not: ten times those that ship
_LONGEST_LINE = 2**12
_BASE = re.compile(r"(?:[a-z0-9][a-z0-9.-]*/)*[a-z0-9][a-z0-9.-]*")  # cannot lead out of assets/
_MALFORMED = (ValueError, TypeError, LookupError, RecursionError, EOFError, zlib.error, lzma.LZMAError)


def stored(path: Path) -> Path:
    """Return the file itself, or its packed form if only that exists."""
    packed = path.with_name(path.name + SUFFIX)
    return packed if packed.is_file() and not path.is_file() else path


@contextmanager
def open_tensors(path: Path, refusal: str | None = None) -> Iterator[Any]:
    """Open a safetensors file, packed or not, as `safe_open` does.

    If it is damaged, raise ModelError with the text `refusal`, or without one the error of `safe_open`.
    """
    from safetensors import SafetensorError, safe_open

    try:
        if path.suffix == SUFFIX:
            yield _Tensors(unpack(path))
        else:
            with safe_open(path, framework="pt", device="cpu") as file:
                yield file
    except (OSError, SafetensorError):
        if refusal is None:
            raise
        raise ModelError(refusal) from None


def unpack(path: Path, *, is_base: bool = False) -> bytes:
    """Unpack a file; raise SafetensorError if it is damaged."""
    from safetensors import SafetensorError

    try:
        with path.open("rb") as file:
            facts, packed = json.loads(file.readline(_LONGEST_LINE)), file.read(LARGEST + 1)
        size, base, parts = facts["bytes"], facts["base"], facts["parts"]
        if len(packed) > LARGEST or type(size) is not int or not 0 < size <= LARGEST or len(parts) not in (1, 2):
            raise ValueError
        share = (size + size % 2) // len(parts)
        content = _join([_expand(codec, packed[begin:end], share) for codec, begin, end in parts])
        if base is not None:
            if is_base or _BASE.fullmatch(base) is None:
                raise ValueError
            content = _add(content, _read_base(stored(ASSETS / base), size))
        content = content[:size]
        if sha256(content).hexdigest() != facts["sha256"]:
            raise ValueError
    except _MALFORMED:
        raise SafetensorError(f"{path.name} is damaged") from None
    return content


def _expand(codec: str, packed: bytes, size: int) -> bytes:
    """Decompress one part into exactly `size` bytes, and never more; ValueError if it holds fewer."""
    decoder: Any = zlib.decompressobj() if codec == "zlib" else lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=LARGEST)
    content: bytes = decoder.decompress(packed, size)
    if len(content) != size:
        raise ValueError
    return content


def _join(parts: list[bytes]) -> bytes:
    """Interleave the numbers' high bytes and low bytes."""
    if len(parts) == 1:
        return parts[0]
    content = bytearray(2 * len(parts[0]))
    content[1::2], content[::2] = parts
    return bytes(content)


def _add(content: bytes, base: bytes) -> bytes:
    import numpy as np

    coded, start = (np.frombuffer(each, "<u2") for each in (content, base))
    numbers = ((coded >> 1) ^ (0 - (coded & 1))) + start
    return bytes(numbers.astype("<u2"))


def _read_base(path: Path, size: int) -> bytes:
    content = unpack(path, is_base=True) if path.suffix == SUFFIX else path.read_bytes()
    if len(content) != size:
        raise ValueError
    return content + bytes(size % 2)


class _Tensors:
    """A safetensors file in memory, with the methods of `safe_open` that are used here."""

    def __init__(self, content: bytes) -> None:
        from safetensors.torch import load

        self._tensors = load(content)  # it checks the header, which is read again below
        self._header: dict[str, Any] = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])

    def metadata(self) -> dict[str, str] | None:
        return self._header.get("__metadata__")

    def keys(self) -> list[str]:
        return list(self._tensors)

    def get_tensor(self, name: str) -> torch.Tensor:
        tensor: torch.Tensor = self._tensors[name]
        return tensor

    def get_slice(self, name: str) -> _Slice:
        return _Slice(self._tensors[name], self._header[name]["dtype"])


@dataclass(frozen=True)
class _Slice:
    """A tensor whose shape and dtype can be read before its rows."""

    _tensor: torch.Tensor
    _dtype: str  # by its name in the file

    def get_shape(self) -> list[int]:
        return list(self._tensor.shape)

    def get_dtype(self) -> str:
        return self._dtype

    def __getitem__(self, rows: slice) -> torch.Tensor:
        return self._tensor[rows]
