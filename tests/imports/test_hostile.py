"""Mutated samples: whatever a stranger sends, there is no traceback, no hang and no row that the tables forbid."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from analysis.imports import read_any
from analysis.store.checks import check_table, check_tables
from analysis.store.schema import NODES, RUNS, STEPS
from decoding.errors import SpecscopeError

from .samples import FORMATS, sample

_FILES = 500
_SECONDS = 5.0  # that no file may take
_EVIL: list[Any] = [
    *(None, True, -1, 0, 1, 3, 2**31, 2**53, 2**64, 10**30, -0.5, 0.5, 1e308, "", "x", "9" * 400, "\ud800", "\0"),
    *([], [[]], [None], [-1], [0.5], [1] * 300, {}, {"0": 1}, {"-1": 2}, {"999999": 1}, {"a": {"b": []}}),
]


def places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return every container with every key, at any depth."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        found.append((value, key))
        if isinstance(value[key], dict | list):
            places(value[key], found)
    return found


def other_values(data: bytes, chance: random.Random) -> bytes:
    """Replace some values by others of any kind, remove or repeat them."""
    try:
        rows = [json.loads(line) for line in data.splitlines()]
    except ValueError:
        rows = [json.loads(data)] if data[:1] in b"[{" else []
    if not rows:
        return other_cells(data, chance)
    for _ in range(chance.randint(1, 3)):
        holder, key = chance.choice(places(rows, []))
        kind = chance.randrange(4)
        try:
            if kind == 0 and isinstance(holder, dict):
                del holder[key]
            elif kind == 1 and isinstance(holder[key], int) and not isinstance(holder[key], bool):
                holder[key] += chance.choice([-1, 1, 100])
            elif kind == 2 and isinstance(holder[key], list):
                holder[key] = holder[key] * 2
            else:
                holder[key] = deepcopy(chance.choice(_EVIL))
        except (KeyError, IndexError):
            continue
    return b"\n".join(json.dumps(row).encode() for row in rows)


def other_cells(data: bytes, chance: random.Random) -> bytes:
    """Replace a cell of a table."""
    rows = [line.split(b",") for line in data.splitlines()]
    row = chance.choice(rows)
    row[chance.randrange(len(row))] = str(chance.choice(_EVIL)).encode(errors="replace")
    return b"\n".join(b",".join(row) for row in rows)


def other_bytes(data: bytes, chance: random.Random) -> bytes:
    """Change, cut off, double or move bytes."""
    raw = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        at, kind = chance.randrange(len(raw)), chance.randrange(4)
        if kind == 0:
            raw[at] = chance.randrange(256)
        elif kind == 1:
            del raw[at : at + chance.randint(1, 60)]
        elif kind == 2:
            raw[at:at] = raw[at : at + chance.randint(1, 60)]
        else:
            raw[at:at] = bytes(chance.choices(b'[]{}",:0123456789.eE-\n\\u', k=chance.randint(1, 9)))
        if not raw:
            break
    return bytes(raw)


MUTATIONS: list[Callable[[bytes, random.Random], bytes]] = [other_values, other_bytes]


def read(data: bytes) -> bool:
    """Return whether a file is read, with good tables. Anything but a sentence of ours fails the test."""
    begun = time.process_time()
    try:
        imported = read_any(data)
    except SpecscopeError as refusal:
        text = str(refusal)
        assert text and "\n" not in text and len(text) < 600 and text.isprintable()
        return False
    finally:
        assert time.process_time() - begun < _SECONDS
    for table, rows in ((RUNS, imported.runs), (STEPS, imported.steps), (NODES, imported.nodes)):
        check_table(rows, table, table)
    check_tables(imported.runs, imported.steps, imported.nodes)
    json.dumps(imported.summary)
    return True


@pytest.mark.parametrize("name", FORMATS)
def test_mutated_files_are_read_or_refused_with_a_sentence(name: str) -> None:
    chance, data = random.Random(name), sample(name)
    assert read(data)
    outcomes = [read(MUTATIONS[turn % 2](data, chance)) for turn in range(-(-_FILES // len(FORMATS)))]
    assert not all(outcomes)
