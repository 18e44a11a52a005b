"""Checks a record's text against the display texts of its tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from decoding.types import Trace

from .contradiction import Contradiction

_BYTES = re.compile("(?:<0x[0-9A-F]{2}>)+")
_SPECIAL = re.compile(r"<.*>|\[.*\]", re.DOTALL)  # what a special token may look like, which no text shows


def check_text(trace: Trace, text: str) -> Iterator[Contradiction]:
    """Check the text against the display texts of its tokens, as far as these spell it."""
    ids = trace.ids
    if not all(token in trace.texts for token in ids):
        return
    place, left = _spelt(text, [trace.texts[token] for token in ids], cut=bool(trace.header.stop))
    if place is not None:
        before = 0
        for step in trace.steps:
            before += len(step.emitted)
            if place < before:
                yield Contradiction(
                    step.index, "text", f"is not that of token {ids[place]}, {trace.texts[ids[place]]!r}"
                )
                return
    elif left:
        yield Contradiction(None, "text", f"goes on after the last token with {left[:40]!r}")


def _spelt(text: str, pieces: Sequence[str], *, cut: bool) -> tuple[int | None, str]:
    """Follow display texts through a text: the first that is not in its place, and what is left of the text.

    A special token may be left out, and so may a space at the beginning. With `cut` the text may end early.
    """
    at, index = 0, 0
    while index < len(pieces):
        end, piece = index + 1, pieces[index]
        if _BYTES.fullmatch(piece) and not text.startswith(piece, at):
            while end < len(pieces) and _BYTES.fullmatch(pieces[end]):
                end += 1
            raw = bytes.fromhex("".join(pieces[index:end]).replace("<0x", "").replace(">", ""))
            piece = raw.decode(errors="replace")
        if text.startswith(piece, at):
            at += len(piece)
        elif not at and piece.startswith(" ") and text.startswith(piece[1:]):
            at += len(piece) - 1
        elif cut and len(text) - at < len(piece) and piece.startswith(text[at:]):
            return None, ""
        elif "\N{REPLACEMENT CHARACTER}" in piece:
            return None, ""  # bytes that are no character, which tokenizers show in several ways
        elif not _SPECIAL.fullmatch(pieces[index]):
            return index, ""
        index = end
    return None, text[at:]
