"""From logits to the distribution that a token is drawn from, and the draws themselves.

One function makes both the target's p and a drafter's q, so that the two cannot differ in temperature or filters. The
order is that of transformers: repetition penalty, temperature, top-k, top-p, min-p.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
import torch

from .errors import ModelError
from .model.download import fetch
from .model.queued_tree import Parents, closure_on
from .model.upload import upload
from .native.summaries import softmax, summarizes
from .outlook import COLDEST, Outlook
from .ranking import NOT_A_NUMBER, checked
from .sampling_params import Sampling as Sampling
from .tree import paths
from .types import Draft


class Draws:
    """A run's uniform numbers in [0, 1).

    `at(position)` depends on seed and position alone. The target's choice at a position uses it, so every method whose
    drafts are point masses writes the very tokens that autoregressive sampling writes for that seed. `fresh()` is a
    second, independent stream, for acceptance tests and for sampling drafters. A device that draws before the host
    knows how many draws count gets the numbers `ahead`; the host later calls `skip` for those that were used.
    """

    _BLOCK = 64

    def __init__(self, seed: int) -> None:
        # Philox is a block cipher over a counter: different keys give independent streams.
        self._by_position, self._fresh = (np.random.Generator(np.random.Philox(key=[seed, s])) for s in (0, 1))
        self._drawn: list[float] = []
        self._ahead = deque[float]()  # numbers of the second stream that were generated and not used yet

    def at(self, position: int) -> float:
        """Return the uniform number for the new token at `position`."""
        while position >= len(self._drawn):
            self._drawn.extend(self._by_position.random(self._BLOCK).tolist())
        return self._drawn[position]

    def fresh(self) -> float:
        """Return the next number of the second stream."""
        return self._ahead.popleft() if self._ahead else float(self._fresh.random())

    def ahead(self, count: int) -> list[float]:
        """Return the next numbers of the second stream without using them up."""
        while len(self._ahead) < count:
            self._ahead.append(float(self._fresh.random()))
        return [*islice(self._ahead, count)]

    def skip(self, count: int) -> None:
        """Use up the next numbers of the second stream."""
        for _ in range(count):
            self.fresh()


class Sampler:
    """Turns logits of one run into distributions, by its settings and the tokens of its text."""

    def __init__(self, sampling: Sampling, vocabulary: int, device: torch.device, text: Iterable[int]) -> None:
        self.sampling, self.device = sampling, device
        self.draws = Draws(sampling.seed)
        self.penalises = sampling.repetition_penalty != 1.0  # whether the logits of the text's tokens are changed
        self._seen = torch.zeros(vocabulary if self.penalises else 0, dtype=torch.bool, device=device)
        self.extend(text)

    @property
    def plain(self) -> bool:
        """Return True if every token is the argmax of the model's unchanged logits."""
        return self.sampling.greedy and not self.penalises

    @property
    def filters(self) -> bool:
        """Return True if top-k, top-p or min-p may exclude tokens."""
        setting = self.sampling
        return bool(setting.top_k) or setting.top_p < 1.0 or setting.min_p > 0.0

    def extend(self, tokens: Iterable[int]) -> None:
        """Add committed tokens, which the repetition penalty applies to."""
        if self.penalises:
            ids = upload(torch.tensor(list(tokens), dtype=torch.long), self._seen.device)
            self._seen.index_fill_(0, ids, True)

    def penalise(self, logits: torch.Tensor, paths: Sequence[Sequence[int]]) -> torch.Tensor:  # (T, V)
        """Apply the repetition penalty; `paths[i]` holds the tokens after the text on row i's path."""
        if not self.penalises:
            return logits
        entries, width = None, logits.shape[-1]
        if any(paths):
            host = torch.tensor([row * width + token for row, path in enumerate(paths) for token in path])
            entries = upload(host, logits.device)
        return self._penalise_at(logits, entries)

    def penalise_queued(
        self, logits: torch.Tensor, ids: torch.Tensor, parents: Parents
    ) -> torch.Tensor:  # (T, V), (T,)
        """Apply the repetition penalty to a tree whose tokens only the device knows; the first is the root."""
        if not self.penalises:
            return logits
        seen, rows = closure_on(parents, ids.device), torch.arange(len(ids), device=ids.device)
        tokens = torch.where(seen, ids, ids[:1])  # the root belongs to the text, whose tokens are penalised anyway
        return self._penalise_at(logits, (rows[:, None] * logits.shape[-1] + tokens).flatten())

    def penalise_behind(self, logits: torch.Tensor, ids: torch.Tensor | None) -> torch.Tensor:  # (1, V), (n,)
        """Apply the repetition penalty after a chain whose tokens only the device knows."""
        return self._penalise_at(logits, ids) if self.penalises else logits

    def _penalise_at(self, logits: torch.Tensor, entries: torch.Tensor | None) -> torch.Tensor:
        """Penalise the text's tokens in every row, and further `entries` of the flattened logits."""
        seen = self._seen.to(logits.device).expand(logits.shape[0], -1)  # a drafter's device may be another one
        if entries is not None:
            seen = seen.clone(memory_format=torch.contiguous_format)
            seen.view(-1).index_fill_(0, entries, True)
        penalty = self.sampling.repetition_penalty
        return torch.where(seen, torch.where(logits < 0, logits * penalty, logits / penalty), logits)

    def penalise_tree(
        self, logits: torch.Tensor, draft: Draft, before: Sequence[int] = (), only: Sequence[int] | None = None
    ) -> torch.Tensor:  # (T, V)
        """Apply the repetition penalty to the logits of a tree's nodes, or of `only` some.

        `before` holds the tokens between the text and the tree's root, including the root.
        """
        if not self.penalises:
            return logits
        tokens = paths(draft.parents, draft.tokens, before)
        return self.penalise(logits, tokens if only is None else [tokens[node] for node in only])

    def probabilities(self, logits: torch.Tensor) -> torch.Tensor:  # (..., V) penalised logits -> (..., V)
        """Return the distribution that a token is drawn from; at temperature 0 the unscaled one."""
        return probabilities(logits, self.sampling)

    def outlook(self, logits: torch.Tensor) -> Outlook:  # (T, V) penalised logits
        """Return the distributions in a form for looking up a few numbers."""
        if self.filters:
            return Outlook(self.probabilities(logits).log())
        return Outlook(logits, 1.0 if self.sampling.greedy else self.sampling.temperature)


