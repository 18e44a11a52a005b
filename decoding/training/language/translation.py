"""The kind `translation`: a few sentences to put from English into Velan or from Velan into English."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from . import velan, velan_english
from .phrases import parse, read, write
from .sample import Sample, Turn
from .velan import ACTING, ADJECTIVES, LIVING, NOUNS, SETTINGS, VERBS, Clause, Phrase, Voice

_LONGEST = 3000  # characters; no right answer comes near it
_WRITE: dict[str, Callable[[Clause, Voice], str]] = {"Velan": velan.write, "English": velan_english.write}
_READ: dict[str, Callable[[str], Clause | None]] = {"Velan": velan.read, "English": velan_english.read}
_OTHER = {"Velan": "English", "English": "Velan"}

_PLAIN, _LINES, _NUMBERED = range(3)

_ASKS = parse(
    "[Translate this into {to}*5|Translate the following into {to}*3|Put this text into {to}*3"
    "|Put these sentences into {to}*2|Say this in {to}*2|Turn this from {of} into {to}*2|Give me the {to} for this*2"
    "|Write these {of} sentences in {to}*2|I need this text in {to}*2|Here is some {of} to translate into {to}]"
)
_QUESTIONS = parse(
    "[How do you say this in {to}?*3|What is this in {to}?*3|Translate this into {to}.*3|What does it say in {to}?*2"
    "|Put that into {to}.*2|Can you translate that into {to}?*2]"
)
_MANNERS = (  # by the layout
    parse("[]"),
    parse("[one sentence on each line*2|each sentence on its own line*2|line by line]"),
    parse("[sentence by sentence*2|with the numbers*2|and keep the numbers]"),
)
_COURTESY = parse("[*6|Please help me. |Hello. |I am learning {to}. |A task: ]")
_OPENING = parse(
    "[*6|Sure. *2|Of course. *1.5|Gladly. ][In {to} this is:*4|Here is the translation:*3|Here is the {to} text:*2"
    "|The {to} text is:*2|In {to} you say:*2|This is how I would say it in {to}:|My translation:]"
)
_REMARKS = (
    "Tell me if a word is unclear.",
    "Some words have other names too.",
    "Other words would do as well.",
)
_REMARK = parse(f"[*18|{'|'.join(_REMARKS)}]")


class _Cast(NamedTuple):
    """What the sentences of one text talk about; drawn small, so that they share their words."""

    actors: list[int]
    things: list[int]
    verbs: list[int]
    adjectives: list[int]
    settings: list[int]
    plural: tuple[bool, ...]
    tense: int


def make(rng: Random) -> Sample:
    """One question in a random direction, and a translation in one of its many wordings."""
    clauses = _clauses(rng)
    to = "Velan" if rng.random() < 0.5 else "English"
    layout = rng.choices((_PLAIN, _LINES, _NUMBERED), (5, 2, 3))[0]
    return Sample("translation", (Turn(_prompt(clauses, to, layout, rng), _answer(clauses, to, layout, rng)),))


def _clauses(rng: Random) -> list[Clause]:
    actors = rng.sample(range(LIVING), 3)
    cast = _Cast(
        actors,
        [*rng.sample(range(LIVING, len(NOUNS)), 2), actors[2]],
        [*rng.sample(range(ACTING), 2), rng.randrange(len(VERBS))],
        rng.sample(range(len(ADJECTIVES)), 3),
        rng.sample(range(len(SETTINGS)), 2),
        tuple(rng.random() < 0.4 for _ in range(len(NOUNS))),
        rng.randrange(3),
    )
    count = rng.choices((2, 3, 4), (1, 5, 5))[0]
    clauses: list[Clause] = []
    while len(clauses) < count:
        clause = _clause(cast, rng)
        if clause not in clauses:
            clauses.append(clause)
    return clauses


def _clause(cast: _Cast, rng: Random) -> Clause:
    """A short sentence: a setting and two adjectives would be too much at once."""
    verb = cast.verbs[int(rng.random() * 3)]
    tense = cast.tense if rng.random() < 0.6 else int(rng.random() * 3)
    actor = cast.actors[int(rng.random() * 2)]
    setting = cast.settings[int(rng.random() * 2)] if verb >= ACTING or rng.random() < 0.5 else None
    wordy = setting is None or verb >= ACTING
    subject = _phrase(actor, cast, 0.65 if wordy else 0.35, rng)
    thing: Phrase | None = None
    if verb < ACTING:
        share = 0.55 if wordy else 0.0 if subject.adjective is not None else 0.4
        thing = _phrase(cast.things[int(rng.random() * 3)], cast, share, rng)
    return Clause(subject, verb, tense, rng.random() < 0.2, thing, setting)


def _phrase(noun: int, cast: _Cast, described: float, rng: Random) -> Phrase:
    adjective = cast.adjectives[int(rng.random() * 3)] if rng.random() < described else None
    return Phrase(noun, adjective, cast.plural[noun] != (rng.random() < 0.15))


def _prompt(clauses: list[Clause], to: str, layout: int, rng: Random) -> str:
    source = _OTHER[to]
    voice = Voice(rng)
    sentences = [_WRITE[source](clause, voice) for clause in clauses]
    # Only a numbered text shows its layout; for lines of their own the request must say so.
    text = _set(sentences, _NUMBERED if layout == _NUMBERED else _PLAIN)
    gap = "\n" if layout == _NUMBERED or rng.random() < 0.5 else " "
    names = {"to": to, "of": source}
    manner = write(_MANNERS[layout], names, rng)
    courtesy = write(_COURTESY, names, rng)
    if layout != _LINES and rng.random() < 0.3:
        return f"{text}{gap}{courtesy}{write(_QUESTIONS, names, rng)}"
    joint = "" if not manner else " " if manner.startswith(("with", "and")) else ", "
    return f"{courtesy}{write(_ASKS, names, rng)}{joint}{manner}:{gap}{text}"


def _answer(clauses: list[Clause], to: str, layout: int, rng: Random) -> str:
    voice = Voice(rng)
    gap = "\n" if layout != _PLAIN or rng.random() < 0.4 else " "
    opening = write(_OPENING, {"to": to}, rng) + gap if rng.random() < 0.65 else ""
    remark = write(_REMARK, {}, rng)
    text = _set([_WRITE[to](clause, voice) for clause in clauses], layout)
    return opening + text + (gap + remark if remark else "")


def _set(sentences: list[str], layout: int) -> str:
    """Sentences as one text: behind each other, on lines of their own, or on numbered lines."""
    if layout == _PLAIN:
        return " ".join(sentences)
    if layout == _LINES:
        return "\n".join(sentences)
    return "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(sentences, start=1))


def right(prompt: str, answer: str, reference: str) -> bool:
    """Whether the answer says the reference's clauses in its language, its order and its layout."""
    for to in _READ:
        meaning = _meaning(reference, to)
        if meaning is not None:
            return _meaning(answer, to) == meaning
    return False


def _meaning(answer: str, to: str) -> tuple[int, list[Clause]] | None:
    """The layout and the clauses of an answer in a language; None where any part of it is anything else."""
    text = answer.strip()
    if len(text) > _LONGEST:
        return None
    opening, colon, body = text.partition(":")
    if colon:
        if read(_OPENING, {"to": to}, opening + colon) is None or body[:1] not in (" ", "\n"):
            return None
        text = body[1:]
    for remark in _REMARKS:
        if text.endswith((" " + remark, "\n" + remark)):
            text = text[: -len(remark) - 1]
    layout = _NUMBERED if text.startswith("1. ") else _LINES if "\n" in text else _PLAIN
    sentences = [part + "." for part in text[:-1].split(". ")] if layout == _PLAIN else text.split("\n")
    if layout == _NUMBERED:
        sentences = [line.removeprefix(f"{number}. ") for number, line in enumerate(sentences, start=1)]
    if not text.endswith(".") or _set(sentences, layout) != text:
        return None
    clauses = [_READ[to](sentence) for sentence in sentences]
    known = [clause for clause in clauses if clause is not None]
    return (layout, known) if len(known) == len(clauses) else None
