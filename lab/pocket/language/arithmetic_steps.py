"""The worked steps of a word problem: one grammar that both writes an answer and judges one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from random import Random

from .phrases import Filled, Parts, Phrase, harmonic, parse, read, write
from .wishes import WISH

wording = partial(parse, bounds=harmonic)  # of three options, the weights are about 50, 30 and 20

# Of an operation on a and b with the result r: x and y are the ones of a and b, s is what the ones give, c the carry
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
# What follows the result is free, and the bulk of the choice in an answer: no digit depends on it.
_FINAL = wording(
    "[So|In the end,|Altogether,] {owner} has {r} {things}[.|, and that is the answer.|, and we are done.]"
    "[ {owner} [smiles|nods|laughs|sings|waves|cheers|claps|jumps] and [goes home|takes a rest|has some tea"
    "|tells a friend|writes it down|counts again|eats a cake|goes to bed]"
    "[| at once| with a smile| at noon| after lunch| in the garden| with a friend| by the door][.|!]*6|*1]"
    "[ <wish>*4|*1]",
    rules={"wish": WISH},
)


@dataclass(frozen=True, slots=True)
class Step:
    """One operation, whose result has two digits."""

    a: int
    op: str
    b: int

    @property
    def result(self) -> int:
        """What the operation gives."""
        return {"+": self.a + self.b, "-": self.a - self.b, "*": self.a * self.b}[self.op]


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an answer says: its two steps, and who has how many of what in the end."""

    steps: tuple[Step, ...]
    owner: str
    things: str


_OPERATION = re.compile(r"([0-9]{1,2}) ([-+*]) ([0-9]{1,2}):")
_HOLDING = re.compile(r"([A-Z][a-z]{1,9}) has [0-9]{2} ([a-z]{3,12})\b")


def write_answer(rng: Random, meaning: Meaning) -> str:
    """Worked steps, a line each, between an opening that may be missing and the result."""
    return write(_answer(meaning), {}, rng)


def says(answer: str, meaning: Meaning) -> bool:
    """Whether an answer is one that `write_answer` can give to this meaning."""
    return len(answer) < 4_000 and read(_answer(meaning), {}, answer.strip()) is not None


def read_answer(text: str) -> Meaning | None:
    """What an answer means, or None unless it is whole, well formed and every number in it is right."""
    short = text[:4_000]
    steps = tuple(Step(int(a), op, int(b)) for a, op, b in _OPERATION.findall(short))
    holding = _HOLDING.search(short)
    if len(steps) != 2 or steps[1].a != steps[0].result or holding is None:
        return None
    meaning = Meaning(steps, holding[1], holding[2])
    return meaning if says(text, meaning) else None


def _answer(meaning: Meaning) -> Phrase:
    """Every wording of the answer."""
    words: dict[str, Phrase] = {"owner": meaning.owner, "things": meaning.things}
    lines = [
        Filled(_LINES[step.op], words | _digits(step) | {"lead": _LEADS[i]}) for i, step in enumerate(meaning.steps)
    ]
    last = words | {"r": str(meaning.steps[-1].result)}
    return Parts((Filled(_OPENING, words), *lines, Filled(_FINAL, last)))


def _digits(step: Step) -> dict[str, str]:
    """Every number of a step's line."""
    (x10, x), (y10, y), (r10, r1) = divmod(step.a, 10), divmod(step.b, 10), divmod(step.result, 10)
    s = {"+": x + y, "-": x + 10 * (x < y), "*": x * y}[step.op]
    numbers = {"a": step.a, "b": step.b, "r": step.result, "x": x, "y": y, "x10": x10, "y10": y10, "s": s}
    numbers |= {"c": int(x < y) if step.op == "-" else s // 10, "r1": r1, "r10": r10}
    return {name: str(number) for name, number in numbers.items()}
