"""The old names of modules that have moved go on working, with a warning: `decoding.metrics` is `analysis.metrics`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_STORE = ("checks", "folder", "query", "schema", "sql", "tables")  # of what `decoding.evaluate` held
# By the longest name that fits.
_PATHS = {
    **{f"decoding.{name}": f"analysis.{name}" for name in ("bench", "doctor", "evaluate", "imports", "landscape")},
    **{f"decoding.{name}": f"analysis.{name}" for name in ("metrics", "prompts", "tuned")},
    **{f"decoding.evaluate.{name}": f"analysis.store.{name}" for name in _STORE},
    "decoding.cli": "cli",
    "decoding.trace.export": "analysis.export",
}


class _Alias(Loader):
    """Gives the module of the new name under the old one."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import it by its new name."""
        warnings.warn(f"{spec.name} is {self._name} now", DeprecationWarning, stacklevel=2)
        module = import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Let it keep its new name: it has run already."""
        module.__spec__ = self._spec


class _Finder(MetaPathFinder):
    """Knows the old names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find an old name's module."""
        for old in sorted(_PATHS, key=len, reverse=True):
            if fullname == old or fullname.startswith(f"{old}."):
                name = _PATHS[old] + fullname.removeprefix(old)
                return ModuleSpec(fullname, _Alias(name), is_package=True)
        return None


def follow() -> None:
    """Let the old names be imported."""
    sys.meta_path.insert(0, _Finder())  # in front of what would read the files anew under the old name
