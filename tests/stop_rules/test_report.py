"""Which rule is offered, in words and flags; and when none is."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest

from analysis.stop_rules.report import rules_report
from decoding.errors import ParamError
from decoding.methods import METHODS
from decoding.types import JSON

from .drafted import ChainStep, PureDrafter, recorded

MACHINE = {"device": "a device", "date": "2026-11-27", "dtype": "bfloat16", "versions": "torch 2"}


@pytest.fixture
def costs(tmp_path: Path) -> str:
    """Return a device on which a pass over n rows takes 10 + n ms, measured for up to 16 of them."""
    entry = {"shape": "toy", "context": 64, "rows": [1, 2, 16], "milliseconds": [11, 12, 26]}
    path = tmp_path / "costs.json"
    path.write_text(json.dumps(MACHINE | {"shapes": [entry]}))
    return str(path)


def report(runs: list[list[ChainStep]], costs: str | None, gamma: int, **more: float) -> dict[str, JSON]:
    record = recorded(runs, params={"gamma": gamma}, finish="end_of_text")
    part: dict[str, JSON] = rules_report(record, costs=costs, **more)["selections"][0]
    return part


def test_the_fastest_rule_is_offered_with_flags_that_run_takes(costs: str) -> None:
    """Of ten guesses two come true, and each costs as much as a row and a half: two a step are the fastest."""
    text = [ChainStep(3 * place, (0.9, 0.9, *[0.2] * 8), 2) for place in range(40)]
    part = report([text], costs, 10, draft_ms=0.5)
    best = part["rows"][part["best"]]
    assert best["rule"] == "gamma=2, threshold=0" and best["certainty"] == "exact"
    assert best["flags"] == "--method draft_model --param gamma=2 --param threshold=0"
    # Three tokens for two guesses and a pass over three rows, beside three passes over one.
    assert best["speedup"] == pytest.approx(3 * 11 / (2 * 0.5 + 13)) and best["least_speedup"] == best["speedup"]
    assert part["sentence"].startswith("Take gamma=2, threshold=0: 2.36 times as fast as one token at a time")
    assert "instead of 1.27" in part["sentence"]
    words = best["flags"].split("--param ")[1:]
    METHODS["draft_model"].Params.parse(dict(word.strip().split("=") for word in words))


def test_the_flags_name_all_settings_that_the_record_changed(costs: str) -> None:
    """Without its form, EAGLE's chain would become a tree, which the draft length says nothing of."""
    chain = PureDrafter.random(3, 200, 0.7).steps(5, 0.0)
    record = recorded([chain], "eagle3", {"form": "chain", "gamma": 5, "k": 7})
    part = rules_report(record, costs=costs, draft_ms=0.6)["selections"][0]
    for row in part["rows"]:
        if row["flags"]:
            words = row["flags"].removeprefix("--method eagle3 --param ").split(" --param ")
            params = METHODS["eagle3"].Params.parse(dict(word.split("=") for word in words))
            assert (params.form, params.k) == ("chain", 7), row["flags"]


def test_no_rule_is_better_than_the_recorded_one(costs: str) -> None:
    """A drafter that is always right drafts as much as it may."""
    sure = PureDrafter([True] * 90, [0.99] * 90, [[]] * 90)
    part = report([sure.steps(4, 0.0)], costs, 4)
    assert part["best"] == 0 and part["sentence"].startswith("No rule is surely faster than the recorded one")


def test_an_estimate_within_its_margin_is_not_offered(costs: str) -> None:
    """EAGLE's next draft is unknown where no recorded step begins: a gain of a few per cent is none."""
    chains = [PureDrafter.random(seed, 200, 0.7).steps(5, 0.0) for seed in range(3)]
    record = recorded(chains, "eagle3", {"form": "chain", "gamma": 5})
    part = rules_report(record, costs=costs, draft_ms=0.6)["selections"][0]
    now = part["rows"][0]["speedup"]
    near = [row for row in part["rows"][1:] if row["flags"] and now < row["speedup"] < 1.1 * now]
    assert near and part["best"] == 0 and all(row["certainty"] == "estimated" for row in near)


def test_do_not_speculate_here(costs: str) -> None:
    """A drafter that is as slow as the target and mostly wrong does not pay at any length."""
    part = report([PureDrafter.random(5, 120, 0.2).steps(6, 0.0)], costs, 6, draft_ms=11.0)
    assert part["best"] is None and part["sentence"].startswith("Do not speculate here: the fastest rule")
    assert all(row["speedup"] < 1 for row in part["rows"])


def test_adaptive_verification_takes_what_pays(costs: str) -> None:
    """Drafted are all four guesses; the second is verified only where it is likely."""
    likely, doubtful = (0.9, 0.9, 0.01, 0.01), (0.9, 0.05, 0.9, 0.9)
    text = [ChainStep(3 * place, likely, 2) for place in range(20)]
    text += [ChainStep(60 + 2 * place, doubtful, 1) for place in range(20)]
    part = report([text], costs, 4, draft_ms=0.1)
    adaptive = part["rows"][-1]
    assert adaptive["rule"] == "adaptive verification" and adaptive["flags"] is None
    assert adaptive["certainty"] == "exact"  # it accepts all that the record does
    assert adaptive["verified_per_step"] == pytest.approx((19 * 2 + 20 * 1) / 39)
    assert adaptive["drafted_per_step"] == 4
    assert "Adaptive verification, as in vLLM, would give" in part["sentence"]


