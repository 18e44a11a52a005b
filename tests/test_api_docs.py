"""docs/api.md is what the code says, and leaves nothing out."""

from __future__ import annotations

import dataclasses
import enum
import subprocess
import sys
from collections.abc import Callable
from typing import TypedDict

import pytest

import decoding
import viz
from tests import ROOT
from tools import markdown
from tools.api_docs import names

PAGE = ROOT / "docs" / "api.md"


def test_the_page_is_fresh() -> None:
    """In a process of its own: it runs commands."""
    command = [sys.executable, "-m", "tools.api_docs", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", [*decoding.__all__, *viz.__all__])
def test_every_public_name_is_there(name: str) -> None:
    """Errors stand in their tree, everything else under a heading."""
    text = PAGE.read_text(encoding="utf-8")
    assert f"### `{name}`\n" in text or f"{name} " in text[text.index("### Errors") :]


@pytest.mark.parametrize("name", decoding.METHODS)
def test_every_parameter_is_there(name: str) -> None:
    """With its default: what a user needs to leave it alone."""
    entry = PAGE.read_text(encoding="utf-8").split(f"\n### `{name}`\n")[1].split("\n### ")[0]
    for row in decoding.METHODS[name].Params.describe():
        assert f"| `{row['name']}` |" in entry and row["help"].replace("|", r"\|") in entry


def test_the_commands_and_the_keys_of_the_contract_are_there() -> None:
    """A few of each, so that an empty section cannot pass for a fresh one."""
    text = PAGE.read_text(encoding="utf-8")
    for command in ("run", "bench", "datastore", "train medusa", "tree-search"):
        assert f"### `python -m decoding {command}`" in text
    for flag in ("--prompt-ids 1,2,3", "--peers A,B", "--own-output", "--behind-proxy"):
        assert f"| `{flag}` |" in text
    for key in ("rows[].speedup_vs_autoregressive", "rescore.near_ties", "params[].symbol", "timing.draft_ms"):
        assert f"| `{key}` |" in text
    assert " at 0x" not in text and str(ROOT) not in text


@dataclasses.dataclass
class Plain:
    """Two fields."""

    first: int  # behind it
    # Above it,
    # on two lines.
    second: list[str] = dataclasses.field(default_factory=list)
    third: str = "a|b"

    def shout(self, loud: bool = True) -> str:
        """Say it."""
        return self.third.upper() * loud


class Options(TypedDict, total=False):
    """A dictionary."""

    one: int  # the first


class Kind(enum.Enum):
    """An enumeration."""

    A = 1  # the first


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        (
            Plain,
            [
                "Two fields.",
                "| `first` | `int` |  | behind it |",
                "| `second` | `list[str]` | `list()` | Above it, on two lines. |",
                r"| `third` | `str` | `'a\|b'` |  |",
                "- `shout(loud: bool = True) -> str`: Say it.",
            ],
        ),
        (Options, ["| field | type |  |", "| `one` | `int` | the first |"]),
        (Kind, ["| `A` | `1` | the first |"]),
    ],
)
def test_fields_comments_and_members_are_read_off_a_class(kind: type, lines: list[str]) -> None:
    """Comments after fields and above them are what a reader of the source would find."""
    got = names._entry(kind.__name__, kind).splitlines()
    assert [line for line in lines if line not in got] == []


def test_a_long_signature_takes_a_line_for_each_parameter() -> None:
    """`self` is left out, and the star stays."""

    def function(self: object, first: Callable[..., int], *, second: str = "a" * 50, third: Kind = Kind.A) -> int: ...

    assert names._signature("name", function, bound=True, wrap=False).startswith("name(first: Callable[..., int], *, ")
    assert names._signature("a_name_that_makes_it_long", function, bound=True).splitlines() == [
        "a_name_that_makes_it_long(",
        "    first: Callable[..., int],",
        "    *,",
        "    second: str = ...,",
        "    third: Kind = Kind.A,",
        ") -> int",
    ]


def test_markdown_escapes_what_it_would_swallow() -> None:
    """A star or an angle bracket in a docstring is itself."""
    assert markdown.prose("a * b < `c * d`\n\n    code * <\n") == "a \\* b &lt; `c * d`\n\n    code * <\n\n"
    assert markdown.table(("a", "b"), [("1|2", "")]) == "| a |\n| --- |\n| 1\\|2 |\n\n"
    assert markdown.table(("a",), []) == ""
