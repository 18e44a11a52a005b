"""Word problems of two or three operations, answered with worked steps; the sums go column by column."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from .arithmetic_steps import Step, read_answer, wording, write_answer
from .phrases import write
from .sample import Sample, Turn
from .words import PEOPLE


@dataclass(frozen=True, slots=True)
class _Setting:
    """Where it plays: {p} and {q} are people, {n} things {t}, {k} groups; an answer may repeat what is before ~."""

    things: tuple[str, ...]
    starts: tuple[str, ...]
    groups: tuple[str, ...]
    gains: tuple[str, ...]
    losses: tuple[str, ...]
    more_groups: tuple[str, ...]
    fewer_groups: tuple[str, ...]
    owner: str = "{p}"


_SETTINGS = (
    _Setting(
        ("shells", "stones", "stamps", "cards", "beads"),
        ("{p} has {n} {t}~", "{p} owns {n} {t}~", "{p} keeps {n} {t}~ in a jar", "{p} starts with {n} {t}~"),
        ("{p} has {k} boxes with {n} {t}~ in each", "{p} fills {k} jars with {n} {t}~ each"),
        (
            "{p} finds {n} more {t}~",
            "{q} gives {p} {n} {t}~",
            "{p} wins {n} {t}~ in a game",
            "{p} gets {n} {t}~ from {q}",
        ),
        ("{p} gives {n} {t}~ to {q}", "{p} loses {n} {t}~ on the way", "{q} takes {n} {t}~", "{p} sells {n} {t}~"),
        ("{p} buys {k} bags with {n} {t}~ in each", "{k} friends bring {n} {t}~ each"),
        ("{p} gives {n} {t} to each of {k} friends~", "{p} sells {k} boxes of {n} {t}~"),
    ),
    _Setting(
        ("apples", "pears", "plums", "nuts"),
        ("{p} has {n} {t}~ in a basket", "{p} brings {n} {t}~", "{p} picks {n} {t}~ from a tree"),
        ("{p} has {k} baskets with {n} {t}~ in each", "{p} picks {n} {t} from each of {k} trees~"),
        ("{p} picks {n} more {t}~", "{q} brings {n} {t}~ to {p}", "{p} buys {n} {t}~ at the market"),
        ("{p} eats {n} {t}~", "{n} {t} go bad~", "{p} cooks {n} {t}~ for {q}", "{q} eats {n} {t}~ at noon"),
        ("{p} buys {k} bags of {n} {t}~", "{p} gets {n} {t} from each of {k} farms~"),
        ("{p} gives {n} {t} to each of {k} friends~", "{p} puts {n} {t} in each of {k} pies~"),
    ),
    _Setting(
        ("rolls", "cakes", "pies"),
        ("{p} bakes {n} {t}~ in the morning", "{p} has {n} {t}~ to sell"),
        ("{p} bakes {k} trays with {n} {t}~ on each", "{p} bakes {n} {t} in each of {k} hours~"),
        ("{p} bakes {n} more {t}~", "{q} brings {n} {t}~ from home"),
        ("{p} sells {n} {t}~", "{q} buys {n} {t}~", "{p} burns {n} {t}~", "{p} gives {n} {t}~ to the school"),
        ("{p} bakes {k} more trays with {n} {t}~ on each", "{k} friends bake {n} {t}~ each"),
        ("{k} friends buy {n} {t}~ each", "{p} sells {k} boxes of {n} {t}~"),
    ),
    _Setting(
        ("people",),
        ("the bus has {n} {t}~ on board", "the bus starts with {n} {t}~"),
        ("the bus has {k} rows with {n} {t}~ in each", "the bus stops {k} times and {n} {t} get on each time~"),
        ("{n} {t} get on~", "{n} more {t} come in~", "{p} brings a group of {n} {t}~"),
        ("{n} {t} get off~", "{n} {t} leave the bus~", "{n} {t} leave~ at the school"),
        ("{k} groups of {n} {t} get on~", "{k} groups of {n} {t} come in~"),
        ("{k} groups of {n} {t} get off~", "{k} groups of {n} {t} leave~"),
        "the bus",
    ),
    _Setting(
        ("books", "maps"),
        ("the shelf has {n} {t}~", "the shelf holds {n} {t}~ in the library"),
        ("the shelf has {k} rows with {n} {t}~ in each", "the shelf holds {k} boxes with {n} {t}~ each"),
        ("{p} brings back {n} {t}~", "{p} adds {n} new {t}~", "{q} returns {n} {t}~"),
        ("{p} borrows {n} {t}~", "{q} takes {n} {t}~ home", "{p} throws away {n} old {t}~"),
        ("{p} adds {k} boxes of {n} {t}~", "{k} friends return {n} {t}~ each"),
        ("{k} friends borrow {n} {t}~ each", "{p} takes away {k} piles of {n} {t}~"),
        "the shelf",
    ),
    _Setting(
        ("roses", "trees", "plants"),
        ("the garden has {n} {t}~", "{p} plants {n} {t}~ in the garden"),
        ("the garden has {k} rows of {n} {t}~", "{p} plants {k} rows with {n} {t}~ in each"),
        ("{p} plants {n} more {t}~", "{q} adds {n} {t}~ near the wall"),
        ("{n} {t} die~ in the winter", "a storm breaks {n} {t}~", "{q} digs up {n} {t}~"),
        ("{p} adds {k} rows of {n} {t}~", "{k} friends plant {n} {t}~ each"),
        ("{p} digs up {k} rows of {n} {t}~", "{p} sells {k} rows of {n} {t}~"),
        "the garden",
    ),
    _Setting(
        ("hens", "sheep", "goats"),
        ("the farm has {n} {t}~", "the farm of {p} keeps {n} {t}~"),
        ("the farm has {k} barns with {n} {t}~ in each", "the farm keeps {n} {t} in each of {k} fields~"),
        ("{p} buys {n} more {t}~", "{n} {t} are born~ in spring", "{q} brings {n} {t}~ to the farm"),
        ("{p} sells {n} {t}~", "{n} {t} run away~", "a fox takes {n} {t}~"),
        ("{p} buys {k} groups of {n} {t}~", "{k} carts bring {n} {t}~ each"),
        ("{p} sells {n} {t} to each of {k} friends~", "{k} carts take away {n} {t}~ each"),
        "the farm",
    ),
    _Setting(
        ("pages", "miles", "tasks"),
        ("{p} has {n} {t}~ to go", "{p} must still do {n} {t}~"),
        ("{p} has {k} parts with {n} {t}~ in each to go", "{p} must do {n} {t} on each of {k} days~"),
        ("{q} adds {n} {t}~ to the plan", "{p} gets {n} more {t}~ to do"),
        ("{p} does {n} {t}~ on Monday", "{q} helps with {n} {t}~", "{p} skips {n} {t}~"),
        ("{q} adds {k} parts of {n} {t}~", "{p} gets {k} more parts with {n} {t}~ each"),
        ("{p} does {n} {t} on each of {k} days~", "{k} friends do {n} {t}~ each"),
    ),
    _Setting(
        ("coins",),
        ("{p} has {n} {t}~ in a purse", "{p} owns {n} {t}~", "{p} has saved {n} {t}~"),
        ("{p} saves {n} {t} in each of {k} weeks~", "{p} has {k} bags with {n} {t}~ in each"),
        ("{p} earns {n} {t}~ with work", "{q} pays {p} {n} {t}~", "{p} finds {n} {t}~ under the bed"),
        ("{p} pays {n} {t}~ for a lamp", "{p} spends {n} {t}~ on bread", "{p} gives {n} {t}~ to {q}"),
        ("{p} earns {n} {t} on each of {k} days~", "{p} sells {k} cups for {n} {t}~ each"),
        ("{p} buys {k} cups for {n} {t}~ each", "{p} pays {n} {t} in each of {k} weeks~"),
    ),
)
_COMPARED = {
    "+": ("{p} has {n} more {t}~ than {q}", "{p} has as many as {q} and {n} more {t}~"),
    "-": ("{p} has {n} fewer {t}~ than {q}", "{p} has {n} {t} less~ than {q}"),
    "*": ("{p} has {n} times as many {t}~ as {q}", "{p} has {n} times the {t}~ of {q}"),
}
_QUESTION = wording(
    "[How many {t} {do} {o} have[| now| in the end| at the end| after this]?"
    "|Find how many {t} {o} {has}[| now| in the end].|What number of {t} {do} {o} have[| now| in the end]?"
    "|Tell me how many {t} {o} {has}[| now| at the end].|Count the {t} that {o} {has}[| now| in the end]."
    "|Can you say how many {t} {o} {has}[| now| in the end]?]"
)
_REQUEST = wording(
    "[|Show [|all |me ][the|your] steps.|Work it out step by step.|Please [explain|write|show] each step."
    "|Give the steps and the result.|Use columns.|Go step by step.|Write down every sum.]"
)
_ASIDE = wording(
    "[It is a [warm|cold|quiet] [morning|day|evening][| in spring]."
    "|The sun is [out|low|warm].|{q} is a friend of {p}.|{p} likes {t}[| a lot| very much]."
    "|{p} sings [a|an old] song.|{q} has a [red|blue|new|small] [hat|dog|boat].|{p} is {n} years old.]"
)
_WATCHER = wording("{p} [keeps count|looks on|writes it all down|watches|wants to know more].")
_JOIN = wording("[. |. Then |. Later |, and then |. After that, |. Next, |. Soon |, and later |. The next day |. Now ]")
_FRIEND = ("{r} has {n} {t}~ too", "{r} comes with {n} {t}~", "{r} brings {n} other {t}~")
_MOST = 99


@dataclass(frozen=True, slots=True)
class _Story:
    """What has been told so far, and the operations that it asks for; `value` is how many things there are now."""

    names: Mapping[str, str]
    owner: str
    value: int
    told: tuple[str, ...]
    steps: tuple[Step, ...] = ()
    numbers: tuple[int, ...] = ()


def make(rng: Random) -> Sample:
    """A story, and its question's answer in worked steps."""
    story = _story(rng)
    has = "have" if " and " in story.owner else "has"
    prompt = _prompt(rng, story, has)
    hero = story.names["q" if rng.random() < 0.3 and story.names["q"] in prompt else "p"]
    answer = write_answer(rng, story.steps, f"{story.owner} {has}", story.names["t"], hero)
    return Sample("arithmetic", (Turn(prompt, answer),))


