"""The user's folder for files that can be made again."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache() -> Path | None:
    """Return $XDG_CACHE_HOME/specscope or ~/.cache/specscope; None if neither is an absolute path."""
    homes = (os.environ.get("XDG_CACHE_HOME", ""), os.path.expanduser("~/.cache"))  # noqa: PTH111  # raises nothing
    absolute = [home for home in map(Path, homes) if home.is_absolute()]  # XDG ignores other paths
    return absolute[0] / "specscope" if absolute else None
