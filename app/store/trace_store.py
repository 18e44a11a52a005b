"""Stores the traces of runs in memory, as compressed files; only a few of them are unpacked at a time.

Ids cannot be guessed: nobody can read the prompt of another visitor without having the id.
"""

from __future__ import annotations

import gzip
import io
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from decoding.errors import TraceError
from decoding.trace.file import parse_trace, write_trace
from decoding.trace.json_line import values_in
from decoding.types import Trace
from viz.stream.play import Play
from viz.views import views_of

from ..server.limits import LIMITS
from ..server.middleware.session_tracker import CLIENT
from ..server.run_queue import FullError, RunQueue
from .quota_cache import Quota, QuotaCache

ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_READ_TIMEOUT = 5.0  # seconds
_READERS, _READERS_EACH = 24, 4  # clients' requests that wait, in all and of each
_TOTAL = Quota(LIMITS.stored_runs, LIMITS.stored_bytes)
_EACH = Quota(LIMITS.stored_runs_each, LIMITS.stored_bytes_each)
GZIP_LEVEL = 3  # a third larger than with the best level, in a fifth of the time


def new_id() -> str:
    """Return a run's id, which cannot be guessed."""
    return secrets.token_urlsafe(16)


def pack_trace(trace: Trace) -> bytes:
    """Write a trace as a gzip file."""
    text = io.StringIO()
    write_trace(trace, text)
    return gzip.compress(text.getvalue().encode("ascii"), GZIP_LEVEL, mtime=0)


@dataclass(frozen=True, slots=True)
class Proof:
    """The results that come after the end of a run."""

    check: Mapping[str, Any] | None = None  # of the rescore
    speedup: float | None = None  # against autoregressive decoding


@dataclass(frozen=True, slots=True)
class Packed:
    """A run's trace as a file, with its proof."""

    data: bytes
    proof: Proof = Proof()


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run's trace and proof, and the `Play` that wrote its lines: further lines must use the same string numbers."""

    trace: Trace
    play: Play
    proof: Proof = Proof()
    file: bytes | None = None  # the packed file that the trace was read from

    def end(self) -> str:
        """Return the last of its lines."""
        return self.play.end(self.trace.summary, self.proof.check, self.proof.speedup)


class ReaderQueue:
    """Lets one request at a time read or replay a trace, since both block the interpreter for a while.

    Clients take turns. A request that would wait for long raises TraceError instead.
    """

    def __init__(self) -> None:
        self._queue = RunQueue(_READERS, _READERS_EACH)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for the client's turn, and hold it for the block."""
        busy = TraceError("the server is reading other records: try again in a moment")
        try:
            ticket = self._queue.join(CLIENT.get())
        except FullError:
            raise busy from None
        with ticket:
            until = time.monotonic() + _READ_TIMEOUT
            while ticket.wait(max(0.0, until - time.monotonic())):
                if time.monotonic() >= until:
                    raise busy
            yield


def replay(trace: Trace, run: str | None) -> tuple[Play, str]:
    """Write the lines of a trace, except the last one; returns the `Play` that wrote them, and the lines."""
    play = Play(trace.header, run, LIMITS.stream_bytes, views_of(trace))
    return play, play.begin(trace.texts) + "".join(play.step(step) for step in trace.steps)


