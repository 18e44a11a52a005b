"""Files that are small as bytes and huge as objects: each amount is refused before it is built."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoding.errors import TraceError
from decoding.methods import METHODS, panel_names
from decoding.trace.file import Limits, parse_trace, read_trace
from decoding.trace.json_line import parse_object, values_in
from tests import GOLDEN, ROOT
from tests.trace.test_hostile import put, spelled, story

MIB = 2**20
FOLDERS = (GOLDEN, ROOT / "assets" / "traces")
RECORDS = sorted(path for folder in FOLDERS for path in folder.glob("*.jsonl*"))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
PLAIN = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30)


@pytest.mark.slow
@given(st.dictionaries(st.text(), PLAIN), st.sampled_from([(",", ":"), (" , ", " : ")]))
def test_values_are_counted_without_being_built(value: dict[str, Any], separators: tuple[str, str]) -> None:
    """Whatever is inside of strings, the count of a line is that of what the parser builds from it."""
    for ascii_only, piece in ((True, 3), (False, 5), (True, 2**16)):
        line = json.dumps(value, ensure_ascii=ascii_only, separators=separators).encode(errors="replace")
        counted = list[int]()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("decoding.trace.json_line._PIECE", piece)
            parse_object(line, "line 1", 99, counted.append)
        assert counted == [values_in(value)]


@pytest.mark.parametrize("filling", [b"[]", b"{}", b"0", b"[[[]]]", b'{"a":0}', b'""', b"null"])
def test_a_bomb_of_values_is_refused_before_it_is_built(filling: bytes) -> None:
    """Packed, 30 MB of empty lists in a panel took 45 KB, and as objects 700 MB."""
    bomb = (filling + b",") * (MIB // (len(filling) + 1))
    line = spelled(story()[2:3]).replace(b'"panel": {}', b'"panel": {"rows": [' + bomb + b"0]}")
    packed = gzip.compress(spelled(story()[:2]) + line * 8, compresslevel=1)
    tracemalloc.start()
    with pytest.raises(TraceError, match=r"line 3 holds \d+ values, more than the 100000 allowed"):
        parse_trace(packed, limits=Limits(line_values=100_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * MIB  # a few copies of the line's bytes


LARGE: list[tuple[Limits, Callable[[list[Any]], None], str]] = [
    (Limits(total_values=200), lambda lines: None, "the file holds more than the 200 values allowed, at line 4"),
    (
        Limits(panel_values=5),
        put(2, "panel", {"rows": [1, 2, 3, 4]}),
        r"line 3: step\.panel makes more than the 5 values",
    ),
    (Limits(total_nodes=4), lambda lines: None, "line 4: step makes more than the 4 nodes read of all steps: record"),
    (Limits(prompt=2), put(0, "stop", ["a"] * 3), r"line 1: header\.stop has 3 entries, more than the 2 allowed"),
    (Limits(prompt=2), put(0, "reference", [1] * 3), r"line 1: header\.reference has 3 entries"),
    (Limits(prompt=2), put(0, "end_tokens", [1] * 3), r"line 1: header\.end_tokens has 3 entries"),
    (Limits(prompt=1), lambda lines: None, r"line 1: header\.prompt has 2 entries, more than the 1 allowed"),
    (Limits(texts=1), lambda lines: None, "line 2: texts has texts for more than the 1 tokens allowed"),
    (Limits(text_characters=1), lambda lines: None, "line 2: texts makes more than the 1 characters allowed"),
    (
        Limits(written_characters=9),
        put(1, "texts", {"5": "x" * 10}),
        "the run's text has 10 characters, more than the 9 allowed",
    ),
    (
        Limits(panels=panel_names()),
        put(3, "panel", {"rows": [], "wormhole": []}),
        r"line 4: step\.panel of step 1 holds 'wormhole', which no method writes: take it out of the file, or",
    ),
]


@pytest.mark.parametrize(("limits", "damage", "sentence"), LARGE, ids=range(len(LARGE)))
def test_every_amount_has_its_limit(limits: Limits, damage: Callable[[list[Any]], None], sentence: str) -> None:
    """What is bounded by nothing but bytes can be a thousand times larger as objects or as a picture."""
    lines = story()
    damage(lines)
    assert parse_trace(spelled(lines)).steps
    with pytest.raises(TraceError, match=sentence) as caught:
        parse_trace(spelled(lines), limits=limits)
    assert len(str(caught.value)) < 200 and str(caught.value).isprintable()


def test_a_panel_of_any_name_is_read_where_none_is_asked_for() -> None:
    """Whoever writes a method of their own can go on reading what it records."""
    lines = story()
    lines[2]["panel"] = {"wormhole": [1, {"a": []}]}
    assert parse_trace(spelled(lines)).steps[0].panel == lines[2]["panel"]


BEYOND: list[tuple[Callable[[list[Any]], None], str]] = [
    (lambda lines: lines[3].update(pending=3, fed=4), r"line 4: step\.pending must be at most 2: all other tokens"),
    (put(2, "fed", 2 * 10**18), r"line 3: step\.fed must be at most 1e\+18"),
    (put(4, "decode_seconds", 1e300), r"line 5: summary\.decode_seconds must be at most 1e\+18"),
    (
        lambda lines: lines[3].update(tokens=[], parents=[], roles=[], sources=[], path=[], choices=[], p=[], q=[],
        top=[], drafted=5000),
        r"line 4: step\.drafted must be at most 4096, not 5000",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "sentence"), BEYOND, ids=range(len(BEYOND)))
def test_what_would_make_a_view_or_an_export_endless(damage: Callable[[list[Any]], None], sentence: str) -> None:
    """A histogram of 10**18 bars, a prompt that every step reads anew, sums that are infinite."""
    lines = story()
    damage(lines)
    with pytest.raises(TraceError, match=sentence):
        parse_trace(spelled(lines))


@pytest.mark.slow
def test_the_panel_names_that_are_known_are_those_that_methods_write() -> None:
    """An unknown one would refuse a good file; one that nothing writes any more lets a hostile file through.

    Golden traces are what the methods write today, the recordings what they write on real models.
    """
    written: dict[str, set[str]] = {method: set() for method in METHODS}
    for path in RECORDS:
        trace = read_trace(path, limits=Limits(panels=panel_names()))
        written[trace.header.method] |= {name for step in trace.steps for name in step.panel}
    assert written == {name: {*method.Panel.__annotations__} for name, method in METHODS.items()}
