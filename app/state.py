"""What all pages share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from .catalog import EMBEDDED, POCKET, Entry, choose
from .middleware.session_tracker import SessionTracker
from .recordings import Recordings
from .server_calls import Answers
from .trace_store import Store

if TYPE_CHECKING:
    from .live_runs import Runs


@dataclass
class House:
    """The models, the runs, and the records."""

    catalog: Mapping[str, Entry] = field(default_factory=lambda: dict(EMBEDDED))
    first: str = POCKET.name  # the model that is chosen when the page opens
    replay_only: bool = False
    recordings: Recordings = field(default_factory=Recordings)
    store: Store = field(init=False)
    answers: Answers = field(init=False)
    tracker: SessionTracker = field(default_factory=SessionTracker)

    def __post_init__(self) -> None:
        choose(self.catalog, self.first)
        self.store = Store(self.recordings.packed)
        self.answers = Answers(self.store, self.recordings)

    @cached_property
    def runs(self) -> Runs:
        """Live runs; asked for, they bring torch, which a page that only replays does without."""
        from .live_runs import Runs
        from .model_pool import Engines

        return Runs(Engines(self.catalog), self.store, tracker=self.tracker)
