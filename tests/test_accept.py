"""The one acceptance rule: what a walk may emit, and that the distribution of a step is the target's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from decoding.accept import AcceptanceRule, Accepted, OneByOne, greedy, residual, walk
from decoding.accept_at_once import Judge
from decoding.sampling import Draws, Sampling, probabilities
from decoding.tree import Builder, check, depths, path_to, paths
from decoding.types import Draft, Role

WORDS = 4
WARM = Sampling(temperature=1.0)


@st.composite
def drafts(draw: st.DrawFn, explore: bool = True) -> Draft:
    """Draw any draft over four tokens, duplicates and explore nodes included."""
    tree = Builder(0)
    for _ in range(draw(st.integers(0, 20))):
        role = Role.EXPLORE if explore and draw(st.booleans()) else Role.VERIFY
        tree.add(draw(st.integers(0, WORDS - 1)), draw(st.integers(0, len(tree) - 1)), "toy", role)
    return tree.draft()


answers = st.lists(st.integers(0, WORDS - 1), min_size=21, max_size=21)


def noise(seed: int, way: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return numbers that depend on the way to a node."""
    return np.random.default_rng([seed, len(way), *way]).normal(size=WORDS)


def accepted(
    draft: Draft, p: torch.Tensor, draws: Draws, position: int = 0, typical: tuple[float, float] | None = None
) -> Accepted:
    """Return what is accepted when the target's distributions are these, (T, V)."""
    rule = AcceptanceRule(WARM, draws, position, typical)
    return rule.accept(draft, OneByOne(draft, rule, p.__getitem__))


def by_depth(wishes: Sequence[int]) -> Any:
    """Return a target whose choice depends on the depth alone, so that equal paths get equal answers."""
    return lambda node, depth, children: wishes[depth]


@given(drafts(), answers)
def test_a_walk_is_a_chain_from_the_root_and_one_token_more(draft: Draft, wishes: list[int]) -> None:
    """A path that jumps, or emits a window cell, commits rows that do not belong to the text."""
    check(draft.parents)
    argmax = [wishes[depth] for depth in depths(draft.parents)]
    path, emitted = walk(draft, greedy(argmax))
    assert path[0] == 0 and [draft.parents[node] for node in path[1:]] == list(path[:-1])
    assert list(emitted[:-1]) == [draft.tokens[node] for node in path[1:]]
    assert all(draft.roles[node] is Role.VERIFY for node in path[1:])
    assert list(emitted) == [argmax[node] for node in path]
    below = [node for node, parent in enumerate(draft.parents) if parent == path[-1]]
    assert not [node for node in below if draft.roles[node] is Role.VERIFY and draft.tokens[node] == emitted[-1]]


@given(drafts(), answers, st.randoms(use_true_random=False))
def test_the_order_of_siblings_does_not_matter(draft: Draft, wishes: list[int], chance: Any) -> None:
    """The text would depend on how a pool or a tree happens to be sorted."""
    order = sorted(range(1, len(draft.tokens)), key=lambda node: (depths(draft.parents)[node], chance.random()))
    place = {0: 0} | {node: rank for rank, node in enumerate(order, start=1)}
    moved = Builder(0)
    for node in order:
        moved.add(draft.tokens[node], place[draft.parents[node]], "toy", draft.roles[node])
    assert walk(moved.draft(), by_depth(wishes))[1] == walk(draft, by_depth(wishes))[1]


@given(drafts(), st.integers(0, 2**32), st.sets(st.integers(0, 20)))
def test_choices_prepared_at_once_are_those_made_one_by_one(draft: Draft, seed: int, guessed: set[int]) -> None:
    """On a device a method would write another text than on a CPU, or another distribution."""
    source = torch.Generator().manual_seed(seed)
    size = len(draft.tokens)
    q = torch.softmax(2.0 * torch.randn(size, WORDS, generator=source), -1)
    ways = [tuple(way) for way in paths(draft.parents, draft.tokens)]  # equal ones lead to one place in the text
    logits = torch.stack([2.0 * torch.from_numpy(noise(seed, way)) for way in ways])
    draft = replace(draft, q=tuple(q[node] if node in guessed else None for node in range(size)))
    one, other = Draws(seed), Draws(seed)
    expected = accepted(draft, probabilities(logits, WARM), one, 3)
    _, verdict = Judge(draft, AcceptanceRule(WARM, other, 3)).decide(logits, logits, lambda draft: draft)
    assert (verdict.path, verdict.emitted) == expected
    assert one.fresh() == other.fresh(), "the same numbers were used up"


