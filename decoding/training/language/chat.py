"""Small talk over two or three turns: news, suggestions, views, and questions about what was said before."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from random import Random

from .chat_rules import RULES
from .chat_words import (
    BAD_CAUSES,
    COATS,
    FEATURES,
    FOODS,
    GLAD,
    GOOD_CAUSES,
    HOBBIES,
    IDEAS,
    KINDS,
    OCCASIONS,
    PET_NAMES,
    PETS,
    PLANS,
    RELATIVES,
    SAD,
    SIDES,
    SUBJECTS,
    THINGS,
    TIMES,
    WANTS,
)
from .phrases import Bound, Choice, OpenValues, Parts, Phrase, read, write
from .sample import Sample, Turn
from .words import NAME, PEOPLE, coin

_TABLES: dict[str, tuple[str, ...]] = {
    "name": PEOPLE,
    "hobby": HOBBIES,
    "kind": KINDS,
    "feature": FEATURES,
    "plan": PLANS,
    "relative": RELATIVES,
    "friend": RELATIVES,
    "when": TIMES,
    "glad": GLAD,
    "good": tuple(GOOD_CAUSES),
    "sad": SAD,
    "bad": tuple(BAD_CAUSES),
    "pet": PETS,
    "coat": COATS,
    "petname": PET_NAMES,
    "food": FOODS,
    "side": SIDES,
    "want": WANTS,
    "occasion": OCCASIONS,
    "subject": SUBJECTS,
}
# What each topic is told with; the first slot tells which topic a text is about.
_TOPICS = {
    "hobby": ("hobby",),
    "place": ("place", "kind", "feature"),
    "plan": ("plan", "relative", "when"),
    "joy": ("glad", "good"),
    "gloom": ("sad", "bad"),
    "pet": ("pet", "coat", "petname"),
    "food": ("food", "side"),
    "idea": ("want", "occasion"),
    "view": ("subject",),
}
_TOPIC_OF = {slots[0]: topic for topic, slots in _TOPICS.items()}
_NEWS = ("hobby", "place", "plan", "joy", "gloom", "pet", "food")
_NEWS_WEIGHTS = (30, 30, 30, 10, 15, 20, 20)
_ASKED = ("name", "hobby", "place", "plan", "mood", "pet", "food")
_OPEN_VALUES: OpenValues = {
    **_TABLES,
    "place": NAME,
    "you_good": tuple(GOOD_CAUSES.values()),
    "you_bad": tuple(BAD_CAUSES.values()),
    **{f"ask_{key}": ("",) for key in _ASKED},
}
_Values = dict[str, tuple[str, ...]]


def make(rng: Random) -> Sample:
    """A conversation whose later turns may ask for what the earlier ones told."""
    told: _Values = {}
    topics: list[str] = []
    asked: list[str] = []
    if rng.random() < 0.75:
        told["name"] = (rng.choice(PEOPLE),)
        topics.append("name")
    turns = [_first(rng, told, topics, asked)]
    turns.append(_later(rng, told, topics, asked, 0.3))
    if rng.random() < 0.5:
        turns.append(_later(rng, told, topics, asked, 0.65))
    return Sample("chat", tuple(turns))


def right(prompt: str, answer: str, reference: str) -> bool:
    """Whether the answer fits what the user says here, and recalls what the reference recalls."""
    wanted = expected(prompt, reference)
    found = None if wanted is None else read(*wanted, answer.strip())
    return found is not None and _distinct(found)


def expected(prompt: str, reference: str) -> tuple[Phrase, _Values] | None:
    """The phrase that every right answer is, and its values; None where the prompt is no small talk."""
    bound = read(RULES["turn"], _OPEN_VALUES, prompt.strip())
    if bound is not None:
        values = _related({slot: (value,) for slot, value in bound})
        return _reply(_topics(bound), "name" in values), values
    bound = read(RULES["recall"], _OPEN_VALUES, prompt.strip())
    if bound is None:
        return None
    topics = tuple(slot.removeprefix("ask_") for slot, _ in bound if slot.startswith("ask_"))
    recalled = read(_recall(topics), _OPEN_VALUES, reference.strip())
    if recalled is None:
        return None
    known: _Values = {slot: (value,) for slot, value in recalled}
    mood = "joy" if "glad" in known else "gloom"
    return _recall(tuple(mood if topic == "mood" else topic for topic in topics)), known


def _first(rng: Random, told: _Values, topics: list[str], asked: list[str]) -> Turn:
    hello = RULES["hello"] if told else None
    kinds = ("news", "double", "ask") if told else ("double", "news")
    kind = rng.choices(kinds, (6, 2.5, 1.5)[: len(kinds)])[0]
    return _telling(rng, told, topics, asked, kind, hello)


def _later(rng: Random, told: _Values, topics: list[str], asked: list[str], asking: float) -> Turn:
    """A turn that asks back, or goes on with something new; nothing is asked twice."""
    if rng.random() < asking and any(topic not in asked for topic in topics):
        return _asking_back(rng, told, topics, asked)
    news = rng.random() < 0.5 or {"idea", "view"} <= set(asked)
    return _telling(rng, told, topics, asked, "news" if news else "ask", RULES["lead"])


def _telling(rng: Random, told: _Values, topics: list[str], asked: list[str], kind: str, start: Phrase | None) -> Turn:
    """The user tells news, or asks for an idea or a view."""
    if kind == "ask":
        chosen = [rng.choice([topic for topic in ("idea", "view") if topic not in asked])]
        asked.extend(chosen)
    else:
        chosen = _news(rng, topics, 2 if kind == "double" else 1)
        topics.extend(chosen)
    for topic in chosen:
        for slot in _TOPICS[topic]:
            told[slot] = (coin(rng),) if slot == "place" else (rng.choice(_TABLES[slot]),)
    parts: list[Phrase] = [] if start is None else [start]
    if start is RULES["hello"]:
        parts.append(" ")
    for number, topic in enumerate(chosen):
        parts += ([" "] if number else []) + [RULES[f"ask_{topic}" if kind == "ask" else f"say_{topic}"]]
    prompt = write(Parts(tuple(parts)), told | {"friend": (rng.choice(RELATIVES),)}, rng)
    values = _related(told)
    if "want" in told:  # an idea and another one
        first, *others = rng.sample(values["idea"], 3)
        values |= {"idea": (first,), "other": tuple(others)}
    return Turn(prompt, write(_reply(tuple(chosen), start is RULES["hello"]), values, rng))


def _news(rng: Random, topics: list[str], count: int) -> list[str]:
    """Topics that are new; nobody is glad and sad in one conversation, and a sad user talks of nothing else then."""
    while True:
        chosen = list(dict.fromkeys(rng.choices(_NEWS, _NEWS_WEIGHTS, k=count)))
        moods = [topic for topic in (*topics, *chosen) if topic in ("joy", "gloom")]
        clash = len(moods) > 1 or (count > 1 and moods and moods[-1] in chosen)
        if len(chosen) == count and not clash and not any(topic in topics for topic in chosen):
            return chosen


def _asking_back(rng: Random, told: _Values, topics: list[str], asked: list[str]) -> Turn:
    fresh = [topic for topic in topics if topic not in asked]
    chosen = rng.sample(fresh, 2 if len(fresh) > 1 and rng.random() < 0.4 else 1)
    asked.extend(chosen)
    keys = ["mood" if topic in ("joy", "gloom") else topic for topic in chosen]
    parts: list[Phrase] = [RULES["lead"], RULES[f"question_{keys[0]}"]]
    for key in keys[1:]:
        parts += [", and ", RULES[f"ask_{key}"]]
    prompt = write(Parts((*parts, "?")), {f"ask_{key}": ("",) for key in keys}, rng)
    return Turn(prompt, write(_recall(tuple(chosen)), _related(told), rng))


@cache
def _reply(topics: tuple[str, ...], named: bool) -> Phrase:
    """An opening, something on every topic, and a question or a wish on the last."""
    first = topics[0]
    tone = {"gloom": "bad", "idea": "idea", "view": "view"}.get(first, "good")
    opening: Phrase = Parts((RULES["open_name" if named else f"open_{tone}"], " "))
    parts: list[Phrase] = [opening if named else Choice((opening, ""), (8.0, 10.0))]
    for topic in topics:
        parts += [RULES[f"on_{topic}"], " "]
    if len(topics) == 1 and first != "view":
        parts.append(Choice((Parts((RULES[f"more_{first}"], " ")), ""), (5.0, 10.0)))
    return Parts((*parts, RULES[f"end_{topics[-1]}"]))


@cache
def _recall(topics: tuple[str, ...]) -> Phrase:
    """An opening, every fact that was asked for in its order, and a question or a wish."""
    parts: list[Phrase] = [Choice((Parts((RULES["open_recall"], " ")), ""), (8.0, 10.0))]
    for topic in topics:
        parts += [RULES[f"fact_{topic}"], " "]
    if len(topics) == 1:
        parts.append(Choice((Parts((RULES["more_recall"], " ")), ""), (4.0, 10.0)))
    return Parts((*parts, RULES["end_recall"]))


def _topics(bound: Bound) -> tuple[str, ...]:
    return tuple(_TOPIC_OF[slot] for slot, _ in bound if slot in _TOPIC_OF)


def _related(values: Mapping[str, tuple[str, ...]]) -> _Values:
    """The values with those that follow from them: what belongs to a hobby, causes turned to the user, ideas."""
    related = dict(values)
    for slot, made, table in (
        ("hobby", "thing", THINGS),
        ("want", "idea", IDEAS),
        ("want", "other", IDEAS),
    ):
        if slot in values:
            related[made] = table[values[slot][0]]
    for slot, made, causes in (("good", "you_good", GOOD_CAUSES), ("bad", "you_bad", BAD_CAUSES)):
        if slot in values:
            related[made] = (causes[values[slot][0]],)
    return related


def _distinct(bound: Bound) -> bool:
    """Whether another idea is really another."""
    ideas = [value for slot, value in bound if slot == "idea"]
    return not any(slot == "other" and value in ideas for slot, value in bound)
