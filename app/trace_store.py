"""Records of runs that the page can come back to: packed, and only a few of them as objects at a time.

Ids are unguessable: whoever was not given one cannot look at another visitor's prompt.
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

from .limits import LIMITS
from .middleware.session_tracker import CLIENT
from .quota_cache import Quota, QuotaCache
from .run_queue import FullError, Line

ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PATIENCE = 5.0  # seconds
_READERS, _READERS_EACH = 24, 4  # who wait
_WHOLE = Quota(LIMITS.stored_runs, LIMITS.stored_bytes)
_EACH = Quota(LIMITS.stored_runs_each, LIMITS.stored_bytes_each)
FAST = 3  # of gzip: a third larger than the best, in a fifth of the time


def new_id() -> str:
    """A name for a run that nobody guesses."""
    return secrets.token_urlsafe(16)


def pack(trace: Trace) -> bytes:
    """A trace as the bytes of its packed file."""
    text = io.StringIO()
    write_trace(trace, text)
    return gzip.compress(text.getvalue().encode("ascii"), FAST, mtime=0)


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
    file: bytes | None = None  # packed, that the record came in

    def end(self) -> str:
        """The last of its lines."""
        return self.play.end(self.trace.summary, self.proof.check, self.proof.speedup)


class Reading:
    """Reading and replaying records takes the interpreter for a while: one at a time, clients in turn, and whoever
    would wait for long is soon told so."""

    def __init__(self) -> None:
        self._line = Line(_READERS, _READERS_EACH)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The time to read, as long as the block takes."""
        busy = TraceError("the server is reading other records: try again in a moment")
        try:
            ticket = self._line.join(CLIENT.get())
        except FullError:
            raise busy from None
        with ticket:
            until = time.monotonic() + _PATIENCE
            while ticket.wait(max(0.0, until - time.monotonic())):
                if time.monotonic() >= until:
                    raise busy
            yield


def replay(trace: Trace, run: str | None) -> tuple[Play, str]:
    """A record's lines but the last one, and what wrote them."""
    play = Play(trace.header, run, LIMITS.stream_bytes)
    return play, play.begin(trace.texts) + "".join(play.step(step) for step in trace.steps)


class Store:
    """Bounded in runs and in bytes, for each client and in all. Safe from several threads.

    `find` knows packed records that are kept elsewhere.
    """

    def __init__(
        self,
        find: Callable[[str], Packed | None] = lambda run: None,
        whole: Quota = _WHOLE,
        each: Quota = _EACH,
    ) -> None:
        self._find = find
        self._reading = Reading()
        self._finding = threading.Lock()
        self.telling = set[str]()  # runs and races, by id, whose lines are on the way to a page
        self._packed: QuotaCache[Packed] = QuotaCache(whole, each)
        self._open: OrderedDict[str, Kept] = OrderedDict()
        self._sizes = dict[str, int]()  # of those, in values
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._packed)

    @property
    def reading(self) -> AbstractContextManager[None]:
        """For whoever reads or replays what visitors brought."""
        return self._reading.turn()

    @property
    def unpacked(self) -> int:
        """Records that are held as objects now."""
        return len(self._open)

    def put(self, run: str, kept: Kept, client: str = "") -> bool:
        """Keep a client's run; whether runs of the same client made room for it."""
        packed = Packed(pack(kept.trace) if kept.file is None else kept.file, kept.proof)
        with self._lock:
            gone = self._packed.put(client, run, packed, len(packed.data))
            for each in gone:
                self._open.pop(each, None)
            self._remember(run, kept)
            return client in gone.values()

    def prove(self, run: str, proof: Proof) -> None:
        """Keep what was found out about a run, as long as the run."""
        with self._lock:
            if (packed := self._packed.get(run)) is not None:
                self._packed.change(run, replace(packed, proof=proof))
            if run in self._open:
                self._open[run] = replace(self._open[run], proof=proof)

    def get(self, run: object) -> Kept | None:
        """A run by its id; None: unknown, or gone. Raises TraceError while too much else is being read.

        What is kept elsewhere does not wait for what visitors brought: it is small, and one at a time is read here too.
        """
        if not isinstance(run, str) or not ID.fullmatch(run):
            return None
        kept = self._opened(run)
        own = None if kept else self._packed.get(run)
        packed = None if kept else own or self._find(run)
        if packed is None:
            return kept
        with self.reading if own else self._finding:
            return self._opened(run) or self._unpack(run, packed)

    def _opened(self, run: str) -> Kept | None:
        with self._lock:
            self._packed.get(run)  # it counts as used
            if run in self._open:
                self._open.move_to_end(run)
            return self._open.get(run)

    def _unpack(self, run: str, packed: Packed) -> Kept:
        trace = parse_trace(packed.data, allow_partial=True)  # a file may have come cut off
        play, _ = replay(trace, run)
        with self._lock:
            kept = Kept(trace, play, (self._packed.get(run) or packed).proof)
            self._remember(run, kept)
        return kept

    def _remember(self, run: str, kept: Kept) -> None:
        self._open[run] = kept
        self._open.move_to_end(run)
        sizes = {each: self._sizes[each] for each in self._open if each in self._sizes}
        self._sizes = sizes | {run: _values(kept.trace)}
        while len(self._open) > LIMITS.unpacked_runs or (
            len(self._open) > 1 and sum(self._sizes.values()) > LIMITS.unpacked_values
        ):
            gone, _ = self._open.popitem(last=False)
            del self._sizes[gone]


def _values(trace: Trace) -> int:
    """About how many values a record holds as objects."""
    header = trace.header
    values = sum(map(len, (header.prompt, header.reference, header.end_tokens))) + 3 * len(trace.texts)
    values += sum(values_in(part) for part in (header.params, header.sampling, header.versions, header.parts))
    for step in trace.steps:
        values += 7 * len(step.tokens) + len(step.emitted) + 3 * sum(map(len, step.top))
        values += 4 * sum(map(len, step.draft_top)) + values_in(step.panel)
    return values
