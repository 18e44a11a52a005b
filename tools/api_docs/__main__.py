"""Write docs/api.md: `python -m tools.api_docs`; with --check, only compare."""

from __future__ import annotations

import argparse
import sys

import decoding
import viz

from .. import ROOT
from . import commands, keys, methods, names

PAGE = ROOT / "docs" / "api.md"
HEAD = """\
# The interface

What scripts, notebooks and methods of one's own may rely on. This page is made by `make api` from the code; edit the
docstrings instead.

- [Python: `decoding`](#python-decoding)
- [Python: `viz`](#python-viz)
- [Methods and their parameters](#methods-and-their-parameters)
- [The command line](#the-command-line)
- [What `--json` prints](#what---json-prints)
"""


def page() -> str:
    """Write the whole page."""
    parts = [
        HEAD,
        names.section("Python: `decoding`", decoding),
        names.section("Python: `viz`", viz),
        methods.section("Methods and their parameters"),
        commands.section("The command line"),
        keys.section("What `--json` prints"),
    ]
    return "\n".join(part.rstrip() + "\n" for part in parts)


def main() -> int:
    """Write or compare."""
    parser = argparse.ArgumentParser(prog="python -m tools.api_docs", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where the page is stale")
    checking, made = parser.parse_args().check, page()
    if not checking:
        PAGE.write_text(made, encoding="utf-8")
    elif not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != made:
        sys.stderr.write("docs/api.md is not what the code says: make it anew with `make api`\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
