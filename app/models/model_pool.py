"""A pool of loaded models: each is loaded in the background when it is first requested, within a memory budget."""

from __future__ import annotations

import logging
import math
import re
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from decoding.errors import ModelError, ModelMissingError, SpecscopeError

from ..server.machine import machine_memory
from .catalog import ROOM
from .entry import CatalogEntry, hub_id_of

if TYPE_CHECKING:
    from decoding.engine import Engine

_QUOTED_PATH = re.compile(r"(['\"])~?/(?:(?:(?!\1).)*/)?((?:(?!\1)[^/])*)/?\1")
_PATH = re.compile(r"(^|[\s(=:,])~?/(?:[^\s/'\"]+/)*([^\s/'\",;:)]*)")
_FOLDER = "its folder"  # in the place of a path
_WAIT = 0.25  # seconds between two looks at models in use
_log = logging.getLogger(__name__)


class Loading:
    """Loads an engine, or the parts that a method needs, in a thread. It continues when nobody waits any longer."""

    def __init__(
        self,
        entry: CatalogEntry,
        engine: Engine | None = None,
        method: str | None = None,
        make_room: Callable[[Loading, int], None] | None = None,
    ) -> None:
        self._entry, self._engine, self._method, self._make_room = entry, engine, method, make_room
        self.bytes = 0  # of weights, from when they have room
        self._error: ModelError | None = None
        self._done = threading.Event()
        self.phase, self.share = f"loading {entry.name}", 0.0
        threading.Thread(target=self._load, name=f"loading {entry.name}", daemon=True).start()

    def wait(self, timeout: float) -> Engine | None:
        """Wait up to `timeout` seconds; returns the engine, or None while it is loading. Raises ModelError."""
        if not self._done.wait(timeout):
            return None
        if self._error is not None:
            raise self._error
        return self._engine

    @property
    def ended(self) -> bool:
        """Whether loading has ended, with an engine or an error."""
        return self._done.is_set()

    @property
    def failed(self) -> bool:
        """Whether loading has ended with an error."""
        return self._done.is_set() and self._error is not None

    @property
    def state(self) -> str:
        """The state of the loading: "loading", "loaded" or "failed"."""
        return "loading" if not self._done.is_set() else "failed" if self.failed else "loaded"

    def _load(self) -> None:
        from decoding.model.memory import release_memory  # brings torch, which serving recordings does without

        try:
            if self._make_room is not None:
                self._make_room(self, self._entry.check(self.report))
            release_memory()  # of engines that were evicted, or of runs that were the last to use one
            engine = self._engine or self._entry.load(self.report)
            if self._method is not None:
                engine.prepare(self._method, self.report)
            self._engine = engine
        except ModelMissingError as error:
            _log.warning("%s", error)
            self._error = error
        except SpecscopeError as error:  # its message names folders of the host
            _log.warning("%s cannot be loaded: %s", self._entry.name, error)
            self._error = self._public_error(error)
        except Exception:  # out of memory, a device that failed
            _log.exception("loading %s failed", self._entry.name)
            self._error = self._public_error()
        finally:
            self._done.set()

    def _public_error(self, reason: SpecscopeError | None = None) -> ModelError:
        """Return the error that a visitor sees. The reason is in the host's log, since a visitor
        could not act on it; a visitor who brought the model can, and sees it.
        """
        if self._entry.brought and reason is not None:
            return ModelError(without_paths(str(reason)))
        if self._method is None:
            return ModelError(f"{self._entry.name} cannot be loaded on this server now: choose another model")
        return ModelError(
            f"what {self._method} needs of {self._entry.name} cannot be loaded on this server now: "
            "choose another method or model"
        )

    def report(self, phase: str, share: float) -> None:
        """Store the progress, for those who wait."""
        self.phase, self.share = phase, share


