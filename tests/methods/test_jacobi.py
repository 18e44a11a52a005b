"""Jacobi decoding: the target's answers become the guesses, and settle from the left."""

from __future__ import annotations

import json
from collections import Counter

import pytest
import torch

from decoding.methods.jacobi import Jacobi, JacobiParams
from decoding.model.table import TableModel
from decoding.sampling import Sampling
from decoding.types import Role

from .loop import Drive, hashed, random_prompt

PROMPT = random_prompt(12, 7, 0)
REFILLS = ("prompt", "last", "zero")


@pytest.mark.parametrize("refill", REFILLS)
def test_answers_become_the_next_guesses(refill: str) -> None:
    """Answers that are taken one place off, or a tail that is refilled at the wrong end, never converge."""
    settled = Counter[int]()
    for seed in range(12):
        drive = Drive(Jacobi, hashed(1 + seed % 2, 5, seed), PROMPT, n=5, refill=refill).until(40)
        for one, two in zip(drive.turns, drive.turns[1:], strict=False):
            a = len(one.verdict.emitted) - 1
            settled[a] += 1
            guesses = list(two.draft.tokens[1:])
            assert guesses[: 5 - a] == list(one.verdict.argmax[a + 1 :])
            allowed = {"prompt": set(PROMPT), "last": {two.before[-1]}, "zero": {0}}[refill]
            assert len(guesses) == 5
            assert set(guesses[5 - a :]) <= allowed
    assert {0, 1, 5} <= set(settled), "the runs must hold steps that settle nothing, one and all guesses"


def test_the_first_guesses_are_refills() -> None:
    """The first step has no answers yet: its guesses must come from the prompt alone."""
    prompt = [3, 1, 3, 1]
    seen = {
        Drive(Jacobi, hashed(1, 9, 0), prompt, Sampling(seed=seed), n=1).turn().draft.tokens[1] for seed in range(20)
    }
    assert seen == {1, 3}


def test_the_step_is_a_chain_of_guesses() -> None:
    """Any other tree would show the target a text that is not the block."""
    for turn in Drive(Jacobi, hashed(2, 5, 1), PROMPT, n=4).until(20).turns:
        assert turn.draft.tokens[0] == turn.before[-1]
        assert turn.draft.parents == (-1, 0, 1, 2, 3)
        assert turn.draft.roles == (Role.ROOT, *[Role.VERIFY] * 4)


def test_the_panel_tells_what_settled() -> None:
    """A guess is settled when it and all guesses before it are what the target answers there."""
    for turn in Drive(Jacobi, hashed(1, 4, 3), PROMPT, n=6).until(60).turns:
        guesses, answers = turn.panel["guesses"], turn.panel["answers"]
        wrong = [i for i, guess in enumerate(guesses) if guess != answers[i]]
        assert turn.panel["settled"] == min([*wrong, 6])
        assert turn.verdict.emitted == tuple(answers[: turn.panel["settled"] + 1])
        assert len(answers) == 7
        assert json.loads(json.dumps(turn.panel)) == turn.panel


@pytest.mark.parametrize("n", [1, 3, 8])
def test_no_place_is_guessed_more_than_n_times(n: int) -> None:
    """The method's guarantee, and the meaning of its sources: how often a place has been worked on before."""
    oldest = 0
    for seed in range(5):
        guessed, answered = Counter[int](), Counter[int]()
        for turn in Drive(Jacobi, hashed(3, 7, seed), PROMPT, n=n).until(50).turns:
            first = len(turn.before)
            for place, source in enumerate(turn.draft.sources[1:], start=first):
                assert source == f"jacobi:{answered[place]}"
                oldest = max(oldest, answered[place])
            guessed.update(range(first, first + n))
            answered.update(range(first, first + n + 1))
        assert max(guessed.values()) <= n
    assert oldest == n, "some place must take as long as the guarantee allows"


def test_a_constant_text_settles_whole_blocks() -> None:
    """From the second step on every guess is right: a block that slides too far or too little loses some."""
    model = TableModel(lambda key: torch.eye(5)[4], 1, 5)
    drive = Drive(Jacobi, model, [0, 1, 2], n=6, refill="last").until(30)
    assert [len(turn.verdict.emitted) for turn in drive.turns[:4]] == [1, 7, 7, 7]


def test_a_block_must_fit_into_a_step() -> None:
    """The engine makes room for as many nodes as the settings speak of: one too few and every run would fail."""
    drive = Drive(Jacobi, hashed(2, 5, 0), PROMPT, n=6)
    assert len(drive.turn().draft.tokens) == JacobiParams(n=6).nodes


def test_a_step_not_yet_observed_shows_no_answers() -> None:
    """A panel looked at before the target answered must not show the answers of the step before."""
    drive = Drive(Jacobi, hashed(2, 5, 0), PROMPT, n=3).until(5)
    drive.method.propose()
    panel = drive.method.panel()
    assert len(panel["guesses"]) == 3
    assert (panel["answers"], panel["settled"]) == ([], None)
