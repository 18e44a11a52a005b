"""The public face: an engine holds a model (and a drafter), checks what it is asked for, and runs it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import ParamError
from .lending import Lender
from .methods import Method
from .model.session import Model
from .request import (
    Request,
    check_count,
    check_ends,
    check_record,
    check_room,
    check_seconds,
    check_stops,
    find_method,
    find_sampling,
)
from .rescore import Rescore, rescore
from .run import Run
from .sampling import Sampling
from .text import Codec, Message
from .types import JSON, Summary, Trace

Prompt = str | Sequence[int] | Sequence[Message]
_CHUNK = 512  # tokens of a prompt per pass, where no sliding window asks for fewer


@dataclass(frozen=True, slots=True)
class Result:
    """A finished run: new tokens only."""

    text: str
    ids: tuple[int, ...]
    trace: Trace
    summary: Summary


class Engine:
    """Runs decoding methods on a model. Make one with `decoding.load`."""

    def __init__(self, model: Model, codec: Codec, draft: Model | None = None) -> None:
        self.model, self.codec, self.draft = model, codec, draft
        self._lender = Lender()

    def encode(self, prompt: Prompt) -> list[int]:
        """Ids of a text, of a chat through the model's own template, or of ids themselves, checked."""
        if isinstance(prompt, str):
            ids = self.codec.encode(prompt)
        elif isinstance(prompt, Sequence) and prompt and isinstance(prompt[0], Mapping):
            ids = self.codec.encode_chat(prompt)  # type: ignore[arg-type]  # it checks every message
        elif isinstance(prompt, Sequence) and prompt:
            ids = list(prompt)  # type: ignore[arg-type]  # every id is checked below
        else:
            raise ParamError("the prompt is empty: give a text, a chat or token ids")
        for token in ids:
            check_count("each token id of the prompt", token, 0, self.model.card.vocabulary - 1)
        return ids

    def decode(
        self,
        prompt: Prompt,
        method: str | type[Method] = "autoregressive",
        params: Mapping[str, JSON] | None = None,
        sampling: Mapping[str, JSON] | Sampling | None = None,
        max_new_tokens: int = 128,
        *,
        stop: Sequence[str] = (),
        end_tokens: Sequence[int] | None = None,
        reference: Prompt | None = None,
        record: str = "light",
        prefill_chunk: int | None = None,
        time_budget: float = float("inf"),
        cancel: threading.Event | None = None,
    ) -> Run:
        """Start a run: iterate over it for its steps. All arguments are checked here, before the first step.

        `reference` is a document that copying methods look in beside the text; `end_tokens` replaces the model's
        own ends of text; `prefill_chunk` is the number of prompt tokens per pass; setting `cancel` ends the run.
        """
        kind = find_method(method)
        if "draft_model" in kind.needs and self.draft is None:
            raise ParamError(
                f"{kind.name} needs a drafter: load the engine with draft= (--draft), a model with the same tokenizer"
            )
        ids = self.encode(prompt)
        size = self.model.card.vocabulary
        request = Request(
            method=kind,
            params=kind.Params.parse(params or {}),
            sampling=find_sampling(sampling),
            prompt=tuple(ids),
            max_new_tokens=check_room(len(ids), max_new_tokens, self.model.card.context),
            stop=check_stops(stop),
            end_tokens=self.codec.end_tokens if end_tokens is None else check_ends(end_tokens, size),
            reference=tuple(self.encode(reference)) if reference else (),
            record=check_record(record),
            prefill_chunk=min(self.model.window or _CHUNK, _CHUNK)
            if prefill_chunk is None
            else check_count("prefill_chunk", prefill_chunk, 1, 65_536),
            time_budget=check_seconds(time_budget),
        )
        return Run(request, self.model, self.draft, self.codec, self._lender, cancel or threading.Event())

    def generate(self, prompt: Prompt, method: str | type[Method] = "autoregressive", **options: Any) -> Result:
        """Run to the end; takes what `decode` takes."""
        run = self.decode(prompt, method, **options)
        for _ in run:
            pass
        return Result(run.summary.text, run.ids, run.trace, run.summary)

    def rescore(self, trace: Trace) -> Rescore:
        """Check every emitted token of a run against one plain pass over its text."""
        return rescore(trace, self.model, self._lender)
