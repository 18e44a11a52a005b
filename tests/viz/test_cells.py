"""Layers of cells in plotly's words, and numbers in few bytes."""

from __future__ import annotations

import pytest

from viz.boards.board import GAINED, OUTCOMES, SIGNED
from viz.cells import SPAN, SYMBOLS, Sign, as_trace, labels, named_signs, packed, signs, squares
from viz.palette import MEANINGS, Fate
from viz.stream.encode import unpack

FILLS = [f"#{code:06x}" for code in range(len(MEANINGS))]


def test_squares_of_fates_are_bands_of_one_colour() -> None:
    """Plotly finds a code's colour in the middle of its band, so that no two fates run into each other."""
    trace = as_trace(
        squares() | {"x": [0, 1], "y": [2, 3], "fate": [0, 9], "nodes": [4, -1], "text": ["a", "b"]}, FILLS
    )
    marker = trace["marker"]
    span = marker["cmax"] - marker["cmin"]
    for code, fill in enumerate(FILLS):
        at = (code - marker["cmin"]) / span
        below, above = [pair for pair in marker["colorscale"] if pair[0] <= at][-1], marker["colorscale"]
        assert below[1] == fill and next(pair for pair in above if pair[0] > at)[1] == fill
    assert (marker["color"], trace["customdata"], trace["text"]) == ([0, 9], [4, -1], ["a", "b"])
    assert (trace["mode"], trace["hoverinfo"], trace["textposition"]) == ("markers+text", "none", "middle center")


def test_squares_of_one_colour_need_no_fates() -> None:
    trace = as_trace(squares("$root", text=False, opacity=0.2) | {"x": [0], "y": [0], "text": ["a"]}, FILLS)
    assert trace["mode"] == "markers" and trace["marker"]["color"] == "$root" and "colorscale" not in trace["marker"]


def test_wide_cells_are_bars_around_their_places() -> None:
    trace = as_trace(squares(wide=True) | {"x": [0, 3], "y": [1, 2], "fate": [0, 9], "text": ["a", "b"]}, FILLS)
    columns, rows = SPAN
    assert (trace["type"], trace["orientation"]) == ("bar", "h") and "mode" not in trace
    assert (trace["base"], trace["x"]) == ([-columns / 2, 3 - columns / 2], [columns, columns])
    assert (trace["y"], trace["width"], trace["offset"]) == ([1, 2], rows, -rows / 2)
    assert trace["marker"]["color"] == [0, 9] and not {"symbol", "size"} & trace["marker"].keys()


def test_signs_are_named_or_counted() -> None:
    place = {"x": [0, 1], "y": [0, 0]}
    assert as_trace(signs(lifted=True) | place | {"sign": ["x", "hash"]}, FILLS)["marker"]["symbol"] == ["x", "hash"]
    trace = as_trace(named_signs(8) | place | {"sign": [Sign.STAR, Sign.FRAME]}, FILLS)
    assert trace["marker"]["symbol"] == ["star-open", "octagon-open"] and trace["marker"]["size"] == 8
    assert "symbol" not in as_trace(signs() | place, FILLS)["marker"]
    assert as_trace(signs(lifted=True) | place, FILLS)["yaxis"] == "y3"


def test_labels_stand_beside_their_places() -> None:
    trace = as_trace(labels("left") | {"x": [0], "y": [1], "text": ["since step 4"]}, FILLS)
    assert (trace["mode"], trace["textposition"], trace["text"]) == ("text", "middle left", ["since step 4"])
    assert trace["hoverinfo"] == "skip" and "marker" not in trace


def test_every_sign_has_a_symbol_and_words() -> None:
    assert len(SYMBOLS) == len(set(SYMBOLS)) == len(Sign) and SIGNED.keys() == {*Sign} - {Sign.FRAME}
    assert {*OUTCOMES.values()} <= {*Sign}


def test_no_fate_has_the_sign_of_what_a_pool_did() -> None:
    """New and accepted were the same dot in one picture, and known and matched the same ring."""
    fates = {meaning.symbol: meaning.fate for meaning in MEANINGS}
    assert len(fates) == len(MEANINGS)
    assert {fates[symbol] for symbol in SYMBOLS if symbol in fates} == {Fate.INSPIRED}
    assert SYMBOLS[GAINED] == MEANINGS[Fate.INSPIRED].symbol  # which says the same


@pytest.mark.parametrize(
    "values", [[], [3], [0.5, 2], list(range(200)), [-100] * 90, list(range(-300, 300)), [70_000] * 90]
)
def test_numbers_are_packed_where_that_is_shorter(values: list[float]) -> None:
    small = packed(values)
    assert (unpack(small).tolist() if isinstance(small, dict) else small) == values
    assert isinstance(small, dict) == (len(values) >= 90)
