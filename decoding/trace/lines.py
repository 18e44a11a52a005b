"""Reads the lines of an untrusted file, compressed or not, one at a time and within limits."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from ..errors import TraceError
from .schema import DEPTH

GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits beyond which an untrusted file is refused."""

    line_bytes: int = 8 * 2**20  # a fully recorded step of 4,096 nodes takes about 1 MB; a prompt of a million ids 7
    total_bytes: int = 256 * 2**20  # after unpacking; objects in memory take several times as much
    steps: int = 20_000  # two hours of text at three steps a second
    nodes: int = 4_096  # the most of an engine's step; drawing a mask takes the square of it
    depth: int = DEPTH  # inside a JSON value; the schema has the same limit
    # Values take up to 100 bytes each as objects, whatever they take in the file: an empty list takes three there.
    line_values: int = 2**21  # a fully recorded step of 4,096 nodes has 200 thousand
    total_values: int = 2**26  # about as many as in the largest file of honest steps
    panel_values: int = 2**24  # in the panels of all steps: plain JSON, which the views read repeatedly
    total_nodes: int = 2**22  # of all steps
    prompt: int = 2**20  # tokens of the prompt, of the reference and of the ends of text, each
    texts: int = 2**20  # tokens that have a display text; the largest vocabularies have a quarter of that
    text_characters: int = 2**26  # of these texts together
    written_characters: int = 2**26  # of the text that the run wrote: a few long texts may be repeated many times
    panels: frozenset[str] | None = None  # names that a panel may hold; None: any


class Readable(Protocol):
    """A file opened in binary mode."""

    def read(self, size: int, /) -> bytes:
        """Read up to `size` bytes; none at the end."""
        ...


class CutOffError(TraceError):
    """The file ends in the middle of a line."""

    def __init__(self, number: int) -> None:
        super().__init__(
            f"the file is cut off at line {number}; for what comes before, remove that line "
            "or read the file with allow_partial=True"
        )


def lines(file: Readable, limits: Limits) -> Iterator[bytes]:
    """Yield the lines of a file, unpacked; keep at most one of them, and no more than the limit, in memory."""
    raw = io.BufferedReader(_Raw(file))
    packed = raw.peek(len(GZIP)).startswith(GZIP)  # by content: names may be wrong, and file objects have none
    plain: io.BufferedIOBase = gzip.GzipFile(fileobj=raw) if packed else raw
    left, number = limits.total_bytes, 0
    while True:
        number += 1
        try:
            line = plain.readline(limits.line_bytes + 1)
        except EOFError:
            raise CutOffError(number) from None
        except (gzip.BadGzipFile, zlib.error):
            raise TraceError(f"line {number} lies in a damaged part of the gzip file") from None
        if not line:
            return
        left -= len(line)
        if len(line) > limits.line_bytes:
            raise TraceError(f"line {number} is longer than the {limits.line_bytes} bytes allowed")
        if left < 0:
            raise TraceError(f"the file holds more than the {limits.total_bytes} bytes allowed, at line {number}")
        yield line


class _Raw(io.RawIOBase):
    """Wraps a file for the standard library's buffered readers."""

    def __init__(self, file: Readable) -> None:
        self._source = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # narrower: only buffered readers call it
        data = self._source.read(len(buffer))
        if not isinstance(data, bytes):
            raise TraceError("the file must be opened in binary mode")
        buffer[: len(data)] = data
        return len(data)
