"""Summaries: a report with five facts among side remarks, retold in two sentences that hold every fact."""

from __future__ import annotations

import re
from functools import cache
from random import Random

from .phrases import OpenValues, Template, read, write
from .sample import Sample, Turn
from .summary_phrases import DAYS, RULES, SIDES, STORIES
from .words import NAME, PEOPLE, coin

_NUMBER = re.compile(r"[1-9][0-9]?(?![0-9])")


def make(rng: Random) -> Sample:
    """Make a report and its summary; the request precedes or follows the report."""
    kind = rng.choice(tuple(STORIES))
    values = _facts(rng, kind)
    report = " ".join(_report(rng, kind, values))
    asked = write(RULES["ask"], values, rng)
    prompt = f"{asked}.\n\n{report}" if rng.random() < 0.5 else f"{report}\n\n{asked}."
    return Sample("summary", (Turn(prompt, write(RULES[kind], values, rng)),))


def right(prompt: str, answer: str, reference: str) -> bool:
    """Return whether the answer holds the reference's five facts and nothing else, in two sentences."""
    wanted = expected(prompt, reference)
    return wanted is not None and read(*wanted, answer.strip()) is not None


def expected(prompt: str, reference: str) -> tuple[Template, dict[str, tuple[str, ...]]] | None:
    """Return the phrase of all right summaries, and its values; None if the texts are not a request and a summary."""
    parts = prompt.strip().split("\n\n")
    if not any(read(RULES["ask"], {}, part.removesuffix(".")) is not None for part in parts):
        return None
    for kind in STORIES:
        values = read(RULES[kind], _open_values(kind), reference.strip())
        if values is not None:
            return RULES[kind], {slot: (value,) for slot, value in values}
    return None


@cache
def _open_values(kind: str) -> OpenValues:
    """Return what every slot of a summary may hold."""
    story = STORIES[kind]
    return {
        "place": NAME,
        "day": DAYS,
        "person": PEOPLE,
        "n": _NUMBER,
        "role": story.roles,
        "things": story.things,
        "why": story.whys,
        "result": story.results,
    }


def _facts(rng: Random, kind: str) -> dict[str, tuple[str, ...]]:
    """Draw what happened, and the name of a side remark."""
    story = STORIES[kind]
    person, other = rng.sample(PEOPLE, 2)
    return {
        "place": (coin(rng),),
        "day": (rng.choice(DAYS),),
        "person": (person,),
        "n": (str(rng.randint(2, 99)),),
        "role": (rng.choice(story.roles),),
        "things": (rng.choice(story.things),),
        "why": (rng.choice(story.whys),),
        "result": (rng.choice(story.results),),
        "other": (other,),
    }


def _report(rng: Random, kind: str, values: dict[str, tuple[str, ...]]) -> list[str]:
    """Write the event first, its outcome last, the rest in any order, and two or three side remarks between."""
    middle = [f"tell_{kind}_count", f"tell_{kind}_lead", "cause"]
    rng.shuffle(middle)
    sentences = [write(RULES[rule], values, rng) for rule in (f"tell_{kind}_what", *middle, f"tell_{kind}_result")]
    for side in rng.sample(SIDES, rng.randint(2, 3)):
        sentences.insert(rng.randint(1, len(sentences)), write(RULES[side], values, rng))
    return sentences
