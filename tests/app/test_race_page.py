"""The form of a race: which presets it shows."""

from __future__ import annotations

from urllib.parse import parse_qsl

import gradio as gr
import pytest

from analysis.tuned import CPU
from app.address import PageState, parse
from app.examples import examples_for
from app.models.catalog import POCKET
from app.models.entry import CatalogEntry
from app.pages.race import RaceForm, build
from app.state import AppState
from decoding.errors import ParamError
from tests.event_loops import discard_event_loops

from .conftest import CATALOG

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the event loops that Gradio leaves behind


@pytest.fixture
def form(app_state: AppState) -> RaceForm:
    app_state.catalog = {**app_state.catalog, "gpu": CatalogEntry("gpu", "toy", device="cuda")}
    with gr.Blocks():
        made = build(app_state)
    discard_event_loops()
    return made


def read(query: str, form: RaceForm | None = None) -> PageState:
    return parse(dict(parse_qsl(query)), form.app_state.catalog if form else CATALOG)


def presets_for(form: RaceForm, model: str) -> set[str]:
    """Return the presets that are selected when a visitor chooses a model."""
    shown = form.change_model({control: control.value for control in form.inputs} | {form.model: model})
    return {name for menu in form.settings.values() for name in shown[menu]}


def test_a_race_begins_with_the_settings_that_win_here(form: RaceForm) -> None:
    assert all(menu.value == [CPU] for menu in form.settings.values())
    assert presets_for(form, "gpu") == {"defaults"}
    assert presets_for(form, "toy") == {CPU}


def test_an_address_says_which_presets_are_meant(form: RaceForm) -> None:
    """One that names none was written when all had their defaults."""
    shown = form.show_state(read("methods=jacobi,lookahead&preset.lookahead=paper"))
    assert shown[form.settings["jacobi"]]["value"] == ["defaults"]
    assert shown[form.settings["lookahead"]]["value"] == ["paper"]
    assert form.all_settings not in shown


def test_an_address_with_several_settings_of_a_method_shows_them(form: RaceForm) -> None:
    """Only one method was selected, and nothing said what it races against."""
    shown = form.show_state(read("methods=lookahead&preset.lookahead=W=3|W=7"))
    assert shown[form.methods] == ["lookahead"] and shown[form.all_settings]["open"]
    assert shown[form.settings["lookahead"]] == {"__type__": "update", "visible": True, "value": ["W=3", "W=7"]}


def test_the_form_orders_a_lane_for_each_setting(form: RaceForm) -> None:
    given = {control: control.value for control in form.inputs} | {form.methods: ["autoregressive", "lookahead"]}
    given |= {form.settings["lookahead"]: ["W=3, N=4", "paper"]}
    orders = form.orders(given)
    assert [(each.method.name, each.params.to_json().get("W")) for each in orders] == [
        ("autoregressive", None),
        ("lookahead", 3),
        ("lookahead", 15),
    ]
    with pytest.raises(ParamError, match="choose settings for Lookahead, or leave it out"):
        form.orders(given | {form.settings["lookahead"]: []})


def test_another_model_leaves_settings_that_a_visitor_put_together(form: RaceForm) -> None:
    given = {control: control.value for control in form.inputs} | {form.model: "gpu"}
    lookahead, jacobi, medusa = (form.settings[name] for name in ("lookahead", "jacobi", "medusa"))
    shown = form.change_model(given | {lookahead: ["defaults", CPU], jacobi: ["n=3"], medusa: [CPU]})
    assert lookahead not in shown and jacobi not in shown and shown[medusa] == ["defaults"]


def test_an_address_without_a_prompt_brings_one_that_its_model_understands(form: RaceForm) -> None:
    """The form kept the prompt of another model, which this one cannot answer."""
    form.app_state.catalog = {**form.app_state.catalog, POCKET.name: POCKET}
    began = form.prompt.example.value
    shown = form.show_state(read(f"model={POCKET.name}&methods=autoregressive,jacobi", form))
    first = examples_for(POCKET.model)[0]
    assert shown[form.prompt.example]["value"] == first.id != began
    assert shown[form.prompt.text]["value"] == first.prompt


def test_a_run_without_a_text_leaves_the_prompt_as_its_remark_says(form: RaceForm) -> None:
    assert form.prompt.text not in form.show_state(read("run=mine&methods=autoregressive,jacobi"))


def test_only_a_form_that_was_changed_holds_a_race(form: RaceForm) -> None:
    """Else the first run that is put into it would race the methods that the form begins with."""
    given = {control: control.value for control in form.inputs}
    assert form.current_race(given) is None
    assert form.current_race(given | {form.methods: ["jacobi"], form.prompt.text: " "}) is None
    race = form.current_race(given | {form.methods: ["jacobi"], form.settings["jacobi"]: ["n=3"]})
    assert race and race.lanes == {"jacobi": ("n=3",)} and race.prompt == form.prompt.text.value
    assert race.sampling["temperature"] == 0 and race.model == "toy" and race.length == 96
