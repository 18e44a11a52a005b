"""Prompt sets: Spec-Bench's question format, plain JSON lines with a prompt or turns each, and folders of texts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decoding.embedded import TARGET, TASKS
from decoding.errors import ParamError
from decoding.packed import ASSETS

from .conversations import first_answers, read_object

ENGLISH, LONG = "english", "long"  # the latter for contexts of 8,192 tokens: pages and code of ours, and what to do
SUITES = {**{name: ASSETS / name / "tasks.jsonl" for name in (ENGLISH, LONG)}, TARGET: TASKS}  # names for --tasks
_MOST_BYTES = 64 * 2**20
_MOST_LINES = 100_000


@dataclass(frozen=True, slots=True)
class Task:
    """A question of one or more turns, and its reference answers where the file has some."""

    id: int | str
    category: str
    turns: tuple[str, ...]
    reference: tuple[str, ...] = ()


def find_tasks(name: str) -> Path:
    """Return the file of this name, or the suite of this name if there is no such file."""
    path = Path(name)
    return suite(name) if name in SUITES and not path.is_file() else path


def suite(name: str) -> Path:
    """Return the file of a suite of ours; raise ParamError if this copy holds none."""
    if not SUITES[name].is_file():
        raise ParamError(f"this copy holds no suite {name!r}: name a file with --tasks")
    return SUITES[name]


def read_tasks(path: str | Path, limit: int | None = None) -> tuple[Task, ...]:
    """Read at most `limit` tasks from a JSON-lines file or a folder of texts; everything in it must be a task."""
    if Path(path).is_dir():
        return _read_texts(Path(path), limit)
    tasks: list[Task] = []
    for number, line in enumerate(_lines(Path(path)), start=1):
        if limit is not None and len(tasks) == limit:
            break
        if number > _MOST_LINES:
            raise ParamError(f"{path}: more than {_MOST_LINES:,} lines: split the file")
        if line.strip():
            try:
                tasks.append(_task(line, number))
            except ParamError as error:
                raise ParamError(f"{path}, line {number}: {error}") from None
    if not tasks:
        raise ParamError(f"{path} holds no tasks: write one JSON object a line, with a prompt or turns")
    return tuple(tasks)


def sample(tasks: Sequence[Task], count: int, seed: int) -> tuple[Task, ...]:
    """Choose some of the tasks, by the seed."""
    return tuple(random.Random(seed).sample([*tasks], min(count, len(tasks))))


def _read_texts(folder: Path, limit: int | None) -> tuple[Task, ...]:
    """Read a task from every file that ends in .txt, by name."""
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == ".txt")
    except OSError as error:
        raise ParamError(f"cannot read {folder}: {error.strerror}") from None
    if len(files) > _MOST_LINES:
        raise ParamError(f"{folder}: more than {_MOST_LINES:,} texts: split the folder")
    tasks = []
    for path in files[:limit]:
        try:
            text = b"\n".join(_lines(path)).decode()
        except UnicodeDecodeError:
            raise ParamError(f"{path} is not a text: save it as UTF-8") from None
        if not text.strip():
            raise ParamError(f"{path} is empty: write something into it, or remove it")
        tasks.append(Task(path.stem, "text", (text.strip(),)))
    if not tasks:
        raise ParamError(f"{folder} holds no file that ends in .txt")
    return tuple(tasks)


def spread(tasks: Sequence[Task], limit: int | None) -> tuple[Task, ...]:
    """Choose `limit` of the tasks in their order: the first of every kind, then the second of every kind, and so on."""
    seen: Counter[str] = Counter()
    ranks = []
    for place, task in enumerate(tasks):
        ranks.append((seen[task.category], place))
        seen[task.category] += 1
    return tuple(tasks[place] for place in sorted(place for _, place in sorted(ranks)[:limit]))


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ParamError(f"cannot read {path}: {error.strerror}") from None
    if len(data) > _MOST_BYTES:
        raise ParamError(f"{path} is larger than {_MOST_BYTES // 2**20} MB: split the file")
    yield from data.split(b"\n")


def _task(line: bytes, number: int) -> Task:
    """Read one line's task; `number` is its id where the line has none."""
    data = read_object(line, "a prompt or turns")
    if "turns" not in data and "prompt" not in data:
        raise ParamError('has neither "turns" nor "prompt"')
    turns = _texts(data, "turns") if "turns" in data else _texts({"prompt": [data["prompt"]]}, "prompt")
    if not turns:
        raise ParamError("turns must hold at least one text")
    name, category = data.get("question_id", number), data.get("category", "prompt")
    if type(name) not in (int, str):
        raise ParamError("question_id must be a whole number or a text")
    if not isinstance(category, str):
        raise ParamError("category must be a text")
    return Task(name, category, turns, _texts(data, "reference"))


def _texts(data: dict[str, Any], key: str) -> tuple[str, ...]:
    """Read a list of texts; empty if the key is missing or null."""
    values = data.get(key)
    if values is None and key == "reference":
        return ()
    if isinstance(values, list) and key == "reference":
        values = first_answers(values)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        kind = "a text" if key == "prompt" else "a list of texts"
        raise ParamError(f"{key} must be {kind}")
    if key != "reference" and not all(value.strip() for value in values):
        raise ParamError(f"{key} holds an empty text")
    return tuple(values)
