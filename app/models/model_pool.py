"""A pool of loaded models: each is loaded in the background when it is first requested; the oldest is evicted."""

from __future__ import annotations

import logging
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from decoding.errors import ModelError, ModelMissingError, SpecscopeError

from ..server.limits import LIMITS
from .entry import CatalogEntry

if TYPE_CHECKING:
    from decoding.engine import Engine

_QUOTED_PATH = re.compile(r"(['\"])~?/(?:[^'\"]*/)?([^'\"/]*)/?\1")
_PATH = re.compile(r"(^|[\s(=:,])~?/(?:[^\s/'\"]+/)*([^\s/'\",;:)]*)")
_log = logging.getLogger(__name__)


class Loading:
    """Loads an engine, or the parts that a method needs, in a thread. It continues when nobody waits any longer."""

    def __init__(self, entry: CatalogEntry, engine: Engine | None = None, method: str | None = None) -> None:
        self._entry, self._engine, self._method = entry, engine, method
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
    def failed(self) -> bool:
        """Whether loading has ended with an error."""
        return self._done.is_set() and self._error is not None

    def _load(self) -> None:
        from decoding.model.memory import release_memory  # brings torch, which serving recordings does without

        try:
            release_memory()  # of engines that were evicted, or of runs that were the last to use one
            engine = self._engine or self._entry.load(self._report)
            if self._method is not None:
                engine.prepare(self._method, self._report)
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
        """Return the error that a visitor sees. The reason is in the log of the host: a visitor could not act on it.

        Who brought a model can.
        """
        if self._entry.brought and reason is not None:
            return ModelError(without_paths(str(reason)))
        if self._method is None:
            return ModelError(f"{self._entry.name} cannot be loaded on this server now: choose another model")
        return ModelError(
            f"what {self._method} needs of {self._entry.name} cannot be loaded on this server now: "
            "choose another method or model"
        )

    def _report(self, phase: str, share: float) -> None:
        self.phase, self.share = phase, share


class ModelPool:
    """Holds a bounded number of engines by model name; the least recently used one is evicted. Thread-safe."""

    def __init__(self, catalog: Mapping[str, CatalogEntry], capacity: int = LIMITS.models) -> None:
        self.catalog, self._capacity = catalog, capacity
        self._engines: OrderedDict[str, Loading] = OrderedDict()
        self._parts: dict[tuple[str, str], Loading] = {}  # by model and method
        self._lock = threading.Lock()

    def __contains__(self, name: str) -> bool:
        """Return True if the model is loaded or loading."""
        return name in self._engines

    def request(self, entry: CatalogEntry) -> Loading:
        """Load the engine of an entry, unless it is loaded or loading already."""
        with self._lock:
            loading = self._engines.get(entry.name)
            if loading is None or loading.failed:
                self._engines.pop(entry.name, None)
                self._evict(self._capacity - 1)  # before anything is loaded, which may need the memory
                loading = self._engines[entry.name] = Loading(entry)
            self._engines.move_to_end(entry.name)
            return loading

    def _evict(self, most: int) -> None:
        while len(self._engines) > most:
            evicted, _ = self._engines.popitem(last=False)
            self._parts = {key: value for key, value in self._parts.items() if key[0] != evicted}

    def prepare(self, entry: CatalogEntry, engine: Engine, method: str) -> Loading:
        """Load the parts that a method needs beside the weights, unless they are loaded or loading already."""
        with self._lock:
            loading = self._parts.get((entry.name, method))
            if loading is None or loading.failed:
                loading = self._parts[entry.name, method] = Loading(entry, engine, method)
            return loading


def without_paths(sentence: str) -> str:
    """Return a sentence with nothing of this machine's folders: of a path only the last part stays."""
    return _PATH.sub(r"\1\2", _QUOTED_PATH.sub(r"\1\2\1", sentence))
