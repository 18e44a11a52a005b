"""Reads and writes trace files: JSON lines with the header, display texts, each step and the summary; gzip optional.

    {"kind":"header", ...Header}                the first line, once
    {"kind":"texts","texts":{"17":" the"}}      texts of tokens that the following lines use for the first time
    {"kind":"step", ...Step}                    in order
    {"kind":"summary", ...Summary}              the last line; missing if the run was interrupted

Lines are only appended, so a file can be read while it is being written, and after a crash.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import IO, Self, TextIO

from ..errors import TraceError
from ..types import SCHEMA, Header, Step, Summary, Trace
from .budget import ReadBudget
from .json_line import NotJsonError, parse_object, show
from .lines import CutOffError, Limits, Readable, lines
from .rules import TraceChecker, check_texts
from .schema import from_json, to_json

_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Texts:
    """Display texts of token ids."""

    texts: Mapping[int, str]


def dump_line(kind: str, obj: Header | Texts | Step | Summary) -> str:
    """Write one line of a trace, its line end included."""
    fields = {"kind": kind, **to_json(obj)}
    # Pure ASCII: token texts are hostile. A lone surrogate has no UTF-8, U+2028 and U+0085 end a line for some readers,
    # and a file cut between two bytes of one character would no longer be text.
    return json.dumps(fields, ensure_ascii=True, allow_nan=False, separators=(",", ":")) + "\n"


class TraceWriter:
    """Writes a trace during a run: each line is flushed, so that all of them can be read after a crash.

    `target` is a text file or a path. A file at the path is overwritten; it is compressed if its name ends in .gz.
    """

    def __init__(self, target: str | PathLike[str] | TextIO) -> None:
        self._owned = isinstance(target, str | PathLike)
        self._file: IO[str] = _create(Path(target)) if isinstance(target, str | PathLike) else target
        self._texts = set[int]()  # tokens whose texts are written
        self._begun = self._ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def header(self, header: Header) -> None:
        """Write the first line."""
        assert not self._begun, "a trace has one header"
        self._begun = True
        self._put("header", header)

    def texts(self, texts: Mapping[int, str]) -> None:
        """Write the display texts that are not written yet; call it before the step that uses them."""
        new = {token: text for token, text in texts.items() if token not in self._texts}
        if new:
            self._put("texts", Texts(new))
            self._texts.update(new)

    def step(self, step: Step) -> None:
        """Write a step."""
        self._put("step", step)

    def summary(self, summary: Summary) -> None:
        """Write the last line."""
        self._put("summary", summary)
        self._ended = True

    def close(self) -> None:
        """Close the file if this writer opened it."""
        if self._owned:
            try:
                self._file.close()
            except OSError as error:
                raise _unwritable("the trace", error) from None

    def _put(self, kind: str, obj: Header | Texts | Step | Summary) -> None:
        assert self._begun and not self._ended, "a trace begins with its header and ends with its summary"
        line = dump_line(kind, obj)
        try:
            self._file.write(line)
            self._file.flush()
        except OSError as error:
            raise _unwritable("the trace", error) from None


def write_trace(trace: Trace, target: str | PathLike[str] | TextIO) -> None:
    """Write a whole trace."""
    with TraceWriter(target) as writer:
        writer.header(trace.header)
        writer.texts(_texts_of(trace, set(trace.header.prompt)))
        for step in trace.steps:
            writer.texts(_texts_of(trace, step.used))
            writer.step(step)
        writer.texts(trace.texts)
        if trace.summary is not None:
            writer.summary(trace.summary)


def read_trace(
    source: str | PathLike[str] | Readable, *, limits: Limits = _LIMITS, allow_partial: bool = False
) -> Trace:
    """Read a path or a binary file, compressed or not; with `allow_partial`, the whole lines of a truncated file."""
    if not isinstance(source, str | PathLike):
        return _read(source, limits, allow_partial)
    name = _shown(source)
    try:
        with Path(source).open("rb") as file:
            return _read(file, limits, allow_partial)
    except TraceError as error:
        raise TraceError(f"{name}: {error}") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise TraceError(f"{name} cannot be read: {reason}") from None


def parse_trace(data: bytes | str, *, limits: Limits = _LIMITS, allow_partial: bool = False) -> Trace:
    """Read a trace from memory."""
    raw = data.encode(errors="surrogatepass") if isinstance(data, str) else data
    return _read(io.BytesIO(raw), limits, allow_partial)


class _TraceReader:
    """Builds a trace line by line, and checks each line."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._budget = limits, ReadBudget(limits)
        self._checker: TraceChecker | None = None
        self._header: Header | None = None
        self._steps: list[Step] = []
        self._summary: Summary | None = None
        self._texts: dict[int, str] = {}

    def add(self, line: bytes, number: int) -> None:
        """Parse and check the next line."""
        where = f"line {number}"
        data = parse_object(line, where, self._limits.depth, lambda values: self._budget.line(values, number))
        kind = data.pop("kind", None)
        if kind not in ("header", "texts", "step", "summary"):
            raise TraceError(f"{where} must be of kind header, texts, step or summary, not {show(kind)}")
        if self._summary is not None:
            raise TraceError(f"{where} follows the summary, which ends a trace")
        where += f": {kind}"
        if kind == "header":
            self._begin(data, where)
        elif self._checker is None:
            raise TraceError(f"{where} precedes the header, which must be the first line")
        elif kind == "texts":
            texts = from_json(Texts, data, where).texts
            check_texts(self._texts, texts, f"{where}.texts")
            self._texts.update(texts)
            self._budget.texts(texts.values(), len(self._texts), where)
        elif kind == "step":
            if len(self._steps) == self._limits.steps:
                raise TraceError(f"{where} is one more than the {self._limits.steps} steps that are read")
            self._budget.panel(data.get("panel"), len(self._steps), where)
            step = from_json(Step, data, where)
            self._budget.step(step, where)
            self._checker.add(step, self._limits.nodes, where)
            self._steps.append(step)
        else:
            summary = from_json(Summary, data, where)
            self._checker.finish(summary, where)
            self._summary = summary

    def trace(self) -> Trace:
        """Return the trace of all lines."""
        if self._header is None:
            raise TraceError("the file holds no whole line of a trace")
        self._budget.whole(self._steps, self._texts)
        return Trace(self._header, tuple(self._steps), self._summary, self._texts)

    def _begin(self, data: dict[str, object], where: str) -> None:
        if self._header is not None:
            raise TraceError(f"{where} is a second one: a file holds one trace")
        version = data.get("schema")
        if type(version) is int and version != SCHEMA:
            raise TraceError(f"{where} has the schema version {show(version)}; this reader supports {SCHEMA}")
        self._header = from_json(Header, data, where)
        self._budget.header(self._header, where)
        self._checker = TraceChecker(self._header, where)


