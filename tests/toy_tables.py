"""N-gram tables of the toys: really built, and small enough that drafts run over their edges."""

from __future__ import annotations

from decoding.model.table import TableModel
from decoding.parts.tables import Tables, build


def make(model: TableModel) -> Tables:
    """Return four followers of every token, chains of three links."""
    return build(model, top=4, length=3, progress=lambda what, share: None)
