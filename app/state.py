"""The application state: the model catalogue, the live runs and the stored traces."""

from __future__ import annotations

import threading
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from .catalog import EMBEDDED, POCKET, Entry, choose
from .middleware.session_tracker import SessionTracker
from .own_models import OwnModels
from .recordings import Recordings
from .server_calls import ServerCalls
from .tokenizers import Tokenizers
from .trace_store import TraceStore

if TYPE_CHECKING:
    from .debug_calls import DebugCalls
    from .live_runs import LiveRuns


@dataclass
class AppState:
    """Everything that the pages share; one instance for each server."""

    catalog: MutableMapping[str, Entry] = field(default_factory=lambda: dict(EMBEDDED))
    default_model: str = POCKET.name  # the model that is selected when the page opens
    replay_only: bool = False
    own_root: Path | None = None  # the folder from which visitors may bring models; None: they may not
    runs_folder: Path | None = None  # run folders of the owner, which the Debug page lists
    recordings: Recordings = field(default_factory=Recordings)
    own: OwnModels | None = field(init=False, default=None)
    store: TraceStore = field(init=False)
    calls: ServerCalls = field(init=False)
    tracker: SessionTracker = field(default_factory=SessionTracker)
    tokenizers: Tokenizers = field(default_factory=Tokenizers)

    def __post_init__(self) -> None:
        choose(self.catalog, self.default_model)
        if self.own_root is not None:
            self.own = OwnModels(self.own_root, self.catalog)
        self.store = TraceStore(self.recordings.packed)
        self.calls = ServerCalls(self.store, self.recordings, live=not self.replay_only)
        self._debug_lock = threading.Lock()
        self._debug: DebugCalls | None = None

    @property
    def debug(self) -> DebugCalls:
        """The calls of the Debug page, created on first use: they import what reads and queries tables."""
        from .debug_calls import DebugCalls
        from .run_folders import RunFolders
        from .settings_from_run import codec_of

        with self._debug_lock:
            if self._debug is None:
                self._debug = DebugCalls(RunFolders(self.runs_folder), self.store, partial(codec_of, self))
            return self._debug

    @cached_property
    def runs(self) -> LiveRuns:
        """The live runs, created on first use: they import torch, which a replay-only page does not need."""
        from .live_runs import LiveRuns
        from .model_pool import ModelPool

        return LiveRuns(ModelPool(self.catalog), self.store, tracker=self.tracker)
