"""The controls for prompt, method and sampling, generated from the methods' parameter descriptions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from decoding.errors import ParamError
from decoding.methods import METHODS
from decoding.params import Params
from decoding.sampling import Sampling
from decoding.tuned import TUNED
from decoding.types import JSON

from ..address import PageState
from ..catalog import Entry
from ..controls import Message, Prompt, presets, typed
from ..events import QUICK, tolerant
from ..examinations import KINDS
from ..examples import EXAMPLES, Example, examples_for
from ..limits import LIMITS
from ..state import AppState
from ..viewer import conversation

Component = gr.components.Component
Update = dict[Any, Any]  # component -> its new value, or gr.update
MESSAGE, CHAT, RAW = "Message", "Chat", "Raw"
_OWN = "own settings"  # shown for settings that match no preset
_SLIDER_VALUES = 64  # a whole number with more possible values gets a number field, not a slider
_NO_EXAMPLE = ("None: write your own prompt", "")
_ABOUT_PRESETS = "“on a CPU”: the fastest settings there, as measured. “defaults”: the paper's, which suit a GPU."
# What the hint says of an example need not hold for another prompt. It runs in the browser, at every key.
_PROMPTS = json.dumps({example.id: example.written for example in EXAMPLES.values()})
_LEAVE_EXAMPLE = f"""(written, example) => {{
  const same = {{ __type__: "update" }};
  return !example || Object.values({_PROMPTS}).includes(written) ? [same, same] : ["", ""];
}}"""
_MAX_TEMPERATURE = 2.0  # of the page's slider; the command line accepts more


def control(row: Mapping[str, JSON], prefix: str) -> Component:
    """The control of a parameter, labelled with its name, its symbol in the paper, and its help."""
    name, kind, low, high = row["name"], row["type"], row["min"], row["max"]
    label = row["label"] if row["symbol"] == name and len(name) > 1 else f"{row['label']} ({row['symbol']})"
    common: dict[str, Any] = {
        "label": label,
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

    @classmethod
    def build(cls, name: str, visible: bool, chosen: str) -> MethodControls:
        """Create the controls, with the values of the `chosen` preset.

        The parameters that the paper names come first, the others are in a closed accordion.
        """
        kind, known = METHODS[name], presets(METHODS[name])
        rows = [row | {"default": known[chosen][row["name"]]} for row in kind.Params.describe()]
        prefix = f"p-{name}".replace("_", "-")
        named = [row for row in rows if row["symbol"] != row["name"] or len(row["name"]) == 1] or rows[:3]
        rest = [row for row in rows if row not in named]
        with gr.Group(visible=visible, elem_classes="app-method") as group:
            menu = _presets(list(known), chosen, prefix) if len(known) > 1 else None
            fields = {row["name"]: control(row, prefix) for row in named}
            reference = _reference(prefix) if kind.takes_reference else None
            if rest:
                with gr.Accordion("More settings", open=False):
                    fields |= {row["name"]: control(row, prefix) for row in rest}
            doctor = _doctor(prefix) if name in KINDS else None
        return cls(name, group, menu, {row["name"]: fields[row["name"]] for row in rows}, reference, doctor)


def _presets(names: list[str], chosen: str, prefix: str) -> gr.Dropdown:
    """Create the menu of presets; settings that match none of them are shown as own settings."""
    about = _ABOUT_PRESETS if set(TUNED) & set(names) else None
    return gr.Dropdown([*names, (_OWN, "")], value=chosen, label="Preset", info=about, elem_id=f"{prefix}-preset")


def _doctor(prefix: str) -> gr.Button:
    return gr.Button("Doctor: is it wired well?", size="sm", elem_id=f"{prefix}-doctor", elem_classes="app-examine")


def _at_most(characters: int, info: str = "") -> dict[str, Any]:
    """Name the limit of a text field, in words and for the page's script, which counts (text_limits.js)."""
    limit = f"up to {characters:,} characters"
    return {
        "info": f"{info} ({limit})" if info else limit.capitalize(),
        "elem_classes": f"app-most-{characters}",
    }


def answer_line() -> gr.HTML:
    """Where the page's script says what came of a press on the button below it."""
    return gr.HTML('<p class="app-said" role="status"></p>', html_template="${value}", apply_default_css=False)


