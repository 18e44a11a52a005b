"""Jacobi decoding (Song et al., ICML 2021; Santilli et al., 2023, arXiv 2305.10427).

Guess the next n tokens, let the target answer all of them at once, take its answers as the next guesses: the
greedy text is the fixed point, and every iteration settles at least one more of its tokens.

Algorithm
  L1  guess n tokens; what they are changes how fast the text comes, never what it is
  L2  feed the last token and the guesses as a chain
  L3  the a guesses that the target would have written itself are settled; commit them and the next answer
  L4  the answers after the settled part are the next guesses
  L5  refill the a places that came free at the end; to L2

  symbol  meaning
  n       guesses in the block
  a       guesses settled by an iteration

A guess's source is "jacobi:j": j counts the iterations that have worked on its position, 0 for a refill.

Differs from the paper
  The papers' block stays until all its n tokens are settled; ours slides, so no guess is wasted on a settled
  position. Either way a position is settled after at most n iterations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..params import Params, param
from ..tree import Builder
from ..types import JSON, Draft, Verdict
from .base import Context, Method
from .panels import JacobiPanel


@dataclass(frozen=True, slots=True)
class JacobiParams(Params):
    """The size of the block, and how it is refilled."""

    n: int = param(8, label="Block size", symbol="n", help="Number of tokens guessed at once", min=1, max=128)
    refill: str = param(
        "prompt",
        label="Refill",
        help="Fill free positions with random tokens of the prompt, the text's last token, or token 0",
        choices=("prompt", "last", "zero"),
    )

    presets: ClassVar[Mapping[str, Mapping[str, JSON]]] = {"SmolLM2 on a CPU": {"n": 1}, "pocket on a CPU": {"n": 1}}

    @property
    def nodes(self) -> int:
        """Count the root and the block."""
        return self.n + 1


class Jacobi(Method):
    """Refine a block of guesses until it equals what the target would write."""

    name = "jacobi"
    label = "Jacobi"
    paper = "Song et al. 2021, arXiv 2002.03629; Santilli et al. 2023, arXiv 2305.10427"
    Params = JacobiParams
    Panel = JacobiPanel

    def __init__(self, context: Context, params: JacobiParams) -> None:
        self._context, self._params = context, params
        self._guesses = [self._refill() for _ in range(params.n)]  # L1
        self._ages = [0] * params.n  # iterations that have worked on each guess's position
        self._panel: JacobiPanel = {}

    def propose(self) -> Draft:
        """Propose the root and the block as a chain."""
        tree = Builder(self._context.text[-1])
        tree.chain(self._guesses, [f"jacobi:{age}" for age in self._ages])  # L2
        self._panel = {"guesses": self._guesses, "answers": [], "settled": None}
        return tree.draft()

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Take the target's answers as the next guesses."""
        settled = len(verdict.path) - 1  # L3
        self._panel |= {"answers": [*verdict.argmax], "settled": settled}
        self._guesses = [*verdict.argmax[settled + 1 :], *(self._refill() for _ in range(settled))]  # L4, L5
        worked_on = [*self._ages, 0][settled + 1 :]  # the last answer is for a position that was not guessed yet
        self._ages = [*(age + 1 for age in worked_on), *([0] * settled)]

    def panel(self) -> JacobiPanel:
        """Return the block as fed, the target's answers from the root on, and how many guesses they settled."""
        return self._panel

    def _refill(self) -> int:
        context = self._context
        if self._params.refill == "prompt":
            return context.from_prompt()
        return context.text[-1] if self._params.refill == "last" else 0
