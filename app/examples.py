"""Example prompts, each of which shows a strength or a weakness of a method; the embedded model answers all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from decoding.types import JSON

_REPORT = (
    "Please sum up the report in two short sentences.\n\nA meeting was held in Dalilfell on Friday. A small cat waited "
    "near the door. The sky was grey at noon. This was because the well was dry. A boy sold apples near the door. "
    "The teacher Dario led the meeting. There were 25 workers in all. They all decided to hire a builder."
)
_CODE = (
    "Please write a function that gets a list of numbers and returns the numbers below 6. "
    "Then call it with [1, 9, 4, 8]."
)
_SUM = (
    "The sun is out. Romy has 14 cards. At first Romy loses 2 cards. Then Romy buys 8 cards. "
    "How many cards does Romy have in the end?"
)


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt and what it shows."""

    id: str
    label: str
    shows: str  # a sentence on what to watch for
    method: str  # a method on which it can be seen
    prompt: str = ""
    messages: tuple[Mapping[str, str], ...] = ()  # a conversation instead of a prompt
    sampling: Mapping[str, JSON] = field(default_factory=dict)


EXAMPLES: dict[str, Example] = {
    example.id: example
    for example in (
        Example(
            "sum",
            "A worked sum",
            "The lines of the answer repeat the same phrases: n-gram pools work well.",
            "lookahead",
            _SUM,
        ),
        Example(
            "function",
            "A Python function",
            "Code follows patterns: n-gram pools and drafters work well.",
            "lookahead",
            _CODE,
        ),
        Example(
            "summary",
            "A report to sum up",
            "The answer repeats words of the report: copying from the prompt works well.",
            "prompt_lookup",
            _REPORT,
        ),
        Example(
            "chat",
            "Free chat",
            "There is nothing to copy and little to repeat: only a drafter helps.",
            "draft_model",
            messages=(
                {"role": "user", "content": "Hello, my name is Bela. I want to paint the kitchen this weekend."},
            ),
        ),
        Example(
            "names",
            "Invented names, sampled",
            "Names that no text contains, at a high temperature: most guesses are rejected, for every method.",
            "draft_model",
            "Who are Xolvor, Britk, Umqar, Zedfin and Wolqua?",
            sampling={"temperature": 1.2, "seed": 3},
        ),
        Example(
            "translation",
            "A translation",
            "Each word is new: n-grams of earlier text hardly help.",
            "jacobi",
            "Translate this into Velan: The big dog found the letter in the garden. At night the king sleeps.",
        ),
    )
}
