"""The worked steps of a word problem: wording tables that both write an answer and read one back into its meaning."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from random import Random

from .phrases import Bound, Capital, Choice, OpenValues, Parts, Phrase, even, harmonic, parse, read, write

wording = partial(parse, bounds=harmonic)  # of the options, the earlier are the likelier

# Of an operation on a and b with the result r, x and y are the ones of a and b, s is what the ones give before anything
# is carried, c the carry; r1 and r10 are the ones and the tens of r, x10 and y10 the tens of a and b.
_DO = "[|we |let us |we can |we must |I ]"
_TASKS = {
    "+": wording(_DO + "[add {b} [|more ]to {a}|work out {a} + {b}|find {a} + {b}|join {b} to {a}|raise {a} by {b}]"),
    "-": wording(
        _DO + "[take {b} [|away ]from {a}|work out {a} - {b}|find {a} - {b}|remove {b} from {a}|lower {a} by {b}]"
    ),
    "*": wording(_DO + "[work out {a} * {b}|take {b} times {a}|multiply {a} by {b}|find {a} * {b}]"),
}
_ONES = ": [|the ones give |for the ones |the ones are |ones first, |start with |in the ones ]"
_TENS = "[; |; then |, then |; next, |, and ][|the tens give |for the tens |the tens are |in the tens ]"
_CARRY = (
    ", [|so |we ][write {r1} and carry {c}|write {r1}, carry {c}|keep {r1} and carry {c}|put down {r1} and carry {c}"
    "|note {r1} and carry {c}|set {r1} and carry {c}]"
)
_PLAIN = ", [no carry|nothing to carry|so no carry|with no carry|and no carry|no need to carry]"
_BORROW = (
    ": [|for the ones |in the ones |ones first, ][{x} is [less|smaller] than {y}"
    "|{y} is [more|larger] than {x}|{x} is below {y}|{x} is too small for {y}], "
    "[so |so we |and we |then |we must |we need to ]borrow[:| one:| first:| a ten:] "
)
_UNBORROWED = ", [no borrow|nothing to borrow|so no borrow|with no borrow|and no borrow|no need to borrow]"
_RESULT = wording(
    "[, so |, which means |, and so |, thus |, and ][there are|we have|we get|we reach|it makes|we find|that is] {r}"
    "[| {things}| of them][| now| here| by then]."
)
_REMARK = wording(
    "[ [That|This|It] [was|is|looks|seems|feels] [|quite |very |rather ][easy|quick|simple|neat|short|fine|good]."
    "| [Good|Fine|Nice|Right|Great|Well done][|, {hero}| so far][.|!]"
    "| [All|Everything|It all] [fits|is clear|looks right|adds up|is well][| here| so far| again].]"
)
_SUMS = {
    "+ short": wording(": {a} + {b} = {r}"),
    "- short": wording(": {a} - {b} = {r}"),
    "* short": wording(": {a} * {b} = {r}"),
    "+ carry": wording(_ONES + "{x} + {y} = {s}" + _CARRY + _TENS + "{x10} + {y10} + {c} = {r10}"),
    "+ plain": wording(_ONES + "{x} + {y} = {s}" + _PLAIN + _TENS + "{x10} + {y10} = {r10}"),
    "- carry": wording(_BORROW + "{s} - {y} = {r1}" + _TENS + "{x10} - 1 - {y10} = {r10}"),
    "- plain": wording(_ONES + "{x} - {y} = {r1}" + _UNBORROWED + _TENS + "{x10} - {y10} = {r10}"),
    "* carry": wording(_ONES + "{y} * {x} = {s}" + _CARRY + _TENS + "{y} * {x10} + {c} = {r10}"),
    "* plain": wording(_ONES + "{y} * {x} = {s}" + _PLAIN + _TENS + "{y} * {x10} = {r10}"),
}
_FIRST = wording("[First|To start|To begin|At first|First of all|For a start], ")
_LATER = wording("[Then|Next|Now|After that|Second|In step two|From there], ")
_LAST = wording("[Then|Last|Finally|Now|Next|To finish|After that|At last], ")
_WHY = wording("[as|since|because|when] {echo}, ")
_OPENING = wording(
    "[|sure: |right: |gladly: |of course: ]"
    "[[we|I] [want to|need to|must|have to] [find|know|see|count|tell|show] how many {things} {owner}"
    "[| now| in the end]"
    "|let us [work it out|solve this|do the sums|count the {things}|find the number|see] "
    "[step by step|one step at a time|slowly|line by line|with care|together]"
    "|the [question|task] is how many {things} {owner}[| now| in the end]][.|:]"
)
_FINAL = wording(
    "[So|Thus|In the end,|Hence|Altogether,|Answer:|At last,|After all this,] {owner} "
    "[|exactly |just |a total of |now ]"
    "{r} {things}[|, and that is the answer|, as asked|, and we are done|, which is the answer|, and that is all]."
)
_CLOSING = wording(
    "[ {hero} [smiles|nods|is glad|laughs|is happy|cheers|sings|claps|waves|jumps] and [goes home|takes a rest"
    "|has some tea|tells a friend|writes it down|looks at the sky|counts again|goes for a walk|eats a cake]"
    "[| at once| with a smile| in the evening| after lunch| in the garden| at noon| by the door][.|!]"
    "| [What a|That is a|This is a|Such a|Quite a] [good|fine|big|nice] [number|count|sum|result]"
    "[| for {hero}| for one day| of {things}| in the end][.|!]]"
)


@dataclass(frozen=True, slots=True)
class Step:
    """One operation; `clause` is the part of the story that asks for it, empty where none does."""

    a: int
    op: str
    b: int
    clause: str = ""

    @property
    def result(self) -> int:
        """What the operation gives."""
        return {"+": self.a + self.b, "-": self.a - self.b, "*": self.a * self.b}[self.op]

    @property
    def columns(self) -> bool:
        """Whether the digits need two columns; one table look-up is enough otherwise."""
        return max(self.a, self.b) > 9


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an answer says; `echoes` pairs a step's place with a clause of the story that it repeats."""

    steps: tuple[tuple[int, str, int], ...]
    owner: str
    things: str
    echoes: tuple[tuple[int, str], ...]
    heroes: tuple[str, ...]


