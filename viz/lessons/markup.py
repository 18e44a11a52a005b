"""Turns the prose of a lesson into spans: plain, bold or code, words of the glossary, and links to other screens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from .lesson import FOLDER, LessonError

TextSpan = dict[str, str]

GLOSSARY = FOLDER / "glossary.md"
_FACT = re.compile(r"\{\{(.+?)\}\}")
_MARKUP = re.compile(
    r"\*\*(?P<bold>[^*]+)\*\*|`(?P<code>[^`]+)`|\[(?P<word>[^\]]+)\]\((glossary:(?P<entry>[a-z-]+)|(?P<screen>screen=(?:run|cost)[\w.:,=&-]*))\)"
)
_ENTRY = re.compile(r"- \*\*(?P<word>[^*]+)\*\* \{#(?P<name>[a-z-]+)\}: (?P<sentence>.+)")


def filled(words: str, fact: Callable[[str], str]) -> str:
    """Put the values of facts into a text."""
    return _FACT.sub(lambda match: fact(match[1]), words)


def facts_in(words: str) -> list[str]:
    """Return the facts that a text states."""
    return _FACT.findall(words)


def spans(words: str, fact: Callable[[str], str]) -> list[TextSpan]:
    """Return a text as spans. The values of facts are text as it is: a token may look like markup."""
    return [span for piece in _pieces(words, fact) for span in piece]


def _pieces(words: str, fact: Callable[[str], str]) -> Iterator[list[TextSpan]]:
    at = 0
    for match in _MARKUP.finditer(words):
        yield _plain(words[at : match.start()], fact)
        if match["word"]:
            leads = {"entry": match["entry"]} if match["entry"] else {"screen": match["screen"]}
            yield [{"text": filled(match["word"], fact), **leads}]
        else:
            kind = "bold" if match["bold"] else "code"
            yield [{"text": filled(match[kind], fact), "kind": kind}]
        at = match.end()
    yield _plain(words[at:], fact)


def _plain(words: str, fact: Callable[[str], str]) -> list[TextSpan]:
    return [{"text": filled(words, fact)}] if words else []


def plain_text(words: str) -> str:
    """Return the text without its markup, to count and read; a fact is one word."""
    without = _MARKUP.sub(lambda match: match["bold"] or match["code"] or match["word"], words)
    return _FACT.sub("0", without)


def entries_in(words: str) -> list[str]:
    """Return the words of the glossary that a text refers to."""
    return [match["entry"] for match in _MARKUP.finditer(words) if match["entry"]]


def read_glossary(path: Path = GLOSSARY) -> Mapping[str, tuple[str, str]]:
    """Read the glossary: by name the word and its sentence."""
    entries = dict[str, tuple[str, str]]()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        entry = _ENTRY.fullmatch(line)
        if not entry or entry["name"] in entries:
            raise LessonError(f"{path.name}:{number}: an entry is written as - **word** {{#name}}: one sentence.")
        entries[entry["name"]] = (entry["word"], entry["sentence"])
    return entries
