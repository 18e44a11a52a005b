"""What a page asks the server for beside its runs: a step again, its details, a recording, a file, a dropped trace.

These calls stand outside of the queue and anybody can make them with anything: every argument is checked here, every
answer is bounded, and a run is found by its unguessable id only. An answer is a dictionary with "fault" where it fails.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from decoding.errors import SpecscopeError, TraceError
from decoding.params import shown
from decoding.trace.export import perfetto, steps_csv, vllm
from decoding.trace.file import parse_trace
from decoding.trace.lines import GZIP
from viz.page import page

from .hosting import EVICTED, host, spoken
from .limits import LIMITS
from .middleware.session_tracker import CLIENT
from .recordings import Recordings
from .trace_store import FAST, Kept, Store, new_id, pack, replay

_log = logging.getLogger(__name__)
Answer = dict[str, Any]
Asked = Callable[[Any], Answer]
_GONE = "This run is no longer kept on the server: run it again, or open its file."
_TYPES = {"jsonl.gz": "application/gzip", "html": "text/html", "csv": "text/csv", "json": "application/json"}


class Answers:
    """The functions that the page's scripts can call."""

    def __init__(self, store: Store, recordings: Recordings) -> None:
        self._store, self._recordings = store, recordings

    def functions(self) -> list[Asked]:
        """As plain functions by the names that scripts use."""

        def run_detail(asked: Any) -> Answer:
            return _answer(lambda: self._line(asked, "detail"))

        def run_step(asked: Any) -> Answer:
            return _answer(lambda: self._line(asked, "full"))

        def run_lives(asked: Any) -> Answer:
            return {"lives": isinstance(asked, str) and asked in self._store.telling}

        def run_export(asked: Any) -> Answer:
            return _answer(lambda: self._export(asked))

        def open_recording(asked: Any) -> Answer:
            return _answer(lambda: self.opened(asked))

        def open_trace(asked: Any) -> Answer:
            return _answer(lambda: self._dropped(asked))

        return [run_detail, run_step, run_lives, run_export, open_recording, open_trace]

    def opened(self, run: object) -> Answer:
        """The lines of a recording, or of a run that was made here."""
        recording = self._recordings.get(run)
        if recording is not None:
            return {"lines": self.recording(recording.id)}
        kept = self._kept(run)
        with self._store.reading:
            _, lines = replay(kept.trace, str(run))
        return {"lines": host(run=run, address=f"run={run}") + lines + kept.end()}

    def recording(self, run: str) -> str:
        """A recording's lines with what the page around the player shows."""
        told = self._recordings.get(run)
        assert told is not None
        about = {"run": run, "address": f"run={run}", "title": told.title, "shows": told.shows, "step": told.step}
        return host(**about) + self._recordings.lines(run)  # ours, and soon read: it waits for no visitor's file

    def _line(self, asked: Any, what: str) -> Answer:
        run, k = _pair(asked)
        if type(k) is not int or not 0 <= k <= LIMITS.detail_steps:
            raise TraceError(f"a step is a whole number from 0 to {LIMITS.detail_steps}, not {shown(k)}")
        kept = self._kept(run)
        if k >= len(kept.trace.steps):
            raise TraceError(f"this run has {len(kept.trace.steps)} steps: ask for an earlier one than {k}")
        return {"lines": getattr(kept.play, what)(k)}

    def _export(self, asked: Any) -> Answer:
        run, form = _pair(asked)
        if not isinstance(form, str) or form not in _FORMS:
            raise TraceError(f"choose one of {', '.join(_FORMS)} to download, not {shown(form)}")
        kept, told = self._kept(run), self._recordings.get(run)
        with self._store.reading:
            ending, content = _FORMS[form](kept, told.step if told else None)
        name = f"specscope-{kept.trace.header.method}"[:40]
        name = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in name)
        answer: Answer = {"name": f"{name}-{form}.{ending}", "type": _TYPES[ending]}
        return answer | ({"text": content} if isinstance(content, str) else {"bytes": _spell(content)})

    def _dropped(self, asked: Any) -> Answer:
        if not isinstance(asked, str) or len(asked) > LIMITS.upload_bytes * 4 // 3 + 4:
            raise TraceError(f"the file is larger than {LIMITS.upload_bytes >> 20} MB: drop a smaller trace")
        try:
            data = base64.b64decode(asked, validate=True)
        except (binascii.Error, ValueError):
            raise TraceError("the file did not arrive whole: drop it again") from None
        with self._store.reading:
            try:
                trace = parse_trace(data, limits=LIMITS.files, allow_partial=True)
            except TraceError as error:
                raise TraceError(f"the file is no trace that can be shown ({error}): choose another one") from None
            if not trace.steps:
                raise TraceError("this trace holds no steps: record a run first")
            run = new_id()
            play, lines = replay(trace, run)
            kept = Kept(trace, play, file=data if data.startswith(GZIP) else gzip.compress(data, FAST, mtime=0))
            evicted = self._store.put(run, kept, CLIENT.get())
        notice = {"notice": EVICTED} if evicted else {}
        about = {"run": run, "address": f"run={run}", "title": "Your file", **notice}
        return {"lines": host(**about) + lines + kept.end()}

    def _kept(self, run: object) -> Kept:
        kept = self._store.get(run)
        if kept is None:
            raise TraceError(_GONE)
        return kept


def _html(kept: Kept, step: int | None) -> tuple[str, str]:
    proof = kept.proof
    return "html", page(kept.trace, check=proof.check, speedup=proof.speedup, step=step, most=LIMITS.page_characters)


_FORMS: Mapping[str, Callable[[Kept, int | None], tuple[str, str | bytes]]] = {
    "trace": lambda kept, step: ("jsonl.gz", pack(kept.trace)),
    "html": _html,
    "perfetto": lambda kept, step: ("json", json.dumps(perfetto(kept.trace))),
    "csv": lambda kept, step: ("csv", steps_csv(kept.trace)),
    "vllm": lambda kept, step: ("json", json.dumps(vllm(kept.trace))),
}


def _pair(asked: Any) -> tuple[object, object]:
    if not isinstance(asked, list) or len(asked) != 2:
        raise TraceError("ask with a run's id and one thing more")
    return asked[0], asked[1]


def _spell(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _answer(make: Callable[[], Answer]) -> Answer:
    try:
        return make()
    except SpecscopeError as error:
        return {"fault": spoken(str(error)[:500])}
    except Exception:
        _log.exception("an answer failed")
        return {"fault": "The server could not answer that: try again."}
