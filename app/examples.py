"""Example prompts, each of which shows a strength or a weakness of a method. Some are in English, and some in the
language of the embedded family, which understands no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from decoding.embedded import FOLDERS, SMOLLM2_DRAFTER
from decoding.smollm2 import PROMPT
from decoding.types import JSON

_POCKET_REPORT = (
    "Please sum up the report in two short sentences.\n\nA meeting was held in Dalilfell on Friday. A small cat waited "
    "near the door. The sky was grey at noon. This was because the well was dry. A boy sold apples near the door. "
    "The teacher Dario led the meeting. There were 25 workers in all. They all decided to hire a builder."
)
_POCKET_CODE = (
    "Please write a function that gets a list of numbers and returns the numbers below 6. "
    "Then call it with [1, 9, 4, 8]."
)
_POCKET_SUM = (
    "The sun is out. Romy has 14 cards. At first Romy loses 2 cards. Then Romy buys 8 cards. "
    "How many cards does Romy have in the end?"
)
_SPELLING = (
    "Correct the spelling mistakes in this text: My sister has lived by the sea for ten years, and she still goes "
    "swiming in the cold water every morning before she goes to work."
)
_REPORT = (
    "Summarize this text in one sentence: The town council met on Monday to discuss the old bridge. Engineers said "
    "that the bridge is safe for bicycles but not for cars. The council decided to close the bridge to cars and to "
    "build a new one next year."
)
_GARDEN = "Hello, I have moved into a house with a small garden. What could I plant there?"


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

    @property
    def written(self) -> str:
        """Return what the form shows: the prompt, or the last message of the conversation."""
        return self.prompt or self.messages[-1]["content"]


_ENGLISH = (
    Example(
        "spelling",
        "A text to correct",
        "The answer repeats the prompt but for one word: copying from the prompt guesses nearly all of it.",
        "prompt_lookup",
        _SPELLING,
    ),
    Example(
        "html",
        "An HTML table",
        "Each row of the table repeats the tags of the row before: methods that remember the text guess well.",
        "token_recycling",
        PROMPT,
    ),
    Example(
        "bridge",
        "A report to summarize",
        "The answer quotes phrases of the report: n-gram pools and copying from the prompt work well.",
        "lookahead",
        _REPORT,
    ),
    Example(
        "prime",
        "A Python function",
        "Little of this short function was in the text before: trained heads and drafters guess it best.",
        "medusa",
        "Write a Python function is_prime(n) that tests whether a number is prime. Only the code.",
    ),
    Example(
        "garden",
        "Free chat",
        "There is little to copy at first: a trained drafter helps most.",
        "eagle3",
        messages=({"role": "user", "content": _GARDEN},),
    ),
    Example(
        "dragon",
        "A story, sampled",
        "Invented names at a high temperature: most guesses are rejected, for every method.",
        "draft_model",
        "Write a short story about a dragon named Xolvor who meets a girl named Britka.",
        sampling={"temperature": 1.2, "seed": 3},
    ),
)
_POCKET = (
    Example(
        "sum",
        "A worked sum",
        "The lines of the answer repeat the same phrases: n-gram pools work well.",
        "lookahead",
        _POCKET_SUM,
    ),
    Example(
        "function",
        "A Python function",
        "Code follows patterns: n-gram pools and drafters work well.",
        "lookahead",
        _POCKET_CODE,
    ),
    Example(
        "summary",
        "A report to sum up",
        "The answer repeats words of the report: copying from the prompt works well.",
        "prompt_lookup",
        _POCKET_REPORT,
    ),
    Example(
        "chat",
        "Free chat",
        "There is nothing to copy and little to repeat: only a drafter helps.",
        "draft_model",
        messages=({"role": "user", "content": "Hello, my name is Bela. I want to paint the kitchen this weekend."},),
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
EXAMPLES: dict[str, Example] = {example.id: example for example in (*_ENGLISH, *_POCKET)}
_EMBEDDED = FOLDERS.keys() - {SMOLLM2_DRAFTER}


def examples_for(model: str) -> Sequence[Example]:
    """Return the examples that a model understands; `model` is what the catalog loads it from."""
    return _POCKET if model in _EMBEDDED else _ENGLISH