def right(prompt: str, answer: str, reference: str) -> bool:
    """Whether an answer takes the reference's steps, each of them true, and ends with its result in good form."""
    got, wanted = read_answer(answer), read_answer(reference)
    if got is None or wanted is None:
        return False
    same = (got.steps, got.owner, got.things) == (wanted.steps, wanted.owner, wanted.things)
    people = set(re.findall(r"[A-Za-z]+", prompt)) & set(PEOPLE)
    told = all(_asks(prompt, text, got.steps[place]) for place, text in got.echoes)
    return same and told and people.issuperset(got.heroes)


def _asks(prompt: str, clause: str, step: tuple[int, str, int]) -> bool:
    """Whether a repeated clause is whole, stands in the story and asks for just this operation."""
    numbers = set(map(int, re.findall("[0-9]+", clause)))
    if not {step[2]} <= numbers <= {step[0], step[2]} or _CLAUSE.fullmatch(clause) is None:
        return False
    return any(re.search(rf"\b{text}\b", prompt) for text in (clause, _capital(clause)))


def _clause_pattern() -> re.Pattern[str]:
    """Every clause that an answer may repeat, whoever and however many it is about."""
    told = [*_FRIEND, *(text for texts in _COMPARED.values() for text in texts)]
    for one in _SETTINGS:
        told += one.groups + one.gains + one.losses + one.more_groups + one.fewer_groups
    things = "|".join(name for one in _SETTINGS for name in one.things)
    values = {"n": "[0-9]+", "k": "[0-9]+", "t": f"(?:{things})"} | dict.fromkeys("pqr", "[A-Z][a-z]+")
    return re.compile("|".join(dict.fromkeys(text.split("~")[0].format(**values) for text in told)))


