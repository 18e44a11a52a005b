"""The acceptance rule where the target's numbers are on a device, for which the host waits whenever it wants one.

All that the walk may ask is worked out there beforehand, at every node, whether the walk will come by or not. Then it
is fetched in one copy, and with it the draft, if the device was still writing it. What is accepted is what `accept`
would have accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import torch

from . import accept
from .model.download import fetch
from .model.queued_tree import QueuedTree, closure_on, deepest, depths_on
from .model.upload import upload
from .queued import Proposal, QueuedDraft
from .ranking import checked, likeliest_rows, ranked
from .sampling import Draws, Sampler, Sampling, drawn_rows, probabilities
from .tree import depths
from .types import Draft, Role, Verdict

if TYPE_CHECKING:
    from .model.captured import Judged, Outputs

Guess = Callable[[torch.Tensor], torch.Tensor]  # (H,) hidden state -> ids that a method's heads guess behind it
_LONGER = 1e6  # more than any path's logarithm: a path that is longer by a token counts more
Walked = tuple[tuple[int, ...], tuple[int, ...]]  # the accepted path and the tokens to commit


class Nodes(Protocol):
    """What is known of a step's nodes where its logits are, (T,) each."""

    @property
    def ids(self) -> torch.Tensor:
        """Their tokens."""
        ...

    @property
    def above(self) -> torch.Tensor:
        """Their parents, and the root itself."""
        ...

    @property
    def guesses(self) -> torch.Tensor:
        """1 for nodes that may be accepted, else 0."""
        ...

    @property
    def depths(self) -> torch.Tensor:
        """Their distances from the root."""
        ...

    @property
    def goals(self) -> torch.Tensor:
        """The numbers of the seed at their places."""
        ...

    @property
    def seen(self) -> torch.Tensor:  # (T, T)
        """Each one's ancestors, and itself."""
        ...


class Rule(Protocol):
    """One of the rules."""

    key: Hashable  # equal for rules that want the same of the device; None: no other wants it
    uniforms: Sequence[float]  # the numbers of the seed, by depth

    def numbers(self, logits: torch.Tensor, nodes: Nodes) -> Outputs:  # (T, V)
        """All that a walk may ask, worked out on the device."""
        ...

    def last(self, nodes: Nodes, likeliest: torch.Tensor, numbers: Outputs) -> torch.Tensor:  # (T,) -> (1,)
        """The node at which the accepted path ends, on the device; `likeliest` are the likeliest tokens."""
        ...

    def walk(self, draft: Draft, argmax: list[int], numbers: Sequence[Sequence[float]]) -> Walked:
        """Walk through the tree, with the numbers that were fetched."""
        ...


class Judge:
    """What the host will want to know of a step's logits, and what it decides by that."""

    def __init__(
        self, proposal: Proposal, rule: Rule, guess: Guess | None = None, guess_key: Hashable = None, count: int = 0
    ) -> None:
        """`count` of the likeliest tokens at every node are the method's to see; `guess_key`: as in `Method`."""
        self._proposal, self._rule, self._guess, self._count = proposal, rule, guess, count
        self.uniforms: Sequence[float] = rule.uniforms
        roles = proposal.roles if isinstance(proposal, Draft) else ()
        self.guesses: Sequence[bool] = [role is Role.VERIFY for role in roles]
        recordable = rule.key is not None and (guess is None or guess_key is not None)
        at = proposal.fixed if isinstance(proposal, QueuedDraft) else None
        self.fixed = at is not None
        drafted = proposal.numbers if isinstance(proposal, QueuedDraft) else ()
        # Of a draft that the device was still writing, among what is worked out with a pass, or beside that.
        self._inside = drafted if self.fixed else ()
        self._beside = drafted[len(self._inside) :]
        self.key: Hashable = (rule.key, guess_key, count, at) if recordable else None

    def numbers(self, logits: torch.Tensor, hidden: torch.Tensor, nodes: Nodes) -> Outputs:  # (T, V), (T, H)
        """Work all of it out on the device."""
        likeliest, faults = likeliest_rows(logits)
        judged = self._rule.numbers(logits, nodes)
        best = (ranked(logits, self._count),) if self._count else ()
        guesses: Outputs = ()
        if self._guess is not None:
            guesses = (self._guess(hidden.index_select(0, self._rule.last(nodes, likeliest, judged))[0]),)
        return *self._inside, likeliest, faults, *judged, *best, *guesses

    def decide(
        self, logits: torch.Tensor, hidden: torch.Tensor, fit: Callable[[Draft], Draft]
    ) -> tuple[Draft, Verdict]:
        """Have the draft judged, and the next guesses made of the hidden state where it ends; wait once.

        `fit` says of a draft that has just become known which of its nodes may be accepted.
        """
        numbers = self.numbers(logits, hidden, Uploaded(self._proposal, self.uniforms, logits.device))
        return self._decided(fetch(*numbers, *self._beside), fit)

    def decide_by(self, judged: Judged, fit: Callable[[Draft], Draft]) -> tuple[Draft, Verdict]:
        """Decide by numbers that have come with the pass."""
        flat, *beside = fetch(judged.flat, *self._beside)
        return self._decided([*judged.split(flat), *beside], fit)

    def likeliest(self, judged: Judged) -> list[int]:
        """Fetch the likeliest token at every node."""
        size, (ids, faults, *_) = len(self._proposal.parents), judged.split(*fetch(judged.flat))
        return checked(ids[:size], faults[:size])

    def _decided(self, fetched: list[list[float]], fit: Callable[[Draft], Draft]) -> tuple[Draft, Verdict]:
        """Decide by the numbers, of which there may be more rows than there are nodes."""
        size, first, last = len(self._proposal.parents), len(self._inside), len(fetched) - len(self._beside)
        drafted, numbers = fetched[:first] or fetched[last:], fetched[first:last]
        argmax, rest = checked(numbers[0][:size], numbers[1][:size]), numbers[2:]
        guesses = tuple(map(int, rest[-1])) if self._guess is not None else ()
        rest = rest[: len(rest) - (self._guess is not None)]
        best = [*map(int, rest[-1])] if self._count else []
        rest = rest[: len(rest) - bool(self._count)]
        draft = fit(self._proposal.finish(drafted)) if isinstance(self._proposal, QueuedDraft) else self._proposal
        path, emitted = self._rule.walk(draft, argmax, rest)
        wide = len(best) // len(numbers[0])
        rows = [best[node * wide : (node + 1) * wide] for node in range(len(draft.tokens) if wide else 0)]
        return draft, Verdict(path, emitted, tuple(argmax[: len(draft.tokens)]), guesses, rows)


