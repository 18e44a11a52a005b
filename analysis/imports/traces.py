"""Our own traces, as `run --trace` writes them: one file a run."""

from __future__ import annotations

from decoding.trace import parse_trace

from ..recheck.derived import refuse_contradictions, unchecked
from ..store.schema import DENSE, RUNS, STEPS
from ..store.tables import RunIdentity, tables_of
from .fields import Fields
from .records import Contents
from .tables import Imported, lacking, summary

NAME, TITLE = "trace", "our own trace"


def recognises(first: Fields) -> bool:
    """Return True if this is the header of a trace."""
    return first.plain.get("kind") == "header" and "schema" in first


def read(contents: Contents) -> Imported:
    """Read the one run, as far as it was written."""
    trace = parse_trace(contents.data, allow_partial=True)
    refuse_contradictions(trace)
    runs, steps, nodes = tables_of(trace, RunIdentity(question=contents.name))
    missing = lacking(runs, steps, nodes, TITLE)
    missing |= {key: DENSE for key in (f"{RUNS}.experts", f"{STEPS}.experts") if key in missing}
    about = summary(contents.name, "specscope", missing, format=NAME, unchecked=[*unchecked(trace)])
    return Imported(runs, steps, nodes, about)
