"""The acceptance rule where the target's numbers are on a device, for which the host waits whenever it wants one.

All that the walk may ask is worked out there beforehand, at every node, whether the walk will come by or not. Then it
is fetched in one copy, and with it the draft, if the device was still writing it. What is accepted is what `accept`
would have accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch

from . import accept
from .model.download import fetch
from .model.queued_tree import Parents, QueuedTree, deepest, depths_on
from .model.upload import upload
from .queued import Proposal, QueuedDraft
from .ranking import checked, likeliest_rows, ranked
from .sampling import Draws, Sampler, drawn_rows
from .tree import closure, depths
from .types import Draft, Role, Verdict

Guess = Callable[[torch.Tensor], torch.Tensor]  # (H,) hidden state -> ids that a method's heads guess behind it
_LONGER = 1e6  # more than any path's logarithm: a path that is longer by a token counts more
Walked = tuple[tuple[int, ...], tuple[int, ...]]  # the accepted path and the tokens to commit


class Rule(Protocol):
    """One of the rules, its numbers queued on the device."""

    numbers: Sequence[torch.Tensor]

    def last(self, draft: Draft, likeliest: torch.Tensor) -> torch.Tensor:  # (T,) -> (1,)
        """The node at which the accepted path ends, on the device; `likeliest` are the likeliest tokens."""
        ...

    def walk(self, draft: Draft, argmax: list[int], numbers: Sequence[Sequence[float]]) -> Walked:
        """Walk through the tree, with the numbers that were fetched."""
        ...


def decide(
    proposal: Proposal,
    logits: torch.Tensor,  # (T, V)
    hidden: torch.Tensor,  # (T, H)
    rule: Rule,
    guess: Guess | None,
    fit: Callable[[Draft], Draft],
    count: int = 0,
) -> tuple[Draft, Verdict]:
    """Have a draft judged, and the next guesses made of the hidden state where it ends; wait once.

    `fit` says of a draft that has just become known which of its nodes may be accepted; `count`, how many of the
    likeliest tokens at every node the method is to see.
    """
    likeliest, faults = likeliest_rows(logits)
    guesses: tuple[torch.Tensor, ...] = ()
    if guess is not None:
        assert isinstance(proposal, Draft)
        guesses = (guess(hidden.index_select(0, rule.last(proposal, likeliest))[0]),)
    drafted = proposal.numbers if isinstance(proposal, QueuedDraft) else ()
    best = (*ranked(logits, count).unbind(),) if count else ()
    found = fetch(likeliest, faults, *rule.numbers, *best, *guesses, *drafted)
    argmax, rest = checked(found[0], found[1]), found[2:]
    judged, rest = rest[: len(rule.numbers)], rest[len(rule.numbers) :]
    rows, rest = [[int(token) for token in row] for row in rest[: len(best)]], rest[len(best) :]
    draft = fit(proposal.finish(rest)) if isinstance(proposal, QueuedDraft) else proposal
    path, emitted = rule.walk(draft, argmax, judged)
    said = tuple(map(int, rest[0])) if guesses else ()
    return draft, Verdict(path, emitted, tuple(argmax[: len(draft.tokens)]), said, rows)


class Greedy:
    """The likeliest token at every node."""

    numbers: Sequence[torch.Tensor] = ()

    def last(self, draft: Draft, likeliest: torch.Tensor) -> torch.Tensor:
        """Where the likeliest tokens lead."""
        return _followed(draft, likeliest)

    def walk(self, draft: Draft, argmax: list[int], numbers: Sequence[Sequence[float]]) -> Walked:
        """Follow the likeliest tokens."""
        return accept.walk(draft, accept.greedy(argmax))


class Sampled:
    """Draws from the target's distribution, and Leviathan's test where guesses were sampled."""

    def __init__(self, proposal: Proposal, p: torch.Tensor, draws: Draws, position: int) -> None:  # (T, V)
        self._draws = draws
        goals = _goals(proposal.parents, draws, position, p.device)
        self._drawn, faults = drawn_rows(p, goals)
        numbers = [self._drawn, faults]
        self._tested = list[list[int]]()  # nodes that were sampled: the first ones of their parents, the second ones...
        left: dict[int, torch.Tensor] = {}  # of p at a parent, once the guesses so far were rejected: (V,)
        for nodes, above in _turns(proposal):
            base = torch.stack([left[parent] if parent in left else p[parent] for parent in above])
            q = torch.stack([_q(proposal, node) for node in nodes]).to(p.device)
            tokens = _tokens(proposal, nodes, p.device)
            rest = accept.residual(base, q)
            left |= dict(zip(above, rest, strict=True))
            at = upload(torch.tensor(above), p.device)
            redrawn, faults = drawn_rows(rest, goals.index_select(0, at))
            self._tested.append(nodes)
            pairs = (each.gather(1, tokens[:, None])[:, 0] for each in (base, q))
            numbers += [*pairs, redrawn, faults]
        self.numbers: Sequence[torch.Tensor] = numbers

    def last(self, draft: Draft, likeliest: torch.Tensor) -> torch.Tensor:
        """Where the draws lead, if no guess was sampled."""
        assert not self._tested
        return _followed(draft, self._drawn)

    def walk(self, draft: Draft, argmax: list[int], numbers: Sequence[Sequence[float]]) -> Walked:
        """Test the sampled guesses; follow the draws."""
        drawn, tests = checked(numbers[0], numbers[1]), dict[int, tuple[float, float, int]]()
        for turn, nodes in enumerate(self._tested):
            ours, theirs, redrawn, faults = numbers[2 + 4 * turn : 6 + 4 * turn]
            tests |= dict(zip(nodes, zip(ours, theirs, checked(redrawn, faults), strict=True), strict=True))

        def choose(node: int, depth: int, children: Sequence[int]) -> int:
            token = drawn[node]
            for child in children:
                if child in tests:
                    ours, theirs, redrawn = tests[child]
                    if self._draws.fresh() * theirs < ours:
                        return draft.tokens[child]
                    token = redrawn
            return token

        return accept.walk(draft, choose)


class Typical:
    """Acceptance of what the target finds likely enough."""

    def __init__(self, draft: Draft, p: torch.Tensor, draws: Draws, position: int, bounds: tuple[float, float]) -> None:
        goals = _goals(draft.parents, draws, position, p.device)
        guesses = [role is Role.VERIFY for role in draft.roles]
        tree = upload(torch.tensor([[max(0, parent) for parent in draft.parents], draft.tokens, guesses]), p.device)
        shares = accept.typical_shares(p, tree[0], tree[1], *bounds)
        self._shares = torch.where(tree[2] > 0, shares, 0.0)
        self.numbers: Sequence[torch.Tensor] = (self._shares, *drawn_rows(p, goals))

    def last(self, draft: Draft, likeliest: torch.Tensor) -> torch.Tensor:
        """The end of the longest path, of equally long ones the most probable."""
        seen = upload(torch.from_numpy(closure(draft.parents).copy()), self._shares.device)
        logs = self._shares.double().log()
        logs[0].fill_(0.0)
        ways = torch.where(seen, logs, 0.0).sum(1)  # -inf where a guess on the way is not typical
        deep = upload(torch.tensor(depths(draft.parents), dtype=torch.float64), ways.device)
        return (ways.isfinite() * (ways + _LONGER * (deep + 1))).argmax(keepdim=True)

    def walk(self, draft: Draft, argmax: list[int], numbers: Sequence[Sequence[float]]) -> Walked:
        """Take the longest path, and the draw behind it."""
        shares, drawn = numbers[0], checked(numbers[1], numbers[2])
        path = accept.longest(draft, {node: share for node, share in enumerate(shares) if node})
        return path, (*(draft.tokens[node] for node in path[1:]), drawn[path[-1]])


def rule(
    proposal: Proposal, logits: torch.Tensor, sampler: Sampler, position: int, typical: tuple[float, float] | None
) -> Rule:
    """The rule that a run asks for; `position` is that of the first new token."""
    if sampler.sampling.greedy:
        return Greedy()
    p = sampler.probabilities(logits)
    if typical is not None:
        assert isinstance(proposal, Draft)
        return Typical(proposal, p, sampler.draws, position, typical)
    return Sampled(proposal, p, sampler.draws, position)


def _goals(parents: Parents, draws: Draws, position: int, device: torch.device) -> torch.Tensor:  # (T,)
    """The number of the seed at every node's place."""
    uniforms = [draws.at(position + depth) for depth in range(deepest(parents) + 1)]
    return upload(torch.tensor(uniforms, dtype=torch.float64), device).index_select(0, depths_on(parents, device))


