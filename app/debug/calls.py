"""The server functions of the Debug page. Like all server functions, anybody can call them with any argument."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from analysis.recheck.derived import refuse_contradictions
from analysis.store.folder_traces import refuse_differences, trace_of, with_texts
from decoding.errors import ParamError, TraceError
from viz.palette import THEMES

from ..jobs.streaming import as_sentence, page_line
from ..pages.server_calls import ServerAnswer
from ..server.limits import LIMITS
from ..server.middleware.session_tracker import CLIENT
from ..store.brought_files import read_files
from ..store.run_folders import RunFolders
from ..store.trace_store import StoredRun, TraceStore, new_id, replay
from .cards import CARDS
from .folder_costs import folder_costs
from .query_pool import QueryPool
from .state import COMPARED, QUESTIONS, DebugState
from .view import DebugView, whole_number

if TYPE_CHECKING:
    from decoding.codec import Codec
    from decoding.types import Header, Trace

_SOME = "The run's trace is made of the tables: it shows the guesses, and not the method's own view."
_TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}


class DebugCalls:
    """Answers the calls of the Debug page's script; raises SpecscopeError with a sentence for the visitor."""

    def __init__(
        self, folders: RunFolders, store: TraceStore, codec_of: Callable[[Header], Codec | None] = lambda header: None
    ) -> None:
        self._folders, self._store, self._codec_of = folders, store, codec_of
        self._pool = QueryPool()

    def call(self, name: str, asked: Any) -> ServerAnswer:
        """Call one of the functions by its name, in its turn."""
        made: Callable[[Any], ServerAnswer] = getattr(self, name)
        with self._pool.place():
            return made(asked)

    def view(self, query: object) -> DebugView:
        """Return the view that an address names; a folder that has several methods is opened at one of them."""
        return self._view_of(DebugState.parse(query))

    def _what_is_left(self, query: object) -> tuple[DebugView, str]:
        """Return the view that an address names, without folders that are missing, and a sentence on those."""
        state = DebugState.parse(query)
        try:
            return self._view_of(state), ""
        except TraceError as gone:
            try:
                alone = replace(state, against="", against_method="", against_setting="")
                return self._view_of(alone), as_sentence(gone)
            except TraceError:
                return self._view_of(DebugState(problems=state.problems)), as_sentence(gone)

    def _view_of(self, state: DebugState) -> DebugView:
        folder = self._folders.get(state.folder)
        against = self._folders.get(state.against) if state.against else None
        others = against.methods() if against else ()
        settled = state.settled(state.folder or self._folders.first(), folder.methods(), others)
        return DebugView(settled, folder, against)

    def open(self, asked: Any) -> ServerAnswer:
        """Return what an address shows first: folders, filters, query, and how many steps it selects."""
        listed = self._folders.listed()
        try:
            view, gone = self._what_is_left(asked)
        except TraceError as error:
            return {"folders": listed, "notice": as_sentence(error)}
        state = view.state
        answer: ServerAnswer = {
            "folders": listed,
            "folder": state.folder,
            "address": state.address(),
            "facts": view.folder.facts(),
            "filters": state.shown(),
            "against": state.against,
            "against_method": state.against_method,
            "against_setting": state.against_setting,
            "sql": view.first.query,
            "edited": bool(state.sql),
            "chart": state.chart,
            "names": view.names(),
            "themes": THEMES,
            "charts": [
                {name: getattr(metric, name) for name in ("key", "title", "group", "formula", "look_for", "chart")}
                for metric in CARDS.values()
            ],
            "notice": " ".join(filter(None, (gone, *map(as_sentence, state.problems[:3])))),
        }
        if view.against is not None:
            answer["against_facts"] = view.against.facts()
        try:
            return answer | view.head()
        except (ParamError, TraceError) as error:  # the query, which is then shown for correction
            return answer | {"refused": as_sentence(error)}

    def chart(self, asked: Any) -> ServerAnswer:
        """Return a metric of the selections, with its figure."""
        query, key = _listed(asked, 2)
        if key in (COMPARED, QUESTIONS):
            return self.view(query).compare(key)
        if not isinstance(key, str) or key not in CARDS:
            raise TraceError("there is no such chart")
        return self.view(query).measure(key)

    def steps(self, asked: Any) -> ServerAnswer:
        """Return some of the steps that a row of a metric counts."""
        query, key, row, second, offset = _listed(asked, 5)
        if not isinstance(key, str) or (key not in ("", COMPARED, QUESTIONS) and key not in CARDS):
            raise TraceError("there is no such chart")
        return self.view(query).steps(key, whole_number(row, 10**6), bool(second), max(0, whole_number(offset, 10**9)))

    def export(self, asked: Any) -> ServerAnswer:
        """Return the chosen steps as a file."""
        query, form = _listed(asked, 2)
        if not isinstance(form, str) or form not in _TYPES:
            raise TraceError(f"choose one of {', '.join(_TYPES)} to download")
        table = self.view(query).table(LIMITS.exported_rows)
        return {"name": f"specscope-steps.{form}", "type": _TYPES[form]} | _FORMS[form](table)

    def bring(self, asked: Any) -> ServerAnswer:
        """Store a run folder that a visitor dropped; returns its id."""
        name, folder = read_files(asked)
        return {"folder": self._folders.bring(name, folder)}

    def play(self, asked: Any) -> ServerAnswer:
        """Return the lines of a run for the player, which opens at a step."""
        folder, number, step = _listed(asked, 3)
        if not isinstance(folder, str):
            raise TraceError("there is no such run folder")
        trace, about = self.recorded(folder, whole_number(number, 2**31))
        if not 0 <= whole_number(step, 2**31) < len(trace.steps):
            raise TraceError(f"this run has {len(trace.steps)} steps: ask for an earlier one")
        run = new_id()
        with self._store.reading():
            play, lines = replay(trace, run)
        stored = StoredRun(trace, play)
        self._store.put(run, stored, CLIENT.get())
        return {
            "lines": page_line(run=run, address=f"run={run}", step=step, **about) + lines + stored.end(),
            "run": run,
        }

    def costs(self, asked: Any) -> ServerAnswer:
        """Return what the Cost page projects of a folder, of the first where none is named."""
        if not isinstance(asked, str):
            raise TraceError("there is no such run folder")
        opened = self._folders.get(asked)
        return {"folder": asked or self._folders.first(), "name": opened.name, "runs": folder_costs(opened)}

    def recorded(self, folder: str, number: int) -> tuple[Trace, dict[str, str]]:
        """Return a run of a folder, with the page's description of it."""
        opened = self._folders.get(folder)
        trace, from_file = trace_of(opened.folder, number, LIMITS.upload_bytes, LIMITS.files)
        if from_file:
            refuse_contradictions(trace)
            refuse_differences(trace, opened.folder, number)
        else:
            trace = with_texts(trace, self._codec_of)
        return trace, {"title": f"A run of {opened.name}", "shows": "" if from_file else _SOME}


def _csv(table: pa.Table) -> ServerAnswer:
    file = io.BytesIO()
    pacsv.write_csv(table, file)
    return {"text": file.getvalue().decode("utf-8")}


def _parquet(table: pa.Table) -> ServerAnswer:
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd")
    return {"bytes": base64.b64encode(file.getvalue()).decode("ascii")}


_FORMS: Mapping[str, Callable[[pa.Table], ServerAnswer]] = {"csv": _csv, "parquet": _parquet}


def _listed(asked: Any, count: int) -> list[Any]:
    if not isinstance(asked, list) or len(asked) != count:
        raise TraceError("the request does not match this page: reload it")
    return asked
