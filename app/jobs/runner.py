"""Runs a visitor's job: it joins the queue, loads its model, streams its lines, and ends.

The text of its lines only grows, so that each update sends its tail. The engine's clock runs inside the engine alone:
what is done here is not counted, and nothing waits for the page.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Protocol

from decoding.errors import ModelError, SpecscopeError
from viz.stream import play as player

from ..models.entry import CatalogEntry
from ..models.model_pool import Loading, ModelPool
from ..server.limits import LIMITS
from ..server.middleware.session_tracker import SessionTracker
from ..server.run_queue import RunQueue, Ticket
from ..store.trace_store import TraceStore, new_id
from .guardrails import Guardrails
from .streaming import Lines, UnbegunError, as_sentence, failure_line
from .tab_memory import TabMemory

if TYPE_CHECKING:
    from decoding.engine import Engine

_log = logging.getLogger(__name__)
_POLL = 0.25  # seconds between two checks while waiting: in between it is noticed that a visitor has left


class ClosingError(SpecscopeError):
    """The server ends, so no job starts."""

    def __init__(self) -> None:
        super().__init__("the server is being stopped: try again in a minute")


class Job(Protocol):
    """What a visitor starts and waits for. Each kind is a class in a file of its own, and an instance starts once."""

    @property
    def entry(self) -> CatalogEntry:
        """The model that it needs."""

    @property
    def spare(self) -> CatalogEntry | None:
        """The model that it can do with where that one cannot be loaded."""

    @property
    def seconds(self) -> float:
        """How long it may take once its model is loaded."""

    def opening(self, started: StartedJob) -> str:
        """Return the first lines, before the job joins the queue."""

    def lines(self, started: StartedJob) -> Lines:
        """Yield the other lines, when it is the job's turn and its model is loaded."""


class JobKey(NamedTuple):
    """Names a job: a tab has at most one of each kind, and different kinds run side by side."""

    tab: str
    kind: type[Job]


