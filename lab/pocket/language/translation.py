"""The kind `translation`: two or three sentences to put from English into Velan or from Velan into English."""

from __future__ import annotations

import re
from random import Random

from .phrases import parse_template, read, write
from .sample import Sample, Turn
from .velan import ACTING, ADJECTIVES, ENGLISH, LIVING, NOUNS, SETTINGS, VELAN, VERBS, Action, Clause, NounPhrase
from .wishes import WISH

_LONGEST = 1000  # characters; no right answer comes near it
_LANGUAGES = {"Velan": VELAN, "English": ENGLISH}
_OTHER = {"Velan": "English", "English": "Velan"}

_PROMPT = parse_template(
    "[Translate this into {to}:{gap}{text}*30|Say this in {to}:{gap}{text}*20|Put this into {to}:{gap}{text}*12"
    "|Turn this from {of} into {to}:{gap}{text}*8|I need this text in {to}:{gap}{text}*6"
    "|{text}{gap}How do you say this in {to}?*10|{text}{gap}What is this in {to}?*8"
    "|{text}{gap}Can you put that into {to}?*6]"
)
_ANSWER = parse_template(
    "[*22|[*55|Sure. *28|Of course. *17]"
    "[In {to} this is:*45|Here is the {to} text:*28|In {to} you say:*17|My translation:*10]\n*78]{text}"
    "[\n<wish>*75|*10|\nI hope that helps.*8|\nOther words would do as well.*7]",
    rules={"wish": WISH},
)
_TEXT = re.compile(r"[^:\n]+(?:\n\d[^:\n]+)*")  # on one line, or on numbered lines


def make(rng: Random) -> Sample:
    """Make one question in a random direction, and a translation in one of its many wordings."""
    clauses = _clauses(rng)
    to = "Velan" if rng.random() < 0.5 else "English"
    numbered = rng.random() < 0.25
    of = _OTHER[to]
    gap = "\n" if numbered or rng.random() < 0.5 else " "
    values = {"to": to, "of": of, "gap": gap, "text": _text(clauses, of, numbered, rng)}
    return Sample("translation", (Turn(write(_PROMPT, values, rng), _answer(clauses, to, numbered, rng)),))


def _clauses(rng: Random) -> list[Clause]:
    """Draw sentences about few people and things, so that they share their words."""
    actors = rng.sample(range(LIVING), 2)
    things = [rng.choice([one for one in range(len(NOUNS)) if one not in actors]) for _ in range(2)]
    clauses: list[Clause] = []
    count = 2 if rng.random() < 0.5 else 3
    while len(clauses) < count:
        clause = _clause(rng.choice(actors), rng.choice(things), rng)
        if clause not in clauses:
            clauses.append(clause)
    return clauses


def _clause(actor: int, thing: int, rng: Random) -> Clause:
    """Draw a short sentence: an object, a setting and an adjective would be too much at once."""
    action = Action(rng.randrange(len(VERBS)), rng.randrange(3), rng.random() < 0.2)
    acts = action.verb < ACTING
    setting = rng.randrange(len(SETTINGS)) if not acts or rng.random() < 0.55 else None
    described = (
        rng.choice(("subject", "object", "")) if setting is None else "" if acts else rng.choice(("subject", ""))
    )
    subject = _phrase(actor, described == "subject", rng)
    return Clause(subject, action, _phrase(thing, described == "object", rng) if acts else None, setting)


def _phrase(noun: int, described: bool, rng: Random) -> NounPhrase:
    return NounPhrase(noun, rng.randrange(len(ADJECTIVES)) if described else None, rng.random() < 0.35)


def _answer(clauses: list[Clause], to: str, numbered: bool, rng: Random) -> str:
    return write(_ANSWER, {"to": to, "text": _text(clauses, to, numbered, rng)}, rng)


def _text(clauses: list[Clause], language: str, numbered: bool, rng: Random) -> str:
    return _set([_LANGUAGES[language].write(clause, rng) for clause in clauses], numbered)


def _set(sentences: list[str], numbered: bool) -> str:
    """Write sentences as one text: in a row, or on numbered lines."""
    if not numbered:
        return " ".join(sentences)
    return "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(sentences, start=1))


def right(prompt: str, answer: str, reference: str) -> bool:
    """Return whether the answer has the reference's clauses in its language, its order and its layout."""
    for to in _LANGUAGES:
        meaning = _meaning(reference, to)
        if meaning is not None:
            return _meaning(answer, to) == meaning
    return False


def _meaning(answer: str, to: str) -> tuple[bool, list[Clause]] | None:
    """Return the layout and the clauses of an answer in a language; None if any part of it is something else."""
    if len(answer) > _LONGEST:
        return None
    values = read(_ANSWER, {"to": to, "text": _TEXT}, answer.strip())
    if values is None:
        return None
    text = dict(values)["text"]
    numbered = text.startswith("1. ")
    sentences = re.sub(r"(?m)^\d\. ", "", text).split("\n") if numbered else re.split(r"(?<=\.) ", text)
    if _set(sentences, numbered) != text:
        return None
    clauses = [clause for sentence in sentences if (clause := _LANGUAGES[to].read(sentence)) is not None]
    return (numbered, clauses) if len(clauses) == len(sentences) else None
