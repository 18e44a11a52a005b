"""A live run from its place in the line to its proof, as the text that the page's component holds.

The text only grows, so that each update sends its tail. The engine's clock runs inside the engine alone: what is done
here is not counted, and nothing waits for the page.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from decoding.errors import ParamError
from viz.stream import play as stream
from viz.stream.play import Play

from .controls import Message, Order
from .hosting import EVICTED, host
from .limits import LIMITS
from .middleware.session_tracker import SessionTracker
from .model_pool import Engines
from .quota_cache import Quota, QuotaCache
from .run_queue import Line
from .streaming import Pieces, arrival, bursts, guarded, led, turn
from .trace_store import Kept, Proof, Store, new_id

if TYPE_CHECKING:
    from decoding.chat import Chat
    from decoding.engine import Engine
    from decoding.run import Run

RACE = " race"  # follows the name of a tab, whose race and run are two
_BLINK = 0.1  # seconds: a shorter wait is over before a sentence about it has been read
Decoding = Generator[str, None, "tuple[Run, Play]"]


@dataclass(slots=True)
class _Talk:
    """A tab's conversation, as long as it is not replaced by another."""

    answer: tuple[tuple[Message, ...], str] | None = None  # what was said last, and what came


class Runs:
    """All live runs of the server."""

    def __init__(
        self, engines: Engines, store: Store, line: Line | None = None, tracker: SessionTracker | None = None
    ) -> None:
        self.engines, self.store, self._tracker = engines, store, tracker
        self.line = Line(LIMITS.waiting, LIMITS.waiting_each) if line is None else line  # an empty one counts as false
        self._going: dict[str, threading.Event] = {}  # by the visitor's tab
        self._closed = False
        tabs, tabs_each = Quota(LIMITS.sessions), Quota(LIMITS.sessions_each)
        self._talks: QuotaCache[_Talk] = QuotaCache(tabs, tabs_each)  # by tab
        # By tab: model, and the caches of its turns.
        self._chats: QuotaCache[tuple[str, Chat]] = QuotaCache(Quota(LIMITS.chats), Quota(LIMITS.chats_each))
        # By tab: model, and what methods learnt from its texts. An engine serves many visitors: it must not keep that.
        self._memories: QuotaCache[tuple[str, dict[str, Any]]] = QuotaCache(tabs, tabs_each)
        self._paces: dict[str, float] = {}  # by model: seconds that a token of its last prompt took

    def start(self, order: Order, tab: str, address: str) -> Iterator[str]:
        """Run an order of a tab; ends when it is done, stopped or closed."""
        return self.watch(
            tab,
            lambda run_id: host(run=run_id, address=f"{address}&run={run_id}"),
            lambda run_id, cancel: self._one(order, tab, run_id, cancel),
        )

    def watch(
        self, tab: str, opening: Callable[[str], str], make: Callable[[str, threading.Event], Pieces]
    ) -> Iterator[str]:
        """The growing text of an opening and some pieces; what goes wrong becomes its last line.

        While nothing new comes it is told again: between two tellings it is noticed that a visitor has left.
        """
        run_id, cancel, text, shown = new_id(), threading.Event(), "", 0.0
        if self._closed:
            yield opening(run_id) + stream.fault("The server is being stopped: try again in a minute.")
            return
        if (before := self._going.get(tab)) is not None:
            before.set()
        self._going[tab] = cancel
        self.store.telling.add(run_id)
        try:
            with closing(led(opening(run_id), guarded(make(run_id, cancel)))) as pieces:
                for piece in pieces:
                    text += piece
                    if self._left(tab):  # nobody waits for it, and others wait for the engine
                        cancel.set()
                    if piece or time.monotonic() - shown >= LIMITS.live_gap:
                        yield text
                        shown = time.monotonic()
        finally:
            cancel.set()
            self.store.telling.discard(run_id)
            if self._going.get(tab) is cancel:
                del self._going[tab]

    def stop(self, tab: str) -> None:
        """End what a tab runs after the step that is going on."""
        if (cancel := self._going.get(tab)) is not None:
            cancel.set()

    def close(self, seconds: float) -> bool:
        """Start no more runs and cancel those in progress; returns whether all ended in time."""
        self._closed = True
        until = time.monotonic() + seconds
        while self._going and time.monotonic() < until:
            for cancel in list(self._going.values()):
                cancel.set()
            time.sleep(0.02)
        return not self._going

    def forget(self, tab: str) -> None:
        """A tab was closed."""
        self.stop(tab)
        self.renew(tab)
        self._memories.pop(tab)

    def renew(self, tab: str) -> None:
        """A new conversation: a run that still answers in the old one goes on, and its answer is for nobody."""
        self._talks.pop(tab)
        self._chats.pop(tab)

    def answer(self, tab: str) -> tuple[tuple[Message, ...], str] | None:
        """What the last run of a tab was asked and what it wrote, once."""
        talk = self._talks.get(tab)
        if talk is None:
            return None
        answer, talk.answer = talk.answer, None
        return answer

    def client(self, tab: str) -> str:
        """The client that a tab belongs to."""
        return "" if self._tracker is None else self._tracker.client(tab.removesuffix(RACE))

    def _left(self, tab: str) -> bool:
        """Whether nobody has read the events of a tab for some seconds."""
        tracker, session = self._tracker, tab.removesuffix(RACE)
        known = tracker is not None and tracker.knows(session)  # not without the request filter
        return tracker is not None and known and tracker.away(session) > LIMITS.unread_seconds

    @property
    def going(self) -> int:
        """Tabs with a run under way or waiting."""
        return len(self._going)

    def engine(self, order: Order, cancel: threading.Event) -> Generator[str, None, Engine | None]:
        """Wait for the engine and for what the method needs; None if the visitor did not."""
        if cancel.is_set():  # while it stood in the line
            return None
        loading = self.engines.ask(order.entry)
        for tab, (model, _) in self._chats.items():
            if model not in self.engines:  # it has made room, but for these caches
                self._chats.pop(tab)
        engine = yield from arrival(loading, cancel)
        if engine is None:
            return None
        return (yield from arrival(self.engines.prepare(order.entry, engine, order.method.name), cancel))

    def decode(
        self,
        engine: Engine,
        order: Order,
        tab: str,
        run_id: str,
        cancel: threading.Event,
        cap: int,
        chat: Chat | None = None,
        seconds: float = LIMITS.seconds,
    ) -> Decoding:
        """The run itself, with its play; the caller closes."""
        prompt = engine.encode(order.prompt if isinstance(order.prompt, str) else list(order.prompt))
        context = engine.model.card.context
        if len(prompt) > min(LIMITS.prompt_tokens, context - 1):
            room = max(1, min(LIMITS.prompt_tokens, context - order.max_new_tokens))
            raise ParamError(f"the prompt has {len(prompt)} tokens: shorten it to {room}")
        run = engine.decode(
            prompt,
            order.method,
            order.params.to_json(),
            order.sampling,
            order.max_new_tokens,
            reference=order.reference or None,
            record="full",
            time_budget=seconds,
            cancel=cancel,
            chat=chat,
            memory=self._memory(tab, order),
        )
        play, known = Play(run.header, run_id, cap), dict[int, str]()
        try:
            if len(prompt) * self._paces.get(order.entry.name, math.inf) > _BLINK:
                yield stream.state("reading", f"Reading {len(prompt)} prompt tokens.")
            piece = play.begin({token: engine.codec.piece(token) for token in set(prompt)})
            for steps in bursts(run, LIMITS.live_gap):
                for step in steps:
                    texts = {token: engine.codec.piece(token) for token in step.used - known.keys()}
                    known |= texts
                    piece += play.step(step, texts)
                yield piece
                piece = ""
            if play.run.steps:
                first = play.run.steps[0]
                self._paces[order.entry.name] = first.timing.total_ms / 1000 / first.fed
            return run, play
        finally:
            run.close()

    def _one(self, order: Order, tab: str, run_id: str, cancel: threading.Event) -> Pieces:
        talk = self._talks.get(tab) or _Talk()
        client = self.client(tab)
        self._talks.put(client, tab, talk)
        with self.line.join(client) as ticket:
            yield from turn(ticket, cancel)
            engine = yield from self.engine(order, cancel)
            if engine is None:
                yield stream.fault("Stopped before the first step.")
                return
            chat = self._chat(tab, order)
            run, play = yield from self.decode(engine, order, tab, run_id, cancel, LIMITS.stream_bytes, chat)
            trace = run.trace
            # First: whoever hears of the end may ask for details at once.
            evicted = self.store.put(run_id, Kept(trace, play), client)
            yield (host(notice=EVICTED) if evicted else "") + play.end(run.summary)
            if not isinstance(order.prompt, str):
                talk.answer = order.prompt, run.summary.text
            if not trace.steps:
                return
            check = asdict(engine.rescore(trace))
            self.store.prove(run_id, Proof(check))
            yield play.late(check)
            if order.compare and order.method.name != "autoregressive" and not cancel.is_set():
                speedup = yield from _measured(engine, order, run, cancel)
                self.store.prove(run_id, Proof(check, speedup))
                yield play.late(check, speedup)

    def _chat(self, tab: str, order: Order) -> Chat | None:
        """The caches of a tab's conversation: new ones for a new conversation, or for another model."""
        if isinstance(order.prompt, str):
            return None
        from decoding.chat import Chat

        model, chat = self._chats.get(tab) or ("", None)
        if chat is None or model != order.entry.name or not any(m["role"] == "assistant" for m in order.prompt):
            chat = Chat()
        self._chats.put(self.client(tab), tab, (order.entry.name, chat))
        return chat

    def _memory(self, tab: str, order: Order) -> dict[str, Any]:
        """What methods learnt from a tab's texts with this model."""
        model, memory = self._memories.get(tab) or ("", dict[str, Any]())
        memory = memory if model == order.entry.name else {}
        self._memories.put(self.client(tab), tab, (order.entry.name, memory))
        return memory


def _measured(engine: Engine, order: Order, run: Run, cancel: threading.Event) -> Generator[str, None, float | None]:
    """How much faster the run wrote than autoregressive decoding does here and now."""
    plain = engine.decode(
        run.request.prompt,
        "autoregressive",
        None,
        order.sampling,
        max(1, len(run.ids)),
        record="off",
        time_budget=LIMITS.seconds,
        cancel=cancel,
    )
    try:
        for _ in plain:
            yield ""
    finally:
        plain.close()
    ours, theirs = run.summary.tokens_per_second, plain.summary.tokens_per_second
    done = plain.finish not in ("cancelled", "time")
    return ours / theirs if done and ours and theirs else None