_CLAUSE = _clause_pattern()


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _say(rng: Random, texts: tuple[str, ...], names: Mapping[str, str], **numbers: int) -> tuple[str, str]:
    """One of the clauses, whole, and the part of it that an answer may repeat."""
    repeated, rest = rng.choice(texts).format(**names, **numbers).split("~")
    return repeated + rest, repeated


def _number(rng: Random, most: int, used: tuple[int, ...], least: int = 2) -> int:
    """A number of one digit or two that the story does not hold yet, so that it tells who did what; 0 for none."""
    if most < least:
        return 0
    small = most < 10 or (least < 10 and rng.random() < 0.4)
    number = rng.randint(least, min(most, 9)) if small else rng.randint(max(least, 10), most)
    return 0 if number in used else number


def _story(rng: Random) -> _Story:
    """A story of two or three operations, at most two of which need columns, so that its answer stays short."""
    count = 2 if rng.random() < 0.86 else 3
    most = 2 if rng.random() < 0.7 else 1
    while True:
        setting = rng.choice(_SETTINGS)
        p, q, r = rng.sample(PEOPLE, 3)
        story = _start(rng, setting, {"p": p, "q": q, "r": r, "t": rng.choice(setting.things)})
        while story is not None and len(story.steps) < count:
            story = _grow(rng, setting, story, count - len(story.steps))
        if story and sum(step.columns for step in story.steps) <= most:
            return story


