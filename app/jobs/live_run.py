"""A live run: its prompt is decoded, and its record is then checked and stored."""

from __future__ import annotations

import copy
import logging
import math
import time
from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from decoding.types import Step
from viz.stream import play as player
from viz.stream.play import Play

from ..controls import Order
from ..models.entry import CatalogEntry
from ..server.limits import LIMITS
from ..store.trace_store import Proof, StoredRun
from .opening_step import opening_step
from .run_from_order import measure_speedup, prompt_of
from .runner import StartedJob
from .streaming import EVICTED, Lines, UnbegunError, page_line
from .tab_memory import TabConversation

if TYPE_CHECKING:
    from decoding.engine import Engine
    from decoding.request import DecodeOptions
    from decoding.run import Run

_log = logging.getLogger(__name__)
_SHORT_WAIT = 0.1  # seconds: a shorter wait is over before a sentence about it has been read
_FIRST_BATCH = 0.1  # seconds: a reader does not notice a shorter delay


@dataclass(slots=True)
class LiveRun:
    """An order of a visitor, and how the page shows its run."""

    order: Order
    address: str
    fresh: bool = False  # begins without what methods learnt from the tab's earlier texts, as recordings do
    beside: bool = False  # the page shows it beside the run on the screen
    branch: str = ""  # what the address of the other run has beside it, if this goes on from that one
    left_out: str = ""  # names what the address lacks
    conversation: TabConversation = field(init=False, default_factory=TabConversation)
    spare = None

    @property
    def entry(self) -> CatalogEntry:
        return self.order.entry

    @property
    def seconds(self) -> float:
        return math.inf  # the engine ends it, and its check comes on top

    def opening(self, started: StartedJob) -> str:
        # Before the wait: if the conversation ends meanwhile, the answer is dropped.
        self.conversation = started.runner.tabs.conversation(started.key.tab, started.client)
        address = f"{self.address}&run={started.id}".removeprefix("&")
        about = {"address": address, "live": "beside" if self.beside else "alone"}
        about |= {name: words for name in ("branch", "left_out") if (words := getattr(self, name))}
        return page_line(run=started.id, **about)

    def lines(self, started: StartedJob) -> Lines:
        """Yield the lines of steps, summary, check and speedup."""
        order, runner, engine, tab = self.order, started.runner, started.engine, started.key.tab
        if not (yield from started.prepare(order.entry, order.method.name)):
            raise UnbegunError
        # What a method learnt from an answer that was refused would be seen in the next run's pool.
        forgets = self.fresh or runner.guardrails.moderates
        learnt = {} if forgets else runner.tabs.learnt(tab, started.client, order)
        compares = order.compare and order.method.name != "autoregressive" and not order.entry.is_metered
        memory = copy.deepcopy(learnt) if compares else {}
        options: DecodeOptions = {"memory": learnt, "chat": runner.tabs.chat(tab, started.client, order)}
        run, play = yield from decode(started, order, options, started.id)
        trace = run.trace
        # Stored before the end is shown: from then on the page may ask for details.
        evicted = runner.store.put(started.id, StoredRun(trace, play), started.client)
        about: dict[str, Any] = {"step": opening_step(trace)} if trace.steps else {}
        about |= {"notice": EVICTED} if evicted else {}
        about |= {"follows": "Checking that the target would have written this text."} if trace.steps else {}
        yield (page_line(**about) if about else "") + play.end(run.summary)
        if not isinstance(order.prompt, str):
            self.conversation.exchange = order.prompt, run.summary.text
        if not trace.steps:
            return
        check = asdict(engine.rescore(trace))
        runner.store.add_proof(started.id, Proof(check))
        compares = compares and not started.is_over
        yield page_line(follows="Measuring the speed-up." if compares else "") + play.late(check)
        if compares:
            speedup = yield from measure_speedup(engine, order, run, started.cancel, memory)
            runner.store.add_proof(started.id, Proof(check, speedup))
            yield page_line(follows="") + play.late(check, speedup)


