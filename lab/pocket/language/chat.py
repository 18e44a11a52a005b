"""Small talk over two or three turns: news, suggestions, views, and questions about what was said before."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from random import Random

from .chat_phrases import BAD_CAUSES, GOOD_CAUSES, IDEAS, RECALLED, RULES, SUBJECTS, TABLES, THINGS
from .phrases import Bound, Choice, Concatenation, OpenValues, Template, read, write
from .sample import Sample, Turn
from .words import NAME, PEOPLE, coin

# The slots of each topic; the first slot decides which topic a text is about.
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
_OPEN_VALUES: OpenValues = {
    **TABLES,
    "place": NAME,
    "you_good": tuple(GOOD_CAUSES.values()),
    "you_bad": tuple(BAD_CAUSES.values()),
}
_Values = dict[str, tuple[str, ...]]


def make(rng: Random) -> Sample:
    """Make a conversation whose later turns may ask for what the user said in earlier ones."""
    facts: _Values = {}
    topics: list[str] = []  # that the user spoke of
    asked: list[str] = []  # asked about
    if rng.random() < 0.75:
        facts["name"] = (rng.choice(PEOPLE),)
        topics.append("name")
    kind = rng.choices(("news", "double", "ask"), (6, 2.5, 1.5))[0] if facts else "double"
    turns = [_statement(rng, facts, topics, asked, kind, RULES["hello"] if facts else None)]
    turns.append(_later(rng, facts, topics, asked, 0.3))
    if rng.random() < 0.5:
        turns.append(_later(rng, facts, topics, asked, 0.65))
    return Sample("chat", tuple(turns))


def right(prompt: str, answer: str, reference: str) -> bool:
    """Return whether the answer fits what the user says here, and recalls what the reference recalls."""
    wanted = expected(prompt, reference)
    values = None if wanted is None else read(*wanted, answer.strip())
    return values is not None and _distinct(values)


def expected(prompt: str, reference: str) -> tuple[Template, _Values] | None:
    """Return the phrase of all right answers, and its values; None if the prompt is not small talk."""
    bound = read(RULES["turn"], _OPEN_VALUES, prompt.strip())
    if bound is not None:
        values = _related({slot: (value,) for slot, value in bound})
        topics = tuple(_TOPIC_OF[slot] for slot, _ in bound if slot in _TOPIC_OF)
        return _reply(topics, "name" in values), values
    for topic in RECALLED:
        if read(RULES[f"question_{topic}"], {}, prompt.strip()) is not None:
            recalled = read(_recall(topic), _OPEN_VALUES, reference.strip())
            if recalled is not None:
                return _recall(topic), {slot: (value,) for slot, value in recalled}
    return None


def _later(rng: Random, facts: _Values, topics: list[str], asked: list[str], asking: float) -> Turn:
    """Write a turn that refers back, or continues with something new; nothing is asked twice."""
    fresh = [topic for topic in topics if topic not in asked]
    if fresh and rng.random() < asking:
        topic = rng.choice(fresh)
        asked.append(topic)
        prompt = write(RULES[f"question_{topic}"], {}, rng)
        return Turn(prompt, write(_recall(topic), _related(facts), rng))
    news = rng.random() < 0.5 or {"idea", "view"} <= set(asked)
    return _statement(rng, facts, topics, asked, "news" if news else "ask", RULES["lead"])


def _statement(
    rng: Random, facts: _Values, topics: list[str], asked: list[str], kind: str, start: Template | None
) -> Turn:
    """Write a turn in which the user has news, or asks for an idea or a view."""
    if kind == "ask":
        chosen = [rng.choice([topic for topic in ("idea", "view") if topic not in asked])]
        asked.extend(chosen)
    else:
        chosen = _news(rng, topics, 2 if kind == "double" else 1)
        topics.extend(chosen)
    for topic in chosen:
        for slot in _TOPICS[topic]:
            facts[slot] = (coin(rng),) if slot == "place" else (rng.choice(TABLES[slot]),)
    parts: list[Template] = [] if start is None else [start]
    if start is RULES["hello"]:
        parts.append(" ")
    for number, topic in enumerate(chosen):
        parts += ([" "] if number else []) + [RULES[f"ask_{topic}" if kind == "ask" else f"say_{topic}"]]
    prompt = write(Concatenation(tuple(parts)), facts, rng)
    values = _related(facts)
    if "want" in facts:  # an idea and another one
        first, *others = rng.sample(values["idea"], 3)
        values |= {"idea": (first,), "other": tuple(others)}
    return Turn(prompt, write(_reply(tuple(chosen), start is RULES["hello"]), values, rng))


def _news(rng: Random, topics: list[str], count: int) -> list[str]:
    """Draw topics that are new; nobody is glad and sad in one conversation, and a mood is the only news of its turn."""
    while True:
        chosen = list(dict.fromkeys(rng.choices(_NEWS, _NEWS_WEIGHTS, k=count)))
        moods = [topic for topic in (*topics, *chosen) if topic in ("joy", "gloom")]
        clash = len(moods) > 1 or (count > 1 and moods and moods[-1] in chosen)
        if len(chosen) == count and not clash and not any(topic in topics for topic in chosen):
            return chosen


@cache
def _reply(topics: tuple[str, ...], named: bool) -> Template:
    """Write an opening, something on every topic, and a question or a wish on the last."""
    tone = {"gloom": "bad", "idea": "idea", "view": "view"}.get(topics[0], "good")
    opening: Template = Concatenation((RULES["open_name" if named else f"open_{tone}"], " "))
    parts: list[Template] = [opening if named else Choice((opening, ""), (5.0, 10.0))]
    for topic in topics:
        parts += [RULES[f"on_{topic}"], " "]
    return Concatenation((*parts, _aside(4.0, 1.0), RULES[f"end_{topics[-1]}"]))


@cache
def _recall(topic: str) -> Template:
    """Write an opening, the fact that was asked for, and a question or a wish."""
    opening = Choice((Concatenation((RULES["open_recall"], " ")), ""), (5.0, 10.0))
    return Concatenation((opening, RULES[f"fact_{topic}"], " ", _aside(1.0, 2.0), RULES["end_recall"]))


def _aside(thought: float, none: float) -> Choice:
    """Draw a thought of the assistant's own, or none, by these weights."""
    return Choice((Concatenation((RULES["aside"], " ")), ""), (thought, thought + none))


def _related(values: Mapping[str, tuple[str, ...]]) -> _Values:
    """Return the values with those that follow from them."""
    related = dict(values)
    if "hobby" in values:
        related["thing"] = (THINGS[values["hobby"][0]],)
    if "want" in values:
        related["idea"] = related["other"] = IDEAS[values["want"][0]]
    if "subject" in values:
        mild, harsh = SUBJECTS[values["subject"][0]]
        related |= {"mild": (mild,), "harsh": (harsh,)}
    if "good" in values:
        related["you_good"] = (GOOD_CAUSES[values["good"][0]],)
    if "bad" in values:
        related["you_bad"] = (BAD_CAUSES[values["bad"][0]],)
    return related


def _distinct(bound: Bound) -> bool:
    """Return whether another idea is really another."""
    ideas = [value for slot, value in bound if slot == "idea"]
    return not any(slot == "other" and value in ideas for slot, value in bound)
