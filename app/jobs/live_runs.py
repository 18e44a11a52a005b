"""Live runs: each waits in the queue, loads its model, decodes, and is checked; its lines reach the page as a text.

The text only grows, so that each update sends its tail. The engine's clock runs inside the engine alone: what is done
here is not counted, and nothing waits for the page.
"""

from __future__ import annotations

import copy
import math
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from viz.stream import play as player

from ..controls import Message, Order
from ..models.model_pool import ModelPool
from ..server.limits import LIMITS
from ..server.middleware.session_tracker import SessionTracker
from ..server.run_queue import RunQueue
from ..store.quota_cache import Quota, QuotaCache
from ..store.trace_store import Proof, StoredRun, TraceStore, new_id
from .opening_step import opening_step
from .run_from_order import begin, measure_speedup
from .streaming import EVICTED, Lines, RunWriter, batches, failure_line, page_line, wait_for_engine, wait_for_turn

if TYPE_CHECKING:
    from decoding.chat import Chat
    from decoding.engine import Engine
    from decoding.request import DecodeOptions
    from decoding.run import Run

# Suffixes to the name of a tab: its race, its examination, its landscape and its run go on side by side.
RACE, DOCTOR, LANDSCAPE = " race", " doctor", " landscape"
_SHORT_WAIT = 0.1  # seconds: a shorter wait is over before a sentence about it has been read


@dataclass(frozen=True, slots=True)
class Job:
    """What belongs to one start of a run: who started it, its id, and the event that cancels it."""

    tab: str
    client: str
    fresh: bool = False  # whether methods begin without what they learnt from the tab's earlier texts
    id: str = field(default_factory=new_id)
    cancel: threading.Event = field(default_factory=threading.Event)


@dataclass(slots=True)
class _Conversation:
    """A tab's conversation, until another one replaces it."""

    answer: tuple[tuple[Message, ...], str] | None = None  # the last run's prompt and its answer