def length_field(tokens: int, prefix: str) -> gr.Number:
    """The field for the number of new tokens."""
    most = LIMITS.new_tokens
    return gr.Number(
        tokens,
        label="New tokens",
        info=f"1 to {most}",
        minimum=1,
        maximum=most,
        precision=0,
        elem_id=f"{prefix}-length",
    )


def _reference(prefix: str) -> gr.Textbox:
    return gr.Textbox(
        label="Reference document",
        lines=2,
        max_lines=8,
        elem_id=f"{prefix}-reference",
        **_at_most(
            LIMITS.reference_characters, "A document that the answer may quote: guesses are copied from it and the text"
        ),
    )


@dataclass(slots=True)
class SamplingControls:
    """The controls of sampling."""

    fields: dict[str, Component] = field(default_factory=dict)

    @classmethod
    def build(cls, prefix: str) -> SamplingControls:
        """Create the controls: temperature and seed, and the filters in a closed accordion."""
        rows = {row["name"]: row for row in Sampling.describe()}
        rows["temperature"] = {**rows["temperature"], "max": _MAX_TEMPERATURE}
        made = {name: control(rows[name], prefix) for name in ("temperature", "seed")}
        with gr.Accordion("Filters", open=False):
            made |= {name: control(row, prefix) for name, row in rows.items() if name not in made}
        return cls({name: made[name] for name in rows})


@dataclass(slots=True)
class PromptControls:
    """The controls of the prompt: a message, the next message of a conversation, or a text without a template."""

    mode: gr.Radio
    example: gr.Dropdown
    hint: gr.Markdown
    text: gr.Textbox
    chat: gr.Group
    system: gr.Textbox
    history: gr.HTML  # the conversation so far as JSON, stored in the page only
    message: gr.Textbox
    fresh: gr.Button  # begins a new conversation

    @classmethod
    def build(cls, prefix: str, entry: Entry, first: Example) -> PromptControls:
        """Create the controls, with the examples that a model understands and the prompt of the first of them."""
        example = gr.Dropdown(_choices(entry), value=first.id, label="Example", elem_id=f"{prefix}-example")
        hint = gr.Markdown(first.shows, elem_classes="app-hint")
        mode = gr.Radio(
            [MESSAGE, CHAT, RAW], value=MESSAGE, label="Prompt", elem_id=f"{prefix}-mode", elem_classes="app-mode"
        )
        text = gr.Textbox(
            first.prompt,
            label="Text",
            lines=3,
            max_lines=10,
            elem_id=f"{prefix}-prompt",
            **_at_most(LIMITS.prompt_characters),
        )
        with gr.Group(visible=False, elem_classes="app-talk") as chat:
            longest = _at_most(LIMITS.message_characters)
            system = gr.Textbox(label="System prompt", max_lines=4, elem_id=f"{prefix}-system", **longest)
            history = conversation(f"{prefix}-history")
            message = gr.Textbox(
                label="Message",
                lines=2,
                placeholder="Write the next message, then press Run",
                elem_id=f"{prefix}-message",
                **longest,
            )
            fresh = gr.Button("New conversation", size="sm", elem_id=f"{prefix}-fresh")
        return cls(mode, example, hint, text, chat, system, history, message, fresh)

    @property
    def fields(self) -> dict[str, Component]:
        """The controls whose values make up the prompt."""
        names = ("mode", "example", "text", "system", "message", "history")
        return {name: getattr(self, name) for name in names}

    @property
    def controls(self) -> list[Any]:
        """The same controls as a list."""
        return list(self.fields.values())

    def wire(self) -> None:
        """Connect the events: switching between text and conversation, and a new conversation."""

        def shown(mode: str) -> tuple[Any, Any]:
            return gr.update(visible=mode != CHAT), gr.update(visible=mode == CHAT)

        self.mode.change(tolerant(shown), self.mode, [self.text, self.chat], **QUICK)
        for written in (self.text, self.message):
            written.change(None, [written, self.example], [self.example, self.hint], js=_LEAVE_EXAMPLE, **QUICK)
        self.fresh.click(lambda: ("[]", ""), None, [self.history, self.message], **QUICK)

    def show(self, prompt: Prompt, example: str = "", raw: bool = False) -> Update:
        """Put a prompt into the controls."""
        known = EXAMPLES.get(example)
        hint = {self.hint: gr.update(value=known.shows if known else "", visible=known is not None)}
        if isinstance(prompt, str):
            shown = {self.mode: RAW if raw else MESSAGE, self.text: gr.update(value=prompt, visible=True)}
            return hint | shown | self._chat(False, [])
        system = prompt[0]["content"] if prompt[0]["role"] == "system" else ""
        rest = list(prompt[1:] if system else prompt)
        shown = {self.mode: CHAT, self.text: gr.update(visible=False), self.system: system}
        return {**hint, **shown, self.message: rest[-1]["content"], **self._chat(True, rest[:-1])}

    def show_example(self, name: str, sampling: SamplingControls) -> Update:
        """Put an example's prompt, and the sampling that goes with it, into the controls."""
        example = EXAMPLES.get(name)
        if example is None:
            return {self.hint: gr.update(value="", visible=False)}
        values = {**Sampling().to_json(), **example.sampling}
        shown = self.show(example.prompt or tuple(dict(message) for message in example.messages), name)
        return shown | {sampling.fields[key]: value for key, value in values.items()}

    def choose_example(self, entry: Entry, name: str | None) -> Any:
        """Offer the examples that a model understands, and select one of them, or none."""
        offered = any(example.id == name for example in examples_for(entry.model))
        return gr.update(choices=_choices(entry), value=name if offered else "")

    def show_model(self, entry: Entry, sampling: SamplingControls, values: Mapping[str, Any]) -> Update:
        """Offer a model's examples; an unchanged example of another language gives way to the first of them."""
        examples, selected = examples_for(entry.model), EXAMPLES.get(values["example"])
        if selected is None or selected in examples:
            return {self.example: gr.update(choices=_choices(entry))}
        written = values["message"] if values["mode"] == CHAT else values["text"]
        if written != selected.written:
            return {self.example: self.choose_example(entry, None)}
        first = examples[0].id
        return self.show_example(first, sampling) | {self.example: self.choose_example(entry, first)}

    def _chat(self, visible: bool, history: list[Message]) -> Update:
        return {self.chat: gr.update(visible=visible), self.history: json.dumps(history)}

    @property
    def outputs(self) -> list[Any]:
        """All components that `show` may change."""
        return [self.mode, self.hint, self.text, self.chat, self.system, self.history, self.message]


