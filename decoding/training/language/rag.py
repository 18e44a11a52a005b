"""Questions on three short passages, answered with the sentence that decides, and the judge of the answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from .phrases import Capital, Choice, Filled, Parts, Phrase, falling, read, write
from .rag_words import (
    ASK,
    ATTRIBUTES,
    FOUND,
    LAST,
    OPENING,
    ORDINALS,
    OTHERS,
    PLEA,
    READ,
    SECOND,
    SHORT,
    SURE,
    THINGS,
    WITHOUT,
    value,
)
from .sample import Sample, Turn
from .words import coins

_LONGEST = 1500  # characters of a prompt or an answer: twice the longest that is ever written
_SHAPES = ((2, 1), (1, 2), (2, 2), (1, 1))  # how many facts each sentence of a passage tells
_PASSAGE = re.compile(r"^([123])\. (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Point:
    """A fact that a passage tells, and the sentence that tells it."""

    passage: int
    sentence: str
    name: str
    about: str
    value: str


def make(rng: Random) -> Sample:
    """Three passages, a question on one or two of them, and an answer."""
    names = coins(rng, 6)
    things = list(THINGS)
    shared = rng.choice(things) if rng.random() < 0.65 else ""
    points: list[Point] = []
    for passage in (1, 2, 3):
        name = f"{names[passage - 1]} {shared or rng.choice(things)}"
        points.extend(_passage(rng, passage, name, names[passage + 2]))
    asked = [rng.choice(points)]
    if rng.random() < 0.2:
        asked.append(rng.choice([point for point in points if point.passage != asked[0].passage]))
    prompt = _prompt(rng, points, asked)
    return Sample("rag", (Turn(prompt, answer(asked, rng)),))


def answer(asked: Sequence[Point], rng: Random) -> str:
    """One of the right answers to a question on one or two points."""
    order = list(asked)
    if rng.random() < 0.1:
        order.reverse()
    return write(_answer(order), {}, rng)


def right(prompt: str, answer: str, reference: str) -> bool:
    """Whether the answer names the right passages, quotes the right sentences and draws what they tell."""
    wanted = meaning(prompt, reference.strip())
    return wanted is not None and meaning(prompt, answer.strip()) == wanted


def meaning(prompt: str, text: str) -> frozenset[Point] | None:
    """The points that an answer makes; None where it is not wholly an answer, or where no passage tells one of them."""
    if max(len(prompt), len(text)) > _LONGEST:
        return None
    quoted = [point for point in told(prompt) if point.sentence in text]
    points = [point for point in quoted if point.value in text.replace(point.sentence, "", 1)]
    for point in points:
        others = [[point, other] for other in points if other.passage != point.passage]
        for asked in ([point], *others):
            if read(_answer(asked), {}, text) is not None:
                return frozenset(asked)
    return None


def told(prompt: str) -> Iterator[Point]:
    """All that the passages of a prompt tell."""
    for number, passage in _PASSAGE.findall(prompt):
        for sentence in [f"{part.strip()}." for part in passage.split(".")[:-1]]:
            name = " ".join(sentence.split(" ")[:2])
            made = THINGS.get(name.partition(" ")[2], "")
            for clause in sentence[len(name) + 1 : -1].split(" and "):
                yield from _clause(int(number), sentence, name, made, clause)


def _clause(number: int, sentence: str, name: str, made: str, clause: str) -> Iterator[Point]:
    """What one part of a sentence tells: its value is its last word or two."""
    words = clause.split(" ")
    for about, attribute in ATTRIBUTES.items():
        found = " ".join(words[-2 if about == "colour" else -1 :])
        if read(attribute.told, {"made": made, "v": found}, clause) is not None:
            yield Point(number, sentence, name, about, found)


def _passage(rng: Random, passage: int, name: str, town: str) -> list[Point]:
    """The facts of one passage, each with its sentence."""
    shape = rng.choices(_SHAPES, (4, 4, 1, 2))[0]
    thing = name.split()[1]
    abouts = rng.sample([about for about in ATTRIBUTES if about != WITHOUT.get(thing)], sum(shape))
    made = THINGS[thing]
    facts = [(about, value(about, rng, town)) for about in abouts]
    points: list[Point] = []
    for count in shape:
        part, facts = facts[:count], facts[count:]
        clauses = [write(ATTRIBUTES[about].told, {"made": made, "v": found}, rng) for about, found in part]
        sentence = f"{name} {' and '.join(clauses)}."
        points.extend(Point(passage, sentence, name, about, found) for about, found in part)
    return points


def _prompt(rng: Random, points: Sequence[Point], asked: Sequence[Point]) -> str:
    """The passages and the question, either first."""
    lines = []
    for passage in (1, 2, 3):
        sentences = dict.fromkeys(point.sentence for point in points if point.passage == passage)
        lines.append(f"{passage}. {' '.join(sentences)}\n")
    questions = [write(ATTRIBUTES[point.about].asked, _filling(point), rng) for point in asked]
    question = write(Parts((Capital(Parts((ASK, ", and ".join(questions)))), "?", PLEA)), {}, rng)
    texts = "".join(lines)
    if rng.random() < 0.6:
        return f"{write(READ, {}, rng)}.\n{texts}{question}"
    return f"{question}\n{write(READ, {}, rng)}.\n{texts}".rstrip("\n")


def _filling(point: Point) -> dict[str, str]:
    """The values of the slots in a point's wordings."""
    first, second = (number for number in (1, 2, 3) if number != point.passage)
    thing = point.name.partition(" ")[2]
    return {
        "n": point.name,
        "t": thing.lower(),
        "v": point.value,
        "made": THINGS.get(thing, ""),
        "p": str(point.passage),
        "o": ORDINALS[point.passage - 1],
        "q": point.sentence,
        "a": str(first),
        "b": str(second),
    }


def _answer(asked: Sequence[Point]) -> Phrase:
    """All answers that make these points in this order."""
    first = Parts((OPENING, _made(asked[0])))
    if len(asked) == 1:
        return Filled(Parts((first, OTHERS)), _filling(asked[0]))
    second = Parts((SECOND, _made(asked[1])))
    return Parts((Filled(first, _filling(asked[0])), " ", Filled(second, _filling(asked[1])), LAST))


def _made(point: Point) -> Phrase:
    """Where a point stands, in whose words, and what it is."""
    short = ATTRIBUTES[point.about].short
    told = Choice((Parts((SHORT, short)), Parts((short, SURE))), falling(2))
    return Parts((FOUND, " ", Capital(told), "."))
