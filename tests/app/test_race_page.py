"""The form of a race: which presets it shows."""

from __future__ import annotations

import gradio as gr
import pytest

from analysis.tuned import CPU
from app.address import PageState
from app.examples import examples_for
from app.models.catalog import POCKET
from app.models.entry import CatalogEntry
from app.pages.race import RaceForm, build
from app.state import AppState
from tests.event_loops import discard_event_loops

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the event loops that Gradio leaves behind


@pytest.fixture
def form(app_state: AppState) -> RaceForm:
    app_state.catalog = {**app_state.catalog, "gpu": CatalogEntry("gpu", "toy", device="cuda")}
    with gr.Blocks():
        made = build(app_state)
    discard_event_loops()
    return made


def presets_for(form: RaceForm, model: str) -> set[str]:
    """Return the presets that are selected when a visitor chooses a model."""
    shown = form.change_model({control: control.value for control in form.prompt.controls} | {form.model: model})
    return {shown[menu] for menu in form.presets.values()}


def test_a_race_begins_with_the_settings_that_win_here(form: RaceForm) -> None:
    assert {menu.value for menu in form.presets.values()} == {CPU}
    assert presets_for(form, "gpu") == {"defaults"}
    assert presets_for(form, "toy") == {CPU}


def test_an_address_says_which_presets_are_meant(form: RaceForm) -> None:
    """One that names none was written when all had their defaults."""
    shown = form.show_state(PageState(methods=("jacobi", "lookahead"), presets={"lookahead": "paper"}))
    assert shown[form.presets["jacobi"]]["value"] == "defaults"
    assert shown[form.presets["lookahead"]]["value"] == "paper"


def test_an_address_without_a_prompt_brings_one_that_its_model_understands(form: RaceForm) -> None:
    """The form kept the prompt of another model, which this one cannot answer."""
    form.app_state.catalog = {**form.app_state.catalog, POCKET.name: POCKET}
    began = form.prompt.example.value
    shown = form.show_state(PageState(model=POCKET.name, methods=("autoregressive", "jacobi")))
    first = examples_for(POCKET.model)[0]
    assert shown[form.prompt.example]["value"] == first.id != began
    assert shown[form.prompt.text]["value"] == first.prompt


def test_a_run_without_a_text_leaves_the_prompt_as_its_remark_says(form: RaceForm) -> None:
    assert form.prompt.text not in form.show_state(PageState(run="mine", methods=("autoregressive", "jacobi")))
