"""The public face: an engine holds a model (and a drafter), checks what it is asked for, and runs it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from .branch import build_branch
from .codec import Codec
from .errors import ParamError
from .landscape import landscape
from .methods import Method
from .model.session import Model
from .parts import Parts
from .request import DecodeOptions, Prompt, build_request, check_count, find_method
from .run import Run
from .sampling import Sampling
from .session_pool import SessionPool
from .trace.rescore import Rescore, rescore
from .types import JSON, Summary, Trace


@dataclass(frozen=True, slots=True)
class Result:
    """A finished run: new tokens only."""

    text: str
    ids: tuple[int, ...]
    trace: Trace
    summary: Summary


class Engine:
    """Runs decoding methods on a model. Make one with `decoding.load`."""

    def __init__(self, model: Model, codec: Codec, draft: Model | None = None, parts: Parts | None = None) -> None:
        self.model, self.codec, self.draft = model, codec, draft
        self.parts = parts or Parts()
        self.memory: dict[str, Any] = {}  # what methods learn for later runs, by method
        self.session_pool = SessionPool()

    def encode(self, prompt: Prompt, name: str = "prompt") -> list[int]:
        """Ids of a text, of a chat through the model's own template, or of ids themselves, checked."""
        if isinstance(prompt, str):
            ids = self.codec.encode(prompt)
        elif isinstance(prompt, bytes | bytearray) or not isinstance(prompt, Sequence):
            raise ParamError(f"the {name} must be a text, a list of messages or a list of token ids")
        elif prompt and isinstance(prompt[0], Mapping):
            ids = self.codec.encode_chat(prompt)  # type: ignore[arg-type]  # it checks every message
        else:
            ids = list(prompt)  # type: ignore[arg-type]  # every id is checked below
        if not ids:
            raise ParamError(f"the {name} is empty: write at least one character, or give one token id")
        for token in ids:
            check_count(f"each token id of the {name}", token, 0, self.model.card.vocabulary - 1)
        return ids

    def as_turn(self, text: str) -> Prompt:
        """A text as a turn of a chat, where the model has a template for it; the text itself elsewhere.

        A table continues texts: of what answers look like it has counted too little.
        """
        chats = self.codec.has_chat_template and self.model.card.family != "table"
        return [{"role": "user", "content": text}] if chats else text

    def decode(
        self,
        prompt: Prompt,
        method: str | type[Method] = "autoregressive",
        params: Mapping[str, JSON] | None = None,
        sampling: Mapping[str, JSON] | Sampling | None = None,
        max_new_tokens: int = 128,
        **options: Unpack[DecodeOptions],
    ) -> Run:
        """Start a run: iterate over it for its steps. All arguments are checked here, before the first step.

        `params` are the method's settings by name, `sampling` those of `Sampling`; `DecodeOptions` names the rest.
        """
        return Run(build_request(self, prompt, method, params, sampling, max_new_tokens, options), self)

    def branch(
        self,
        trace: Trace,
        step: int,
        *,
        node: int | None = None,
        token: int | str | None = None,
        keep: int | None = None,
        name: str = "",
        **options: Unpack[DecodeOptions],
    ) -> Run:
        """Start a run that goes on from a step of another one as if that had written something else there.

        Give `node`, a guess of the step's tree: the guesses on the way to it and it are written. Or give `token`, an id
        or a text: it is written behind the first `keep` tokens that the step wrote, instead of its last one if `keep`
        is left out. Method, settings and seed are the other run's, and so is the end of its length. The method begins
        with the text alone, and without what earlier runs learnt. `name` is what the header calls the other run.
        """
        return Run(build_branch(self, trace, step, node, token, keep, name, options), self)

    def lacks(self, method: str | type[Method]) -> str | None:
        """What this engine lacks to run a method, and how to get it; None where it can run it."""
        needs = find_method(method).needs
        cannot = next((why for what, why in sorted(self.model.lacks.items()) if what in needs), None)
        return cannot or self.parts.missing(needs, has_draft=self.draft is not None)

    def prepare(self, method: str | type[Method], progress: Callable[[str, float], None]) -> None:
        """Make now what a method needs and what its first run would otherwise wait for."""
        self.parts.take(find_method(method).needs, progress)

    def part(self, name: str, progress: Callable[[str, float], None] | None = None) -> Any:
        """One of the parts that this engine was loaded with, by the name in a method's `needs`."""
        needs = frozenset({name})
        if missing := self.parts.missing(needs, has_draft=False):
            raise ParamError(f"this engine lacks {missing}")
        return self.parts.take(needs, progress or (lambda what, share: None))[name]

    def generate(
        self,
        prompt: Prompt,
        method: str | type[Method] = "autoregressive",
        params: Mapping[str, JSON] | None = None,
        sampling: Mapping[str, JSON] | Sampling | None = None,
        max_new_tokens: int = 128,
        **options: Unpack[DecodeOptions],
    ) -> Result:
        """Run to the end; takes what `decode` takes."""
        run = self.decode(prompt, method, params, sampling, max_new_tokens, **options)
        for _ in run:
            pass
        return Result(run.summary.text, run.ids, run.trace, run.summary)

    def landscape(
        self,
        text: Prompt,
        methods: Sequence[str] | Mapping[str, Mapping[str, JSON]] | None = None,
        *,
        first: int = 1,
        max_new_tokens: int = 128,
        cancel: threading.Event | None = None,
        progress: Callable[[str, float], None] | None = None,
    ) -> dict[str, JSON]:
        """For every place of a text: how many guesses of each method the target would accept if a step began there.

        `methods` are names, or settings by name; without them all that this engine can run. Places before `first` are
        left out. A step may write as much as a run of `max_new_tokens` may. Greedy, and plain JSON: see `docs/api.md`.
        """
        return landscape(self, text, methods, first, max_new_tokens, cancel, progress)

    def rescore(self, trace: Trace, progress: Callable[[str, float], None] | None = None) -> Rescore:
        """Check every emitted token of a run against one plain pass over its text."""
        if not isinstance(trace, Trace):
            raise ParamError("give a trace: a result's, or one from decoding.trace.read_trace")
        return rescore(trace, self.model, self.session_pool, progress)
