"""Several methods on one prompt: run one after the other on the server, raced in the browser at the recorded pace."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from decoding.errors import ParamError
from decoding.params import shown
from decoding.rescore import Rescore
from decoding.types import Trace
from viz import play as stream
from viz.lines import line

from .controls import Order
from .hosting import host
from .limits import LIMITS
from .runs import Pieces, Runs
from .store import Kept, new_id

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
    return runs.watch(f"{tab} race", lambda cancel: _race(runs, orders, tab, address, cancel))


def stop(runs: Runs, tab: str) -> None:
    """End a tab's race."""
    runs.stop(f"{tab} race")


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


def _race(runs: Runs, orders: Sequence[Order], tab: str, address: str, cancel: threading.Event) -> Pieces:
    yield host(address=address) + line("race", lanes=len(orders))
    with runs.line.join() as ticket:
        for piece in runs.turn(ticket, cancel):
            yield in_lane(0, piece)
        done: list[tuple[Trace, Rescore]] = []
        timer = threading.Timer(LIMITS.race_seconds, cancel.set)
        timer.daemon = True
        timer.start()
        try:
            for lane, order in enumerate(orders):
                pieces = runs.guarded(_lane(runs, order, tab, cancel, done))
                for piece in pieces:
                    yield in_lane(lane, piece)
        finally:
            timer.cancel()
        parted = first_difference(done)
        if parted is not None and parted.margin is None:
            _log.error("%s and %s write different tokens from new token %d on", *parted.methods, parted.at)
        yield host(done=True)


def _lane(runs: Runs, order: Order, tab: str, cancel: threading.Event, done: list[tuple[Trace, Rescore]]) -> Pieces:
    if cancel.is_set():
        yield stream.fault("Stopped before its first step.")
        return
    engine = yield from runs.engine(order, cancel)
    if engine is None:
        yield stream.fault("Stopped before its first step.")
        return
    run_id = new_id()
    # Thin steps: a race shows texts and times.
    run, play = yield from runs.decode(engine, order, tab, run_id, cancel, 0)
    trace = run.trace
    yield play.end(run.summary)
    runs.store.put(run_id, Kept(trace, play))
    if trace.steps:
        check = engine.rescore(trace)
        done.append((trace, check))
        yield play.late(asdict(check))


def in_lane(lane: int, lines: str) -> str:
    """Lines with the number of their lane."""
    return "".join(f'{{"lane":{lane},{told[1:]}' for told in lines.splitlines(keepends=True))
