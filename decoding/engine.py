"""The public interface: an engine holds a model (and a drafter) and runs decoding methods on it."""

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
        """Return a text as a turn of a chat if the model has a chat template, else the text itself.

        The toy's table only continues texts: it was counted on too few answers to chat.
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
        """Start a run: iterate over it to take its steps. All arguments are checked here, before the first step.

        `params` are the method's settings by name, and `sampling` those of `Sampling`; `DecodeOptions` has the rest.
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
        """Start a run that continues another one from a step in which different tokens are written.

        Give `node`, a guess of the step's tree, to write that guess and those on the path to it. Or give `token`, an id
        or a text, to write it after the first `keep` tokens of the step; without `keep` it replaces the step's last
        token. Method, settings, seed and total length are the other run's. The method starts with the text alone,
        without what earlier runs learnt. `name` is the other run's name in the header.
        """
        return Run(build_branch(self, trace, step, node, token, keep, name, options), self)

    def prepare(self, method: str | type[Method], progress: Callable[[str, float], None]) -> None:
        """Make the parts that a method needs, so that its first run need not wait for them."""
        self.parts.take(find_method(method).needs, progress)

    def part(self, name: str, progress: Callable[[str, float], None] | None = None) -> Any:
        """Return one of this engine's parts, by its name in a method's `needs`."""
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
        """Run to the end, with the arguments of `decode`."""
        run = self.decode(prompt, method, params, sampling, max_new_tokens, **options)
        for _ in run:
            pass
        return Result(run.summary.text, run.ids, run.trace, run.summary)

    def rescore(self, trace: Trace, progress: Callable[[str, float], None] | None = None) -> Rescore:
        """Check every emitted token of a run by reading its text in one plain pass."""
        if not isinstance(trace, Trace):
            raise ParamError("give a trace: a result's, or one from decoding.trace.read_trace")
        return rescore(trace, self.model, self.session_pool, progress)