_OPEN: OpenValues = {
    # After a number, "now" and "here" are no things: they may stand where the things are left out.
    "things": re.compile(r"(?!(?:now|here)\b)[a-z]{3,12}"),
    "hero": re.compile("[A-Z][a-z]{1,9}"),
    "owner": re.compile("[A-Za-z][a-z]{1,9}(?: [A-Za-z][a-z]{1,9}){0,2} ha(?:s|ve)"),
    "echo": re.compile("[A-Za-z0-9 ]{5,60}"),
    "r": re.compile("[0-9]{1,3}"),
}


def _shape(a: int, op: str, b: int) -> Phrase:
    """The wording of one step's sums, which its numbers alone decide."""
    x, y = a % 10, b % 10
    over = {"+": x + y > 9, "-": x < y, "*": x * y > 9}[op]
    sums = "short" if max(a, b) <= 9 else "carry" if over else "plain"
    return Parts((_TASKS[op], _SUMS[f"{op} {sums}"], _RESULT))


def _digits(a: int, op: str, b: int) -> dict[str, str]:
    """Every number that may stand in a step."""
    (x10, x), (y10, y) = divmod(a, 10), divmod(b, 10)
    r = Step(a, op, b).result
    s = {"+": x + y, "-": x + 10 * (x < y), "*": x * y}[op]
    numbers = {"a": a, "b": b, "r": r, "x": x, "y": y, "x10": x10, "y10": y10, "s": s}
    numbers |= {"r1": r % 10, "c": s // 10, "r10": r // 10}
    return {name: str(number) for name, number in numbers.items()}


def _lead(place: int, count: int) -> Phrase:
    return _FIRST if place == 0 else _LAST if place == count - 1 else _LATER


def write_answer(rng: Random, steps: tuple[Step, ...], owner: str, things: str, hero: str) -> str:
    """Worked steps, a line each, between an opening that may be missing and the result."""
    words = {"owner": owner, "things": things, "hero": hero}
    long = sum(step.columns for step in steps) + len(steps) > 4
    lines: list[str] = []
    if rng.random() < (0.1 if long else 0.45):
        lines.append(write(Capital(_OPENING), words, rng))
    for place, step in enumerate(steps):
        values = words | _digits(step.a, step.op, step.b)
        line = write(_lead(place, len(steps)), values, rng)
        if step.clause and rng.random() < 0.25:
            line += write(_WHY, {"echo": step.clause}, rng)
        line += write(_shape(step.a, step.op, step.b), values, rng)
        lines.append(line + (write(_REMARK, values, rng) if rng.random() < 0.2 else ""))
    last = write(_FINAL, words | {"r": str(steps[-1].result)}, rng)
    lines.append(last + (write(_CLOSING, words, rng) if rng.random() < (0.3 if long else 0.65) else ""))
    return "\n".join(lines)


_OPERANDS = re.compile(
    r"(?:raise|lower|multiply) ([0-9]{1,3}) by ([0-9]{1,3}):|([0-9]{1,3}) [-+*] ([0-9]{1,3}):"
    r"|([0-9]{1,3}) (?:more |away )?(?:to|from|times) ([0-9]{1,3}):"
)


def _perhaps(phrase: Phrase) -> Phrase:
    return Choice(("", phrase), even(2))


def _read_step(line: str, place: int, count: int) -> tuple[tuple[int, str, int], Bound] | None:
    """A line's operation and its words, or None unless every number of it is right."""
    named = _OPERANDS.search(line)
    if named is None:
        return None
    first, second = (int(text) for text in named.groups() if text is not None)
    a, b = (second, first) if named[5] else (first, second)
    for op in _TASKS:
        phrase = Parts((_lead(place, count), _perhaps(_WHY), _shape(a, op, b), _perhaps(_REMARK)))
        words = read(phrase, {**_OPEN, **_digits(a, op, b)}, line)
        if words is not None:
            return (a, op, b), words
    return None


def read_answer(text: str) -> Meaning | None:
    """What an answer means, or None unless it is whole, well formed and consistent in itself."""
    lines = text.strip().split("\n") if len(text) < 4_000 else []
    opening = read(Capital(_OPENING), _OPEN, lines[0]) if lines else None
    if opening is not None:
        lines = lines[1:]
    last = read(Parts((_FINAL, _perhaps(_CLOSING))), _OPEN, lines[-1]) if 2 <= len(lines) <= 6 else None
    if last is None:
        return None
    words = [*(opening or ()), *last]
    steps: list[tuple[int, str, int]] = []
    echoes: list[tuple[int, str]] = []
    for place, line in enumerate(lines[:-1]):
        step = _read_step(line, place, len(lines) - 1)
        if step is None:
            return None
        steps.append(step[0])
        words += step[1]
        echoes += [(place, text) for name, text in step[1] if name == "echo"]
    named = {name: tuple(dict.fromkeys(text for key, text in words if key == name)) for name, _ in words}
    if len(named["owner"]) > 1 or len(named["things"]) > 1 or named["r"] != (str(Step(*steps[-1]).result),):
        return None
    return Meaning(tuple(steps), named["owner"][0], named["things"][0], tuple(echoes), named.get("hero", ()))
