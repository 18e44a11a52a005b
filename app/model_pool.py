"""Engines by name: loaded when they are first asked for, kept, and honest about how far the loading is."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from decoding.errors import ModelError, SpecscopeError

from .catalog import Entry
from .limits import LIMITS

if TYPE_CHECKING:
    from decoding.engine import Engine

_log = logging.getLogger(__name__)


class Loading:
    """An engine that is on its way. Whoever waits may leave: the loading goes on, for the next one."""

    def __init__(self, entry: Entry, engine: Engine | None = None, method: str | None = None) -> None:
        self._entry, self._engine, self._method = entry, engine, method
        self._error: ModelError | None = None
        self._done = threading.Event()
        self.what, self.share = f"loading {entry.name}", 0.0
        threading.Thread(target=self._load, name=f"loading {entry.name}", daemon=True).start()

    def wait(self, timeout: float) -> Engine | None:
        """The engine if it is there after `timeout` seconds; raises why it cannot be."""
        if not self._done.wait(timeout):
            return None
        if self._error is not None:
            raise self._error
        return self._engine

    @property
    def failed(self) -> bool:
        """Whether it ended without an engine."""
        return self._done.is_set() and self._error is not None

    def _load(self) -> None:
        try:
            engine = self._engine or self._entry.load(self._tell)
            if self._method is not None:
                engine.prepare(self._method, self._tell)
            self._engine = engine
        except SpecscopeError as error:  # it names folders of the host
            _log.warning("%s cannot be loaded: %s", self._entry.name, error)
            self._error = self._sentence()
        except Exception:  # out of memory, a device that failed
            _log.exception("loading %s failed", self._entry.name)
            self._error = self._sentence()
        finally:
            self._done.set()

    def _sentence(self) -> ModelError:
        """What a visitor is told of a failure: the host's log has the reason, and a visitor could not mend it."""
        if self._method is None:
            return ModelError(f"{self._entry.name} cannot be loaded on this server now: choose another model")
        return ModelError(
            f"what {self._method} needs of {self._entry.name} cannot be loaded on this server now: "
            "choose another method or model"
        )

    def _tell(self, what: str, share: float) -> None:
        self.what, self.share = what, share


class Engines:
    """Keeps a few engines; the one unused for longest makes room."""

    def __init__(self, catalog: Mapping[str, Entry], most: int = LIMITS.models) -> None:
        self.catalog, self._most = catalog, most
        self._loading: OrderedDict[str, Loading] = OrderedDict()
        self._preparing: dict[tuple[str, str], Loading] = {}
        self._lock = threading.Lock()

    def __contains__(self, name: str) -> bool:
        """Whether an engine is kept, or on its way."""
        return name in self._loading

    def ask(self, entry: Entry) -> Loading:
        """The engine of an entry, on its way or there already."""
        with self._lock:
            known = self._loading.get(entry.name)
            if known is None or known.failed:
                known = self._loading[entry.name] = Loading(entry)
            self._loading.move_to_end(entry.name)
            while len(self._loading) > self._most:
                gone, _ = self._loading.popitem(last=False)
                self._preparing = {key: value for key, value in self._preparing.items() if key[0] != gone}
            return known

    def prepare(self, entry: Entry, engine: Engine, method: str) -> Loading:
        """What a method needs beside the weights, on its way or there already."""
        with self._lock:
            known = self._preparing.get((entry.name, method))
            if known is None or known.failed:
                known = self._preparing[entry.name, method] = Loading(entry, engine, method)
            return known
