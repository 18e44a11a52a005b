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
from collections.abc import Callable, Sequence

import torch

from .model.upload import upload
from .sampling import Draws, draw, draw_rows
from .tree import depths, path_to
from .types import Draft, Role

Choose = Callable[[int, int, Sequence[int]], int]  # (node, its depth, its children) -> the token that follows


def walk(draft: Draft, choose: Choose) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Follow the target's choices through the tree: the accepted path and the tokens to commit."""
    children: dict[int, list[int]] = {}
    for node, role in enumerate(draft.roles):
        if role is Role.VERIFY:
            children.setdefault(draft.parents[node], []).append(node)
    here, emitted = [0], list[int]()
    while True:
        below = [child for node in here for child in children.get(node, ())]
        token = choose(here[0], len(emitted), below)
        emitted.append(token)
        reached = [child for child in below if draft.tokens[child] == token]
        if not reached:
            return path_to(draft.parents, here[0]), tuple(emitted)
        here = reached


def greedy(argmax: Sequence[int]) -> Choose:
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


def sampled_at_once(draft: Draft, p: torch.Tensor, draws: Draws, position: int) -> Choose:  # (T, V)
    """The same choices, all prepared at once: a device is waited for twice, and once more where a guess is rejected."""
    drawn = draw_rows(p, [draws.at(position + depth) for depth in depths(draft.parents)])
    shares = _shares(draft, p)

    def choose(node: int, depth: int, children: Sequence[int]) -> int:
        left: torch.Tensor | None = None  # of p, once a guess was rejected
        for child in children:
            q = draft.q[child] if draft.q is not None else None
            if q is None:
                continue
            token, q = draft.tokens[child], q.to(p.device)
            ours, theirs = shares[child] if left is None else torch.stack((left[token], q[token])).tolist()
            if draws.fresh() * theirs < ours:
                return token
            left = residual(p[node] if left is None else left, q)
        return drawn[node] if left is None else draw(left, draws.at(position + depth))

    return choose


def _shares(draft: Draft, p: torch.Tensor) -> dict[int, tuple[float, float]]:  # (T, V)
    """p and q of the token of every node that was sampled."""
    sampled = {node: q for node, q in enumerate(draft.q or ()) if q is not None}
    if not sampled:
        return {}
    tokens = [draft.tokens[node] for node in sampled]
    theirs = torch.stack([q[token] for q, token in zip(sampled.values(), tokens, strict=True)]).to(p.device)
    nodes = upload(torch.tensor([[draft.parents[node] for node in sampled], tokens]), p.device)
    pairs = torch.stack((p[nodes[0], nodes[1]], theirs), 1).tolist()
    return {node: (ours, other) for node, (ours, other) in zip(sampled, pairs, strict=True)}


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
    may follow that none is. Of paths equally long the most probable counts, then the one whose last node is the
    lowest. `probabilities` returns the target's p at some nodes, (n, V).
    """
    guesses = [node for node, role in enumerate(draft.roles) if role is Role.VERIFY]
    inner = list(dict.fromkeys(draft.parents[node] for node in guesses))
    reached = {0: (0, 0.0)}  # node -> its depth, and the logarithm of its path's probability
    if guesses:
        p = probabilities(inner)
        least = (delta * torch.exp(-torch.special.entr(p).sum(-1))).clamp_max(epsilon)
        place = {node: row for row, node in enumerate(inner)}
        above_and_tokens = [[place[draft.parents[node]], draft.tokens[node]] for node in guesses]
        rows, tokens = upload(torch.tensor(above_and_tokens).T.contiguous(), p.device)
        shares = p[rows, tokens]
        passes = (shares > least[rows]).to(shares)
        # One wait for the device, whatever is accepted.
        for node, share, passed in zip(guesses, *torch.stack((shares, passes)).tolist(), strict=True):
            above = reached.get(draft.parents[node])
            if passed and above is not None:
                reached[node] = (above[0] + 1, above[1] + math.log(share))
    last = max(reached, key=lambda node: (*reached[node], -node))
    path = path_to(draft.parents, last)
    token = draw(probabilities([last])[0], draws.at(position + len(path) - 1))
    return path, (*(draft.tokens[node] for node in path[1:]), token)


def residual(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:  # (V,), (V,) -> (V,) summing to one
    """The distribution of the next try after a guess from q was rejected; p itself where rounding leaves no mass."""
    left = (p / p.sum() - q).clamp_min(0.0)
    mass = left.sum()
    return torch.where(mass > 0.0, left / mass, p)
