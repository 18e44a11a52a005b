"""The controls for method and sampling, generated from the methods' parameter descriptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr

from analysis.candidates import CANDIDATES
from analysis.tuned import TUNED
from decoding.methods import METHODS
from decoding.params import Params
from decoding.sampling import Sampling
from decoding.types import JSON
from viz.params import setting_label

from ..controls import typed
from ..jobs.examination import FLAGS
from ..models.entry import CatalogEntry
from ..presets import TUNED_HERE, presets
from ..server.limits import LIMITS
from ..state import AppState

Component = gr.components.Component
Update = dict[Any, Any]  # component -> its new value, or gr.update
_OWN = "own settings"  # shown for settings that match no preset
_SLIDER_VALUES = 64  # a whole number with more possible values gets a number field, not a slider
_ABOUT_PRESETS = "“on a CPU”: the fastest settings there, as measured. “defaults”: the paper's, which suit a GPU."
_ABOUT_TUNED_HERE = f" “{TUNED_HERE}”: what “Find the fastest settings” or `tune` found on this machine."


def control(row: Mapping[str, JSON], prefix: str) -> Component:
    """Return the control of a parameter, labelled with its name, its symbol in the paper, and its help."""
    name, kind, low, high = row["name"], row["type"], row["min"], row["max"]
    common: dict[str, Any] = {
        "label": setting_label(row),
        "info": row["help"],
        "value": row["default"],
        "elem_id": f"{prefix}-{name}",
    }
    if kind == "bool":
        return gr.Checkbox(**common)
    if row["choices"]:
        return gr.Dropdown(row["choices"], **common)
    if kind == "str":
        return gr.Textbox(max_lines=1, **common)
    if low is not None and high is not None and (high - low <= _SLIDER_VALUES or kind == "float" and high <= 2):
        step = 1 if kind == "int" else 0.01
        return gr.Slider(low, high, step=step, **common)
    return gr.Number(minimum=low, maximum=high, precision=0 if kind == "int" else None, **common)


@dataclass(slots=True)
class MethodControls:
    """The controls of one method, in a group that is visible while the method is selected."""

    name: str
    group: gr.Group
    preset: gr.Dropdown | None
    fields: dict[str, Component]
    reference: gr.Textbox | None  # a document to copy from, for methods that copy
    doctor: gr.Button | None  # examines the drafter, for methods that have one
    tuner: gr.Button | None  # races settings, for methods that have some to choose

    @classmethod
    def build(cls, name: str, visible: bool, chosen: str) -> MethodControls:
        """Create the controls, with the values of the `chosen` preset.

        The parameters that the paper names come first, the others are in a closed accordion.
        """
        kind, settings = METHODS[name], presets(METHODS[name])
        rows = [row | {"default": settings[chosen][row["name"]]} for row in kind.Params.describe()]
        prefix = f"p-{name}".replace("_", "-")
        named = [row for row in rows if row["symbol"] != row["name"] or len(row["name"]) == 1] or rows[:3]
        rest = [row for row in rows if row not in named]
        with gr.Group(visible=visible, elem_classes="app-method") as group:
            menu = _presets(list(settings), chosen, prefix) if len(settings) > 1 else None
            fields = {row["name"]: control(row, prefix) for row in named}
            reference = _reference(prefix) if kind.takes_reference else None
            if rest:
                with gr.Accordion("More settings", open=False):
                    fields |= {row["name"]: control(row, prefix) for row in rest}
            doctor = _doctor(prefix) if name in FLAGS else None
            tuner = _tuner(prefix) if name in CANDIDATES else None
        return cls(name, group, menu, {row["name"]: fields[row["name"]] for row in rows}, reference, doctor, tuner)


def _presets(names: list[str], chosen: str, prefix: str) -> gr.Dropdown:
    """Create the menu of presets; settings that match none of them are shown as own settings."""
    about = _ABOUT_PRESETS if set(TUNED) & set(names) else ""
    about += _ABOUT_TUNED_HERE if any(name.endswith(TUNED_HERE) for name in names) else ""
    return gr.Dropdown(
        [*names, (_OWN, "")], value=chosen, label="Preset", info=about or None, elem_id=f"{prefix}-preset"
    )


def _doctor(prefix: str) -> gr.Button:
    return gr.Button(
        "Doctor: check the wiring", size="sm", elem_id=f"{prefix}-doctor", elem_classes=["app-button", "app-examine"]
    )


def _tuner(prefix: str) -> gr.Button:
    return gr.Button(
        "Find the fastest settings", size="sm", elem_id=f"{prefix}-tune", elem_classes=["app-button", "app-tune"]
    )


def at_most(characters: int, info: str = "") -> dict[str, Any]:
    """Name the limit of a text field, in words and for the page's script, which counts (text_limits.js)."""
    limit = f"up to {characters:,} characters"
    return {
        "info": f"{info} ({limit})" if info else limit.capitalize(),
        "elem_classes": f"app-most-{characters}",
    }


def answer_line() -> gr.HTML:
    """Create the line in which the page's script reports the result of pressing the button below it."""
    return gr.HTML('<p class="app-said" role="status"></p>', html_template="${value}", apply_default_css=False)


def length_field(tokens: int, prefix: str, entry: CatalogEntry) -> gr.Number:
    """Create the field for the number of new tokens."""
    return gr.Number(
        min(tokens, entry.max_new_tokens),
        label="New tokens",
        minimum=1,
        precision=0,
        elem_id=f"{prefix}-length",
        **length_bounds(entry),
    )


def length_bounds(entry: CatalogEntry) -> dict[str, Any]:
    """Return the bounds of the number of new tokens for a model, in words too."""
    return {"maximum": entry.max_new_tokens, "info": f"1 to {entry.max_new_tokens}"}


def model_menu(app_state: AppState, prefix: str) -> gr.Dropdown:
    """Create the menu of models."""
    names = list(app_state.catalog)
    return gr.Dropdown(names, value=app_state.default_model, label="Model", elem_id=f"{prefix}-model")


def _reference(prefix: str) -> gr.Textbox:
    return gr.Textbox(
        label="Reference document",
        lines=2,
        max_lines=8,
        elem_id=f"{prefix}-reference",
        **at_most(
            LIMITS.reference_characters, "A document that the answer may quote: guesses are copied from it and the text"
        ),
    )


def sampling_controls(prefix: str) -> dict[str, Component]:
    """Create the controls of sampling: temperature and seed, and the filters in a closed accordion."""
    rows = {row["name"]: row for row in Sampling.describe()}
    rows["temperature"] = {**rows["temperature"], "max": LIMITS.temperature}
    made = {name: control(rows[name], prefix) for name in ("temperature", "seed")}
    with gr.Accordion("Filters", open=False):
        made |= {name: control(row, prefix) for name, row in rows.items() if name not in made}
    return {name: made[name] for name in rows}


def choices_of(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return what a menu of methods offers."""
    return [(METHODS[name].label, name) for name in names]


def values_of(cls: type[Params], fields: Mapping[str, Component], given: Mapping[Any, Any]) -> dict[str, JSON]:
    """Return the values of a settings class among the inputs of an event."""
    return typed(cls, {name: given[component] for name, component in fields.items()})
