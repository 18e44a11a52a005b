"""JSON <-> dataclasses: exact where it fits, one sentence where it does not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoding.errors import TraceError
from decoding.trace.json_line import NotJsonError, parse_object
from decoding.trace.schema import DEPTH, from_json, to_json
from decoding.types import JSON, LATER


class Colour(IntEnum):
    RED = 0
    BLUE = 2


@dataclass(frozen=True, slots=True)
class Inner:
    share: float
    label: str | None


@dataclass(frozen=True, slots=True)
class Outer:
    count: int
    flag: bool
    colours: tuple[Colour, ...]
    pair: tuple[int, str]
    best: tuple[tuple[tuple[int, float], ...], ...]
    names: Mapping[int, str]
    inner: Inner | None
    panel: Mapping[str, JSON] = field(default_factory=dict)


EXAMPLE = Outer(
    -(2**63),
    True,
    (Colour.BLUE, Colour.RED),
    (3, "\u2028</script>"),
    (((1, 0.1), (2, -0.0)), ()),
    {17: " the", -2: "\ud800"},
    Inner(1e-320, None),
    {"grid": [[1, 2.0], [None, True]], "": {"x": "y"}},
)
WHOLE = st.integers(-(2**63), 2**63 - 1)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.recursive(
    st.none() | st.booleans() | WHOLE | NUMBER | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
    max_leaves=8,
)


def deep(levels: int) -> JSON:
    value: JSON = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def changed(**changes: JSON) -> JSON:
    return {**to_json(EXAMPLE), **changes}


def test_json_is_plain_and_complete() -> None:
    """A field left out, an enum written by name or a tuple kept would make files that other readers misread."""
    assert to_json(EXAMPLE) == {
        "count": -(2**63),
        "flag": True,
        "colours": [2, 0],
        "pair": [3, "\u2028</script>"],
        "best": [[[1, 0.1], [2, -0.0]], []],
        "names": {"17": " the", "-2": "\ud800"},
        "inner": {"share": 1e-320, "label": None},
        "panel": {"grid": [[1, 2.0], [None, True]], "": {"x": "y"}},
    }


@given(
    panel=st.dictionaries(st.text(), PLAIN, max_size=3),
    share=NUMBER,
    label=st.text(),
    names=st.dictionaries(WHOLE, st.text()),
)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_round_trip_is_exact(panel: Any, share: float, label: str, names: dict[int, str]) -> None:
    """Floats shortened or number keys left as texts would make a replay differ from its run."""
    made = Outer(1, False, (), (2**63 - 1, label), (((0, share),),), names, Inner(share, label), panel)
    line = json.dumps(to_json(made), allow_nan=False)
    back = from_json(Outer, parse_object(line.encode(), "line", DEPTH), "line")
    assert back == made
    assert repr(back.inner) == repr(made.inner)  # -0.0 == 0.0, but they are not the same float
    assert isinstance(back.best, tuple) and isinstance(back.pair, tuple)


def test_enums_and_floats_come_back_as_such() -> None:
    """A role read back as a bare number breaks `is`; a whole number where a float belongs breaks nothing."""
    back = from_json(Outer, changed(colours=[2], inner={"share": 3, "label": "x"}), "line")
    assert back.colours[0] is Colour.BLUE
    assert back.inner is not None and type(back.inner.share) is float


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"count": True}, r"here\.count must be a whole number, not true"),
        ({"count": 1.0}, r"here\.count must be a whole number, not 1\.0"),
        ({"count": "7\n"}, r"here\.count must be a whole number, not '7\\n'"),
        ({"count": 2**63}, r"here\.count must be a whole number of at most 64 bits"),
        ({"count": 10**10_000}, r"here\.count must be a whole number of at most 64 bits"),
        ({"flag": 1}, r"here\.flag must be true or false, not 1"),
        ({"flag": None}, r"here\.flag must be true or false, not null"),
        ({"colours": [0, 1]}, r"here\.colours\[1\] must be one of 0, 2, not 1"),
        ({"colours": [0, False]}, r"here\.colours\[1\] must be one of 0, 2, not false"),
        ({"colours": {}}, r"here\.colours must be a list, not an object"),
        ({"pair": [1]}, r"here\.pair must be a list of 2 values, not of 1"),
        ({"pair": ["x", "y"]}, r"here\.pair\[0\] must be a whole number, not 'x'"),
        (
            {"best": [[[1, 0.5]], [[1, 0.5], [1, "0.5"]]]},
            r"here\.best\[1\]\[1\]\[1\] must be a finite number, not '0\.5'",
        ),
        ({"best": [[[1, float("nan")]]]}, r"here\.best\[0\]\[0\]\[1\] must be a finite number, not nan"),
        ({"best": [[[1, float("inf")]]]}, r"here\.best\[0\]\[0\]\[1\] must be a finite number, not inf"),
        ({"best": [[[1, 10**400]]]}, r"here\.best\[0\]\[0\]\[1\] must be a whole number of at most 64 bits"),
        ({"best": [[[1, 0.5], [2**63, 0.5]]]}, r"here\.best\[0\]\[1\]\[0\] must be a whole number of at most 64 bits"),
        ({"best": [[[-(2**63) - 1, 0.5]]]}, r"here\.best\[0\]\[0\]\[0\] must be a whole number of at most 64 bits"),
        ({"names": []}, r"here\.names must be an object, not a list"),
        ({"names": {"1": 2}}, r"here\.names\['1'\] must be a text, not 2"),
        ({"names": {"01": "x"}}, r"here\.names must have whole numbers as keys, not '01'"),
        ({"names": {"\u0661": "x"}}, r"here\.names must have whole numbers as keys"),
        ({"names": {"9" * 19: "x"}}, r"here\.names must be a whole number of at most 64 bits"),
        ({"inner": {"share": 1.0}}, r"here\.inner\.label is missing"),
        ({"inner": {"share": 1.0, "label": None, "z" * 99: 0}}, r"here\.inner has the unknown key 'z{39,40}\.\.\.$"),
        ({"inner": 3}, r"here\.inner must be an object, not 3"),
        (
            {"panel": {"a": [0, {"b": float("nan")}]}},
            r"here\.panel\['a'\]\[1\]\['b'\] must be a finite number, not nan",
        ),
        ({"panel": {"a": 2**64}}, r"here\.panel\['a'\] must be a whole number of at most 64 bits"),
        ({"panel": {"a": deep(DEPTH + 1)}}, f"nests lists or objects deeper than {DEPTH} levels"),
        ({"panel": {"a": deep(100_000)}}, f"nests lists or objects deeper than {DEPTH} levels"),
    ],
)
def test_what_does_not_fit_names_its_place(changes: dict[str, JSON], sentence: str) -> None:
    """A lenient reader hands wrong types to the screen; a vague error leaves the user searching in a long line."""
    with pytest.raises(TraceError, match=sentence) as caught:
        from_json(Outer, changed(**changes), "here")
    assert len(str(caught.value)) < 200 and str(caught.value).isprintable()


@dataclass(frozen=True, slots=True)
class Grown:
    count: int
    size: int | None = field(default=None, metadata=LATER)
    rows: tuple[int, ...] = field(default=(), metadata=LATER)
    name: str | None = None


def test_only_a_field_that_came_later_may_be_missing() -> None:
    """Records from before it existed go on being read; any other key that lacks is damage."""
    assert from_json(Grown, {"count": 1, "name": None}, "here") == Grown(1)
    assert from_json(Grown, to_json(Grown(1, 2, (3,), "x")), "here") == Grown(1, 2, (3,), "x")
    with pytest.raises(TraceError, match=r"here\.name is missing"):
        from_json(Grown, {"count": 1}, "here")


def test_missing_and_unknown_keys_are_refused() -> None:
    """A default quietly taken for a missing key would hide a damaged line."""
    data = changed()
    del data["panel"]
    with pytest.raises(TraceError, match=r"here\.panel is missing"):
        from_json(Outer, data, "here")
    with pytest.raises(TraceError, match="here has the unknown key 'more'"):
        from_json(Outer, changed(more=1), "here")


@pytest.mark.parametrize(
    ("panel", "sentence"),
    [
        ({"a": (1, 2)}, r"panel\['a'\] must be plain JSON, not a Python tuple"),
        ({"a": [{1: 2}]}, r"panel\['a'\]\[0\]\[1\] must be a text, not 1"),
        ({"a": Colour.RED}, r"panel\['a'\] must be plain JSON, not a Python Colour"),
        ({"a": float("inf")}, r"panel\['a'\] must be a finite number"),
        ({"a": "\ud83d\ude00"}, r"panel\['a'\] holds a character split into two surrogates"),
        ({"a": deep(DEPTH + 1)}, "deeper than"),
    ],
)
def test_what_would_not_come_back_equal_is_not_written(panel: dict[str, JSON], sentence: str) -> None:
    """A panel with a tuple would be written without complaint and read back as something else."""
    with pytest.raises(TraceError, match=sentence):
        to_json(Outer(1, True, (), (1, ""), (), {}, None, panel))


def test_the_deepest_value_that_is_written_is_read() -> None:
    """Two limits that disagree by one would make files that their own program refuses."""
    made = Outer(1, True, (), (1, ""), (), {}, None, {"a": deep(DEPTH)})
    line = json.dumps(to_json(made)).encode()
    assert from_json(Outer, parse_object(line, "line", DEPTH), "line") == made


def nesting(line: str) -> int:
    """Return the depth of brackets outside of strings, character by character."""
    depth = deepest = 0
    inside = escaped = False
    for letter in line:
        if inside:
            inside = escaped or letter != '"'
            escaped = not escaped and letter == "\\"
        elif letter == '"':
            inside = True
        elif letter in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif letter in "]}":
            depth -= 1
    return deepest


@given(st.text(st.characters(codec=None, exclude_categories=())))
@settings(deadline=None, derandomize=True)
def test_half_characters_become_replacement_characters(text: str) -> None:
    """UTF-8 cannot hold them, so neither a file nor an answer of a server could repeat them."""
    line = json.dumps({"a": [text]})
    whole = re.sub("[\ud800-\udfff]", "\ufffd", json.loads(line)["a"][0])  # two halves side by side are one character
    assert parse_object(line.encode(), "line 1", 3) == {"a": [whole]}
    spelt = rb'{"a": "\uD83D\uDE00 \\\ud800 \\\\ud800"}'
    assert parse_object(spelt, "line 1", 3) == {"a": "\U0001f600 \\\ufffd \\\\ud800"}


@given(PLAIN, st.integers(0, 4), st.integers(0, 6))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_depth_is_counted_outside_of_strings_only(value: Any, wrapped: int, limit: int) -> None:
    """Brackets or quotes in a token's text must neither refuse a good line nor hide a deep one."""
    for _ in range(wrapped):
        value = ['"[[[\\', value, "]]{\\\\"]
    line = json.dumps({"a": value}, ensure_ascii=wrapped % 2 == 0).encode()
    if nesting(line.decode()) > limit + 2:
        with pytest.raises(TraceError, match="deeper"):
            parse_object(line, "line 1", limit)
    else:
        assert parse_object(line, "line 1", limit) == {"a": value}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b'{"a":NaN}', "line 1 holds NaN, which is no JSON number"),
        (b'{"a":-Infinity}', "line 1 holds -Infinity, which is no JSON number"),
        (b'{"a":1,"b":{"c":1,"c":1}}', "line 1 holds the key 'c' twice"),
        (b'{"a":' + b"9" * 10_000 + b"}", "line 1 holds a number with too many digits"),
        (b'{"a":' + b"[" * 100_000 + b"}", "line 1 nests lists or objects deeper than 32 levels"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "line 1 nests lists or objects deeper than 32 levels"),
        (b"[1]", "line 1 must be a JSON object, not a list"),
        (b'"x\\u0000"', r"line 1 must be a JSON object, not 'x\x00'"),
        (b"null", "line 1 must be a JSON object, not null"),
    ],
)
def test_json_that_readers_disagree_about_is_refused(line: bytes, sentence: str) -> None:
    """The standard library reads all of these, or falls over them with errors of its own."""
    with pytest.raises(TraceError) as caught:
        parse_object(line, "line 1", DEPTH)
    assert str(caught.value) == sentence
    assert not isinstance(caught.value, NotJsonError)


@pytest.mark.parametrize(
    "line", [b"", b"\n", b'{"a":1', b'{"a":"\xff"}', b'{"a":"\n"}', b"{'a':1}", b'\xef\xbb\xbf{"a":1}']
)
def test_text_that_is_no_json_says_so(line: bytes) -> None:
    """A torn line must be told from a wrong one."""
    with pytest.raises(NotJsonError, match="line 1 is not (JSON at character|UTF-8 at byte)"):
        parse_object(line, "line 1", DEPTH)
