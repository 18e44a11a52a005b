"""Draw the numbers that toy languages and toy heads are made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch


def noise(seed: int, key: Sequence[int], vocabulary: int) -> torch.Tensor:  # (V,)
    """Draw standard normal numbers that depend on `seed` and `key` alone."""
    return torch.from_numpy(np.random.default_rng([seed, *key]).normal(size=vocabulary))
