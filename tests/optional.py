"""What a copy for another machine may leave out, since all but SmolLM2 works without it."""

from __future__ import annotations

from pathlib import Path

from . import ROOT

OPTIONAL = ("assets/smollm2", "docs/screenshots")  # SmolLM2's parts, and the pictures of the page
PARTS_OUT = "this copy leaves assets/smollm2 out"


def left_out(path: Path = ROOT / OPTIONAL[0]) -> bool:
    """Return True if the path is in a folder that this copy leaves out; of itself SmolLM2's parts."""
    folders = [ROOT / name for name in OPTIONAL]
    return any(path.resolve().is_relative_to(folder) and not folder.exists() for folder in folders)
