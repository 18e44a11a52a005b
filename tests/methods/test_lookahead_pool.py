"""How Lookahead's window moves and its pool learns, replayed from the record alone; and the reference's quirks."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from decoding.methods.lookahead import LookaheadParams
from decoding.sampling import Sampling
from decoding.types import JSON

from .loop import Drive, Rows, Turn
from .test_lookahead import PROMPT, QUIRKS, SAMPLED, drive

END = 1  # the end of text of these runs
FEW = [0, 2, 4] * 8  # a prompt that lacks tokens which the model writes
Pool = dict[int, Rows]


def insert(pool: Pool, G: int, key: int, ngram: list[int]) -> list[JSON]:
    """Return the rule in plain lists, oldest first; what the panel should say about it."""
    held = pool.setdefault(key, [])
    outcome = "refreshed" if ngram in held else "added" if len(held) < G else "evicted-oldest"
    if outcome == "refreshed":
        held.remove(ngram)
    elif outcome == "evicted-oldest":
        held.pop(0)
    held.append(ngram)
    return [key, ngram, outcome]


def columns(turn: Turn) -> list[list[int]]:
    """Return the n-grams that a step's window holds, each with its key in front."""
    (row0, *cells), new = turn.panel["rows"], turn.panel["new"]
    keys = [turn.before[-1], *row0]
    return [[keys[i], *(row[i] for row in cells), new[i]] for i in range(len(new))]


def replay(run: Drive, N: int, G: int, *, text: bool, repeated: bool = False, dropped: bool = False) -> None:
    """Predict every step's guesses and insertions from the steps before."""
    pool: Pool = {}
    history = list(PROMPT)
    for end in range(N, len(history) + 1) if text else ():
        insert(pool, G, history[end - N], history[end - N + 1 : end])
    for turn in run.turns:
        steady = turn.panel["phase"] == "steady"
        guesses = pool.get(turn.before[-1], []) if steady else []
        assert turn.panel["guesses"] == [guess[: N - 1 - dropped] for guess in guesses]
        expected = [insert(pool, G, key, ngram) for key, *ngram in (columns(turn) if steady else [])]
        for token in turn.verdict.emitted:
            history.append(turn.verdict.emitted[-1] if repeated else token)
            if text:
                expected.append(insert(pool, G, history[-N], history[-N + 1 :]))
        assert turn.panel["pool"]["inserted"] == expected
        assert turn.panel["pool"]["keys"] == len(pool)
        assert turn.panel["pool"]["entries"] == sum(map(len, pool.values()))
        assert turn.panel["key"] == turn.before[-1]


@pytest.mark.parametrize("N", [3, 4, 6])
@pytest.mark.parametrize("text", [False, True], ids=["window", "window and text"])
def test_the_pool_holds_what_the_record_says(N: int, text: bool) -> None:
    """Guesses after the step's own harvest, a wrong key, another order or a lost token would each differ."""
    hits = 0
    for seed in range(6):
        run = drive(seed, N=N, G=3, prompt_as_reference=text).until(60)
        replay(run, N, 3, text=text)
        hits += sum(len(turn.verdict.emitted) > 2 for turn in run.turns)
    assert hits > 10, "the replay must cover steps that wrote several tokens"


def test_pooled_text_really_stood_there() -> None:
    """A pool that is fed from the text may never hold a continuation that the text does not have."""
    run = drive(W=1, N=3, G=4, prompt_as_reference=True).until(60)
    whole = run.context.text
    grams = {tuple(whole[i : i + 3]) for i in range(len(whole) - 2)}
    for turn in run.turns:
        harvested = len(columns(turn)) if turn.panel["phase"] == "steady" else 0
        for key, ngram, _ in turn.panel["pool"]["inserted"][harvested:]:
            assert (key, *ngram) in grams


def test_harvested_n_grams_are_trajectories() -> None:
    """An n-gram's tokens are the answers that one column got in N steps in a row, key included."""
    N = 5
    run = drive(seed=4, N=N, W=7, G=9).until(80)
    steady = [turn for turn in run.turns if turn.panel["phase"] == "steady"]
    checked = 0
    for end in range(N, len(steady) + 1):
        answers = [turn.panel["new"] for turn in steady[end - N : end]]
        for i, (key, ngram, _) in enumerate(steady[end - 1].panel["pool"]["inserted"]):
            path = [new[i] for new in answers]
            assert ngram == path[1:]
            assert key == (path[0] if i else steady[end - 1].before[-1])
            checked += 1
    assert checked > 50


def after_row_shift(turn: Turn) -> Rows:
    """Return the next window, by the paper."""
    rows = turn.panel["rows"]
    return [rows[1][1:], *rows[2:], turn.panel["new"]]


@pytest.mark.parametrize("sampling", [Sampling(), SAMPLED], ids=["greedy", "sampled"])
def test_the_window_moves_by_one_row_whatever_is_accepted(sampling: Sampling) -> None:
    """Following the accepted tokens is the natural mistake; the paper's window does not."""
    jumps, cells = 0, set()
    for seed in range(6):
        run = drive(seed, sampling=sampling).until(60)
        for one, two in zip(run.turns[2:], run.turns[3:], strict=False):
            assert two.panel["rows"] == after_row_shift(one)
            jumps += len(one.verdict.emitted) > 1
            cells.update(two.panel["rows"][-1])
    assert jumps > 3
    assert END in cells, "without ends of text the runs could not show that they stay"


