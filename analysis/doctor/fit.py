"""Measures how well a drafter fits the target: the divergence of its distributions from the target's, by guess.

A count of accepted guesses tells two wirings apart only after hundreds of positions. The divergence tells them apart
after dozens, since a guess that is not the target's first choice still shows how far off it is. So it selects the few
of many changes that are worth a count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .probes import Examined
    from .texts import Text

MANY, FEW, AT_FIRST = 16, 5, 2  # texts that are read: where all depends on it, of a flag, and of weights
_SURE = 5.0  # standard errors of the rank sum under no difference
_MATERIAL = 0.03  # of the divergence
# Nats. A guess is then accepted a hundredth more often at most, and a step of five guesses writes 2% more tokens, the
# least gain that is worth a change. A larger sample makes a smaller difference surer, and no more worth it.
LEAST = 0.01


@dataclass(frozen=True, slots=True)
class FitChange:
    """What a change does to the divergence, over the same guesses."""

    before: float  # nats
    after: float
    sureness: float  # how far from chance the signs of the differences are, by their ranks, in standard errors
    error: float  # the standard error of the mean difference
    moved: float  # the mean size of the differences

    @property
    def gain(self) -> float:
        """The nats by which the change lowers the divergence."""
        return self.before - self.after

    @property
    def is_better(self) -> bool:
        """Return True if the change lowers the divergence significantly and materially."""
        return self.sureness >= _SURE and self.gain >= max(LEAST, _MATERIAL * self.before)

    @property
    def is_worse(self) -> bool:
        """Return True if the change raises the divergence significantly and materially."""
        return self.sureness <= -_SURE and -self.gain >= max(LEAST, _MATERIAL * self.before)


class TargetFit:
    """The target's distributions at some positions of its texts, over the tokens that a drafter can draft."""

    def __init__(self, examined: Examined, texts: Sequence[Text]) -> None:
        self._examined, self._texts = examined, list[tuple["Text", Sequence[int]]]()
        self._wanted = list[torch.Tensor]()
        for text in texts[:MANY]:
            self._texts.append((text, range(text.prompt_length, len(text.ids) - examined.depth)))

    def divergence(self, wiring: Any, most: int | None = None) -> torch.Tensor:  # (R,) nats
        """Measure a wiring, on all of the texts or on fewer."""
        return self.divergences(wiring, (1.0,), most)[0]

    @torch.inference_mode()
    def divergences(
        self, wiring: Any, scales: Sequence[float], most: int | None = None
    ) -> list[torch.Tensor]:  # (R,) nats each
        """Measure a wiring with its logits multiplied by each of these scales."""
        logits = [self._examined.rows(wiring, text, places)[0].float() for text, places in self._texts[:most]]
        pairs = [*zip(self._targets(), logits, strict=False)]
        return [torch.cat([_divergence(wanted, each * scale) for wanted, each in pairs]) for scale in scales]

    def numbers(self, most: int | None = None) -> torch.Tensor:  # (R,)
        """Return which guess every divergence is of, from 0: heads make several at every position."""
        numbers = list[torch.Tensor]()
        for (_, places), wanted in zip(self._texts[:most], self._targets(), strict=False):
            numbers.append(torch.arange(len(wanted)) // len(places))
        return torch.cat(numbers).to(wanted.device)

    def _targets(self) -> list[torch.Tensor]:
        if not self._wanted:
            examined = self._examined
            for text, places in self._texts:
                _, at = examined.rows(examined.given, text, places)
                logits = examined.model.head(text.hidden[at])
                logits = logits if examined.drafted is None else logits[:, examined.drafted]
                self._wanted.append(logits.float().log_softmax(-1))
        return self._wanted


def compare_fit(given: torch.Tensor, other: torch.Tensor) -> FitChange:
    """Compare two wirings guess by guess, by Wilcoxon's signed ranks: a few guesses have most of the divergence."""
    difference = (given - other).double()
    changed = difference[difference != 0]
    ranks = changed.abs().argsort().argsort().double() + 1
    sureness = float((ranks * changed.sign()).sum() / ranks.square().sum().sqrt()) if len(changed) else 0.0
    error = float(difference.std()) / sqrt(len(difference))
    moved = float(difference.abs().mean())
    return FitChange(float(given.mean()), float(other.mean()), sureness, error, moved)


def _divergence(wanted: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    drafted = logits.log_softmax(-1).clamp(min=-100.0)
    return (wanted.exp() * (wanted.clamp(min=-100.0) - drafted)).sum(-1)
