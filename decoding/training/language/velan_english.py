"""The English side of Velan: how a clause is written in plain English, with its synonyms, and how it is read back.

Velan has no articles, so "the", "a" and "some" are a free choice here and no part of the meaning.
"""

from __future__ import annotations

from .velan import ACTING, ADJECTIVES, FUTURE, NOUNS, PAST, PRESENT, SETTINGS, VERBS, Clause, Phrase, Voice

_PLURALS = {"child": "children", "woman": "women", "man": "men", "thief": "thieves"}
_PASTS = {
    "see": "saw",
    "find": "found",
    "bring": "brought",
    "draw": "drew",
    "choose": "chose",
    "lose": "lost",
    "hide": "hid",
    "sleep": "slept",
    "sing": "sang",
    "run": "ran",
}


def _with_s(word: str) -> str:
    """A regular plural, or a verb's third person."""
    if word.endswith(("s", "x", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def _with_ed(word: str) -> str:
    """A regular past."""
    if word.endswith("e"):
        return word + "d"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ied"
    return word + "ed"


_PLURAL = {noun: _PLURALS.get(noun, _with_s(noun)) for word in NOUNS for noun in word.english}
_THIRD = {verb: _with_s(verb) for word in VERBS for verb in word.english}
_PAST = {verb: _PASTS.get(verb, _with_ed(verb)) for word in VERBS for verb in word.english}

_NOUN_FORMS = {
    form: (index, plural)
    for index, word in enumerate(NOUNS)
    for noun in word.english
    for plural, form in enumerate((noun, _PLURAL[noun]))
}
_ADJECTIVE_FORMS = {form: index for index, word in enumerate(ADJECTIVES) for form in word.english}
_BASES = {form: index for index, word in enumerate(VERBS) for form in word.english}
_THIRDS = {_THIRD[form]: index for form, index in _BASES.items()}
_PASTS_READ = {_PAST[form]: index for form, index in _BASES.items()}
_SETTING_FORMS = tuple((form.split(" "), index) for index, word in enumerate(SETTINGS) for form in word.english)


def write(clause: Clause, voice: Voice) -> str:
    """One sentence of English, with its capital and its full stop."""
    first = clause.setting is not None and voice.chance(0.45)
    parts: list[str] = []
    if first and clause.setting is not None:
        parts.append(voice.word(SETTINGS[clause.setting].english) + ("," if voice.chance(0.4) else ""))
    parts += _write_phrase(clause.subject, voice)
    parts += _write_verb(clause, voice)
    if clause.object is not None:
        parts += _write_phrase(clause.object, voice)
    if not first and clause.setting is not None:
        parts.append(voice.word(SETTINGS[clause.setting].english))
    text = " ".join(parts)
    return text[0].upper() + text[1:] + "."


def _write_phrase(phrase: Phrase, voice: Voice) -> list[str]:
    definite = voice.chance(0.6)
    words = [] if phrase.adjective is None else [voice.word(ADJECTIVES[phrase.adjective].english)]
    noun = voice.word(NOUNS[phrase.noun].english)
    words.append(_PLURAL[noun] if phrase.plural else noun)
    if definite:
        return ["the", *words]
    return ["some" if phrase.plural else _article(words[0]), *words]


def _article(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


def _write_verb(clause: Clause, voice: Voice) -> list[str]:
    verb = voice.word(VERBS[clause.verb].english)
    plural = clause.subject.plural
    negation = ["not"] if clause.negative else []
    if clause.tense == FUTURE:
        if voice.chance(0.6):
            return ["will", *negation, verb]
        return ["are" if plural else "is", *negation, "going", "to", verb]
    if clause.negative:
        return [_helper(clause.tense, plural), "not", verb]
    if clause.tense == PAST:
        return [_PAST[verb]]
    return [verb if plural else _THIRD[verb]]


def _helper(tense: int, plural: bool) -> str:
    """The helping verb of a negation."""
    if tense == PAST:
        return "did"
    return "do" if plural else "does"


def read(sentence: str) -> Clause | None:
    """What a sentence of English means; None where it is not one of this language, to the letter."""
    if not sentence.endswith(".") or not sentence[0].isupper():
        return None
    words = (sentence[0].lower() + sentence[1:-1]).split(" ")
    words, setting = _take_setting(words)
    subject, words = _take_phrase(words)
    if subject is None:
        return None
    found = _take_verb(words, subject.plural)
    if found is None:
        return None
    verb, tense, negative, words = found
    thing = None
    if verb < ACTING:
        thing, words = _take_phrase(words)
        if thing is None:
            return None
    return None if words else Clause(subject, verb, tense, negative, thing, setting)


def _take_setting(words: list[str]) -> tuple[list[str], int | None]:
    """The words without the setting at their start or at their end."""
    for form, index in _SETTING_FORMS:
        size = len(form)
        if words[:size] == form or words[:size] == [*form[:-1], form[-1] + ","]:
            return words[size:], index
        if words[-size:] == form:
            return words[:-size], index
    return words, None


def _take_phrase(words: list[str]) -> tuple[Phrase | None, list[str]]:
    """The phrase that the words begin with, and the words behind it."""
    at = 1
    adjective = _ADJECTIVE_FORMS.get(words[at]) if len(words) > at else None
    at += adjective is not None
    if len(words) <= at or words[at] not in _NOUN_FORMS:
        return None, words
    noun, plural = _NOUN_FORMS[words[at]]
    if words[0] not in ("the", "some" if plural else _article(words[1])):
        return None, words
    return Phrase(noun, adjective, bool(plural)), words[at + 1 :]


def _take_verb(words: list[str], plural: bool) -> tuple[int, int, bool, list[str]] | None:
    """The verb that the words begin with, its tense, whether it is negated, and the words behind it."""
    negative = words[1:2] == ["not"]
    bare = [*words[:1], *words[2:]] if negative else words
    be = "are" if plural else "is"
    helpers = [(["will"], FUTURE), ([be, "going", "to"], FUTURE)]
    if negative:
        helpers += [([_helper(tense, plural)], tense) for tense in (PAST, PRESENT)]
    for helper, tense in helpers:
        size = len(helper)
        if bare[:size] == helper and len(bare) > size and bare[size] in _BASES:
            return _BASES[bare[size]], tense, negative, bare[size + 1 :]
    if negative or not words:
        return None
    if words[0] in _PASTS_READ:
        return _PASTS_READ[words[0]], PAST, False, words[1:]
    form = (_BASES if plural else _THIRDS).get(words[0])
    return None if form is None else (form, PRESENT, False, words[1:])
