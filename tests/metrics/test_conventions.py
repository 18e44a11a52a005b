"""vLLM's and Spec-Bench's formulas, restated plainly, give the same numbers from the same runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import numpy as np
import pytest

from analysis.export import vllm
from analysis.metrics import Selection, measure
from decoding.trace import read_trace
from decoding.trace.metrics import consistent_acceptance, survival, written
from decoding.types import Step
from tests import GOLDEN

from .tables import Row, run, selection

TRACES = sorted(GOLDEN.glob("*.jsonl"))


def rows(steps: Sequence[Step]) -> list[Row]:
    """Return a trace's steps as rows."""
    return [
        {
            "run": 0,
            "step": step.index,
            "drafted": step.drafted,
            "accepted": step.accepted,
            "written": len(step.emitted),
            "fed": step.fed,
        }
        for step in steps
    ]


@pytest.mark.parametrize("path", [path for path in TRACES if path.stem != "autoregressive"], ids=lambda path: path.stem)
def test_vllms_schema_of_every_method(path: Path) -> None:
    """The export of a trace and the metrics of its folder must not contradict each other."""
    trace = read_trace(path)
    theirs = vllm(trace)["metrics"]["speculative_decoding"]
    ours = selection(steps=rows(trace.steps))
    assert measure("mean_acceptance_length", ours)["rows"][1][1] == pytest.approx(theirs["mean_acceptance_length"])
    assert measure("draft_acceptance_rate", ours)["value"] == pytest.approx(theirs["draft_acceptance_rate"])
    counts = [row[1] for row in measure("acceptance_histogram", ours)["rows"]]
    assert counts == theirs["acceptance_histogram"][: len(counts)] and not any(
        theirs["acceptance_histogram"][len(counts) :]
    )
    by_length = theirs["acceptance_histogram_by_draft_length"]
    for drafted, accepted, steps in measure("histogram_by_draft_length", ours)["rows"]:
        assert by_length[str(drafted)][accepted] == steps
    assert sum(map(sum, by_length.values())) == theirs["num_spec_steps"] == sum(counts)


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_the_traces_own_metrics(path: Path) -> None:
    """A run's summary and a folder of it say the same."""
    trace = read_trace(path)
    assert trace.summary is not None
    ours = selection(steps=rows(trace.steps))
    assert measure("mean_acceptance_length", ours)["value"] == pytest.approx(trace.summary.mean_acceptance_length)
    for w, share, *_ in measure("ctar", ours)["rows"]:
        assert share == consistent_acceptance(written(trace.steps), w)
    guessing = [step for step in trace.steps if step.drafted]
    if any(step.accepted for step in guessing):
        counts = np.bincount([step.accepted for step in guessing]).tolist()
        assert [row[3] for row in measure("survival", ours)["rows"]] == pytest.approx(survival(counts))


def test_vllms_log_line() -> None:
    """num_drafts, num_draft_tokens, num_accepted_tokens and num_accepted_tokens_per_pos, as its engine counts them."""
    outcomes = [(3, 3), (3, 0), (3, 1), (2, 2), (3, 2)]  # drafted, accepted
    per_position = [0, 0, 0]
    for _, accepted in outcomes:
        for position in range(accepted):
            per_position[position] += 1
    drafts, drafted, accepted = len(outcomes), sum(k for k, _ in outcomes), sum(j for _, j in outcomes)
    steps = [
        {"run": 0, "step": place, "drafted": k, "accepted": j, "written": j + 1}
        for place, (k, j) in enumerate([(0, 0), *outcomes])
    ]
    ours = selection(steps=steps)
    assert measure("mean_acceptance_length", ours)["rows"][1][1] == 1 + accepted / drafts
    assert measure("draft_acceptance_rate", ours)["value"] == accepted / drafted
    assert [row[3] for row in measure("survival", ours)["rows"]] == [count / drafts for count in per_position]


# Spec-Bench: an answer is (new tokens, wall time, accept lengths) of each turn.
Answer = list[tuple[int, float, list[int]]]
METHOD: list[Answer] = [[(6, 0.3, [1, 3, 2]), (4, 0.2, [4])], [(5, 0.1, [1, 2, 2])], [(9, 0.9, [1, 5, 3])]]
PLAIN: list[Answer] = [[(2, 0.4, [1, 1]), (2, 0.3, [1, 1])], [(3, 0.3, [1, 1, 1])], [(2, 0.5, [1, 1])]]


def spec_bench(answers: list[Answer]) -> tuple[float, float]:
    """Compute #Mean accepted tokens and tokens/s as its speed.py does."""
    lengths = [length for answer in answers for _, _, turn in answer for length in turn]
    speeds = [sum(tokens for tokens, _, _ in answer) / sum(seconds for _, seconds, _ in answer) for answer in answers]
    return mean(lengths), mean(speeds)


def folder() -> Selection:
    """Return both methods' answers; a turn's wall time is spread over its steps, the first one included."""
    runs: list[Row] = []
    steps: list[Row] = []
    for method, answers in (("eagle", METHOD), ("autoregressive", PLAIN)):
        for question, answer in enumerate(answers):
            for turn, (_, seconds, lengths) in enumerate(answer, start=1):
                number = len(runs)
                runs.append(run(number, f"q{question}", turn=turn, method=method))
                steps += [
                    {
                        "run": number,
                        "step": place,
                        "accepted": length - 1,
                        "written": length,
                        "total_ms": 1000 * seconds / len(lengths),
                    }
                    for place, length in enumerate(lengths)
                ]
    return selection(runs, steps)


def test_spec_benchs_table() -> None:
    """Its speedup is the ratio of the two means of rates, not the mean of ratios."""
    for answers in (METHOD, PLAIN):
        assert all(tokens == sum(lengths) for answer in answers for tokens, _, lengths in answer)
    (length, speed), (plain_length, plain_speed) = spec_bench(METHOD), spec_bench(PLAIN)
    ours, plain = folder().where(method="eagle"), folder().where(method="autoregressive")
    assert measure("mean_acceptance_length", ours)["value"] == pytest.approx(length)
    assert measure("mean_acceptance_length", plain)["value"] == plain_length == 1
    assert measure("throughput", ours)["rows"][2][1] == pytest.approx(speed)
    assert measure("throughput", plain)["rows"][2][1] == pytest.approx(plain_speed)
    assert measure("speedup", ours)["rows"][-1][1] == pytest.approx(speed / plain_speed)
