"""The public face: an engine holds a model (and a drafter), checks what it is asked for, and runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Unpack

from .branch import build_branch
from .codec import Prompt
from .errors import ParamError
from .loaded import Loaded
from .methods import Method, find_method
from .request import DecodeOptions, build_request
from .run import Run
from .sampling import Sampling
from .trace.rescore import Rescore, rescore
from .types import JSON, Summary, Trace


@dataclass(frozen=True, slots=True)
class Result:
    """A finished run: new tokens only."""

    text: str
    ids: tuple[int, ...]
    trace: Trace
    summary: Summary


class Engine(Loaded):
    """Runs decoding methods on a model. Make one with `decoding.load`."""

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

    def rescore(self, trace: Trace, progress: Callable[[str, float], None] | None = None) -> Rescore:
        """Check every emitted token of a run against one plain pass over its text."""
        if not isinstance(trace, Trace):
            raise ParamError("give a trace: a result's, or one from decoding.trace.read_trace")
        return rescore(trace, self.model, self.session_pool, progress)
