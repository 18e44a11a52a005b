"""A chain of drafted tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..tree import Builder
from ..types import Draft

if TYPE_CHECKING:
    import torch


@dataclass(slots=True)
class Chain:
    """Tokens that a drafter wrote one behind the other, and what it knew of each."""

    tokens: list[int] = field(default_factory=list)
    q: list[torch.Tensor | None] = field(default_factory=list)  # (V,) each, as in `Draft`
    confidence: list[float] = field(default_factory=list)  # the drafter's largest probability, where it is asked for

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, token: int, q: torch.Tensor | None, confidence: float | None = None) -> None:
        """One token more."""
        self.tokens.append(token)
        self.q.append(q)
        if confidence is not None:
            self.confidence.append(round(confidence, 6))

    def tree(self, root: int, kind: str) -> Builder:
        """The chain behind a root: nodes 1, 2, ... with the sources "kind:1", "kind:2", ..."""
        tree = Builder(root)
        tree.chain(self.tokens, [f"{kind}:{i}" for i in range(1, len(self) + 1)])
        return tree

    def draft(self, tree: Builder) -> Draft:
        """The finished draft of a tree that began as this chain's; what hangs behind the chain is a point mass."""
        return tree.draft(q=(None, *self.q, *[None] * (len(tree) - 1 - len(self))))
