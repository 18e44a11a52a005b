"""The page's examples, answered by the embedded model: an answer that is wrong teaches nobody to trust a method."""

from __future__ import annotations

from app.examples import EXAMPLES
from decoding import load
from lab.pocket.language.code_checker import right

FUNCTION = '''Here is a short function for this:

def below_of(numbers):
    """Return the numbers below 6, nothing more."""
    return [n for n in numbers if n < 6]

print(below_of([1, 9, 4, 8]))  # [1, 4]

It prints [1, 4]. You can try another list too.'''


def _answer(example: str) -> str:
    known = EXAMPLES[example]
    return load("pocket").generate(known.prompt or known.messages, max_new_tokens=160).text


def test_the_function_does_what_it_says() -> None:
    """It once said that 3 and 5 are below 3."""
    prompt = EXAMPLES["function"].prompt
    assert "below 6" in prompt and "[1, 9, 4, 8]" in prompt
    assert right(prompt, _answer("function"), FUNCTION)
    assert not right(prompt, _answer("function").replace("[1, 4]", "[1, 9, 4]"), FUNCTION)


def test_the_sum_comes_out() -> None:
    assert "So Romy has 20 cards" in _answer("sum")
