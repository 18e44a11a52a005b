"""All views: those of the page's keys 1 to 8 in this order, then those that are always shown."""

from __future__ import annotations

from collections.abc import Mapping

from decoding.types import Role, Trace

from ..view import View
from . import cache, check, counters, mask, pair, pool, stage, text, timeline, tree, window

VIEWS: dict[str, View] = {
    "mask": mask.VIEW,
    "window": window.VIEW,
    "pool": pool.VIEW,
    "tree": tree.VIEW,
    "pair": pair.VIEW,
    "timeline": timeline.VIEW,
    "counters": counters.VIEW,
    "check": check.VIEW,
    "cache": cache.VIEW,
    "text": text.VIEW,
    "stage": stage.VIEW,
}
_OF_PANELS = ("window", "pool")  # views that draw what the method knows


def views_of(trace: Trace) -> Mapping[str, View]:
    """Return the views that a record can fill: some need panels."""
    guessed = any(Role.VERIFY in step.roles for step in trace.steps)
    if not guessed or any(step.panel for step in trace.steps):
        return VIEWS
    return {name: view for name, view in VIEWS.items() if name not in _OF_PANELS} | {"stage": stage.PLAIN}
