"""Keeps Gradio from writing stubs for editors, for which it parses the source of every component at each import.

That took more than a third of the import's time, and wrote into the folder of its package.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType

_MODULE = "gradio.component_meta"


class _Loader(SourceFileLoader):
    """Loads the module, and leaves out its function that writes stubs."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        module.__dict__["create_or_modify_pyi"] = lambda *_: None


class _Finder(MetaPathFinder):
    """Finds the one module that is loaded in another way."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path) if fullname == _MODULE else None
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin)
        return spec


def leave_stubs_out() -> None:
    """Make later imports of Gradio leave its stubs out."""
    sys.meta_path.insert(0, _Finder())
