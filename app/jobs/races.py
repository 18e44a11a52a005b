"""A race: several methods decode one prompt, one after the other; the browser replays them side by side."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field

from decoding.errors import ParamError
from decoding.params import shown
from decoding.trace.rescore import Rescore
from decoding.types import Trace
from viz.stream import play as player
from viz.stream.lines import line

from ..controls import Order
from ..server.limits import LIMITS
from ..store.trace_store import Proof, StoredRun
from .live_runs import RACE, Job, LiveRuns
from .streaming import EVICTED, Lines, batches, failure_line, in_lane, page_line, wait_for_turn

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Difference:
    """Two runs that must agree differ from new token `at` on; `margin` is set if the target nearly tied there."""

    methods: tuple[str, str]
    at: int
    margin: float | None


def check_lanes(methods: object) -> tuple[str, ...]:
    """Check the names of a race's methods; returns them in the order given."""
    if not isinstance(methods, Sequence) or isinstance(methods, str) or not all(isinstance(m, str) for m in methods):
        raise ParamError("name the methods of a race")
    if not 2 <= len(methods) <= LIMITS.lanes:
        raise ParamError(f"choose two to {LIMITS.lanes} methods, not {len(methods)}")
    if len(set(methods)) < len(methods):
        raise ParamError(f"a method can race once only: choose others than {shown(methods)}")
    return tuple(methods)


def start(runs: LiveRuns, orders: Sequence[Order], tab: str, address: str, left_out: str = "") -> Iterator[str]:
    """Run the orders, which differ in their method only, one after the other; yields the race's text as it grows.

    `left_out` names what the address lacks.
    """
    job = runs.job(f"{tab}{RACE}")
    about = {"address": address} | ({"left_out": left_out} if left_out else {})
    opening = page_line(run=job.id, **about) + line("race", labels=[order.method.label for order in orders])
    return runs.stream(job, opening, _Race(runs, tab, job).lines(orders))


def stop(runs: LiveRuns, tab: str) -> None:
    """Cancel a tab's race."""
    runs.stop(f"{tab}{RACE}")


def first_difference(done: Sequence[tuple[Trace, Rescore]]) -> Difference | None:
    """Where lossless greedy runs of one prompt, which must write the same tokens, first differ; None: nowhere."""
    bound = [
        (trace, check) for trace, check in done if trace.header.lossless and _is_greedy(trace) and _is_complete(trace)
    ]
    for trace, check in bound[1:]:
        base, proof = bound[0]
        if trace.ids == base.ids:
            continue
        pairs = enumerate(zip(base.ids, trace.ids, strict=False))
        at = next((i for i, (one, other) in pairs if one != other), min(len(base.ids), len(trace.ids)))
        ties = [place.margin for place in (*proof.places, *check.places) if place.position == at]
        near = min(ties) if ties and not proof.violations and not check.violations else None
        return Difference((base.header.method, trace.header.method), at, near)
    return None


def _is_greedy(trace: Trace) -> bool:
    return trace.header.sampling.get("temperature") == 0


def _is_complete(trace: Trace) -> bool:
    """Whether a run ended by itself; one that was stopped wrote only the beginning of its text."""
    return trace.summary is not None and trace.summary.finish in ("length", "end_of_text", "stop")


@dataclass(slots=True)
class _Race:
    """A race in progress."""

    runs: LiveRuns
    tab: str
    job: Job
    deadline: float = 0.0  # by the monotonic clock
    checked: list[tuple[Trace, Rescore]] = field(default_factory=list)
    stored: list[tuple[str, str]] = field(default_factory=list)  # label of the method, and id of its stored run
    evicted: bool = False  # whether earlier runs of the visitor were evicted for these

    def lines(self, orders: Sequence[Order]) -> Lines:
        """Yield the lines of the race: those of each run with the number of its lane, then the end."""
        with self.runs.queue.join(self.job.client) as ticket:
            for lines in wait_for_turn(ticket, self.job.cancel):
                yield in_lane(0, lines)
            self.deadline = time.monotonic() + LIMITS.race_seconds
            for lane, order in enumerate(orders):
                try:
                    for lines in self._run(order):
                        yield in_lane(lane, lines)
                except Exception as error:
                    yield in_lane(lane, failure_line(error))
            difference = first_difference(self.checked)
            if difference is not None and difference.margin is None:
                _log.error("%s and %s write different tokens from new token %d on", *difference.methods, difference.at)
            yield page_line(done=True, runs=self.stored, **({"notice": EVICTED} if self.evicted else {}))

    def _run(self, order: Order) -> Lines:
        """Yield the lines of one run."""
        runs, job = self.runs, Job(self.tab, self.job.client, cancel=self.job.cancel)
        engine = yield from runs.load(order, job.cancel)
        if engine is None:
            yield player.fault("Stopped before its first step.")
            return
        seconds = min(LIMITS.seconds, self.deadline - time.monotonic())
        if seconds <= 0:
            yield player.fault(f"The race's {LIMITS.race_seconds:g} seconds were over before its first step.")
            return
        # With no bytes for whole steps, all of them are thin: a race shows texts and times only.
        with runs.decode(job, engine, order, max_bytes=0, seconds=seconds) as writer:
            if reading := runs.prefill_line(order, writer.run):
                yield reading
            for steps in batches(writer.run, LIMITS.live_gap):
                yield writer.lines(steps)
        run, play, trace = writer.run, writer.play, writer.run.trace
        self.evicted |= runs.store.put(job.id, StoredRun(trace, play), job.client)
        yield play.end(run.summary)
        if trace.steps:
            check = engine.rescore(trace)
            runs.store.add_proof(job.id, Proof(asdict(check)))
            self.checked.append((trace, check))
            self.stored.append((order.method.label, job.id))
            yield play.late(asdict(check))
