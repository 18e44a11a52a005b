"""Chooses the layer after which a Kangaroo adapter drafts best, by the gain and cost of its guesses."""

from __future__ import annotations

from collections.abc import Mapping

from decoding.model.config import Shape
from decoding.trace.metrics import expected_tokens

_LONGEST = 8  # tokens drafted in a step, at most


def best_exit(agreements: Mapping[int, float], shape: Shape, drafted: int) -> int:
    """Return the layer with the highest expected speed-up; `agreements` gives how often its adapter and the model
    agree.
    """
    return max(agreements, key=lambda layer: expected_speedup(agreements[layer], cost(layer, shape, drafted)))


def expected_speedup(agreement: float, draft: float) -> float:
    """Return tokens per pass of the model, where a drafted token costs `draft` passes more than its verifying pass.

    Guesses are taken to be right independently of each other. The best number of drafted tokens counts.
    """
    return max(expected_tokens(count, agreement) / (1 + count * draft) for count in range(1, _LONGEST + 1))


def cost(layer: int, shape: Shape, drafted: int) -> float:
    """Return what a drafted token costs, as a share of the weights that a pass reads; `drafted` tokens may be drafted.

    Its layers in front of the exit run alone, for every drafted token and for the last of the text; those after it run
    once for all.
    """
    attention = shape.hidden * shape.head_dim * 2 * (shape.heads + shape.kv_heads)
    feed_forward, head = 3 * shape.hidden * shape.intermediate, shape.hidden * shape.vocabulary
    block = attention + feed_forward
    draft = (layer + 1) * block + shape.hidden * drafted  # the adapter is a layer of its own
    return draft / (shape.layers * block + head)
