"""The form of the page of one run: its controls, and what they show."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import gradio as gr

from decoding.methods import METHODS
from decoding.sampling import Sampling

from .. import address
from ..address import PageState
from ..controls import Order, order, runnable
from ..examples import EXAMPLES, examples_for
from ..models.catalog import choose
from ..presets import best_preset, is_for_a_model, preset, preset_name, presets
from ..settings_from_run import settings_from_run
from ..state import AppState
from .events import QUICK, event_address, tolerant
from .form import (
    MethodControls,
    Update,
    answer_line,
    choices_of,
    length_bounds,
    length_field,
    model_menu,
    sampling_controls,
    values_of,
)
from .form_values import on_choice
from .own import OwnForm
from .prompt_controls import RAW, PromptControls, entry_for, prompt_of

# Finds the preset that has the given values. It runs in the browser: values that the server would refuse match none.
_FIND_PRESET = """(...values) => {
  const given = JSON.stringify(values);
  return Object.entries(%s).find(([, preset]) => JSON.stringify(preset) === given)?.[0] ?? "";
}"""


class RunForm:
    """The controls, and those of their events that only change the form."""

    def __init__(self, app_state: AppState) -> None:
        self.app_state = app_state
        entry = app_state.catalog[app_state.default_model]
        names, example = runnable(entry), examples_for(entry.model)[0]
        first = example.method if example.method in names else names[0]
        self.prompt = PromptControls.build("run", entry, example, app_state.jobs.guardrails.sentence)
        self.method = gr.Dropdown(choices_of(names), value=first, label="Method", elem_id="run-method")
        self.methods = {name: MethodControls.build(name, name == first, best_preset(name, entry)) for name in METHODS}
        with gr.Row(elem_classes="app-pair"):
            self.length = length_field(128, "run", entry)
            self.model = model_menu(app_state, "run")
        self.own_form = None if app_state.own_models is None else OwnForm(app_state, app_state.own_models)
        with gr.Accordion("Sampling", open=False):
            self.sampling = sampling_controls("s")
        self.compare = gr.Checkbox(
            False,
            label="Measure the speed-up",
            info="Decodes the prompt again, in turn with autoregressive decoding, up to three times",
            elem_id="run-compare",
        )
        with gr.Row(elem_classes="app-go"):
            answer_line()
            self.run = gr.Button("Run", variant="primary", elem_id="run-go")
            self.beside = gr.Button("Run beside", elem_id="run-beside")
            self.stop = gr.Button("Stop", elem_id="run-stop")
        self.inputs = [self.method, self.length, self.model, self.compare, *self.prompt.controls]
        self.inputs += self.sampling.values()
        self.inputs += [part for method in self.methods.values() for part in method.fields.values()]
        self.inputs += [method.reference for method in self.methods.values() if method.reference is not None]
        self.wire()

    def wire(self) -> None:
        """Connect the events."""
        prompt = self.prompt
        prompt.wire()
        groups = [self.methods[name].group for name in self.methods]
        self.method.change(tolerant(self.show_method), self.method, groups, **QUICK)
        self.model.change(tolerant(self.show_model), [self.model, self.method], [self.method, self.length], **QUICK)
        outputs = [*prompt.outputs, self.method, *self.sampling.values()]
        prompt.example.input(tolerant(self.show_example), [prompt.example, self.model], outputs, **QUICK)
        for method in self.methods.values():
            if method.preset is not None:
                fields: list[Any] = list(method.fields.values())
                method.preset.input(tolerant(self.show_preset(method)), method.preset, fields, **QUICK)
                changed = [field.input for field in fields]
                settings = {name: list(values.values()) for name, values in presets(METHODS[method.name]).items()}
                gr.on(changed, None, fields, method.preset, js=_FIND_PRESET % json.dumps(settings))
        menus = [method.preset for method in self.methods.values() if method.preset is not None]
        on_choice(self.model, [self.model, *prompt.controls, *menus], self.change_model, self.outputs)

    def order(self, given: dict[Any, Any]) -> Order:
        """Check the values of the controls; returns them as an order."""
        name = given[self.method]
        method = self.methods.get(name) if isinstance(name, str) else None
        values = self.prompt.values(given)
        return order(
            self.app_state.catalog,
            model=given[self.model],
            method=name,
            params=values_of(METHODS[name].Params, method.fields, given) if method else {},
            sampling=values_of(Sampling, self.sampling, given),
            prompt=prompt_of(values),
            max_new_tokens=given[self.length],
            reference=given[method.reference] if method and method.reference is not None else "",
            compare=given[self.compare],
            raw=values["mode"] == RAW,
        )

    def fill(self, query: Mapping[str, str]) -> Update:
        """Put the settings that an address names, or the run in it, into the controls, with a hint on what is left."""
        state, remarks = settings_from_run(self.app_state, query)
        shown = self.show_state(state)
        if remarks:
            shown[self.prompt.hint] = gr.update(value=" ".join(remarks), visible=True)
        return shown

    def use_settings(self, event: gr.EventData) -> Update:
        """Put the method and the parameters that an address names into the controls."""
        return self._show_method(address.parse(event_address(event), self.app_state.catalog))

    def show_method(self, name: str) -> list[Any]:
        """Show the parameters of the selected method."""
        return [gr.update(visible=each == name) for each in self.methods]

    def show_model(self, name: str, method: str) -> Any:
        """Offer the methods whose parts a model has, and the lengths that it may write."""
        names = runnable(entry := choose(self.app_state.catalog, name))
        methods = gr.update(choices=choices_of(names), value=method if method in names else names[0])
        return methods, gr.update(**length_bounds(entry))

    def change_model(self, given: dict[Any, Any]) -> Update:
        """Offer a model's examples, and select its fastest presets in the place of another model's."""
        entry = choose(self.app_state.catalog, given[self.model])
        shown = self.prompt.show_model(entry, self.sampling, self.prompt.values(given))
        for name, method in self.methods.items():
            if method.preset is not None and is_for_a_model(name, given[method.preset]):
                best = best_preset(name, entry)
                settings = preset(METHODS[name], best)
                shown |= {method.preset: best} | {field: settings[key] for key, field in method.fields.items()}
        return shown

    def show_example(self, name: str, model: str) -> Update:
        """Put an example's prompt into the controls, with its sampling and, where the model can run it, its method."""
        shown, example = self.prompt.show_example(name, self.sampling), EXAMPLES.get(name)
        fits = example is not None and example.method in runnable(choose(self.app_state.catalog, model))
        return shown | ({self.method: example.method} if example is not None and fits else {})

    def show_preset(self, method: MethodControls) -> Any:
        """Return a handler that sets a method's parameters to those of a preset."""

        def show(name: str) -> Any:
            values = list(preset(METHODS[method.name], name).values()) if name else [gr.skip()] * len(method.fields)
            return values[0] if len(values) == 1 else values

        return show

    def show_state(self, state: PageState) -> Update:
        """Put the state that an address describes into the controls."""
        entry = entry_for(self.app_state, state)
        shown: Update = {self.model: entry.name}
        if state.method in runnable(entry):
            shown |= self._show_method(state)
            if (reference := self.methods[str(state.method)].reference) is not None:
                shown[reference] = state.reference
        if state.length:
            shown[self.length] = state.length
        if state.prompt is not None:
            shown |= self.prompt.show(state.prompt, state.example or "", state.raw)
            shown[self.prompt.example] = self.prompt.choose_example(entry, state.example)
        elif state.example:
            shown |= self.show_example(state.example, entry.name)
            shown[self.prompt.example] = self.prompt.choose_example(entry, state.example)
            if state.method:
                shown[self.method] = state.method
        return shown | {self.sampling[name]: value for name, value in state.sampling.items()}

    def _show_method(self, state: PageState) -> Update:
        """Select the method of a state, with its parameters."""
        if state.method is None:
            return {self.method: gr.skip()}
        method = self.methods[state.method]
        shown: Update = {self.method: state.method}
        shown |= {method.fields[name]: value for name, value in state.params.items()}
        if state.params and method.preset is not None:
            shown[method.preset] = preset_name(METHODS[state.method], state.params)
        return shown | {each.group: gr.update(visible=name == state.method) for name, each in self.methods.items()}

    @property
    def outputs(self) -> list[Any]:
        """All components that `show_state` may change."""
        parts = [self.model, self.method, self.length, self.prompt.example, *self.prompt.outputs]
        for method in self.methods.values():
            parts += [method.group, *method.fields.values(), *filter(None, (method.reference, method.preset))]
        return [*parts, *self.sampling.values()]
