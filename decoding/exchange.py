"""The exchange between the ranks of a run: once per step, the tokens chosen at the nodes and a stop flag.

A rank sends, in 4 bytes each:

    state   whether the run must end, for what reason, and whether this rank has read its share
    draft   a checksum of the tree: ranks whose trees differ must not continue
    argmax  the likeliest token at every node where the rank's choice counts, being the lowest rank that reads the node
    drawn   when sampling, the token drawn at each of these nodes that a walk can reach; -1 if none was drawn

Methods learn from the likeliest tokens when sampling too, hence both. All ranks send as many numbers as the one with
the most nodes, so that one all_gather is enough.

A method can be split if a rule needs nothing but a token at each node. These methods cannot, and are refused:

    a drafter that samples (draft_model and ouroboros when sampling): judging a guess takes all of p and q
    the target's hidden state (medusa): only the rank that read the last accepted node has it
    hidden states between the target's layers (kangaroo, eagle3): guesses are made from those of the whole text
    the likeliest tokens at every node (token_recycling): a rank has them for its share only
    typical acceptance: it takes all of p at every guess
"""

from __future__ import annotations

import operator
import zlib
from array import array
from collections.abc import Callable, Mapping
from typing import NamedTuple

from .errors import ParamError, RankError
from .methods import Method
from .params import Params
from .parts.base import TAPPING
from .ranks import Ranks
from .sampling import Sampling
from .shares import Shares
from .types import Draft, Role

_REASONS = (None, "cancelled", "time")  # why a run must end, by number
_UNREAD = len(_REASONS)  # added to the number if the rank was interrupted before it had read its share


def hindrance(method: type[Method], params: Params, sampling: Sampling) -> str | None:
    """Return why several ranks cannot read the trees of a method together, if they cannot."""
    if method.needs & TAPPING:
        return "it reads hidden states of the whole text, of which no rank has all in time"
    if "hidden" in method.needs:
        return "its guesses come from a hidden state, which one rank alone has"
    if params.ranked:
        return "it learns from the likeliest tokens at every node, of which a rank sees its own share alone"
    if params.typical is not None and not sampling.greedy:
        return "typical acceptance looks at whole distributions"
    if "draft_model" in method.needs and not sampling.greedy:
        return "sampled guesses are judged by whole distributions; it does at temperature 0"
    return None


class Choices(NamedTuple):
    """The tokens chosen at every node."""

    argmax: list[int]
    drawn: list[int]  # -1 where none was drawn; empty unless sampling


class Exchange:
    """The exchange of one run."""

    def __init__(self, ranks: Ranks, interruption: Callable[[], str | None], *, sampling: bool) -> None:
        """`interruption` returns why this rank must end, or None."""
        self.ranks, self._interruption, self._sampling = ranks, interruption, sampling
        self._reason: str | None = None

    def agreed(self) -> str | None:
        """Return why the run must end, or None; the same on all ranks, since they learn it in the same step."""
        return self._reason

    def interrupted(self) -> bool:
        """Return True if this rank must end; the others learn so in the next exchange."""
        return self._interruption() is not None

    def choices(
        self, draft: Draft, shares: Shares, argmax: Mapping[int, int] | None, drawn: Mapping[int, int]
    ) -> Choices | None:
        """Exchange the choices at the nodes; None if a rank was interrupted, which passes None for `argmax`."""
        nodes = [[node for node, by in enumerate(shares.readers) if by[0] == rank] for rank in range(self.ranks.count)]
        walked = [[node for node in of if self._sampling and draft.roles[node] is not Role.EXPLORE] for of in nodes]
        width = max(map(len, map(operator.add, nodes, walked)))
        row = [_REASONS.index(self._interruption()) + _UNREAD * (argmax is None), _checksum(draft)]
        me = self.ranks.rank
        if argmax is not None:
            row += [*(argmax[node] for node in nodes[me]), *(drawn.get(node, -1) for node in walked[me])]
        rows = self.ranks.gather(row + [-1] * (2 + width - len(row)))
        if any(check != row[1] for _, check, *_ in rows):
            raise RankError("the ranks of this run drafted different guesses: give them devices of one kind")
        self._reason = _REASONS[max(state % _UNREAD for state, *_ in rows)]
        if any(state >= _UNREAD for state, *_ in rows):
            return None
        choices = Choices([-1] * len(draft.tokens), [-1] * (self._sampling * len(draft.tokens)))
        for (_, _, *sent), by_argmax, by_draw in zip(rows, nodes, walked, strict=True):
            for node, token in zip(by_argmax, sent, strict=False):
                choices.argmax[node] = token
            for node, token in zip(by_draw, sent[len(by_argmax) :], strict=False):
                choices.drawn[node] = token
        return choices


def refuse_distributions(draft: Draft) -> None:
    """Raise ParamError if tokens alone cannot judge a draft, which `hindrance` cannot know in advance."""
    if draft.entry is not None or any(q is not None for q in draft.q or ()):
        raise ParamError("guesses with a distribution or hidden states are not split over ranks: decode without ranks")


def _checksum(draft: Draft) -> int:
    return zlib.crc32(array("q", (*draft.tokens, *draft.parents, *draft.roles)).tobytes()) & 0x7FFFFFFF
