"""What an order asks of an engine: the run of its prompt, the branch of another run, and how much faster it was."""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import TYPE_CHECKING

from decoding.errors import ParamError

from .limits import LIMITS

if TYPE_CHECKING:
    from decoding.engine import Engine
    from decoding.request import DecodeOptions, Prompt
    from decoding.run import Run

    from .controls import Order, Origin


def begin(engine: Engine, order: Order, options: DecodeOptions) -> Run:
    """The run that an order asks for: that of its prompt, or one that goes on from another run."""
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
    engine: Engine, order: Order, run: Run, cancel: threading.Event
) -> Generator[str, None, float | None]:
    """Decode the prompt again autoregressively; returns the ratio of both speeds."""
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


def _branch(engine: Engine, origin: Origin, options: DecodeOptions) -> Run:
    return engine.branch(
        origin.trace, origin.step, node=origin.node, token=origin.token, keep=origin.keep, name=origin.run, **options
    )


def _prompt(engine: Engine, order: Order) -> Prompt:
    if isinstance(order.prompt, str):
        return order.prompt if order.raw else engine.as_turn(order.prompt)
    return list(order.prompt)
