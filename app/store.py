"""Records of runs that the page can come back to: packed, and only a few of them as objects at a time.

Ids are unguessable: whoever was not given one cannot look at another visitor's prompt.
"""

from __future__ import annotations

import gzip
import io
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from decoding.errors import TraceError
from decoding.trace import parse_trace, write_trace
from decoding.types import Trace
from viz.play import Play

from .limits import LIMITS

ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PATIENCE = 5.0  # seconds
_FAST = 3  # of gzip: a third larger than the best, in a fifth of the time


def new_id() -> str:
    """A name for a run that nobody guesses."""
    return secrets.token_urlsafe(16)


def pack(trace: Trace) -> bytes:
    """A trace as the bytes of its packed file."""
    text = io.StringIO()
    write_trace(trace, text)
    return gzip.compress(text.getvalue().encode("ascii"), _FAST, mtime=0)


@dataclass(frozen=True, slots=True)
class Proof:
    """What was found out about a run after its end."""

    check: Mapping[str, Any] | None = None  # of the rescore
    speedup: float | None = None  # against autoregressive decoding


@dataclass(frozen=True, slots=True)
class Packed:
    """A record as its file, with its proof."""

    data: bytes
    proof: Proof = Proof()


@dataclass(frozen=True, slots=True)
class Kept:
    """A record, its proof, and what writes its lines: it knows the numbers of strings that the page was told."""

    trace: Trace
    play: Play
    proof: Proof = Proof()

    def end(self) -> str:
        """The last of its lines."""
        return self.play.end(self.trace.summary, self.proof.check, self.proof.speedup)


class Reading:
    """Reading and replaying records takes the interpreter for a while: one at a time, the others are soon told so."""

    def __init__(self) -> None:
        self._gate = threading.Semaphore(1)

    def __enter__(self) -> None:
        if not self._gate.acquire(timeout=_PATIENCE):
            raise TraceError("the server is reading other records: try again in a moment")

    def __exit__(self, *error: object) -> None:
        self._gate.release()


def replay(trace: Trace, run: str | None) -> tuple[Play, str]:
    """A record's lines but the last one, and what wrote them."""
    play = Play(trace.header, run, LIMITS.stream_bytes)
    return play, play.begin(trace.texts) + "".join(play.step(step) for step in trace.steps)


class Store:
    """Bounded in runs and in bytes; what was not used for longest goes first. Safe from several threads.

    `find` knows packed records that are kept elsewhere; `reading` is for whoever else reads or replays records.
    """

    def __init__(
        self,
        find: Callable[[str], Packed | None] = lambda run: None,
        most_runs: int = LIMITS.stored_runs,
        most_bytes: int = LIMITS.stored_bytes,
    ) -> None:
        self._find, self._most_runs, self._most_bytes = find, most_runs, most_bytes
        self.reading = Reading()
        self.telling = set[str]()  # runs and races, by id, whose lines are on the way to a page
        self._packed: OrderedDict[str, Packed] = OrderedDict()
        self._open: OrderedDict[str, Kept] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._packed)

    @property
    def unpacked(self) -> int:
        """Records that are held as objects now."""
        return len(self._open)

    def put(self, run: str, kept: Kept) -> None:
        """Keep a run."""
        packed = Packed(pack(kept.trace), kept.proof)
        with self._lock:
            self._packed[run] = packed
            while len(self._packed) > 1 and (
                len(self._packed) > self._most_runs
                or sum(len(each.data) for each in self._packed.values()) > self._most_bytes
            ):
                gone, _ = self._packed.popitem(last=False)
                self._open.pop(gone, None)
            self._remember(run, kept)

    def prove(self, run: str, proof: Proof) -> None:
        """Keep what was found out about a run, as long as the run."""
        with self._lock:
            if run in self._packed:
                self._packed[run] = replace(self._packed[run], proof=proof)
            if run in self._open:
                self._open[run] = replace(self._open[run], proof=proof)

    def get(self, run: object) -> Kept | None:
        """A run by its id; None: unknown, or gone. Raises TraceError while too much else is being read."""
        if not isinstance(run, str) or not ID.fullmatch(run):
            return None
        kept = self._opened(run)
        packed = None if kept else self._packed.get(run) or self._find(run)
        if packed is None:
            return kept
        with self.reading:
            return self._opened(run) or self._unpack(run, packed)

    def _opened(self, run: str) -> Kept | None:
        with self._lock:
            if run in self._packed:
                self._packed.move_to_end(run)
            if run in self._open:
                self._open.move_to_end(run)
            return self._open.get(run)

    def _unpack(self, run: str, packed: Packed) -> Kept:
        trace = parse_trace(packed.data)
        play, _ = replay(trace, run)
        with self._lock:
            kept = Kept(trace, play, self._packed.get(run, packed).proof)
            self._remember(run, kept)
        return kept

    def _remember(self, run: str, kept: Kept) -> None:
        self._open[run] = kept
        self._open.move_to_end(run)
        while len(self._open) > LIMITS.unpacked_runs:
            self._open.popitem(last=False)
