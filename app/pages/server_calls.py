"""The server functions that the page's scripts call: a step, its details and tables, a recording, an export, a trace.

They bypass the run queue, and anybody can call them with any argument: every argument is checked here, every answer is
bounded, and a run is found only by its id, which cannot be guessed. A failed call is answered with a "fault".
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from analysis.export import perfetto, steps_csv, vllm
from analysis.recheck.derived import refuse_contradictions
from decoding.errors import SpecscopeError, TraceError
from decoding.params import shown
from decoding.trace.file import parse_trace
from decoding.trace.lines import GZIP
from viz.page import page

from ..jobs.recorded_race import recorded_race
from ..jobs.streaming import EVICTED, as_sentence, page_line
from ..server.limits import LIMITS
from ..server.machine import elsewhere
from ..server.middleware.session_tracker import CLIENT
from ..store.lessons import Lessons
from ..store.recordings import Recordings
from ..store.trace_store import GZIP_LEVEL, StoredRun, TraceStore, new_id, pack_trace, replay

_log = logging.getLogger(__name__)
ServerAnswer = dict[str, Any]
ServerFunction = Callable[[Any], ServerAnswer]
_TYPES = {"jsonl.gz": "application/gzip", "html": "text/html", "csv": "text/csv", "json": "application/json"}


class ServerCalls:
    """Answers the calls of the page's scripts."""

    def __init__(self, store: TraceStore, recordings: Recordings, lessons: Lessons, live: bool = True) -> None:
        self._store, self._recordings, self._lessons = store, recordings, lessons
        self._live = live  # whether the page runs races of its own
        self._race: str | None = None
        self._race_lock = threading.Lock()

    def functions(self) -> list[ServerFunction]:
        """Return plain functions, under the names that the scripts use."""
        calls: dict[str, ServerFunction] = {
            "run_detail": lambda asked: self._line(asked, "detail"),
            "run_step": lambda asked: self._line(asked, "full"),
            "run_rows": lambda asked: self._line(asked, "rows"),
            "run_lives": lambda asked: {"lives": isinstance(asked, str) and asked in self._store.streaming},
            "run_export": self._export,
            "open_recording": self.open_run,
            "open_trace": self._open_upload,
            "open_race": lambda asked: {"lines": self.race_lines()},
        }
        return [answering(name, call) for name, call in calls.items()]

    def race_lines(self) -> str:
        """Return the lines of the recorded race, which are made once, at the first call."""
        with self._race_lock:
            if self._race is None:
                self._race = recorded_race(self._recordings, self._live)
            return self._race

    def open_run(self, run: object) -> ServerAnswer:
        """Return the lines of a recording, or of a stored run."""
        recording = self._recordings.get(run)
        if recording is not None:
            return {"lines": self.recording_lines(recording.id)}
        stored = self._store.find(run)
        with self._store.reading():
            _, lines = replay(stored.trace, str(run))
        about = {"machine": elsewhere(stored.trace.header)}
        about |= {"title": title} if (title := self._lessons.title_of(run)) else {}
        return {"lines": page_line(run=run, address=f"run={run}", **about) + lines + stored.end()}

    def recording_lines(self, run: str) -> str:
        """Return the lines of a recording, its title and sentence included."""
        recording = self._recordings.get(run)
        assert recording is not None
        about = {"title": recording.title, "shows": recording.shows, "step": recording.step}
        about |= {"machine": elsewhere(self._recordings.header(run))}
        return page_line(run=run, address=f"run={run}", **about) + self._recordings.lines(run)

    def _line(self, asked: Any, what: str) -> ServerAnswer:
        run, k = _pair(asked)
        if type(k) is not int or not 0 <= k <= LIMITS.detail_steps:
            raise TraceError(f"a step is a whole number from 0 to {LIMITS.detail_steps}, not {shown(k)}")
        play = self._store.play(run)
        if k >= len(play.run.steps):
            raise TraceError(f"this run has {len(play.run.steps)} steps: ask for an earlier one than {k}")
        return {"lines": getattr(play, what)(k)}

    def _export(self, asked: Any) -> ServerAnswer:
        run, form = _pair(asked)
        if not isinstance(form, str) or form not in _FORMS:
            raise TraceError(f"choose one of {', '.join(_FORMS)} to download, not {shown(form)}")
        stored, recording = self._store.find(run), self._recordings.get(run)
        with self._store.reading():
            ending, content = _FORMS[form](stored, recording.step if recording else None)
        name = f"specscope-{stored.trace.header.method}"[:40]
        name = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in name)
        answer: ServerAnswer = {"name": f"{name}-{form}.{ending}", "type": _TYPES[ending]}
        return answer | ({"text": content} if isinstance(content, str) else {"bytes": _base64(content)})

    def _open_upload(self, asked: Any) -> ServerAnswer:
        if not isinstance(asked, str) or len(asked) > LIMITS.upload_bytes * 4 // 3 + 4:
            raise TraceError(f"the file is larger than {LIMITS.upload_bytes >> 20} MB: drop a smaller trace")
        try:
            data = base64.b64decode(asked, validate=True)
        except (binascii.Error, ValueError):
            raise TraceError("the file did not arrive whole: drop it again") from None
        with self._store.reading():
            try:
                trace = parse_trace(data, limits=LIMITS.files, allow_partial=True)
                refuse_contradictions(trace)
            except TraceError as error:
                from ..store.brought_files import title_of  # which brings the readers of tables

                if title := title_of(data):
                    sentence = f"the file holds {title}, not a trace of one run: open it on the Debug tab"
                    return {"fault": as_sentence(sentence), "debug": True}
                raise TraceError(f"the file is not a trace that can be shown ({error}): choose another one") from None
            if not trace.steps:
                raise TraceError("this trace holds no steps: record a run first")
            run = new_id()
            play, lines = replay(trace, run)
            file = data if data.startswith(GZIP) else gzip.compress(data, GZIP_LEVEL, mtime=0)
            stored = StoredRun(trace, play, file=file)
            evicted = self._store.put(run, stored, CLIENT.get())
        about = {"run": run, "address": f"run={run}", "title": "Your file", "machine": elsewhere(trace.header)}
        about |= {"notice": EVICTED} if evicted else {}
        return {"lines": page_line(**about) + lines + stored.end()}


def _html(stored: StoredRun, step: int | None) -> tuple[str, str]:
    proof = stored.proof
    return "html", page(stored.trace, check=proof.check, speedup=proof.speedup, step=step, most=LIMITS.page_characters)


_FORMS: Mapping[str, Callable[[StoredRun, int | None], tuple[str, str | bytes]]] = {
    "trace": lambda stored, step: ("jsonl.gz", pack_trace(stored.trace)),
    "html": _html,
    "perfetto": lambda stored, step: ("json", json.dumps(perfetto(stored.trace))),
    "csv": lambda stored, step: ("csv", steps_csv(stored.trace)),
    "vllm": lambda stored, step: ("json", json.dumps(vllm(stored.trace))),
}


def _pair(asked: Any) -> tuple[object, object]:
    if not isinstance(asked, list) or len(asked) != 2:
        raise TraceError("send a run's id and one more value")
    return asked[0], asked[1]


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def answering(name: str, call: ServerFunction) -> ServerFunction:
    """Return a function of this name that answers a call, or returns a sentence on why it cannot."""

    def answer(asked: Any) -> ServerAnswer:
        try:
            return call(asked)
        except SpecscopeError as error:
            return {"fault": as_sentence(str(error)[:500])}
        except Exception:
            _log.exception("an answer failed")
            return {"fault": "The server could not answer that: try again."}

    answer.__name__ = name
    return answer