class Greedy:
    """The likeliest token at every node."""

    key: Hashable = "greedy"
    uniforms: Sequence[float] = ()

    def numbers(self, logits: torch.Tensor, nodes: Nodes) -> Outputs:
        """Nothing but the likeliest tokens."""
        return ()

    def last(self, nodes: Nodes, likeliest: torch.Tensor, numbers: Outputs) -> torch.Tensor:
        """Where the likeliest tokens lead."""
        return _followed(nodes, likeliest)

    def walk(self, draft: Draft, argmax: list[int], numbers: Sequence[Sequence[float]]) -> Walked:
        """Follow the likeliest tokens."""
        return accept.walk(draft, accept.greedy(argmax))


class Sampled:
    """Draws from the target's distribution, and Leviathan's test where guesses were sampled."""

    def __init__(self, proposal: Proposal, sampling: Sampling, draws: Draws, position: int) -> None:
        self._sampling, self._draws = sampling, draws
        self.uniforms: Sequence[float] = _uniforms(proposal, draws, position)
        # Nodes that were sampled, the first ones of their parents, the second ones, ...; their parents; and their q.
        self._tested = [
            (nodes, above, [_q(proposal, node) for node in nodes]) for nodes, above in _turns(proposal) if nodes
        ]
        self.key: Hashable = _shaped_as(sampling)
        if self._tested:
            fixed = proposal.fixed if isinstance(proposal, QueuedDraft) else None
            self.key = None if fixed is None else (self.key, len(proposal.parents))

    def numbers(self, logits: torch.Tensor, nodes: Nodes) -> Outputs:
        """The draws, and for the test of each guess the two probabilities and what is drawn if it fails."""
        return self.numbers_of(probabilities(logits, self._sampling), nodes)

    def numbers_of(self, p: torch.Tensor, nodes: Nodes) -> Outputs:  # (T, V)
        """The same of the distributions themselves."""
        goals = nodes.goals
        numbers = [*drawn_rows(p, goals)]
        left: dict[int, torch.Tensor] = {}  # of p at a parent, once the guesses so far were rejected: (V,)
        for guesses, above, drawn_from in self._tested:
            base = torch.stack([left[parent] if parent in left else p[parent] for parent in above])
            q = torch.stack(drawn_from).to(p.device)
            tokens = torch.stack([nodes.ids[node] for node in guesses])
            rest = accept.residual(base, q)
            left |= dict(zip(above, rest, strict=True))
            redrawn = drawn_rows(rest, torch.stack([goals[parent] for parent in above]))
            numbers += [*(each.gather(1, tokens[:, None])[:, 0] for each in (base, q)), *redrawn]
        return tuple(numbers)

    def last(self, nodes: Nodes, likeliest: torch.Tensor, numbers: Outputs) -> torch.Tensor:
        """Where the draws lead, if no guess was sampled."""
        assert not self._tested
        return _followed(nodes, numbers[0])

    def walk(self, draft: Draft, argmax: list[int], numbers: Sequence[Sequence[float]]) -> Walked:
        """Test the sampled guesses; follow the draws."""
        size = len(argmax) or None
        drawn, tests = checked(numbers[0][:size], numbers[1][:size]), dict[int, tuple[float, float, int]]()
        for turn, (nodes, _, _) in enumerate(self._tested):
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

    def __init__(
        self, proposal: Proposal, sampling: Sampling, draws: Draws, position: int, bounds: tuple[float, float]
    ) -> None:
        self._sampling, self._bounds = sampling, bounds
        self.uniforms: Sequence[float] = _uniforms(proposal, draws, position)
        self.key: Hashable = (_shaped_as(sampling), bounds)

    def numbers(self, logits: torch.Tensor, nodes: Nodes) -> Outputs:
        """The probabilities of guesses that are typical, and the draws."""
        p = probabilities(logits, self._sampling)
        shares = accept.typical_shares(p, nodes.above, nodes.ids, *self._bounds)
        return torch.where(nodes.guesses > 0, shares, 0.0), *drawn_rows(p, nodes.goals)

    def last(self, nodes: Nodes, likeliest: torch.Tensor, numbers: Outputs) -> torch.Tensor:
        """The end of the longest path, of equally long ones the most probable."""
        logs = numbers[0].double().log()
        logs[0].fill_(0.0)
        ways = torch.where(nodes.seen, logs, 0.0).sum(1)  # -inf where a guess on the way is not typical
        return torch.where(ways.isfinite(), ways + _LONGER * (nodes.depths + 1), 0.0).argmax(keepdim=True)

    def walk(self, draft: Draft, argmax: list[int], numbers: Sequence[Sequence[float]]) -> Walked:
        """Take the longest path, and the draw behind it."""
        size = len(draft.tokens)
        shares, drawn = numbers[0][:size], checked(numbers[1][:size], numbers[2][:size])
        path = accept.longest(draft, {node: share for node, share in enumerate(shares) if node})
        return path, (*(draft.tokens[node] for node in path[1:]), drawn[path[-1]])


