"""The form for a visitor's own model, shown only if the owner starts the page with --bring-your-own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gradio as gr

from decoding.errors import SpecscopeError

from ..jobs.streaming import as_sentence
from ..models.own_models import LONGEST, OwnModels, labels
from ..state import AppState
from .events import DECODES

_HELP = (
    "Names of folders and files in the folder that this page was started with, or hub ids with their commit "
    "(org/name@ and 40 hex digits). The target may also be a model of this page, to combine it with other parts."
)
_POLL = 0.25  # seconds


class OwnForm:
    """Fields for a target and what goes with it, and the button that loads them."""

    def __init__(self, app_state: AppState, models: OwnModels) -> None:
        self._app_state, self._models = app_state, models
        with gr.Accordion("Your own model", open=False, elem_id="own"):
            gr.Markdown(_HELP, elem_classes="app-hint")
            self._fields = {
                part: gr.Textbox(label=label, max_lines=1, max_length=LONGEST, elem_id=f"own-{part}")
                for part, label in labels().items()
            }
            self._button = gr.Button("Load", elem_id="own-go")
            self._status = gr.Markdown("", visible=False, elem_classes="app-hint", elem_id="own-said")

    def wire(self, model: gr.Dropdown, race_model: gr.Dropdown) -> None:
        """Let a loaded model be chosen in both forms."""
        self._button.click(self.load, list(self._fields.values()), [self._status, model, race_model], **DECODES)

    def load(self, *values: object) -> Iterator[tuple[Any, Any, Any]]:
        """Load a model; the progress is shown below the button, and in the end the model can be chosen."""
        entry = None
        try:
            entry = self._models.add(dict(zip(self._fields, values, strict=True)))
            loading, phase = self._app_state.jobs.models.request(entry), ""
            while loading.wait(_POLL) is None:
                if loading.phase != phase:
                    phase = loading.phase
                    yield self._say(phase), gr.skip(), gr.skip()
        except SpecscopeError as error:
            if entry is not None:
                self._models.drop(entry)
            yield self._say(str(error)), gr.skip(), gr.skip()
            return
        names = list(self._app_state.catalog)
        yield (
            self._say(f"{entry.name} is loaded, and chosen above"),
            gr.update(choices=names, value=entry.name),
            gr.update(choices=names),
        )

    def _say(self, sentence: str) -> Any:
        # Escaped, because Markdown would make links and pictures of a visitor's words.
        plain = "".join(f"\\{letter}" if letter in r"\`*_{}[]()<>#+!|~&" else letter for letter in sentence[:400])
        return gr.update(value=as_sentence(plain), visible=True)
