"""Closed-book questions about the Isles, whose facts the model knows by heart, and the judge of their answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from random import Random

from .atlas import FACTS, rivals
from .phrases import Capital, Choice, Concatenation, Filled, Template, falling, read, write
from .qa_phrases import ASKED, CLAIM, CLOSING, GREETING, JOIN, LEAD, NOUNS, OPENING, REQUEST, STATED, THANKS, VERDICTS
from .sample import Sample, Turn

_LONGEST = 500  # characters of an answer: more than are ever written
_MOST_SUBJECTS = 4  # in an answer: two, each with a value that is a subject too


@dataclass(frozen=True, slots=True)
class AskedFact:
    """One thing asked: a fact about a subject, perhaps with the verdict, "yes" or "no", on a claim about it."""

    subject: str
    about: str
    verdict: str = ""

    @property
    def value(self) -> str:
        """The true value."""
        return FACTS[self.subject][self.about]


def make(rng: Random) -> Sample:
    """Make a question about one fact or two, or a claim about one, and an answer."""
    if rng.random() < 0.15:
        points, question = _claim(rng)
    else:
        points = _points(rng)
        question = (_request if rng.random() < 0.4 else _question)(rng, points)
    prompt = write(GREETING, {}, rng) + question + write(THANKS, {}, rng)
    return Sample("qa", (Turn(prompt, answer(points, rng)),))


def answer(points: Sequence[AskedFact], rng: Random) -> str:
    """Write one of the right answers."""
    return write(_answer(tuple(points)), {}, rng)


def right(prompt: str, answer: str, reference: str) -> bool:
    """Return whether the answer states exactly the facts of the reference, in any order and wording."""
    wanted = meaning(reference.strip())
    return wanted is not None and meaning(answer.strip()) == wanted


def meaning(text: str) -> frozenset[AskedFact] | None:
    """Return the facts that an answer states; None if it is not wholly an answer, or states anything untrue."""
    if len(text) > _LONGEST:
        return None
    subjects = [subject for subject in FACTS if subject in text]
    if len(subjects) > _MOST_SUBJECTS:
        return None
    facts = [AskedFact(name, about) for name in subjects for about, value in FACTS[name].items() if value in text]
    claims = [(AskedFact(point.subject, point.about, verdict),) for point in facts for verdict in ("yes", "no")]
    for points in (*permutations(facts, 1), *claims, *permutations(facts, 2)):
        if read(_answer(points), {}, text) is not None:
            return frozenset(points)
    return None


def _points(rng: Random) -> list[AskedFact]:
    """Draw one fact or two different ones, half the time of the same subject."""
    first, second = rng.sample(list(FACTS), 2)
    if rng.random() < 0.4:
        return [AskedFact(first, rng.choice(list(FACTS[first])))]
    if rng.random() < 0.5:
        return [AskedFact(first, about) for about in rng.sample(list(FACTS[first]), 2)]
    return [AskedFact(subject, rng.choice(list(FACTS[subject]))) for subject in (first, second)]


def _claim(rng: Random) -> tuple[list[AskedFact], str]:
    """Return whether a fact is as claimed; every other claim is wrong."""
    subject = rng.choice(list(FACTS))
    about = rng.choice(list(FACTS[subject]))
    claimed = FACTS[subject][about]
    verdict = rng.choice(("yes", "no"))
    if verdict == "no":
        claimed = rng.choice(rivals(about, claimed))
    question = write(Capital(Concatenation((CLAIM, STATED[about]))), {"s": subject, "v": claimed}, rng)
    return [AskedFact(subject, about, verdict)], f"{question}?"


def _request(rng: Random, points: Sequence[AskedFact]) -> str:
    """Write a request for facts: "Name the river of Ablow and the mayor of Quenby." """
    nouns = [write(NOUNS[point.about], {"s": point.subject}, rng) for point in points]
    return f"{write(REQUEST, {}, rng)}{' and '.join(nouns)}."


def _question(rng: Random, points: Sequence[AskedFact]) -> str:
    """Write a question: "What is the river of Ablow, and who is the mayor of Quenby?" """
    asked = ", and ".join(write(ASKED[point.about], {"s": point.subject}, rng) for point in points)
    return f"{asked[0].upper()}{asked[1:]}?"


@lru_cache(maxsize=4096)
def _answer(points: tuple[AskedFact, ...]) -> Template:
    """Return all answers that state these facts in this order, each in a sentence of its own or joined to the last."""
    statements = [_statement(point) for point in points]
    parts: list[Template] = [OPENING, Capital(Concatenation((LEAD, statements[0])))]
    for more in statements[1:]:
        alone = Concatenation((". ", Capital(Concatenation((LEAD, more)))))
        parts.append(Choice((alone, Concatenation((JOIN, more))), falling(2)))
    return Concatenation((*parts, ".", CLOSING))


def _statement(point: AskedFact) -> Template:
    """Write the statement of a fact, and whether the claim was right."""
    statement = Concatenation((STATED[point.about], VERDICTS[point.verdict]))
    return Filled(statement, {"s": point.subject, "v": point.value})