@given(drafts(), st.integers(0, 2**32), st.sampled_from([(0.0, None), (1.0, None), (1.0, (0.2, 0.5))]))
def test_the_next_guesses_are_made_where_the_accepted_path_ends(draft: Draft, seed: int, case: Any) -> None:
    """A device would make them from the hidden state of a node that was rejected, or accept another path."""
    temperature, typical = case
    logits = torch.stack(
        [2.0 * torch.from_numpy(noise(seed, tuple(way))) for way in paths(draft.parents, draft.tokens)]
    )
    sampling, nodes = Sampling(temperature=temperature), torch.arange(len(draft.tokens))[:, None]
    rule, other = (AcceptanceRule(sampling, Draws(seed), 3, typical) for _ in range(2))
    _, verdict = Judge(draft, rule, guess=lambda hidden: hidden).decide(logits, nodes, lambda draft: draft)
    answers = OneByOne(draft, other, probabilities(logits, sampling).__getitem__, logits.argmax(-1).tolist())
    assert (verdict.path, verdict.emitted) == other.accept(draft, answers)
    assert verdict.guesses == verdict.path[-1:]


@given(drafts(explore=False), drafts(), answers)
def test_more_guesses_never_emit_less(draft: Draft, junk: Draft, wishes: list[int]) -> None:
    """Two disjoint entries of a pool that begin alike must be walked together, not only the first."""
    both = Builder(0)
    for part in (junk, draft):
        place = {0: 0}
        for node in range(1, len(part.tokens)):
            place[node] = both.add(part.tokens[node], place[part.parents[node]], "toy", part.roles[node])
    alone, together = walk(draft, by_depth(wishes))[1], walk(both.draft(), by_depth(wishes))[1]
    assert together[: len(alone)] == alone


class Fixed(Draws):
    """Uniform numbers that were decided beforehand."""

    def __init__(self, tests: Sequence[float], own: float = 0.0) -> None:
        self._tests, self._own, self.positions = iter(tests), own, list[int]()

    def at(self, position: int) -> float:
        """Return the target's own number."""
        self.positions.append(position)
        return self._own

    def fresh(self) -> float:
        """Return the next test's number."""
        return next(self._tests)


P = torch.tensor([0.5, 0.3, 0.2, 0.0], dtype=torch.float64)
Q = torch.tensor([0.2, 0.6, 0.1, 0.1], dtype=torch.float64)


def siblings(*guesses: tuple[int, torch.Tensor | None]) -> Draft:
    """Make a draft with some guesses below the root, each drawn from a distribution or from none."""
    tree = Builder(0)
    for token, _ in guesses:
        tree.add(token, 0, "toy")
    return tree.draft(q=(None, *(q for _, q in guesses)))


def first(draft: Draft, draws: Draws, p: torch.Tensor = P) -> int:
    """Return the first token emitted."""
    return accepted(draft, p.expand(len(draft.tokens), -1), draws)[1][0]


def shares(draft: Draft, tests: Sequence[float], p: torch.Tensor = P) -> torch.Tensor:
    """Return how often each token comes out for an even grid of the target's own numbers."""
    grid = [(i + 0.5) / 1000 for i in range(1000)]
    return torch.tensor([first(draft, Fixed(tests, own), p) for own in grid]).bincount(minlength=WORDS) / 1000


def test_a_sampled_guess_is_accepted_up_to_p_over_q() -> None:
    """An acceptance that is not min(1, p/q) biases the output."""
    guess = siblings((1, Q))  # p/q is 0.5
    assert first(guess, Fixed([0.4999], own=0.0)) == 1
    assert first(guess, Fixed([0.5001], own=0.0)) == 0
    assert first(siblings((0, Q)), Fixed([1 - 1e-12], own=0.999)) == 0, "p > q is always accepted"


