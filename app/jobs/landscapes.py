"""The landscape of a run's text, as a job that waits its turn and can be stopped: a row for each method, as it comes.

{"kind":"columns", ...}  the tokens that the run wrote
{"kind":"row", ...}      a method: what a step of it that began at a token would have done, in signs and in words
{"kind":"done", ...}     how long it took, and what was left out
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from decoding.errors import ParamError, SpecscopeError
from decoding.methods import METHODS
from decoding.types import Trace
from viz import landscape_rows as words
from viz.stream import play as player
from viz.stream.lines import line
from viz.wording import count

from ..address import parse
from ..controls import runnable
from ..models.catalog import Entry, entry_of
from ..server.limits import LIMITS
from ..state import AppState
from .live_runs import LANDSCAPE, Job, LiveRuns
from .streaming import Lines, as_sentence, fault_lines, page_line, wait_for_engine, wait_for_turn

if TYPE_CHECKING:
    from decoding.engine import Engine

_POLL = 0.1  # seconds between two looks at a method that is being measured
_MOST_ROOM, _LEAST_ROOM = 128, 32  # tokens that a step's run might write: fewer would cut what is accepted
_NO_PARTS, _STOPPED = "for lack of parts in this model", "since it was stopped"


def start(app_state: AppState, query: Mapping[str, str], tab: str) -> Iterator[str]:
    """Measure the text of the run that an address names; yields the growing text of the job's lines."""
    try:
        run, trace, entry = _asked(app_state, query)
    except SpecscopeError as error:
        yield fault_lines(str(error))
        return
    runs = app_state.runs
    job = runs.job(f"{tab}{LANDSCAPE}")
    yield from runs.stream(job, page_line(run=job.id, of=run), _Landscape(runs, job, trace, entry).lines())


def stop(runs: LiveRuns, tab: str) -> None:
    """Cancel a tab's landscape."""
    runs.stop(f"{tab}{LANDSCAPE}")


def _asked(app_state: AppState, query: Mapping[str, str]) -> tuple[str, Trace, Entry]:
    """The run that an address names, and its model."""
    run = parse(query, app_state.catalog).run
    if run is None:
        raise ParamError("name a run whose text is to be measured")
    stored = app_state.store.get(run)
    if stored is None:
        raise ParamError("the server no longer stores this run: run it again, or open its file")
    trace = stored.trace
    entry = entry_of(app_state.catalog, trace.header)
    if entry is None or not entry.at_hand:
        raise ParamError("this page does not have the run's model, so its text cannot be measured")
    if not trace.ids:
        raise ParamError("this run wrote no token: there is nothing to measure")
    tokens = len(trace.header.prompt) + min(len(trace.ids), LIMITS.new_tokens)
    if tokens > LIMITS.landscape_tokens:
        raise ParamError(
            f"the run's text has {tokens} tokens, above the {LIMITS.landscape_tokens} that this page measures: "
            "choose a run with a shorter prompt"
        )
    return run, trace, entry


class _Ending(threading.Event):
    """Set once the visitor has stopped the job, or its time is over."""

    def __init__(self, cancel: threading.Event) -> None:
        super().__init__()
        self._cancel, self._until = cancel, time.monotonic() + LIMITS.seconds

    @property
    def is_late(self) -> bool:
        """Whether it is the clock that has ended it."""
        return time.monotonic() > self._until and not self._cancel.is_set()

    def is_set(self) -> bool:
        return super().is_set() or self._cancel.is_set() or time.monotonic() > self._until


