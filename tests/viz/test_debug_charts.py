"""The Debug page's charts: every kind, with one side or two, without rows, and of hostile texts."""

from __future__ import annotations

from typing import Any

import pytest

from viz.debug.charts import Side, chart, differences

BARS = Side("A", ("name", "share"), [("one", 0.5), ("two", 0.25)])
LINES = Side("A", ("position", "share", "low", "high"), [(0, 0.5, 0.4, 0.7), (1, 0.25, None, None)])
HEAT = Side("A", ("depth", "rank", "guesses"), [(1, 0, 4), (2, 1, 7)])
HOSTILE = "<b>&"


def second(side: Side) -> Side:
    return Side("B", side.columns, side.rows, second=True)


def drawn(kind: str, *sides: Side) -> dict[str, Any]:
    figure = chart(kind, sides)
    assert figure is not None
    return figure


@pytest.mark.parametrize(("kind", "side"), [("bars", BARS), ("lines", LINES), ("heat", HEAT)])
def test_two_sides_are_told_apart_and_none_is_no_figure(kind: str, side: Side) -> None:
    assert chart(kind, [Side("A", side.columns, [])]) is None
    assert len(drawn(kind, side)["data"]) == 1
    both = drawn(kind, side, second(side))
    assert [trace["meta"] for trace in both["data"]] == [0, 1]


def test_a_kind_that_is_a_table_is_not_drawn() -> None:
    assert chart("table", [BARS]) is None


def test_points_carry_their_rows() -> None:
    assert drawn("bars", BARS)["data"][0]["customdata"] == [0, 1]
    assert drawn("heat", HEAT)["data"][0]["customdata"] == [[0, None], [None, 1]]


def test_two_heat_maps_share_what_stands_at_their_left() -> None:
    """The second map's own ticks lay over the first map's words, and rows that only it has had none."""
    other = Side("B", HEAT.columns, [(3, 2, 5)], second=True)
    layout = drawn("heat", HEAT, other)["layout"]
    assert layout["yaxis"]["tickvals"] == [0, 1, 2]
    assert layout["yaxis2"]["matches"] == "y" and not layout["yaxis2"]["showticklabels"]
    assert (layout["xaxis"]["tickvals"], layout["xaxis2"]["tickvals"]) == ([1, 2], [3])


def test_the_titles_below_two_heat_maps_fit_side_by_side() -> None:
    """The second one's whole name lay over the first one's title, and was cut off at the card's edge."""
    sides = [Side(f"{letter}: EAGLE-3 (a long name)", HEAT.columns, HEAT.rows) for letter in "AB"]
    layout = drawn("heat", *sides)["layout"]
    across = HEAT.columns[0]
    assert [layout[axis]["title"]["text"] for axis in ("xaxis", "xaxis2")] == [f"A: {across}", f"B: {across}"]


def test_an_interval_that_is_not_known_has_no_whisker() -> None:
    whiskers = drawn("lines", LINES)["data"][0]["error_y"]
    assert whiskers["array"] == pytest.approx([0.2, 0]) and whiskers["arrayminus"] == pytest.approx([0.1, 0])


def test_long_names_lie_and_cut_ones_stay_apart() -> None:
    long = Side("A", ("name", "share"), [("x" * 40, 0.5), ("x" * 50, 0.25)])
    trace = drawn("bars", long)["data"][0]
    assert trace["orientation"] == "h" and len(set(trace["y"])) == 2


def test_plotly_finds_no_markup_in_names() -> None:
    side = Side(HOSTILE, ("name", "share"), [(HOSTILE, 1.0)])
    trace = drawn("bars", side)["data"][0]
    assert trace["x"] == ["&lt;b&gt;&amp;"]
    assert "<extra>&lt;b&gt;&amp;</extra>" in trace["hovertemplate"]


def test_differences_beyond_noise_are_filled() -> None:
    columns = ("of", "name", "difference", "low", "high", "beyond noise")
    rows = [("all", "steps", 0.5, 0.25, 1.0, True), ("category", HOSTILE, None, None, None, None)]
    rows.append(("category", HOSTILE, -0.5, None, None, False))
    figure = differences(columns, rows)
    assert figure is not None
    trace = figure["data"][0]
    assert trace["marker"]["symbol"] == ["diamond", "circle-open"] and trace["customdata"] == [0, 2]
    assert trace["y"] == ["steps", "category &lt;b&gt;&amp;"]
    assert differences(columns, []) is None


def test_an_axis_of_small_shares_has_different_ticks() -> None:
    """Ticks of whole per cent up to 0.3% were all 0%."""
    small = Side("A", ("w", "share", "low", "high"), [(1, 0.0, 0.0, 0.003)])
    assert drawn("lines", small)["layout"]["yaxis"]["range"] == [0, 0.1]
    assert drawn("lines", LINES)["layout"]["yaxis"]["rangemode"] == "tozero"