def _followed(draft: Draft, choices: torch.Tensor) -> torch.Tensor:  # (T,) -> (1,)
    """The node at which a walk ends that follows these choices. Of nodes with equal paths it is the last one."""
    device, guesses = choices.device, [role is Role.VERIFY for role in draft.roles]
    above = [max(0, parent) for parent in draft.parents]
    tree = upload(torch.tensor([above, draft.tokens, guesses, depths(draft.parents)]), device)
    wrong = (choices.index_select(0, tree[0]) != tree[1]) | (tree[2] == 0)
    wrong[0].fill_(False)
    seen = upload(torch.from_numpy(closure(draft.parents).copy()), device)
    reached = ~(seen & wrong).any(1)
    order = tree[3] * len(above) + torch.arange(len(above), device=device)  # no two are equal
    return torch.where(reached, order, -1).argmax(keepdim=True)


def _turns(proposal: Proposal) -> list[tuple[list[int], list[int]]]:
    """The nodes that were sampled, and the nodes behind which they are tested: those tested first there, second, ...

    Nodes with equal paths are one place: the children of all are tested behind the first of them, as in a walk.
    """
    q = proposal.q or ()
    if isinstance(proposal, QueuedDraft):
        nodes, parents = [node for node, row in enumerate(q) if row is not None], proposal.parents
        assert not (nodes and isinstance(parents, QueuedTree)), "who drew it must know behind which guess"
        return [(nodes, [node - 1 for node in nodes])] if nodes else []
    below = accept.guesses_below(proposal)
    turns, places = list[tuple[list[int], list[int]]](), [[0]] if any(row is not None for row in q) else []
    for here in places:  # grows meanwhile
        children = [child for node in here for child in below.get(node, ())]
        for turn, child in enumerate(child for child in children if q[child] is not None):
            if turn == len(turns):
                turns.append(([], []))
            turns[turn][0].append(child)
            turns[turn][1].append(here[0])
        tokens = dict.fromkeys(proposal.tokens[child] for child in children)
        places += [[child for child in children if proposal.tokens[child] == token] for token in tokens]
    return turns


def _q(proposal: Proposal, node: int) -> torch.Tensor:
    assert proposal.q is not None
    q = proposal.q[node]
    assert q is not None
    return q


def _tokens(proposal: Proposal, nodes: Sequence[int], device: torch.device) -> torch.Tensor:  # (n,)
    if isinstance(proposal, QueuedDraft):
        return proposal.ids.index_select(0, upload(torch.tensor(nodes), device))
    return upload(torch.tensor([proposal.tokens[node] for node in nodes]), device)