def _choices(entry: Entry) -> list[tuple[str, str]]:
    return [_NO_EXAMPLE, *((example.label, example.id) for example in examples_for(entry.model))]


def prompt_of(values: Mapping[str, Any]) -> str | list[Message]:
    """The prompt that the values of the controls make up."""
    if values["mode"] != CHAT:
        return values["text"] if isinstance(values["text"], str) else ""
    message, system, history = values["message"], values["system"], values["history"]
    if not isinstance(message, str) or not message.strip():
        raise ParamError("write a message first")
    first = [{"role": "system", "content": system}] if isinstance(system, str) and system.strip() else []
    return [*first, *_turns(history), {"role": "user", "content": message}]


def _turns(history: object) -> list[Any]:
    """The earlier turns; the caller must check each of them."""
    try:
        turns = json.loads(history) if isinstance(history, str) else []
    except (ValueError, RecursionError):
        turns = None
    if not isinstance(turns, list):
        raise ParamError("the conversation cannot be read: begin a new one")
    return turns


def values_of(cls: type[Params], fields: Mapping[str, Component], given: Mapping[Any, Any]) -> dict[str, JSON]:
    """The values of a settings class among the inputs of an event."""
    return typed(cls, {name: given[component] for name, component in fields.items()})


def entry_for(app_state: AppState, state: PageState) -> Entry:
    """Return the model that an address names, else the default, or another that understands the address's example."""
    default = app_state.catalog[app_state.default_model]
    if state.model is not None:
        return app_state.catalog[state.model]
    example = EXAMPLES.get(state.example or "")
    entries = (default, *app_state.catalog.values())
    return next((entry for entry in entries if example in examples_for(entry.model)), default)
