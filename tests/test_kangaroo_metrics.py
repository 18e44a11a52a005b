"""CR and CTAR(w), as the Kangaroo paper defines them over the tokens written per pass of the target."""

from __future__ import annotations

import pytest

from decoding.codec import Codec
from decoding.engine import Engine
from decoding.trace.metrics import compression_rate, consistent_acceptance, summarise, survival, written
from decoding.types import Step, Timing
from tests.toys import correlated, counted_text


def step(length: int, accepted: int | None = None) -> Step:
    """Make a step of the list S; its last token is a bonus unless said otherwise."""
    guesses = length - 1 if accepted is None else accepted
    return Step(0, 1, 0, (0,) * length, guesses, 6, 7, Timing())


S = written(map(step, (1, 4, 7, 2, 1, 1, 3)))


def test_the_compression_rate_is_the_mean_of_the_list() -> None:
    """Counting accepted guesses instead of written tokens loses the bonus: 12/7 in the place of 19/7."""
    assert compression_rate(S) == pytest.approx(19 / 7)
    assert compression_rate({}) == 0.0


@pytest.mark.parametrize(("w", "share"), [(0, 7), (1, 4), (2, 3), (3, 2), (4, 1), (5, 1), (6, 1), (7, 0), (99, 0)])
def test_ctar_counts_the_passes_that_wrote_more_than_w(w: int, share: int) -> None:
    """The indicator is s - w > 0: with >= every window would look one token longer than it is."""
    assert consistent_acceptance(S, w) == pytest.approx(share / 7)
    assert consistent_acceptance({}, w) == 0.0


def test_a_cut_step_counts_what_it_wrote() -> None:
    """Equation 1 sums to the tokens of the text; a guess that the budget cut off is not among them."""
    cut = written([step(3, accepted=3)])
    assert consistent_acceptance(cut, 3) == 0.0
    assert consistent_acceptance(cut, 2) == 1.0


def test_they_agree_with_the_names_that_users_know() -> None:
    """CR is the mean acceptance length, and CTAR(w) the w-th entry of the survival curve of a run that was not cut."""
    model = counted_text()
    machine = Engine(model, Codec(), correlated(model, mix=0.9))
    steps = machine.generate((1, 2, 3), "draft_model", max_new_tokens=80).trace.steps[:-1]
    assert max(step.accepted for step in steps) > 2
    summary, counts = summarise(steps, "length", ""), written(steps)
    assert summary.mean_acceptance_length == sum(len(step.emitted) for step in steps) / len(steps)
    curve = survival(summary.acceptance_histogram)
    assert [consistent_acceptance(counts, w) for w in range(1, len(curve) + 1)] == list(curve)
    assert consistent_acceptance(counts, len(curve) + 1) == 0.0
