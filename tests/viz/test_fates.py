"""What became of every guess, against the record itself: what the target chose at every node."""

from __future__ import annotations

from dataclasses import replace

import pytest

from decoding import tree
from decoding.types import Role, Step, Timing
from tests.toys import CASES, counted_text, engine, title
from viz.fates import emitted_fates, is_branching, node_fates, siblings
from viz.palette import Fate

GUESSING = [(method, params) for method, params in CASES if method != "autoregressive"]


def twins(**fields: object) -> Step:
    """Two rows ' 5 6' and ' 5 7' side by side; the target wrote 5, 7, 9."""
    step = Step(
        index=1,
        start=4,
        pending=0,
        emitted=(5, 7, 9),
        accepted=2,
        drafted=4,
        fed=5,
        timing=Timing(),
        tokens=(1, 5, 6, 5, 7),
        parents=(-1, 0, 1, 0, 3),
        roles=(Role.ROOT, *(Role.VERIFY,) * 4),
        sources=("root", "pool:0,0", "pool:0,1", "pool:1,0", "pool:1,1"),
        path=(0, 3, 4),
        choices=(5, 7, 8, 7, 9),
    )
    return replace(step, **fields)  # type: ignore[arg-type]


@pytest.mark.sampled
@pytest.mark.parametrize(("method", "params"), GUESSING, ids=title)
def test_a_rejected_guess_is_not_what_the_target_chose(method: str, params: dict[str, object]) -> None:
    """Rows of equal beginnings lie side by side: the same right token must not be struck in all rows but one."""
    prompt, seen = [1, 2, 3, 4, 5, 1, 2, 3, 4, 2, 3], set[Fate]()
    trace = engine(counted_text()).generate(prompt, method, params=params, max_new_tokens=40).trace
    for step in trace.steps:
        ways = tree.paths(step.parents, step.tokens)
        for node, fate in enumerate(node_fates(step)):
            if step.roles[node] is not Role.VERIFY:
                continue
            right = step.choices[step.parents[node]] == step.tokens[node]
            assert (fate is Fate.REJECTED) == (not right)
            assert (fate is Fate.ACCEPTED) == (node in step.path)
            taken = tuple(ways[node]) == step.emitted[: len(ways[node])] and len(ways[node]) <= step.accepted
            assert not taken or fate in (Fate.ACCEPTED, Fate.TWIN)
            assert taken or fate in (Fate.MATCHED, Fate.REJECTED)
            seen.add(fate)
    assert Fate.REJECTED in seen or Fate.ACCEPTED in seen


def test_twins_of_the_accepted_path() -> None:
    """The guess of the other row is right too, and what hangs off it is judged by what was written there."""
    fates = [Fate.ROOT, Fate.TWIN, Fate.REJECTED, Fate.ACCEPTED, Fate.ACCEPTED]
    assert [*node_fates(twins())] == fates
    drawn = twins(choices=(8, 6, 8, 6, 9))  # a sampled run writes what it drew, whatever is likeliest
    assert [*node_fates(drawn)] == fates


def test_siblings_are_the_guesses_for_one_place() -> None:
    """Whichever row they are in, every token once; the accepted one stands for its twins."""
    step = twins()
    assert siblings(step, 0) == [3]
    assert siblings(step, 1) == siblings(step, 3) == [2, 4]
    assert siblings(step, 4) == []
    assert siblings(replace(step, tokens=(), parents=(), roles=(), path=()), 0) == []


def test_a_token_that_a_twin_missed_is_a_correction() -> None:
    """The accepted row ends, but the row beside it guessed on, and was wrong."""
    step = twins(tokens=(1, 5, 5, 6), parents=(-1, 0, 0, 2), roles=(Role.ROOT, *(Role.VERIFY,) * 3))
    step = replace(step, sources=step.sources[:4], choices=(5, 7, 7, 8), path=(0, 1), emitted=(5, 7), accepted=1)
    assert emitted_fates(step) == (Fate.ACCEPTED, Fate.CORRECTION)
    assert emitted_fates(replace(step, tokens=(1, 5, 4, 6))) == (Fate.ACCEPTED, Fate.BONUS)


def test_a_token_without_a_guess_is_the_targets_own() -> None:
    """A bonus is one token more after guesses; where nothing was guessed there is none."""
    alone = twins(tokens=(1,), parents=(-1,), roles=(Role.ROOT,), sources=("root",), path=(0,), choices=(5,))
    alone = replace(alone, emitted=(5,), accepted=0, drafted=0, fed=1)
    assert emitted_fates(alone) == (Fate.OWN,)
    window = replace(
        alone, tokens=(1, 4), parents=(-1, 0), roles=(Role.ROOT, Role.EXPLORE), sources=("root", "window:0,0")
    )
    assert emitted_fates(window) == (Fate.OWN,)
    unknown = replace(alone, tokens=(), parents=(), roles=(), sources=(), path=(), drafted=3)  # recorded without nodes
    assert emitted_fates(unknown) == (Fate.CORRECTION,)


def test_a_branch_is_two_guesses_behind_one_node() -> None:
    """A window beside a single row of guesses is no branch."""
    assert is_branching(twins())
    assert not is_branching(twins(roles=(Role.ROOT, *(Role.VERIFY,) * 2, *(Role.EXPLORE,) * 2)))
    assert not is_branching(twins(parents=(-1, 0, 1, 2, 3)))
    assert not is_branching(twins(tokens=(), parents=(), roles=()))
