"""Word problems of two operations, answered with worked steps; the sums go column by column."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from random import Random

from .phrases import Concatenation, Filled, Template, harmonic, parse_template, read, write
from .sample import Sample, Turn
from .wishes import WISH
from .words import PEOPLE

wording = partial(parse_template, bounds=harmonic)  # of three options, the weights are about 50, 30 and 20


@dataclass(frozen=True, slots=True)
class _Setting:
    """The setting of a story: things, their containers, and how they become more or fewer."""

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

# For an operation on a and b with the result r: x and y are the ones of a and b, s is what the ones give, c the carry
# (of a difference, what is borrowed); r1 and r10 are the ones and the tens of r, x10 and y10 the tens of a and b.
# A 0 is never left out, so that each digit is a copy of one just before it or comes from a table of two digits.
_SUMS = {
    "+": "{x} + {y} = {s}, write {r1}, carry {c}; {x10} + {y10} + {c} = {r10}",
    "-": "{x} - {y} borrows {c}, {s} - {y} = {r1}, write {r1}; {x10} - {y10} - {c} = {r10}",
    "*": "{x} * {y} = {s}, write {r1}, carry {c}; {x} * {y10} + {c} = {r10}",
}
_RESULT = "[so there are|so we have|which makes|so we get|that is] {r} {things}.\n"
_LINES = {op: wording(f"{{lead}}, {{a}} {op} {{b}}: {sums}, {_RESULT}") for op, sums in _SUMS.items()}
_LEADS = (wording("[First|To start|To begin|At first]"), wording("[Then|Next|After that|Now]"))
_OPENING = wording(
    "[[Let us|We can|I will] [count the {things}|work it out|do the sums|solve this] [step by step|with care|slowly]"
    "[.|!]\n||[Sure|Of course|Gladly], [here are the steps|here is the work|this is the way][.|:]\n]"
)
# The text after the result is free, and has most of the choice in an answer: no digit depends on it.
_FINAL = wording(
    "[So|In the end,|Altogether,] {owner} has {r} {things}[.|, and that is the answer.|, and we are done.]"
    "[ {owner} [smiles|nods|laughs|sings|waves|cheers|claps|jumps] and [goes home|takes a rest|has some tea"
    "|tells a friend|writes it down|counts again|eats a cake|goes to bed]"
    "[| at once| with a smile| at noon| after lunch| in the garden| with a friend| by the door][.|!]*6|*1]"
    "[ <wish>*4|*1]",
    rules={"wish": WISH},
)


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation, whose result has two digits."""

    a: int
    op: str
    b: int

    @property
    def result(self) -> int:
        """The result of the operation."""
        return {"+": self.a + self.b, "-": self.a - self.b, "*": self.a * self.b}[self.op]


@dataclass(frozen=True, slots=True)
class AnswerMeaning:
    """The meaning of an answer: its two steps, and who has how many of which thing in the end."""

    steps: tuple[Operation, ...]
    owner: str
    things: str


_OPERATION = re.compile(r"([0-9]{1,2}) ([-+*]) ([0-9]{1,2}):")
_HOLDING = re.compile(r"([A-Z][a-z]{1,9}) has [0-9]{2} ([a-z]{3,12})\b")


def make(rng: Random) -> Sample:
    """Make a story, and its question's answer in worked steps."""
    setting, owner = rng.choice(_SETTINGS), rng.choice(PEOPLE)
    meaning = AnswerMeaning(_steps(rng), owner, rng.choice(setting.things))
    return Sample("arithmetic", (Turn(_prompt(rng, setting, meaning), write_answer(rng, meaning)),))


def right(prompt: str, answer: str, reference: str) -> bool:
    """Return whether an answer takes the reference's steps, all of them true, and ends with its result in good form."""
    meaning = read_answer(reference)
    return meaning is not None and meaning.owner in prompt and says(answer, meaning)


def _steps(rng: Random) -> tuple[Operation, Operation]:
    """Draw two operations; every result has two digits, and no number occurs twice."""
    grouped = rng.random() < 0.25
    while True:
        k = rng.randint(2, 5)
        first = (
            Operation(k, "*", rng.randint(-(-10 // k), _MOST // k)) if grouped else _change(rng, rng.randint(10, _MOST))
        )
        second = _change(rng, first.result)
        fits = all(10 <= result <= _MOST for result in (first.result, second.result))
        if fits and len({first.a, first.b, second.b}) == 3:
            return first, second


def _change(rng: Random, a: int) -> Operation:
    return Operation(a, rng.choice("+-"), rng.randint(2, 9) if rng.random() < 0.2 else rng.randint(10, _MOST - 10))


def _prompt(rng: Random, setting: _Setting, meaning: AnswerMeaning) -> str:
    """Write the user's story: equal groups or a number to start with, then what changes it, then the question."""
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


def write_answer(rng: Random, meaning: AnswerMeaning) -> str:
    """Write worked steps, a line each, between an opening that may be missing and the result."""
    return write(_answer(meaning), {}, rng)


def says(answer: str, meaning: AnswerMeaning) -> bool:
    """Return whether `write_answer` can give this answer to this meaning."""
    return len(answer) < 4_000 and read(_answer(meaning), {}, answer.strip()) is not None


def read_answer(text: str) -> AnswerMeaning | None:
    """Return what an answer means, or None unless it is whole, well formed and every number in it is right."""
    short = text[:4_000]
    steps = tuple(Operation(int(a), op, int(b)) for a, op, b in _OPERATION.findall(short))
    holding = _HOLDING.search(short)
    if len(steps) != 2 or steps[1].a != steps[0].result or holding is None:
        return None
    meaning = AnswerMeaning(steps, holding[1], holding[2])
    return meaning if says(text, meaning) else None


def _answer(meaning: AnswerMeaning) -> Template:
    """Return every wording of the answer."""
    words: dict[str, Template] = {"owner": meaning.owner, "things": meaning.things}
    lines = [
        Filled(_LINES[step.op], words | _digits(step) | {"lead": _LEADS[i]}) for i, step in enumerate(meaning.steps)
    ]
    last = words | {"r": str(meaning.steps[-1].result)}
    return Concatenation((Filled(_OPENING, words), *lines, Filled(_FINAL, last)))


def _digits(step: Operation) -> dict[str, str]:
    """Return every number of a step's line."""
    (x10, x), (y10, y), (r10, r1) = divmod(step.a, 10), divmod(step.b, 10), divmod(step.result, 10)
    s = {"+": x + y, "-": x + 10 * (x < y), "*": x * y}[step.op]
    numbers = {"a": step.a, "b": step.b, "r": step.result, "x": x, "y": y, "x10": x10, "y10": y10, "s": s}
    numbers |= {"c": int(x < y) if step.op == "-" else s // 10, "r1": r1, "r10": r10}
    return {name: str(number) for name, number in numbers.items()}
