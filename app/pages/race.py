"""The page of a race: several methods, or settings of a method, on one prompt, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gradio as gr

from decoding.errors import ParamError
from decoding.methods import METHODS
from decoding.request import find_sampling
from decoding.sampling import Sampling

from .. import address
from ..address import PageState
from ..controls import Order, check_prompt, order, runnable
from ..examples import Example, examples_for
from ..jobs.race import Race
from ..jobs.runner import Job
from ..lanes import check_lanes, example_of
from ..models.catalog import choose
from ..models.entry import CatalogEntry
from ..presets import DEFAULTS, best_preset, is_for_a_model, presets
from ..server.limits import LIMITS
from ..state import AppState
from .events import QUICK, start_job, tab_of, tolerant
from .form import (
    Update,
    answer_line,
    choices_of,
    length_bounds,
    length_field,
    model_menu,
    sampling_controls,
    values_of,
)
from .form_values import on_choice, on_click, parse_values
from .prompt_controls import RAW, PromptControls, entry_for, prompt_of
from .viewer import race_viewer

RACED = "bridge"  # the example that the form begins with, where the model understands it: all usual methods gain on it
USUAL = ("autoregressive", "lookahead", "draft_model", "prompt_lookup")
_LANES = f"A lane for each method, or for each of its settings below: 2 to {LIMITS.lanes} lanes"


class RaceForm:
    """The form of the page: its controls and their events."""

    def __init__(self, app_state: AppState, viewer: gr.HTML) -> None:
        self.app_state, self.viewer = app_state, viewer
        entry = app_state.catalog[app_state.default_model]
        names = runnable(entry)
        self.prompt = PromptControls.build("race", entry, _first_example(entry), app_state.jobs.guardrails.sentence)
        usual = [name for name in USUAL if name in names]
        self.methods = gr.CheckboxGroup(
            choices_of(names),
            value=usual,
            label="Methods",
            info=_LANES,
            elem_id="race-methods",
            elem_classes="app-lanes",
        )
        self.settings: dict[str, gr.Dropdown] = {}
        with gr.Accordion("Settings of the methods", open=False) as self.all_settings:
            for name, kind in METHODS.items():
                if presets(kind).keys() != {DEFAULTS}:
                    self.settings[name] = gr.Dropdown(
                        list(presets(kind)),
                        value=[best_preset(name, entry)],
                        multiselect=True,
                        max_choices=LIMITS.lanes,
                        allow_custom_value=True,
                        label=kind.label,
                        info=f"Presets, or type your own: {example_of(kind)}",
                        visible=name in usual,
                        elem_id=f"race-{name}",
                    )
        with gr.Row(elem_classes="app-pair"):
            self.length = length_field(96, "race", entry)
            self.model = model_menu(app_state, "race")
        with gr.Accordion("Sampling", open=False):
            self.sampling = sampling_controls("race-s")
        with gr.Row(elem_classes="app-go"):
            answer_line()
            self.run = gr.Button("Race", variant="primary", elem_id="race-go")
            self.stop = gr.Button("Stop", elem_id="race-stop")
        self.inputs = [self.methods, self.length, self.model, *self.prompt.controls]
        self.inputs += [*self.sampling.values(), *self.settings.values()]
        self.began = {control: control.value for control in (self.methods, self.prompt.text)}
        self.wire()

    def wire(self) -> None:
        """Connect the events."""
        prompt = self.prompt
        prompt.wire()
        self.methods.change(tolerant(self.show_settings), self.methods, list(self.settings.values()), **QUICK)
        self.model.change(tolerant(self.show_model), [self.model, self.methods], [self.methods, self.length], **QUICK)
        outputs = [*prompt.outputs, *self.sampling.values()]
        settings = list(self.settings.values())
        changed = [prompt.example, *outputs, *settings]
        on_choice(self.model, [self.model, *prompt.controls, *settings], self.change_model, changed)
        prompt.example.input(tolerant(self.show_example), prompt.example, outputs, **QUICK)
        on_click([self.run], self.inputs, self.start, self.viewer)
        self.stop.click(self.end, None, None, **QUICK)

    def orders(self, given: dict[Any, Any]) -> list[Order]:
        """Check the values of the controls; returns one order for each lane."""
        values = self.prompt.values(given)
        prompt = prompt_of(values)
        names = {name: self._names(name, given) for name in given[self.methods]}
        return [
            order(
                self.app_state.catalog,
                model=given[self.model],
                method=kind.name,
                params=params.to_json(),
                sampling=values_of(Sampling, self.sampling, given),
                prompt=prompt,
                max_new_tokens=given[self.length],
                raw=values["mode"] == RAW,
            )
            for kind, params in check_lanes(names)
        ]

    def current_race(self, given: dict[Any, Any]) -> PageState | None:
        """Return the race in the controls; None if they hold what the form begins with, or no prompt."""
        if all(given[control] == value for control, value in self.began.items()):
            return None
        values = self.prompt.values(given)
        try:
            prompt = check_prompt(prompt_of(values))
            sampling = find_sampling(values_of(Sampling, self.sampling, given)).to_json()
        except ParamError:
            return None
        lanes = {name: tuple(self._names(name, given)) for name in given[self.methods]}
        raw, length = values["mode"] == RAW, given[self.length]
        return PageState(model=given[self.model], lanes=lanes, sampling=sampling, prompt=prompt, raw=raw, length=length)

    def _names(self, method: str, given: dict[Any, Any]) -> list[str]:
        """Return the names of the settings with which a method is to race."""
        return list(given[self.settings[method]]) if method in self.settings else [DEFAULTS]

    def start(self, form: object, request: gr.Request) -> Iterator[str]:
        """Start a race; yields the growing value of the viewer."""

        def race() -> Job:
            given = parse_values(form, self.inputs)
            orders, chosen = self.orders(given), given[self.prompt.example]
            example = chosen if isinstance(chosen, str) else None
            return Race(orders, address.write_race(orders, example), address.missing_texts(orders[0], example))

        yield from start_job(self.app_state, race, request)

    def end(self, request: gr.Request) -> None:
        """Cancel the race: it ends after the current step."""
        self.app_state.jobs.stop(tab_of(request), Race)

    def show_settings(self, names: list[str]) -> list[Any]:
        """Show the settings of the selected methods."""
        return [gr.update(visible=name in names) for name in self.settings]

    def change_model(self, given: dict[Any, Any]) -> Update:
        """Offer a model's examples, and select its fastest presets in the place of another model's.

        Several settings of a method stay as they are: a visitor has put them together.
        """
        entry = choose(self.app_state.catalog, given[self.model])
        shown = self.prompt.show_model(entry, self.sampling, self.prompt.values(given))
        for name, menu in self.settings.items():
            if len(chosen := given[menu]) == 1 and is_for_a_model(name, chosen[0]):
                shown[menu] = [best_preset(name, entry)]
        return shown

    def show_model(self, name: str, methods: list[str]) -> Any:
        """Offer the methods whose parts a model has, and the lengths that it may write."""
        names = runnable(entry := choose(self.app_state.catalog, name))
        offered = gr.update(choices=choices_of(names), value=[method for method in methods if method in names])
        return offered, gr.update(**length_bounds(entry))

    def show_example(self, name: str) -> Update:
        """Put an example's prompt and sampling into the controls."""
        return self.prompt.show_example(name, self.sampling)

    def show_state(self, state: PageState) -> Update:
        """Put the state that an address describes into the controls."""
        entry = entry_for(self.app_state, state)
        shown: Update = {self.model: entry.name}
        lanes = {name: names for name, names in state.lanes.items() if name in runnable(entry)}
        if sum(map(len, lanes.values())) > 1:
            shown[self.methods] = list(lanes)
            for name, menu in self.settings.items():
                shown[menu] = gr.update(visible=name in lanes, value=list(lanes.get(name, (DEFAULTS,))))
            if any(names[1:] for names in lanes.values()):
                shown[self.all_settings] = gr.update(open=True)
        if state.length:
            shown[self.length] = state.length
        example = state.example
        if example is None and state.prompt is None and state.run is None:
            example = _first_example(entry).id  # the prompt in the form may be one that this model does not understand
        if example:
            shown |= self.show_example(example)
        if state.prompt is not None:
            shown |= self.prompt.show(state.prompt, example or "", state.raw)
        if example or state.prompt is not None:
            shown[self.prompt.example] = self.prompt.choose_example(entry, example)
        return shown | {self.sampling[name]: value for name, value in state.sampling.items()}

    @property
    def outputs(self) -> list[Any]:
        """All components that `show_state` may change."""
        parts = [self.model, self.methods, self.all_settings, self.length, self.prompt.example, *self.prompt.outputs]
        return [*parts, *self.sampling.values(), *self.settings.values()]


def _first_example(entry: CatalogEntry) -> Example:
    """Return the example that the form begins with for a model."""
    examples = examples_for(entry.model)
    return next((example for example in examples if example.id == RACED), examples[0])


def build(app_state: AppState) -> RaceForm:
    """Lay out the page."""
    viewer = race_viewer(app_state)
    with gr.Row(elem_classes="app-page"):
        with gr.Column(elem_classes="app-form", min_width=280, elem_id="race-form"):
            form = RaceForm(app_state, viewer)
        with gr.Column(elem_classes="app-view", min_width=320):
            viewer.render()
    return form
