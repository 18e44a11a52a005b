"""The landscape in words and as a figure: true to what was measured, and inert."""

from __future__ import annotations

import json
from typing import Any

import pytest

from viz import landscape
from viz.landscape_rows import about_silent, about_text, measured_tokens, names_in_a_row, rows, sentence
from viz.palette import THEMES

from .records import HOSTILE, strings_in

MARKUP = ("<extra></extra>", "<br>", "<b>", "</b>")  # what our own figure may say between angle brackets


def found(**changes: Any) -> dict[str, Any]:
    """Make a text of a token and four more, the third of which the target would not have written; two methods."""
    words = {1: " a", 2: " b", 3: " c", 4: " d", 5: " e", 6: " f"}
    silent = {"accepted": [0] * 4, "drafted": [0] * 4, "guesses": [[]] * 4, "written": [[2], [3], [4], [5]]}
    usual: dict[str, Any] = {
        "model": "toy",
        "tokens": [1, 2, 3, 4, 5],
        "first": 1,
        "choices": [2, 3, 6, 5, 1],
        "methods": [
            {
                "name": "medusa",
                "label": "Medusa",
                "settings": "heads=2",
                "mean_accepted": 1.0,
                "accepted": [None, 2, 0, 1],
                "drafted": [0, 7, 1, 2],
                "guesses": [[], [3, 1, 4, 5, 2], [4], [5, 6]],
                "written": [[], [3, 6, 1], [6], [5, 1]],
            },
            {"name": "lookahead", "label": "Lookahead", "settings": "", "mean_accepted": 0.0, **silent},
        ],
        "texts": {str(token): text for token, text in words.items()},
    }
    return usual | changes


def plain(made: Any) -> dict[str, Any]:
    """Return a figure as the JSON that plotly.js gets."""
    data: dict[str, Any] = json.loads(made.to_json())
    return data


def test_every_cell_is_said_in_words() -> None:
    [medusa, lookahead], tokens = rows(found()), measured_tokens(found())
    assert sentence(medusa.label, tokens[1].words, medusa.words[1]) == (
        "Medusa at token 2 of 4, ' c': first guesses ' c', ' a', ' d', ' e', …; 2 of 7 guesses accepted; "
        "the step writes ' c f a'."
    )
    assert medusa.words[0].startswith("the text before this token is too short")
    assert medusa.words[2] == "first guess ' d'; 0 of 1 guess accepted; the step writes ' f'"
    assert lookahead.words[3] == "no guess; the step writes ' e'"
    assert (medusa.settings, lookahead.settings) == ("heads=2", "")
    assert (medusa.signs, medusa.mean) == (["", "2", "0", "1"], "1.00")
    assert lookahead.signs == ["·"] * 4


def test_a_token_that_is_not_the_targets_choice_is_marked() -> None:
    tokens = measured_tokens(found())
    assert [token.is_choice for token in tokens] == [True, True, False, True]
    assert tokens[2].words == "token 3 of 4, ' d' where the target chooses ' f'"
    heads = plain(landscape(found()))["layout"]["xaxis"]["ticktext"]
    assert [head.startswith("≠ ") for head in heads] == [False, False, True, False]


def test_sentences_on_the_whole_of_it() -> None:
    silent = about_silent(rows(found()))
    assert silent == "Lookahead guesses nothing in a run's first step."
    assert about_silent(rows(found())[:1]) == ""
    assert about_text(measured_tokens(found())) == "3 of 4 tokens are the target's own choice."
    assert [names_in_a_row(["A", "B", "C"][:many]) for many in (1, 2, 3)] == ["A", "A and B", "A, B and C"]
    subtitle = plain(landscape(found()))["layout"]["title"]["subtitle"]["text"]
    assert silent in subtitle and "3 of 4 tokens" in subtitle


@pytest.mark.parametrize("theme", THEMES)
def test_the_figure_has_a_row_for_each_method_and_a_column_for_each_token(theme: str) -> None:
    made = plain(landscape(found(), theme))
    [cells] = made["data"]
    assert cells["z"] == [[None, 2, 0, 1], [0, 0, 0, 0]] and cells["text"][0] == ["", "2", "0", "1"]
    assert "first guess ' d'" in cells["hovertext"][0][2].replace("<br>", " ")
    assert made["layout"]["yaxis"]["ticktext"] == ["Medusa <b>1.00</b>", "Lookahead <b>0.00</b>"]
    assert made["layout"]["paper_bgcolor"] == THEMES[theme]["paper"] == cells["colorscale"][0][1]


@pytest.mark.parametrize("theme", THEMES)
def test_digits_can_be_read_on_every_colour(theme: str) -> None:
    """A contrast of 4.5, as for any text; a darker cell is more, or less, all the way, also in grey."""

    def luminance(colour: str) -> float:
        parts = [part / 255 for part in bytes.fromhex(colour.removeprefix("#"))]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    [cells] = plain(landscape(found(), theme))["data"]
    low, high = (luminance(colour) for _, colour in cells["colorscale"])
    ink = luminance(cells["textfont"]["color"])
    for ground in (low, high):
        assert (max(ground, ink) + 0.05) / (min(ground, ink) + 0.05) >= 4.5
    assert abs(high - low) > 0.1


def test_no_text_of_a_token_is_markup() -> None:
    """Plotly reads tags in texts, links among them."""
    for at in range(0, len(HOSTILE), 6):
        texts = {str(token): HOSTILE[(at + token) % len(HOSTILE)] for token in range(1, 7)}
        for text in strings_in(plain(landscape(found(texts=texts, model="<b>x</b>")))):
            for ours in MARKUP:
                text = text.replace(ours, "")
            assert "<" not in text and len(text) < 1000


def test_a_long_text_is_seen_in_part_and_reached_by_dragging() -> None:
    """A picture of a hundred thousand pixels is none: browsers draw nothing then."""
    many = 5000
    method = {
        "name": "jacobi",
        "label": "Jacobi",
        "settings": "",
        "mean_accepted": 0.0,
        "accepted": [0] * many,
        "drafted": [1] * many,
    }
    method |= {"guesses": [[2]] * many, "written": [[2]] * many}
    made = plain(landscape(found(tokens=[1] * (many + 1), choices=[1] * (many + 1), methods=[method])))
    assert made["layout"]["width"] < 12_000 and made["layout"]["dragmode"] == "pan"
    assert made["layout"]["xaxis"]["range"][1] < many


@pytest.mark.parametrize(
    ("given", "theme", "reason"),
    [
        (found(), "pink", "there is no theme 'pink'"),
        (found(methods=[]), "light", "before the first one"),
        ({}, "light", "give what an engine's landscape returns"),
        (None, "light", "give what an engine's landscape returns"),
    ],
)
def test_a_mistake_is_explained(given: Any, theme: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        landscape(given, theme)
