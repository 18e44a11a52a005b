"""Write the glossary for the player: `python -m tools.glossary`. Its source is assets/lessons/glossary.md."""

from __future__ import annotations

import json

from viz.lessons.markup import GLOSSARY, read_glossary

MODULE = GLOSSARY.parents[1] / "player" / "text" / "glossary_entries.js"
_HEAD = """// Written by `python -m tools.glossary` from assets/lessons/glossary.md.
/** @type {[name: string, word: string, meaning: string][]} */
export const ENTRIES = [
"""


def module() -> str:
    """Return the glossary as a module of the player."""
    entries = (json.dumps([name, *entry], ensure_ascii=True) for name, entry in read_glossary().items())
    return _HEAD + "".join(f"  {entry},\n" for entry in entries) + "];\n"


if __name__ == "__main__":
    MODULE.write_text(module(), encoding="utf-8")
