"""The acceptance metrics on tables small enough to count by hand."""

from __future__ import annotations

import pytest

from analysis.metrics import Selection, measure

from .tables import guess, root, run, selection, step, tables_of

# Question a: a first step that only reads the prompt, then 2 of 4, 0 of 4, 4 of 4 guesses. Question b: 1 of 2, none.
RUNS = [run(0, "a", category="code"), run(1, "b")]
STEPS = [
    *(step(0, 0, 0, fed=9), step(1, 2, 4, fed=5), step(2, 0, 4, fed=5), step(3, 4, 4, fed=5)),
    *(step(0, 0, 0, of=1, fed=7), step(1, 1, 2, of=1, fed=3), step(2, 0, 0, of=1, fed=1)),
]
ALL = selection(RUNS, STEPS)


def test_every_convention_of_the_mean_acceptance_length() -> None:
    """Written: 1 + 3 + 1 + 5 + 1 + 2 + 1 = 14 tokens in 7 steps; 4 steps had guesses and accepted 7."""
    result = measure("mean_acceptance_length", ALL)
    assert result["value"] == pytest.approx(14 / 7)
    spec_bench, vllm, gpt_fast, macro = (row[1] for row in result["rows"])
    assert spec_bench == pytest.approx(14 / 7)
    assert vllm == pytest.approx(1 + 7 / 4)
    assert gpt_fast == pytest.approx(7 / 7)
    assert macro == pytest.approx((10 / 4 + 4 / 3) / 2)
    assert result["low"] is not None and result["high"] is not None
    assert result["low"] <= 14 / 7 <= result["high"]


def test_one_question_has_no_interval() -> None:
    result = measure("mean_acceptance_length", ALL.where(runs=[0]))
    assert (result["value"], result["low"], result["high"]) == (10 / 4, None, None)


def test_the_draft_acceptance_rate() -> None:
    assert measure("draft_acceptance_rate", ALL)["value"] == pytest.approx(7 / 14)


def test_survival_is_of_the_steps_with_guesses() -> None:
    """Accepted 2, 0, 4 and 1: at least one in three of four, at least two in two."""
    rows = measure("survival", ALL)["rows"]
    assert [row[:4] for row in rows] == [[1, 3, 4, 0.75], [2, 2, 4, 0.5], [3, 1, 4, 0.25], [4, 1, 4, 0.25]]
    assert measure("survival", ALL)["where"][1] == [("steps", "accepted", ">=", 2)]
    assert measure("survival", ALL)["sentence"].endswith("in 75% of 4 steps; in fewer than half from guess 3 on.")
    rare = measure("survival", selection(steps=[step(0, 1, 2), step(1, 0, 2), step(2, 0, 2)]))
    assert rare["sentence"] == "The first guess was accepted in 33% of 3 steps."  # half is told already


def test_wilson_at_three_of_four() -> None:
    """(0.75 + 1.96^2/8 -+ 1.96 sqrt(0.1875/4 + 1.96^2/64)) / (1 + 1.96^2/4) = 0.3006 to 0.9544."""
    assert measure("survival", ALL)["rows"][0][4:] == pytest.approx([0.3006, 0.9544], abs=1e-4)


def test_conditional_acceptance_of_chains() -> None:
    """Position 1 judged in 4 steps, right in 3; 2 judged where 1 was right: all 3, right in 2; then 1 of 2, 1 of 1."""
    rows = measure("conditional_acceptance", ALL)["rows"]
    assert [row[:3] for row in rows] == [[1, 3, 4], [2, 2, 3], [3, 1, 2], [4, 1, 1]]


