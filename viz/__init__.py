"""Draws steps and traces: the figures that the page plays, for notebooks and for HTML files, too.

from viz import animate, figure, landscape, write_html
figure(trace, "mask", step=7).show()
write_html(trace, "run.html")
landscape(measure_landscape(engine, text)).show()
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from decoding.installation import required

from .views import VIEWS

if TYPE_CHECKING:
    from .landscape_figure import landscape
    from .notebook import animate, figure
    from .page import write_html

__all__ = ["VIEWS", "animate", "figure", "landscape", "write_html"]

# Modules that import plotly are imported when they are used: the page's server draws nothing itself.
_LATER = {"animate": ".notebook", "figure": ".notebook", "landscape": ".landscape_figure", "write_html": ".page"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with required(f"viz.{name}"):
        return getattr(import_module(_LATER[name], __name__), name)