def rule(proposal: Proposal, sampler: Sampler, position: int, typical: tuple[float, float] | None) -> Rule:
    """The rule that a run asks for; `position` is that of the first new token."""
    if sampler.sampling.greedy:
        return Greedy()
    if typical is not None:
        return Typical(proposal, sampler.sampling, sampler.draws, position, typical)
    return Sampled(proposal, sampler.sampling, sampler.draws, position)


class Uploaded:
    """The nodes of a step, of which the device is told what is asked for."""

    def __init__(self, proposal: Proposal, uniforms: Sequence[float], device: torch.device) -> None:
        self._proposal, self._uniforms, self._device = proposal, uniforms, device

    @cached_property
    def _tree(self) -> torch.Tensor:  # (3, T)
        assert isinstance(self._proposal, Draft)
        above = [max(0, parent) for parent in self._proposal.parents]
        guesses = [role is Role.VERIFY for role in self._proposal.roles]
        return upload(torch.tensor([above, self._proposal.tokens, guesses]), self._device)

    @property
    def ids(self) -> torch.Tensor:
        """As in `Nodes`, and so are the others."""
        return self._proposal.ids if isinstance(self._proposal, QueuedDraft) else self._tree[1]

    @property
    def above(self) -> torch.Tensor:
        """Parents."""
        return self._tree[0]

    @property
    def guesses(self) -> torch.Tensor:
        """What may be accepted."""
        return self._tree[2]

    @property
    def depths(self) -> torch.Tensor:
        """Depths."""
        return depths_on(self._proposal.parents, self._device)

    @property
    def goals(self) -> torch.Tensor:
        """Numbers of the seed."""
        parents, uniforms = self._proposal.parents, self._uniforms
        if isinstance(parents, tuple):
            uniforms = [uniforms[depth] for depth in depths(parents)]
        numbers = upload(torch.tensor(uniforms, dtype=torch.float64), self._device)
        return numbers if isinstance(parents, tuple) else numbers.index_select(0, self.depths)

    @property
    def seen(self) -> torch.Tensor:
        """Ancestors."""
        return closure_on(self._proposal.parents, self._device)


def _shaped_as(sampling: Sampling) -> Sampling:
    """What of the settings the device goes by."""
    return replace(sampling, seed=0)


def _uniforms(proposal: Proposal, draws: Draws, position: int) -> list[float]:
    """The number of the seed at every depth."""
    return [draws.at(position + depth) for depth in range(deepest(proposal.parents) + 1)]


def _followed(nodes: Nodes, choices: torch.Tensor) -> torch.Tensor:  # (T,) -> (1,)
    """The node at which a walk ends that follows these choices. Of nodes with equal paths it is the last one."""
    wrong = (choices.index_select(0, nodes.above) != nodes.ids) | (nodes.guesses == 0)
    wrong[0].fill_(False)
    reached = ~(nodes.seen & wrong).any(1)
    size = len(wrong)
    order = nodes.depths * size + torch.arange(size, device=wrong.device)  # no two are equal
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
