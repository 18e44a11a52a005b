"""The acceptance rules: which guesses of a step are committed, and which token follows them.

A rule walks the verified tree. At every position it chooses the token that follows: the target's likeliest token, or a
sample from p. If a guess has this token, the walk continues there. Otherwise the token is committed, as correction or
bonus, and the walk ends. So the output has the target's distribution, whatever the tree holds. Guesses that were
*sampled* from a distribution q are tested first, by Leviathan's rule, which accepts them more often than comparing them
with a sample would: guess by guess, each rejection leaving the residual max(p - q, 0) to the next.

Typical acceptance is another rule, on request only: it accepts tokens that the target finds likely enough. It accepts
more guesses, but the output no longer has the target's distribution.

Nodes with equal paths (disjoint entries of an n-gram pool) are one position in the text, and are walked together.

A rule gets its numbers from `TargetAnswers`. `OneByOne` computes them on a CPU when a walk asks for them;
`accept_at_once.Fetched` holds what a device computed for all nodes. The ranks of a parallel run send each other the
tokens that their rules chose (`parallel.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from .model.queued_tree import closure_on, depths_on
from .sampling import Draws, Sampling, draw
from .tree import path_to
from .types import Draft, Role

Choose = Callable[[int, int, Sequence[int]], int]  # (node, its depth, the guesses there) -> the token that follows
Accepted = tuple[tuple[int, ...], tuple[int, ...]]  # the accepted path, and the tokens to commit


class Remainder(Protocol):
    """The target's distribution at a node; after rejected guesses, what they leave of it: the residual."""

    def odds(self, guess: int) -> tuple[float, float]:
        """Return p of a guess's token here, and its q in the distribution that it was sampled from."""
        ...

    def reject(self, guess: int) -> None:
        """Replace the distribution by the residual after this guess."""
        ...

    def draw(self) -> int:
        """Draw a token with the uniform number of its position."""
        ...


class TargetAnswers(Protocol):
    """The target's outputs at the nodes of a tree."""

    @property
    def argmax(self) -> Sequence[int]:
        """Return the likeliest token at every node."""
        ...

    def at(self, node: int, depth: int) -> Remainder:
        """Return the target's distribution at a node."""
        ...

    def longest(self) -> int:
        """Return the last node of the longest path of typical tokens."""
        ...


@dataclass(frozen=True, slots=True)
class AcceptanceRule:
    """The rule by which a step's guesses are accepted."""

    sampling: Sampling
    draws: Draws
    position: int  # of the first new token among the run's uniform numbers
    typical: tuple[float, float] | None = None  # epsilon and delta of typical acceptance
    tested: dict[int, float] = field(default_factory=dict)  # by node: the uniform number that its guess was tested with

    def uniform(self, depth: int) -> float:
        """Return the uniform number for the token after a node of that depth."""
        return self.draws.at(self.position + depth)

    def accept(self, draft: Draft, answers: TargetAnswers) -> Accepted:
        """Decide which path is accepted and which tokens are committed."""
        if self.sampling.greedy:
            return walk(draft, greedy(answers.argmax))
        if self.typical is None:
            return walk(draft, sampled(draft, answers, self.draws, self.tested))
        path = path_to(draft.parents, answers.longest())
        token = answers.at(path[-1], len(path) - 1).draw()
        return path, (*(draft.tokens[node] for node in path[1:]), token)


def walk(draft: Draft, choose: Choose) -> Accepted:
    """Follow the chosen tokens through the tree."""
    children, nodes, emitted = _children(draft), [0], list[int]()
    while True:
        guesses = [guess for node in nodes for guess in children.get(node, ())]
        token = choose(nodes[0], len(emitted), guesses)
        emitted.append(token)
        reached = _by_token(draft, guesses).get(token)
        if reached is None:
            return path_to(draft.parents, nodes[0]), tuple(emitted)
        nodes = reached


def positions(draft: Draft) -> Iterator[tuple[int, list[int]]]:
    """Yield every position that a walk can reach: the node at which it chooses, and the guesses there."""
    children, reachable = _children(draft), [[0]]
    for nodes in reachable:
        guesses = [guess for node in nodes for guess in children.get(node, ())]
        yield nodes[0], guesses
        reachable += _by_token(draft, guesses).values()


def _children(draft: Draft) -> dict[int, list[int]]:
    """Map each node to its child guesses."""
    children: dict[int, list[int]] = {}
    for node, role in enumerate(draft.roles):
        if role is Role.VERIFY:
            children.setdefault(draft.parents[node], []).append(node)
    return children


def _by_token(draft: Draft, guesses: Sequence[int]) -> dict[int, list[int]]:
    """Group the guesses of a position by token: equal tokens lead to one position."""
    groups: dict[int, list[int]] = {}
    for guess in guesses:
        groups.setdefault(draft.tokens[guess], []).append(guess)
    return groups


