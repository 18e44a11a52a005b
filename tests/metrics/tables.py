"""Run folders' tables from a few words each: what is not given is null, as in a record that does not know it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from analysis.metrics import Selection
from analysis.store.schema import NODES_SCHEMA, RUNS_SCHEMA, STEPS_SCHEMA

Row = dict[str, Any]
_RUN = {"category": "chat", "turn": 1, "method": "draft_model", "setting": "default", "engine": "specscope"}


def run(number: int = 0, question: str = "q0", **more: Any) -> Row:
    """Make a run; `question` is its question's id."""
    return {"run": number, "question": question, "reconstructed": False} | _RUN | more


def step(number: int, accepted: int, drafted: int | None = None, *, of: int = 0, **more: Any) -> Row:
    """Make a step that was not cut: it wrote one token more than it accepted."""
    return {"run": of, "step": number, "accepted": accepted, "written": accepted + 1, "drafted": drafted} | more


def root(number: int = 1, *, of: int = 0) -> Row:
    """Make a step's root."""
    fixed = {"parent": -1, "depth": 0, "role": "root", "source": "root", "accepted": True, "judged": False}
    return {"run": of, "step": number, "node": 0} | fixed


def guess(node: int, parent: int, depth: int, *, of: int = 0, at: int = 1, **more: Any) -> Row:
    """Make a guess of step `at`: judged and rejected unless said otherwise."""
    fixed = {"role": "verify", "source": "draft", "accepted": False, "judged": True, "sibling": 0}
    return {"run": of, "step": at, "node": node, "parent": parent, "depth": depth} | fixed | more


def selection(
    runs: Sequence[Row] = (), steps: Sequence[Row] = (), nodes: Sequence[Row] = (), **missing: str
) -> Selection:
    """Return everything in these tables; one run where none is given."""
    tables = tables_of(runs or [run()], steps, nodes)
    return Selection.of(*tables.values(), missing=missing)


def tables_of(runs: Sequence[Row], steps: Sequence[Row], nodes: Sequence[Row] = ()) -> Mapping[str, pa.Table]:
    """Return the three tables by the schema."""
    schemas = {"runs": RUNS_SCHEMA, "steps": STEPS_SCHEMA, "nodes": NODES_SCHEMA}
    rows = {"runs": runs, "steps": steps, "nodes": nodes}
    return {name: pa.Table.from_pylist(list(rows[name]), schema) for name, schema in schemas.items()}
