"""The tokenizers of the catalog's models, loaded without the weights and only from files of this machine."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

from decoding.errors import SpecscopeError

from .entry import CatalogEntry

if TYPE_CHECKING:
    from decoding.codec import Codec

_log = logging.getLogger(__name__)
_TIMEOUT = 20.0  # seconds; transformers is imported for the first one


class Tokenizers:
    """Tokenizers by the names of their models. Thread-safe."""

    def __init__(self) -> None:
        self._loading: dict[str, Future[Codec]] = {}
        self._lock = threading.Lock()

    def of(self, entry: CatalogEntry) -> Codec | None:
        """Load a model's tokenizer if it is not loaded yet; returns None if it is not on this machine."""
        with self._lock:
            loading = self._loading.get(entry.name)
            if loading is None:
                loading = self._loading[entry.name] = Future()
                threading.Thread(target=self._load, args=(entry, loading), daemon=True).start()
        try:
            return loading.result(_TIMEOUT)
        except (SpecscopeError, TimeoutError):
            return None

    def _load(self, entry: CatalogEntry, loading: Future[Codec]) -> None:
        try:
            loading.set_result(entry.codec())
        except Exception as error:
            with self._lock:
                del self._loading[entry.name]  # its files may come later
            if not isinstance(error, SpecscopeError):
                _log.exception("the tokenizer of %s cannot be loaded", entry.name)
                error = SpecscopeError("the tokenizer cannot be loaded")
            loading.set_exception(error)
