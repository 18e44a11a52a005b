"""Acceptance on a device, where every copy to the host costs a wait.

The device computes all that a rule may need, at every node, whether the walk reaches it or not. One copy fetches it,
together with the draft if the device was still writing that. The rules are those of `accept`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING

import torch

from .accept import AcceptanceRule, Remainder, longest, positions, residual, typical_shares
from .model.download import fetch, fetching
from .model.queued_tree import closure_on, deepest, depths_on
from .model.upload import upload
from .queued import Proposal, QueuedDraft
from .ranking import checked, likeliest_rows, ranked
from .sampling import drawn_rows, probabilities
from .tree import depths
from .types import Draft, Role, Verdict

if TYPE_CHECKING:
    from .model.captured import Judged, StepBuffer
    from .model.graphs import Outputs

_Test = tuple[int, int, torch.Tensor]  # a sampled guess, the node at which it is tested, and its q


class Judge:
    """Judges a step: the device computes numbers from its logits, and the host decides by them."""

    kept: Outputs = ()

    def __init__(
        self,
        proposal: Proposal,
        rule: AcceptanceRule,
        guess: Callable[[torch.Tensor], torch.Tensor] | None = None,
        guess_key: Hashable = None,
        count: int = 0,
    ) -> None:
        """`count`: likeliest tokens that the method needs at every node; `guess` and `guess_key`: as in `Method`."""
        self._proposal, self._rule, self._guess, self._count = proposal, rule, guess, count
        greedy = rule.sampling.greedy
        drawn = range(0 if greedy else deepest(proposal.parents) + 1)
        self.uniforms: Sequence[float] = [rule.uniform(depth) for depth in drawn]
        roles = proposal.roles if isinstance(proposal, Draft) else ()
        self.guesses: Sequence[bool] = [role is Role.VERIFY for role in roles]
        self._tests = [] if greedy or rule.typical is not None else _tests(proposal)
        queued, at = isinstance(proposal, QueuedDraft), proposal.fixed
        self.fixed = queued and at is not None
        drafted = proposal.numbers if isinstance(proposal, QueuedDraft) else ()
        # The numbers of a draft that the device was still writing are fetched with the pass's, or beside them.
        self._inside = drafted if self.fixed else ()
        self._beside = drafted[len(self._inside) :]
        recordable = (guess is None or guess_key is not None) and (at is not None or not self._tests)
        settings = None if greedy else (replace(rule.sampling, seed=0), rule.typical)
        tested = tuple((guess, node) for turn in self._tests for guess, node, _ in turn)
        self.key: Hashable = (settings, tested, guess_key, count, at) if recordable else None

    def numbers(self, logits: torch.Tensor, hidden: torch.Tensor, nodes: StepBuffer | Uploaded) -> Outputs:
        """Compute on the device what the host decides by; `logits` are (T, V), and `hidden` (T, H)."""
        chosen, faults = likeliest_rows(logits)
        numbers = [*self._inside, chosen, faults]
        end: torch.Tensor | None = None  # the last node of the accepted path
        if not self._rule.sampling.greedy:
            p = probabilities(logits, self._rule.sampling)
            goals = nodes.goals
            drawn = drawn_rows(p, goals)
            chosen = drawn[0]
            numbers += drawn
            if self._rule.typical is not None:
                shares = typical_shares(p, nodes.above, nodes.ids, *self._rule.typical)
                end = longest((shares * nodes.guesses).double().log(), nodes.seen, nodes.depths)
                numbers.append(end)
            numbers += self._tested(p, goals, nodes.ids) if self._tests else ()
        if self._count:
            numbers.append(ranked(logits, self._count))
        if self._guess is not None:
            if end is None:
                assert not self._tests, "the host decides these"
                right = (chosen.index_select(0, nodes.above) == nodes.ids) * nodes.guesses
                end = longest(right.log(), nodes.seen, nodes.depths)
            numbers.append(self._guess(hidden.index_select(0, end)[0]))
        return tuple(numbers)

    def _tested(self, p: torch.Tensor, goals: torch.Tensor, ids: torch.Tensor) -> Iterator[torch.Tensor]:
        """Yield p and q of every sampled guess, and the token, with its fault, that is drawn if it is rejected."""
        residuals: dict[int, torch.Tensor] = {}  # by node, after the guesses so far: (V,)
        for turn in self._tests:
            guesses, at, drawn_from = zip(*turn, strict=True)
            base = torch.stack([residuals[node] if node in residuals else p[node] for node in at])
            q = torch.stack(drawn_from).to(p.device)
            tokens = torch.stack([ids[guess] for guess in guesses])
            rejected = residual(base, q)
            residuals |= dict(zip(at, rejected, strict=True))
            redrawn = drawn_rows(rejected, torch.stack([goals[node] for node in at]))
            yield from (*(each.gather(1, tokens[:, None])[:, 0] for each in (base, q)), *redrawn)

    def decide(
        self, logits: torch.Tensor, hidden: torch.Tensor, fit: Callable[[Draft], Draft]
    ) -> tuple[Draft, Verdict]:
        """Judge the draft, and make the next guesses from the hidden state at the end of its path; wait once.

        `fit` limits what may be accepted of a draft that the device was still writing.
        """
        numbers = self.numbers(logits, hidden, Uploaded(self._proposal, self.uniforms, logits.device))
        return self.decide_by(fetch(*numbers, *self._beside), fit)

    def ask(self, judged: Judged) -> Callable[[], Sequence[Sequence[float]]]:
        """Start to fetch the numbers that the pass computed; return a function that waits for them."""
        fetched = fetching(judged.flat, *self._beside)

        def wait() -> Sequence[Sequence[float]]:
            flat, *beside = fetched()
            return [*judged.split(flat), *beside]

        return wait

    def written(self, judged: Judged) -> torch.Tensor:  # (1,)
        """Return the token that follows the root of a draft without guesses, while only the device knows it."""
        before = 0 if self._rule.sampling.greedy else sum(judged.sizes[:2])
        return judged.flat[before : before + 1].long()

    def decide_by(self, fetched: Sequence[Sequence[float]], fit: Callable[[Draft], Draft]) -> tuple[Draft, Verdict]:
        """Decide by fetched numbers, which may have more rows than there are nodes."""
        size, numbers = len(self._proposal.parents), iter(fetched)
        drafted = [next(numbers) for _ in self._inside]
        ids, faults = next(numbers), next(numbers)
        answers = Fetched(checked(ids[:size], faults[:size]))
        if not self._rule.sampling.greedy:
            answers.drawn = checked(next(numbers)[:size], next(numbers)[:size])
            answers.end = 0 if self._rule.typical is None else int(next(numbers)[0])
            for turn in self._tests:
                p, q = next(numbers), next(numbers)
                odds = zip(p, q, checked(next(numbers), next(numbers)), strict=True)
                answers.tests |= dict(zip((guess for guess, _, _ in turn), odds, strict=True))
        best = [*map(int, next(numbers))] if self._count else []
        guesses = tuple(map(int, next(numbers))) if self._guess is not None else ()
        draft = self._proposal
        if isinstance(draft, QueuedDraft):
            draft = fit(draft.finish(drafted or [*numbers]))
        path, emitted = self._rule.accept(draft, answers)
        nodes, wide = len(draft.tokens), len(best) // len(ids)
        rows = [best[node * wide : (node + 1) * wide] for node in range(nodes if wide else 0)]
        return draft, Verdict(path, emitted, tuple(answers.argmax[:nodes]), guesses, rows, self._rule.tested)


class Fetched:
    """Answers that a device computed at every node."""

    def __init__(self, argmax: Sequence[int]) -> None:
        self.argmax = argmax
        self.drawn: Sequence[int] = ()
        self.end = 0  # the last node of the longest path
        self.tests: dict[int, tuple[float, float, int]] = {}  # by guess: p, q, and the token drawn if it is rejected

    def at(self, node: int, depth: int) -> Remainder:
        """See `TargetAnswers.at`."""
        return _Prepared(self.drawn[node], self.tests)

    def longest(self) -> int:
        """See `TargetAnswers.longest`."""
        return self.end


class _Prepared:
    """A `Remainder` of numbers that have been fetched."""

    def __init__(self, token: int, tests: Mapping[int, tuple[float, float, int]]) -> None:
        self._token, self._tests = token, tests

    def odds(self, guess: int) -> tuple[float, float]:
        p, q, _ = self._tests[guess]
        return p, q

    def reject(self, guess: int) -> None:
        self._token = self._tests[guess][2]

    def draw(self) -> int:
        return self._token


class Uploaded:
    """The nodes of a step, as tensors (T,) that are uploaded when they are used."""

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
        """Return the tokens."""
        return self._proposal.ids if isinstance(self._proposal, QueuedDraft) else self._tree[1]

    @property
    def above(self) -> torch.Tensor:
        """Return the parents; the root is its own."""
        return self._tree[0]

    @property
    def guesses(self) -> torch.Tensor:
        """Return 1 for nodes that may be accepted, else 0."""
        return self._tree[2]

    @property
    def depths(self) -> torch.Tensor:
        """Return the distances from the root."""
        return depths_on(self._proposal.parents, self._device)

    @property
    def goals(self) -> torch.Tensor:
        """Return the uniform numbers for the token after each node."""
        parents, uniforms = self._proposal.parents, self._uniforms
        if isinstance(parents, tuple):
            uniforms = [uniforms[depth] for depth in depths(parents)]
        numbers = upload(torch.tensor(uniforms, dtype=torch.float64), self._device)
        return numbers if isinstance(parents, tuple) else numbers.index_select(0, self.depths)

    @property
    def seen(self) -> torch.Tensor:  # (T, T)
        """Return which nodes each node sees: its ancestors and itself."""
        return closure_on(self._proposal.parents, self._device)


def _tests(proposal: Proposal) -> list[list[_Test]]:
    """Group the tests of sampled guesses by turn: the first at every position, then the second, ..."""
    q = proposal.q or ()
    if all(row is None for row in q):
        return []
    if isinstance(proposal, Draft):
        tested = positions(proposal)
    else:
        assert isinstance(proposal.parents, tuple), "the host knows the parents of sampled guesses"
        tested = ((parent, [node]) for node, parent in enumerate(proposal.parents))  # a chain
    turns = zip_longest(
        *([(guess, node, row) for guess in guesses if (row := q[guess]) is not None] for node, guesses in tested)
    )
    return [[test for test in turn if test is not None] for turn in turns]