def test_a_rejection_leaves_the_residual() -> None:
    """Drawing from p, or from a residual that is not normalised, after a rejection biases the output."""
    assert shares(siblings((1, Q)), [0.99]).tolist() == pytest.approx([0.75, 0.0, 0.25, 0.0], abs=2e-3)
    assert residual(P, Q).tolist() == pytest.approx([0.75, 0.0, 0.25, 0.0])
    assert residual(7 * P, Q).tolist() == pytest.approx([0.75, 0.0, 0.25, 0.0]), "p may come without its sum"


def test_the_second_sibling_is_tested_against_the_residual() -> None:
    """Testing every sibling against p accepts too often."""
    flat = torch.full((4,), 0.25, dtype=torch.float64)
    pair = siblings((1, Q), (2, torch.tensor([0.2, 0.0, 0.5, 0.3], dtype=torch.float64)))
    assert first(pair, Fixed([0.99, 0.4999], own=0.0)) == 2, "the residual holds 0.25 for it: half of its q"
    assert first(pair, Fixed([0.99, 0.5001], own=0.0)) == 0
    left = shares(siblings((1, Q), (3, flat)), [0.99, 0.0])
    assert left.tolist() == pytest.approx([1.0, 0.0, 0.0, 0.0], abs=2e-3)


def test_guesses_that_are_no_samples_consume_no_randomness() -> None:
    """Only then does a copying method write what autoregressive sampling writes for the same seed."""
    draws = Fixed([], own=0.6)
    assert first(siblings((1, None), (1, None), (3, None)), draws) == 1
    assert draws.positions == [0, 1], "the guess was right: the position behind it was drawn as well"
    assert shares(siblings((1, None), (3, None)), []).tolist() == pytest.approx(P.tolist(), abs=2e-3)


def test_equal_distributions_always_accept_and_leave_no_residual() -> None:
    """The residual of p - p is zero: dividing by it gives NaN, and NaN tokens."""
    assert residual(P, P).tolist() == P.tolist()
    for token in range(3):
        assert first(siblings((token, P)), Fixed([1 - 1e-15], own=0.0)) == token


@given(st.integers(0, 3), st.sampled_from([0.0, 1e-300, 0.5, 1 - 2**-53]), st.sampled_from([0.0, 0.5, 1 - 2**-53]))
def test_impossible_tokens_are_never_emitted(token: int, test: float, own: float) -> None:
    """`u * q <= p` accepts a token of probability zero when u is zero."""
    assert P[first(siblings((token, Q)), Fixed([test], own))] > 0
    assert P[first(siblings((token, None)), Fixed([], own))] > 0


def test_the_residual_is_drawn_with_the_number_of_its_own_position() -> None:
    """A number used for two positions makes tokens depend on each other."""
    tree = Builder(0)
    tree.chain([0, 1, 1], ["toy"] * 3)
    draft, draws = tree.draft(q=(None, P, P, Q)), Fixed([0.0, 0.0, 0.99], own=0.0)
    path, emitted = accepted(draft, P.expand(4, -1), draws, 40)
    assert (path, emitted, draws.positions) == ((0, 1, 2), (0, 1, 0), [42])


def tree_of(*guesses: tuple[int, int], roles: Sequence[Role] = ()) -> Draft:
    """Make a draft of (token, parent)."""
    tree = Builder(0)
    for i, (token, parent) in enumerate(guesses):
        tree.add(token, parent, "toy", roles[i] if roles else Role.VERIFY)
    return tree.draft()


def typical(
    draft: Draft, distributions: Sequence[Sequence[float]], epsilon: float = 0.09, delta: float = 0.3, own: float = 0.0
) -> Accepted:
    """Return what typical acceptance takes, for the target's distribution at every node."""
    return accepted(draft, torch.tensor(distributions, dtype=torch.float64), Fixed([], own), 0, (epsilon, delta))


