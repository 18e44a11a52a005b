"""Measures a wiring: how many of its guesses are the target's own text, at every position where a step could begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from .heads import share_error

if TYPE_CHECKING:
    from .probes import Examined
    from .texts import Text


@dataclass(frozen=True, slots=True)
class AcceptedGuesses:
    """Accepted guesses, summed over the positions of every text."""

    accepted: npt.NDArray[np.float64]  # (texts,)
    places: npt.NDArray[np.float64]  # (texts,)
    survival: tuple[float, ...]  # the share of steps whose first j guesses were all right, for j = 1, 2, ...
    firsts: npt.NDArray[np.float64] | None = None  # (texts,) positions whose first guess was right

    @property
    def first_error(self) -> float:
        """Return the standard error of the first guess's share: positions of one text are alike, so texts count."""
        share, places, texts = self.survival[0], float(self.places.sum()), len(self.places)
        alone = share_error(share, places)
        if self.firsts is None or texts < 2:
            return alone
        apart = self.firsts - share * self.places
        return max(alone, sqrt(texts / (texts - 1) * float(apart @ apart)) / places)

    @property
    def tokens_per_step(self) -> float:
        """Tokens that a step writes, the target's own included: the mean over all positions."""
        return 1.0 + float(self.accepted.sum() / self.places.sum())


@torch.inference_mode()
def measure_wiring(examined: Examined, wiring: Any, texts: Sequence[Text], depth: int) -> AcceptedGuesses:
    """Count the tokens of the texts that a wiring guesses.

    Acceptance is greedy and exact: a guess is right if the text has it.
    """
    lengths = [accepted(examined, wiring, text, depth) for text in texts]
    every = np.concatenate(lengths)
    return AcceptedGuesses(
        np.array([each.sum() for each in lengths], dtype=np.float64),
        np.array([len(each) for each in lengths], dtype=np.float64),
        tuple(float((every >= j).mean()) for j in range(1, depth + 1)),
        np.array([(each >= 1).sum() for each in lengths], dtype=np.float64),
    )


def accepted(examined: Examined, wiring: Any, text: Text, depth: int) -> npt.NDArray[np.int64]:  # (places,)
    """Count the right guesses before the first wrong one, at every position of a text."""
    places = text.places(depth)
    guesses = examined.guess(wiring, text, places, depth).cpu()
    ids = torch.tensor(text.ids)
    right = guesses == torch.stack([ids[place + 1 : place + 1 + depth] for place in places])
    counts: npt.NDArray[np.int64] = right.int().cumprod(1).sum(1).numpy().astype(np.int64)
    return counts