def _read(file: Readable, limits: Limits, allow_partial: bool) -> Trace:
    reader = _TraceReader(limits)
    try:
        for number, line in enumerate(lines(file, limits), start=1):
            try:
                reader.add(line, number)
            except NotJsonError:
                if line.startswith(b"{") and not line.endswith(b"\n"):
                    raise CutOffError(number) from None
                raise
    except CutOffError:
        if not allow_partial:
            raise
    return reader.trace()


def _create(path: Path) -> IO[str]:
    try:
        if path.suffix.lower() != ".gz":
            return path.open("w", encoding="ascii", newline="\n")
        packed = gzip.GzipFile(path, "wb", mtime=0)  # no time stamp, so that equal traces make equal files
        return io.TextIOWrapper(packed, encoding="ascii", newline="\n")
    except (OSError, ValueError) as error:
        raise _unwritable(_shown(path), error) from None


def _unwritable(name: str, error: OSError | ValueError) -> TraceError:
    reason = (isinstance(error, OSError) and error.strerror) or error
    return TraceError(f"{name} cannot be written: {reason}; choose another place")


def _shown(path: str | PathLike[str]) -> str:
    text = str(path)
    return text if text.isprintable() else repr(text)


def _texts_of(trace: Trace, tokens: set[int]) -> dict[int, str]:
    return {token: trace.texts[token] for token in sorted(tokens) if token in trace.texts}
