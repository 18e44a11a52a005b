"""A chain of drafted tokens: finished, and while a method's loop drafts it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..tree import Builder
from ..types import Draft

if TYPE_CHECKING:
    import torch

    from ..model.upload import Tokens

Drawn = tuple[int, "torch.Tensor | None", "float | None"]  # a token, its q and the drafter's confidence there
# What a drafter does in a method's loop. A draft model reads the newest token after all that is unread, for the logits
# (1, n) of the next one, or None if interrupted. With an early exit, the newest token enters the target's first layers,
# and an adapter reads their output (1, H).
Read = Callable[["Tokens"], "torch.Tensor | None"]
Enter = Callable[["Tokens"], "torch.Tensor"]
Adapt = Callable[["torch.Tensor"], "torch.Tensor"]


@dataclass(slots=True)
class Chain:
    """Tokens that a drafter wrote one after the other, with q and the confidence of each."""

    tokens: list[int] = field(default_factory=list)
    q: list[torch.Tensor | None] = field(default_factory=list)  # (V,) each, as in `Draft`
    confidence: list[float] = field(default_factory=list)  # the drafter's largest probability, if requested
    fixed: Hashable = None  # as in `Draft`

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, token: int, q: torch.Tensor | None, confidence: float | None = None) -> None:
        """Append a token."""
        self.tokens.append(token)
        self.q.append(q)
        if confidence is not None:
            self.confidence.append(round(confidence, 6))

    def tree(self, root: int, kind: str) -> Builder:
        """Hang the chain below a root: nodes 1, 2, ... with the sources "kind:1", "kind:2", ..."""
        tree = Builder(root)
        tree.chain(self.tokens, [f"{kind}:{i}" for i in range(1, len(self) + 1)])
        return tree

    def draft(self, tree: Builder) -> Draft:
        """Finish the draft of a tree that `tree` began; guesses added to it since are point masses."""
        return tree.draft((None, *self.q, *[None] * (len(tree) - 1 - len(self))), self.fixed)


class OpenChain(ABC):
    """A chain that a method's loop drafts.

    On a device the host does not know the tokens, so nothing ends the loop early. Once the tokens are fetched, the same
    loop runs over them and ends where it would have ended.
    """

    tokens: Tokens
    ended = False  # whether the last token ends the text, or the run was interrupted
    sure = 1.0  # the largest probability where the last token was drafted; 1 if unknown or not requested
    product = 1.0  # of these, over all tokens

    @abstractmethod
    def draw(self, logits: torch.Tensor | None) -> None:  # (1, n)
        """Draw the next token from q, or the likeliest one when greedy; end the chain if `logits` is None."""


class HostChain(OpenChain):
    """A chain whose tokens the host knows as soon as they are drawn."""

    def __init__(
        self,
        chain: Chain,
        next_token: Callable[[torch.Tensor], Drawn | None],
        ends: Collection[int],
        interrupted: Callable[[], bool],
    ) -> None:
        """`next_token` returns the arguments of `Chain.add`, or None at the end of the chain."""
        self.tokens, self._chain = chain.tokens, chain
        self._next_token, self._ends, self._interrupted = next_token, ends, interrupted

    def draw(self, logits: torch.Tensor | None) -> None:
        """Draw the next token, and set `ended` if the loop must stop."""
        if logits is None or (drawn := self._next_token(logits)) is None:
            self.ended = True
            return
        self._chain.add(*drawn)
        self.sure = self._chain.confidence[-1] if self._chain.confidence else 1.0
        self.product *= self.sure
        self.ended = drawn[0] in self._ends or self._interrupted()
