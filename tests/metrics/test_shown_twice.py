"""What several metrics show is one number, or their words tell the difference: of our sample and of an imported one."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

from analysis.imports import read_any
from analysis.metrics import METRICS, MetricResult, Selection, measure
from analysis.store.folder import read_folder
from decoding.packed import ASSETS

FOLDERS = {
    "sample": lambda: Selection.from_folder(read_folder(ASSETS / "runs" / "pocket")),
    "vllm": lambda: Selection.of(*read_any(ASSETS / "samples" / "vllm.jsonl")[:3]),
}
METHODS = ["autoregressive", "draft_model", "medusa", "prompt_lookup", "lookahead", "eagle3"]


@cache
def shown(folder: str, method: str | None) -> dict[str, MetricResult]:
    whole = FOLDERS[folder]()
    chosen = whole.where(method=method) if method else whole
    return {key: measure(key, chosen) for key in METRICS}


def rows(result: MetricResult) -> list[dict[str, Any]]:
    return [dict(zip(result["columns"], row, strict=True)) for row in result["rows"]]


def column(result: MetricResult, name: str) -> list[Any]:
    return [row[name] for row in rows(result)]


def last_number(pattern: str, result: MetricResult) -> float:
    """Return the number that a sentence gives after these words."""
    numbers = re.findall(pattern, result["sentence"])
    assert numbers, result["sentence"]
    return float(numbers[-1].replace(",", ""))


CASES = [*(("sample", method) for method in METHODS), ("vllm", None)]


@pytest.mark.parametrize(("folder", "method"), CASES)
def test_tokens_per_step_are_one_number(folder: str, method: str | None) -> None:
    results = shown(folder, method)
    lengths = results["mean_acceptance_length"]
    every, guessing = column(lengths, "tokens")[:2]
    assert lengths["value"] == every == pytest.approx(last_number(r"writes ([\d.]+) tokens", lengths), abs=0.005)
    if results["ctar"]["reason"] is None:
        assert last_number(r"rate is ([\d.]+)\.", results["ctar"]) == pytest.approx(every, abs=0.005)
    for key in ("by_category", "by_context", "by_entropy"):
        groups = rows(results[key])
        if results[key]["reason"] is None and sum(row["steps"] for row in groups) == steps_of(results):
            total = sum(row["steps"] * row["tokens per step"] for row in groups)
            assert total / steps_of(results) == pytest.approx(every), key
    if results["suggested_tree"]["reason"] is None:
        now = last_number(r"as vLLM counts, ([\d.]+)\.", results["suggested_tree"])
        assert now == pytest.approx(guessing, abs=0.005)
    if results["step_cost"]["reason"] is None:
        later = last_number(r"writes ([\d.]+) tokens", results["step_cost"])
        assert later == last_number(r"([\d.]+) tokens per step after the first", results["speedup"])


def steps_of(results: dict[str, MetricResult]) -> int:
    """Count all steps, by the histogram of those with guesses and its sentence about the others."""
    histogram = results["acceptance_histogram"]
    without = re.search(r"([\d,]+) steps had no guess", histogram["sentence"])
    return sum(column(histogram, "steps")) + (int(without[1].replace(",", "")) if without else 0)


@pytest.mark.parametrize(("folder", "method"), [case for case in CASES if case[1] != "autoregressive"])
def test_steps_with_guesses_and_accepted_guesses_are_one_number(folder: str, method: str | None) -> None:
    results = shown(folder, method)
    counts = rows(results["acceptance_histogram"])
    steps, accepted = sum(row["steps"] for row in counts), sum(row["steps"] * row["accepted"] for row in counts)
    drafted = last_number(r"of ([\d,]+) guesses", results["draft_acceptance_rate"])
    assert results["draft_acceptance_rate"]["value"] == pytest.approx(accepted / drafted)
    assert column(results["mean_acceptance_length"], "tokens")[1] == pytest.approx(1 + accepted / steps)
    survival = rows(results["survival"])
    assert {row["steps"] for row in survival} == {steps}
    assert sum(row["accepted"] for row in survival) == accepted
    lengths = rows(results["histogram_by_draft_length"])
    assert sum(row["steps"] for row in lengths) == steps
    assert sum(row["steps"] * row["drafted"] for row in lengths) == drafted
    conditional = rows(results["conditional_acceptance"])
    assert [row["accepted"] for row in conditional][: len(survival)] == [row["accepted"] for row in survival]
    assert not any(row["accepted"] for row in conditional[len(survival) :])
    if results["by_source"]["reason"] is None:
        assert sum(column(results["by_source"], "accepted")) == accepted
        assert sum(column(results["by_source"], "proposed")) == drafted
        assert sum(column(results["hit_ranks"], "accepted")) == accepted
        lost = results["lost_because"]
        assert sum(column(lost, "steps")) <= steps and "that the end of the text did not cut" in lost["sentence"]
        missed = last_number(r"At ([\d,]+) positions", results["confusion"])
        ended = {row["because"]: row["steps"] for row in rows(lost)}
        assert sum(ended.values()) - ended.get("draft ended", 0) == missed
    if results["rank_histogram"]["reason"] is None:
        positions = last_number(r"of ([\d,]+) positions", results["rank_histogram"])
        assert positions == accepted + missed


@pytest.mark.parametrize(("folder", "method"), CASES)
def test_times_and_speed_are_one_number(folder: str, method: str | None) -> None:
    results = shown(folder, method)
    if results["step_cost"]["reason"] is not None:
        assert results["speedup"]["reason"] == results["step_cost"]["reason"]
        return
    plain = shown(folder, "autoregressive")
    assert results["step_cost"]["value"] == pytest.approx(results["step_time"]["value"] / plain["step_time"]["value"])
    assert results["speedup"]["value"] == pytest.approx(results["throughput"]["value"] / plain["throughput"]["value"])
    later = last_number(r"writes ([\d.]+) tokens", results["step_cost"])
    speed = 1000 * later / results["step_time"]["value"]
    assert speed == pytest.approx(results["throughput"]["value"], rel=0.005)
    assert "after the first" in results["step_time"]["sentence"] and "on average" in results["step_time"]["sentence"]
    if results["best_gamma"]["reason"] is None:
        best = int(results["best_gamma"]["value"])
        assert f"the best gamma is {best}" in results["best_gamma"]["sentence"]
        if "best gamma" in results["speedup"]["sentence"]:
            assert f"the best gamma is {best}." in results["speedup"]["sentence"]
