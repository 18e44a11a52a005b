"""The settings of sampling, in a module without torch, so that records can be checked without it."""

from __future__ import annotations

from dataclasses import dataclass

from .params import Params, param


@dataclass(frozen=True, slots=True)
class Sampling(Params):
    """How the next token is chosen."""

    temperature: float = param(0.0, label="Temperature", help="0 takes the likeliest token", min=0.0, max=100.0)
    top_k: int = param(0, label="Top k", help="Keep the k likeliest tokens; 0 keeps all", min=0, max=1_000_000)
    top_p: float = param(1.0, label="Top p", help="Keep the likeliest tokens up to this mass", min=0.0, max=1.0)
    min_p: float = param(0.0, label="Min p", help="Drop tokens below this share of the likeliest", min=0.0, max=1.0)
    repetition_penalty: float = param(
        1.0, label="Repetition penalty", help="Above 1 makes tokens of the text so far less likely", min=0.01, max=100.0
    )
    seed: int = param(0, label="Seed", help="The same seed gives the same draws", min=0, max=2**63 - 1)

    @property
    def greedy(self) -> bool:
        """Return True if the likeliest token is always taken."""
        return self.temperature == 0.0
