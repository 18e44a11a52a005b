"""Run folders for the tests of the Debug page."""

from __future__ import annotations

from pathlib import Path

from analysis.store.folder import write_folder
from tests.evaluate.made_tables import made_tables


def make_folders(place: Path) -> Path:
    """Return two folders on the same questions, and one that cannot be read."""
    for number, name in enumerate(("first", "second")):
        tables = made_tables(24, 12, 4, seed=number)
        write_folder(place / name, *tables.values(), {"source": "specscope", "name": f"The {name}"})
    (place / "broken").mkdir(parents=True)
    (place / "broken" / "summary.json").write_text("{", encoding="utf-8")
    return place
