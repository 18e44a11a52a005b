"""Looks up single probabilities in rows of logits, for records and drafters, without computing whole softmaxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from .errors import ModelError
from .model.download import fetch
from .native.summaries import NativeNodes, largest, summarize, summarizes
from .ranking import NOT_A_NUMBER, likeliest, ranked

_TOP = 5  # tokens listed at every node
DECIMALS = 6  # of recorded numbers
_FARTHEST = -1e4  # exp of it is 0, and 0 times it is 0, unlike 0 times minus infinity
COLDEST = 1e-30  # the lowest temperature: float32 rounds much smaller divisors to zero


class Drafted(NamedTuple):
    """What a full record contains about a drafter's distributions q, each after a node; lists over all of them."""

    best: list[int]  # the likeliest tokens
    mine: list[float]  # their probabilities in q
    theirs: list[float]  # their probabilities at the node
    overlaps: list[float]  # the sum of min(p, q) over all tokens: how often a draw from q is accepted
    shares: list[float]  # the probabilities of drafted tokens in their q


class Outlook:
    """The distributions of several rows of logits, such as the target's at all nodes of a step."""

    def __init__(self, scores: torch.Tensor, temperature: float = 1.0, count: int = _TOP) -> None:  # (T, V)
        """List `count` tokens at every node, the best first."""
        self._scores, self._scale = scores.contiguous(), 1.0 / max(temperature, COLDEST)
        self.best, self._values, self._totals, self._moments = _summarized(self._scores, count, self._scale)

    @property
    def count(self) -> int:
        """Return how many tokens are listed at every node."""
        return self.best.shape[1]

    def likeliest(self) -> list[int]:
        """Return the likeliest token at every node, as `likeliest` does; from the summary of compiled code, if any."""
        if not summarizes(self._scores):  # torch has ranked the scores in float32, whatever their dtype
            return likeliest(self._scores)
        chosen: list[int] = self.best[:, 0].tolist()
        return chosen

    def shares(self) -> torch.Tensor:  # (T, count)
        """Return the probabilities of the best tokens at every node."""
        return ((self._values - self._values[:, :1]) * self._scale).exp() / self._totals[:, None]

    def at(self, nodes: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:  # of one shape, which the result has
        """Return the probabilities of tokens at nodes. A drafter's tokens may be on another device."""
        nodes, tokens = nodes.to(self._scores.device), tokens.to(self._scores.device)
        return self._probabilities(self._scores[nodes, tokens], nodes)

    def listed(self, parents: Sequence[int], tokens: Sequence[int]) -> list[list[float]]:
        """Return numbers for a record: p of each row's best tokens, its entropy in nats, p of `tokens` at `parents`."""
        if summarizes(self._scores):
            return self._native.describe(parents, tokens)
        entropy = (self._totals.log() - self._moments / self._totals).clamp(min=0.0)  # rounding can go below
        at = self.at(torch.tensor(parents, dtype=torch.long), torch.tensor(tokens, dtype=torch.long))
        return fetch(self.shares(), entropy, at, decimals=DECIMALS)

    def beside(
        self, q: Sequence[torch.Tensor], parents: Sequence[int], indices: Sequence[int], tokens: Sequence[int]
    ) -> Drafted:
        """Compare, for a record, a drafter's distributions (V,) with the target's at their `parents`.

        Each of the `tokens` was drawn from the distribution with its index.
        """
        if summarizes(self._scores) and all(self._suits(row) for row in q):
            compared = self._native.compare(q, parents, indices, tokens)
            if compared is not None:
                return Drafted(compared[0], *compared[1])
        rows, nodes = torch.stack([*q]).to(self._scores.device), torch.tensor(parents)[:, None].to(self._scores.device)
        best = ranked(rows, self.count)
        p = self._probabilities(self._scores[nodes[:, 0]], nodes)
        numbers = rows.gather(1, best), self.at(nodes, best), torch.minimum(p, rows).sum(-1).clamp(max=1.0)
        shares = rows[torch.tensor(indices), torch.tensor(tokens)]
        return Drafted(best.flatten().tolist(), *fetch(*numbers, shares, decimals=DECIMALS))

    def _suits(self, q: torch.Tensor) -> bool:
        """Return True if compiled code can read a drafter's distribution in place."""
        plain = q.device.type == "cpu" and q.dtype == torch.float32 and q.is_contiguous()
        return plain and q.shape == self._scores.shape[1:]

    @property
    def _native(self) -> NativeNodes:
        return NativeNodes(self._scores, self._scale, self._values, self._totals, self._moments)

    def _probabilities(self, scores: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor:
        """Return the probabilities of scores at nodes."""
        largest = self._values[nodes, 0]
        return ((scores.to(largest.dtype) - largest) * self._scale).exp() / self._totals[nodes]


def _summarized(
    scores: torch.Tensor, count: int, scale: float
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return, for every row, the ids of the largest scores, these scores, and the sums that `summarize` describes."""
    if summarizes(scores):
        if (summary := summarize(scores, count, scale)) is None:
            raise ModelError(NOT_A_NUMBER)
        return summary
    wide = scores if scores.dtype == torch.float64 else scores.float()
    best = ranked(scores, count)
    values = wide.gather(-1, best)
    distances = ((wide - values[:, :1]) * scale).clamp(min=_FARTHEST)
    powers = distances.exp()
    return best, values, powers.sum(-1), (powers * distances).sum(-1)


def surest(logits: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:  # (R, V) -> (R, count) twice
    """Return the likeliest tokens of every row and their probabilities, before temperature and filters."""
    outlook = Outlook(logits, count=count)
    return outlook.best, outlook.shares()


def surest_of_few(logits: torch.Tensor, count: int = 1) -> tuple[list[int], list[float]]:  # (R, V) -> R * count each
    """Return the likeliest tokens of a few rows and their probabilities, as lists, row by row."""
    if not summarizes(logits):
        ids, chances = fetch(*surest(logits, count))
        return [int(token) for token in ids], [*chances]
    if (best := largest(logits, count, shares=True)) is None:
        raise ModelError(NOT_A_NUMBER)
    return best


def largest_probability(logits: torch.Tensor) -> torch.Tensor:  # (V,) -> ()
    """Return the largest probability, before temperature and filters, on the device of the logits."""
    if summarizes(logits[None]) and (best := largest(logits[None], shares=True)) is not None:
        return torch.tensor(best[1][0])
    return torch.softmax(logits.float(), -1).max()
