"""Views that every method fills in its own way, and that a method may lack."""

from __future__ import annotations

from typing import Any, Literal

from decoding.types import Header

from ..methods import screen_of
from ..view import Picture, View


def picture_view(name: Literal["pool", "window"], **words: Any) -> View:
    """Make the view of the pictures that the methods' screens have by this name; `words` are its other fields."""

    def shows(header: Header) -> bool:
        return getattr(screen_of(header), name) is not None and header.record != "off"

    def picture(header: Header) -> Picture:
        drawn: Picture | None = getattr(screen_of(header), name)
        assert drawn is not None
        return drawn

    return View(
        name=name,
        kind="plot",
        base=lambda run: picture(run.header).base(run),
        frame=lambda run, k: picture(run.header).frame(run, k),
        rows=lambda run, k: picture(run.header).rows(run, k),
        shows=shows,
        **words,
    )
