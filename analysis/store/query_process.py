"""Runs untrusted queries in a child process, which can be killed.

DuckDB ignores its interrupt while it parses and plans, and its memory limit holds for the data only: some queries of a
few hundred characters need minutes or gigabytes for that. `query_size.py` refuses the known ones.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from decoding.errors import ParamError

from ..child_process import ChildAnswer, ChildProcess, serve
from .query import SELECTED, ChosenSteps, Shown, answer_query, cells
from .shared_tables import SharedTables, mapped

_GRACE = 0.5  # seconds that a query has to end by itself, which leaves the child warm
_LATE = f"the query took longer than {SELECTED.seconds:g} seconds, so it was ended: ask for less"
_ENDED = "the query needed more memory than it may have, so it was ended: ask for less"


class QueryProcess:
    """A child that answers queries, one at a time."""

    def __init__(self, memory: int) -> None:
        self._child = ChildProcess(__name__, memory, ParamError)

    @property
    def is_running(self) -> bool:
        """Whether it can answer another query: one that took too much has ended it."""
        return self._child.is_running

    def answer(self, tables: SharedTables, query: str) -> ChosenSteps | Shown:
        """Answer a query as `query.answer` does, with a table as the page shows it; raises ParamError."""
        try:
            reply, content = self._child.ask({"paths": tables.paths, "query": query}, SELECTED.seconds + _GRACE)
        except TimeoutError:
            raise ParamError(_LATE) from None
        except EOFError:
            raise ParamError(_ENDED) from None
        if "columns" in reply:
            return Shown(reply["columns"], reply["rows"], reply["more"])
        chosen = pa.ipc.open_stream(content).read_all()
        return ChosenSteps(chosen["run"].to_numpy(), chosen["step"].to_numpy())


def _answer(request: Any) -> ChildAnswer:
    """Answer a query in the child: chosen steps as Arrow's bytes, a table as JSON."""
    result = answer_query(mapped(request["paths"]), request["query"])
    if isinstance(result, ChosenSteps):
        table, sink = pa.table({"run": result.runs, "step": result.steps}), pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return {}, sink.getvalue().to_pybytes()
    columns, rows = cells(result.table)
    return {"columns": columns, "rows": rows, "more": result.more}, b""


if __name__ == "__main__":
    serve(_answer)
