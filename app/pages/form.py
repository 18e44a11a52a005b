"""The controls: prompt, method, sampling; generated from what methods say of their parameters."""

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
from decoding.types import JSON

from ..address import State
from ..catalog import Entry
from ..controls import Message, Prompt, presets, runnable, typed
from ..events import QUICK, tolerant
from ..examples import EXAMPLES
from ..limits import LIMITS

Component = gr.components.Component
Update = dict[Any, Any]  # component -> what gradio makes of it
TEXT, CHAT = "Text", "Chat"
_OWN = "own settings"  # the name of settings that are no preset
_SLIDES = 64  # a whole number with more values than this is typed, not slid
_PROMPT = "What is the dish of Ablow?"
_CUT = 3  # times what the server takes: a browser cuts without a word, and a text that is refused is told of
_HOTTEST = 2.0  # the page's slider; the command line goes further


def control(row: Mapping[str, JSON], prefix: str) -> Component:
    """The control of one parameter, with the paper's symbol and its help."""
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
    if low is not None and high is not None and (high - low <= _SLIDES or kind == "float" and high <= 2):
        step = 1 if kind == "int" else 0.01
        return gr.Slider(low, high, step=step, **common)
    return gr.Number(minimum=low, maximum=high, precision=0 if kind == "int" else None, **common)


@dataclass(slots=True)
class MethodControls:
    """One method's parameters in a group that shows while the method is chosen."""

    name: str
    group: gr.Group
    preset: gr.Dropdown | None
    fields: dict[str, Component]
    reference: gr.Textbox | None  # a document to copy from, for a method that does

    @classmethod
    def build(cls, name: str, visible: bool) -> MethodControls:
        """Parameters that the paper names first, then the rest, folded away."""
        kind, rows = METHODS[name], METHODS[name].Params.describe()
        prefix = f"p-{name}".replace("_", "-")
        known = list(presets(kind))
        chief = [row for row in rows if row["symbol"] != row["name"] or len(row["name"]) == 1] or rows[:3]
        rest = [row for row in rows if row not in chief]
        with gr.Group(visible=visible, elem_classes="app-method") as group:
            menu = _presets(known, prefix) if known[1:] else None
            fields = {row["name"]: control(row, prefix) for row in chief}
            reference = _reference(prefix) if kind.takes_reference else None
            if rest:
                with gr.Accordion("More settings", open=False):
                    fields |= {row["name"]: control(row, prefix) for row in rest}
        return cls(name, group, menu, {row["name"]: fields[row["name"]] for row in rows}, reference)


def _presets(names: list[str], prefix: str) -> gr.Dropdown:
    """Which settings are chosen; those that are no preset have a name, too."""
    return gr.Dropdown([*names, (_OWN, "")], value=names[0], label="Preset", elem_id=f"{prefix}-preset")


def _reference(prefix: str) -> gr.Textbox:
    return gr.Textbox(
        label="Reference document",
        info="Copied from beside the text: a source that the answer may quote",
        lines=2,
        max_lines=8,
        max_length=_CUT * LIMITS.reference_characters,
        elem_id=f"{prefix}-reference",
    )


@dataclass(slots=True)
class SamplingControls:
    """How the next token is chosen."""

    fields: dict[str, Component] = field(default_factory=dict)

    @classmethod
    def build(cls, prefix: str) -> SamplingControls:
        """Temperature and seed in sight, filters folded away."""
        rows = {row["name"]: row for row in Sampling.describe()}
        rows["temperature"] = {**rows["temperature"], "max": _HOTTEST}
        made = {name: control(rows[name], prefix) for name in ("temperature", "seed")}
        with gr.Accordion("Filters", open=False):
            made |= {name: control(row, prefix) for name, row in rows.items() if name not in made}
        return cls({name: made[name] for name in rows})


