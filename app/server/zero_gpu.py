"""Runs on ZeroGPU: a Space whose GPU is lent for seconds at a time, and counted against the visitor who asks.

Nothing here happens unless the hub sets SPACES_ZERO_GPU. Models are placed when the server starts, before any visitor.
A run is then a generator that the package `spaces` calls in a process forked from this one, while it has the GPU; only
texts pass between the two: the run's order as JSON, and its record as the lines of a trace. What methods learnt and
the caches of conversations stay out of it: each run reads its prompt anew.

`spaces` starts by itself only if Gradio launches the page. This page is mounted on a server of its own, so `place`
starts it, and `show_server` lets it find the visitors' sockets, which the other process must not hold open.
`gpu_time` has how long the GPU is borrowed for.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import closing
from contextvars import copy_context
from dataclasses import fields
from io import StringIO
from queue import SimpleQueue
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import gradio as gr

from decoding.errors import ParamError, SpecscopeError
from decoding.methods import METHODS, Method
from decoding.sampling_params import Sampling
from decoding.trace.file import Texts, dump_line, parse_trace, write_trace
from decoding.trace.metrics import summarise
from decoding.trace.schema import from_json, to_json
from decoding.types import Header, Step, Summary, Trace

from ..models.entry import CatalogEntry
from .gpu_time import AROUND, borrow, note_pace, seconds_for, seconds_of
from .limits import LIMITS

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
    """Tell `spaces` on which port visitors are connected."""
    page.server = server  # type: ignore[assignment]


def end() -> None:
    """End the processes that have had the GPU: they ignore the end of this one, and hold what it had open."""
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
    """Stands for an engine, as far as runs and races need one; the real one decodes in the process with the GPU."""

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
        self._last = PlacedRun(self, self._name, words, options["cancel"])
        return self._last


class PlacedRun(Iterator[Step]):
    """A run in the process with the GPU: what the page needs of `decoding.run.Run`, from the lines of its record."""

    def __init__(self, engine: PlacedEngine, name: str, words: dict[str, Any], cancel: threading.Event) -> None:
        self.steps = list[Step]()
        self._check: Rescore | None = None
        self._summary: Summary | None = None
        self._codec, self._cancel = engine.codec, cancel
        self._texts = dict[int, str]()
        self._closed, self._lines = threading.Event(), SimpleQueue[str | Exception | None]()
        # The thread keeps the context: `spaces` finds the visitor there, who has the quota.
        threading.Thread(target=copy_context().run, args=(self._fetch, name, words), daemon=True).start()
        self.header = self._read_header()

    def __next__(self) -> Step:
        while (line := self._take()) is not None:
            kind, value = line
            if kind == "step":
                self.steps.append(value)
                return value  # type: ignore[no-any-return]
            if kind == "summary":
                break
        raise StopIteration

    def close(self) -> None:
        """End the run after its current step; one that has ended is still being checked."""
        if self._summary is None:
            self._closed.set()

    @property
    def ids(self) -> tuple[int, ...]:
        """Return the new tokens so far."""
        return tuple(token for step in self.steps for token in step.emitted)

    @property
    def finish(self) -> str | None:
        """Return why the run ended, in the words of `Summary.finish`; None while it goes on."""
        if self._summary is None:
            return "cancelled" if self._closed.is_set() else None
        return self._summary.finish

    @property
    def summary(self) -> Summary:
        """Return the run's summary, or that of what is there of it."""
        if self._summary is not None:
            return self._summary
        text = self._codec.continuation(self.header.prompt, self.ids)
        cut: Summary = summarise(self.steps, "cancelled", text)
        return cut

    @property
    def trace(self) -> Trace:
        """Return the record so far."""
        return Trace(self.header, tuple(self.steps), self.summary, dict(sorted(self._texts.items())))

    def texts(self, step: Step | None = None) -> dict[int, str]:
        """Return display texts, at least those that a step uses."""
        return dict(self._texts)

    def take_check(self) -> Rescore | None:
        """Wait for the check, which follows the run; None if the run was stopped."""
        while self._check is None and self._take() is not None:
            pass
        return self._check

    def _read_header(self) -> Header:
        """Wait for the GPU, and for what comes before the first step."""
        header = None
        while (line := self._take()) is not None:
            kind, value = line
            header = value if kind == "header" else header
            if kind == "texts" and header is not None:
                return header  # type: ignore[no-any-return]
        raise SpecscopeError("stopped before it began")

    def _take(self) -> tuple[str, Any] | None:
        """Return the next line's kind and value; None at the end."""
        while True:
            taken = self._lines.get()
            if isinstance(taken, Exception):
                raise taken
            if taken is None:
                self._lines.put(None)  # for whoever asks again: nothing else ever comes
                return None
            data = json.loads(taken)
            kind = data.pop("kind")
            if kind == "refused":
                raise SpecscopeError(data["sentence"])
            value: Any = from_json(_types()[kind], data, kind)
            if kind == "texts":
                self._texts |= value.texts
            elif kind == "summary":
                self._summary = value
            elif kind == "check":
                self._check = value
            return kind, value

    def _fetch(self, name: str, words: dict[str, Any]) -> None:
        """Take the run's lines from the other process, in a thread, as long as somebody waits for them."""
        begun, tokens = 0.0, 0
        try:
            with closing(borrow(_on_gpu, name, words)) as texts:
                for text in texts:
                    begun = begun or time.monotonic()
                    for line in text.splitlines():
                        self._lines.put(line)
                        tokens += len(json.loads(line).get("emitted", ()))
                    if self._cancel.is_set() or self._closed.is_set():
                        break
            if tokens:
                note_pace(name, words["method"], (time.monotonic() - begun) / tokens)
        except Exception as error:
            self._lines.put(error)
        finally:
            self._lines.put(None)


def _types() -> dict[str, type]:
    from decoding.trace.rescore import Rescore  # brings torch

    return {"header": Header, "texts": Texts, "step": Step, "summary": Summary, "check": Rescore}


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
