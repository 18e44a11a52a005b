"""The application state: the model catalog, the jobs and the stored traces."""

from __future__ import annotations

import threading
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from .models.catalog import EMBEDDED, POCKET, choose, entry_of
from .models.entry import CatalogEntry
from .models.own_models import OwnModels
from .models.tokenizers import Tokenizers
from .pages.server_calls import ServerCalls
from .server.middleware.session_tracker import SessionTracker
from .store.lessons import Lessons
from .store.recordings import Recordings
from .store.trace_store import TraceStore

if TYPE_CHECKING:
    from decoding.codec import Codec
    from decoding.types import Header

    from .debug.calls import DebugCalls
    from .jobs.runner import JobRunner


@dataclass
class AppState:
    """Everything that the pages share; one instance for each server."""

    catalog: MutableMapping[str, CatalogEntry] = field(default_factory=lambda: dict(EMBEDDED))
    default_model: str = POCKET.name  # the model that is selected when the page opens
    replay_only: bool = False
    own_root: Path | None = None  # the folder from which visitors may bring models; None: they may not
    runs_folder: Path | None = None  # run folders of the owner, which the Debug page lists
    memory: int | None = None  # bytes of weights that may be in memory at once; None: what the devices hold
    guardrails: tuple[str, ...] = ()  # that the owner switched on
    recordings: Recordings = field(default_factory=Recordings)
    lessons: Lessons = field(default_factory=Lessons)
    own_models: OwnModels | None = field(init=False, default=None)
    store: TraceStore = field(init=False)
    calls: ServerCalls = field(init=False)
    tracker: SessionTracker = field(default_factory=SessionTracker)
    tokenizers: Tokenizers = field(default_factory=Tokenizers)

    def __post_init__(self) -> None:
        choose(self.catalog, self.default_model)
        if self.own_root is not None:
            self.own_models = OwnModels(self.own_root, self.catalog)
        self.store = TraceStore(lambda run: self.recordings.packed(run) or self.lessons.packed(run))
        self.calls = ServerCalls(self.store, self.recordings, self.lessons, live=not self.replay_only)
        self._debug_lock = threading.Lock()
        self._debug: DebugCalls | None = None

    @property
    def debug(self) -> DebugCalls:
        """The calls of the Debug page, created on first use: they import what reads and queries tables."""
        from .debug.calls import DebugCalls
        from .store.run_folders import RunFolders

        with self._debug_lock:
            if self._debug is None:
                self._debug = DebugCalls(RunFolders(self.runs_folder), self.store, self.codec_of)
            return self._debug

    def codec_of(self, header: Header) -> Codec | None:
        """Return the tokenizer of a run's model, if it is at hand; a page that only replays loads none."""
        entry = None if self.replay_only else entry_of(self.catalog, header)
        return None if entry is None else self.tokenizers.of(entry)

    @cached_property
    def jobs(self) -> JobRunner:
        """What runs the visitors' jobs, created on first use: a replay-only page does not need it."""
        from .jobs.guardrails import Guardrails
        from .jobs.runner import JobRunner
        from .models.model_pool import ModelPool

        models, guardrails = ModelPool(self.catalog, self.memory), Guardrails(self.guardrails)
        return JobRunner(models, self.store, tracker=self.tracker, guardrails=guardrails)
