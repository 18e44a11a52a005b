"""Velan, a small made-up language: its lexicon beside English, its grammar, how it is written and how it is read.

The verb stands last; what comes before it is free in order, because the object carries a case ending.
Nouns have two classes, shown by the vowel their stem ends in; an adjective follows its noun and takes that vowel and
the noun's endings. Velan has no articles and no capitals, a topic particle behind the first phrase, and courtesy
particles behind the verb; neither sort of particle has a meaning that English could show.
"""

from __future__ import annotations

from bisect import bisect
from random import Random
from typing import NamedTuple


class Word(NamedTuple):
    """One meaning, with all the words for it in each language."""

    english: tuple[str, ...]
    velan: tuple[str, ...]


class Phrase(NamedTuple):
    """Some person, animal or thing: indices into the lexicon."""

    noun: int
    adjective: int | None
    plural: bool


class Clause(NamedTuple):
    """What one sentence means, in either language."""

    subject: Phrase
    verb: int
    tense: int
    negative: bool
    object: Phrase | None
    setting: int | None


def _table(text: str) -> tuple[Word, ...]:
    """The entries of a table written as `english words = velan words; ...`."""
    pairs = (entry.split("=") for entry in text.split(";"))
    return tuple(Word(_words(english), tuple(velan.split())) for english, velan in pairs)


def _words(text: str) -> tuple[str, ...]:
    """Words split at spaces, or at commas where the words themselves hold spaces."""
    parts = text.split(",") if "," in text else text.split()
    return tuple(part.strip() for part in parts)


LIVING = 20  # the first so many nouns can act; the others are things
NOUNS = _table(
    """child kid = tova pelmu; woman lady = selka; man fellow = gorda; friend companion = minta ruvu;
    teacher tutor = palu; doctor physician = havra odemu; farmer grower = kestu; sailor mariner = yolna brisu;
    king ruler = drenu; girl lass = fila; boy lad = tarku; thief robber = zemla guspu; guest visitor = vondu lira;
    baker = hopta; dog hound = buru; cat = mishu nela; horse = kavda; bird = pilu sorva; rabbit bunny = dukma;
    fox = reshu; house building = domra kalu; boat ship = vashu; road street = lenda tiru; stone rock = gromu;
    picture painting = isla felgu; book = karpa; letter note = senu pavra; gift present = yelda;
    coat jacket = mortu; box chest = kubla hestu; cup mug = topu; lamp lantern = shira ludu; basket = vikla;
    key = zinu; shop store = berga maltu; bag sack = nodru"""
)
ACTING = 15  # the first so many verbs take an object; the others take none
VERBS = _table(
    """see notice = vid lesk; find discover = torm; love adore = amb shol; want desire = kel; need require = durv;
    bring fetch = hast nim; carry haul = port; follow chase = sekr gult; draw sketch = lin; choose pick = opr vest;
    lose = mald; hide conceal = krub tazh; wash clean = lav; watch observe = skop; remember recall = yond mer;
    sleep doze = som drev; sing chant = kant; dance = fulk; wait linger = pesh; laugh chuckle = hik galb;
    work toil = arbr; run dash = rast zul"""
)
ADJECTIVES = _table(
    """big large huge = grel vom; small little tiny = pik; old ancient = sher tumb; strange odd unusual = kvil;
    good fine = bon hald; bad awful = fral; beautiful lovely pretty = ashel; quiet silent = tish morv;
    loud noisy = brak; tidy neat = lest; dirty grubby = pund skor; heavy = gond; famous renowned = klar zeb;
    red = rud; white pale = alv; black dark = nokt; wet damp soaked = hum drosh; round plump = bolb"""
)
SETTINGS = _table(
    """in the morning, at dawn = aurite; in the evening, at dusk = vespe dulde; at night, after dark = noshe;
    every day, day after day = omnide todele; in the forest, in the woods = silve;
    by the sea, on the shore = mare ondue; in town, in the city = burge; in the garden, among the flowers = horte"""
)
PAST, PRESENT, FUTURE = range(3)

_TENSES = ("en", "is", "ol")
_CASES = ("", "m", "ri", "rim")  # singular subject and object, plural subject and object
_VOWELS = "au"
_NOT = "nel"
_TOPIC = "ta"
_COURTESY = ("sen", "lio")
_SHARES: tuple[tuple[float, ...], ...] = ((), (), (0.6,), (0.45, 0.75))  # where one synonym's share ends

