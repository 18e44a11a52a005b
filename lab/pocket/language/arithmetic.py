"""Word problems of two operations, answered with worked steps; the sums go column by column."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from .arithmetic_steps import Meaning, Step, read_answer, says, wording, write_answer
from .phrases import write
from .sample import Sample, Turn
from .words import PEOPLE


@dataclass(frozen=True, slots=True)
class _Setting:
    """What it is about: things, what holds them, and how they become more or fewer."""

    things: tuple[str, ...]
    group: str
    gains: tuple[str, ...]
    losses: tuple[str, ...]


_SETTINGS = (
    _Setting(("shells", "stones", "beads"), "bags", ("finds", "gets"), ("loses", "sells")),
    _Setting(("apples", "pears", "plums"), "baskets", ("picks", "buys"), ("eats", "sells")),
    _Setting(("rolls", "cakes", "pies"), "trays", ("bakes", "buys"), ("eats", "sells")),
    _Setting(("books", "maps", "cards"), "boxes", ("buys", "finds"), ("loses", "gives away")),
    _Setting(("hens", "goats", "ducks"), "barns", ("buys", "gets"), ("sells", "gives away")),
)
_EVENTS = (wording("[First,|At first] {p} {verb} {b} {t}. "), wording("[Then|Later] {p} {verb} {b} {t}. "))
_START = wording("[*85|It is a warm day. *10|The sun is out. *5]{p} has {held}. ")
_QUESTION = wording("How many {t} does {p} have [now|in the end]?[| Show the steps.| Go step by step.]")
_MOST = 99


def make(rng: Random) -> Sample:
    """A story, and its question's answer in worked steps."""
    setting, owner = rng.choice(_SETTINGS), rng.choice(PEOPLE)
    meaning = Meaning(_steps(rng), owner, rng.choice(setting.things))
    return Sample("arithmetic", (Turn(_prompt(rng, setting, meaning), write_answer(rng, meaning)),))


def right(prompt: str, answer: str, reference: str) -> bool:
    """Whether an answer takes the reference's steps, each of them true, and ends with its result in good form."""
    meaning = read_answer(reference)
    return meaning is not None and meaning.owner in prompt and says(answer, meaning)


def _steps(rng: Random) -> tuple[Step, Step]:
    """Two operations; every result has two digits, and no number is told twice."""
    grouped = rng.random() < 0.25
    while True:
        k = rng.randint(2, 5)
        first = Step(k, "*", rng.randint(-(-10 // k), _MOST // k)) if grouped else _change(rng, rng.randint(10, _MOST))
        second = _change(rng, first.result)
        fits = all(10 <= result <= _MOST for result in (first.result, second.result))
        if fits and len({first.a, first.b, second.b}) == 3:
            return first, second


def _change(rng: Random, a: int) -> Step:
    return Step(a, rng.choice("+-"), rng.randint(2, 9) if rng.random() < 0.2 else rng.randint(10, _MOST - 10))


def _prompt(rng: Random, setting: _Setting, meaning: Meaning) -> str:
    """The story as a user tells it: equal groups or a number to start with, then what changes it, then the question."""
    first = meaning.steps[0]
    words = {"p": meaning.owner, "t": meaning.things}
    groups = f"{first.a} {setting.group} with {first.b} {meaning.things} each"
    words["held"] = groups if first.op == "*" else f"{first.a} {meaning.things}"
    text = write(_START, words, rng)
    for event, step in zip(_EVENTS, meaning.steps, strict=True):
        if step.op != "*":
            verb = rng.choice(setting.gains if step.op == "+" else setting.losses)
            text += write(event, words | {"verb": verb, "b": str(step.b)}, rng)
    return text + write(_QUESTION, words, rng)
