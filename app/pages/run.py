"""The page of one run: the form on the left, the viewer in the middle."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import gradio as gr

from decoding.errors import SpecscopeError
from decoding.methods import METHODS
from decoding.sampling import Sampling

from .. import address
from ..address import State
from ..controls import Order, named, order, preset, presets, runnable
from ..events import QUICK, tolerant
from ..examples import EXAMPLES
from ..hosting import fault
from ..limits import LIMITS
from ..state import House
from .form import MethodControls, PromptControls, SamplingControls, Update, chosen, prompt_of, transcript, values_of
from .form_values import gathered, pressed

# Which preset some values are, if any. The browser knows: values that a server would refuse are just no preset.
_NAMED = """(...values) => {
  const given = JSON.stringify(values);
  return Object.entries(%s).find(([, preset]) => JSON.stringify(preset) === given)?.[0] ?? "";
}"""


class RunForm:
    """The controls of the page, and what happens when they are used."""

    def __init__(self, house: House, viewer: gr.HTML) -> None:
        self.house, self.viewer = house, viewer
        entry = house.catalog[house.first]
        names = runnable(entry)
        first = chosen(entry, State())
        self.prompt = PromptControls.build("run")
        choices = [(METHODS[name].label, name) for name in names]
        self.method = gr.Dropdown(choices, value=first, label="Method", elem_id="run-method")
        self.methods = {name: MethodControls.build(name, name == first) for name in METHODS}
        with gr.Row(elem_classes="app-pair"):
            self.length = gr.Number(
                128, label="New tokens", minimum=1, maximum=LIMITS.new_tokens, precision=0, elem_id="run-length"
            )
            self.model = gr.Dropdown(list(house.catalog), value=house.first, label="Model", elem_id="run-model")
        with gr.Accordion("Sampling", open=False):
            self.sampling = SamplingControls.build("s")
        self.compare = gr.Checkbox(
            False, label="Measure the speedup", info="Runs autoregressive decoding as well", elem_id="run-compare"
        )
        with gr.Row(elem_classes="app-go"):
            self.run = gr.Button("Run", variant="primary", elem_id="run-go")
            self.stop = gr.Button("Stop", elem_id="run-stop")
        self.inputs = [self.method, self.length, self.model, self.compare, *self.prompt.controls]
        self.inputs += self.sampling.fields.values()
        self.inputs += [part for method in self.methods.values() for part in method.fields.values()]
        self.inputs += [method.reference for method in self.methods.values() if method.reference is not None]
        self.wire()

    def wire(self) -> None:
        """Events."""
        prompt = self.prompt
        prompt.wire()
        groups = [self.methods[name].group for name in self.methods]
        self.method.change(tolerant(self.show_method), self.method, groups, **QUICK)
        self.model.change(tolerant(self.show_model), [self.model, self.method], [self.method], **QUICK)
        outputs = [*prompt.outputs, self.method, *self.sampling.fields.values()]
        prompt.example.input(tolerant(self.show_example), prompt.example, outputs, **QUICK)
        for method in self.methods.values():
            if method.preset is not None:
                fields: list[Any] = list(method.fields.values())
                method.preset.input(tolerant(self.show_preset(method)), method.preset, fields, **QUICK)
                changed = [field.input for field in fields]
                settings = {name: list(values.values()) for name, values in presets(METHODS[method.name]).items()}
                gr.on(changed, None, fields, method.preset, js=_NAMED % json.dumps(settings))
        going = pressed(self.run, self.inputs, self.start, self.viewer)
        talk = [prompt.history, prompt.said, prompt.message]
        going.then(self.answered, prompt.message, talk, **QUICK)
        for another in (prompt.fresh.click, prompt.example.input):
            another(self.renew, None, None, **QUICK)
        self.stop.click(self.end, None, None, **QUICK)

    def order(self, given: dict[Any, Any]) -> Order:
        """What some values of the controls ask for."""
        name = given[self.method]
        method = self.methods.get(name) if isinstance(name, str) else None
        values = {key: given[component] for key, component in self.prompt.fields.items()}
        return order(
            self.house.catalog,
            model=given[self.model],
            method=name,
            params=values_of(METHODS[name].Params, method.fields, given) if method else {},
            sampling=values_of(Sampling, self.sampling.fields, given),
            prompt=prompt_of(values),
            max_new_tokens=given[self.length],
            reference=given[method.reference] if method and method.reference is not None else "",
            compare=given[self.compare],
        )

    def start(self, form: object, request: gr.Request) -> Iterator[str]:
        """A live run, as the viewer's growing value."""
        try:
            given = gathered(form, self.inputs)
            wanted = self.order(given)
        except SpecscopeError as error:
            yield fault(str(error))
            return
        example = given[self.prompt.example]
        query = address.write(wanted, example if isinstance(example, str) else None)
        yield from self.house.runs.start(wanted, _tab(request), query)

    def end(self, request: gr.Request) -> None:
        """Stop after the step that is going on."""
        self.house.runs.stop(_tab(request))

    def renew(self, request: gr.Request) -> None:
        """Another conversation begins."""
        self.house.runs.renew(_tab(request))

    def answered(self, message: object, request: gr.Request) -> Any:
        """The conversation goes on with the model's answer; what was typed since it was asked stays."""
        told = self.house.runs.answer(_tab(request))
        if told is None or not told[1].strip():
            return gr.skip(), gr.skip(), gr.skip()
        asked, answer = told
        said = [*(turn for turn in asked if turn["role"] != "system"), {"role": "assistant", "content": answer}]
        return json.dumps(said), transcript(said), "" if message == asked[-1]["content"] else gr.skip()

    def show_method(self, name: str) -> list[Any]:
        """The chosen method's parameters."""
        return [gr.update(visible=known == name) for known in self.methods]

    def show_model(self, name: str, method: str) -> Any:
        """The methods that a model has the parts for."""
        names = runnable(self.house.catalog[name])
        choices = [(METHODS[known].label, known) for known in names]
        return gr.update(choices=choices, value=method if method in names else names[0])

    def show_example(self, name: str) -> Update:
        """An example's prompt, with the method and the sampling that show its point."""
        shown = self.prompt.show_example(name, self.sampling)
        return shown | ({self.method: EXAMPLES[name].method} if name in EXAMPLES else {})

    def show_preset(self, method: MethodControls) -> Any:
        """Sets a method's parameters to a preset's."""

        def show(name: str) -> Any:
            values = list(preset(METHODS[method.name], name).values()) if name else [gr.skip()] * len(method.fields)
            return values[0] if len(values) == 1 else values

        return show

    def show_state(self, state: State) -> Update:
        """What an address asks for, in the controls."""
        shown: Update = {}
        if state.model:
            shown[self.model] = state.model
        if state.method in runnable(self.house.catalog[state.model or self.house.first]):
            shown[self.method] = state.method
            fields = self.methods[str(state.method)].fields
            shown |= {fields[name]: value for name, value in state.params.items()}
            if state.params and (menu := self.methods[str(state.method)].preset) is not None:
                shown[menu] = named(METHODS[str(state.method)], state.params)
            if (reference := self.methods[str(state.method)].reference) is not None:
                shown[reference] = state.reference
            shown |= {method.group: gr.update(visible=name == state.method) for name, method in self.methods.items()}
        shown |= {self.sampling.fields[name]: value for name, value in state.sampling.items()}
        if state.length:
            shown[self.length] = state.length
        if state.prompt is not None:
            shown |= self.prompt.show(state.prompt)
        elif state.example:
            shown |= self.show_example(state.example) | {self.prompt.example: state.example}
            if state.method:
                shown[self.method] = state.method
            shown |= {self.sampling.fields[name]: value for name, value in state.sampling.items()}
        return shown

    @property
    def outputs(self) -> list[Any]:
        """All that `show_state` may change."""
        fields = [part for method in self.methods.values() for part in (method.group, *method.fields.values())]
        own = [self.model, self.method, self.length, self.prompt.example, *self.prompt.outputs]
        own += [method.reference for method in self.methods.values() if method.reference is not None]
        own += [method.preset for method in self.methods.values() if method.preset is not None]
        return [*own, *self.sampling.fields.values(), *fields]


def build(house: House, viewer: gr.HTML) -> RunForm:
    """Lay the page out."""
    with gr.Row(elem_classes="app-page"):
        with gr.Column(elem_classes="app-form", min_width=280):
            form = RunForm(house, viewer)
        with gr.Column(elem_classes="app-view", min_width=320):
            viewer.render()
    return form


def _tab(request: gr.Request) -> str:
    return str(request.session_hash)
