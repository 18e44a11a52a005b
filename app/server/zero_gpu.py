"""Runs on ZeroGPU: a Space whose GPU is lent for seconds at a time, and charged to the visitor who starts a run.

Used only if the hub sets SPACES_ZERO_GPU. Models are placed when the server starts, before any visitor. A run is then a
generator that the package `spaces` calls in a process forked from this one, while it has the GPU. Only text passes
between the two: the run's order as JSON, and its record as the lines of a trace. Methods' memory and the caches of
conversations are not shared, so each run reads its whole prompt.

`spaces` starts by itself only if Gradio launches the page. This page is mounted on a server of its own, so `place`
starts it, and `show_server` lets it find the visitors' sockets, which the other process must not hold open.
`gpu_time` has how long the GPU is borrowed for.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import fields
from functools import partial
from io import StringIO
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import gradio as gr

from decoding.errors import ParamError, SpecscopeError
from decoding.methods import METHODS, Method
from decoding.sampling_params import Sampling
from decoding.trace.file import Texts, dump_line, parse_trace, write_trace
from decoding.trace.schema import to_json
from decoding.types import Step, Trace

from ..models.entry import CatalogEntry
from .gpu_time import AROUND, borrow, note_pace, seconds_for, seconds_of
from .limits import LIMITS
from .placed_run import PlacedRun

if TYPE_CHECKING:
    import uvicorn

    from decoding.codec import Prompt
    from decoding.engine import Engine
    from decoding.model.session import ProgressCallback
    from decoding.run import Run
    from decoding.trace.rescore import Rescore

_log = logging.getLogger(__name__)
_SKIPPED = {"Mistral 7B", "Qwen3 8B"}  # of the built-in list: 33 GB to fetch before the server answers
_engines = dict[str, "Engine"]()  # by the names of their entries
_on_gpu: Any = None  # _decode, as `spaces` calls it


def is_active() -> bool:
    """Return True on a ZeroGPU Space."""
    return os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true")


def place(catalog: MutableMapping[str, CatalogEntry]) -> None:
    """Load all models of a catalog, which `spaces` then packs; those that cannot be loaded leave the catalog.

    This must be the main thread, and nothing may have used CUDA before.
    """
    import spaces  # type: ignore[import-not-found, import-untyped, unused-ignore]  # only such Spaces have it
    from spaces.zero import startup  # type: ignore[import-not-found, import-untyped, unused-ignore]

    global _on_gpu
    for name, entry in list(catalog.items()):
        try:
            if name in _SKIPPED and entry.download:
                raise ParamError("it is too large to be fetched at each start")
            _engines[name] = engine = entry.load(_quiet)
            for method in METHODS:
                if engine.lacks(method) is None:
                    engine.prepare(method, _quiet)
        except SpecscopeError as error:
            _log.warning("%s is not offered: %s", name, error)
            _engines.pop(name, None)
            del catalog[name]
        else:
            catalog[name] = _PlacedEntry(**{each.name: getattr(entry, each.name) for each in fields(entry)})
    _on_gpu = spaces.GPU(duration=seconds_of)(_decode)
    startup()


def show_server(page: gr.Blocks, server: uvicorn.Server) -> None:
    """Pass the port of the visitors' connections to `spaces`."""
    page.server = server  # type: ignore[assignment]


def end() -> None:
    """End the processes that have had the GPU: they outlive this one, and keep its files open."""
    for child in multiprocessing.active_children():
        child.kill()


def _quiet(what: str, share: float) -> None:
    """Report nothing."""


class _PlacedEntry(CatalogEntry):
    """A model that has been placed."""

    __slots__ = ()

    @property
    def is_metered(self) -> bool:
        return True

    def load(self, report: ProgressCallback) -> Engine:
        return PlacedEngine(self.name, _engines[self.name])  # type: ignore[return-value]


class PlacedEngine:
    """Replaces an engine for runs and races; the real one decodes in the process with the GPU."""

    def __init__(self, name: str, engine: Engine) -> None:
        self._name = name
        self._last: PlacedRun | None = None
        self.model, self.codec = SimpleNamespace(card=engine.model.card), engine.codec
        self.encode, self.as_turn = engine.encode, engine.as_turn

    def __getattr__(self, name: str) -> Any:
        raise ParamError("on GPUs that are lent for seconds only runs and races are live: clone the page for the rest")

    def prepare(self, method: str, progress: ProgressCallback) -> None:
        """Do nothing: all parts were placed with the model."""

    def decode(
        self,
        prompt: Prompt,
        method: str | type[Method],
        params: Mapping[str, Any],
        sampling: Sampling,
        max_new_tokens: int,
        **options: Any,
    ) -> PlacedRun:
        """Start a run, as `Engine.decode` does."""
        name = method if isinstance(method, str) else method.name
        words: dict[str, Any] = {"prompt": prompt, "method": name, "params": params, "sampling": sampling.to_json()}
        words |= {"max_new_tokens": max_new_tokens, "reference": options.get("reference")}
        return self._start(words, options)

    def branch(self, trace: Trace, step: int, **options: Any) -> PlacedRun:
        """Start a run that continues another one, as `Engine.branch` does."""
        record = StringIO()
        write_trace(trace, record)
        words = {each: options[each] for each in ("node", "token", "keep", "name")}
        words |= {"method": trace.header.method, "max_new_tokens": trace.header.max_new_tokens}
        return self._start(words | {"trace": record.getvalue(), "step": step}, options)

    def rescore(self, trace: Trace) -> Rescore:
        """Return the check of the last run, which was made while it had the GPU."""
        last = self._last
        if last is None or trace.header is not last.header or (check := last.take_check()) is None:
            raise ParamError("the run was stopped before its text was checked")
        return check

    def _start(self, words: dict[str, Any], options: Mapping[str, Any]) -> PlacedRun:
        seconds = seconds_for(self._name, words["method"], words["max_new_tokens"])
        words |= {"seconds": seconds, "time_budget": options["time_budget"]}
        self._last = PlacedRun(
            self.codec,
            partial(borrow, _on_gpu, self._name, words),
            partial(note_pace, self._name, words["method"]),
            options["cancel"],
        )
        return self._last


def _decode(name: str, asked: str) -> Iterator[str]:
    """Decode and check a run, in the process with the GPU; yields its record line by line."""
    words, sent = json.loads(asked), set[int]()

    def texts(run: Run, step: Step | None = None) -> str:
        new = {token: text for token, text in run.texts(step).items() if token not in sent}
        sent.update(new)
        return dump_line("texts", Texts(new)) if new or step is None else ""

    try:
        run = _start(_engines[name], words)
        try:
            yield dump_line("header", run.header) + texts(run)
            for step in run:
                yield texts(run, step) + dump_line("step", step)
            yield dump_line("summary", run.summary)
        finally:
            run.close()
        if run.ids:
            yield json.dumps({"kind": "check", **to_json(_engines[name].rescore(run.trace))}) + "\n"
    except SpecscopeError as error:
        yield json.dumps({"kind": "refused", "sentence": str(error)}) + "\n"


def _start(engine: Engine, words: dict[str, Any]) -> Run:
    budget = min(LIMITS.seconds, words["time_budget"], words["seconds"] - AROUND)
    if "trace" in words:
        where = {each: words[each] for each in ("node", "token", "keep", "name")}
        return engine.branch(parse_trace(words["trace"]), words["step"], **where, record="full", time_budget=budget)
    asked = (words["prompt"], words["method"], words["params"], words["sampling"], words["max_new_tokens"])
    return engine.decode(*asked, record="full", time_budget=budget, reference=words["reference"])
