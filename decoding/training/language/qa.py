"""Closed-book questions about the Isles, whose facts the model knows by heart, and the judge of their answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from .atlas import FACTS, PEOPLE, PERSON_FACTS, TOWN_FACTS, TOWNS, bare, is_town, pronouns, rivals
from .phrases import Capital, Choice, Filled, Parts, Phrase, ends, falling, read, write
from .qa_words import (
    ASKED,
    CLAIM,
    CLAIM_OPENING,
    CLOSING,
    DENIAL,
    GREETING,
    JOIN,
    LEAD,
    NO,
    NOUNS,
    OPENING,
    REQUEST,
    REQUEST_MORE,
    TAIL,
    THANKS,
    TOLD,
    TURNED,
    YES,
    wording,
)
from .sample import Sample, Turn

_LONGEST = 1500  # characters of an answer: twice the longest that is ever written
_MOST_POINTS = 3
_MOST_SUBJECTS = 8
_END = Parts((".", CLOSING))


@dataclass(frozen=True, slots=True)
class Point:
    """One thing asked: a fact about a subject, or a `claim` about it that is to be confirmed or denied."""

    subject: str
    about: str
    claim: str = ""

    @property
    def value(self) -> str:
        """What is true."""
        return FACTS[self.subject][self.about]


def make(rng: Random) -> Sample:
    """A question of one to three points, and an answer."""
    dice = rng.random()
    if dice < 0.5:
        points = _one_subject(rng)
        question = _request(rng, points) if rng.random() < 0.5 else _questions(rng, points)
    elif dice < 0.65:
        points = [point for _ in range(2) for point in _one_subject(rng, 1)]
        question = _questions(rng, list(dict.fromkeys(points)))
    elif dice < 0.8:
        points = _hop(rng)
        question = _questions(rng, points)
    else:
        points = _claims(rng)
        question = _questions(rng, points)
    points = list(dict.fromkeys(points))
    prompt = write(GREETING, {}, rng) + question + write(THANKS, {}, rng)
    return Sample("qa", (Turn(prompt, answer(points, rng)),))


def answer(points: Sequence[Point], rng: Random) -> str:
    """One of the right answers to the points."""
    order = list(points)
    if rng.random() < 0.2:
        rng.shuffle(order)
    parts = [_opening(order[0])]
    for place, point in enumerate(order):
        parts.append(_told(point, order[place - 1] if place else None))
    return write(Parts((*parts, _END)), {}, rng)


def right(prompt: str, answer: str, reference: str) -> bool:
    """Whether the answer tells exactly what the reference tells, in any order and wording."""
    wanted = meaning(reference.strip())
    return wanted is not None and meaning(answer.strip()) == wanted


def meaning(text: str) -> frozenset[Point] | None:
    """The points that an answer tells; None where it is not wholly an answer, or where it tells anything untrue."""
    if len(text) > _LONGEST:
        return None
    subjects = [subject for subject in FACTS if subject in text]
    if len(subjects) > _MOST_SUBJECTS:
        return None
    candidates = [point for subject in subjects for point in _candidates(subject, text)]
    for point in candidates:
        for place in sorted(ends(_opening(point), {}, text)):
            for found in _read(text, place, (), [point], candidates):
                return frozenset(found)
    return None


def _one_subject(rng: Random, count: int = 0) -> list[Point]:
    """Facts of a town or of a person."""
    town = rng.random() < 0.6
    subject = rng.choice(TOWNS if town else PEOPLE)
    count = count or rng.choices((1, 2, 3), (1, 9, 10))[0]
    return [Point(subject, about) for about in rng.sample(TOWN_FACTS if town else PERSON_FACTS, count)]


def _hop(rng: Random) -> list[Point]:
    """A fact whose value is the next one's subject: a mayor, or a person's birthplace."""
    facts: Sequence[str]
    if rng.random() < 0.6:
        first, facts = Point(rng.choice(TOWNS), "mayor"), PERSON_FACTS
    else:
        first, facts = Point(rng.choice(PEOPLE), "birth"), TOWN_FACTS
    return [first, *(Point(first.value, about) for about in rng.sample(facts, rng.choice((1, 1, 2))))]


def _claims(rng: Random) -> list[Point]:
    """One or two claims, true or false, and perhaps a plain question after a single one."""
    points = _one_subject(rng, rng.choices((1, 2, 3), (1, 5, 5))[0])
    claims = min(len(points), rng.choice((1, 1, 2)))
    for place in range(claims):
        point = points[place]
        claim = point.value if rng.random() < 0.4 else rng.choice(rivals(point.about, point.value))
        points[place] = Point(point.subject, point.about, claim)
    return points


def _request(rng: Random, points: Sequence[Point]) -> str:
    """ "Tell me the river and the dish of Ablow." """
    subject = points[0].subject
    short = rng.random() < 0.3
    its = "its" if is_town(subject) else pronouns(subject)[1]
    nouns = [f"{its if short else 'the'} {write(NOUNS[point.about], {}, rng)}" for point in points]
    listed = nouns[0] if len(nouns) == 1 else ", ".join(nouns[:-1]) + " and " + nouns[-1]
    if short:
        return f"{write(REQUEST_MORE, {'s': subject}, rng)}{listed}."
    return f"{write(REQUEST, {}, rng)} {listed} of {subject}."


def _questions(rng: Random, points: Sequence[Point]) -> str:
    """Direct questions, in one sentence or in several."""
    split = rng.random() < 0.3
    texts = [_question(rng, point, points[place - 1] if place else None) for place, point in enumerate(points)]
    if split:
        return " ".join(text[:1].upper() + text[1:] + "?" for text in texts)
    joined = ", and ".join(texts) if len(texts) < 3 else f"{texts[0]}, {texts[1]}, and {texts[2]}"
    return joined[:1].upper() + joined[1:] + "?"


def _question(rng: Random, point: Point, before: Point | None) -> str:
    town = is_town(point.subject)
    values = dict(_filling(point))
    again = False
    if before and before.value == point.subject:
        values["s"] = "that town" if town else "the mayor"
    elif before and before.subject == point.subject:
        again = rng.random() < 0.7
    if not point.claim:
        return write(wording(ASKED[point.about], again, town), values, rng)
    values["v"] = point.claim
    return write(Parts((CLAIM, wording(TOLD[point.about], again, town))), values, rng)


@lru_cache(maxsize=4096)
def _filling(point: Point) -> dict[str, str]:
    """The values of the slots in a point's wordings."""
    values = {"s": point.subject, "v": point.value, "w": bare(point.about, point.claim)}
    if not is_town(point.subject):
        she, her = pronouns(point.subject)
        values |= {"given": point.subject.split()[0], "she": she, "her": her}
    return values


