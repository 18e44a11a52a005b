"""Everything that decides what a family becomes, beside its seed: shapes of models, steps and rates."""

from __future__ import annotations

from dataclasses import dataclass

from .suite import QUESTIONS


@dataclass(frozen=True, slots=True)
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
    """The recipes of a family's models, and what is made beside them."""

    target: Recipe
    polish: Recipe  # the target's second training, at lower rates, on what is still hard
    drafter: Recipe
    tokenizer_samples: int
    questions: int


FULL = FamilyPlan(
    target=Recipe(
        "target", 256, 6, 4, 2, 704, False, steps=13000, lines=16, length=256, muon_rate=0.004, adam_rate=0.003
    ),
    polish=Recipe(
        "polish", 256, 6, 4, 2, 704, False, steps=2500, lines=16, length=256, muon_rate=0.0015, adam_rate=0.001
    ),
    drafter=Recipe(
        "drafter", 192, 1, 6, 1, 512, True, steps=2000, lines=16, length=256, muon_rate=0.004, adam_rate=0.003
    ),
    tokenizer_samples=30_000,
    questions=QUESTIONS,
)
# A few seconds' worth: shows that everything fits together, learns next to nothing.
SMOKE = FamilyPlan(
    target=Recipe("target", 32, 2, 4, 2, 64, False, 30, 4, 256, 0.01, 0.01, compiled=False),
    polish=Recipe("polish", 32, 2, 4, 2, 64, False, 5, 4, 256, 0.001, 0.001, compiled=False),
    drafter=Recipe("drafter", 16, 1, 2, 1, 32, True, 10, 4, 256, 0.01, 0.01, compiled=False),
    tokenizer_samples=400,
    questions=1,
)
PLANS = {"full": FULL, "smoke": SMOKE}
