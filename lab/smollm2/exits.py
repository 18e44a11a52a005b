"""Behind which layer a Kangaroo adapter drafts best: what its guesses are worth against what they cost."""

from __future__ import annotations

from collections.abc import Mapping

from decoding.model.config import Shape

_LONGEST = 8  # tokens drafted in a step, at most


def best_exit(agreements: Mapping[int, float], shape: Shape) -> int:
    """The layer with the highest expected speed-up; `agreements`: how often its adapter says what the model says."""
    return max(agreements, key=lambda layer: expected_speedup(agreements[layer], *costs(layer, shape)))


def expected_speedup(agreement: float, draft: float, rest: float) -> float:
    """Tokens per pass of the model, where a drafted token costs `draft` passes and verification `rest`.

    A step of n drafted tokens gives 1 + a + a^2 + ... + a^n, as if guesses were right independently; the best n counts.
    """
    return max(
        sum(agreement**power for power in range(count + 1)) / (count * draft + rest) for count in range(1, _LONGEST + 1)
    )


def costs(layer: int, shape: Shape) -> tuple[float, float]:
    """What a drafted token costs, and what verification still costs, as shares of the weights that a pass reads.

    Drafted tokens have gone through the layers in front of the exit, which verification does not repeat.
    """
    attention = shape.hidden * shape.head_dim * 2 * (shape.heads + shape.kv_heads)
    block, head = attention + 3 * shape.hidden * shape.intermediate, shape.hidden * shape.vocabulary
    whole = shape.layers * block + head
    return (layer * block + attention + head) / whole, ((shape.layers - layer) * block + head) / whole