class TraceStore:
    """Traces by run id, limited in number and in bytes, per client and in total. Thread-safe.

    `find` returns packed traces that are stored elsewhere, such as the recordings.
    """

    def __init__(
        self,
        find: Callable[[str], Packed | None] = lambda run: None,
        total: Quota = _TOTAL,
        each: Quota = _EACH,
    ) -> None:
        self._find = find
        self._readers = ReaderQueue()
        self._find_lock = threading.Lock()
        # By the ids of runs and races whose lines are being streamed to a page: what writes them, once a run has begun.
        self.streaming = dict[str, Play | None]()
        self._packed: QuotaCache[Packed] = QuotaCache(total, each)
        self._unpacked: OrderedDict[str, StoredRun] = OrderedDict()
        self._sizes = dict[str, int]()  # of the unpacked ones, in values
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._packed)

    def reading(self) -> AbstractContextManager[None]:
        """Return the client's turn to read or replay a trace."""
        return self._readers.turn()

    @property
    def unpacked(self) -> int:
        """The number of unpacked traces."""
        return len(self._unpacked)

    def put(self, run: str, stored: StoredRun, client: str = "") -> bool:
        """Store a run of a client; returns whether other runs of the same client were evicted."""
        packed = Packed(pack_trace(stored.trace) if stored.file is None else stored.file, stored.proof)
        with self._lock:
            evicted = self._packed.put(client, run, packed, len(packed.data))
            for each in evicted:
                self._unpacked.pop(each, None)
            self._add_unpacked(run, stored)
            return client in evicted.values()

    def add_proof(self, run: str, proof: Proof) -> None:
        """Add the proof of a run, if the run is still stored."""
        with self._lock:
            if (packed := self._packed.get(run)) is not None:
                self._packed.change(run, replace(packed, proof=proof))
            if run in self._unpacked:
                self._unpacked[run] = replace(self._unpacked[run], proof=proof)

    def get(self, run: object) -> StoredRun | None:
        """Return a run by its id, or None if it is unknown. Raises TraceError while the server reads other traces.

        A trace that is stored elsewhere does not wait for those that visitors brought: it is small.
        """
        if not isinstance(run, str) or not ID.fullmatch(run):
            return None
        stored = self._get_unpacked(run)
        visitors = None if stored else self._packed.get(run)
        packed = None if stored else visitors or self._find(run)
        if packed is None:
            return stored
        with self.reading() if visitors else self._find_lock:
            return self._get_unpacked(run) or self._unpack(run, packed)

    def find(self, run: object) -> StoredRun:
        """Return a run by its id; raises TraceError if it is unknown or evicted."""
        stored = self.get(run)
        if stored is None:
            raise TraceError("the server no longer stores this run: run it again, or open its file")
        return stored

    def play(self, run: object) -> Play:
        """Return the writer of the lines of a stored or running run; raises TraceError if there is none."""
        return (self.streaming.get(run) if isinstance(run, str) else None) or self.find(run).play

    def _get_unpacked(self, run: str) -> StoredRun | None:
        with self._lock:
            self._packed.get(run)  # counts as a use
            if run in self._unpacked:
                self._unpacked.move_to_end(run)
            return self._unpacked.get(run)

    def _unpack(self, run: str, packed: Packed) -> StoredRun:
        trace = parse_trace(packed.data, allow_partial=True)  # an uploaded file may be cut off
        play, _ = replay(trace, run)
        with self._lock:
            stored = StoredRun(trace, play, (self._packed.get(run) or packed).proof)
            self._add_unpacked(run, stored)
        return stored

    def _add_unpacked(self, run: str, stored: StoredRun) -> None:
        self._unpacked[run] = stored
        self._unpacked.move_to_end(run)
        sizes = {each: self._sizes[each] for each in self._unpacked if each in self._sizes}
        self._sizes = sizes | {run: _values(stored.trace)}
        while len(self._unpacked) > LIMITS.unpacked_runs or (
            len(self._unpacked) > 1 and sum(self._sizes.values()) > LIMITS.unpacked_values
        ):
            evicted, _ = self._unpacked.popitem(last=False)
            del self._sizes[evicted]


def _values(trace: Trace) -> int:
    """Estimate how many Python objects a trace consists of."""
    header = trace.header
    values = sum(map(len, (header.prompt, header.reference, header.end_tokens))) + 3 * len(trace.texts)
    values += sum(values_in(part) for part in (header.params, header.sampling, header.versions, header.parts))
    for step in trace.steps:
        values += 9 * len(step.tokens) + len(step.emitted) + 3 * sum(map(len, step.top))
        values += 4 * sum(map(len, step.draft_top)) + sum(map(len, step.ranks)) + values_in(step.panel)
    return values