def test_a_token_is_typical_above_the_lower_of_two_bounds() -> None:
    """The reference's helpers have epsilon and delta swapped; the bound is strict, and falls with the entropy."""
    p = [0.7, 0.2, 0.06, 0.04]  # entropy 0.869: 0.3 * exp(-0.869) = 0.1258
    for token, passes in ((0, True), (1, True), (2, False)):
        assert typical(tree_of((token, 0)), [p, p])[0] == ((0, 1) if passes else (0,))
    assert typical(tree_of((2, 0)), [p, p], epsilon=0.05)[0] == (0, 1), "epsilon alone is enough"
    assert typical(tree_of((2, 0)), [p, p], delta=0.14)[0] == (0, 1), "and so is delta: 0.0587"
    assert typical(tree_of((2, 0)), [p, p], delta=0.15)[0] == (0,), "0.0629 is above 0.06"
    assert typical(tree_of((1, 0)), [p, p], epsilon=0.2, delta=1.0)[0] == (0,), "equal is not above"
    flat = [0.25] * 4
    assert typical(tree_of((3, 0)), [flat, flat], epsilon=0.3, delta=0.9)[0] == (0, 1), "0.225: none is likelier"
    certain = [0.0, 1.0, 0.0, 0.0]
    assert typical(tree_of((0, 0)), [certain] * 2, epsilon=0.0, delta=0.0)[0] == (0,), "the impossible never passes"
    assert typical(tree_of((1, 0)), [certain] * 2, epsilon=0.999, delta=0.999)[0] == (0, 1)


def test_the_longest_typical_path_wins_then_the_likeliest_then_the_lowest() -> None:
    """A short likely path must not beat a long one, nor the order of nodes a likelier path."""
    p = [0.5, 0.3, 0.2, 0.0]
    assert typical(tree_of((0, 0), (1, 0), (2, 2)), [p] * 4)[0] == (0, 2, 3)
    assert typical(tree_of((1, 0), (0, 0), (2, 1), (1, 2)), [p] * 5)[0] == (0, 2, 4)
    assert typical(tree_of((1, 0), (1, 0)), [p] * 3)[0] == (0, 1)
    assert typical(tree_of((3, 0), (0, 1)), [p] * 3)[0] == (0,), "nothing below a rejected node"
    explored = tree_of((0, 0), (1, 0), roles=(Role.EXPLORE, Role.VERIFY))
    assert typical(explored, [p] * 3) == ((0, 2), (1, 0)), "a window cell is never emitted"


def test_the_token_behind_typical_ones_is_a_draw_with_its_own_number() -> None:
    """A number used for two positions makes tokens depend on each other."""
    p = torch.tensor([0.5, 0.3, 0.2, 0.0], dtype=torch.float64)
    for own, token in ((0.49, 0), (0.51, 1), (0.81, 2)):
        draws = Fixed([], own)
        path, emitted = accepted(tree_of((0, 0), (1, 1)), p.expand(3, -1), draws, 40, (0.09, 0.3))
        assert (path, emitted, draws.positions) == ((0, 1, 2), (0, 1, token), [42])
    assert typical(tree_of(), [p.tolist()], own=0.6) == ((0,), (1,)), "no guess: plain sampling"


@given(drafts(), st.integers(0, 2**16), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_typical_acceptance_is_what_its_definition_says(draft: Draft, seed: int, epsilon: float, delta: float) -> None:
    """Against every path of the tree, judged on its own."""
    distributions = torch.rand(
        len(draft.tokens), WORDS, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    distributions = (distributions**3) / (distributions**3).sum(-1, keepdim=True)
    best: tuple[int, float] = (0, 0.0)
    passing = {(0,)}
    for node in range(1, len(draft.tokens)):
        path = path_to(draft.parents, node)
        shares = [float(distributions[above, draft.tokens[here]]) for above, here in zip(path, path[1:], strict=False)]
        bounds = [
            min(epsilon, delta * math.exp(float((distributions[i] * distributions[i].log()).sum()))) for i in path[:-1]
        ]
        fine = all(draft.roles[i] is Role.VERIFY for i in path[1:])
        if fine and all(share > bound for share, bound in zip(shares, bounds, strict=True)):
            passing.add(path)
            best = max(best, (len(shares), sum(map(math.log, shares))))
    path, emitted = accepted(draft, distributions, Draws(seed), 3, (epsilon, delta))
    assert path in passing and len(path) - 1 == best[0]
    expected = sum(
        math.log(float(distributions[above, draft.tokens[here]])) for above, here in zip(path, path[1:], strict=False)
    )
    assert expected == pytest.approx(best[1])
    assert emitted[:-1] == tuple(draft.tokens[node] for node in path[1:])
