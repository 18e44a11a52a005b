"""Summaries: a report with six facts among side remarks, retold in two or three sentences that hold every fact."""

from __future__ import annotations

import re
from functools import cache
from random import Random

from .phrases import OpenValues, Phrase, read, write
from .sample import Sample, Turn
from .summary_rules import RULES, SIDES
from .summary_words import DAYS, MONTHS, STORIES
from .words import NAME, PEOPLE, coin

_NUMBER = re.compile(r"[1-9][0-9]?(?![0-9])")
_ASKED = re.compile(r"(two or three|two to three|two|three) (?:short |plain )?sentences")
_LENGTHS = {"two": "two", "three": "three", "two or three": "any", "two to three": "any"}


def make(rng: Random) -> Sample:
    """A report and its summary; the request stands before or after the report."""
    kind = rng.choice(tuple(STORIES))
    values = _facts(rng, kind)
    length = rng.choices(("two", "three", "any"), (2, 2, 4))[0]
    report = " ".join(_report(rng, kind, values))
    asked = write(RULES[f"ask_{length}"], values, rng)
    if rng.random() < 0.5:
        prompt = f"{write(RULES['before'], values, rng)}{asked}.\n\n{report}"
    else:
        prompt = f"{report}\n\n{write(RULES['after'], values, rng)}{asked}."
    return Sample("summary", (Turn(prompt, write(RULES[f"{kind}_{length}"], values, rng)),))


def right(prompt: str, answer: str, reference: str) -> bool:
    """Whether the answer holds the reference's six facts and nothing else, in as many sentences as were asked for."""
    wanted = expected(prompt, reference)
    return wanted is not None and read(*wanted, answer.strip()) is not None


def expected(prompt: str, reference: str) -> tuple[Phrase, dict[str, tuple[str, ...]]] | None:
    """The phrase that every right summary is, and its values; None where the texts are no request and summary."""
    asked = _ASKED.findall(prompt)
    for kind in STORIES if asked else ():
        known = read(RULES[f"{kind}_any"], _open_values(kind), reference.strip())
        if known is not None:
            return RULES[f"{kind}_{_LENGTHS[asked[-1]]}"], {slot: (value,) for slot, value in known}
    return None


@cache
def _open_values(kind: str) -> OpenValues:
    """What every slot of a summary may hold."""
    story = STORIES[kind]
    return {
        "place": NAME,
        "day": DAYS,
        "month": MONTHS,
        "person": PEOPLE,
        "n": _NUMBER,
        "role": story.roles,
        "things": story.things,
        "why": story.whys,
        "result": story.results,
        "object": story.objects,
    }


def _facts(rng: Random, kind: str) -> dict[str, tuple[str, ...]]:
    """What happened, and the names and the numbers of side remarks."""
    story = STORIES[kind]
    person, *others = rng.sample(PEOPLE, 3)
    return {
        "place": (coin(rng),),
        "day": (rng.choice(DAYS),),
        "month": (rng.choice(MONTHS),),
        "person": (person,),
        "n": (str(rng.randint(2, 99)),),
        "role": (rng.choice(story.roles),),
        "things": (rng.choice(story.things),),
        "why": (rng.choice(story.whys),),
        "result": (rng.choice(story.results),),
        "object": (rng.choice(story.objects or ("",)),),
        "other": tuple(others),
        "few": ("two", "three", "four", "five"),
    }


def _report(rng: Random, kind: str, values: dict[str, tuple[str, ...]]) -> list[str]:
    """The event first, what came of it last, the rest in any order, and side remarks between."""
    middle = [f"tell_{kind}_count", f"tell_{kind}_lead", "cause"]
    rng.shuffle(middle)
    rules = [f"tell_{kind}_what", *middle, f"tell_{kind}_result", f"tell_{kind}_next"]
    sentences = [write(RULES[rule], values, rng) for rule in rules]
    for side in rng.sample(SIDES, rng.randint(4, 5)):
        sentences.insert(rng.randint(1, len(sentences)), write(RULES[side], values, rng))
    return sentences