def _start(rng: Random, setting: _Setting, names: Mapping[str, str]) -> _Story | None:
    """How it begins: with a number, with equal groups, or with one person's number compared with another's."""
    owner = setting.owner.format(**names)
    way = rng.random()
    if way < 0.25:
        k = rng.randint(2, 5)
        n = _number(rng, _MOST // k, (k,))
        if not n:
            return None
        text, repeated = _say(rng, setting.groups, names, k=k, n=n)
        return _Story(names, owner, n * k, (text,), (Step(n, "*", k, repeated),), (k, n))
    a = _number(rng, _MOST, (), 4)
    if way < 0.75 or setting.owner != "{p}":
        return _Story(names, owner, a, (_say(rng, setting.starts, names, n=a)[0],), (), (a,))
    op = rng.choice("+-*")
    b = _number(rng, {"+": _MOST - a, "-": a - 2, "*": min(5, _MOST // a)}[op], (a,))
    if not b:
        return None
    text, repeated = _say(rng, _COMPARED[op], names, n=b)
    text = _say(rng, setting.starts, {**names, "p": names["q"]}, n=a)[0] + rng.choice((". ", " and ")) + text
    step = Step(a, op, b, repeated)
    return _Story(names, owner, step.result, (text,), (step,), (a, b))


def _grow(rng: Random, setting: _Setting, story: _Story, room: int) -> _Story | None:
    """The story after one more event, of at most `room` operations; None where the numbers do not allow it."""
    up, last = rng.random() < 0.5, room == 1
    k = rng.randint(2, 5) if not last and rng.random() < 0.25 else 1
    most = story.value - 2 if not up else _MOST if last and rng.random() < 0.2 else _MOST - story.value
    n = _number(rng, most // k, (*story.numbers, k))
    if not n or ({k, n * k} - {1}) & {*story.numbers}:
        return None
    together = up and last and setting.owner == "{p}" and rng.random() < 0.3
    grouped = setting.more_groups if up else setting.fewer_groups
    texts = grouped if k > 1 else _FRIEND if together else setting.gains if up else setting.losses
    text, repeated = _say(rng, texts, story.names, k=k, n=n)
    step = Step(story.value, "+" if up else "-", n * k, repeated if k == 1 else "")
    steps = (*story.steps, step) if k == 1 else (*story.steps, Step(n, "*", k, repeated), step)
    owner = f"{story.owner} and {story.names['r']}" if together else story.owner
    return _Story(story.names, owner, step.result, (*story.told, text), steps, (*story.numbers, k, n, n * k))


def _prompt(rng: Random, story: _Story, has: str) -> str:
    """The story as a user tells it: the question before or after, now and then with something beside the point."""
    words = {**story.names, "o": story.owner, "has": has, "do": "do" if has == "have" else "does"}
    sentences = [_tale(rng, story)]
    if story.names["p"] not in sentences[0]:
        sentences.append(write(_WATCHER, words, rng))
    if rng.random() < 0.3:
        sentences.insert(rng.randint(0, 1), write(_ASIDE, {**words, "n": str(rng.randint(6, 60))}, rng))
    request = write(_REQUEST, words, rng)
    asked = [write(_QUESTION, words, rng), request] if rng.random() < 0.8 else [request, write(_QUESTION, words, rng)]
    parts = asked + sentences if rng.random() < 0.2 else sentences + asked
    return " ".join(filter(None, parts))


def _tale(rng: Random, story: _Story) -> str:
    """What happened; the start may be told after the first event."""
    first, *others = story.told
    plain = story.steps[0].op != "*" and story.steps[0].clause not in first
    turned = plain and rng.random() < 0.12
    text = f"{_capital(others.pop(0))}. Before that, {first}" if turned else _capital(first)
    for other in others:
        text += (". Later " if turned else write(_JOIN, {}, rng)) + other
    return text + "."
