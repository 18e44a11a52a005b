"""The recorded runs that ship with the page: `python -m tools.record_gallery` makes them, the gallery lists them.

A file that cannot be read is left out and logged: one damaged file must not prevent the page from starting.
"""

from __future__ import annotations

import gzip
import json
import logging
import threading
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from analysis.run_speed import speedup
from decoding.errors import SpecscopeError, TraceError
from decoding.trace.file import parse_trace
from decoding.trace.metrics import credible_speedup
from decoding.trace.schema import from_json
from decoding.types import JSON, Header, Trace

from .trace_store import ID, Packed, Proof, StoredRun, replay

FOLDER = Path(__file__).parents[2] / "assets" / "traces"
INDEX = "index.json"
LANDINGS = (  # the page opens with the first, or with the second if the first is missing
    "smollm2-spelling-prompt_lookup",
    "lookahead",
)
MOST_BYTES = 4_000_000  # of a folder in all: every clone and every Space carries it
_HEADER_BYTES = 2**20  # of a file's first line at most, which holds the header with the prompt
_REMEDY = 'make the recorded runs anew with "make traces"'
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """An entry of the gallery."""

    id: str
    title: str
    shows: str  # a sentence on what the run shows
    family: str  # of the model, the gallery's largest division
    group: str  # the heading that it is listed under there
    about: str  # a sentence below that heading
    method: str
    label: str  # of the method
    preset: str
    step: int  # the step that is shown when it is opened
    tokens_per_step: float
    prompt: JSON = None  # as a visitor writes it: a text, or the messages of a chat; no model is needed to spell it
    check: Mapping[str, JSON] | None = None  # of the rescore
    speedup: float | None = (
        None  # over autoregressive decoding, of the whole run; of two recordings that of their times
    )


def task(trace: Trace) -> object:
    """Return the facts that runs must share to race each other."""
    header = trace.header
    return header.model.hash, header.dtype, header.prompt, header.max_new_tokens, dict(header.sampling)


def speedup_over(trace: Trace, plain: Trace) -> float | None:
    """Return the speedup over an autoregressive run, as a race of both shows it; None if they cannot be compared."""
    machines = [(each.header.processor, each.header.threads) for each in (trace, plain)]
    if task(trace) != task(plain) or machines[0] != machines[1] or not trace.summary or not plain.summary:
        return None
    faster = speedup(trace.summary, plain.summary)
    return faster and round(faster, 4)


