"""A race: lanes decode one prompt, one after the other; the browser replays them side by side."""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from decoding.trace.rescore import Rescore
from decoding.types import Trace
from viz.stream.lines import line

from ..controls import Order
from ..lanes import titles_of
from ..models.entry import CatalogEntry
from ..server.limits import LIMITS
from ..store.trace_store import Proof, StoredRun, new_id
from .live_run import decode
from .runner import StartedJob
from .streaming import EVICTED, Lines, UnbegunError, failure_line, page_line

if TYPE_CHECKING:
    from decoding.request import DecodeOptions

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Difference:
    """Two runs that must agree differ from new token `at` on; `margin` is set if the target nearly tied there."""

    methods: tuple[str, str]
    at: int
    margin: float | None


def first_difference(done: Sequence[tuple[Trace, Rescore]]) -> Difference | None:
    """Find the first difference between lossless greedy runs of one prompt, which must write the same; None: none."""
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
    """Return True if a run ended by itself; a stopped run wrote only the beginning of its text."""
    return trace.summary is not None and trace.summary.finish in ("length", "end_of_text", "stop")


@dataclass(slots=True)
class Race:
    """Orders that differ in their methods and settings only, one lane each."""

    orders: Sequence[Order]
    address: str
    left_out: str = ""  # names what the address lacks
    checked: list[tuple[Trace, Rescore]] = field(default_factory=list)
    stored: list[tuple[str, str]] = field(default_factory=list)  # title of a lane, and id of its stored run
    evicted: bool = False  # whether earlier runs of the visitor were evicted for these
    spare = None

    @property
    def entry(self) -> CatalogEntry:
        return self.orders[0].entry

    @property
    def seconds(self) -> float:
        return LIMITS.race_seconds

    def opening(self, started: StartedJob) -> str:
        about = {"address": self.address} | ({"left_out": self.left_out} if self.left_out else {})
        labels, settings = zip(*titles_of(self.orders), strict=True)
        return page_line(run=started.id, **about) + line("race", labels=labels, settings=settings)

    def lines(self, started: StartedJob) -> Lines:
        """Yield the lines of each run with the number of its lane, then the end."""
        learnt = self._learnt(started)
        for lane, order in enumerate(self.orders):
            try:
                yield from self._run(started, order, lane, learnt[lane])
            except Exception as error:
                yield failure_line(error, lane=lane)
        difference = first_difference(self.checked)
        if difference is not None and difference.margin is None:
            _log.error("%s and %s write different tokens from new token %d on", *difference.methods, difference.at)
        yield line("done", runs=self.stored, **({"notice": EVICTED} if self.evicted else {}))

    def _learnt(self, started: StartedJob) -> list[dict[str, Any]]:
        """Return for each lane what its method learnt from the tab's earlier texts.

        A method that races more than once begins each time with the same: else the first lane would tell the others
        the text. What that lane learns stays with the tab.
        """
        runner, seen = started.runner, set[str]()
        if runner.guardrails.moderates:
            return [{} for _ in self.orders]
        learnt = runner.tabs.learnt(started.key.tab, started.client, self.orders[0])
        memories = list[dict[str, Any]]()
        for order in self.orders:
            name = order.method.name
            memories.append({name: copy.deepcopy(learnt.get(name, {}))} if name in seen else learnt)
            seen.add(name)
        return memories

    def _run(self, started: StartedJob, order: Order, lane: int, learnt: dict[str, Any]) -> Lines:
        """Yield the lines of one run."""
        runner, run_id = started.runner, new_id()
        if not (yield from started.prepare(order.entry, order.method.name, lane=lane)):
            late = f"the race's {LIMITS.race_seconds:g} seconds were over before it began"
            raise UnbegunError() if started.cancel.is_set() else UnbegunError(late)
        options: DecodeOptions = {"memory": learnt}
        # With no bytes for whole steps, all of them are thin: a race shows texts and times only.
        run, play = yield from decode(started, order, options, run_id, max_bytes=0, lane=lane)
        trace = run.trace
        self.evicted |= runner.store.put(run_id, StoredRun(trace, play), started.client)
        yield play.end(run.summary)
        if trace.steps:
            check = started.engine.rescore(trace)
            runner.store.add_proof(run_id, Proof(asdict(check)))
            self.checked.append((trace, check))
            self.stored.append((titles_of(self.orders)[lane][0], run_id))
            yield play.late(asdict(check))