@pytest.mark.parametrize("W", [2, 6])
def test_shift_by_hits_drops_columns_and_refills_from_the_prompt(W: int) -> None:
    """Every row loses as many leading cells as guesses were accepted, and keeps its length; also if W is smaller."""
    far, unlike = 0, 0
    for seed in range(6):
        run = drive(seed, prompt=FEW, W=W, N=5, shift="hits").until(60)
        for one, two in zip(run.turns[3:], run.turns[4:], strict=False):
            hits = len(one.verdict.emitted) - 1
            for moved, row in zip(after_row_shift(one), two.panel["rows"], strict=True):
                kept = moved[hits:]
                assert row[: len(kept)] == kept
                assert len(row) == len(moved)
                assert set(row[len(kept) :]) <= set(FEW)
                unlike += row != moved
            far += hits > 2
    assert far > 3, "some steps must accept more than a window of two columns holds"
    assert unlike > 3


def test_dropping_the_bonus_writes_at_most_n_minus_1() -> None:
    """The quirk: a full match gives up its bonus; a step never writes N tokens, the first N-1 stay what they were."""
    N, longest = 4, {False: 0, True: 0}
    for seed in range(6):
        for drop in longest:
            run = drive(seed, N=N, drop_bonus=drop, prompt_as_reference=True).until(60)
            longest[drop] = max(longest[drop], *(len(turn.verdict.emitted) for turn in run.turns))
            for turn in run.turns:
                assert {len(guess) for guess in turn.panel["guesses"]} <= {N - 1 - drop}
            assert run.written[:60] == drive(seed, G=0).until(60).written
    assert longest == {False: N, True: N - 1}


def test_dropping_the_bonus_changes_only_full_matches() -> None:
    """From the same state, the quirk must write the same tokens but for the N-th."""
    for seed in range(8):
        with_bonus, without = (drive(seed, N=4, drop_bonus=drop) for drop in (False, True))
        while with_bonus.context.text == without.context.text and len(with_bonus.written) < 80:
            one, two = with_bonus.turn().verdict.emitted, without.turn().verdict.emitted
            assert two == one[:3]


def test_repeating_history_spoils_the_pooled_text_only() -> None:
    """The quirk: greedy, with the text pooled, a step's last token stands for all of its tokens."""
    hits = 0
    for seed in range(6):
        run = drive(seed, prompt_as_reference=True, repeat_history=True).until(60)
        replay(run, 4, 5, text=True, repeated=True)
        hits += sum(len(set(turn.verdict.emitted)) > 1 for turn in run.turns)
    assert hits > 5


@pytest.mark.parametrize(
    ("quirk", "params", "sampling"),
    [
        ("repeat_history", {}, Sampling()),
        ("repeat_history", {"prompt_as_reference": True}, SAMPLED),
        ("replace_end", {"prompt_as_reference": True}, Sampling()),
        ("drop_bonus", {"G": 0}, Sampling()),
    ],
)
def test_a_quirk_is_silent_outside_its_case(quirk: str, params: Mapping[str, JSON], sampling: Sampling) -> None:
    """The reference shows each quirk in one mode only."""
    for seed in range(4):
        quirks: dict[str, JSON] = {**params, quirk: True}
        plain = drive(seed, sampling=sampling, **params).until(60)
        quirky = drive(seed, sampling=sampling, **quirks).until(60)
        assert plain.turns == quirky.turns


def test_replacing_ends_touches_only_ends_of_the_new_row() -> None:
    """The quirk: when sampling, an end of text in the row that enters becomes a token of the prompt; the harvest,
    which comes before, keeps it.
    """
    replaced = 0
    for seed in range(6):
        run = drive(seed, sampling=SAMPLED, replace_end=True).until(60)
        replay(run, 4, 5, text=False)
        for one, two in zip(run.turns[2:], run.turns[3:], strict=False):
            *older, new = after_row_shift(one)
            *rows, last = two.panel["rows"]
            assert rows == older
            for answer, cell in zip(new, last, strict=True):
                assert cell == answer or (answer == END and cell in PROMPT)
                replaced += cell != answer
    assert replaced > 20


def test_the_preset_of_minimal_py_steps_as_that_script() -> None:
    """It pools the text, but greedy with its last token repeated, and never writes the word after a full match."""
    preset = LookaheadParams.presets["minimal.py"]
    full = 0
    for seed in range(4):
        run = drive(seed, order=1, **preset).until(80)
        replay(run, 7, 20, text=True, repeated=True, dropped=True)
        lengths = [len(turn.verdict.emitted) for turn in run.turns]
        assert max(lengths) <= 6
        full += lengths.count(6)
    assert full > 3


def test_all_quirks_together_still_replay() -> None:
    """Options that are right alone may still trip over one another."""
    params: dict[str, JSON] = {**QUIRKS, "prompt_as_reference": True, "layout": "merged", "shift": "hits"}
    run = drive(2, **params).until(60)
    replay(run, 4, 5, text=True, repeated=True, dropped=True)
