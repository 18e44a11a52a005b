"""The acceptance rule: it walks a verified tree and decides which tokens are committed.

At every node the target chooses a token x: the likeliest one, or a sample from p. If a child has the token x, the walk
continues there; otherwise x is committed, as correction or bonus, and the walk ends. So the output has the target's
distribution, whatever the tree holds. Children that were *sampled* from a distribution q are tested first, by
Leviathan's rule, which accepts them more often than comparing them with x: child by child, each rejection leaving the
residual max(p - q, 0) to the next.

`typical` is another rule, on request only: it accepts tokens that the target finds likely enough. It accepts more
guesses, but the output no longer has the target's distribution.

Nodes with equal paths (disjoint entries of an n-gram pool) are walked together: they are one place in the text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import torch

from .sampling import Draws, draw
from .tree import path_to
from .types import Draft, Role

Choose = Callable[[int, int, Sequence[int]], int]  # (node, its depth, its children) -> the token that follows


def walk(draft: Draft, choose: Choose) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Follow the target's choices through the tree: the accepted path and the tokens to commit."""
    children = guesses_below(draft)
    here, emitted = [0], list[int]()
    while True:
        below = [child for node in here for child in children.get(node, ())]
        token = choose(here[0], len(emitted), below)
        emitted.append(token)
        reached = [child for child in below if draft.tokens[child] == token]
        if not reached:
            return path_to(draft.parents, here[0]), tuple(emitted)
        here = reached


def guesses_below(draft: Draft) -> dict[int, list[int]]:
    """The guesses that hang off each node."""
    children: dict[int, list[int]] = {}
    for node, role in enumerate(draft.roles):
        if role is Role.VERIFY:
            children.setdefault(draft.parents[node], []).append(node)
    return children


def greedy(argmax: Sequence[int] | Mapping[int, int]) -> Choose:
    """Take the likeliest token at every node."""
    return lambda node, depth, children: argmax[node]


def sampled(draft: Draft, probabilities: Callable[[int], torch.Tensor], draws: Draws, position: int) -> Choose:
    """Sample every token from the target's distribution; `position` is that of the first new token."""

    def choose(node: int, depth: int, children: Sequence[int]) -> int:
        p = probabilities(node)
        for child in children:
            q = draft.q[child] if draft.q is not None else None
            if q is None:
                continue
            token = draft.tokens[child]
            if draws.fresh() * float(q[token]) < float(p[token]):
                return token
            p = residual(p, q.to(p.device))  # a drafter may work on a device of its own
        return draw(p, draws.at(position + depth))

    return choose


def typical(
    draft: Draft,
    probabilities: Callable[[list[int]], torch.Tensor],
    draws: Draws,
    position: int,
    epsilon: float,
    delta: float,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Accept the longest path of typical tokens, and draw one more behind it: the path and the tokens to commit.

    A token is typical where p(token) > min(epsilon, delta * exp(-H(p))): where it is likely, or where so many tokens
    may follow that none is. `probabilities` returns the target's p at some nodes, (n, V).
    """
    guesses = [node for node, role in enumerate(draft.roles) if role is Role.VERIFY]
    path: tuple[int, ...] = (0,)
    if guesses:
        inner = list(dict.fromkeys(draft.parents[node] for node in guesses))
        place = {node: row for row, node in enumerate(inner)}
        rows = torch.tensor([[place[draft.parents[node]], draft.tokens[node]] for node in guesses])
        shares = typical_shares(probabilities(inner), rows[:, 0], rows[:, 1], epsilon, delta)
        path = longest(draft, dict(zip(guesses, shares.tolist(), strict=True)))
    token = draw(probabilities([path[-1]])[0], draws.at(position + len(path) - 1))
    return path, (*(draft.tokens[node] for node in path[1:]), token)


def typical_shares(
    p: torch.Tensor, rows: torch.Tensor, tokens: torch.Tensor, epsilon: float, delta: float
) -> torch.Tensor:  # (R, V), (n,), (n,) -> (n,)
    """The probabilities of guesses, each in a row of p, and 0 for those that are not typical there."""
    least = (delta * torch.exp(-torch.special.entr(p).sum(-1))).clamp_max(epsilon)
    shares = p[rows, tokens]
    return torch.where(shares > least[rows], shares, 0.0)


def longest(draft: Draft, shares: Mapping[int, float]) -> tuple[int, ...]:
    """The longest path of guesses whose shares are positive.

    Of paths equally long the most probable counts, then the one whose last node is the lowest.
    """
    reached = {0: (0, 0.0)}  # node -> its depth, and the logarithm of its path's probability
    for node, share in shares.items():
        above = reached.get(draft.parents[node])
        if share > 0.0 and above is not None:
            reached[node] = (above[0] + 1, above[1] + math.log(share))
    return path_to(draft.parents, max(reached, key=lambda node: (*reached[node], -node)))


def residual(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:  # (..., V), (..., V) -> (..., V) summing to one
    """The distribution of the next try after a guess from q was rejected; p itself where rounding leaves no mass."""
    left = (p / p.sum(-1, keepdim=True) - q).clamp_min(0.0)
    mass = left.sum(-1, keepdim=True)
    return torch.where(mass > 0.0, left / mass, p)
