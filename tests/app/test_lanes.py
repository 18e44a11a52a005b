"""The lanes of a race: settings by their names, checked as strangers write them."""

from __future__ import annotations

import pytest

from app.lanes import check_lanes, example_of, find_settings, name_of
from app.presets import presets
from app.server.limits import LIMITS
from decoding import METHODS
from decoding.errors import ParamError
from decoding.types import JSON


def another(row: dict[str, JSON]) -> JSON:
    """Return a value of a setting that is not its default, where there is one of its kind."""
    usual = row["default"]
    if row["type"] == "bool":
        return not usual
    if row["type"] == "int":
        return usual - 1 if usual == row["max"] else usual + 1
    return row["choices"][-1] if row["choices"] else row["min"] or usual


@pytest.mark.parametrize("method", METHODS)
def test_settings_are_found_by_their_name(method: str) -> None:
    """Whatever a setting holds: commas, points, true and false."""
    kind, plain = METHODS[method], METHODS[method].Params()
    for row in kind.Params.describe():
        changed = plain.to_json() | {row["name"]: another(row)}
        assert find_settings(kind, name_of(kind, changed)).to_json() == changed
    for name, settings in presets(kind).items():
        assert find_settings(kind, name).to_json() == settings
        assert find_settings(kind, name_of(kind, settings)).to_json() == settings
    if plain.to_json():
        assert find_settings(kind, example_of(kind)) == plain


def test_a_visitor_writes_settings_with_or_without_spaces() -> None:
    kind = METHODS["medusa"]
    found = find_settings(kind, " tree = given,paths=0;0,0;0,1 , size=3")
    assert (found.to_json()["tree"], found.to_json()["paths"], found.to_json()["size"]) == ("given", "0;0,0;0,1", 3)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "choose one of defaults, paper, .*, or write settings, as W=15, N=5"),
        ("W 4", "or write settings, as W=15"),
        ("W=4 N=3", "W must be a whole number, not '4 N=3'"),
        ("width=4", "unknown parameter 'width'; known ones: W, N, G"),
        ("4, W=4", "unknown parameter '4'"),
        ("W=", "W must be a whole number"),
        ("W=4, W=5", "'W' has two values"),
        ("W=200, N=16, G=200", f"a step has 6000 tokens, above {LIMITS.nodes}"),
        ("=" * 9_000, "unknown parameter ''"),
        (", a" * 9_000 + "=", "unknown parameter"),
    ],
)
def test_what_names_no_settings_is_one_short_sentence(name: str, sentence: str) -> None:
    with pytest.raises(ParamError, match=sentence) as got:
        find_settings(METHODS["lookahead"], name)
    assert len(str(got.value)) < 250


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        ({}, "a race has 2 to 6 lanes, not 0"),
        ({"lookahead": ["W=4"]}, "a race has 2 to 6 lanes, not 1"),
        ({"lookahead": [f"W={width}" for width in range(1, 8)]}, "not 7"),
        ({"a": ["defaults"], "jacobi": ["defaults"]}, "unknown method 'a'"),
        ({"jacobi": ["defaults"], "lookahead": []}, "choose settings for Lookahead, or leave it out"),
        ({"lookahead": ["paper", "defaults"]}, "Lookahead: 'paper' and 'defaults' are the same settings"),
        ({"lookahead": ["W=4", "W=4"]}, "Lookahead: 'W=4' is there twice: leave one out"),
        ({"jacobi": ["n=4"], "lookahead": ["n=4"]}, "Lookahead: unknown parameter 'n'"),
    ],
)
def test_a_race_has_two_to_six_different_lanes(names: dict[str, list[str]], sentence: str) -> None:
    with pytest.raises(ParamError, match=sentence):
        check_lanes(names)
