"""The controls for the prompt: a message, a conversation or a raw text, and the examples that a model understands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr

from decoding.codec import Message
from decoding.errors import ParamError
from decoding.sampling import Sampling

from ..address import PageState
from ..controls import CheckedPrompt
from ..examples import EXAMPLES, Example, examples_for
from ..models.entry import CatalogEntry
from ..server.limits import LIMITS
from ..state import AppState
from .events import QUICK, tolerant
from .form import Component, Update, at_most
from .viewer import conversation

MESSAGE, CHAT, RAW = "Message", "Chat", "Raw"
_NO_EXAMPLE = ("None: write your own prompt", "")
# The hint on an example may be wrong for another prompt. It runs in the browser, at every key.
_LEAVE_EXAMPLE = f"""(written, example) => {{
  const same = {{ __type__: "update" }};
  return !example || {json.dumps([example.written for example in EXAMPLES.values()])}.includes(written)
    ? [same, same] : ["", ""];
}}"""


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
    def build(cls, prefix: str, entry: CatalogEntry, first: Example, guardrails: str) -> PromptControls:
        """Create the controls, with the examples that a model understands and the prompt of the first of them.

        `guardrails` says which are on.
        """
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
            **at_most(LIMITS.prompt_characters),
        )
        with gr.Group(visible=False, elem_classes="app-talk") as chat:
            longest = at_most(LIMITS.message_characters)
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
        if guardrails:
            gr.Markdown(guardrails, elem_classes="app-hint", elem_id=f"{prefix}-guardrails")
        return cls(mode, example, hint, text, chat, system, history, message, fresh)

    @property
    def fields(self) -> dict[str, Component]:
        """The controls whose values make up the prompt."""
        names = ("mode", "example", "text", "system", "message", "history")
        return {name: getattr(self, name) for name in names}

    def values(self, given: Mapping[Any, Any]) -> dict[str, Any]:
        """Return the values of these controls among the inputs of an event."""
        return {name: given[component] for name, component in self.fields.items()}

    @property
    def controls(self) -> list[Component]:
        """The same controls as a list."""
        return list(self.fields.values())

    def wire(self) -> None:
        """Connect the events: switching between text and conversation, and a new conversation."""

        def shown(mode: str) -> tuple[Any, Any]:
            return gr.update(visible=mode != CHAT), gr.update(visible=mode == CHAT)

        self.mode.change(tolerant(shown), self.mode, [self.text, self.chat], **QUICK)
        other_box = f"(mode, text, message, example) => ({_LEAVE_EXAMPLE})(mode === '{CHAT}' ? message : text, example)"
        boxes = [self.mode, self.text, self.message, self.example]
        self.mode.change(None, boxes, [self.example, self.hint], js=other_box, **QUICK)
        for written in (self.text, self.message):
            written.change(None, [written, self.example], [self.example, self.hint], js=_LEAVE_EXAMPLE, **QUICK)
        self.fresh.click(lambda: ("[]", ""), None, [self.history, self.message], **QUICK)

    def show(self, prompt: CheckedPrompt, example: str = "", raw: bool = False) -> Update:
        """Put a prompt into the controls."""
        chosen = EXAMPLES.get(example)
        hint = {self.hint: gr.update(value=chosen.shows if chosen else "", visible=chosen is not None)}
        if isinstance(prompt, str):
            shown = {self.mode: RAW if raw else MESSAGE, self.text: gr.update(value=prompt, visible=True)}
            return hint | shown | self._chat(False, [])
        system = prompt[0]["content"] if prompt[0]["role"] == "system" else ""
        rest = list(prompt[1:] if system else prompt)
        shown = {self.mode: CHAT, self.text: gr.update(visible=False), self.system: system}
        return {**hint, **shown, self.message: rest[-1]["content"], **self._chat(True, rest[:-1])}

    def show_example(self, name: str, sampling: Mapping[str, Component]) -> Update:
        """Put an example's prompt, and the sampling that goes with it, into the controls."""
        example = EXAMPLES.get(name)
        if example is None:
            return {self.hint: gr.update(value="", visible=False)}
        values = {**Sampling().to_json(), **example.sampling}
        shown = self.show(example.prompt or tuple(dict(message) for message in example.messages), name)
        return shown | {sampling[key]: value for key, value in values.items()}

    def choose_example(self, entry: CatalogEntry, name: str | None) -> Any:
        """Offer the examples that a model understands, and select one of them, or none."""
        offered = any(example.id == name for example in examples_for(entry.model))
        return gr.update(choices=_choices(entry), value=name if offered else "")

    def show_model(self, entry: CatalogEntry, sampling: Mapping[str, Component], values: Mapping[str, Any]) -> Update:
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


def _choices(entry: CatalogEntry) -> list[tuple[str, str]]:
    return [_NO_EXAMPLE, *((example.label, example.id) for example in examples_for(entry.model))]


def prompt_of(values: Mapping[str, Any]) -> str | list[Message]:
    """Return the prompt that the values of the controls make up."""
    if values["mode"] != CHAT:
        return values["text"] if isinstance(values["text"], str) else ""
    message, system, history = values["message"], values["system"], values["history"]
    if not isinstance(message, str) or not message.strip():
        raise ParamError("write a message first")
    first = [{"role": "system", "content": system}] if isinstance(system, str) and system.strip() else []
    return [*first, *_turns(history), {"role": "user", "content": message}]


def _turns(history: object) -> list[Any]:
    """Return the earlier turns; the caller must check each of them."""
    try:
        turns = json.loads(history) if isinstance(history, str) else []
    except (ValueError, RecursionError):
        turns = None
    if not isinstance(turns, list):
        raise ParamError("the conversation cannot be read: begin a new one")
    return turns


def entry_for(app_state: AppState, state: PageState) -> CatalogEntry:
    """Return the model that an address names, else the default, or another that understands the address's example."""
    default = app_state.catalog[app_state.default_model]
    if state.model is not None:
        return app_state.catalog[state.model]
    example = EXAMPLES.get(state.example or "")
    entries = (default, *app_state.catalog.values())
    return next((entry for entry in entries if example in examples_for(entry.model)), default)
