"""Other stop rules as a card: what is advised, what is not, and that it is priced as the best draft length is."""

from __future__ import annotations

import json
from functools import cache

import pyarrow as pa
import pytest

from analysis.metrics import METRICS, MetricResult, Selection
from analysis.stop_rules.card import CARD
from analysis.store.folder import read_folder
from decoding.methods import METHODS
from tests import ROOT
from tests.metrics.test_hostile import nonsense

from .drafted import ChainStep, PureDrafter, recorded


@cache
def folder(name: str) -> Selection:
    return Selection.from_folder(read_folder(ROOT / "assets" / "runs" / name))


def card(name: str, method: str, setting: str = "default") -> MetricResult:
    return CARD.measure(folder(name).where(method=method, setting=setting))


def test_a_faster_rule_is_advised_as_settings_that_a_run_takes() -> None:
    """Of ten guesses two come true, and a guess costs a quarter of a pass: two a step are the fastest."""
    chains = [ChainStep(3 * place, (0.9, 0.9, *[0.2] * 8), 2) for place in range(40)]
    both = recorded([chains], params={"gamma": 10}, times=(2.5, 10.0), finish="end_of_text", beside=True)
    result = CARD.measure(both.where(method="draft_model", setting="default"))
    assert result["advice"] == {"gamma": 2, "threshold": 0.0}
    METHODS["draft_model"].Params.parse(result["advice"])
    assert result["rows"][0][0] == "gamma=10, threshold=0 (recorded)" and result["rows"][1][4] == "exact"
    assert result["value"] == pytest.approx(3 / 1.5) and result["sentence"].startswith(
        "Take gamma=2, threshold=0: 2.00"
    )


def test_what_is_advised_holds_all_settings_that_the_record_changed() -> None:
    chains = [ChainStep(3 * place, (0.9, 0.9, *[0.2] * 8), 2) for place in range(40)]
    params = {"form": "chain", "gamma": 10}
    both = recorded([chains], "eagle3", params, times=(2.5, 10.0), finish="end_of_text", beside=True)
    advice = CARD.measure(both.where(method="eagle3", setting="default")).get("advice", {})
    assert advice["form"] == "chain" and advice["gamma"] < 10


@pytest.mark.parametrize("seed", range(30))
def test_nonsense_is_answered(seed: int) -> None:
    """The server replays what visitors bring."""
    record = nonsense(seed)
    for method, setting in record.methods:
        assert len(json.dumps(CARD.measure(record.where(method=method, setting=setting)), allow_nan=False)) < 100_000


def test_unknown_drafts_have_no_price() -> None:
    """A record of another engine times its steps and may not count its guesses."""
    tables = recorded([PureDrafter.random(1, 60, 0.7).steps(4, 0.0)], params={"gamma": 4}, beside=True)
    steps = tables.steps.columns.table
    unknown = steps.set_column(steps.schema.get_field_index("drafted"), "drafted", pa.nulls(len(steps), pa.int32()))
    record = Selection.of(tables.runs.columns.table, unknown, tables.nodes.columns.table)
    result = CARD.measure(record.where(method="draft_model", setting="default"))
    assert result["value"] is None and (result["reason"] or "this folder lacks some of these" in result["sentence"])


def test_its_tokens_and_its_cost_are_those_of_the_other_cards() -> None:
    """The recorded rule is what was measured, less the time outside passes."""
    chosen = folder("pocket").where(method="draft_model", setting="default")
    speeds = dict(row[:2] for row in METRICS["speedup"].measure(chosen)["rows"])
    result, measured = CARD.measure(chosen), METRICS["speedup"].measure(chosen)["value"]
    assert result["rows"][0][3] == pytest.approx(speeds["and for verifying more rows"])
    assert f"with it, the recorded rule was measured at {measured:.2f} times" in result["sentence"]


@pytest.mark.parametrize(
    ("name", "method", "setting", "sentence"),
    [
        ("slow-drafter", "eagle3", "default", "Do not speculate here"),
        ("pocket", "draft_model", "short", "No rule is surely faster"),
        ("pocket", "draft_model", "default", "No rule is surely faster"),  # one is, by less than a hundredth
    ],
)
def test_nothing_is_advised_where_nothing_is_surely_faster(name: str, method: str, setting: str, sentence: str) -> None:
    result = card(name, method, setting)
    assert result["sentence"].startswith(sentence) and "advice" not in result and result["rows"]


def test_what_cannot_be_replayed_says_why() -> None:
    assert "choose one method" in (CARD.measure(folder("pocket"))["reason"] or "")
    assert "rules can be replayed only for" in (card("pocket", "medusa")["reason"] or "")
    alone = recorded([PureDrafter.random(1, 60, 0.7).steps(4, 0.0)], params={"gamma": 4})
    result = CARD.measure(alone)
    assert "this folder lacks some of these" in result["sentence"] and {row[3] for row in result["rows"]} == {None}
    assert "advice" not in result and result["rows"][0][1] > 1