class LiveRuns:
    """All live runs of the server, and what is stored for the next run of each tab."""

    def __init__(
        self,
        models: ModelPool,
        store: TraceStore,
        queue: RunQueue | None = None,
        tracker: SessionTracker | None = None,
    ) -> None:
        self.models, self.store, self._tracker = models, store, tracker
        # An empty queue counts as false.
        self.queue = RunQueue(LIMITS.waiting, LIMITS.waiting_each) if queue is None else queue
        self._active: dict[str, Job] = {}  # by tab
        self._closed = False
        tabs, tabs_each = Quota(LIMITS.sessions), Quota(LIMITS.sessions_each)
        self._conversations: QuotaCache[_Conversation] = QuotaCache(tabs, tabs_each)  # by tab
        # By tab: model, and the caches of its turns.
        self._chats: QuotaCache[tuple[str, Chat]] = QuotaCache(Quota(LIMITS.chats), Quota(LIMITS.chats_each))
        # By tab: model, and what methods learnt from its texts. An engine serves many visitors: it must not store that.
        self._memories: QuotaCache[tuple[str, dict[str, Any]]] = QuotaCache(tabs, tabs_each)
        self._prefill_pace: dict[str, float] = {}  # by model: seconds for each token of the last prompt

    def start(
        self,
        order: Order,
        tab: str,
        address: str,
        *,
        fresh: bool = False,
        beside: bool = False,
        branch: str = "",
        left_out: str = "",
    ) -> Iterator[str]:
        """Decode an order of a tab; yields the text of its lines as it grows.

        A run that is compared with another begins `fresh`, as recordings do; the page shows it `beside` the other. A
        `branch` is what the address of the other run has beside it, and `left_out` names what the address lacks.
        """
        job = self.job(tab, fresh)
        about = {"address": f"{address}&run={job.id}".removeprefix("&"), "live": "beside" if beside else "alone"}
        about |= {name: words for name, words in (("branch", branch), ("left_out", left_out)) if words}
        opening = page_line(run=job.id, **about)
        return self.stream(job, opening, self._lines(job, order))

    def job(self, tab: str, fresh: bool = False) -> Job:
        """A new job of a tab, not active yet."""
        client = "" if self._tracker is None else self._tracker.client(_session(tab))
        return Job(tab, client, fresh)

    def stream(self, job: Job, opening: str, lines: Lines) -> Iterator[str]:
        """Yield `opening` with the lines so far whenever there are more; an error becomes the last line.

        While there are none, the same text is yielded again from time to time: only then does Gradio see a closed tab.
        """
        if self._closed:
            yield opening + player.fault("The server is being stopped: try again in a minute.")
            return
        self.stop(job.tab)
        self._active[job.tab] = job
        self.store.streaming.add(job.id)
        text, shown, shown_at = opening, 0, 0.0
        try:
            for more in lines:
                text += more
                if self._is_unread(job.tab):  # nobody waits for it, and others wait for the engine
                    job.cancel.set()
                if len(text) > shown or time.monotonic() - shown_at >= LIMITS.live_gap:
                    yield text
                    shown, shown_at = len(text), time.monotonic()
        except Exception as error:
            yield text + failure_line(error)
        finally:
            lines.close()
            job.cancel.set()
            self.store.streaming.discard(job.id)
            if self._active.get(job.tab) is job:
                del self._active[job.tab]

    def stop(self, tab: str) -> None:
        """Cancel the run of a tab: it ends after the current step."""
        if (job := self._active.get(tab)) is not None:
            job.cancel.set()

    def close(self, seconds: float) -> bool:
        """Start no more runs and cancel those in progress; returns whether all ended in time."""
        self._closed = True
        until = time.monotonic() + seconds
        while self._active and time.monotonic() < until:
            for job in list(self._active.values()):
                job.cancel.set()
            time.sleep(0.02)
        return not self._active

    def forget(self, tab: str) -> None:
        """Cancel the run of a closed tab, and delete everything that was stored for it."""
        self.stop(tab)
        self.end_conversation(tab)
        self._memories.pop(tab)

    def end_conversation(self, tab: str) -> None:
        """Delete a tab's conversation. A run that still answers in it goes on, but its answer is dropped."""
        self._conversations.pop(tab)
        self._chats.pop(tab)

    def take_answer(self, tab: str) -> tuple[tuple[Message, ...], str] | None:
        """The prompt and the answer of the last run of a tab; returns them only once."""
        conversation = self._conversations.get(tab)
        if conversation is None:
            return None
        answer, conversation.answer = conversation.answer, None
        return answer

    @property
    def active(self) -> int:
        """How many tabs have a run or a race that is waiting or running."""
        return len(self._active)

    def load(self, order: Order, cancel: threading.Event) -> Generator[str, None, Engine | None]:
        """Load the engine and the parts that the method needs; returns None if the run was cancelled meanwhile."""
        if cancel.is_set():
            return None
        loading = self.models.request(order.entry)
        for tab, (model, _) in self._chats.items():
            if model not in self.models:  # it was evicted, but these caches would keep it in memory
                self._chats.pop(tab)
        engine = yield from wait_for_engine(loading, cancel)
        if engine is None:
            return None
        return (yield from wait_for_engine(self.models.prepare(order.entry, engine, order.method.name), cancel))

    @contextmanager
    def decode(
        self,
        job: Job,
        engine: Engine,
        order: Order,
        *,
        max_bytes: int = LIMITS.stream_bytes,
        chat: Chat | None = None,
        seconds: float = LIMITS.seconds,
    ) -> Iterator[RunWriter]:
        """A run of the engine for the block, which must iterate over its steps; closes the run."""
        options: DecodeOptions = {"record": "full", "time_budget": seconds, "cancel": job.cancel, "chat": chat}
        options["memory"] = self._memory(job, order)
        run = begin(engine, order, options)
        try:
            yield RunWriter(run, job.id, max_bytes)
            if run.steps:
                first = run.steps[0]
                self._prefill_pace[order.entry.name] = first.timing.total_ms / 1000 / first.fed
        finally:
            run.close()

    def prefill_line(self, order: Order, run: Run) -> str:
        """A line that says that the prompt is being read; "" where that is expected to take no time."""
        tokens = len(run.header.prompt)
        if tokens * self._prefill_pace.get(order.entry.name, math.inf) <= _SHORT_WAIT:
            return ""
        return player.state("reading", f"Reading {tokens} prompt tokens.")

    def _lines(self, job: Job, order: Order) -> Lines:
        """Yield the lines of a run: its position in the queue, loading, steps, summary, check, speedup."""
        conversation = self._conversations.get(job.tab) or _Conversation()
        self._conversations.put(job.client, job.tab, conversation)
        with self.queue.join(job.client) as ticket:
            yield from wait_for_turn(ticket, job.cancel)
            engine = yield from self.load(order, job.cancel)
            if engine is None:
                yield player.fault("Stopped before the first step.")
                return
            compares = order.compare and order.method.name != "autoregressive"
            memory = copy.deepcopy(self._memory(job, order)) if compares else {}
            with self.decode(job, engine, order, chat=self._chat(job, order)) as writer:
                if line := self.prefill_line(order, writer.run):
                    yield line
                for steps in batches(writer.run, LIMITS.live_gap):
                    yield writer.lines(steps)
            run, play, trace = writer.run, writer.play, writer.run.trace
            # Stored before the end is shown: from then on the page may ask for details.
            evicted = self.store.put(job.id, StoredRun(trace, play), job.client)
            about: dict[str, Any] = {"step": opening_step(trace)} if trace.steps else {}
            about |= {"notice": EVICTED} if evicted else {}
            yield (page_line(**about) if about else "") + play.end(run.summary)
            if not isinstance(order.prompt, str):
                conversation.answer = order.prompt, run.summary.text
            if not trace.steps:
                return
            check = asdict(engine.rescore(trace))
            self.store.add_proof(job.id, Proof(check))
            yield play.late(check)
            if compares and not job.cancel.is_set():
                speedup = yield from measure_speedup(engine, order, run, job.cancel, memory)
                self.store.add_proof(job.id, Proof(check, speedup))
                yield play.late(check, speedup)

    def _is_unread(self, tab: str) -> bool:
        """Whether nobody has read the events of a tab for some seconds."""
        tracker, session = self._tracker, _session(tab)
        known = tracker is not None and tracker.knows(session)  # not without the request filter
        return tracker is not None and known and tracker.away(session) > LIMITS.unread_seconds

    def _chat(self, job: Job, order: Order) -> Chat | None:
        """The caches of a tab's conversation: new ones for a new conversation, or for another model."""
        if isinstance(order.prompt, str):
            return None
        from decoding.chat import Chat

        model, chat = self._chats.get(job.tab) or ("", None)
        if chat is None or model != order.entry.name or not any(m["role"] == "assistant" for m in order.prompt):
            chat = Chat()
        self._chats.put(job.client, job.tab, (order.entry.name, chat))
        return chat

    def _memory(self, job: Job, order: Order) -> dict[str, Any]:
        """What methods learnt from a tab's texts with this model."""
        if job.fresh:
            return {}
        model, memory = self._memories.get(job.tab) or ("", dict[str, Any]())
        memory = memory if model == order.entry.name else {}
        self._memories.put(job.client, job.tab, (order.entry.name, memory))
        return memory


def _session(tab: str) -> str:
    """The session whose run, race, examination or landscape it is."""
    return tab.partition(" ")[0]
