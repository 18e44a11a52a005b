"""Addresses of the Debug page: what is written is read back, and whatever else is in one changes nothing."""

from __future__ import annotations

import random
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.store.query import Filter
from app.debug.state import DebugState

METHODS = [("draft_model", "default"), ("draft_model", "short"), ("medusa", "default"), ("autoregressive", "default")]


@pytest.mark.parametrize(
    "state",
    [
        DebugState(),
        DebugState(folder="pocket", filters=Filter(text="it's & <b>", accepted=2, p_from=0.25), chart="survival"),
        DebugState(folder="pocket", every_method=True, against="own-1-x", against_method="medusa"),
        DebugState(folder="pocket", sql="SELECT run, step\nFROM steps -- é"),
    ],
)
def test_an_address_is_read_back(state: DebugState) -> None:
    """A saved view is its address."""
    assert DebugState.parse(state.address()) == state
    assert DebugState.parse("?" + state.address()) == state


def test_a_query_takes_the_place_of_the_filters() -> None:
    """The menus went on naming a method while the charts showed all that the query had chosen."""
    state = DebugState.parse("folder=a&f.method=medusa&f.accepted=2&sql=SELECT 1&against=b&b.method=medusa&b.setting=x")
    assert state.query == "SELECT 1" and state.shown() == {} and state.against_choice == ("", "")
    assert parse_qsl(state.address()) == [("screen", "debug"), ("folder", "a"), ("sql", "SELECT 1"), ("against", "b")]
    assert DebugState.parse("folder=pocket&f.accepted=2").query == Filter(accepted=2).sql()
    why = "the SQL query takes the place of filters"
    problem = f"'f.method', 'f.accepted' in the address were left out: {why}"
    assert state.problems == (problem,) and state.filters == Filter()
    both = DebugState.parse("f.accepted=x&f.method=*&sql=SELECT 1")
    assert both.problems == (f"'f.accepted', 'f.method' in the address were left out: {why}",) and not both.every_method
    assert "control character" in DebugState.parse("f.accepted=2&sql=%00").problems[0]  # and the filter takes effect
    assert DebugState.parse("f.accepted=2&sql=%00").filters == Filter(accepted=2)


@pytest.mark.parametrize(
    "query",
    ["folder=../../etc", "folder=a%20b", "f.accepted=x", "f.nothing=1", "f.p_to=nan", "chart=nothing",
     "sql=%00", "against=/etc", "b.method=" + "x" * 300, "x" * 60_000, "&".join(f"f.x{i}=1" for i in range(99)),
     "f.text=" + "x" * 300],
)  # fmt: skip
def test_what_is_invalid_is_left_out_with_a_sentence(query: str) -> None:
    state = DebugState.parse(query)
    assert state.problems and state == DebugState(problems=state.problems)


def test_what_no_field_is_called_is_named_too() -> None:
    state = DebugState.parse("?screen=debug&folder=pocket&foo=1&__theme=dark&chart=nothing")
    assert state.folder == "pocket"
    assert [problem.partition(":")[0] for problem in state.problems] == [
        "'foo' in the address was left out",
        "'chart' in the address was left out",
    ]


@pytest.mark.parametrize("query", [None, 3, [], {}, b"folder=x"])
def test_what_is_no_text_is_ignored(query: object) -> None:
    assert DebugState.parse(query).problems


@pytest.mark.slow
@settings(max_examples=40)
@given(
    st.dictionaries(
        st.sampled_from(["folder", "f.text", "f.accepted", "sql", "against", "chart", "f.method", "x"]), st.text()
    )
)
def test_any_address_is_parsed(fields: dict[str, str]) -> None:
    state = DebugState.parse(urlencode(fields, errors="replace"))
    assert DebugState.parse(state.address()).address() == state.address()


def test_a_folder_of_several_methods_is_opened_at_one() -> None:
    """Mixed numbers of several methods and settings would be nobody's; all are shown on request."""
    assert DebugState().settled("a", METHODS).filters == Filter(method="draft_model", setting="default")
    assert DebugState.parse("f.method=*").settled("a", METHODS).filters == Filter()
    assert DebugState.parse("f.method=medusa").settled("a", METHODS).filters == Filter(method="medusa")
    assert DebugState().settled("a", METHODS[:1]).filters == Filter()


def test_a_folder_is_compared_with_another_method_of_its_own() -> None:
    """Nobody compares a method with itself."""
    state = DebugState.parse("folder=a&against=a").settled("a", METHODS)
    assert (state.against_method, state.against_setting) == ("draft_model", "short")
    assert "setting = 'short'" in state.against_query and "setting = 'default'" in state.query


def test_another_folder_is_compared_at_the_same_method() -> None:
    """One method beside all of the other folder's mixed together said nothing."""
    others = [("medusa", "default"), ("draft_model", "long"), ("draft_model", "default")]
    state = DebugState.parse("folder=a&against=b").settled("a", METHODS, others)
    assert (state.against_method, state.against_setting) == ("draft_model", "default")
    state = DebugState.parse("folder=a&against=b&f.method=eagle3").settled("a", METHODS, others)
    assert (state.against_method, state.against_setting) == ("medusa", "default")
    state = DebugState.parse("folder=a&against=b&b.method=*").settled("a", METHODS, others)
    assert state.against_choice == ("", "") and "method" not in state.against_query
    for query in ("f.method=*", "sql=SELECT 1"):
        assert DebugState.parse(f"folder=a&against=b&{query}").settled("a", METHODS, others).against_method == ""
    assert DebugState.parse("folder=a&against=b").settled("a", METHODS, others[:1]).against_method == ""


def test_random_bytes_make_no_error() -> None:
    chance = random.Random(7)
    for _ in range(300):
        text = bytes(chance.randrange(256) for _ in range(chance.randrange(60))).decode("latin-1")
        DebugState.parse(text).settled("a", METHODS).address()