def decode(
    started: StartedJob,
    order: Order,
    options: DecodeOptions,
    run_id: str,
    max_bytes: int = LIMITS.stream_bytes,
    lane: int | None = None,
    begun: Callable[[Run], None] | None = None,
) -> Generator[str, None, tuple[Run, Play]]:
    """Decode an order within the limits of the page; yields the lines of its steps, and returns what wrote them.

    `begun` gets the run before its first step.

    Work between two forward passes slows the next pass, by a tenth if a pass takes three milliseconds, and by three
    tenths at the beginning of a run. So steps are collected and written together: the first time soon, then every
    `live_gap` seconds.
    """
    from decoding.model.memory import release_memory  # brings torch

    engine, origin, guardrails = started.engine, order.origin, started.runner.guardrails
    options |= {"record": "full", "time_budget": min(LIMITS.seconds, started.left), "cancel": started.cancel}
    if origin is None:
        options["reference"] = order.reference or None
        prompt, params = prompt_of(engine, order, guarded=guardrails.system), order.params.to_json()
        run = engine.decode(prompt, order.method, params, order.sampling, order.max_new_tokens, **options)
    else:
        node, token, keep = origin.node, origin.token, origin.keep
        run = engine.branch(origin.trace, origin.step, node=node, token=token, keep=keep, name=origin.run, **options)
    if guardrails.moderates:
        yield from guardrails.check(engine, "prompt", _words(engine, order, run), started.cancel, lane)
        yield player.state("reading", "The answer is shown when the guardrails have classified it.", lane=lane)
    if begun is not None:
        begun(run)
    play, streaming = Play(run.header, run_id, max_bytes, lane=lane), started.runner.store.streaming
    if run_id in streaming and not guardrails.moderates:  # the page may ask for what a step's line leaves out
        streaming[run_id] = play
    pace, tokens = started.runner.prefill_pace, len(run.header.prompt)
    try:
        if tokens * pace.get(order.entry.name, math.inf) > _SHORT_WAIT:
            yield player.state("reading", f"Reading {tokens:,} prompt tokens.", lane=lane)
        withheld = ""
        lines, steps, due = play.begin(run.texts()), list[Step](), time.monotonic() + min(_FIRST_BATCH, LIMITS.live_gap)
        for step in chain(run, [None]):  # None: it has ended
            steps += [] if step is None else [step]
            if step is None or time.monotonic() >= due:
                lines += "".join(play.step(each, run.texts(each)) for each in steps)
                withheld += lines if guardrails.moderates else ""
                yield "" if guardrails.moderates else lines
                lines, steps, due = "", [], time.monotonic() + LIMITS.live_gap
    except BaseException as error:  # GeneratorExit too: the connection was lost, and the page still shows the run
        release_memory()  # it may have been out of it
        if run.steps and lane is None and not guardrails.moderates:  # what was recorded can be saved
            started.runner.store.put(run_id, StoredRun(run.trace, play), started.client)
        if isinstance(error, Exception) and not guardrails.moderates:
            yield lines + "".join(play.step(each, run.texts(each)) for each in steps)
        raise
    else:
        if run.steps:
            first = run.steps[0]
            pace[order.entry.name] = first.timing.total_ms / 1000 / first.fed
    finally:
        run.close()
        report_run(run, order)
    if guardrails.moderates and run.steps:
        yield from guardrails.check(engine, "answer", run.summary.text, None, lane)
        if run_id in streaming:
            streaming[run_id] = play
        yield withheld
    return run, play


def _words(engine: Engine, order: Order, run: Run) -> str:
    """Return everything that a visitor wrote for a run, for the moderator."""
    if order.origin is not None:  # the prompt of another run, what it wrote until then, and what is forced
        return engine.codec.decode(run.header.prompt)
    if isinstance(order.prompt, str):
        return order.prompt
    return "\n".join(message["content"] for message in order.prompt)


def report_run(run: Run, order: Order) -> None:
    """Log how a run ended, in numbers."""
    facts = {
        "event": "run",
        "model": order.entry.name,
        "method": order.method.name,
        "outcome": run.finish,
        "tokens": len(run.ids),
        "steps": len(run.steps),
        "drafted": sum(step.drafted for step in run.steps),
        "accepted": sum(step.accepted for step in run.steps),
        "seconds": round(sum(step.timing.total_ms for step in run.steps) / 1000, 3),
    }
    about = "a run of %(method)s ended: %(outcome)s, %(tokens)d tokens in %(steps)d steps"
    _log.info(about, facts, extra={"facts": facts})
