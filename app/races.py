"""Several methods on one prompt: run one after the other on the server, raced in the browser at the recorded pace."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field

from decoding.errors import ParamError
from decoding.params import shown
from decoding.trace.rescore import Rescore
from decoding.types import Trace
from viz.stream import play as stream
from viz.stream.lines import line

from .controls import Order
from .hosting import EVICTED, host
from .limits import LIMITS
from .live_runs import RACE, Runs
from .streaming import Pieces, guarded, turn
from .trace_store import Kept, Proof, new_id

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two runs that must agree part: new token `at`, and the margin if the target nearly tied there."""

    methods: tuple[str, str]
    at: int
    margin: float | None


def check_lanes(methods: object) -> tuple[str, ...]:
    """The methods of a race by name, in the order given."""
    if not isinstance(methods, Sequence) or isinstance(methods, str) or not all(isinstance(m, str) for m in methods):
        raise ParamError("name the methods of a race")
    if not 2 <= len(methods) <= LIMITS.lanes:
        raise ParamError(f"choose two to {LIMITS.lanes} methods, not {len(methods)}")
    if len(set(methods)) < len(methods):
        raise ParamError(f"a method can race once only: choose others than {shown(methods)}")
    return tuple(methods)


def start(runs: Runs, orders: Sequence[Order], tab: str, address: str) -> Iterator[str]:
    """Run the orders, which differ in method alone, and give the growing text of the race."""
    return runs.watch(
        f"{tab}{RACE}",
        lambda race_id: (
            host(run=race_id, address=address) + line("race", labels=[order.method.label for order in orders])
        ),
        lambda race_id, cancel: _race(_Race(runs, tab, cancel), orders),
    )


def stop(runs: Runs, tab: str) -> None:
    """End a tab's race."""
    runs.stop(f"{tab}{RACE}")


def first_difference(done: Sequence[tuple[Trace, Rescore]]) -> Difference | None:
    """Lossless greedy runs of one prompt must write the same tokens: where they first do not."""
    bound = [(trace, check) for trace, check in done if trace.header.lossless and _greedy(trace) and _whole(trace)]
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


def _greedy(trace: Trace) -> bool:
    return trace.header.sampling.get("temperature") == 0


def _whole(trace: Trace) -> bool:
    """A run that was stopped wrote only a beginning."""
    return trace.summary is not None and trace.summary.finish in ("length", "end_of_text", "stop")


@dataclass(slots=True)
class _Race:
    """A race under way."""

    runs: Runs
    tab: str
    cancel: threading.Event
    until: float = 0.0  # by the monotonic clock
    done: list[tuple[Trace, Rescore]] = field(default_factory=list)
    evicted: bool = False  # earlier runs of the visitor made room for these
    kept: list[tuple[str, str]] = field(default_factory=list)  # a method's label, and the id to look at its run by


def _race(race: _Race, orders: Sequence[Order]) -> Pieces:
    with race.runs.line.join(race.runs.client(race.tab)) as ticket:
        for piece in turn(ticket, race.cancel):
            yield in_lane(0, piece)
        race.until = time.monotonic() + LIMITS.race_seconds
        for lane, order in enumerate(orders):
            for piece in guarded(_lane(race, order)):
                yield in_lane(lane, piece)
        parted = first_difference(race.done)
        if parted is not None and parted.margin is None:
            _log.error("%s and %s write different tokens from new token %d on", *parted.methods, parted.at)
        yield host(done=True, runs=race.kept, **({"notice": EVICTED} if race.evicted else {}))


def _lane(race: _Race, order: Order) -> Pieces:
    runs, run_id = race.runs, new_id()
    engine = yield from runs.engine(order, race.cancel)
    if engine is None:
        yield stream.fault("Stopped before its first step.")
        return
    seconds = min(LIMITS.seconds, race.until - time.monotonic())
    if seconds <= 0:
        yield stream.fault(f"The race's {LIMITS.race_seconds:g} seconds were over before its first step.")
        return
    # Thin steps: a race shows texts and times.
    run, play = yield from runs.decode(engine, order, race.tab, run_id, race.cancel, 0, seconds=seconds)
    trace = run.trace
    race.evicted |= runs.store.put(run_id, Kept(trace, play), runs.client(race.tab))
    yield play.end(run.summary)
    if trace.steps:
        check = engine.rescore(trace)
        runs.store.prove(run_id, Proof(asdict(check)))
        race.done.append((trace, check))
        race.kept.append((order.method.label, run_id))
        yield play.late(asdict(check))


def in_lane(lane: int, lines: str) -> str:
    """Lines with the number of their lane."""
    return "".join(f'{{"lane":{lane},{told[1:]}' for told in lines.splitlines(keepends=True))
