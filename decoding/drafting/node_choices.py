"""A drafter's choices at the nodes of a tree, which a device computes in the pass over the tree."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from ..model.download import fetch
from ..ranking import checked, likeliest_rows
from ..sampling import drawn_rows
from ..tree import depths

if TYPE_CHECKING:
    from ..model.captured import Judged, StepBuffer
    from ..model.graphs import Outputs
    from ..types import Draft
    from .writer import Writer


class NodeChoices:
    """A `PassJudge` that chooses at every node, whether the walk reaches it or not."""

    guesses: Sequence[bool] = ()
    fixed = False

    def __init__(self, writer: Writer, draft: Draft, before: int) -> None:
        """`before`: the rows of a chain that the pass reads before the tree."""
        sampler = self._sampler = writer.sampler
        self._widen, self._greedy = writer.widen, sampler.sampling.greedy
        self._rows = slice(before, before + len(draft.tokens))
        draws = sampler.draws.ahead(max(depths(draft.parents)) + 1)  # as many as a walk may take
        self.uniforms: Sequence[float] = [] if self._greedy else [*[0.0] * before, *draws]
        settings = None if self._greedy else replace(sampler.sampling, seed=0)
        self.key: Hashable = ("choices", settings, writer.vocabulary)
        self.kept: Outputs = ()

    def numbers(self, logits: torch.Tensor, hidden: torch.Tensor, nodes: StepBuffer) -> Outputs:
        """Compute the likeliest tokens; when sampling, also the tokens drawn, and keep q: (T, V)."""
        if self._greedy:
            return likeliest_rows(logits)
        logits = self._widen(logits)
        q = self._sampler.probabilities(logits)
        self.kept = (q,)
        return *likeliest_rows(logits), *drawn_rows(q, nodes.goals)

    def fetch(self, judged: Judged) -> tuple[list[int], list[int]]:
        """Wait for the likeliest token at every node and, when sampling, the one drawn there."""
        tokens, faults, *drawn = (part[self._rows] for part in judged.split(*fetch(judged.flat)))
        return checked(tokens, faults), checked(*drawn) if drawn else []

    def q(self, judged: Judged) -> torch.Tensor:  # (n, V)
        """Return the distributions that the tokens were drawn from."""
        return judged.kept[0][self._rows]
