"""Lookahead decoding (Fu et al., 2024, arXiv 2402.02057).

Let the target guess far ahead of the text in a window of Jacobi iterations, pool n-grams of its trajectories,
and verify in the same pass the pooled n-grams that follow the last token.

Algorithm
  L1  the window starts as one row of W+N-3 random tokens of the prompt; the pool is empty
  L2  feed the last token c and row 0 as a chain (c is in column 0, so row 0 starts at column 1); cell i of row 1
      follows column i of the chain, that of a later row the cell above it: columns are sentences
  L3  if the window has N-1 rows: verify what the pool holds for c in the same pass, G guesses of N-1 tokens
  L4  new[i] is the target's choice at the end of column i
  L5  if the window has fewer rows: drop every row's first token, append new[1:] as a row; to L2
  L6  harvest: in column i, the chain's token was followed by the cells and new[i]; put them into the pool
  L7  move by one row, whatever was accepted: drop row 0 and row 1's first token, append new; to L2

  symbol  meaning
  W       columns of the window: how far it looks ahead
  N       length of an n-gram with its first token, c: how far the window looks back
  G       n-grams kept, and verified, per first token

Differs from the paper
  The paper's G bounds a step's guesses; here, as in the reference code, what the pool keeps for each token.
  Layout "merged" is an experiment of ours, shift "hits" one of the reference code.
  The window is refilled from the prompt: in the reference code later refills come from the output too, and of several
  ends of text it keeps only the first one out of the window.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..drafting.ngram_pool import NgramPool
from ..drafting.window import Window, largest_window
from ..params import Params, param
from ..tree import Builder
from ..types import JSON, Draft, Verdict
from .base import Context, Method
from .panels import LookaheadPanel, LookaheadPool, WindowPhase

_LIKE = "As in the reference code: "


@dataclass(frozen=True, slots=True)
class LookaheadParams(Params):
    """Window, pool, and switches for the reference code's deviations."""

    W: int = param(15, label="Window size", symbol="W", help="Columns of the window", min=1, max=256)
    N: int = param(5, label="N-gram size", symbol="N", help="Tokens per n-gram", min=3, max=16)
    G: int = param(15, label="Guess set size", symbol="G", help="N-grams to keep per token", min=0, max=256)
    prompt_as_reference: bool = param(False, label="Pool the text", help="Pool n-grams of prompt and output as well")
    layout: str = param(
        "disjoint", label="Layout", help="Keep guesses apart, or merge prefixes", choices=("disjoint", "merged")
    )
    shift: str = param(
        "row", label="Window shift", help="Shift by a row, or by tokens written", choices=("row", "hits")
    )
    drop_bonus: bool = param(False, label="Drop the bonus", help=_LIKE + "a full match writes N-1 tokens, not N")
    repeat_history: bool = param(
        False, label="Repeat history", help=_LIKE + "greedy runs pool a step's last token once per token written"
    )
    replace_end: bool = param(False, label="Replace ends", help=_LIKE + "sampling keeps ends out of the window")

    presets: ClassVar[Mapping[str, Mapping[str, JSON]]] = {
        "paper": {},
        "reference": {"drop_bonus": True, "repeat_history": True, "replace_end": True},
        "7B on A100": {"W": 15, "N": 5, "G": 15},
        "13B on A100": {"W": 10, "N": 5, "G": 10},
        "34B on A100": {"W": 7, "N": 5, "G": 7},
        "minimal.py": {"W": 20, "N": 7, "G": 20}
        | {"prompt_as_reference": True, "drop_bonus": True, "repeat_history": True},
        "SmolLM2 on a CPU": {"W": 1, "N": 3, "G": 2, "layout": "merged", "prompt_as_reference": True},
        "pocket on a CPU": {"W": 2, "N": 3, "G": 2, "layout": "merged", "prompt_as_reference": True},
    }

    @property
    def nodes(self) -> int:
        """Count the nodes of the largest step: with a full window, or a filling one that is narrower than tall."""
        return max(largest_window(self.W, self.N), (self.N - 1) * (self.W + self.G) - self.G * self.drop_bonus)


class Lookahead(Method):
    """Keep a window of Jacobi trajectories and a pool of their n-grams."""

    name = "lookahead"
    label = "Lookahead"
    paper = "Fu et al. 2024, arXiv 2402.02057"
    Params = LookaheadParams
    Panel = LookaheadPanel

    def __init__(self, context: Context, params: LookaheadParams) -> None:
        self._context, self._params, self._pool = context, params, NgramPool(params.G)
        self._window = Window(params.W, params.N, context.from_prompt)  # L1
        self._history: deque[int] = deque(maxlen=params.N)  # the end of the text, if it is pooled
        self._inserted: list[JSON] = []
        self._panel: LookaheadPanel = {}
        self._pool_text(context.text)

    def propose(self) -> Draft:
        """Propose the window, and the guesses for the last token."""
        root, params, window = self._context.text[-1], self._params, self._window
        tree = Builder(root)
        window.put(tree)  # L2
        length = params.N - 1 - params.drop_bonus  # the bonus after a shorter guess is its own last token
        guesses = [[*ngram[:length]] for ngram in self._pool.guesses(root)] if window.full else []
        for entry, guess in enumerate(guesses):  # L3
            sources = [f"pool:{entry},{i}" for i in range(length)]
            tree.chain(guess, sources, merge=params.layout == "merged")
        phase: WindowPhase = "steady" if window.full else "fill" if len(window.rows) > 1 else "prefill"
        self._panel = {"phase": phase, "rows": window.rows, "new": [], "key": root, "guesses": guesses}
        self._inserted = []
        return tree.draft()

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Harvest the trajectories and move the window."""
        params, window, emitted = self._params, self._window, verdict.emitted
        greedy = self._context.sampler.sampling.greedy
        new = self._panel["new"] = window.answers(verdict.argmax)  # L4
        if not window.full:
            window.move(new)  # L5
        else:
            for column in window.columns(draft.tokens[0], new):
                self._insert(*column)  # L6
            banned = self._context.end_tokens if params.replace_end and not greedy else ()
            window.move([self._context.from_prompt() if token in banned else token for token in new])  # L7
            if params.shift == "hits":
                window.drop(len(emitted) - 1)
        self._pool_text(emitted[-1:] * len(emitted) if params.repeat_history and greedy else emitted)

    def panel(self) -> LookaheadPanel:
        """Return the window as fed, the target's answers, the guesses, and what the pool learned."""
        pool: LookaheadPool = {"inserted": self._inserted, "keys": self._pool.keys, "entries": self._pool.entries}
        return {**self._panel, "pool": pool}

    def _insert(self, key: int, *ngram: int) -> None:
        if outcome := self._pool.insert(key, ngram):
            self._inserted.append([key, [*ngram], outcome])

    def _pool_text(self, tokens: Iterable[int]) -> None:
        for token in tokens if self._params.prompt_as_reference else ():
            self._history.append(token)
            if len(self._history) == self._params.N:
                self._insert(*self._history)
