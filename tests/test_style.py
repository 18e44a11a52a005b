"""Names and docstrings of Python and JavaScript avoid words that used to be riddles: see `docs/style.md`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CHECKED = ("app", "benchmarks", "decoding", "lab", "tools", "viz")
SCRIPTS = ("assets/player", "app/static")
RIDDLES = frozenset(
    {"told", "tells", "tell", "kept", "keeps", "led", "wins", "win", "house", "doors", "door", "law", "laws", "spoken"}
)
# Names and sentences in which such a word has its plain meaning: (file, definition or "module") -> the word.
ALLOWED = {
    ("decoding/trace/cache_slots.py", "CacheState"): "kept",  # a field: the tokens that a step keeps
}


def definitions(path: Path) -> Iterator[tuple[str, str]]:
    """Every definition of a file with its name and the first line of its docstring; the file itself comes first."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    yield "module", f"{path.stem}. {_first_line(tree)}"
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names = [node.name]
            if isinstance(node, ast.ClassDef):
                names += [each.target.id for each in node.body if _is_field(each)]
            yield node.name, f"{' '.join(names)}. {_first_line(node)}"


def _is_field(node: ast.stmt) -> bool:
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)


def _first_line(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    return (ast.get_docstring(node) or "").partition("\n")[0]


def riddles(text: str) -> set[str]:
    """The words of the list in a text; names are split into their words."""
    words = re.findall(r"[A-Z]?[a-z]+", text)
    return {word.lower() for word in words} & RIDDLES


def files(place: str) -> list[Path]:
    path = ROOT / place
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


# What a line of a script declares: a function, a class, a constant, a method or a field, a type.
DECLARED = re.compile(
    r"^\s*(?:export )?(?:async )?(?:const|let|class|function|interface|type) \{?\s*(\w+)"
    r"|^\s*this\.(\w+) =|^\s*(?:async |get |static )*(\w+)\([^()]*\) \{$|@typedef \{.*\} (\w+)"
)


def declarations(path: Path) -> Iterator[tuple[int, str]]:
    """The names that a script declares and its first line, which says what the file is for, by number of the line."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if number == 1:
            yield number, line
        elif found := DECLARED.search(line):
            yield number, next(name for name in found.groups() if name)


@pytest.mark.parametrize("place", SCRIPTS)
def test_scripts_have_plain_names(place: str) -> None:
    """A name that Python may not have is no better in the browser."""
    found = sorted(file for kind in ("js", "ts") for file in (ROOT / place).rglob(f"*.{kind}"))
    assert found
    faults = [
        f"{file.relative_to(ROOT)}:{number}: {text}"
        for file in found
        for number, text in declarations(file)
        if riddles(text)
    ]
    assert not faults, "\n".join(faults)


def test_names_of_scripts_are_found(tmp_path: Path) -> None:
    """The control: every kind of declaration is read."""
    script = tmp_path / "script.js"
    script.write_text(
        "// What it told.\nexport const keptRows = 1;\nclass Law {\n  get told() {\n    this.led = 1;\n"
        " * @typedef {{ a: b }} House\nexport interface Doors {\n  told(\n",
        encoding="utf-8",
    )
    assert [bool(riddles(text)) for _, text in declarations(script)] == [True] * 7


@pytest.mark.parametrize("place", CHECKED)
def test_names_and_first_lines_are_plain(place: str) -> None:
    """A riddle costs each reader a minute, and its author cannot see it."""
    found = files(place)
    assert found
    faults = []
    for file in found:
        name = file.relative_to(ROOT).as_posix()
        for definition, text in definitions(file):
            words = riddles(text) - {ALLOWED.get((name, definition), "")}
            faults += [f"{name}: {definition}: {word!r} in {text!r}" for word in sorted(words)]
    assert not faults, "\n".join(faults)


def test_exceptions_are_needed() -> None:
    """An exception for a name that is gone would hide the next riddle of that name."""
    for (name, definition), word in ALLOWED.items():
        texts = [text for found, text in definitions(ROOT / name) if found == definition]
        assert any(word in riddles(text) for text in texts), f"{name}: {definition}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("class _Told. What the lines told so far", {"told"}),
        ("keepsakes and lawful houses", set()),
        ("_kept_runs. The law of the output", {"kept", "law"}),
    ],
)
def test_riddles_are_found_in_names_and_sentences(text: str, words: set[str]) -> None:
    """The control: a check that finds nothing anywhere is none."""
    assert riddles(text) == words
