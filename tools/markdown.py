"""Write pieces of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table without its empty columns, or nothing if there are no rows."""
    filled = list(rows)
    if not filled:
        return ""
    kept = [column for column in range(len(heads)) if any(row[column] for row in filled)]
    lines = [[heads[column] for column in kept], ["---"] * len(kept)]
    lines += [[_cell(row[column]) for column in kept] for row in filled]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


def code(text: object) -> str:
    """Write inline code; nothing for an empty text."""
    return f"`{text}`" if str(text) else ""


def prose(docstring: str) -> str:
    """Write a docstring outside of code: indented blocks stay code, and text that looks like HTML is escaped."""
    blocks = docstring.strip().split("\n\n")
    return "\n\n".join(block if block.startswith("    ") else _plain(block) for block in blocks) + "\n\n"


def _plain(text: str) -> str:
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(piece if piece[:1] == "`" else piece.replace("<", "&lt;").replace("*", r"\*") for piece in pieces)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")
