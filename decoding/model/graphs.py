"""Work that a CUDA device records and replays as a graph, so that the host need not launch each of its kernels."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import cache
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakSet

import torch

from ..errors import ModelError

VARIABLE = "SPECSCOPE_GRAPHS"  # "off": nothing is captured
ATTEMPTS = 3  # to record, in succession, before everything is run as usual
_MOST = 24  # graphs of a session
_REMEMBERED = 128  # keys that occurred once and have no graph yet

Outputs = tuple[torch.Tensor, ...]  # of recorded work


def captures() -> bool:
    """Return True if steps are to be captured; ModelError if the variable is set to anything but "off"."""
    value = os.environ.get(VARIABLE, "")
    if value not in ("", "off"):
        raise ModelError(f'{VARIABLE} must be "off" or left out, not {value[:20]!r}')
    return not value


class RecordedGraph(Protocol):
    """Work that was recorded on a device."""

    def replay(self) -> None:
        """Repeat the work on the device, at the same addresses."""
        ...


_recording = threading.Lock()  # of all models: the caching allocator cannot serve two captures at once on a device


@cache
def _recording_stream(device: torch.device) -> torch.cuda.Stream:
    """Return the one stream for recording: each further stream would keep another workspace of cuBLAS."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


class Recorder:
    """Records the passes of one model as CUDA graphs, which share a pool of memory.

    Meanwhile other threads may use the device, and allocate memory there.
    """

    def __init__(self, device: torch.device) -> None:
        # A graph's outputs are in the shared memory: before they are copied, no other graph may be queued.
        self.lock = threading.RLock()
        self._device = device
        self._alive = WeakSet[Any]()  # graphs
        self._shared_pool: Any = None
        self._failures = dict[Hashable, list[str]]()  # by work: the reasons of its consecutive failures

    @property
    def failed(self) -> str | None:
        """Return why some work could not be recorded; None if all could."""
        return next((reasons[-1] for reasons in self._failures.values()), None)

    def works(self, what: Hashable) -> bool:
        """Return True unless `what` failed repeatedly: another thread may cause one failure, but not several."""
        return len(self._failures.get(what, ())) < ATTEMPTS

    def record(self, what: Hashable, work: Callable[[], None]) -> RecordedGraph | None:
        """Do some work and record it as a graph; None, with the reason in `failed`, if it cannot be recorded."""
        try:
            graph = self._record(work)
        except RuntimeError as error:
            self._failures.setdefault(what, []).append(str(error))
            return None
        self._failures.pop(what, None)
        return graph

    def _pool(self) -> Any:
        """Return the pool of the living graphs, or a new one without any: a pool dies with its last graph."""
        if not self._alive:
            self._shared_pool = torch.cuda.graph_pool_handle()
        return self._shared_pool

    def _record(self, work: Callable[[], None]) -> RecordedGraph:
        """Record with `capture_begin`: in the context `torch.cuda.graph` the host waits for the whole device."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(self._device), _recording:
            stream, others = _recording_stream(self._device), torch.cuda.current_stream()
            stream.wait_stream(others)
            try:
                with torch.cuda.stream(stream):
                    work()  # the first call of a kernel includes preparations that no graph may contain
                    graph.capture_begin(pool=self._pool(), capture_error_mode="thread_local")
                    try:
                        work()
                    finally:  # if the stream kept recording, all later work would fail
                        graph.capture_end()
            finally:
                others.wait_stream(stream)
            self._alive.add(graph)
        return graph


class Recorded(Protocol):
    """Work at fixed addresses."""

    graph: RecordedGraph | None


Work = TypeVar("Work", bound=Recorded)


class Graphs(Generic[Work]):
    """The recorded work of one session by its key; the least recently used is dropped first."""

    def __init__(self, recorder: Recorder | None) -> None:
        self._recorder = recorder
        self._recorded = OrderedDict[Hashable, Work]()
        self._met_once = OrderedDict[Hashable, None]()

    def _replay(
        self,
        key: Hashable,
        what: Hashable,
        make: Callable[[], tuple[Work, Callable[[], None]]],
        fill: Callable[[Work], None],
    ) -> Work | None:
        """Fill in the inputs of some work and replay it; None if it must be done as usual.

        It is made and recorded when its key occurs for the second time. `what`: equal for work that fails alike.
        """
        recorder = self._recorder
        if recorder is None or not recorder.works(what):
            return None
        if key not in self._recorded and key not in self._met_once:
            self._met_once[key] = None
            if len(self._met_once) > _REMEMBERED:
                self._met_once.popitem(last=False)
            return None
        with recorder.lock:
            work = self._recorded.get(key)
            if work is not None:
                self._recorded.move_to_end(key)
                fill(work)
            else:
                if len(self._recorded) == _MOST:
                    self._recorded.popitem(last=False)
                work, run = make()
                fill(work)
                work.graph = recorder.record(what, run)
                if work.graph is None:
                    return None
                self._recorded[key] = work
            assert work.graph is not None
            work.graph.replay()
            return work