@dataclass(slots=True)
class PromptControls:
    """A raw text, or a conversation that goes on."""

    mode: gr.Radio
    example: gr.Dropdown
    hint: gr.Markdown
    text: gr.Textbox
    chat: gr.Group
    system: gr.Textbox
    said: gr.Textbox
    message: gr.Textbox
    fresh: gr.Button
    history: gr.Textbox  # the conversation so far as JSON: the page keeps it, and the server nothing

    @classmethod
    def build(cls, prefix: str) -> PromptControls:
        """Everything that becomes the prompt."""
        choices = [("No example: my own prompt", ""), *((example.label, example.id) for example in EXAMPLES.values())]
        example = gr.Dropdown(choices, value="", label="Example", elem_id=f"{prefix}-example")
        hint = gr.Markdown("", visible=False, elem_classes="app-hint")
        mode = gr.Radio([TEXT, CHAT], value=TEXT, label="Prompt", elem_id=f"{prefix}-mode", elem_classes="app-mode")
        text = gr.Textbox(
            _PROMPT,
            label="Text",
            lines=3,
            max_lines=10,
            max_length=_CUT * LIMITS.prompt_characters,
            elem_id=f"{prefix}-prompt",
        )
        with gr.Group(visible=False, elem_classes="app-talk") as chat:
            longest = _CUT * LIMITS.message_characters
            system = gr.Textbox(label="System prompt", max_lines=4, max_length=longest, elem_id=f"{prefix}-system")
            said = gr.Textbox(label="So far", lines=2, max_lines=10, interactive=False, elem_id=f"{prefix}-said")
            message = gr.Textbox(label="Message", lines=2, max_length=longest, elem_id=f"{prefix}-message")
            fresh = gr.Button("New conversation", size="sm", elem_id=f"{prefix}-fresh")
            history = gr.Textbox("[]", visible=False, elem_id=f"{prefix}-history")
        return cls(mode, example, hint, text, chat, system, said, message, fresh, history)

    @property
    def fields(self) -> dict[str, Component]:
        """What a run reads."""
        names = ("mode", "example", "text", "system", "message", "history")
        return {name: getattr(self, name) for name in names}

    @property
    def controls(self) -> list[Component]:
        """The same as a list."""
        return list(self.fields.values())

    def wire(self) -> None:
        """Text or conversation, and a new one."""

        def shown(mode: str) -> tuple[Any, Any]:
            return gr.update(visible=mode != CHAT), gr.update(visible=mode == CHAT)

        self.mode.change(tolerant(shown), self.mode, [self.text, self.chat], **QUICK)
        self.fresh.click(lambda: ("[]", "", ""), None, [self.history, self.said, self.message], **QUICK)

    def show(self, prompt: Prompt, example: str = "") -> Update:
        """Put a prompt into the controls."""
        told = EXAMPLES.get(example)
        hint = {self.hint: gr.update(value=told.shows if told else "", visible=told is not None)}
        if isinstance(prompt, str):
            return {**hint, self.mode: TEXT, self.text: gr.update(value=prompt, visible=True), **self._chat(False, [])}
        system = prompt[0]["content"] if prompt[0]["role"] == "system" else ""
        rest = list(prompt[1:] if system else prompt)
        shown = {self.mode: CHAT, self.text: gr.update(visible=False), self.system: system}
        return {**hint, **shown, self.message: rest[-1]["content"], **self._chat(True, rest[:-1])}

    def show_example(self, name: str, sampling: SamplingControls) -> Update:
        """An example's prompt, with the sampling that shows its point."""
        example = EXAMPLES.get(name)
        if example is None:
            return {self.hint: gr.update(visible=False)}
        values = {**Sampling().to_json(), **example.sampling}
        shown = self.show(example.prompt or tuple(dict(message) for message in example.messages), name)
        return shown | {sampling.fields[key]: value for key, value in values.items()}

    def _chat(self, visible: bool, history: list[Message]) -> Update:
        told = {self.history: json.dumps(history), self.said: transcript(history)}
        return {self.chat: gr.update(visible=visible), **told}

    @property
    def outputs(self) -> list[Any]:
        """All that `show` may change."""
        return [self.mode, self.hint, self.text, self.chat, self.system, self.said, self.message, self.history]


def transcript(history: list[Message]) -> str:
    """A conversation as plain text."""
    return "\n".join(f"{message['role'].capitalize()}: {message['content']}" for message in history)


def prompt_of(values: Mapping[str, Any]) -> str | list[Message]:
    """The prompt that some values of the controls mean."""
    if values["mode"] != CHAT:
        return values["text"] if isinstance(values["text"], str) else ""
    message, system, history = values["message"], values["system"], values["history"]
    if not isinstance(message, str) or not message.strip():
        raise ParamError("write a message first")
    first = [{"role": "system", "content": system}] if isinstance(system, str) and system.strip() else []
    return [*first, *_turns(history), {"role": "user", "content": message}]


def _turns(history: object) -> list[Any]:
    """The turns before; whoever reads the prompt checks each."""
    try:
        told = json.loads(history) if isinstance(history, str) else []
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, list):
        raise ParamError("the conversation cannot be read: begin a new one")
    return told


def values_of(cls: type[Params], fields: Mapping[str, Component], given: Mapping[Any, Any]) -> dict[str, JSON]:
    """A settings class's values out of an event's inputs."""
    return typed(cls, {name: given[component] for name, component in fields.items()})


def chosen(entry: Entry, state: State) -> str:
    """The method to show first: the address's if this model can run it."""
    names = runnable(entry)
    return state.method if state.method in names else "lookahead" if "lookahead" in names else names[0]