class Recordings:
    """All readable recordings of a folder, in the order of its index."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._headers = dict[str, Header]()
        self._recordings = {each.id: each for each in read_index(folder) if self._read_header(each.id)}
        self._lines = dict[str, str]()
        self._broken = set[str]()  # ids whose files turned out to be damaged
        self._replay_lock = threading.Lock()

    def __iter__(self) -> Iterator[RecordedRun]:
        return iter(self._recordings.values())

    def get(self, run: object) -> RecordedRun | None:
        """Return a recording by its id."""
        return self._recordings.get(run) if isinstance(run, str) else None

    @cached_property
    def landing(self) -> RecordedRun | None:
        """The recording that the page opens with: the first that can be replayed to its end."""
        named = [self._recordings[run] for run in LANDINGS if run in self._recordings]
        return next((each for each in (*named, *self) if self._replays(each.id)), None)

    def header(self, run: str) -> Header:
        """Return a recording's header, which is read when the page starts."""
        return self._headers[run]

    def trace(self, run: str) -> Trace | None:
        """Return a recording's trace; None if there is no such recording, or its file cannot be read."""
        packed = self.packed(run)
        if packed is None:
            return None
        try:
            return parse_trace(packed.data)
        except TraceError as error:
            self._leave_out(run, error)
            return None

    def packed(self, run: str) -> Packed | None:
        """Return a recording's file and proof; None if there is no such recording, or its file cannot be read."""
        if run not in self._recordings or run in self._broken:
            return None
        recording = self._recordings[run]
        try:
            return Packed(self._file(run).read_bytes(), Proof(recording.check, recording.speedup))
        except OSError as error:
            self._leave_out(run, error.strerror or error)
            return None

    def lines(self, run: str) -> str:
        """Return the player's lines of a recording, cached. Raises TraceError if the file is missing or damaged."""
        if run not in self._lines:
            with self._replay_lock:  # once, even for several requests at the same time
                if run not in self._lines:
                    packed = self.packed(run)
                    made = None if packed is None else self._replay(run, packed)
                    if made is None:
                        raise TraceError(f"the recording {run!r} cannot be read on this server: choose another one")
                    self._lines[run] = made
        return self._lines[run]

    def gallery(self) -> list[dict[str, JSON]]:
        """Return the entries that the page lists."""
        names = ("id", "title", "family", "group", "about", "label", "tokens_per_step")
        return [
            {name: getattr(each, name) for name in names}
            | {"speedup": credible_speedup(each.speedup, each.tokens_per_step)}
            for each in self
            if each.id not in self._broken
        ]

    def _file(self, run: str) -> Path:
        return self._folder / f"{run}.jsonl.gz"

    def _read_header(self, run: str) -> bool:
        """Return True if the file begins with a header. Reading all files as a whole would delay the start."""
        try:
            with gzip.open(self._file(run)) as file:
                self._headers[run] = parse_trace(file.readline(_HEADER_BYTES), allow_partial=True).header
        except (OSError, EOFError, zlib.error, TraceError) as error:
            _warn(self._file(run), getattr(error, "strerror", None) or error)
            return False
        return True

    def _replays(self, run: str) -> bool:
        try:
            return bool(self.lines(run))
        except TraceError:
            return False

    def _replay(self, run: str, packed: Packed) -> str | None:
        """Return the lines of a file; None, with a line in the log, if it does not hold a whole run."""
        try:
            trace = parse_trace(packed.data)
            if self._recordings[run].step >= len(trace.steps):
                raise TraceError(f"{INDEX} opens it at a step that it does not have")
            play, lines = replay(trace, run)
            return lines + StoredRun(trace, play, packed.proof).end()
        except (SpecscopeError, ValueError) as error:  # ValueError: numbers that do not belong together
            self._leave_out(run, error)
            return None

    def _leave_out(self, run: str, reason: object) -> None:
        """Exclude a recording and log why: once, although it may be requested again and again."""
        self._broken.add(run)
        _warn(self._file(run), reason)


@dataclass(frozen=True, slots=True)
class _Place:
    position: int
    token: int
    choice: int
    margin: float


@dataclass(frozen=True, slots=True)
class _Check:
    """The fields of a check that the page reads; the class itself would import torch."""

    checked: int
    exact: int
    near_ties: int
    violations: int
    noise: float
    places: tuple[_Place, ...]


def read_index(folder: Path) -> list[RecordedRun]:
    """Return the recordings that a folder's index names; incomplete entries are left out."""
    index = folder / INDEX
    try:
        rows = json.loads(index.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        _warn(index, error.strerror if isinstance(error, OSError) else "it is no JSON")
        return []
    if not isinstance(rows, list) or not rows:
        _warn(index, "it is no list of recorded runs" if rows else "it lists no recorded runs")
        return []
    recordings = dict[str, RecordedRun]()
    for number, row in enumerate(rows, start=1):
        try:
            recording = _entry(row, f"entry {number}")
            if recording.id in recordings:
                raise TraceError(f"entry {number} has the id of an earlier one")
            recordings[recording.id] = recording
        except TraceError as error:
            _warn(index, error)
    return list(recordings.values())


def _entry(row: Any, where: str) -> RecordedRun:
    recording = from_json(RecordedRun, row, where)
    if not ID.fullmatch(recording.id):
        raise TraceError(f"{where} has an id that is no plain name")
    if recording.step < 0:
        raise TraceError(f"{where} opens at a step below 0")
    if recording.check is not None:
        from_json(_Check, dict(recording.check), f"{where}.check")
    return recording


def _warn(path: Path, reason: object) -> None:
    _log.warning("%s is left out: %s; %s", path, reason, _REMEDY)


def write_index(folder: Path, recordings: list[RecordedRun]) -> None:
    """Write the index that `Recordings` reads."""
    rows = [asdict(recording) for recording in recordings]
    (folder / INDEX).write_text(json.dumps(rows, indent=1, ensure_ascii=True) + "\n", encoding="ascii")
