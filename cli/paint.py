"""Colours and styles text for a terminal, if there is one, and makes control characters of models visible."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TextIO

# Where an accepted guess came from -> colour of 256 (after Okabe and Ito), style, and its text in the legend.
# Every accepted guess is underlined (4), so that colour is never the only sign; kinds that meet in one run differ by
# bold (1) or italic (3) too.
KINDS = {
    "draft": ("75", "4", "written by the drafter"),
    "jacobi": ("214", "4", "settled by Jacobi's iterations"),
    "pool": ("36", "4", "from the n-gram pool"),
    "prompt": ("175", "4", "copied from the prompt"),
    "output": ("166", "1;4", "copied from the text written so far"),
    "reference": ("32", "3;4", "copied from the reference"),
    "bigram": ("221", "4", "from the model's own bigrams"),
    "chain": ("221", "3;4", "further along these bigrams"),
    "unigram": ("221", "1;4", "from the model's own unigrams"),
    "medusa": ("141", "4", "guessed by a Medusa head"),
    "exit": ("80", "4", "written by the early exit"),
    "datastore": ("150", "4", "retrieved from the datastore"),
}
_OTHER = ("178", "4", "another accepted guess")
_BIDI = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_ASCII = str.maketrans("│─█▏·…⏎␣×←", "|-#|..$_x<")


@dataclass(frozen=True, slots=True)
class Paint:
    """The styles and letters that a terminal can show."""

    colours: bool = False
    styles: bool = False
    unicode: bool = True
    width: int = 80

    @classmethod
    def for_stream(cls, stream: TextIO) -> Paint:
        """Return the paint for `stream`. NO_COLOR disables colours only, FORCE_COLOR enables all in pipes."""
        forced = bool(os.environ.get("FORCE_COLOR"))
        styles = forced or (stream.isatty() and os.environ.get("TERM") != "dumb")
        colours = styles and not os.environ.get("NO_COLOR")
        unicode = (stream.encoding or "").lower().replace("-", "").startswith("utf")
        width = shutil.get_terminal_size((80, 24)).columns if stream.isatty() else 80
        return cls(colours, styles, unicode, max(40, min(width, 120)))

    def __call__(self, text: str, style: str = "", colour: str = "") -> str:
        """Return `text` in a style ("1" bold, "2" dim, "3" italic, "4" underlined) and one of 256 colours."""
        codes = [style] if style and self.styles else []
        codes += [f"38;5;{colour}"] if colour and self.colours else []
        if not codes:
            return text
        # Line by line: pagers begin every line plain, and no underline is drawn to the margin.
        return "\n".join(f"\x1b[{';'.join(codes)}m{line}\x1b[0m" if line else "" for line in text.split("\n"))

    def guess(self, text: str, kind: str) -> str:
        """Mark an accepted guess of that kind."""
        colour, style, _ = KINDS.get(kind, _OTHER)
        return self(text, style, colour)

    def dim(self, text: str) -> str:
        """Make a text dim."""
        return self(text, "2")

    def bold(self, text: str) -> str:
        """Make a text bold."""
        return self(text, "1")

    def legend(self, kinds: list[str]) -> str:
        """Explain the marked stretches of a text."""
        marks = [f"{self.guess(' ' + kind + ' ', kind)} {KINDS.get(kind, _OTHER)[2]}" for kind in kinds]
        return "   ".join([*marks, "plain: the target's own token"])

    def wrapped(self, text: str, *, dim: bool = False) -> list[str]:
        """Break an indented text into lines that fit."""
        lines = textwrap.wrap(text, self.width, initial_indent="  ", subsequent_indent="    ") or [""]
        return [self.dim(line) for line in lines] if dim else lines

    def fit(self, text: str) -> str:
        """Replace letters that the terminal lacks."""
        return text if self.unicode else text.translate(_ASCII)


def print_report(report: Any, as_json: bool, lines_of: Callable[[Paint, Any], list[str]]) -> None:
    """Print a report as JSON, or its lines for the terminal."""
    paint = Paint.for_stream(sys.stdout)
    print(json.dumps(report) if as_json else paint.fit("\n".join(lines_of(paint, report))))


def kind_of(source: str) -> str:
    """Return the kind of a guess from its source, which may carry a detail after a colon."""
    return source.partition(":")[0]


def visible(text: str) -> str:
    """Make a text harmless to a terminal: control characters and changes of direction become pictures."""
    if text.isprintable():
        return text
    return "".join(_picture(letter) for letter in text)


def one_line(text: str) -> str:
    """Make a text visible on one line, with its line ends shown as signs."""
    return visible(text).replace("\n", "⏎").replace("\t", " ")


def _picture(letter: str) -> str:
    if letter in "\n\t":
        return letter
    if letter in _BIDI:
        return "\N{REPLACEMENT CHARACTER}"
    if unicodedata.category(letter) not in ("Cc", "Cs", "Zl", "Zp"):
        return letter
    return chr(0x2400 + ord(letter)) if ord(letter) < 0x20 else "\N{REPLACEMENT CHARACTER}"
