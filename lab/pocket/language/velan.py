"""Velan, a small constructed language: its lexicon beside English; writes and parses both languages.

In Velan the object follows the subject and the verb follows both; an adjective follows its noun and takes the same
endings: `ri` for many, then `m` for the object. The verb's ending is its tense, `nel` before it denies it, and a
courtesy particle may close a sentence. Velan has one word for a meaning, English has two for every third. In both
languages the setting stands first or last, which means the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from random import Random
from typing import NamedTuple, TypeAlias

Forms: TypeAlias = dict[str, float]  # texts that mean the same, with their weights


class NounPhrase(NamedTuple):
    """Some person, animal or thing: indices into the lexicon."""

    noun: int
    adjective: int | None
    plural: bool


class Action(NamedTuple):
    """The meaning of a verb."""

    verb: int
    tense: int
    negative: bool


class Clause(NamedTuple):
    """The meaning of one sentence, in either language."""

    subject: NounPhrase
    action: Action
    object: NounPhrase | None
    setting: int | None


class Word(NamedTuple):
    """One meaning: its English words, and its word or stem in Velan."""

    english: tuple[str, ...]
    velan: str


def _table(text: str) -> tuple[Word, ...]:
    """Parse a table written as `english, english = velan; ...`."""
    pairs = (entry.split("=") for entry in text.split(";"))
    return tuple(Word(tuple(word.strip() for word in english.split(",")), velan.strip()) for english, velan in pairs)


LIVING = 12  # the first so many nouns can act; the others are things
NOUNS = _table(
    """teacher, tutor = palu; friend, companion = minta; boy, lad = tarku; guest, visitor = vondu; girl = fila;
    doctor = havra; farmer = kestu; sailor = yolna; king = drenu; dog = buru; cat = mishu; horse = kavda;
    boat, ship = vashu; stone, rock = gromu; coat, jacket = mortu; house = kalu; book = karpa; letter = senu;
    lamp = shira; basket = vikla"""
)
ACTING = 8  # the first so many verbs take an object; the others take none
VERBS = _table(  # each English verb with its past
    """see saw, notice noticed = vid; find found, discover discovered = torm; hide hid, conceal concealed = krub;
    love loved = amb; want wanted = kel; bring brought = hast; draw drew = lin; lose lost = mald;
    wait waited, linger lingered = pesh; sleep slept = som; sing sang = kant; run ran = rast"""
)
ADJECTIVES = _table(
    """big, large = grele; small, little = pike; quiet, silent = tishe; old = shere; good = halde; strange = kvile;
    red = rode; white = alve"""
)
SETTINGS = _table(
    """in the morning, at dawn = aurite; in town, in the city = burge; at night, after dark = noshe; every day = todele;
    by the sea, on the shore = marine; in the garden = horte"""
)
PAST, PRESENT, FUTURE = range(3)

_TENSES = ("en", "is", "ol")
_SHARES = (0.65, 0.35)  # of the first and of the second of two synonyms


class Language:
    """The forms of all meanings in a language, and the order that sentences have in it."""

    def __init__(
        self,
        phrases: tuple[dict[NounPhrase, Forms], dict[NounPhrase, Forms]],
        actions: dict[tuple[bool, Action], Forms],
        settings: dict[int, Forms],
        orders: Forms,
        stops: Forms,
    ) -> None:
        """Phrases as subject and as object; actions by whether many act; the first order suits no setting too."""
        self._phrases = phrases
        self._actions = actions
        self._settings = settings
        self._orders = orders
        self._stops = stops
        self._phrase_of = tuple({text: one for one, forms in side.items() for text in forms} for side in phrases)
        self._action_of = {(one[0], text): one[1] for one, forms in actions.items() for text in forms}
        self._setting_of = {text: one for one, forms in settings.items() for text in forms}
        groups = {
            "subject": f"(?P<subject>{'|'.join(self._phrase_of[0])})",
            "object": f"(?P<object>(?: (?:{'|'.join(self._phrase_of[1])}))?)",
            "action": f"(?P<action>{'|'.join({text for _, text in self._action_of})})",
            "setting": f"(?P<setting>{'|'.join(self._setting_of)})",
            "Setting": f"(?P<setting>{'|'.join(map(str.capitalize, self._setting_of))})",
            "last": f"(?: (?P<setting>{'|'.join(self._setting_of)}))?",
        }
        stop = f"(?:{'|'.join(map(re.escape, stops))})"
        self._sentences = tuple(re.compile(pattern.format(**groups) + stop) for pattern in orders)

    def write(self, clause: Clause, rng: Random) -> str:
        """Write one sentence, with its full stop."""
        setting = None if clause.setting is None else _draw(self._settings[clause.setting], rng)
        order = next(iter(self._orders)) if setting is None else _draw(self._orders, rng)
        text = order.format(
            subject=_draw(self._phrases[0][clause.subject], rng),
            object="" if clause.object is None else " " + _draw(self._phrases[1][clause.object], rng),
            action=_draw(self._actions[clause.subject.plural, clause.action], rng),
            setting=setting,
            Setting=(setting or "").capitalize(),
            last="" if setting is None else " " + setting,
        )
        return text + _draw(self._stops, rng)

    def read(self, sentence: str) -> Clause | None:
        """Return the meaning of a sentence; None if it is not exactly one of this language."""
        for pattern in self._sentences:
            match = pattern.fullmatch(sentence)
            if match is not None:
                subject = self._phrase_of[0][match["subject"]]
                action = self._action_of.get((subject.plural, match["action"]))
                thing = self._phrase_of[1].get(match["object"][1:])
                if action is not None and (thing is not None) == (action.verb < ACTING):
                    setting = self._setting_of.get((match["setting"] or "").lower())
                    return Clause(subject, action, thing, setting)
        return None


def _draw(forms: Forms, rng: Random) -> str:
    """Draw one of the texts by their weights."""
    return next(iter(forms)) if len(forms) == 1 else rng.choices(list(forms), list(forms.values()))[0]


def _all_phrases() -> Iterator[NounPhrase]:
    adjectives = (None, *range(len(ADJECTIVES)))
    return (NounPhrase(*one) for one in product(range(len(NOUNS)), adjectives, (False, True)))


def _all_actions() -> Iterator[tuple[bool, Action]]:
    verbs = product((False, True), range(len(VERBS)), range(3), (False, True))
    return ((plural, Action(verb, tense, negative)) for plural, verb, tense, negative in verbs)


def _synonyms(words: tuple[str, ...]) -> Forms:
    return {words[0]: 1.0} if len(words) == 1 else dict(zip(words, _SHARES, strict=True))


def _velan_phrase(phrase: NounPhrase, case: str) -> Forms:
    ending = ("ri" if phrase.plural else "") + case
    noun = NOUNS[phrase.noun].velan + ending
    return {noun if phrase.adjective is None else f"{noun} {ADJECTIVES[phrase.adjective].velan}{ending}": 1.0}


def _velan_action(action: Action) -> Forms:
    return {("nel " if action.negative else "") + VERBS[action.verb].velan + _TENSES[action.tense]: 1.0}


def _english_phrase(phrase: NounPhrase, article: str) -> Forms:
    nouns = _synonyms(NOUNS[phrase.noun].english)
    adjectives = {"": 1.0} if phrase.adjective is None else _synonyms(ADJECTIVES[phrase.adjective].english)
    return {
        " ".join(filter(None, (article, adjective, noun + "s" * phrase.plural))): weight * share
        for adjective, weight in adjectives.items()
        for noun, share in nouns.items()
    }


def _english_action(plural: bool, action: Action) -> Forms:
    return {_english_verb(verb, plural, action): share for verb, share in _synonyms(VERBS[action.verb].english).items()}


def _english_verb(verb_and_past: str, plural: bool, action: Action) -> str:
    verb, past = verb_and_past.split()
    if action.tense == FUTURE:
        return f"will not {verb}" if action.negative else f"will {verb}"
    if action.negative:
        return f"{'did' if action.tense == PAST else 'do' if plural else 'does'} not {verb}"
    return past if action.tense == PAST else verb if plural else verb + "s"


VELAN = Language(
    ({one: _velan_phrase(one, "") for one in _all_phrases()}, {one: _velan_phrase(one, "m") for one in _all_phrases()}),
    {(plural, action): _velan_action(action) for plural, action in _all_actions()},
    {index: {word.velan: 1.0} for index, word in enumerate(SETTINGS)},
    {"{subject}{object} {action}{last}": 0.45, "{setting} {subject}{object} {action}": 0.55},
    {".": 0.7, " sen.": 0.3},
)
ENGLISH = Language(
    (
        {one: _english_phrase(one, "") for one in _all_phrases()},
        {one: _english_phrase(one, "the") for one in _all_phrases()},
    ),
    {(plural, action): _english_action(plural, action) for plural, action in _all_actions()},
    {index: _synonyms(word.english) for index, word in enumerate(SETTINGS)},
    {
        "The {subject} {action}{object}{last}": 0.45,
        "{Setting}, the {subject} {action}{object}": 0.35,
        "{Setting} the {subject} {action}{object}": 0.2,
    },
    {".": 1.0},
)
