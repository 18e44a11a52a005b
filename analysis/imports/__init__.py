"""Imports runs of other engines and benchmarks from their files into the tables of a run folder.

A file is recognised by its contents. All files are untrusted: every mistake or contradiction is a TraceError of one
sentence that names the line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike
from types import ModuleType

from decoding.errors import ParamError, TraceError
from decoding.trace.json_line import show

from ..store.checks import check_table, check_tables
from ..store.schema import NODES, RUNS, STEPS
from . import (
    aiperf,
    llama_cpp,
    sglang,
    spec_bench,
    specdec_bench,
    specdecode_bench,
    speculators,
    traces,
    vllm,
    vllm_vcr,
)
from .fields import Fields
from .foreign import describe, describe_text
from .records import Contents, read_contents
from .tables import Imported, merged

__all__ = ["FORMATS", "Format", "Imported", "merged", "read_any", "recognise"]

_MODULES: tuple[ModuleType, ...] = (
    *(traces, spec_bench, aiperf, sglang, vllm, llama_cpp, specdec_bench, specdecode_bench, vllm_vcr, speculators),
)


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file that can be imported."""

    name: str
    title: str
    recognises: Callable[[Fields], bool]  # by the file's first record
    read: Callable[[Contents], Imported]


FORMATS = {each.NAME: Format(each.NAME, each.TITLE, each.recognises, each.read) for each in _MODULES}


def read_any(source: str | PathLike[str] | bytes, format: str | None = None, name: str | None = None) -> Imported:
    """Read a file, by its path or its bytes, into runs, steps, nodes and the summary of a run folder.

    `format` is one of FORMATS; by default the file's first record decides. `name` is the folder's name.
    """
    if format is not None and format not in FORMATS:
        raise ParamError(f"there is no format {show(format)}: choose one of {', '.join(FORMATS)}")
    contents = read_contents(source, name)
    try:
        imported = _read(contents, format)
        for rows, table in ((imported.runs, RUNS), (imported.steps, STEPS), (imported.nodes, NODES)):
            check_table(rows, table, table)
        check_tables(*imported[:3])
        return imported
    except TraceError as error:
        raise TraceError(f"{show(contents.name)}: {error}") from None


def recognise(data: bytes) -> Format | None:
    """Return the format of a file's bytes by its first record, without reading the others; None if it is unknown."""
    try:
        first = next(read_contents(data).records(), None)
    except TraceError:
        return None
    return None if first is None else _format_of(first)


def _format_of(first: Fields) -> Format | None:
    return next((each for each in FORMATS.values() if each.recognises(first)), None)


def _read(contents: Contents, format: str | None) -> Imported:
    if not contents.is_json and (what := describe_text(contents.data)):
        raise TraceError(what)
    first = next(contents.records(), None)
    if first is None:
        raise TraceError("the file holds no record")
    recognised = _format_of(first)
    chosen = FORMATS[format] if format else recognised
    if chosen is not None and recognised is not None and not chosen.recognises(first):
        raise TraceError(f"{first.where} is no record of {chosen.title}, but of {recognised.title}: name that format")
    if chosen is None:
        if what := describe(first):
            raise TraceError(f"{first.where} is {what}")
        names = ", ".join(FORMATS)
        raise TraceError(f"{first.where} is no record of a format that is known ({names})")
    if contents.cut_off_at and chosen.name != traces.NAME:  # a run that was interrupted is still a run
        raise TraceError(f"the file is cut off at line {contents.cut_off_at}: its numbers would be of a part")
    return chosen.read(replace(contents, fits=chosen.recognises, title=chosen.title))
