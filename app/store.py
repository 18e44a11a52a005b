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
from collections.abc import Callable
from dataclasses import dataclass

from decoding.trace import parse_trace, write_trace
from decoding.types import Trace
from viz.play import Play

from .limits import LIMITS

ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
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
class Kept:
    """A record, and what writes its lines: it knows the numbers of strings that the page was told."""

    trace: Trace
    play: Play


def replay(trace: Trace, run: str | None) -> tuple[Play, str]:
    """A record's lines but the last one, and what wrote them."""
    play = Play(trace.header, run, LIMITS.stream_bytes)
    return play, play.begin(trace.texts) + "".join(play.step(step) for step in trace.steps)


class Store:
    """Bounded in runs and in bytes; what was not used for longest goes first. Safe from several threads.

    `find` knows packed records that are kept elsewhere.
    """

    def __init__(
        self,
        find: Callable[[str], bytes | None] = lambda run: None,
        most_runs: int = LIMITS.stored_runs,
        most_bytes: int = LIMITS.stored_bytes,
    ) -> None:
        self._find, self._most_runs, self._most_bytes = find, most_runs, most_bytes
        self._packed: OrderedDict[str, bytes] = OrderedDict()
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
        packed = pack(kept.trace)
        with self._lock:
            self._packed[run] = packed
            while len(self._packed) > 1 and (
                len(self._packed) > self._most_runs or sum(map(len, self._packed.values())) > self._most_bytes
            ):
                gone, _ = self._packed.popitem(last=False)
                self._open.pop(gone, None)
            self._remember(run, kept)

    def get(self, run: object) -> Kept | None:
        """A run by its id; None: unknown, or gone."""
        if not isinstance(run, str) or not ID.fullmatch(run):
            return None
        with self._lock:
            packed = self._packed.get(run)
            if packed is not None:
                self._packed.move_to_end(run)
            if run in self._open:
                self._open.move_to_end(run)
                return self._open[run]
        packed = packed or self._find(run)
        if packed is None:
            return None
        trace = parse_trace(packed)
        kept = Kept(trace, replay(trace, run)[0])
        with self._lock:
            self._remember(run, kept)
        return kept

    def _remember(self, run: str, kept: Kept) -> None:
        self._open[run] = kept
        self._open.move_to_end(run)
        while len(self._open) > LIMITS.unpacked_runs:
            self._open.popitem(last=False)
