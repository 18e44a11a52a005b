"""Pieces of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; columns in which no row says anything are left out, and without rows there is none."""
    filled = list(rows)
    if not filled:
        return ""
    kept = [place for place in range(len(heads)) if any(row[place] for row in filled)]
    lines = [[heads[place] for place in kept], ["---"] * len(kept)]
    lines += [[_cell(row[place]) for place in kept] for row in filled]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


def code(text: object) -> str:
    """Inline code; nothing for an empty text."""
    return f"`{text}`" if str(text) else ""


def prose(docstring: str) -> str:
    """A docstring outside of code: indented blocks stay code, what looks like HTML is shown as it is."""
    blocks = docstring.strip().split("\n\n")
    return "\n\n".join(block if block.startswith("    ") else _plain(block) for block in blocks) + "\n\n"


def _plain(text: str) -> str:
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(piece if piece[:1] == "`" else piece.replace("<", "&lt;").replace("*", r"\*") for piece in pieces)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")
