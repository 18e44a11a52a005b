"""Facts are computed from what a trace holds: each against a count by hand, on recordings and on formulas."""

from __future__ import annotations

import statistics
from fractions import Fraction
from pathlib import Path

import pytest

from decoding import read_trace
from lab.papers.claims import ClaimOutcome
from viz.lessons.fact_reader import FACTS, FactReader
from viz.lessons.fact_types import FactError
from viz.lessons.sources import Claims, RunLibrary

RUNS = {
    "ar": "smollm2-spelling-autoregressive",
    "pl": "smollm2-spelling-prompt_lookup",
    "ja": "smollm2-prime-jacobi",
    "la": "smollm2-rain-lookahead",
    "chain": "eagle3-chain",
    "su": "smollm2-spelling-suffix",
    "to": "smollm2-spelling-token_recycling",
    "ka": "kangaroo-defaults",
    "ou": "ouroboros-defaults",
    "dm": "draft-model-defaults",
    "ty": "medusa-typical",
    "ring": "lesson-ring",
    "df": "dflash-defaults",
}
READER = FactReader(RunLibrary(), RUNS)


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        ("passes(pl)", "8"),
        ("new_tokens(pl)", "30"),
        ("accepted(pl 4)", "2"),
        ("first_rejected(pl 4)", "n3"),
        ("correction(pl 4)", "ming"),
        ("token(pl 4 n3)", "ing"),
        ("right_after_wrong(pl 4)", "2"),
        ("p(pl 4 n3) :2", "0.08"),
        ("tokens_per_pass(pl) :2", "3.75"),
        ("different_texts(ar pl)", "1"),
        ("different_texts(ar pl ja la)", "3"),
        ("draft_vocabulary(chain)", "1,536"),
        ("cosine(chain 2 n0) :2", "0.38"),
        ("cosine(chain 2 n4) :2", "0.29"),
        ("early_guess(ja 5)", "n3"),
        ("sees(la 13 n7)", "n0 n1 n2 n3"),
        ("fed(la 14)", "12"),
        ("expected_tokens(3 0.7) :3", "2.533"),
        ("best_guesses(0.7 0.3)", "2"),
        ("best_guesses(0.7 0.7)", "0"),
        ("overlap(0.6 0.9) :2", "0.70"),
        ("agreement(0.6 0.9) :2", "0.58"),
        ("as_in_hundred(letters-redraw) :2", "77.89"),
        ("percent(letters-compare kept guesses) :2", "58.14"),
        ("matched_tokens(su 4)", "14"),
        ("matched_tokens(pl 4)", "3"),
        ("table_entry(to 14 n1 4)", "ming"),
        ("fewest_passes(ja pl ar)", "pl ar ja"),
        ("exit_layer(ka)", "2"),
        ("doubted(ka)", "52"),
        ("doubted_kept(ka)", "22"),
        ("kept_between(ka 0.9 1.1)", "58"),
        ("guesses_between(ka 0.9 1.1)", "66"),
        ("step_drafter_passes(ou 3)", "2"),
        ("phrases_kept(ou 1)", "4"),
        ("drafter_passes(ou)", "29"),
        ("drafter_passes(dm)", "40"),
        ("drafter_passes(df)", "29"),  # one for each block, of which the first step has none
        ("entropy(ty 2 n0) :2", "0.98"),
        ("bound(ty 2 n0) :2", "0.11"),
        ("threshold(ty 2 n0) :2", "0.09"),
        ("threshold(ty 1 n5) :2", "0.04"),
        ("staying(pl 4)", "3"),
        ("stored(pl 4)", "83"),
        ("many_heads_bytes(pl 3)", "69,120"),
        ("slots(ring)", "768"),
        ("sight(ring)", "256"),
        ("first_overwriting(ring)", "19"),
        ("overwritten_tokens(ring 19)", "4"),
        ("oldest_seen(ring 19)", "511"),
        ("keys_missing(256 256 6)", "5"),
        ("keys_missing(768 256 6)", "0"),
        ("counted(asked-suffix 2)", "11"),
        ("in_hundred(after-cards-typical with) :0", "100"),
        ("in_hundred(after-cards-typical step) :0", "0"),
        ("ratio(phrases-0 rows tokens) :2", "1.22"),
        ("percent(drafter-slow listed ranked) :0", "45"),
        ("percent_more(drafter-mended drafter-slow tokens steps) :2", "240.51"),  # 269 steps against 79
        ("tokens_by_position(drafter-slow) :4", "1.2674"),  # 1 + 69 / 258: no second guess is right
        ("letters(letters-compare)", "50,000"),
    ],
)
def test_a_fact_in_words(fact: str, text: str) -> None:
    assert READER.text(fact) == text


