"""All settings that determine a family, besides its seed: shapes of models, steps and rates."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .suite import QUESTIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A model's shape, and how it is trained."""

    name: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    intermediate: int
    tied: bool
    steps: int
    lines: int  # per step, all of
    length: int  # tokens, questions included; a longer conversation is left out
    muon_rate: float
    adam_rate: float
    long_every: int = 10  # one step in so many has lines twice as long, and conversations to fill them
    compiled: bool = True  # a minute at the start, a quarter less time for every step


@dataclass(frozen=True, slots=True)
class FamilyPlan:
    """The recipes of a family's models, and of what else is made."""

    target: Recipe
    polish: Recipe  # the target's second training, at lower rates, on what is still hard
    drafter: Recipe
    tokenizer_samples: int
    questions: int


_TARGET = Recipe(
    name="target",
    hidden=256,
    layers=6,
    heads=4,
    kv_heads=2,
    intermediate=704,
    tied=False,
    steps=13000,
    lines=16,
    length=256,
    muon_rate=0.004,
    adam_rate=0.003,
)
FULL = FamilyPlan(
    target=_TARGET,
    polish=replace(_TARGET, name="polish", steps=2500, muon_rate=0.0015, adam_rate=0.001),
    drafter=replace(
        _TARGET, name="drafter", hidden=192, layers=1, heads=6, kv_heads=1, intermediate=512, tied=True, steps=2000
    ),
    tokenizer_samples=30_000,
    questions=QUESTIONS,
)
# Takes a few seconds: shows that everything works together, and learns almost nothing.
_SMALL = replace(
    _TARGET, hidden=32, layers=2, intermediate=64, steps=30, lines=4, muon_rate=0.01, adam_rate=0.01, compiled=False
)
SMOKE = FamilyPlan(
    target=_SMALL,
    polish=replace(_SMALL, name="polish", steps=5, muon_rate=0.001, adam_rate=0.001),
    drafter=replace(
        _SMALL, name="drafter", hidden=16, layers=1, heads=2, kv_heads=1, intermediate=32, tied=True, steps=10
    ),
    tokenizer_samples=400,
    questions=1,
)
PLANS = {"full": FULL, "smoke": SMOKE}
