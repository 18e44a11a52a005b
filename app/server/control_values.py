"""The kinds of values that the page's controls send: the one place that checks them before a handler sees them.

Values come as the data of an event or inside the text of a form. Handlers may rely on their types only: a name need not
be in its menu, and a number need not be within its bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import gradio as gr

MOST_ITEMS = 256  # of a list, such as the methods of a race
ControlCheck = Callable[[object], bool]


def is_text(value: object) -> bool:
    """Return True for a text, and for the value of a menu without a choice."""
    return value is None or isinstance(value, str)


def is_number(value: object) -> bool:
    """Return True for a finite number, and for the value of an empty field."""
    return value is None or type(value) is int or (isinstance(value, float) and math.isfinite(value))


def is_flag(value: object) -> bool:
    """Return True for true and false."""
    return isinstance(value, bool)


def is_texts(value: object) -> bool:
    """Return True for a short list of texts."""
    return isinstance(value, list) and len(value) <= MOST_ITEMS and all(isinstance(each, str) for each in value)


_CHECKS: Mapping[type[Any], ControlCheck] = {
    gr.Textbox: is_text,
    gr.HTML: is_text,
    gr.Radio: is_text,
    gr.Dropdown: is_text,
    gr.Number: is_number,
    gr.Slider: is_number,
    gr.Checkbox: is_flag,
    gr.CheckboxGroup: is_texts,
}


def check_of(control: Any) -> ControlCheck:
    """Return the check of a control's values; raises TypeError for a control without a check."""
    check = is_texts if getattr(control, "multiselect", False) else _CHECKS.get(type(control))
    if check is None:
        raise TypeError(f"say in {__name__} what a {type(control).__name__} may send")
    return check
