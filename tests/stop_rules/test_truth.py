"""Replays against the truth: pocket decodes really with the other settings.

What is called exact is exactly what a run takes, true numbers lie between the bounds, and estimates are as near as the
report says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

from analysis.bench.methods import as_prompt
from analysis.cost.curves import PassCurve
from analysis.metrics import Selection
from analysis.prompts.tasks import read_tasks
from analysis.stop_rules.prices import Prices
from analysis.stop_rules.replay import MARGIN, Certainty
from analysis.stop_rules.rules import RecordedRuns, RuleOutcome, replay_rules
from analysis.store.tables import RunIdentity, joined, tables_of
from decoding import Engine, load
from decoding.methods import Method
from decoding.methods.draft_model import DraftModel
from decoding.queued import Proposal
from decoding.types import Draft

TOKENS = 48
GAMMA = 8

# RecordedRuns settings, and others that are really run.
CHAINS: Sequence[tuple[str, Mapping[str, Any], Sequence[Mapping[str, Any]]]] = (
    (
        "draft_model",
        {"gamma": 8},
        ({"gamma": 2}, {"gamma": 3}, {"gamma": 8, "threshold": 0.5}, {"gamma": 4, "threshold": 0.3}),
    ),
    ("draft_model", {"gamma": 6, "threshold": 0.3}, ({"gamma": 3}, {"gamma": 6, "threshold": 0.7})),
    (
        "kangaroo",
        {"gamma": 8, "eta": 0.0},
        ({"gamma": 2}, {"gamma": 5}, {"gamma": 8, "eta": 0.6}, {"gamma": 4, "eta": 0.6}),
    ),
    ("eagle3", {"form": "chain", "gamma": 8}, ({"gamma": 3}, {"gamma": 8, "threshold": 0.3})),
    ("eagle3", {"m": 24, "k": 6, "depth": 5}, ({"m": 4}, {"m": 10}, {"m": 24, "threshold": 0.1})),
    ("suffix", {"alpha": 1.0}, ({"alpha": 3.0, "c": 8}, {"shape": "chain", "count_end": True, "depth": 24, "c": 24})),
)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return load("pocket")


def record(
    engine: Engine, method: str | type[Method], params: Mapping[str, Any], prompts: int, detail: str = "light"
) -> Selection:
    """Decode prompts really."""
    runs = []
    for place, task in enumerate(read_tasks("assets/pocket/tasks.jsonl", prompts)):
        run = engine.decode(
            as_prompt(engine, [("user", task.turns[0])]), method, params, None, TOKENS, record=detail, memory={}
        )
        for _ in run:
            pass
        runs.append(tables_of(run.trace, RunIdentity(place, f"q{place}")))
    return Selection.of(*joined(runs))


@pytest.mark.sampled
@pytest.mark.parametrize(("method", "base", "others"), CHAINS)
def test_replays_are_what_a_run_with_these_settings_does(
    engine: Engine, everything: bool, method: str, base: Mapping[str, Any], others: Sequence[Mapping[str, Any]]
) -> None:
    """Steps and guesses of exact rules are equal, one by one."""
    prompts = 6 if everything and method != "suffix" or method == "eagle3" else 2  # what is exact needs few
    before = record(engine, method, base, prompts, "full")
    outcomes, _ = replay_rules(RecordedRuns.of(before), None)
    assert outcomes[0].replay.certainty is Certainty.EXACT
    assert outcomes[0].replay.steps == len(before.steps)
    for changed in others if not everything else [each.settings for each in outcomes if each.settings][::3]:
        outcome = _named(outcomes, RecordedRuns.of(before).params.to_json(), {**base, **changed})
        after = record(engine, method, {**base, **changed}, prompts)
        later = after.steps.maybe("step") > 0
        written, drafted = after.steps.maybe("written")[later], after.steps.maybe("drafted")[later]
        replay, truth = outcome.replay, written.mean()
        assert after.runs.columns.table["ids"].equals(before.runs.columns.table["ids"])  # or nothing could be replayed
        if replay.certainty is Certainty.EXACT:
            assert replay.steps == len(after.steps)
            assert replay.slow.verified.tolist() == drafted.tolist()
            assert replay.slow.tokens == written.sum()
        elif replay.certainty is Certainty.BOUNDED:
            assert replay.bounds is not None and replay.bounds[0] <= len(after.steps) <= replay.bounds[1]
            assert replay.bounds[0] <= replay.steps <= replay.bounds[1]
        else:
            assert replay.tokens_per_step == pytest.approx(truth, rel=MARGIN)


def _named(outcomes: Sequence[RuleOutcome], base: Mapping[str, Any], wanted: Mapping[str, Any]) -> RuleOutcome:
    """Return the rule with these settings."""
    full = base | wanted
    [outcome] = [each for each in outcomes if each.settings is not None and base | each.settings == full]
    return outcome


class AdaptiveDraftModel(DraftModel):
    """A draft model of which the target reads the prefix with the best expected speed."""

    name = "adaptive"
    prices: ClassVar[Prices]

    def propose(self) -> Proposal:
        """Leave out what is not worth its row."""
        draft = super().propose()
        assert isinstance(draft, Draft)
        costs = self.prices.costs.times(np.arange(1.0, len(draft.tokens) + 1)) + self.prices.drafting * GAMMA
        survival, tokens, best = 1.0, 1.0, 0
        rate = tokens / costs[0]
        for place, share in enumerate(self._chain.confidence, start=1):
            survival *= share
            tokens += survival
            if tokens / costs[place] > rate:
                best, rate = place, tokens / costs[place]
        kept = slice(best + 1)
        return Draft(
            draft.tokens[kept], draft.parents[kept], draft.roles[kept], draft.sources[kept], draft.q and draft.q[kept]
        )


def test_adaptive_verification_is_estimated_within_its_margin(engine: Engine, everything: bool) -> None:
    """No method of ours verifies so: the test's own does."""
    prompts = 12 if everything else 4
    before = record(engine, "draft_model", {"gamma": GAMMA}, prompts, "full")
    costs = PassCurve("pocket", 64, (1, 2, 16), (11.0, 14.0, 56.0), ())
    AdaptiveDraftModel.prices = prices = Prices(costs, 0.5, per_guess=True)
    [outcome] = [each for each in replay_rules(RecordedRuns.of(before), prices)[0] if each.settings is None]
    after = record(engine, AdaptiveDraftModel, {"gamma": GAMMA, "threshold": 1e-9}, prompts)
    later = after.steps.maybe("step") > 0
    assert outcome.replay.certainty is Certainty.ESTIMATED
    assert 1 < after.steps.maybe("drafted")[later].mean() < GAMMA - 1  # or the rule would be another one
    assert outcome.replay.tokens_per_step == pytest.approx(after.steps.maybe("written")[later].mean(), rel=MARGIN)
    assert outcome.replay.verified_per_step == pytest.approx(after.steps.maybe("drafted")[later].mean(), rel=MARGIN)