def test_without_costs_or_times_there_is_no_speedup(costs: str) -> None:
    runs = [PureDrafter.random(6, 40, 0.7).steps(4, 0.0)]
    part = report(runs, None, 4)
    assert part["unpriced"] == "no costs were given: name a device with --costs" and part["best"] is None
    assert {row["speedup"] for row in part["rows"]} == {None} and part["rows"][-1]["rule"] != "adaptive verification"
    untimed = recorded(runs, params={"gamma": 4}, times=(0.0, 0.0))
    part = rules_report(untimed, costs=costs)["selections"][0]
    assert "give --draft-ms" in part["unpriced"] and part["rows"][0]["tokens_per_step"] > 1
    assert rules_report(untimed, costs=costs, draft_ms=1.0)["selections"][0]["unpriced"] is None


def test_drafting_keeps_its_recorded_proportion_to_the_passes(costs: str) -> None:
    """A guess took a tenth of a pass; passes over five rows take 15 ms on the device, so a guess takes 1.5."""
    text = [ChainStep(place, (0.5,) * 4, 0) for place in range(30)]
    part = report([text], costs, 4)
    assert part["draft_ms"] == pytest.approx(1.5)
    assert part["rows"][0]["speedup"] == pytest.approx(11 / (15 + 4 * 1.5))


def test_passes_beyond_the_measured_rows_have_no_price(costs: str) -> None:
    text = [ChainStep(place, (0.5,) * 40, 0) for place in range(30)]
    for more in ({}, {"draft_ms": 0.0}):
        part = report([text], costs, 40, **more)
        assert "passes read up to 41 tokens, and passes over more than 16 were not measured" in part["unpriced"]
        assert part["best"] is None and part["sentence"] == "" and {row["speedup"] for row in part["rows"]} == {None}


def test_runs_of_one_step_have_no_price(costs: str) -> None:
    part = report([[ChainStep(0, (0.5,), 1)]], costs, 1, draft_ms=0.0)
    assert part["best"] is None and part["sentence"].startswith("No run has a step after its first")


def test_methods_that_are_not_replayed_say_so() -> None:
    plain = recorded([[ChainStep(0, (), 0)]], "autoregressive")
    assert rules_report(plain)["selections"] == []
    part = rules_report(recorded([[ChainStep(0, (), 0)]], "medusa"))["selections"][0]
    assert "rules can be replayed only for draft_model, kangaroo, eagle3" in part["reason"] and part["rows"] == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "holds no costs"),
        ("[]", "holds no costs"),
        ('{"device": "d", "shapes": 7}', "holds no costs"),
        (
            '{"device": "d", "shapes": [null, {"shape": "a", "context": 1, "rows": [1], "milliseconds": [1]}]}',
            "no costs",
        ),
        (
            '{"device": "d", "shapes": [{"shape": "a", "context": 1, "rows": [1, 2], "milliseconds": [1, NaN]}]}',
            "no costs",
        ),
        (
            '{"device": "d", "shapes": [{"shape": "a", "context": 1, "rows": [2, 1], "milliseconds": [1, 2]}]}',
            "no costs",
        ),
        (
            '{"device": "d", "shapes": [{"shape": "a", "context": 1, "rows": [1, 2], "milliseconds": [1, 0]}]}',
            "no costs",
        ),
        ("[" * 100_000, "holds no costs"),
    ],
)
def test_a_file_that_holds_no_costs(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "costs.json").write_text(content)
    record = recorded([[ChainStep(0, (), 0)]])
    with pytest.raises(ParamError, match=reason):
        rules_report(record, costs=str(tmp_path / "costs.json"))


def test_devices_are_named_and_models_too() -> None:
    record = recorded([PureDrafter.random(7, 40, 0.7).steps(4, 0.0)], params={"gamma": 4})
    near = rules_report(record, costs="cpu-2-cores")["costs"]
    assert near == {"device": "AMD EPYC", "model": "smollm2", "context": 128, "rows": 64}
    assert rules_report(record, costs="nvidia-h200:7B")["costs"]["model"] == "7B"
    for named, reason in {
        "nvidia-h200": "name one, as DEVICE:MODEL",
        "nvidia-h200:9B": "name one, as DEVICE:MODEL",
        "toaster": "name cpu-2-cores, cpu-avx2-2-cores, nvidia-h200",
        "../costs/cpu-2-cores": "there are no costs of",
    }.items():
        with pytest.raises(ParamError, match=reason):
            rules_report(record, costs=named)


@pytest.mark.slow
def test_fifty_thousand_steps_take_less_than_two_seconds(costs: str) -> None:
    """Measured in the processor's time, since tests run side by side."""
    chance = random.Random(3)
    drafters = [PureDrafter.random(chance.randrange(1000), 750, 0.75) for _ in range(20)]
    some = [drafter.steps(8, 0.0) for drafter in drafters]
    count = sum(map(len, some))
    record = recorded(some * -(-50_000 // count), params={"gamma": 8})
    begin = time.process_time()
    rules_report(record, costs=costs)
    assert len(record.steps) >= 50_000 and time.process_time() - begin < 2.0
