"""Trees of which fewer guesses are read: small ones, of which every outcome is known."""

from __future__ import annotations

import pytest

from analysis.metrics import Selection
from analysis.metrics.result import UnknownError
from analysis.stop_rules.replay import Certainty, Replay
from analysis.stop_rules.rules import RecordedRuns, replay_rules
from tests.metrics.tables import Row, guess, root, run, selection, step

from .drafted import GREEDY

ABOUT = {"method": "eagle3", "params": '{"m": 5}', "sampling": GREEDY, "lossless": True, "finish": "length"}


def tree(place: int, *accepted: int, shares: tuple[float, ...] = (0.6, 0.3, 0.5, 0.9, 0.5)) -> list[Row]:
    """Return a root with guesses 1 and 2; 3 after 1, 4 after 2, 5 after 3. Products: 0.6, 0.3, 0.3, 0.27, 0.15."""
    parents, depths = (0, 0, 1, 2, 3), (1, 1, 2, 2, 3)
    rows = [root(place)]
    for node, (parent, depth, share) in enumerate(zip(parents, depths, shares, strict=True), start=1):
        rows.append(guess(node, parent, depth, at=place, accepted=node in accepted, confidence=share))
    return rows


def record(*paths: tuple[int, ...]) -> Selection:
    """Return a run whose first step reads the prompt, with a tree after it for each accepted path."""
    steps, nodes = [step(0, 0, 0)], [root(0)]
    for place, path in enumerate(paths, start=1):
        steps.append(step(place, len(path), 5))
        nodes += tree(place, *path)
    return selection([run(**ABOUT)], steps, nodes)


def replays(selected: Selection) -> dict[tuple[int, float], Replay]:
    listed, _ = replay_rules(RecordedRuns.of(selected), None)
    return {(each.settings["m"], each.settings["threshold"]): each.replay for each in listed if each.settings}


def test_a_smaller_tree_that_keeps_the_accepted_paths_is_exact() -> None:
    """It reads the guesses with the largest products; all steps begin where they did."""
    found = replays(record((1,), (), (1,)))
    assert found[1, 0.0].certainty is Certainty.EXACT
    assert [*found[1, 0.0].slow.verified] == [1, 1, 1] and found[1, 0.0].tokens_per_step == 5 / 3
    assert [*found[5, 0.2].slow.verified] == [4, 4, 4] and found[5, 0.2].certainty is Certainty.EXACT
    assert [*found[5, 0.5].slow.verified] == [1, 1, 1] and found[5, 0.5].steps == 4


def test_a_tree_that_cuts_an_accepted_path_is_an_estimate() -> None:
    """Of guess 1 and 3, the smallest tree keeps 1: then a step begins at a position that has no tree of its own."""
    one = replays(record((1, 3), ()))[1, 0.0]
    # It accepts 1 and writes 3; nothing is left of the path, and what follows was guessed wrong there too.
    assert one.certainty is Certainty.ESTIMATED and one.bounds is None
    assert one.slow.steps == 4 and "assumes" in one.because


def test_products_that_rounding_may_exchange_are_not_called_exact() -> None:
    """Guesses 2 and 3 have the same product to six digits: a tree of two may keep either."""
    found = replays(record((1,), ()))
    assert found[2, 0.0].certainty is Certainty.ESTIMATED and found[3, 0.0].certainty is Certainty.EXACT
    assert found[5, 0.3].certainty is Certainty.ESTIMATED  # and 0.3 is their product


@pytest.mark.parametrize(
    ("path", "changes", "reason"),
    [
        ((1, 3), {"accepted": 1, "written": 2}, "other guesses than those on a path"),
        ((5,), {}, "other guesses than those on a path"),
        ((1,), {"accepted": 10**17, "written": 10**17 + 1}, "accepts more guesses than it holds"),
        ((1,), {"drafted": 9}, "lacks some of the guesses"),
    ],
)
def test_damaged_trees_are_refused(path: tuple[int, ...], changes: dict[str, int], reason: str) -> None:
    """A count in a stranger's file must not decide how much memory is taken."""
    steps = [step(0, 0, 0), step(1, len(path), 5) | changes]
    with pytest.raises(UnknownError, match=reason):
        replays(selection([run(**ABOUT)], steps, [root(0), *tree(1, *path)]))


def test_trees_without_probabilities_cannot_be_pruned() -> None:
    nodes = [row | {"confidence": None} for row in tree(1, 1)]
    with pytest.raises(UnknownError, match="--record full"):
        replays(selection([run(**ABOUT)], [step(0, 0, 0), step(1, 1, 5)], [root(0), *nodes]))
