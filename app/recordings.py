"""The recorded runs that come with the page: `python -m app.traces` makes them, the gallery shows them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from decoding.trace import parse_trace
from decoding.types import JSON

from .store import Kept, Packed, Proof, replay

FOLDER = Path(__file__).parents[1] / "assets" / "traces"
INDEX, LANDING = "index.json", "lookahead"


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded run and how to look at it."""

    id: str
    title: str
    shows: str  # one sentence: what there is to see
    method: str
    label: str  # of the method
    preset: str
    step: int  # where it stands when it is opened
    tokens_per_step: float
    check: Mapping[str, Any] | None = None  # of the rescore
    speedup: float | None = None  # against autoregressive decoding, measured together


class Recordings:
    """The recordings of a folder, in the order of its index."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        rows = json.loads((folder / INDEX).read_text(encoding="utf-8")) if (folder / INDEX).is_file() else []
        self._known = {row["id"]: Recording(**row) for row in rows}
        self._lines = dict[str, str]()

    def __iter__(self) -> Iterator[Recording]:
        return iter(self._known.values())

    def get(self, run: object) -> Recording | None:
        """A recording by its id."""
        return self._known.get(run) if isinstance(run, str) else None

    @property
    def landing(self) -> Recording | None:
        """The one that the page opens with."""
        return self.get(LANDING) or next(iter(self), None)

    def packed(self, run: str) -> Packed | None:
        """Its file and its proof."""
        if run not in self._known:
            return None
        told = self._known[run]
        return Packed((self._folder / f"{run}.jsonl.gz").read_bytes(), Proof(told.check, told.speedup))

    def lines(self, run: str) -> str:
        """What the player reads, made once."""
        if run not in self._lines:
            packed = self.packed(run)
            assert packed is not None
            trace = parse_trace(packed.data)
            play, lines = replay(trace, run)
            self._lines[run] = lines + Kept(trace, play, packed.proof).end()
        return self._lines[run]

    def gallery(self) -> list[dict[str, JSON]]:
        """What the page lists."""
        names = ("id", "title", "shows", "method", "label", "preset", "tokens_per_step")
        return [{name: getattr(recording, name) for name in names} for recording in self]


def write_index(folder: Path, recordings: list[Recording]) -> None:
    """Write what `Recordings` reads."""
    rows = [asdict(recording) for recording in recordings]
    (folder / INDEX).write_text(json.dumps(rows, indent=1, ensure_ascii=True) + "\n", encoding="ascii")