class ModelPool:
    """Holds engines by model name, within a budget for their weights. Thread-safe.

    The least recently used model is evicted first, but none that a job uses.
    """

    def __init__(self, catalog: Mapping[str, CatalogEntry], budget: float | None = None) -> None:
        """`budget` is in bytes; without it, as much as the devices' memory holds."""
        self.catalog, self._budget = catalog, budget
        self.evicting: Callable[[ModelPool], None] = lambda pool: None  # drops what else belongs to evicted models
        self._engines: OrderedDict[str, Loading] = OrderedDict()
        self._parts: dict[tuple[str, str], Loading] = {}  # by model and method
        self._using = Counter[str]()  # jobs by their models
        self._lock = threading.Lock()

    def __contains__(self, name: str) -> bool:
        """Return True if the model is loaded or loading."""
        return name in self._engines

    def states(self) -> Counter[str]:
        """Count the models by the state of their loading."""
        with self._lock:
            return Counter(loading.state for loading in self._engines.values())

    def request(self, entry: CatalogEntry) -> Loading:
        """Load the engine of an entry, unless it is loaded or loading already."""
        with self._lock:
            for name in [name for name, each in self._engines.items() if each.failed]:
                del self._engines[name]
            loading = self._engines.get(entry.name)
            if loading is None:
                loading = self._engines[entry.name] = Loading(entry, make_room=self._make_room)
            self._engines.move_to_end(entry.name)
            return loading

    @contextmanager
    def use(self, entry: CatalogEntry) -> Iterator[Loading]:
        """Request an engine that is not evicted before the block ends."""
        with self._lock:
            self._using[entry.name] += 1
        try:
            yield self.request(entry)
        finally:
            with self._lock:
                self._using[entry.name] -= 1

    def _make_room(self, loading: Loading, size: int) -> None:
        """Evict models until `size` bytes have room; waits for models that are in use or being loaded."""
        budget = _weight_budget() if self._budget is None else self._budget
        if size > budget:
            raise ModelError(
                f"its weights take {size / 1e9:.2f} GB, and all models together may take {budget / 1e9:.2f} GB here: "
                "choose a smaller model or dtype, or raise memory_gb"
            )
        while not self._evict(loading, size, budget):
            loading.report("waiting for the memory of a model that is in use", 0.0)
            time.sleep(_WAIT)
        self.evicting(self)

    def _evict(self, loading: Loading, size: int, budget: float) -> bool:
        """Evict idle models until `size` bytes have room; returns whether they have."""
        with self._lock:
            idle = [name for name, each in self._engines.items() if each.ended and not self._using[name]]
            while sum(each.bytes for each in self._engines.values()) + size > budget and idle:
                evicted = idle.pop(0)
                del self._engines[evicted]
                self._parts = {key: value for key, value in self._parts.items() if key[0] != evicted}
            if sum(each.bytes for each in self._engines.values()) + size > budget:
                return False
            loading.bytes = size
            return True

    def prepare(self, entry: CatalogEntry, engine: Engine, method: str) -> Loading:
        """Load the parts that a method needs beside the weights, unless they are loaded or loading already."""
        with self._lock:
            loading = self._parts.get((entry.name, method))
            if loading is None or loading.failed:
                loading = self._parts[entry.name, method] = Loading(entry, engine, method)
            return loading


def _weight_budget() -> float:
    """Return the bytes of weights that the CUDA devices hold together, or without any, this machine."""
    import torch

    sizes = [torch.cuda.mem_get_info(index)[1] for index in range(torch.cuda.device_count())]
    return (sum(sizes) or machine_memory() or math.inf) / ROOM


def without_paths(sentence: str) -> str:
    """Cut every path in a sentence to its last part, so that visitors see none of this machine's folders."""
    return _PATH.sub(r"\1\2", _QUOTED_PATH.sub(r"\1\2\1", sentence))


def without_places(entry: CatalogEntry, sentence: str) -> str:
    """Remove all paths from a sentence, and all places that a catalog's entry names, even their last parts."""
    places = [place for place in (entry.model, *entry.drafters.values()) if hub_id_of(place) is None and "/" in place]
    for place in sorted(places, key=len, reverse=True):
        for shown in (place, place[:200]):  # errors cut long names
            sentence = sentence.replace(repr(shown), _FOLDER).replace(shown, _FOLDER)
    return _PATH.sub(rf"\1{_FOLDER}", _QUOTED_PATH.sub(_FOLDER, sentence))
