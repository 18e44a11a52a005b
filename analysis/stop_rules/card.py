"""Other stop rules as a card of the Debug tab, priced by the record's own passes, as is the best draft length."""

from __future__ import annotations

import numpy as np

from decoding.types import JSON

from ..cost.curves import PassCurve
from ..metrics.registry import Metric
from ..metrics.result import MetricResult, UnknownError, result
from ..metrics.selection import Selection
from ..metrics.step_costs import Pair, costs
from ..metrics.times import later_steps
from .prices import Prices
from .report import best_rule, sentence_of, spelt
from .rerun import FROM_TOKENS
from .rules import RecordedRuns, RuleOutcome, replay_rules

_SHOWN = 12  # rules beside the recorded one
_FAR = 2**20  # guesses: more than any step has
COLUMNS = ("rule", "tokens", "guesses", "speed-up", "how sure")
_UNPRICED = (
    "A speed-up needs autoregressive runs, times by phase and counted guesses; this folder lacks some of these. "
    "`python -m decoding rules --costs DEVICE` projects speed-ups on measured machines."
)


def stop_rules(selection: Selection) -> MetricResult:
    """Replay other draft lengths, thresholds and tree sizes on a record."""
    if len(selection.methods) != 1:
        raise UnknownError("choose one method and one setting: rules can be replayed for only one at a time")
    recorded = RecordedRuns.of(selection)
    if recorded.method in FROM_TOKENS:
        raise UnknownError(f"{recorded.method} must be run again for each rule: `python -m decoding rules` does that")
    prices, measured = _own_prices(selection, recorded)
    outcomes, _ = replay_rules(recorded, prices)
    best = best_rule(outcomes)
    shown = [(at, each) for at, each in enumerate(outcomes) if at]
    shown.sort(key=lambda pair: (-(pair[1].speedup or 0.0), -pair[1].replay.tokens_per_step))
    rows = [_row(each, at == 0) for at, each in [(0, outcomes[0]), *shown[:_SHOWN]]]
    chosen = None if best is None else outcomes[best]
    sentence = sentence_of(recorded.method, outcomes, best) if prices else _UNPRICED
    if prices and outcomes[0].speedup is not None:
        sentence += " These leave out the time outside passes: "
        sentence += f"with it, the recorded rule was measured at {measured:.2f} times."
    return result(
        sentence,
        value=None if chosen is None else chosen.speedup,
        unit="times",
        columns=COLUMNS,
        rows=rows,
        advice=recorded.run_settings(chosen.settings) if best and chosen and chosen.settings is not None else None,
    )


def _own_prices(selection: Selection, recorded: RecordedRuns) -> tuple[Prices | None, float]:
    """Price drafting and verifying by the means of the record, in autoregressive steps; a pass grows by its guesses.

    With them comes the measured speed-up, time outside passes included. No prices where the record has no
    autoregressive runs beside it, or does not split its times.
    """
    try:
        pair = Pair.of(selection)
        priced, later = costs(pair), later_steps(pair.drafting)
    except UnknownError:
        return None, np.nan
    drafted = pair.drafting.steps.maybe("drafted")[later]
    counted = drafted[~np.isnan(drafted)]
    guesses = float(counted.mean()) if len(counted) else 0.0
    if not priced.split or guesses <= 0:
        return None, np.nan
    row = max(0.0, priced.verification) / guesses
    straight = PassCurve("the record", 0, (1, 1 + _FAR), (1.0, 1.0 + row * _FAR), ())
    drafting = max(0.0, priced.draft) / (guesses if recorded.per_guess else 1.0)
    return Prices(straight, drafting, recorded.per_guess), float(priced.speed)


def _row(outcome: RuleOutcome, is_recorded: bool) -> list[JSON]:
    replay = outcome.replay
    name = spelt(outcome.settings) + (" (recorded)" if is_recorded else "")
    return [name, replay.tokens_per_step, replay.verified_per_step, outcome.speedup, replay.certainty.value]


CARD = Metric(
    key="stop_rules",
    title="Other lengths and thresholds",
    group="Time",
    formula=(
        "each rule replayed step by step on the recorded guesses; a step costs 1 + drafting + verification, in "
        "autoregressive steps, in proportion to its guesses; tokens and guesses are those of a step after the first"
    ),
    look_for="Exact: a run with this rule takes these very steps. Bounded and estimated numbers can be somewhat off.",
    chart="table",
    function=stop_rules,
)
