"""The page of one run: the form on the left, the viewers in the middle, and the jobs that its buttons start."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr

from .. import address
from ..branch_from_run import branch_of
from ..controls import Order
from ..jobs.examination import Examination
from ..jobs.landscape import RunLandscape, landscape_of
from ..jobs.live_run import LiveRun
from ..jobs.runner import Job
from ..jobs.settings_race import SettingsRace
from ..models.catalog import choose
from ..settings_from_run import order_of, settings_from_run
from ..state import AppState
from .events import DECODES, QUICK, event_address, start_job, tab_of, tolerant
from .form_values import on_click, parse_values
from .run_form import RunForm
from .viewer import drawn


class RunJobs:
    """The jobs that the buttons of the form and its viewers start, and the viewers that show them."""

    def __init__(self, app_state: AppState, form: RunForm, viewer: gr.HTML) -> None:
        self.app_state, self.form, self.viewer = app_state, form, viewer
        functions = app_state.calls.functions()
        # Before the first examination, or the first race of settings, these two take no room.
        self.doctor, self.settings = drawn("doctor", functions), drawn("settings", functions, acts=("fill",))
        self.landscape = drawn("landscape", functions, acts=("measure", "end"))

    def wire(self) -> None:
        """Connect the events."""
        form, prompt = self.form, self.form.prompt
        run = on_click([form.run], form.inputs, self.start, self.viewer)
        beside = on_click([form.beside], form.inputs, self.start_beside, self.viewer)
        again = self.viewer.again(self.start_again, None, self.viewer, **DECODES)
        for started in (run, beside, again):
            started.then(self.show_answer, prompt.message, [prompt.history, prompt.message], **QUICK)
        for another in (prompt.fresh.click, prompt.example.input):
            another(self.end_conversation, None, None, **QUICK)
        self.viewer.branch(self.start_branch, None, self.viewer, **DECODES)
        for method in form.methods.values():
            if method.doctor is not None:
                on_click([method.doctor], [form.model], self.examine(method.name), self.doctor)
        tuners = [method.tuner for method in form.methods.values() if method.tuner is not None]
        on_click(tuners, form.inputs, self.race_settings, self.settings)
        self.settings.fill(tolerant(form.use_settings), None, form.outputs, **QUICK)
        self.landscape.measure(self.measure, None, self.landscape, **DECODES)
        self.landscape.end(self.end_landscape, None, None, **QUICK)
        form.stop.click(self.end, None, None, **QUICK)

    def start(self, values: object, request: gr.Request) -> Iterator[str]:
        """Start a live run; yields the growing value of the viewer."""
        yield from start_job(self.app_state, lambda: self._from_controls(values), request)

    def start_beside(self, values: object, request: gr.Request) -> Iterator[str]:
        """Start a live run that is shown beside the one on the screen."""
        yield from start_job(self.app_state, lambda: self._from_controls(values, fresh=True, beside=True), request)

    def start_again(self, event: gr.EventData, request: gr.Request) -> Iterator[str]:
        """Start a live run with the settings of the run that an address names."""

        def again() -> Job:
            state, _ = settings_from_run(self.app_state, event_address(event))
            return self._live_run(order_of(self.app_state, state), state.example, fresh=True)

        yield from start_job(self.app_state, again, request)

    def start_branch(self, event: gr.EventData, request: gr.Request) -> Iterator[str]:
        """Start a run beside the one that an address names, continuing from the position in the address."""

        def branch() -> Job:
            chosen, fork = branch_of(self.app_state, event_address(event))
            return LiveRun(chosen, "", fresh=True, beside=True, branch=fork.query)

        yield from start_job(self.app_state, branch, request)

    def _from_controls(self, values: object, fresh: bool = False, beside: bool = False) -> Job:
        given = parse_values(values, self.form.inputs)
        example = given[self.form.prompt.example]
        return self._live_run(self.form.order(given), example if isinstance(example, str) else None, fresh, beside)

    def _order(self, values: object) -> Order:
        return self.form.order(parse_values(values, self.form.inputs))

    def _live_run(self, chosen: Order, example: str | None, fresh: bool, beside: bool = False) -> Job:
        """Return the live run of an order that began with an example."""
        query, lacks = address.write(chosen, example), address.missing_texts(chosen, example)
        return LiveRun(chosen, query, fresh, beside, left_out=lacks)

    def examine(self, method: str) -> Callable[[object, gr.Request], Iterator[str]]:
        """Return a handler that has a method's drafter examined; it yields the growing value of its viewer."""

        def start(values: object, request: gr.Request) -> Iterator[str]:
            def examination() -> Job:
                model = parse_values(values, [self.form.model])[self.form.model]
                return Examination(choose(self.app_state.catalog, model), method)

            yield from start_job(self.app_state, examination, request)

        return start

    def race_settings(self, values: object, request: gr.Request) -> Iterator[str]:
        """Race the settings of the selected method; yields the growing value of their viewer."""
        yield from start_job(self.app_state, lambda: SettingsRace(self._order(values)), request)

    def measure(self, event: gr.EventData, request: gr.Request) -> Iterator[str]:
        """Measure the landscape of the run that an address names; yields the growing value of its viewer."""
        yield from start_job(self.app_state, lambda: landscape_of(self.app_state, event_address(event)), request)

    def end(self, request: gr.Request) -> None:
        """Cancel the run and the tab's other jobs: they end after the current step."""
        self.app_state.jobs.stop(tab_of(request), LiveRun, Examination, SettingsRace, RunLandscape)

    def end_landscape(self, request: gr.Request) -> None:
        """Cancel the landscape: it keeps the methods that were measured until then."""
        self.app_state.jobs.stop(tab_of(request), RunLandscape)

    def end_conversation(self, request: gr.Request) -> None:
        """Delete the conversation, because another one begins."""
        self.app_state.jobs.tabs.end_conversation(tab_of(request))

    def show_answer(self, message: object, request: gr.Request) -> Any:
        """Add the model's answer to the conversation; a message that was typed meanwhile is not cleared."""
        exchange = self.app_state.jobs.tabs.take_exchange(tab_of(request))
        if exchange is None or not exchange[1].strip():
            return gr.skip(), gr.skip()
        prompt, answer = exchange
        turns = [*(turn for turn in prompt if turn["role"] != "system"), {"role": "assistant", "content": answer}]
        return json.dumps(turns), "" if message == prompt[-1]["content"] else gr.skip()


def build(app_state: AppState, viewer: gr.HTML) -> RunForm:
    """Lay out the page."""
    with gr.Row(elem_classes="app-page"):
        with gr.Column(elem_classes="app-form", min_width=280, elem_id="run-form"):
            form = RunForm(app_state)
        jobs = RunJobs(app_state, form, viewer)
        with gr.Column(elem_classes="app-view", min_width=320):
            jobs.doctor.render()
            jobs.settings.render()
            viewer.render()
            jobs.landscape.render()
        jobs.wire()
    return form
