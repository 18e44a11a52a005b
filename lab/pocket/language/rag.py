"""Questions on three short passages, answered with the sentence that decides, and the judge of the answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from .phrases import Capital, Concatenation, Filled, Template, read, write
from .rag_phrases import ASK, ATTRIBUTES, CLOSING, FOUND, OPENING, PLEA, READ, SHORT, THINGS
from .sample import Sample, Turn
from .words import coins

_LONGEST = 1000  # characters of a prompt or an answer: more than are ever written
_SENTENCE = re.compile(r"([A-Z][a-z]+ [A-Z][a-z]+) ([a-z ]+) (\w+) \[([123])\]\.")


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A fact that a passage states in a sentence of its own."""

    passage: int
    name: str
    about: str
    value: str

    @property
    def predicate(self) -> str:
        """What the sentence says of its subject."""
        return f"{ATTRIBUTES[self.about].predicate} {self.value}."

    @property
    def sentence(self) -> str:
        """The sentence, which ends with its passage's mark, as citations do."""
        return f"{self.name} {self.predicate[:-1]} [{self.passage}]."


def make(rng: Random) -> Sample:
    """Make three passages of two sentences, a question on one of them, and an answer."""
    points = _points(rng)
    while len({point.value[:2] for point in points}) < len(points):  # so that copying a value is never ambiguous
        points = _points(rng)
    asked = rng.choice(points)
    return Sample("rag", (Turn(_prompt(rng, points, asked), answer(asked, rng)),))


def answer(asked: StatedFact, rng: Random) -> str:
    """Write one of the right answers."""
    return write(_answer(asked), {}, rng)


def right(prompt: str, answer: str, reference: str) -> bool:
    """Return whether the answer quotes the right sentence with its citation and draws the conclusion from it."""
    wanted = meaning(prompt, reference.strip())
    return wanted is not None and meaning(prompt, answer.strip()) == wanted


def meaning(prompt: str, text: str) -> StatedFact | None:
    """Return the fact that an answer states; None if it is not wholly an answer, or if no passage states it."""
    if max(len(prompt), len(text)) > _LONGEST:
        return None
    quoted = (point for point in facts(prompt) if point.sentence in text)
    return next((point for point in quoted if read(_answer(point), {}, text) is not None), None)


def facts(prompt: str) -> Iterator[StatedFact]:
    """Return all facts that the passages of a prompt state."""
    for name, words, value, number in _SENTENCE.findall(prompt):
        for about, attribute in ATTRIBUTES.items():
            if words == attribute.predicate:
                yield StatedFact(int(number), name, about, value)


def _points(rng: Random) -> list[StatedFact]:
    """Draw two facts for each of three names that neither begin nor end alike."""
    names = coins(rng, 3)
    while len({part for name in names for part in (name[:3], name[-3:])}) < 6:
        names = coins(rng, 3)
    points = []
    for passage, name in enumerate(names, 1):
        full = f"{name} {rng.choice(THINGS)}"
        for about in rng.sample(list(ATTRIBUTES), 2):
            points.append(StatedFact(passage, full, about, rng.choice(ATTRIBUTES[about].values)))
    return points


def _prompt(rng: Random, points: Sequence[StatedFact], asked: StatedFact) -> str:
    """Write the passages, then the question."""
    lines = [f"{write(READ, {}, rng)}.\n"]
    for passage in (1, 2, 3):
        sentences = [point.sentence for point in points if point.passage == passage]
        lines.append(" ".join(sentences) + "\n")
    question = Capital(Concatenation((ASK, ATTRIBUTES[asked.about].asked.replace("{n}", asked.name))))
    return "".join(lines) + write(Concatenation((question, "?", PLEA)), {}, rng)


def _answer(point: StatedFact) -> Template:
    """Return all answers that state the fact."""
    thing = point.name.split(" ")[1].lower()
    values = {"q": point.sentence, "n": point.name, "t": thing}
    return Filled(Concatenation((OPENING, FOUND, Capital(SHORT), point.predicate, CLOSING)), values)
