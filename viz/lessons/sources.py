"""Reads the sources of facts: recordings, measured costs of machines, and the papers' checked claims."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from decoding.trace.file import read_trace
from decoding.types import Trace

from .lesson import FOLDER, LessonError

ASSETS = FOLDER.parent
COUNTS = "counts.json"  # in assets/lessons/: what many runs wrote
_DOCS = ASSETS.parent / "docs"
_CLAIMS = (_DOCS / "paper_checks.md", _DOCS / "paper_checks_smollm2.md")  # the second only once it was measured
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_VERDICTS = "holds|holds in part|does not hold here|not measured"
_MODEL = re.compile(r"\A# What the papers found, on ([^\n]+)\n")
_ROW = re.compile(rf"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ({_VERDICTS}) \|(?: (?:{_VERDICTS}) \|)?$", re.M)


class SourceError(LessonError):
    """A lesson names something that does not exist."""


@dataclass(frozen=True, slots=True)
class DeviceCost:
    """The cost of a pass on one machine, by its number of rows: one entry of a file in assets/costs/."""

    device: str
    date: str
    rows: tuple[int, ...]
    times: tuple[float, ...]  # milliseconds

    def milliseconds(self, rows: int) -> float:
        """Return the time of a pass over `rows` rows, if it was measured."""
        if rows not in self.rows:
            raise SourceError(f"{self.device}: passes over {rows} rows were not measured, only over {self.rows}")
        return self.times[self.rows.index(rows)]

    def cost(self, rows: int) -> float:
        """Return c(T)."""
        return self.milliseconds(rows) / self.milliseconds(1)


@dataclass(frozen=True, slots=True)
class RunCounts:
    """Counts over many runs, by name."""

    counts: dict[str, int]

    def count(self, name: str) -> int:
        """Return a count."""
        if name not in self.counts:
            raise SourceError(f"{name!r} was not counted: there are {', '.join(self.counts)}")
        return self.counts[name]


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """A row of the first table of docs/paper_checks.md, with the verdict on each model that has a page."""

    paper: str
    place: str
    claim: str
    verdicts: tuple[tuple[str, str], ...]  # model, verdict; the first is pocket's


@dataclass(frozen=True, slots=True)
class Claims:
    """The papers' claims that were checked, by names such as medusa/larger-trees-are-slower."""

    rows: dict[str, ClaimRow]

    @classmethod
    def read(cls, paths: Sequence[Path] = _CLAIMS) -> Claims:
        """Read the first tables of the pages."""
        rows = dict[str, ClaimRow]()
        for path in paths:
            if not path.is_file():
                continue
            text = path.read_text(encoding="utf-8")
            model = _MODEL.match(text)
            if model is None:
                raise SourceError(f"docs/{path.name} does not begin as paper-checks begins a page: write it anew")
            for paper, place, claim, verdict in _ROW.findall(text):
                name = f"{_slug(paper)}/{_slug(claim)}"
                before = rows[name].verdicts if name in rows else ()
                rows[name] = ClaimRow(paper, place, claim, (*before, (model[1], verdict)))
        return cls(rows)

    def row(self, name: str) -> ClaimRow:
        """Return a claim by its name."""
        if name not in self.rows:
            raise SourceError(f"{name!r} is no claim of docs/paper_checks.md: there are {', '.join(self.rows)}")
        return self.rows[name]


@dataclass(slots=True)
class RunLibrary:
    """Reads recordings and costs once, by their names."""

    folders: tuple[Path, ...] = (FOLDER, ASSETS / "traces")
    costs: Path = ASSETS / "costs"
    _traces: dict[str, Trace] = field(default_factory=dict)
    _devices: dict[str, DeviceCost] = field(default_factory=dict)
    _claims: list[Claims] = field(default_factory=list)

    def trace(self, name: str) -> Trace:
        """Return a recording."""
        if name not in self._traces:
            self._traces[name] = read_trace(self.file(name))
        return self._traces[name]

    def file(self, name: str) -> Path:
        """Return the file of a recording."""
        if _NAME.fullmatch(name):
            for folder in self.folders:
                if (path := folder / f"{name}.jsonl.gz").is_file():
                    return path
        raise SourceError(f"there is no recording {name!r} in assets/lessons or assets/traces")

    def device(self, name: str) -> DeviceCost:
        """Return the costs of a machine as DEVICE, or of one model's shape there as DEVICE:SHAPE."""
        if name not in self._devices:
            file, _, shape = name.partition(":")
            path = self.costs / f"{file}.json"
            if not _NAME.fullmatch(file) or not path.is_file():
                raise SourceError(f"there is no file {file}.json in assets/costs")
            costs = json.loads(path.read_text(encoding="utf-8"))
            entry = next((each for each in costs["shapes"] if shape in ("", each["shape"])), None)
            if entry is None:
                raise SourceError(f"{file}.json has no costs of {shape}")
            rows, times = tuple(entry["rows"]), tuple(entry["milliseconds"])
            self._devices[name] = DeviceCost(costs["device"], costs["date"], rows, times)
        return self._devices[name]

    def counts(self, name: str) -> RunCounts:
        """Return counts of many runs."""
        path = self.folders[0] / COUNTS
        counts = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        if name not in counts:
            raise SourceError(f"assets/lessons/{COUNTS} has no counts of {name!r}: there are {', '.join(counts)}")
        return RunCounts(counts[name])

    @property
    def claims(self) -> Claims:
        """The claims that were checked."""
        if not self._claims:
            self._claims.append(Claims.read())
        return self._claims[0]


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
