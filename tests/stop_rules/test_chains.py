"""Chains that stop earlier: what is exact is what a run takes, and what is open lies between the bounds."""

from __future__ import annotations

import pytest

from analysis.metrics.result import UnknownError
from analysis.stop_rules.replay import Certainty
from analysis.stop_rules.rules import RecordedRuns, RuleOutcome, replay_rules
from tests.metrics.tables import guess, root, run, selection, step

from .drafted import GREEDY, ChainStep, PureDrafter, recorded


def outcomes(
    drafters: list[PureDrafter], gamma: int, threshold: float, method: str = "draft_model"
) -> list[RuleOutcome]:
    name = "eta" if method == "kangaroo" else "threshold"
    runs = [drafter.steps(gamma, threshold) for drafter in drafters]
    return replay_rules(RecordedRuns.of(recorded(runs, method, {"gamma": gamma, name: threshold})), None)[0]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("rate", "threshold"), [(0.4, 0.0), (0.7, 0.0), (0.9, 0.0), (0.8, 0.4), (1.0, 0.0), (0.0, 0.0)]
)
@pytest.mark.parametrize("method", ["draft_model", "kangaroo"])
def test_a_drafter_of_the_text_alone_is_replayed_as_it_would_run(method: str, rate: float, threshold: float) -> None:
    """Every exact rule has the true steps and guesses; of every other one the true steps lie between its bounds."""
    seen = set[Certainty]()
    for seed in range(6):
        drafters = [PureDrafter.random(10 * seed + place, tokens, rate) for place, tokens in enumerate((40, 1, 25))]
        for outcome in outcomes(drafters, 6, threshold, method):
            assert outcome.settings is not None
            length, least = outcome.settings.values()
            truth = [drafter.steps(length, least) for drafter in drafters]
            count, replay = sum(map(len, truth)), outcome.replay
            seen.add(replay.certainty)
            assert replay.bounds is not None and replay.bounds[0] <= count <= replay.bounds[1], outcome.settings
            if replay.certainty is Certainty.EXACT:
                later = [step for each in truth for step in each[1:]]
                assert replay.steps == count
                assert replay.slow.verified.tolist() == [len(step.confidence) for step in later]
                assert replay.slow.tokens == sum(step.accepted + 1 for step in later)
            else:
                assert replay.bounds[0] <= replay.steps <= replay.bounds[1]
    assert Certainty.EXACT in seen
    assert (Certainty.BOUNDED in seen) == (rate > 0)


def test_a_tail_goes_on_as_the_drafter_would() -> None:
    """Five guesses of which four came true: with two a step, the record has all that is asked for."""
    chains = [ChainStep(0, (0.95, 0.8, 0.95, 0.7, 0.6), 4), ChainStep(5, (0.5,) * 5, 0), ChainStep(6, (), 0)]
    replays = {
        (outcome.settings["gamma"], outcome.settings["threshold"]): outcome.replay
        for outcome in replay_rules(RecordedRuns.of(recorded([chains], params={"gamma": 5}, finish="stop")), None)[0]
        if outcome.settings is not None
    }
    two = replays[2, 0.0]  # 0 accepts two, 3 accepts one of two, 5 and 6 none
    assert (two.certainty, two.steps, [*two.slow.verified]) == (Certainty.EXACT, 4, [2, 2, 0])
    sure = replays[5, 0.9]  # 0 stops after the second guess, 3 after the first
    assert (sure.certainty, sure.steps, [*sure.slow.verified]) == (Certainty.EXACT, 4, [1, 1, 0])


def test_what_follows_a_chain_accepted_as_a_whole_is_open() -> None:
    """With one guess a step the second token of the last chain's end is not known to be guessed."""
    chains = [
        ChainStep(0, (0.9, 0.9), 2),
        ChainStep(3, (0.9, 0.9), 2),
        ChainStep(6, (0.1, 0.1), 0),
        ChainStep(7, (), 0),
    ]
    runs = replay_rules(RecordedRuns.of(recorded([chains], params={"gamma": 2})), None)[0]
    one = next(outcome.replay for outcome in runs if outcome.settings == {"gamma": 1, "threshold": 0.0})
    # Certain: 0 writes two, 2 one or two. If two, then 4 accepts one and is at 6.
    assert one.certainty is Certainty.BOUNDED and one.bounds == (5, 6)


def test_a_threshold_at_a_rounded_probability_is_not_called_exact() -> None:
    """A probability of six digits does not tell on which side of its own value it lies."""
    chains = [ChainStep(0, (0.3000009, 0.2), 0), ChainStep(1, (0.9, 0.2), 0), ChainStep(2, (), 0)]
    listed = replay_rules(RecordedRuns.of(recorded([chains], params={"gamma": 2})), None)[0]
    near = {outcome.settings["threshold"]: outcome.replay.certainty for outcome in listed if outcome.settings}
    assert near[0.3] is Certainty.ESTIMATED and near[0.4] is Certainty.EXACT