@dataclass(slots=True)
class StartedJob:
    """A job in progress: who started it, what it may use, and what ends it."""

    runner: JobRunner
    key: JobKey
    client: str
    id: str = field(default_factory=new_id)
    cancel: threading.Event = field(default_factory=threading.Event)
    until: float = math.inf  # by the monotonic clock
    engine: Engine = field(init=False)  # from the job's turn on
    on_spare: bool = False  # whether it is the engine of the job's `spare`, since that of its `entry` cannot be loaded

    @property
    def left(self) -> float:
        """Seconds until its time is up."""
        return self.until - time.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether it was cancelled, or its time is up."""
        return self.cancel.is_set() or self.left <= 0

    def prepare(self, entry: CatalogEntry, method: str, lane: int | None = None) -> Generator[str, None, bool]:
        """Load the parts that a method needs; returns whether they were loaded before the job was over."""
        return (yield from self.wait_for(self.runner.models.prepare(entry, self.engine, method), lane)) is not None

    def wait_for(self, loading: Loading, lane: int | None = None) -> Generator[str, None, Engine | None]:
        """Wait until an engine is loaded, and report the progress; returns None if the job is over before."""
        phase, share, engine = "", -1.0, loading.wait(0.02)
        while engine is None and not self.is_over:
            if loading.phase != phase or loading.share - share >= 0.05:
                phase, share = loading.phase, loading.share
                yield player.state("loading", as_sentence(phase), round(share, 3), lane)
            else:
                yield ""
            engine = loading.wait(_POLL)
        return None if self.is_over else engine

    def wait_for_turn(self, ticket: Ticket) -> Lines:
        """Wait in the queue, and report each change of the position."""
        shown = -1
        while (ahead := ticket.wait(_POLL if shown >= 0 else 0.0)) and not self.is_over:
            if ahead == shown:
                yield ""
            else:
                shown = ahead
                yield player.state("queued", f"{'1 run is' if ahead == 1 else f'{ahead} runs are'} before yours.")


class JobRunner:
    """Runs all jobs of the server, one at a time."""

    def __init__(
        self,
        models: ModelPool,
        store: TraceStore,
        queue: RunQueue | None = None,
        tracker: SessionTracker | None = None,
        guardrails: Guardrails | None = None,
    ) -> None:
        self.models, self.store, self.tabs, self._tracker = models, store, TabMemory(), tracker
        self.guardrails = guardrails or Guardrails()
        models.evicting = self.tabs.drop_evicted
        # An empty queue counts as false.
        self.queue = RunQueue(LIMITS.waiting, LIMITS.waiting_each) if queue is None else queue
        self.prefill_pace: dict[str, float] = {}  # by model: seconds for each token of the last prompt
        self._active: dict[JobKey, StartedJob] = {}
        self._closed = False

    def start(
        self, job: Job, tab: str, client: str | None = None, failed: Callable[[Exception], str] = failure_line
    ) -> Generator[str, None, None]:
        """Run a job of a tab, and cancel the last one of its kind; yields the text of its lines as it grows.

        While there are no new lines, the same text is yielded from time to time: only then does Gradio see a closed
        tab. An error becomes the last line, which `failed` writes, unless that raises.
        """
        if client is None:
            client = "" if self._tracker is None else self._tracker.client(tab)
        started = StartedJob(self, JobKey(tab, type(job)), client)
        text, shown, shown_at = job.opening(started), 0, 0.0
        try:
            if self._closed:
                raise ClosingError
            self.stop(*started.key)
            self._active[started.key] = started
            self.store.streaming[started.id] = None
            with self.queue.join(client) as ticket, ExitStack() as used, closing(job.lines(started)) as lines:
                for more in chain(self._wait(job, started, ticket, used), lines):
                    text += more
                    if self._is_unread(tab):  # nobody waits for it, and others wait for the engine
                        started.cancel.set()
                    if len(text) > shown or time.monotonic() - shown_at >= LIMITS.live_gap:
                        yield text
                        shown, shown_at = len(text), time.monotonic()
        except Exception as error:
            yield text + failed(error)
        finally:
            started.cancel.set()
            self.store.streaming.pop(started.id, None)
            if self._active.get(started.key) is started:
                del self._active[started.key]

    def stop(self, tab: str, *kinds: type[Job]) -> None:
        """Cancel a tab's jobs of these kinds: a run ends after the current step."""
        for kind in kinds:
            if (started := self._active.get(JobKey(tab, kind))) is not None:
                started.cancel.set()

    def forget(self, tab: str) -> None:
        """Cancel all jobs of a closed tab, and delete everything that was stored for it."""
        self.stop(tab, *(key.kind for key in list(self._active) if key.tab == tab))
        self.tabs.forget(tab)

    def close(self, seconds: float) -> bool:
        """Start no more jobs and cancel those in progress; returns whether all ended in time."""
        self._closed = True
        until = time.monotonic() + seconds
        while self._active and time.monotonic() < until:
            for started in list(self._active.values()):
                started.cancel.set()
            time.sleep(0.02)
        return not self._active

    @property
    def active(self) -> int:
        """The number of jobs that are waiting or running."""
        return len(self._active)

    def _wait(self, job: Job, started: StartedJob, ticket: Ticket, used: ExitStack) -> Lines:
        """Wait for the job's turn and for its model, which `used` retains. Raises UnbegunError if it is over before."""
        begun, engine = time.monotonic(), None
        yield from started.wait_for_turn(ticket)
        if not started.is_over:
            waited = round(time.monotonic() - begun, 3)
            facts = {"event": "turn", "job": type(job).__name__, "model": job.entry.name, "waited": waited}
            _log.info("a job had its turn after %.1f seconds", waited, extra={"facts": facts})
            try:
                engine = yield from started.wait_for(used.enter_context(self.models.use(job.entry)))
            except ModelError:
                if job.spare is None:
                    raise
                engine = yield from started.wait_for(used.enter_context(self.models.use(job.spare)))
                started.on_spare = True
        if engine is None:
            raise UnbegunError
        started.engine, started.until = engine, time.monotonic() + job.seconds

    def _is_unread(self, tab: str) -> bool:
        """Return True if nobody has read a tab's events for some seconds; False if no request filter notes it."""
        tracker = self._tracker
        return tracker is not None and tracker.knows(tab) and tracker.away(tab) > LIMITS.unread_seconds