@dataclass(slots=True)
class _Landscape:
    """A landscape in progress."""

    runs: LiveRuns
    job: Job
    trace: Trace
    entry: Entry
    measured: Sequence[int] = ()  # the new tokens that have a column
    columns: list[words.Column] = field(default_factory=list)
    rows: list[words.LandscapeRow] = field(default_factory=list)
    left: dict[str, list[str]] = field(default_factory=dict)  # labels of the methods that were left out, by the reason

    def lines(self) -> Lines:
        """Yield the lines: the position in the queue, loading, a row for each method, the end."""
        with self.runs.queue.join(self.job.client) as ticket:
            yield from wait_for_turn(ticket, self.job.cancel)
            engine = yield from wait_for_engine(self.runs.models.request(self.entry), self.job.cancel)
            if engine is None:
                yield player.fault("Stopped before the first method.")
                return
            self.measured = _measured(engine, self.trace, self.entry.name)
            begun, ending = time.monotonic(), _Ending(self.job.cancel)
            names = [name for name in METHODS if name != "autoregressive"]
            able = [name for name in names if name in runnable(self.entry)]
            for name in names:
                if name not in able:
                    self._leave(name, _NO_PARTS)
            with ThreadPoolExecutor(1) as pool:
                try:
                    for done, name in enumerate(able):
                        yield from self._method(engine, name, done / len(able), 1 / len(able), pool, ending)
                finally:
                    ending.set()  # a visitor who has left waits for nothing
            yield line("done", sentence=self._outcome(time.monotonic() - begun))

    def _method(self, engine: Engine, name: str, before: float, part: float, pool: Executor, ending: _Ending) -> Lines:
        """Yield a method's row, or note why it has none."""
        found = None
        try:
            if not ending.is_set() and (yield from self._prepared(engine, name, ending)):
                found = yield from self._found(engine, name, before, part, pool, ending)
        except SpecscopeError as error:  # what one method lacks, another one need not
            self._leave(name, f"({str(error).rstrip('.')})")
            return
        if found is None:
            self._leave(name, f"since the {LIMITS.seconds:g} seconds were over" if ending.is_late else _STOPPED)
            return
        if not self.columns:
            self.columns = words.columns(found)
            yield line("columns", legend=words.LEGEND, columns=[asdict(column) for column in self.columns])
        [row] = words.rows(found)
        self.rows.append(row)
        yield line("row", **asdict(row))

    def _prepared(self, engine: Engine, name: str, ending: _Ending) -> Generator[str, None, bool]:
        """Load the parts that a method needs; returns whether they are there."""
        loading = self.runs.models.prepare(self.entry, engine, name)
        return (yield from wait_for_engine(loading, ending)) is not None

    def _found(
        self, engine: Engine, name: str, before: float, part: float, pool: Executor, ending: _Ending
    ) -> Generator[str, None, dict[str, Any] | None]:
        """Measure one method in a thread; returns None if that was ended."""
        from analysis.landscape import measure_landscape

        prompt, share, shown = self.trace.header.prompt, [0.0], -1.0
        ids = [*prompt, *self.measured]

        def progress(what: str, done: float) -> None:
            share[0] = done

        measuring = pool.submit(
            measure_landscape,
            engine,
            ids,
            [name],
            first=len(prompt),
            max_new_tokens=min(_MOST_ROOM, engine.model.card.context - len(ids)),
            cancel=ending,
            progress=progress,
        )
        while wait([measuring], _POLL if shown >= 0 else 0.0).not_done:
            if (now := before + part * share[0]) - shown >= 0.01:
                shown = now
                yield player.state("measuring", f"Measuring {METHODS[name].label}.", round(now, 3))
            else:
                yield ""
        found = measuring.result()
        return found if found["finished"] else None

    def _leave(self, name: str, reason: str) -> None:
        self.left.setdefault(reason, []).append(METHODS[name].label)

    def _outcome(self, seconds: float) -> str:
        """What was measured and what was not, in sentences."""
        whole, measured = len(self.trace.ids), len(self.measured)
        sentences = [f"{'Measured' if self.rows else 'Nothing was measured'} in {count(round(seconds), 'second')}."]
        sentences += [words.about_text(self.columns), words.about_silent(self.rows)] if self.rows else []
        if measured < whole:
            sentences.append(f"These are the first {measured} of its {whole} new tokens.")
        for reason, labels in self.left.items():
            sentences.append(as_sentence(f"left out {reason}: {words.listed(labels)}"))
        return " ".join(filter(None, sentences))


def _measured(engine: Engine, trace: Trace, name: str) -> Sequence[int]:
    """The new tokens that can be measured. Raises ParamError if another model wrote the run, or there are none."""
    card, written, prompt = engine.model.card, trace.header.model, trace.header.prompt
    if not written.hash:
        raise ParamError("the record does not say which weights wrote this run, so its text cannot be measured")
    if (written.hash, written.vocabulary) != (card.hash, card.vocabulary):
        raise ParamError(f"other weights than those of {name} here wrote this run, so its text cannot be measured")
    most = min(LIMITS.new_tokens, card.context - _LEAST_ROOM - len(prompt))
    if most < 1:
        raise ParamError(
            f"the run's prompt fills the model's context of {card.context} tokens, so no step can begin behind it: "
            "choose a run with a shorter prompt"
        )
    return trace.ids[:most]
