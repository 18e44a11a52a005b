"""Makes the random numbers of a training depend on its seed only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from zlib import crc32

import torch


@contextmanager
def seeded(seed: str, device: torch.device) -> Iterator[None]:
    """Make torch's random numbers depend on `seed` alone; afterwards their state is untouched."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(crc32(seed.encode()))
        yield