def probabilities(logits: torch.Tensor, setting: Sampling) -> torch.Tensor:  # (..., V) penalised logits -> (..., V)
    """Return the distribution that a token is drawn from; at temperature 0 the unscaled one."""
    if setting.greedy:
        return _softmax(logits)
    scores = logits.double() if logits.dtype == torch.float64 else logits.float()
    scores = scores - scores.amax(-1, keepdim=True)  # a tiny temperature cannot overflow
    scores = scores / max(setting.temperature, COLDEST)
    if 0 < setting.top_k < scores.shape[-1]:
        kth = torch.topk(scores, setting.top_k).values[..., -1:]
        scores = scores.masked_fill(scores < kth, -torch.inf)
    if setting.top_p < 1.0:
        scores = _keep_mass(scores, setting.top_p)
    shares = torch.softmax(scores, -1)
    if setting.min_p > 0.0:
        kept = shares.masked_fill(shares < setting.min_p * shares.amax(-1, keepdim=True), 0.0)
        shares = kept / kept.sum(-1, keepdim=True)
    return shares


def _softmax(logits: torch.Tensor) -> torch.Tensor:  # (..., V) -> (..., V)
    """Use the compiled softmax if compiled code ran the layers, so that torch's threads need not wake up."""
    rows = logits.reshape(-1, logits.shape[-1])
    if summarizes(rows) and (shares := softmax(rows)) is not None:
        return shares.view(logits.shape)
    return torch.softmax(logits if logits.dtype == torch.float64 else logits.float(), -1)


def _keep_mass(scores: torch.Tensor, top_p: float) -> torch.Tensor:
    """Drop the least likely tokens while the others hold at least `top_p`; the likeliest always stays."""
    ordered, index = torch.sort(scores, descending=True, stable=True)
    probabilities = torch.softmax(ordered, -1)
    before = probabilities.cumsum(-1) - probabilities  # mass of likelier tokens
    drop = before >= top_p
    drop[..., 0] = False
    return scores.masked_fill(torch.zeros_like(drop).scatter(-1, index, drop), -torch.inf)


def draw(probabilities: torch.Tensor, uniform: float) -> int:  # (V,), need not sum to one
    """Return the token at which the running sum passes `uniform` of the total; its probability is never zero."""
    if probabilities.device.type != "cpu":
        goals = upload(torch.tensor([uniform], dtype=torch.float64), probabilities.device)
        return checked(*fetch(*drawn_rows(probabilities[None], goals)))[0]
    running = probabilities.cumsum(0, dtype=torch.float64)
    total = float(running[-1])
    if not 0.0 < total < float("inf"):
        raise ModelError(NOT_A_NUMBER)
    goal = uniform * total
    token = int(torch.searchsorted(running, goal, right=True))
    if token < len(probabilities):
        return token
    return int(probabilities.nonzero()[-1])  # rounding put the goal beyond the last sum


def drawn_rows(
    probabilities: torch.Tensor, uniforms: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:  # (R, V), (R,) -> (R,) ids, (R,) faults
    """Draw a token of every row on the probabilities' device; on the host, `checked` takes both results."""
    running = probabilities.cumsum(-1, dtype=torch.float64)
    totals = running[:, -1:].contiguous()
    goals = totals * uniforms[:, None]
    # Rounding may put a goal beyond the last sum: then the last token with a probability above zero is taken.
    tokens = torch.minimum(torch.searchsorted(running, goals, right=True), torch.searchsorted(running, totals))
    sound = (totals > 0.0) & (totals < torch.inf)
    return tokens[:, 0], ~sound[:, 0]
