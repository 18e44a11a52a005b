"""What an order asks of an engine: the run of its prompt, the branch of another run, and how much faster it was."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from decoding.errors import ParamError
from decoding.trace.metrics import WHOLE, credible_speedup, median_run, speedup

from ..server.limits import LIMITS

if TYPE_CHECKING:
    from decoding.codec import Prompt
    from decoding.engine import Engine
    from decoding.request import DecodeOptions
    from decoding.run import Run
    from decoding.types import Summary

    from ..controls import BranchOrigin, Order

_ROUNDS = 3


def begin(engine: Engine, order: Order, options: DecodeOptions) -> Run:
    """Return the run that an order asks for: that of its prompt, or one that goes on from another run."""
    if order.origin is not None:
        return _branch(engine, order.origin, options)
    prompt = engine.encode(_prompt(engine, order))
    context = engine.model.card.context
    if len(prompt) > min(LIMITS.prompt_tokens, context - 1):
        room = max(1, min(LIMITS.prompt_tokens, context - order.max_new_tokens))
        raise ParamError(f"the prompt has {len(prompt)} tokens: shorten it to {room}")
    options["reference"] = order.reference or None
    return engine.decode(prompt, order.method, order.params.to_json(), order.sampling, order.max_new_tokens, **options)


def measure_speedup(
    engine: Engine, order: Order, run: Run, cancel: threading.Event, memory: dict[str, Any]
) -> Generator[str, None, float | None]:
    """Decode the prompt again by the run's method and autoregressively, in turn; returns the speedup, or None.

    Both begin with empty caches. `memory` is what the method knew before the run. The machine's own speed swings, so
    they take turns for some rounds, and the median run of each counts.
    """
    until = time.monotonic() + LIMITS.speedup_seconds
    runs: tuple[list[Summary], list[Summary]] = ([], [])
    options: DecodeOptions = {"record": "off", "time_budget": LIMITS.seconds, "cancel": cancel}
    fresh: DecodeOptions = {"reference": run.request.reference or None, **options}
    asked = (order.sampling, max(1, len(run.ids)))
    while len(runs[0]) < _ROUNDS and (not runs[0] or time.monotonic() < until):
        fresh["memory"] = copy.deepcopy(memory)
        ways = ((order.method.name, order.params.to_json(), fresh), ("autoregressive", None, options))
        for done, (method, params, more) in zip(runs, ways, strict=True):
            again = engine.decode(run.request.prompt, method, params, *asked, **more)
            try:
                for _ in again:
                    yield ""
            finally:
                again.close()
            done.append(again.summary)
            if again.finish not in WHOLE:
                return None
    ours, plain = map(median_run, runs)
    return credible_speedup(speedup(ours, plain), run.summary.mean_acceptance_length)


def _branch(engine: Engine, origin: BranchOrigin, options: DecodeOptions) -> Run:
    return engine.branch(
        origin.trace, origin.step, node=origin.node, token=origin.token, keep=origin.keep, name=origin.run, **options
    )


def _prompt(engine: Engine, order: Order) -> Prompt:
    if isinstance(order.prompt, str):
        return order.prompt if order.raw else engine.as_turn(order.prompt)
    return list(order.prompt)
