"""Reads an untrusted file as records: the lines of JSON lines, one JSON document, or the rows of a CSV table."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from decoding.errors import ParamError, TraceError
from decoding.trace.json_line import NotJsonError, parse_object, show
from decoding.trace.lines import CutOffError, Limits, lines

from .fields import Fields
from .foreign import describe

_BYTES = 128 * 2**20  # of a file, unpacked
_VALUES = 2**24  # of all records; as objects they take up to 100 bytes each
_RECORDS = 200_000
_DEPTH = 16
_CELLS = 512  # of a row of CSV
_LIMITS = Limits(line_bytes=_BYTES, total_bytes=_BYTES)
_JSON = re.compile(rb"\s*(?:\{|\[(?!\d{4}-\d\d))")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Contents:
    """The unpacked bytes of a file, and the name that its run folder is shown by."""

    data: bytes
    name: str
    fits: Callable[[Fields], bool] | None = None  # what every record must do
    title: str = ""  # of the format, in the sentence about one that does not
    cut_off_at: int = 0  # the line in which a compressed file ends too early; `data` has those before it

    @property
    def is_json(self) -> bool:
        """Whether the file begins like JSON; anything else may be a table, or a log with times in brackets."""
        return bool(_JSON.match(self.data))

    def records(self) -> Iterator[Fields]:
        """Yield the objects of the file, in their order."""
        objects = _objects(self.data) if self.is_json else _rows(self.data)
        for number, fields in enumerate(objects, start=1):
            if number > _RECORDS:
                most = f"the {_RECORDS} records that are read"
                raise TraceError(f"{fields.where} is one more than {most}: split the file")
            if self.fits is not None and not self.fits(fields):
                what = describe(fields)
                raise TraceError(f"{fields.where} is no record of {self.title}" + (f", but {what}" if what else ""))
            yield fields


def read_contents(source: str | PathLike[str] | bytes, name: str | None = None) -> Contents:
    """Read a path, or take the bytes of a file; compressed or not."""
    if isinstance(source, bytes):
        data, cut_off_at = _unpacked(io.BytesIO(source))
        return Contents(data, name or "imported", cut_off_at=cut_off_at)
    path = Path(source)
    try:
        with path.open("rb") as file:
            data, cut_off_at = _unpacked(file)
            return Contents(data, name or path.name, cut_off_at=cut_off_at)
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        if isinstance(error, TraceError):
            raise
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise ParamError(f"cannot read {show(str(source))}: {reason}") from None


def _unpacked(file: io.BufferedIOBase | io.BufferedReader | io.BytesIO) -> tuple[bytes, int]:
    """Return the bytes, and the number of the line in which a compressed file is cut off, else 0."""
    whole, cut_off_at = list[bytes](), 0
    try:
        for line in lines(file, _LIMITS):
            whole.append(line)
    except CutOffError:
        cut_off_at = len(whole) + 1
    data = b"".join(whole).removeprefix(_BOM)
    if not data.strip():
        raise TraceError(f"the file is cut off at line {cut_off_at}" if cut_off_at else "the file is empty")
    return data, cut_off_at


class _Budget:
    """Counts the values of all records."""

    def __init__(self) -> None:
        self.values = 0

    def add(self, values: int) -> None:
        self.values += values
        if self.values > _VALUES:
            raise TraceError(f"the file holds more than the {_VALUES} values that are read: split it")


def _objects(data: bytes) -> Iterator[Fields]:
    """Yield the objects of JSON lines, of a list, or the one of a document over many lines."""
    budget, first = _Budget(), data.lstrip().partition(b"\n")[0].rstrip()
    if first.startswith(b"{") and first.endswith(b"}"):
        for number, line in enumerate(data.split(b"\n"), start=1):
            if line.strip():
                yield Fields(parse_object(line, f"line {number}", _DEPTH, budget.add), f"line {number}")
    elif first.startswith(b"{"):
        yield Fields(_document(data, data, budget), "the file")
    else:
        entries = _document(b'{"all":' + data + b"}", data, budget)["all"]
        for number, each in enumerate(entries, start=1):
            if not isinstance(each, dict):
                raise TraceError(f"entry {number} must be an object, not {show(each)}")
            yield Fields(each, f"entry {number}")


def _document(wrapped: bytes, data: bytes, budget: _Budget) -> dict[str, list[object]]:
    try:
        return parse_object(wrapped, "the file", _DEPTH, budget.add)
    except NotJsonError:
        raise TraceError(_misspelt(data)) from None


def _misspelt(data: bytes) -> str:
    """Describe where a text is not JSON; it is known to be shallow, so the parser may read it again."""
    try:
        json.loads(data.decode())
    except UnicodeDecodeError as error:
        return f"line {data.count(bytes([10]), 0, error.start) + 1} is not UTF-8"
    except json.JSONDecodeError as error:
        return f"line {error.lineno} is not JSON at character {error.colno}: {error.msg}"
    except ValueError:
        return "the file holds a number with too many digits"
    return "the file is not JSON"


def _rows(data: bytes) -> Iterator[Fields]:
    """Yield the rows of a table as objects by its header; cells with numbers become numbers, empty cells None."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise TraceError(f"line {data.count(bytes([10]), 0, error.start) + 1} is not UTF-8") from None
    if "\0" in text:
        raise TraceError("the file is neither JSON nor a table of text")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] | None = None
    try:
        for row in reader:
            where = f"line {reader.line_num}"
            if not row:
                continue
            if header is None:
                header = row
                if len(set(header)) < len(header) or len(header) > _CELLS:
                    raise TraceError(f"{where} must name up to {_CELLS} columns, each once")
            elif len(row) != len(header):
                raise TraceError(f"{where} has {len(row)} cells, and the header has {len(header)} columns")
            else:
                yield Fields({name: _cell(cell) for name, cell in zip(header, row, strict=True)}, where)
    except csv.Error as error:
        raise TraceError(f"line {reader.line_num} is no row of a table: {error}") from None


def _cell(cell: str) -> str | float | int | None:
    if not cell:
        return None
    try:
        return int(cell) if len(cell) < 20 and cell.isascii() and cell.isdigit() else float(cell)
    except ValueError:
        return cell
