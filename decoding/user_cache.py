"""The folder of the user for files that can be made anew."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache() -> Path | None:
    """$XDG_CACHE_HOME/specscope or ~/.cache/specscope; None where neither is an absolute path."""
    homes = (os.environ.get("XDG_CACHE_HOME", ""), os.path.expanduser("~/.cache"))  # noqa: PTH111  # raises nothing
    absolute = [home for home in map(Path, homes) if home.is_absolute()]  # the XDG standard has others ignored
    return absolute[0] / "specscope" if absolute else None
