"""A form's values as one text: what comes back, and what strangers may send instead."""

from __future__ import annotations

import json
from typing import Any

import gradio as gr
import pytest

from app.pages.form_values import parse_values
from decoding.errors import SpecscopeError

CONTROLS: list[Any] = [gr.Textbox(), gr.Number(), gr.CheckboxGroup(["a", "b"]), gr.Checkbox()]


@pytest.mark.parametrize(
    "values", [["x \u2028 </script>", 3, ["a", "b"], True], [None, 0.25, [], False], ["", None, ["c"], True]]
)
def test_every_value_comes_back_to_its_control(values: list[Any]) -> None:
    assert list(parse_values(json.dumps({"values": values}), CONTROLS).values()) == values


@pytest.mark.parametrize(
    "text",
    [
        None, 7, "", "x", "[]", "{}", '{"values": {}}', '{"values": [1, 2]}', '{"values": [1, 2, 3, 4, 5]}',
        '{"values": [1, 2, 3, NaN]}', '{"values": [[[[[1]]]], 2, 3, 4]}', "[" * 100_000,
        '{"values": [' + "9" * 9_999 + "]}",
        '{"values": [1, 2, 3, 4], "values": [1, 2, 3, 4]}', "\ud800",
        '{"values": [5, 2, [], true]}', '{"values": ["x", "2", [], true]}', '{"values": ["x", true, [], true]}',
        '{"values": ["x", 2, "a", true]}', '{"values": ["x", 2, [1], true]}', '{"values": ["x", 2, [], 1]}',
        '{"values": ["x", 2, null, true]}', '{"values": ["x", 2, [], null]}',
        '{"values": ["x", 2, [' + '"a",' * 300 + '"a"], true]}',
    ],
)  # fmt: skip
def test_anything_else_is_one_sentence(text: object) -> None:
    with pytest.raises(SpecscopeError) as got:
        parse_values(text, CONTROLS)
    assert 10 < len(str(got.value)) < 120 and "\n" not in str(got.value)