def test_the_rules_of_a_drafter_on_features_and_of_drawn_guesses_are_estimates() -> None:
    """EAGLE drafts otherwise where it has read the target's features; another rule's draws write another text."""
    chains = PureDrafter.random(1, 60, 0.8).steps(6, 0.0)
    eagle = recorded([chains], "eagle3", {"form": "chain", "gamma": 6})  # type: ignore[dict-item]
    drawn = recorded([chains], params={"gamma": 6}, sampling='{"temperature": 0.7}')
    for record in (eagle, drawn):
        listed = replay_rules(RecordedRuns.of(record), None)[0]
        kinds = {outcome.replay.certainty for outcome in listed}
        assert listed[0].replay.certainty is Certainty.EXACT  # as recorded
        assert kinds == {Certainty.EXACT, Certainty.ESTIMATED}
        assert all(
            outcome.replay.bounds is None for outcome in listed if outcome.replay.because != listed[0].replay.because
        )


def test_what_a_record_cannot_tell_is_named() -> None:
    """A longer chain was not drafted, nor what follows below a threshold; probabilities may not be recorded at all."""
    chains = [PureDrafter.random(2, 30, 0.7).steps(4, 0.3)]
    _, unsaid = replay_rules(RecordedRuns.of(recorded(chains, params={"gamma": 4, "threshold": 0.3})), None)
    assert [each.rules for each in unsaid] == ["gamma above 4", "threshold below 0.3"]
    light = recorded([PureDrafter.random(2, 30, 0.7).steps(4, 0.0)], params={"gamma": 4}, confident=False)
    listed, unsaid = replay_rules(RecordedRuns.of(light), None)
    assert [each.rules for each in unsaid] == ["gamma above 4", "threshold above 0"]
    assert {outcome.settings["gamma"] for outcome in listed if outcome.settings} == {1, 2, 3, 4}
    assert all(outcome.settings["threshold"] == 0 for outcome in listed if outcome.settings)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"lossless": False}, "not lossless"),
        ({"lossless": None}, "not lossless"),
        ({"params": '{"gamma": 99}'}, "settings that draft_model does not have"),
        ({"params": '{"gemma": 2}'}, "settings that draft_model does not have"),
        ({"params": None}, "one setting"),
        ({"params": '{"gamma": 1}'}, "longer than the 1 guesses"),
        ({"method": "lookahead"}, "can be replayed only for"),
        ({"finish": "error"}, "failed"),
    ],
)
def test_runs_that_cannot_be_replayed(changes: dict[str, str], reason: str) -> None:
    chains = [PureDrafter.random(3, 30, 0.7).steps(4, 0.0)]
    with pytest.raises(UnknownError, match=reason):
        replay_rules(RecordedRuns.of(recorded(chains, **{"params": {"gamma": 4}} | changes)), None)


def test_damaged_tables_end_in_a_sentence() -> None:
    """Folders come from strangers: what cannot be laid out by positions is refused."""
    about = {"params": '{"gamma": 2}', "sampling": GREEDY, "lossless": True, "finish": "length"}
    broken = {
        "first steps": ([step(1, 0, 0)], [root()]),
        "lacks steps": ([step(0, 0, 0), step(2, 0, 0)], [root(0), root(2)]),
        "do not write": ([step(0, 0, 0) | {"written": 3}], [root(0)]),
        "no chains": ([step(0, 0, 2)], [root(0), guess(1, 0, 1, at=0), guess(2, 0, 1, at=0)]),
        "lacks some of the guesses": ([step(0, 0, 2)], [root(0), guess(1, 0, 1, at=0)]),
        "more guesses than it holds": ([step(0, 2)], [root(0), guess(1, 0, 1, at=0)]),
        "longer than": ([step(0, 0)], [root(0), *(guess(place, place - 1, place, at=0) for place in (1, 2, 3))]),
        "no step": ([], []),
    }
    for reason, (steps, nodes) in broken.items():
        with pytest.raises(UnknownError, match=reason):
            replay_rules(RecordedRuns.of(selection([run(**about)], steps, nodes)), None)


@pytest.mark.parametrize(
    "sampling",
    ['{"temperature": 0.7}', '{"temperature": 0, "top_k": 4}', '{"temperature": 0, "repetition_penalty": 2}', None],
)
def test_probabilities_of_drawn_or_filtered_guesses_are_no_confidences(sampling: str | None) -> None:
    """A drawn token's probability is not that of the likeliest one, by which a chain ends; a filter changes it."""
    record = recorded([PureDrafter.random(2, 30, 0.7).steps(4, 0.0)], params={"gamma": 4}, sampling=sampling)
    listed, unsaid = replay_rules(RecordedRuns.of(record), None)
    assert [each.rules for each in unsaid] == ["gamma above 4", "threshold above 0"]
    assert all(outcome.settings["threshold"] == 0 for outcome in listed if outcome.settings)
