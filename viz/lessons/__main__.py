"""python -m viz.lessons check [FOLDER]: print each mistake in lesson files, or that there is none."""

from __future__ import annotations

import sys
from pathlib import Path

from .check import check_folder
from .lesson import FOLDER


def main(arguments: list[str]) -> int:
    """Check the lessons of a folder."""
    if arguments[:1] != ["check"] or len(arguments) > 2:
        sys.stderr.write("usage: python -m viz.lessons check [FOLDER]\n")
        return 2
    folder = Path(arguments[1]) if arguments[1:] else FOLDER
    count = len([path for path in folder.glob("*.md") if path.name != "glossary.md"])
    if not count:
        sys.stderr.write(f"specscope: {folder} holds no lesson: name a folder with lesson files\n")
        return 2
    problems = check_folder(folder)
    for problem in problems:
        sys.stdout.write(f"{problem}\n")
    sys.stdout.write(
        f"{count} lessons, {len(problems)} problems\n" if problems else f"{count} lessons, nothing wrong\n"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
