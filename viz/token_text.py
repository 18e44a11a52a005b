"""Makes token texts fit for figures and tables: nothing in them is invisible or moves its neighbours.

A token may be a space, a line end, a zero-width or direction character, a mark without a letter, or ten thousand
letters; and it may look like a tag.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice

LONGEST_RAW = 200  # characters of a token in the running text
LONGEST_SHOWN = 24  # characters of a token in a figure or a table
LONGEST_QUOTED = 60  # characters of a text in a sentence
_MARKS = 2  # marks on one letter that are drawn; more would cover the lines above
_SIGNS = {" ": "·", "\n": "↵", "\t": "⇥", "\r": "␍", "\x7f": "␡"}
# Letters and marks by their class, yet nothing is drawn for them.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_HIDDEN = ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs")
_RIGHT_TO_LEFT = ("R", "AL", "AN")
_BYTES = re.compile(r"(?:<0x[0-9A-F]{2}>)+")  # a token that is no whole characters: see `Codec.piece`


def raw(text: str) -> str:
    """Return the text itself, cut, and without halves of characters, which no browser can write down."""
    whole = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text[: LONGEST_RAW + 1])
    return whole if len(whole) <= LONGEST_RAW else whole[: LONGEST_RAW - 1] + "…"


def shown(text: str, longest: int = LONGEST_SHOWN) -> str:
    """Return the text with everything visible, cut."""
    return _shown(_decoded([text]) if _BYTES.fullmatch(text) else text[: 4 * longest + 1], longest)


@lru_cache(maxsize=4096)
def _shown(text: str, longest: int) -> str:
    return cut(_signs(text, _SIGNS, 4 * longest), longest)


def escaped(text: str) -> str:
    """Escape the tags and entities that plotly reads in texts."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def joined(texts: Iterable[str]) -> str:
    """Join texts, as far as `quoted` reads them: a thousand long ones would fill the memory."""
    row, most = "", 4 * LONGEST_QUOTED + 1
    for text in whole(texts):
        row += text[:most]
        if len(row) >= most:
            break
    return row


def whole(texts: Iterable[str]) -> Iterator[str]:
    """Return the same texts, with the characters that tokens beside one another spell byte by byte."""
    row = list[str]()
    for text in texts:
        if _BYTES.fullmatch(text):
            row.append(text)
            continue
        if row:
            yield _decoded(row)
            row = []
        yield text
    if row:
        yield _decoded(row)


def _decoded(texts: Iterable[str]) -> str:
    """Return the characters that bytes spell; those that spell none become ⟨F09F⟩."""
    given, text = bytes.fromhex("".join(texts).replace("<0x", "").replace(">", "")), ""
    while given:
        try:
            return text + given.decode()
        except UnicodeDecodeError as error:
            text += given[: error.start].decode() + f"⟨{given[error.start : error.end].hex().upper()}⟩"
            given = given[error.end :]
    return text


def quoted(text: str, longest: int = LONGEST_QUOTED) -> str:
    """Return the text in a sentence: spaces stay, and its direction ends with the quotation marks."""
    return f"'{isolated(cut(_signs(text, {**_SIGNS, ' ': ' '}, 4 * longest), longest))}'"


def isolated(text: str) -> str:
    """Return the text so that its direction does not reach what is beside it."""
    turned = any(unicodedata.bidirectional(char) in _RIGHT_TO_LEFT for char in text)
    return f"\u2068{text}\u2069" if turned else text


def width(text: str) -> int:
    """Return columns that a text takes in a fixed-width font."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)


def _signs(text: str, signs: dict[str, str], most: int) -> str:
    """Return the first characters of a text, with a sign for each that would be invisible."""
    signed, marks, letter = list[str](), 0, False
    for char in islice(text, most):
        kind = unicodedata.category(char)
        if kind.startswith("M") and char not in _BLANK:
            marks += 1
            signed.append(_code(char) if marks > _MARKS else char if letter else f"◌{char}")
            letter = True
            continue
        marks, letter = 0, True
        if char in signs:
            signed.append(signs[char])
        elif char < " ":
            signed.append(chr(0x2400 + ord(char)))
        elif kind in _HIDDEN or char in _BLANK:
            signed.append(_code(char))
        else:
            signed.append(char)
    return "".join(signed) + ("…" * (len(text) > most))


def _code(char: str) -> str:
    return f"⟨U+{ord(char):04X}⟩"


def cut(text: str, longest: int) -> str:
    """Cut a text to at most `longest` characters."""
    return text if len(text) <= longest else text[: longest - 1] + "…"
