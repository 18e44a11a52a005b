"""Imports moved modules by their old names too, with a warning: `decoding.metrics` is `analysis.metrics`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_STORE = ("apart", "checks", "folder", "query", "query_process", "query_size", "schema", "shared_tables", "sql")
_ANALYSIS = ("bench", "child_process", "doctor", "evaluate", "imports", "landscape", "metrics", "prompts", "tuned")
# The longest matching name takes precedence.
_PATHS = {
    **{f"decoding.{name}": f"analysis.{name}" for name in _ANALYSIS},
    **{f"decoding.evaluate.{name}": f"analysis.store.{name}" for name in (*_STORE, "tables", "totals")},
    **{f"decoding.imports.{name}": f"analysis.restoring.{name}" for name in ("restore", "restoring_loop")},
    "decoding.cli": "cli",
    "decoding.model.texts": "lab.training.text_batch",
    "decoding.model.weight_bytes": "app.models.weight_bytes",
    "decoding.parts.building": "lab.training.datastore",
    "decoding.parts.places": "decoding.parts.named",
    "decoding.tokenizer_apart": "app.models.tokenizer_apart",
    "decoding.trace.cache_slots": "viz.cache_slots",
    "decoding.trace.export": "analysis.export",
}


class _OldNames(MetaPathFinder, Loader):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        for old in sorted(_PATHS, key=len, reverse=True):
            if f"{fullname}.".startswith(f"{old}."):
                return ModuleSpec(fullname, self, origin=_PATHS[old] + fullname.removeprefix(old), is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        assert spec.origin is not None
        warnings.warn(f"{spec.name} is {spec.origin} now", DeprecationWarning, stacklevel=2)
        module = import_module(spec.origin)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state  # the module has run already, and keeps its new name


def follow() -> None:
    """Let the old names be imported."""
    sys.meta_path.insert(0, _OldNames())  # before finders that would run the files again, under the old name