_NOUN_FORMS = {
    stem + case: (index, place, stem[-1] + case)
    for index, word in enumerate(NOUNS)
    for stem in word.velan
    for place, case in enumerate(_CASES)
}
_ADJECTIVE_FORMS = {
    stem + vowel + case: (index, vowel + case)
    for index, word in enumerate(ADJECTIVES)
    for stem in word.velan
    for vowel in _VOWELS
    for case in _CASES
}
_VERB_FORMS = {
    stem + ending: (index, tense)
    for index, word in enumerate(VERBS)
    for stem in word.velan
    for tense, ending in enumerate(_TENSES)
}
_SETTING_FORMS = {form: index for index, word in enumerate(SETTINGS) for form in word.velan}


class Voice:
    """How one writer words a text: free choices, and a habit of saying a thing again with the same word."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._said: dict[tuple[str, ...], str] = {}

    def chance(self, share: float) -> bool:
        """True this often."""
        return self._rng.random() < share

    def place(self, ends: tuple[float, ...]) -> int:
        """Which of the intervals that end at these shares of one was drawn."""
        return bisect(ends, self._rng.random())

    def word(self, options: tuple[str, ...]) -> str:
        """One of up to three synonyms; mostly the one that this writer used before."""
        if len(options) == 1:
            return options[0]
        if options in self._said and self.chance(0.4):
            return self._said[options]
        word = options[self.place(_SHARES[len(options)])]
        self._said[options] = word
        return word


def write(clause: Clause, voice: Voice) -> str:
    """One sentence of Velan, with its full stop."""
    parts = [_write_phrase(clause.subject, 0, voice)]
    if clause.object is not None:
        parts.insert(0 if voice.chance(0.35) else 1, _write_phrase(clause.object, 1, voice))
    if clause.setting is not None:
        setting = voice.word(SETTINGS[clause.setting].velan)
        parts.insert((0, len(parts), 1)[voice.place((0.5, 0.85))], setting)
    if voice.chance(0.35):
        parts.insert(1, _TOPIC)
    if clause.negative:
        parts.append(_NOT)
    parts.append(voice.word(VERBS[clause.verb].velan) + _TENSES[clause.tense])
    courtesy = voice.place((0.3, 0.5))
    if courtesy < len(_COURTESY):
        parts.append(_COURTESY[courtesy])
    return " ".join(parts) + "."


def _write_phrase(phrase: Phrase, case: int, voice: Voice) -> str:
    stem = voice.word(NOUNS[phrase.noun].velan)
    ending = _CASES[2 * phrase.plural + case]
    if phrase.adjective is None:
        return stem + ending
    return f"{stem}{ending} {voice.word(ADJECTIVES[phrase.adjective].velan)}{stem[-1]}{ending}"


def read(sentence: str) -> Clause | None:
    """What a sentence of Velan means; None where it is not one, to the letter."""
    if not sentence.endswith("."):
        return None
    words = sentence[:-1].split(" ")
    if words[-1] in _COURTESY:
        words.pop()
    if not words or words[-1] not in _VERB_FORMS:
        return None
    verb, tense = _VERB_FORMS[words.pop()]
    negative = words[-1:] == [_NOT]
    if negative:
        words.pop()
    found = _read_parts(words)
    if found is None:
        return None
    subject, thing, setting = found
    if subject is None or (thing is not None) != (verb < ACTING):
        return None
    return Clause(subject, verb, tense, negative, thing, setting)


def _read_parts(words: list[str]) -> tuple[Phrase | None, Phrase | None, int | None] | None:
    """The subject, the object and the setting that stand before a verb, each at most once."""
    phrases: list[Phrase | None] = [None, None]
    setting: int | None = None
    at = parts = 0
    while at < len(words):
        word = words[at]
        if word in _SETTING_FORMS and setting is None:
            setting = _SETTING_FORMS[word]
            at += 1
        elif word in _NOUN_FORMS and phrases[_NOUN_FORMS[word][1] % 2] is None:
            noun, place, tail = _NOUN_FORMS[word]
            at += 1
            adjective = _ADJECTIVE_FORMS.get(words[at]) if at < len(words) else None
            if adjective is not None and adjective[1] != tail:
                return None
            at += adjective is not None
            phrases[place % 2] = Phrase(noun, None if adjective is None else adjective[0], place >= 2)
        else:
            return None
        parts += 1
        if parts == 1 and words[at : at + 1] == [_TOPIC]:
            at += 1
    return phrases[0], phrases[1], setting