def test_a_tree_ends_where_its_nodes_say() -> None:
    """Three guesses side by side are one position, not three: after the accepted one there was nothing to judge."""
    nodes = [root(), guess(1, 0, 1), guess(2, 0, 1, sibling=1, accepted=True), guess(3, 0, 1, sibling=2)]
    tree = selection(steps=[step(0, 0, 0), step(1, 1, 3)], nodes=nodes)
    assert [row[:3] for row in measure("conditional_acceptance", tree)["rows"]] == [[1, 1, 1]]
    chain = selection(steps=[step(0, 0, 0), step(1, 1, 3)])
    assert [row[:3] for row in measure("conditional_acceptance", chain)["rows"]] == [[1, 1, 1], [2, 0, 1]]


def test_ctar_is_of_all_passes() -> None:
    """S = 1, 3, 1, 5, 1, 2, 1."""
    rows = measure("ctar", ALL)["rows"]
    assert [row[:2] for row in rows] == [[w, pytest.approx(n / 7)] for w, n in ((1, 3), (2, 2), (3, 1), (4, 1))]


def test_histograms() -> None:
    assert [row[:2] for row in measure("acceptance_histogram", ALL)["rows"]] == [[0, 1], [1, 1], [2, 1], [3, 0], [4, 1]]
    assert measure("histogram_by_draft_length", ALL)["rows"] == [[2, 1, 1], [4, 0, 1], [4, 2, 1], [4, 4, 1]]


def test_rows_per_token_leave_the_prompt_out() -> None:
    """5 + 5 + 5 + 3 + 1 rows for 3 + 1 + 5 + 2 + 1 tokens."""
    assert measure("fed_per_token", ALL)["value"] == pytest.approx(19 / 12)


@pytest.mark.parametrize("key", ["draft_acceptance_rate", "fed_per_token", "histogram_by_draft_length"])
def test_what_a_record_does_not_know_has_a_reason(key: str) -> None:
    result = measure(key, selection(steps=[step(0, 0), step(1, 2)]))
    assert result["reason"] and result["value"] is None and not result["rows"]


def test_the_record_gives_its_own_reason() -> None:
    """An import knows better than we do why a column is empty."""
    result = measure("fed_per_token", selection(steps=[step(0, 0), step(1, 2)], fed="vLLM does not count rows"))
    assert result["reason"] == "vLLM does not count rows"


def test_nothing_chosen_is_no_fault() -> None:
    nothing = ALL.where(method="telepathy")
    assert len(nothing.steps) == 0
    assert measure("mean_acceptance_length", nothing)["reason"] == "no step is chosen"


def test_some_records_count_guesses_by_run_alone() -> None:
    """A summary with a histogram: 3 of 8 guesses, though only the first step's are known. Of a part nobody knows."""
    runs = [run(0, "a", drafted=8, accepted=3), run(1, "b")]
    steps = [step(0, 0, 0), step(1, 1), step(2, 2), step(0, 0, 0, of=1), step(1, 2, 4, of=1), step(2, 1, of=1)]
    whole = selection(runs, steps)
    assert measure("draft_acceptance_rate", whole.where(runs=[0]))["value"] == pytest.approx(3 / 8)
    assert measure("draft_acceptance_rate", whole)["value"] == pytest.approx(3 / 8)  # of the second run it is not known
    part = whole.masked(whole.steps.maybe("accepted") > 0).where(runs=[0])
    assert measure("draft_acceptance_rate", part)["reason"] == "this record does not count the guesses of a step"
    lengths = measure("histogram_by_draft_length", whole)
    assert lengths["rows"] == [[4, 2, 1]] and "3 more steps are not recorded" in lengths["sentence"]
    assert measure("by_category", whole)["rows"][0][6] == pytest.approx(3 / 8)


def test_a_record_says_itself_why_it_has_no_guesses() -> None:
    tables = tables_of([run()], [step(0, 0), step(1, 2)])
    record = Selection.of(*tables.values(), {"nodes.rank": "no engine records them"})
    assert measure("rank_histogram", record)["reason"] == "this record lacks the single guesses"
    record = Selection.of(*tables.values(), {"nodes.judged": "no engine records its rejected guesses"})
    assert measure("rank_histogram", record)["reason"] == "no engine records its rejected guesses"
