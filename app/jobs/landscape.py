"""The landscape of a run's text: a row for each method, as soon as it is measured.

{"kind":"columns", ...}  the tokens that the run wrote
{"kind":"row", ...}      a method: what a step would have done that began at each token, in signs and in words
{"kind":"done", ...}     how long it took, and what was left out
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
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
from ..models.catalog import entry_of
from ..models.entry import CatalogEntry
from ..server.limits import LIMITS
from ..state import AppState
from .runner import StartedJob
from .streaming import Lines, as_sentence, page_line

if TYPE_CHECKING:
    from decoding.engine import Engine

_POLL = 0.1  # seconds between two looks at a method that is being measured
_MOST_ROOM, _LEAST_ROOM = 128, 32  # token budget of a step's run; a smaller one would cut accepted guesses
_NO_PARTS, _STOPPED = "because this model lacks their parts", "because the measurement was stopped"


def landscape_of(app_state: AppState, query: Mapping[str, str]) -> RunLandscape:
    """Return the landscape of the run that an address names; raises SpecscopeError if it cannot be measured."""
    run = parse(query, app_state.catalog).run
    if run is None:
        raise ParamError("name a run whose text is to be measured")
    trace = app_state.store.find(run).trace
    entry = entry_of(app_state.catalog, trace.header)
    if entry is None or not entry.at_hand:
        raise ParamError("this page does not have the run's model, so its text cannot be measured")
    if not trace.ids:
        raise ParamError("this run wrote no token: there is nothing to measure")
    tokens = len(trace.header.prompt) + min(len(trace.ids), entry.max_new_tokens)
    most = min(LIMITS.landscape_tokens, entry.max_prompt_tokens + entry.max_new_tokens)
    if tokens > most:
        raise ParamError(
            f"the run's text has {tokens} tokens, above the {most} that this page measures: "
            "choose a run with a shorter prompt"
        )
    return RunLandscape(run, trace, entry)


@dataclass(slots=True)
class RunLandscape:
    """A run whose text is measured, and what was measured so far."""

    run: str
    trace: Trace
    entry: CatalogEntry
    measured: Sequence[int] = ()  # the new tokens that have a column
    columns: list[words.Column] = field(default_factory=list)
    rows: list[words.LandscapeRow] = field(default_factory=list)
    left: dict[str, list[str]] = field(default_factory=dict)  # labels of the methods that were left out, by the reason
    spare = None

    @property
    def seconds(self) -> float:
        return LIMITS.seconds

    def opening(self, started: StartedJob) -> str:
        return page_line(run=started.id, of=self.run)

    def lines(self, started: StartedJob) -> Lines:
        """Yield a row for each method, then the end."""
        self.measured = _measured(started.engine, self.trace, self.entry)
        begun = time.monotonic()
        names = [name for name in METHODS if name != "autoregressive"]
        able = [name for name in names if name in runnable(self.entry)]
        for name in names:
            if name not in able:
                self._leave(name, _NO_PARTS)
        for done, name in enumerate(able):
            yield from self._method(started, name, done / len(able), 1 / len(able))
        yield line("done", sentence=self._outcome(time.monotonic() - begun))

    def _method(self, started: StartedJob, name: str, before: float, part: float) -> Lines:
        """Yield a method's row, or note why it has none."""
        landscape = None
        try:
            if not started.is_over and (yield from started.prepare(self.entry, name)):
                landscape = yield from self._measure(started, name, before, part)
        except SpecscopeError as error:  # what one method lacks, another one need not
            self._leave(name, f"({str(error).rstrip('.')})")
            return
        if landscape is None:
            late = f"since the {LIMITS.seconds:g} seconds were over"
            self._leave(name, _STOPPED if started.cancel.is_set() else late)
            return
        if not self.columns:
            self.columns = words.measured_tokens(landscape)
            yield line("columns", legend=words.LEGEND, columns=[asdict(column) for column in self.columns])
        [row] = words.rows(landscape)
        self.rows.append(row)
        yield line("row", **asdict(row))

    def _measure(
        self, started: StartedJob, name: str, before: float, part: float
    ) -> Generator[str, None, dict[str, Any] | None]:
        """Measure one method in a thread; returns None if the job was over before."""
        from analysis.landscape import measure_landscape

        engine = started.engine
        prompt, share, shown, ending = self.trace.header.prompt, [0.0], -1.0, threading.Event()
        ids = [*prompt, *self.measured]

        def progress(what: str, done: float) -> None:
            share[0] = done

        with ThreadPoolExecutor(1) as pool:
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
            try:
                while wait([measuring], _POLL if shown >= 0 else 0.0).not_done:
                    if started.is_over:
                        ending.set()
                    if (now := before + part * share[0]) - shown >= 0.01:
                        shown = now
                        yield player.state("measuring", f"Measuring {METHODS[name].label}.", round(now, 3))
                    else:
                        yield ""
            finally:
                ending.set()  # a visitor who has left waits for nothing
        landscape = measuring.result()
        return landscape if landscape["finished"] else None

    def _leave(self, name: str, reason: str) -> None:
        self.left.setdefault(reason, []).append(METHODS[name].label)

    def _outcome(self, seconds: float) -> str:
        """Say what was measured and what was not, in sentences."""
        whole, measured = len(self.trace.ids), len(self.measured)
        sentences = [f"{'Measured' if self.rows else 'Nothing was measured'} in {count(round(seconds), 'second')}."]
        sentences += [words.about_text(self.columns), words.about_silent(self.rows)] if self.rows else []
        if measured < whole:
            sentences.append(f"Only the first {measured} of the run's {whole} new tokens were measured.")
        for reason, labels in self.left.items():
            sentences.append(as_sentence(f"left out {reason}: {words.names_in_a_row(labels)}"))
        return " ".join(filter(None, sentences))


def _measured(engine: Engine, trace: Trace, entry: CatalogEntry) -> Sequence[int]:
    """Return the new tokens to measure; raises ParamError if another model wrote the run, or there are none."""
    card, written, prompt = engine.model.card, trace.header.model, trace.header.prompt
    if not written.hash:
        raise ParamError("the record does not say which weights wrote this run, so its text cannot be measured")
    if (written.hash, written.vocabulary) != (card.hash, card.vocabulary):
        raise ParamError(
            f"other weights than those of {entry.name} here wrote this run, so its text cannot be measured"
        )
    most = min(entry.max_new_tokens, card.context - _LEAST_ROOM - len(prompt))
    if most < 1:
        raise ParamError(
            f"the run's prompt fills the model's context of {card.context} tokens, so no step can begin after it: "
            "choose a run with a shorter prompt"
        )
    return trace.ids[:most]
