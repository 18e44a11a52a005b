"""Describes the rules of a run folder: the best one, with its flags, and the certainty of each number."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np

from decoding.types import JSON

from ..cost.curves import PassCurve
from ..metrics.result import UnknownError, json_number
from ..metrics.selection import BASELINE, Selection
from .costs import read_costs
from .prices import Prices
from .replay import MARGIN, Certainty
from .rules import RecordedRuns, RuleOutcome, replay_rules

UNPRICED = "no costs were given: name a device with --costs"
_NOTABLE = 0.02  # a smaller gain is less than times vary from run to run
_SURENESS = {
    Certainty.EXACT: "its steps are exact",
    Certainty.BOUNDED: "its steps are known between bounds",
    Certainty.ESTIMATED: f"estimated, to within {MARGIN:.0%}",
}


def rules_report(folder: Selection, *, costs: str | None = None, draft_ms: float | None = None) -> dict[str, JSON]:
    """Replay the rules of every method and setting of a record: what `rules --json` prints.

    `costs` names a device as `read_costs` takes it; `draft_ms` is the time that a drafted guess takes there.
    """
    machine, curve = (None, None) if costs is None else read_costs(costs, _context(folder))
    parts = [
        _part(folder.where(method=method, setting=setting), curve, draft_ms)
        for method, setting in folder.methods
        if method != BASELINE
    ]
    device: dict[str, JSON] | None = None
    if machine is not None and curve is not None:
        device = {"device": machine.device, "model": curve.shape, "context": curve.context, "rows": curve.rows[-1]}
    return {"costs": device, "margin": MARGIN, "selections": parts}


def _part(selection: Selection, costs: PassCurve | None, draft_ms: float | None) -> dict[str, JSON]:
    [(method, setting)] = selection.methods
    part: dict[str, JSON] = {"method": method, "setting": setting, "steps": len(selection.steps)}
    empty: dict[str, JSON] = {"reason": None, "params": None, "unpriced": None, "draft_ms": None, "best": None}
    part |= empty | {"sentence": "", "rows": [], "unsaid": []}
    try:
        recorded = RecordedRuns.of(selection)
        prices, unpriced = None, UNPRICED
        if costs is not None:
            try:
                prices, unpriced = Prices.of(selection, costs, draft_ms, per_guess=recorded.per_guess), ""
            except UnknownError as error:
                unpriced = str(error)
        outcomes, unsaid = replay_rules(recorded, prices)
    except UnknownError as error:
        return part | {"reason": str(error)}
    best = best_rule(outcomes)
    return part | {
        "params": recorded.params.to_json(),
        "unpriced": unpriced or None,
        "draft_ms": None if prices is None else json_number(prices.drafting),
        "best": best,
        "sentence": sentence_of(method, outcomes, best) if prices is not None else "",
        "rows": [_row(recorded, outcome, place == 0) for place, outcome in enumerate(outcomes)],
        "unsaid": [{"rules": each.rules, "because": each.because} for each in unsaid],
    }


def _context(selection: Selection) -> float:
    """Return the average length of the texts before a step."""
    start = selection.steps.maybe("start")
    return 0.0 if np.isnan(start).all() else float(np.nanmean(start))


def best_rule(outcomes: Sequence[RuleOutcome]) -> int | None:
    """Choose the fastest rule that `run` can take and that surely and notably beats the recorded one, else that one.

    None if one token at a time is as fast, or if there are no prices.
    """
    recorded = outcomes[0].speedup
    if recorded is None:
        return None
    best, fastest = 0, recorded
    for place, outcome in enumerate(outcomes):
        if outcome.settings is None or outcome.speedup is None or outcome.least_speedup is None:
            continue
        if outcome.least_speedup > (1.0 + _NOTABLE) * recorded and outcome.speedup > fastest:
            best, fastest = place, outcome.speedup
    return best if fastest > 1.0 else None


def sentence_of(method: str, outcomes: Sequence[RuleOutcome], best: int | None) -> str:
    """Describe the best rule, and how certain that is."""
    recorded = outcomes[0]
    if recorded.speedup is None:
        return "No run has a step after its first, so there is nothing to price."
    if best is None:
        fastest = max((each for each in outcomes if each.settings is not None), key=lambda each: each.speedup or 0.0)
        return (
            f"Do not speculate here: the fastest rule, {spelt(fastest.settings)}, is expected to be "
            f"{fastest.speedup:.2f} times as fast as one token at a time, and {_SURENESS[fastest.replay.certainty]}."
        )
    if best == 0:
        expected = f"{recorded.speedup:.2f} times as fast as one token at a time"
        sentence = f"No rule is surely faster than the recorded one, which is expected to be {expected}."
    else:
        chosen = outcomes[best]
        expected = f"{chosen.speedup:.2f} times as fast as one token at a time is expected"
        sentence = f"Take {spelt(chosen.settings)}: {expected} instead of {recorded.speedup:.2f}"
        sentence += f"; {_SURENESS[chosen.replay.certainty]}."
    for each in outcomes:
        if each.settings is None and each.speedup is not None:
            sure = _SURENESS[each.replay.certainty]
            sentence += f" Adaptive verification, as in vLLM, would give {each.speedup:.2f} ({sure}); no flag sets it."
    return sentence


def spelt(settings: Mapping[str, JSON] | None) -> str:
    """Format the settings of a rule."""
    if settings is None:
        return "adaptive verification"
    return ", ".join(f"{name}={_value(value)}" for name, value in settings.items()) or "as recorded"


def flags(recorded: RecordedRuns, rule: Mapping[str, JSON] | None) -> str | None:
    """Return the flags with which `run` takes a rule; None if it cannot."""
    if rule is None:
        return None
    settings = recorded.run_settings(rule).items()
    return " ".join([f"--method {recorded.method}", *(f"--param {name}={_value(value)}" for name, value in settings)])


def _value(value: JSON) -> str:
    return f"{value:g}" if isinstance(value, float) else json.dumps(value) if isinstance(value, bool) else str(value)


def _row(recorded: RecordedRuns, outcome: RuleOutcome, is_recorded: bool) -> dict[str, JSON]:
    replay = outcome.replay
    fewest, most = replay.bounds or (None, None)
    numbers = {
        "steps": replay.steps,
        "fewest_steps": fewest,
        "most_steps": most,
        "tokens_per_step": replay.tokens_per_step,
        "verified_per_step": replay.verified_per_step,
        "drafted_per_step": replay.drafted_per_step,
        "speedup": outcome.speedup,
        "least_speedup": outcome.least_speedup,
    }
    return {
        "rule": spelt(outcome.settings),
        "recorded": is_recorded,
        "flags": flags(recorded, outcome.settings),
        "certainty": replay.certainty.value,
        "because": replay.because,
        **{name: json_number(value) for name, value in numbers.items()},
    }
