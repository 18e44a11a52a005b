"""What the form of a run begins with, and what choosing another model changes in it."""

from __future__ import annotations

from typing import Any

import gradio as gr
import pytest

from analysis.tuned import CPU
from analysis.tuned import POCKET as POCKET_ON_CPU
from app.address import PageState
from app.examples import EXAMPLES, examples_for
from app.models.catalog import POCKET, SMOLLM2
from app.models.entry import CatalogEntry
from app.pages.prompt_controls import RAW
from app.pages.run import build
from app.pages.run_form import RunForm
from app.pages.viewer import viewer
from app.state import AppState
from decoding import METHODS, smollm2
from tests.event_loops import discard_event_loops

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the event loops that Gradio leaves behind
GPU = CatalogEntry("gpu", smollm2.NAME, device="cuda")
CATALOG = {entry.name: entry for entry in (SMOLLM2, POCKET, GPU)}


@pytest.fixture(scope="module")
def form() -> RunForm:
    app_state = AppState(CATALOG, SMOLLM2.name)
    with gr.Blocks():
        made = build(app_state, viewer(app_state))
    discard_event_loops()
    return made


def chosen(form: RunForm, model: CatalogEntry, **changes: Any) -> dict[Any, Any]:
    """What changes when a visitor chooses a model after having changed these controls of the prompt."""
    menus = [method.preset for method in form.methods.values() if method.preset is not None]
    given = {control: control.value for control in (*form.prompt.controls, *menus)}
    given |= {form.prompt.fields[name]: value for name, value in changes.items()}
    return form.change_model(given | {form.model: model.name})


def test_it_begins_in_english_with_settings_that_win_here(form: RunForm) -> None:
    """The papers' settings suit GPUs: on a CPU they lose, and a newcomer would think that the methods do."""
    first = examples_for(smollm2.NAME)[0]
    assert (form.model.value, form.prompt.text.value, form.prompt.example.value) == (
        SMOLLM2.name,
        first.prompt,
        first.id,
    )
    assert form.method.value == first.method
    lookahead = form.methods["lookahead"]
    assert lookahead.preset is not None and lookahead.preset.value == CPU
    tuned = METHODS["lookahead"].Params.presets[CPU]
    assert {name: lookahead.fields[name].value for name in tuned} == dict(tuned)


def test_an_example_follows_the_model(form: RunForm) -> None:
    """pocket understands no English, and SmolLM2 nothing of pocket's invented world."""
    shown = chosen(form, POCKET)
    first = examples_for(POCKET.model)[0]
    assert shown[form.prompt.text]["value"] == first.prompt and shown[form.prompt.example]["value"] == first.id
    assert [name for _, name in shown[form.prompt.example]["choices"]] == [
        "",
        *(each.id for each in examples_for("pocket")),
    ]


def test_a_text_of_ones_own_stays(form: RunForm) -> None:
    for changes in ({"text": "Who is Ada?"}, {"text": "Who is Ada?", "example": ""}, {"mode": RAW, "text": "1, 2, 3"}):
        assert form.prompt.text not in chosen(form, POCKET, **changes)


def test_the_fastest_preset_follows_the_model_and_ones_own_choice_stays(form: RunForm) -> None:
    medusa = form.methods["medusa"]
    shown = chosen(form, POCKET)
    assert (shown[medusa.preset], shown[medusa.fields["size"]]) == (POCKET_ON_CPU, 4)
    shown = chosen(form, GPU)
    assert (shown[medusa.preset], shown[medusa.fields["size"]]) == (
        "defaults",
        METHODS["medusa"].Params().to_json()["size"],
    )
    menus = {method.preset: method.preset.value for method in form.methods.values() if method.preset is not None}
    given = {control: control.value for control in form.prompt.controls} | menus | {form.model: POCKET.name}
    shown = form.change_model(given | {medusa.preset: "typical", form.methods["jacobi"].preset: ""})
    assert medusa.preset not in shown and form.methods["jacobi"].preset not in shown


def test_an_example_without_a_model_chooses_one_that_understands_it(form: RunForm) -> None:
    shown = form.show_state(PageState(example="sum"))
    assert shown[form.model] == POCKET.name and shown[form.prompt.text]["value"] == EXAMPLES["sum"].prompt
    shown = form.show_state(PageState(example="sum", model=SMOLLM2.name))
    assert shown[form.model] == SMOLLM2.name and shown[form.prompt.example]["value"] == ""
    assert form.show_state(PageState(example="html"))[form.model] == SMOLLM2.name
