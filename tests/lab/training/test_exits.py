"""Where an adapter exits: what its guesses are worth against what they cost."""

from __future__ import annotations

import pytest

from decoding.model.config import read_shape
from lab.smollm2.exits import best_exit, cost, expected_speedup
from tests.families import tiny

SHAPE = read_shape(tiny("llama").config)


def test_guesses_that_cost_nothing_are_worth_their_number() -> None:
    assert expected_speedup(1.0, 0.0) == 9.0
    assert expected_speedup(0.0, 0.5) == pytest.approx(1 / 1.5)
    # One guess, right half of the time, at half of a pass: 1.5 tokens for 1.5 passes. Two are worth less.
    assert expected_speedup(0.5, 0.5) == pytest.approx(1.0)


def test_cost_is_a_share_of_the_weights_that_a_pass_reads() -> None:
    """Counted on the model itself."""
    model = tiny("llama")
    block = sum(weight.numel() for weight in model.model.layers[0].parameters() if weight.dim() == 2)
    head = model.lm_head.weight.numel()
    drafted = SHAPE.hidden * 10
    whole = len(model.model.layers) * block + head
    assert cost(1, SHAPE, SHAPE.vocabulary) == pytest.approx(
        (2 * block + head) / whole
    )  # a layer of the model, and the adapter
    assert cost(1, SHAPE, 10) == pytest.approx((2 * block + drafted) / whole)


def test_a_deeper_exit_must_be_worth_its_layers() -> None:
    assert best_exit({1: 0.6, 2: 0.6}, SHAPE, 10) == 1
    assert best_exit({1: 0.2, 2: 0.95}, SHAPE, 10) == 2
