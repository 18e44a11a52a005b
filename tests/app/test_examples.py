"""The page's examples, answered by their models: an answer that is wrong teaches nobody to trust a method."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.tuned import tuned_params
from app.examples import EXAMPLES, Example, examples_for
from app.pages.race import RACED, USUAL
from decoding import load
from decoding.engine import Engine
from lab.pocket.language.code_checker import right
from tests.optional import PARTS_OUT, left_out
from tests.tiers import nightly, slow

FUNCTION = '''Here is a short function for this:

def below_of(numbers):
    """Return the numbers below 6, nothing more."""
    return [n for n in numbers if n < 6]

print(below_of([1, 9, 4, 8]))  # [1, 4]

It prints [1, 4]. You can try another list too.'''


@pytest.fixture(scope="module")
def smol() -> Engine:
    if left_out():
        pytest.skip(PARTS_OUT)
    return load("smollm2", device="cpu", download=False)


def _answer(example: str) -> str:
    settings = EXAMPLES[example]
    return load("pocket").generate(settings.prompt or settings.messages, max_new_tokens=160).text


def test_the_function_does_what_it_says() -> None:
    """It once said that 3 and 5 are below 3."""
    prompt = EXAMPLES["function"].prompt
    assert "below 6" in prompt and "[1, 9, 4, 8]" in prompt
    assert right(prompt, _answer("function"), FUNCTION)
    assert not right(prompt, _answer("function").replace("[1, 4]", "[1, 9, 4]"), FUNCTION)


def test_the_sum_comes_out() -> None:
    assert "So Romy has 20 cards" in _answer("sum")


ENGLISH = examples_for("smollm2")


def sampled() -> list[Any]:
    """Return all examples: the first by default, and with --all one whose tokens are drawn."""
    first, drawn = ENGLISH[0], next(each for each in ENGLISH if each.sampling)
    marks = [() if each is first else slow if each is drawn else nightly for each in ENGLISH]
    return [pytest.param(each, marks=mark, id=each.id) for each, mark in zip(ENGLISH, marks, strict=True)]


@slow
@pytest.mark.parametrize("example", sampled())
def test_an_english_example_shows_what_it_says(example: Example, smol: Engine) -> None:
    """The method that goes with it gains clearly, or hardly at all where the example says so."""
    prompt = example.messages or smol.as_turn(example.prompt)
    tuned = tuned_params(smol, [example.method]).get(example.method)
    run = smol.generate(prompt, example.method, params=tuned, sampling=example.sampling, max_new_tokens=96)
    assert run.summary.new_tokens >= 30
    assert (run.summary.mean_acceptance_length > 1.4) == (not example.sampling)  # at a high temperature all lose


@pytest.mark.slow
def test_the_first_english_answer_is_right(smol: Engine) -> None:
    first = examples_for("smollm2")[0]
    answer = smol.generate(smol.as_turn(first.prompt), max_new_tokens=60).text
    assert answer == first.prompt.split(": ")[1].replace("swiming", "swimming")


@slow
def test_the_methods_of_a_race_gain_on_its_first_example(smol: Engine) -> None:
    """A newcomer's first race is not to be won by autoregressive decoding because of the prompt."""
    prompt = smol.as_turn(EXAMPLES[RACED].prompt)
    for method in USUAL[1:]:
        tuned = tuned_params(smol, [method]).get(method)
        run = smol.generate(prompt, method, params=tuned, max_new_tokens=96)
        assert run.summary.new_tokens >= 30 and run.summary.mean_acceptance_length > 1.15, method
