"""The run folders that the Debug tab opens: those that ship, the owner's, and those that visitors bring.

A folder is found by its id only; no visitor names a path. Few folders are kept in memory, and the least recently used
are removed first. A visitor's folder has an id that cannot be guessed.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from analysis.metrics import Selection
from analysis.store.folder import SUMMARY, RunFolder, read_folder, read_summary
from analysis.store.query import ChosenSteps, Shown
from analysis.store.schema import NODES, RUNS, STEPS
from analysis.store.shared_tables import SharedTables
from decoding.errors import ParamError, SpecscopeError, TraceError
from decoding.methods import METHODS

from ..debug.query_workers import QueryWorkers
from ..server.limits import LIMITS
from ..server.middleware.session_tracker import CLIENT
from .quota_cache import Quota, QuotaCache
from .trace_store import new_id

SHIPPED = Path(__file__).parents[2] / "assets" / "runs"
_GONE = "the server no longer has this run folder: drop its files again"
_BASELINE = "autoregressive"
_MOST_LISTED = 200
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Listed:
    """A folder's entry in the page's menu."""

    id: str
    name: str
    path: Path


def method_label(method: str) -> str:
    """Return the page's label of a record's method; another engine's has its own name."""
    return METHODS[method].label if method in METHODS else method


class RecentAnswers:
    """A folder's last answers. Thread-safe; two threads may compute the same answer at once."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._entries: OrderedDict[tuple[str, ...], Any] = OrderedDict()

    def get(self, key: tuple[str, ...], make: Callable[[], _Value]) -> _Value:
        """Return an answer, and compute it if it is missing."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                value: _Value = self._entries[key]
                return value
        made = make()
        with self._lock:
            self._entries[key] = made
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)
        return made


class OpenFolder:
    """A folder in memory, with cached answers to repeated questions."""

    def __init__(self, name: str, folder: RunFolder, workers: QueryWorkers) -> None:
        try:
            self._shared = SharedTables({RUNS: folder.runs, STEPS: folder.steps, NODES: folder.nodes})
        except OSError:
            raise TraceError("this server has no room for it at the moment") from None
        self.name, self.folder, self._workers = name, replace(folder, **self._shared.tables), workers
        self.selections, self.results = RecentAnswers(8), RecentAnswers(256)

    def answer(self, query: str) -> ChosenSteps | Shown:
        """Return a query's answer over its tables; raises ParamError if it cannot be run."""
        return self._workers.answer(self._shared, query)

    @cached_property
    def selection(self) -> Selection:
        """The selection of everything in the folder."""
        return Selection.from_folder(self.folder)

    @cached_property
    def keys(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Run and step of every step as one number; they are sorted."""
        steps = self.folder.steps
        return _keys(steps["run"].to_numpy(), steps["step"].to_numpy())

    @cached_property
    def node_keys(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Run and step of every node as one number; they are sorted."""
        nodes = self.folder.nodes
        return _keys(nodes["run"].to_numpy(), nodes["step"].to_numpy())

    @property
    def bytes(self) -> int:
        """The folder's approximate size in bytes: the tables, and their columns as numbers."""
        return 2 * sum(int(table.nbytes) for table in self._shared.tables.values())

    def mask(self, chosen: ChosenSteps) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which steps were chosen."""
        return np.isin(self.keys, _keys(chosen.runs, chosen.steps), assume_unique=True)

    def facts(self) -> dict[str, Any]:
        """Return what the page shows about it."""
        settings_of: dict[str, set[str]] = {}
        for method, setting in self.selection.methods:
            settings_of.setdefault(method, set()).add(setting)
        categories = [name for name in self.folder.runs["category"].unique().to_pylist() if name]
        summary = self.folder.summary
        return {
            "name": self.name,
            "source": str(summary["source"])[:80],
            "created": str(summary["created"])[:40],
            "imported": "format" in summary,
            "finished": self.folder.finished,
            "runs": len(self.folder.runs),
            "steps": len(self.folder.steps),
            "nodes": len(self.folder.nodes),
            "methods": {method: sorted(settings)[:100] for method, settings in list(settings_of.items())[:100]},
            "labels": {method: method_label(method) for method in list(settings_of)[:100]},
            "categories": sorted(categories)[:100],
            "missing": {str(key)[:60]: str(why)[:300] for key, why in list(summary["missing"].items())[:60]},
        }

    def methods(self) -> list[tuple[str, str]]:
        """Return its methods with their settings, those that guess first."""
        return sorted(self.selection.methods, key=lambda pair: pair[0] == _BASELINE)


class RunFolders:
    """All folders by their ids. Thread-safe."""

    def __init__(self, owner: Path | None = None) -> None:
        self._listed = {
            each.id: each for each in [*_folders_in(SHIPPED, "sample"), *(_folders_in(owner, "own") if owner else ())]
        }
        if owner and not any(each.id.startswith("own-") for each in self._listed.values()):
            raise ParamError(
                f"there is no run folder in {str(owner)!r}: name one that an evaluation or an import has made"
            )
        self._workers = QueryWorkers()
        self._open: OrderedDict[str, OpenFolder] = OrderedDict()
        each = Quota(LIMITS.brought_folders_each, LIMITS.folder_bytes)
        self._brought: QuotaCache[OpenFolder] = QuotaCache(Quota(LIMITS.brought_folders, LIMITS.folder_bytes), each)
        self._lock = threading.Lock()

    def listed(self) -> list[dict[str, str]]:
        """Return the entries of the page's menu."""
        return [{"id": each.id, "name": each.name} for each in self._listed.values()]

    def get(self, folder: str) -> OpenFolder:
        """Return a folder by its id, or the first if none is named; raises TraceError if there is none."""
        if not folder:
            if not self._listed:
                raise TraceError("this server has no run folder yet: drop one on the page")
            folder = next(iter(self._listed))
        if (brought := self._brought.get(folder)) is not None:
            return brought
        if folder not in self._listed:
            raise TraceError(_GONE)
        with self._lock:
            if folder not in self._open:
                self._workers.start()
                listed = self._listed[folder]
                self._open[folder] = OpenFolder(listed.name, read_folder(listed.path), self._workers)
            self._open.move_to_end(folder)
            while len(self._open) > 1 and sum(each.bytes for each in self._open.values()) > LIMITS.folder_bytes:
                self._open.popitem(last=False)
            return self._open[folder]

    def first(self) -> str:
        """Return the id of the folder that is opened if none is named."""
        return next(iter(self._listed), "")

    def bring(self, name: str, folder: RunFolder) -> str:
        """Store a visitor's folder; returns its id."""
        brought_id, opened = new_id(), OpenFolder(name, folder, self._workers)
        self._brought.put(CLIENT.get(), brought_id, opened, opened.bytes)
        return brought_id


def _folders_in(folder: Path, prefix: str) -> list[Listed]:
    """Return the run folders in a folder, or that folder itself."""
    if not folder.is_dir():
        return []
    places = [folder] if (folder / SUMMARY).is_file() else sorted(each.parent for each in folder.glob(f"*/{SUMMARY}"))
    listed = list[Listed]()
    for number, place in enumerate(places[:_MOST_LISTED]):
        try:
            name = str(read_summary(place)["name"])[:80] or place.name[:80]
        except SpecscopeError:
            continue
        word = re.sub(r"[^A-Za-z0-9_-]+", "-", place.name)[:40]
        listed.append(Listed(f"{prefix}-{number}-{word}" if prefix == "own" else word or "sample", name, place))
    return listed


def _keys(runs: Any, steps: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.asarray((runs.astype(np.int64) << 32) | steps.astype(np.int64))