def test_a_time_is_that_of_the_record() -> None:
    first, *others = read_trace(RunLibrary().file(RUNS["ar"])).steps
    written = statistics.median(step.timing.forward_ms for step in others)
    assert READER.text("reading_gain(ar) :2") == f"{written * first.fed / first.timing.forward_ms:.2f}"
    assert READER.text("prompt_in_passes(ar) :2") == f"{first.timing.forward_ms / written:.2f}"
    assert READER.text("separate_ms(ar 5 6) :2") == f"{6 * others[4].timing.forward_ms:.2f}"
    block, chain = (
        statistics.median(step.timing.draft_ms for step in read_trace(RunLibrary().file(RUNS[run])).steps[1:])
        for run in ("df", "chain")
    )
    assert READER.text("draft_ms(df) :3") == f"{block:.3f}"
    assert READER.text("draft_growth(df chain) :3") == f"{block / chain:.3f}"


def test_what_jacobi_overwrites_is_counted_by_the_whole_text() -> None:
    """The lesson's surprise: right guesses that are lost. By hand, from the text alone."""
    trace = read_trace(RunLibrary().file(RUNS["ja"]))
    text = (*trace.header.prompt, *(token for step in trace.steps for token in step.emitted))
    early = kept = 0
    for step, later in zip(trace.steps, trace.steps[1:], strict=False):
        for node in range(1, len(step.tokens)):  # a chain: node i is i tokens after the root
            at = step.start + node - 1
            if node in step.path or at >= len(text) or step.tokens[node] != text[at] or at < later.start:
                continue
            early += 1
            place = at - later.start + 1
            kept += 0 < place < len(later.tokens) and later.tokens[place] == text[at]
    assert (READER.value("too_early(ja)"), READER.value("overwritten(ja)")) == (early, early - kept)
    assert early > 0


def test_expected_tokens_are_exact() -> None:
    alpha = Fraction(7, 10)
    exact = sum(alpha**power for power in range(4))
    assert READER.value("expected_tokens(3 0.7)") == pytest.approx(float(exact), abs=1e-12)


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        ("passes", "is no fact"),
        ("passes()", "needs more arguments"),
        ("passes(pl 3)", "has no use for '3'"),
        ("accepted(pl)", "needs a run and the number of a step"),
        ("accepted(pl -1)", "needs a run and the number of a step"),
        ("rows_ms(pl 77)", "no later step of this run reads 77 rows"),
        ("mass(pl 4 n1)", "are no nodes"),
        ("overlap(a b)", "needs a number"),
        ("first_rejected(pl 2)", "every guess of this step was accepted"),
        ("__import__(os)", "is no fact"),
    ],
)
def test_a_wrong_fact_is_a_sentence(fact: str, words: str) -> None:
    with pytest.raises(FactError, match=words.replace("(", r"\(")):
        READER.text(fact)


def test_every_fact_says_what_it_is() -> None:
    assert all(function.__doc__ for function in FACTS.values())


def test_all_claims_are_read() -> None:
    """A row of the table that is not read could not be cited."""
    claims = Claims.read()
    assert len(claims.rows) == 42
    for row in claims.rows.values():
        assert row.verdicts[0][0] == "pocket"
        assert {verdict for _, verdict in row.verdicts} <= {outcome.value for outcome in ClaimOutcome}


def test_a_claim_has_a_verdict_on_each_model(tmp_path: Path) -> None:
    """A page that was written beside another one's shows that one's verdicts in a column more."""
    heads = "# What the papers found, on {}\n\n| paper | place | claim | verdict |{}\n"
    (tmp_path / "a.md").write_text(heads.format("pocket", "") + "| Medusa | Figure 6b | larger trees | holds |\n")
    row = "| Medusa | Figure 6b | larger trees | does not hold here | holds |\n"
    (tmp_path / "b.md").write_text(heads.format("SmolLM2", " on pocket |") + row)
    [claim] = Claims.read([tmp_path / "a.md", tmp_path / "b.md", tmp_path / "none.md"]).rows.values()
    assert claim.verdicts == (("pocket", "holds"), ("SmolLM2", "does not hold here"))
