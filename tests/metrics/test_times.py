"""Times, latencies and costs on steps whose milliseconds are round numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from analysis.metrics import Selection, measure

from .tables import Row, guess, root, run, selection, step


def timed(number: int, accepted: int, drafted: int, draft: float, forward: float, rest: float, **more: int) -> Row:
    """A step with the time of its phases; `rest` is in none of the passes."""
    parts = {"draft_ms": draft, "forward_ms": forward, "accept_ms": rest, "commit_ms": 0.0, "other_ms": 0.0}
    return step(number, accepted, drafted, **more) | parts | {"total_ms": draft + forward + rest}


# One token at a time: 10 ms a step, of which 8 are the pass. Drafting: 4.2 + 9 + 3 = 16.2 ms, 16 rows.
PLAIN = [timed(0, 0, 0, 0, 98, 2, of=1, fed=50), *(timed(n, 0, 0, 0, 8, 2, of=1, fed=1) for n in range(1, 5))]
DRAFT = [timed(0, 0, 0, 0, 98, 2, fed=50), timed(1, 2, 2, 4.2, 9, 3, fed=16), timed(2, 0, 2, 4.2, 9, 3, fed=16)]
RUNS = [run(0, "a", prefill_seconds=0.1), run(1, "a", method="autoregressive", prefill_seconds=0.1)]
FOLDER = selection(RUNS, [*DRAFT, *PLAIN])
DRAFTED, ALONE = FOLDER.where(method="draft_model"), FOLDER.where(method="autoregressive")


def test_the_step_time_and_its_split() -> None:
    rows = {row[0]: row[1:3] for row in measure("step_time", DRAFTED)["rows"]}
    assert rows["all"] == [pytest.approx(16.2), 1.0]
    assert rows["draft"] == [pytest.approx(4.2), pytest.approx(4.2 / 16.2)]
    assert rows["forward"] == [9.0, pytest.approx(9 / 16.2)] and rows["accept"][0] == 3.0
    assert "56% is the target's pass" in measure("step_time", DRAFTED)["sentence"]


def test_the_cost_of_a_step() -> None:
    """1.62 autoregressive steps: 0.42 to draft, 0.1 to verify, 0.1 outside, and the 1 that it replaces."""
    cost = measure("step_cost", DRAFTED)
    assert cost["value"] == pytest.approx(1.62)
    assert [row[1] for row in cost["rows"]] == pytest.approx([1.62, 1.0, 0.42, 0.1, 0.1])
    assert measure("step_cost", ALONE)["value"] == 1.0


def test_expected_and_measured_speed() -> None:
    """Two tokens per step: 2 for nothing, 2/1.42 with the draft, 2/1.52 with its rows, 2/1.62 measured."""
    speedup = measure("speedup", DRAFTED)
    assert speedup["value"] == pytest.approx(2 / 1.62)
    assert [row[1] for row in speedup["rows"][:4]] == pytest.approx([2, 2 / 1.42, 2 / 1.52, 2 / 1.62])
    assert speedup["rows"][4][1] == pytest.approx((5 / 0.1324) / (5 / 0.14))  # 100 ms to read the prompt in both
    assert "The largest cost is the draft (0.42 of a target step). Next: " in speedup["sentence"]
    assert "verification of 16 rows (1.1 passes)" in speedup["sentence"]
    assert "the time outside passes (19% of a step)" in speedup["sentence"]
    assert "At acceptance 0.67, " in speedup["sentence"]


def beside_plain(slow: Sequence[float], dear: Sequence[float], *, other: str = "") -> Selection:
    """Questions on a machine that takes `slow` ms a plain step, and `dear` of these for one that writes two tokens."""
    runs, steps = list[Row](), list[Row]()
    for place, (ms, cost) in enumerate(zip(slow, dear, strict=True)):
        one, alone = 2 * place, 2 * place + 1
        runs += [run(one, f"q{place}"), run(alone, f"{other}q{place}", method="autoregressive")]
        steps += [timed(0, 0, 0, 0, 9, 0, of=one), *(timed(n, 1, 2, 0, ms * cost, 0, of=one) for n in (1, 2))]
        steps += [timed(0, 0, 0, 0, 9, 0, of=alone), *(timed(n, 0, 0, 0, ms, 0, of=alone) for n in (1, 2, 3, 4))]
    return selection(runs, steps)


def test_the_speed_up_is_paired_with_its_own_question() -> None:
    """A machine that is ten times slower in some questions is so for both: of the ratio nothing is uncertain."""
    speedup = measure("speedup", beside_plain([1, 10, 3, 100], [1.25] * 4).where(method="draft_model"))
    assert speedup["value"] == pytest.approx(2 / 1.25)
    assert [speedup["low"], speedup["high"]] == pytest.approx([1.6, 1.6])
    assert "1.60 times as fast as one token at a time (1.60 to 1.60 over 4 questions)" in speedup["sentence"]
    assert all(row[2] <= row[1] * 1.0001 and row[3] >= row[1] * 0.9999 for row in speedup["rows"])
    spread = measure("speedup", beside_plain([2] * 6, [1.0, 1.1, 1.2, 1.3, 1.4, 1.5]).where(method="draft_model"))
    assert spread["value"] == pytest.approx(2 / 1.25) and spread["low"] < 1.6 < spread["high"]  # type: ignore[operator]
    cost = measure("step_cost", beside_plain([2] * 6, [1.0, 1.1, 1.2, 1.3, 1.4, 1.5]).where(method="draft_model"))
    assert cost["value"] == pytest.approx(1.25) and cost["low"] < 1.25 < cost["high"]  # type: ignore[operator]


def test_a_question_without_its_baseline_does_not_count() -> None:
    """Its text may be the slow one: a speed is a speed-up only beside the same question."""
    whole = beside_plain([1, 1, 1, 50], [1.25, 1.25, 1.25, 4.0])
    part = whole.where(runs=[0, 1, 2, 3, 4, 5, 6]).where(method="draft_model")
    lacking = selection(
        [run(0, "a"), run(1, "a", method="autoregressive"), run(2, "b")],
        [
            *(timed(1, 1, 2, 0, 10, 0), timed(1, 0, 0, 0, 10, 0, of=1)),
            *(timed(1, 1, 2, 0, 90, 0, of=2), timed(2, 1, 2, 0, 90, 0, of=2)),
        ],
    )
    assert measure("speedup", lacking.where(method="draft_model"))["value"] == 2.0
    assert measure("speedup", part)["value"] == pytest.approx(2 * (2 * (3 + 50) / 4) / (2 * (3 * 1.25 + 200) / 4))


def test_other_questions_are_compared_and_say_nothing_of_noise() -> None:
    speedup = measure("speedup", beside_plain([2] * 4, [1.25] * 4, other="other ").where(method="draft_model"))
    assert speedup["value"] == pytest.approx(1.6) and speedup["low"] is speedup["high"] is None
    assert "beside autoregressive runs on other questions" in speedup["sentence"]


@pytest.mark.slow  # many runs are simulated; its formula is tested beside it
def test_intervals_of_the_speed_up_cover_the_truth() -> None:
    """Of 200 records of ten questions, about 95% should hold the speed-up that all questions there are would have."""
    random, held = np.random.default_rng(0), 0
    for _ in range(200):
        cost = random.gamma(25, 0.05, 10)  # of mean 1.25; so 1.6 times as fast, the machine's speed as it may be
        speedup = measure(
            "speedup", beside_plain(random.gamma(9, 1, 10).tolist(), cost.tolist()).where(method="draft_model")
        )
        held += speedup["low"] <= 1.6 <= speedup["high"]  # type: ignore[operator]
    assert 0.88 <= held / 200 <= 0.99


def test_the_names_of_the_speed_ups_bars_are_not_cut() -> None:
    names = [row[0] for key in ("speedup", "step_cost") for row in measure(key, DRAFTED)["rows"]]
    assert names and all(len(name) <= 34 for name in names)  # as viz/debug/charts.py cuts them


def test_the_best_gamma() -> None:
    """Two of three judged guesses came true; a guess costs (0.42 + 0.1) / 2 of a step.

    Gamma 0 to 3: 1, 1.667 / 1.26 = 1.323, 2.111 / 1.52 = 1.389, 2.407 / 1.78 = 1.352.
    """
    gamma = measure("best_gamma", DRAFTED)
    assert gamma["value"] == 2
    assert [row[3] for row in gamma["rows"][:4]] == pytest.approx([1, 1.3228, 1.3889, 1.3525], abs=1e-4)
    assert "now drafts have 2.0 guesses" in gamma["sentence"]
    assert f"measured to be {measure('speedup', DRAFTED)['value']:.2f} times as fast" in gamma["sentence"]


def test_a_dear_draft_of_bad_guesses_does_not_pay() -> None:
    steps = [timed(0, 0, 0, 0, 98, 2), timed(1, 1, 4, 40, 8, 2), timed(2, 0, 4, 40, 8, 2)]
    gamma = measure("best_gamma", selection(RUNS, [*steps, *PLAIN]).where(method="draft_model"))
    assert gamma["value"] == 0 and "guessing does not pay" in gamma["sentence"]


def test_a_tree_has_no_gamma() -> None:
    nodes = [root(), guess(1, 0, 1), guess(2, 0, 1, sibling=1)]
    tree = selection(RUNS, [*DRAFT, *PLAIN], nodes).where(method="draft_model")
    assert "trees" in (measure("best_gamma", tree)["reason"] or "")
    assert "gamma" not in measure("speedup", tree)["sentence"]


def test_a_free_drafter_that_is_never_right() -> None:
    steps = [timed(0, 0, 0, 0, 98, 2), timed(1, 0, 4, 0, 8, 2), timed(2, 0, 4, 0, 8, 2)]
    speedup = measure("speedup", selection(RUNS, [*steps, *PLAIN]).where(method="draft_model"))
    assert speedup["value"] == 1.0 and "Too few guesses are accepted" in speedup["sentence"]


def test_without_a_baseline_there_is_a_reason() -> None:
    for key in ("step_cost", "speedup", "best_gamma"):
        assert "no autoregressive run" in (measure(key, selection([run()], DRAFT))["reason"] or "")


def test_times_that_are_not_split_still_give_a_cost() -> None:
    bare = [{**row, **dict.fromkeys(("draft_ms", "forward_ms", "accept_ms"))} for row in [*DRAFT, *PLAIN]]
    part = selection(RUNS, bare).where(method="draft_model")
    assert measure("step_cost", part)["value"] == pytest.approx(1.62)
    assert measure("best_gamma", part)["reason"]
    assert len(measure("speedup", part)["rows"]) == 3


def test_tokens_of_one_step_arrive_together() -> None:
    """Steps of 16.2 ms with 3 tokens and with 1: gaps of 16.2, 0, 0 and 16.2; 8.1 ms for each token of the run."""
    rows = {row[0]: row[1:] for row in measure("latency", DRAFTED)["rows"]}
    assert rows["to the first token"] == [1, 100.0, 100.0, 100.0]
    assert rows["between steps"][:2] == [2, pytest.approx(16.2)]
    assert rows["between tokens"][:2] == [4, pytest.approx(8.1)]  # halfway between 0 and 16.2
    assert rows["for each token of a run (TPOT)"][:2] == [1, pytest.approx(8.1)]


def test_throughput_of_several_tools() -> None:
    """Later: 4 tokens in 32.4 ms. All: 5 tokens in 132.4 ms."""
    rows = [row[1] for row in measure("throughput", DRAFTED)["rows"]]
    assert rows == pytest.approx([4 / 0.0324, 5 / 0.1324, 5 / 0.1324])
    sentence = measure("throughput", DRAFTED)["sentence"]
    assert sentence == "123.5 tokens per second after the first step, which reads the prompt."


def test_spec_bench_takes_the_mean_of_rates() -> None:
    """Question a: 2 tokens in 20 ms; b: 4 tokens in 80 ms. Not 6 in 100, but (100 + 50) / 2."""
    runs = [run(0, "a"), run(1, "b")]
    steps = [timed(0, 0, 0, 0, 10, 0), timed(1, 0, 0, 0, 10, 0)]
    steps += [timed(0, 0, 0, 0, 20, 0, of=1), timed(1, 2, 2, 0, 60, 0, of=1)]
    rows = measure("throughput", selection(runs, steps))["rows"]
    assert [row[1] for row in rows[1:]] == pytest.approx([60, 75])


def test_an_unfinished_step_has_no_say() -> None:
    """A run of which a time is unknown has no wall time, and no other number changes."""
    steps = [*DRAFT, step(0, 0, 0, of=1), timed(1, 0, 0, 0, 8, 2, of=1)]
    whole: Selection = selection([run(0, "a"), run(1, "b")], steps)
    assert measure("throughput", whole)["rows"][1][1] == pytest.approx(5 / 0.1324)


def test_times_of_whole_runs() -> None:
    """Without step times: 100 ms and 400 ms for 1 + 4 tokens of the one run, 4 tokens at 8 a second of the other."""
    whole = {"prefill_seconds": 0.1, "decode_seconds": 0.4, "tokens_per_second": 10.0}
    runs = [run(0, "a", new_tokens=5, **whole), run(1, "b", new_tokens=4, tokens_per_second=8.0)]
    steps = [step(0, 0, 0), step(1, 3, 3), step(0, 0, 0, of=1), step(1, 2, 3, of=1)]
    record = selection(runs, steps)
    rows = [row[1] for row in measure("throughput", record)["rows"]]
    assert rows == pytest.approx([4 / 0.4, (5 + 4) / (0.5 + 0.5), (10 + 8) / 2])
    gaps = {row[0]: row[1:3] for row in measure("latency", record)["rows"]}
    assert gaps == {"to the first token": [1, 100.0], "for each token of a run (TPOT)": [1, 100.0]}
    part = record.masked(record.steps.maybe("step") > 0)  # the time of a run is not that of some of its steps
    assert measure("throughput", part)["reason"] and len(measure("latency", part)["rows"]) == 1
    assert measure("step_time", record)["reason"] == "this record has no times of steps"
