"""Settings from hostile hands: any JSON becomes valid settings or one ParamError, never another exception."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from decoding.errors import ParamError
from decoding.methods import METHODS
from decoding.params import Params, param
from decoding.sampling import Sampling


@dataclass(frozen=True, slots=True)
class Sample(Params):
    """One field of every kind."""

    count: int = param(3, label="Count", help="How many", symbol="n", min=1, max=9)
    share: float = param(0.5, label="Share", help="How much", min=0.0)
    switch: bool = param(False, label="Switch", help="Whether")
    colour: str = param("red", label="Colour", help="Which", choices=("red", "blue"))

    def check(self) -> None:
        """Refuse blue beside others."""
        if self.colour == "blue" and self.count != 1:
            raise ParamError("blue needs count 1")


CLASSES = [Sample, Sampling, *(method.Params for method in METHODS.values())]
NAMES = sorted({field.name for kind in CLASSES for field in dataclasses.fields(kind)})
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["1", "1e9", "yes"])
)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
likely = st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=5), anything, max_size=4)


@given(st.sampled_from(CLASSES), likely | anything)
@example(Sampling, {"temperature": 10**400})
@example(Sample, {"share": 10**400})
@example(Sample, {"share": 2**60})
@example(Sampling, {"top_k": 10**5000})
@example(Sampling, {"seed": "9" * 5000})
@example(Sampling, {"temperature": "nan"})
@example(Sampling, {"temperature": [10**5000]})
@example(Sample, {"count": True})
@example(Sample, {"switch": 1})
@example(Sample, {"colour": ["red"]})
@example(Sample, {5: 5, None: None})
@example(Sample, {10**5000: 5})
def test_any_json_is_parsed_or_refused(kind: type[Params], raw: Any) -> None:
    """A request that raises something else shows a visitor a traceback, or worse, starts a run."""
    try:
        parsed = kind.parse(raw)
    except ParamError as error:
        assert str(error) and "\n" not in str(error).splitlines()[0]
        return
    for described in kind.describe():
        value = getattr(parsed, described["name"])
        assert type(value).__name__ == described["type"]
        if isinstance(value, int | float):
            assert math.isfinite(value)
            assert described["min"] is None or value >= described["min"]
            assert described["max"] is None or value <= described["max"]
        assert not described["choices"] or value in described["choices"]
    assert kind.parse(json.loads(json.dumps(parsed.to_json()))) == parsed


@pytest.mark.parametrize("kind", CLASSES)
def test_a_description_covers_every_field(kind: type[Params]) -> None:
    """Flags, controls and the JSON contract are made from it: a field that is missing cannot be set."""
    described = kind.describe()
    assert [row["name"] for row in described] == [field.name for field in dataclasses.fields(kind)]
    for row in described:
        assert row.keys() == {"name", "symbol", "label", "type", "default", "min", "max", "choices", "help"}
        assert row["label"] and row["help"] and row["symbol"]
        assert kind.parse({row["name"]: row["default"]}) == kind()
    json.dumps(described, allow_nan=False)


@pytest.mark.parametrize("kind", CLASSES)
def test_presets_are_settings(kind: type[Params]) -> None:
    """A preset with a stale name fails only when somebody picks it."""
    for values in kind.presets.values():
        assert {**kind().to_json(), **values} == kind.parse(values).to_json()


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"count": "4", "share": "0.25", "switch": "yes", "colour": "red"}, Sample(4, 0.25, True, "red")),
        ({"share": 2, "switch": "False"}, Sample(share=2.0)),
        ({"count": 1, "colour": "blue"}, Sample(1, colour="blue")),
        ({}, Sample()),
    ],
)
def test_command_line_strings_and_json_mean_the_same(raw: dict[str, Any], expected: Sample) -> None:
    """bool("False") is true, and int(2.0) hides a wrong type."""
    assert Sample.parse(raw) == expected


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"count": 0}, "count must be between 1 and 9, not 0"),
        ({"share": -1}, "share must be at least 0.0, not -1.0"),
        ({"count": 2.0}, "count must be a whole number, not 2.0"),
        ({"count": "many"}, "count must be a whole number, not 'many'"),
        ({"colour": "green"}, "colour must be one of red, blue, not 'green'"),
        ({"switch": "maybe"}, "switch must be true or false, not 'maybe'"),
        ({"colour": "blue"}, "blue needs count 1"),
        ({"cuont": 1}, "unknown parameter 'cuont'; known ones: count, share, switch, colour"),
        ([1], "parameters must be an object of names and values"),
    ],
)
def test_a_refusal_says_what_to_change(raw: Any, words: str) -> None:
    """A message that does not name the field and its bounds leaves the reader guessing."""
    with pytest.raises(ParamError) as caught:
        Sample.parse(raw)
    assert str(caught.value) == words


def test_construction_is_checked_too() -> None:
    """Settings made in Python, not parsed, must obey the same bounds."""
    with pytest.raises(ParamError, match="count must be between"):
        Sample(count=10)
    with pytest.raises(ParamError, match="finite"):
        Sample(share=math.nan)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Sample().count = 2  # type: ignore[misc]
