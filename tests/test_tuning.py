"""The race for the fastest settings: who stays in it, what it answers, and what is saved."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from analysis import tuning
from analysis.bench.measured import MeasuredRun
from analysis.reporting import finish
from analysis.tuning import candidates, read_tuned, tune
from decoding import load
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.methods import METHODS
from decoding.toy import toy
from decoding.types import JSON

PROMPTS = [f"Day {day}" for day in range(12)]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that the user has tuned is read or replaced."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture(scope="module")
def pocket() -> Engine:
    return load("pocket", device="cpu")


def _clock(
    monkeypatch: pytest.MonkeyPatch, seconds: Mapping[int, float], plain: Callable[[], float], answer: int = 1000
) -> list[int]:
    """Let a run of Jacobi with n guesses take so many seconds a token; returns the lengths of the runs to come."""
    lengths = list[int]()

    def run(*given: Any) -> MeasuredRun:
        _, method, params, _, _, budget, _, most = given
        each = plain() if method == "autoregressive" else seconds[params["n"]]
        written = min(budget, answer)
        later = min(written - 1, max(1, int(most / each) if most < math.inf else written))
        lengths.append(1 + later)
        return MeasuredRun((0,) * (1 + later), 1 + later, 0.0, each * later, later)

    monkeypatch.setattr(tuning, "timed_run", run)
    monkeypatch.setattr(tuning, "Disturbance", lambda: type("Quiet", (), {"disturbed": False})())
    monkeypatch.setattr(tuning, "candidates", lambda method: [{"n": n} for n in seconds])
    return lengths


@pytest.mark.parametrize("plain", [0.5, 2.0])
def test_the_fastest_wins_unless_autoregressive_decoding_is_faster(
    monkeypatch: pytest.MonkeyPatch, plain: float
) -> None:
    _clock(monkeypatch, {n: 1.0 + abs(n - 7) for n in range(1, 41)}, lambda: plain)
    engine, prompts = toy(), PROMPTS
    report = tune(engine, "jacobi", prompts, max_new_tokens=128)
    assert report["params"] == {"n": 7} and report["speedup_vs_autoregressive"] == pytest.approx(plain)
    assert report["speculate"] == (plain > 1.0)
    assert report["compared"] == 4 and report["faster_on"] == (4 if plain > 1.0 else 0) and not report["too_close"]
    assert report["fastest"] == ("jacobi" if plain > 1.0 else "autoregressive")
    assert report["tokens"] < 0.1 * report["grid_tokens"]
    assert read_tuned(engine, ["jacobi", "lookahead"]) == {"jacobi": METHODS["jacobi"].Params(n=7).to_json()}


def test_equals_are_halved_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flat field must not take as long as the whole grid."""
    _clock(monkeypatch, dict.fromkeys(range(1, 17), 1.0), lambda: 1.5)
    report = tune(toy(), "jacobi", PROMPTS, max_new_tokens=64)
    assert sorted(row["answers"] for row in report["rows"]) == [1] * 8 + [2] * 4 + [3] + [7] * 3


def test_the_final_goes_on_until_it_is_clear_who_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Autoregressive decoding is now faster, now slower: a third of the prompts is answered."""
    turns = itertools.cycle([0.5, 2.1])
    _clock(monkeypatch, {1: 1.0, 2: 1.0}, lambda: next(turns))
    report = tune(toy(), "jacobi", 3 * PROMPTS, max_new_tokens=64)
    assert report["compared"] == len(PROMPTS) and report["faster_on"] == len(PROMPTS) // 2
    assert report["too_close"]
    assert report["speculate"] == (report["speedup_vs_autoregressive"] > 1)


def test_a_gain_on_one_long_answer_is_too_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tokens of all answers come a little faster, and all answers but the long one slower."""
    _clock(monkeypatch, {1: 1.0, 2: 1.0}, lambda: 1.0)
    first = list[int]()

    def run(*given: Any) -> MeasuredRun:
        _, method, _, _, ids, budget, _, _ = given
        first.extend(() if first else ids)
        later, plain = (budget - 1, 1.05) if ids == first else (3, 0.9)
        seconds = later * (plain if method == "autoregressive" else 1.0)
        return MeasuredRun((0,) * (1 + later), 1 + later, 0.0, seconds, later)

    monkeypatch.setattr(tuning, "timed_run", run)
    report = tune(toy(), "jacobi", [f"Day {day}" for day in range(36)], max_new_tokens=1000)
    assert report["faster_on"] == 1 < report["compared"] and report["speculate"] and report["too_close"]


