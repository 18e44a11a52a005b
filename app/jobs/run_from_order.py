"""Encodes the prompt of an order for an engine, and measures the speedup of its run."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from analysis.guardrails import with_system_prompt
from analysis.run_speed import median_run, speedup
from decoding.errors import ParamError
from decoding.trace.metrics import WHOLE, credible_speedup

from ..server.limits import LIMITS

if TYPE_CHECKING:
    from decoding.codec import Prompt
    from decoding.engine import Engine
    from decoding.request import DecodeOptions
    from decoding.run import Run
    from decoding.types import Summary

    from ..controls import Order

_ROUNDS = 3


def prompt_of(engine: Engine, order: Order, *, guarded: bool = False) -> list[int]:
    """Encode the prompt of an order; raises ParamError if the model, or the page, has no room for it.

    A `guarded` chat begins with the guardrails' system prompt; a raw prompt is fed as it is.
    """
    if isinstance(order.prompt, str):
        given: Prompt = order.prompt if order.raw else engine.as_turn(order.prompt)
    else:
        given = list(order.prompt)
    if guarded and not isinstance(given, str):
        given = with_system_prompt(engine.codec, given)  # type: ignore[arg-type]  # an order's are messages
    prompt = engine.encode(given)
    most, context = order.entry.max_prompt_tokens, engine.model.card.context
    if len(prompt) > min(most, context - 1):
        room = max(1, min(most, context - order.max_new_tokens))
        raise ParamError(f"the prompt has {len(prompt)} tokens: shorten it to {room}")
    return prompt


def measure_speedup(
    engine: Engine, order: Order, run: Run, cancel: threading.Event, memory: dict[str, Any]
) -> Generator[str, None, float | None]:
    """Decode the prompt again by the run's method and autoregressively, in turn; returns the speedup, or None.

    Both begin with empty caches. `memory` is what the method had learnt before the run. The machine's speed varies, so
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