def _opening(point: Point) -> Phrase:
    """What may stand before the first point: a "sure" does not go with a "no"."""
    return Filled(CLAIM_OPENING if point.claim else OPENING, {"s": point.subject})


def _told(point: Point, before: Point | None) -> Phrase:
    """How a point is told after another, or as the first: in a sentence of its own, or joined to the one before."""
    known = before is not None and point.subject in (before.subject, before.value)
    ways = (True, False) if known else (False,)
    alone = _one_of(*[_sentence(point, again) for again in ways])
    if before is None:
        return alone
    if point.claim:
        return Parts((". ", alone))
    joined = _one_of(*[Parts((_core(point, again), TAIL)) for again in ways])
    return _one_of(Parts((". ", alone)), Parts((JOIN, joined)))


@lru_cache(maxsize=4096)
def _sentence(point: Point, again: bool) -> Phrase:
    """A whole sentence that tells the point, without its full stop."""
    if not point.claim:
        core = _core(point, again)
        return Capital(_one_of(Parts((LEAD, core)), Parts((core, TAIL))))
    told = wording(TOLD[point.about], again, is_town(point.subject))
    verdict = (YES, told, TAIL) if point.claim == point.value else (NO, told, DENIAL)
    return Capital(Filled(Parts(verdict), _filling(point)))


@lru_cache(maxsize=4096)
def _core(point: Point, again: bool) -> Phrase:
    """The statement of a fact, most often with its value last."""
    told, turned = (wording(table[point.about], again, is_town(point.subject)) for table in (TOLD, TURNED))
    return Filled(Choice((told, turned), (0.8, 1.0)), _filling(point))


def _one_of(*options: Phrase) -> Choice:
    return Choice(options, falling(len(options)))


def _candidates(subject: str, text: str) -> Iterator[Point]:
    """The points about a subject that the text may tell: its true values stand in it."""
    lowered = text.lower()  # a value may begin a sentence
    for about, value in FACTS[subject].items():
        if value.lower() in lowered:
            yield Point(subject, about)
            yield Point(subject, about, value)
            yield from (Point(subject, about, wrong) for wrong in rivals(about, value) if bare(about, wrong) in text)


def _read(
    text: str, place: int, found: tuple[Point, ...], candidates: Sequence[Point], later: Sequence[Point]
) -> Iterator[tuple[Point, ...]]:
    """All ways in which the text from `place` tells candidates up to its end."""
    if found and read(_END, {}, text, place) is not None:
        yield found
    if len(found) == _MOST_POINTS:
        return
    facts = [(point.subject, point.about) for point in found]
    for point in candidates:
        if (point.subject, point.about) not in facts:
            for end in sorted(ends(_told(point, found[-1] if found else None), {}, text, place)):
                yield from _read(text, end, (*found, point), later, later)