def greedy(argmax: Sequence[int] | Mapping[int, int]) -> Choose:
    """Choose the likeliest token at every node."""
    return lambda node, depth, guesses: argmax[node]


def sampled(draft: Draft, answers: TargetAnswers, draws: Draws, tested: dict[int, float]) -> Choose:
    """Sample every token from the target's distribution, testing sampled guesses first; fill `tested`."""

    def choose(node: int, depth: int, guesses: Sequence[int]) -> int:
        remainder = answers.at(node, depth)
        for guess in guesses:
            if draft.q is None or draft.q[guess] is None:
                continue
            p, q = remainder.odds(guess)
            tested[guess] = draws.fresh()
            if tested[guess] * q < p:  # with probability min(1, p/q)
                return draft.tokens[guess]
            remainder.reject(guess)
        return remainder.draw()  # from the residual, or from p if nothing was rejected

    return choose


def typical_shares(
    p: torch.Tensor, rows: torch.Tensor, tokens: torch.Tensor, epsilon: float, delta: float
) -> torch.Tensor:  # (R, V), (n,), (n,) -> (n,)
    """Return each token's probability in its row of p, or 0 if it is not typical there.

    A token is typical if p(token) > min(epsilon, delta * exp(-H(p))): if it is likely, or if so many tokens may follow
    that none is.
    """
    least = (delta * torch.exp(-torch.special.entr(p).sum(-1))).clamp_max(epsilon)
    shares = p[rows, tokens]
    return torch.where(shares > least[rows], shares, 0.0)


def longest(logs: torch.Tensor, seen: torch.Tensor, depths: torch.Tensor) -> torch.Tensor:  # (T,), (T, T), (T,)
    """Return the last node, (1,), of the longest path of guesses with finite log-probabilities.

    Ties go to the most probable path, then to the one with the lowest last node.
    """
    logs[0].fill_(0.0)  # the root is not a guess
    products = torch.where(seen, logs, 0.0).sum(1)
    reached = depths.masked_fill(products == -torch.inf, -1)
    return products.masked_fill(reached != reached.amax(), -torch.inf).argmax(keepdim=True)


def residual(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:  # (..., V), (..., V) -> (..., V) summing to one
    """Return max(p - q, 0), normalised, which is sampled after q's guess was rejected; p if rounding leaves no mass."""
    excess = (p / p.sum(-1, keepdim=True) - q).clamp_min(0.0)
    mass = excess.sum(-1, keepdim=True)
    return torch.where(mass > 0.0, excess / mass, p)


class OneByOne:
    """Answers on a CPU, which computes a distribution when a walk reaches its node."""

    def __init__(
        self,
        draft: Draft,
        rule: AcceptanceRule,
        probabilities: Callable[[Any], torch.Tensor],
        argmax: Sequence[int] = (),
    ) -> None:
        """`probabilities` returns the target's p at a node, (V,), or at a list of nodes, (n, V)."""
        self.argmax, self.probabilities, self._draft, self._rule = argmax, probabilities, draft, rule

    def at(self, node: int, depth: int) -> Remainder:
        """See `TargetAnswers.at`."""
        return _Distribution(self._draft, self.probabilities(node), lambda: self._rule.uniform(depth))

    def longest(self) -> int:
        """See `TargetAnswers.longest`."""
        draft = self._draft
        guesses = [node for node, role in enumerate(draft.roles) if role is Role.VERIFY]
        if not guesses or self._rule.typical is None:
            return 0
        inner = [*dict.fromkeys(draft.parents[node] for node in guesses)]  # a leaf's distribution decides nothing
        row = {node: at for at, node in enumerate(inner)}
        rows = torch.tensor([[row[draft.parents[node]], draft.tokens[node]] for node in guesses])
        logs = torch.full((len(draft.tokens),), -torch.inf, dtype=torch.double)
        shares = typical_shares(self.probabilities(inner), rows[:, 0], rows[:, 1], *self._rule.typical)
        logs[guesses] = shares.double().log()
        return int(longest(logs, closure_on(draft.parents, logs.device), depths_on(draft.parents, logs.device)))


class _Distribution:
    """A `Remainder` that holds the distribution itself."""

    def __init__(self, draft: Draft, p: torch.Tensor, uniform: Callable[[], float]) -> None:
        self._draft, self._p, self._uniform = draft, p, uniform

    def odds(self, guess: int) -> tuple[float, float]:
        token = self._draft.tokens[guess]
        return float(self._p[token]), float(self._q(guess)[token])

    def reject(self, guess: int) -> None:
        self._p = residual(self._p, self._q(guess).to(self._p.device))  # a drafter's device may be another one

    def draw(self) -> int:
        return draw(self._p, self._uniform())

    def _q(self, guess: int) -> torch.Tensor:
        assert self._draft.q is not None
        q = self._draft.q[guess]
        assert q is not None
        return q