def test_a_slow_candidate_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a few would take longer than all others together."""
    lengths = _clock(monkeypatch, {1: 1.0, 2: 1.0, 3: 1.0, 4: 10.0}, lambda: 1.0)
    tune(toy(), "jacobi", PROMPTS, max_new_tokens=64)
    assert lengths[:6] == [16, 16, 16, 16, 16, 4]  # twice autoregressive decoding's time, which warmed up first


def test_little_time_is_for_few_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the defaults and some of all others; the last three always race."""
    lengths = _clock(monkeypatch, dict.fromkeys(range(40), 1.0), lambda: 1.0)
    report = finish(tuning.tuning(toy(), "jacobi", PROMPTS, 64, seconds=2000.0), lambda what, share: None)
    raced = [row["params"]["n"] for row in report["rows"]]
    assert report["candidates"] == 40 and 0 in raced and len({*raced}) == len(raced)
    assert 8 < len(raced) < 40 and 500 < sum(lengths) < 2500
    report = finish(tuning.tuning(toy(), "jacobi", PROMPTS, 64, seconds=1.0), lambda what, share: None)
    assert len(report["rows"]) == 3


def test_short_answers_judge_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where answers are short, a heat takes several prompts."""
    _clock(monkeypatch, {n: float(n) for n in (4, 3, 2, 1)}, lambda: 1.0, answer=3)
    report = tune(toy(), "jacobi", PROMPTS, max_new_tokens=16)
    assert report["params"] == {"n": 1} and report["rows"][-1]["answers"] == 3
    _clock(monkeypatch, {1: 1.0}, lambda: 1.0, answer=1)
    with pytest.raises(ParamError, match="choose other prompts"):
        tune(toy(), "jacobi", PROMPTS, max_new_tokens=16)


def test_a_disturbed_run_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice at most; then it is counted."""
    _clock(monkeypatch, {1: 1.0, 2: 1.0}, lambda: 1.0)
    monkeypatch.setattr(tuning, "Disturbance", lambda: type("Busy", (), {"disturbed": True})())
    report = tune(toy(), "jacobi", PROMPTS[:1], max_new_tokens=4)
    assert report["disturbed_runs"] == 3 and report["tokens"] == 3 * 3 * 4 + 2 * 4  # and a warm-up


def test_real_runs_of_a_method() -> None:
    report = tune(toy(), "prompt_lookup", ["On Monday", "On Tuesday"], max_new_tokens=8)
    assert report["params"] in [row["params"] for row in report["rows"]]
    assert len(report["rows"]) == len(candidates("prompt_lookup"))
    assert report["speculate"] == (report["tokens_per_second"] > report["autoregressive_tokens_per_second"])


def test_only_settings_that_keep_the_text_are_tried() -> None:
    """Typical acceptance writes another text, which has no speed-up."""
    for method in ("medusa", "lookahead"):
        kind = METHODS[method].Params
        tried = [kind.parse(settings) for settings in candidates(method)]
        assert len(tried) > 3 and all(each.typical is None for each in tried)


def test_what_cannot_be_tuned() -> None:
    with pytest.raises(ParamError, match="no settings to choose"):
        tune(toy(), "autoregressive", PROMPTS)
    with pytest.raises(ParamError, match="no prompt leaves room"):
        tune(toy(), "jacobi", PROMPTS, max_new_tokens=900_000)


@pytest.mark.parametrize(
    ("method", "params"),
    [("suffix", {}), ("token_recycling", {"warm_start": "across"}), ("ouroboros", {"warm_start": "across"})],
)
def test_what_a_method_remembers_can_be_copied(method: str, params: dict[str, JSON], pocket: Engine) -> None:
    """A run that other processes disturbed is repeated with the memory that it began with."""
    memory = dict[str, Any]()

    def written(memory: dict[str, Any]) -> list[tuple[tuple[int, ...], int]]:
        run = pocket.decode(pocket.as_turn("What is 3 + 4?"), method, params, max_new_tokens=16, memory=memory)
        return [(step.emitted, step.drafted) for step in run]

    written(memory)
    assert memory
    copies = [copy.deepcopy(memory) for _ in range(2)]
    second = written(memory)
    assert written(copies[0]) == second  # what the first copy learns is unknown to the second one
    assert written(copies[1]) == second
