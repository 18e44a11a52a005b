""" "What if": makes the order of a run that continues a recorded or live one; the address names both.

The record may be an uploaded file, so its settings must be within the limits of any run of the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from decoding.errors import ParamError
from decoding.methods import METHODS
from decoding.request import find_sampling
from decoding.types import Trace

from .address import Fork, parse
from .controls import BranchOrigin, Order, runnable
from .models.catalog import entry_of
from .models.entry import CatalogEntry
from .server.limits import LIMITS
from .state import AppState

_LARGEST_CHUNK = 512  # of a prompt: the page's own runs read no more at once


def branch_of(app_state: AppState, query: Mapping[str, str]) -> tuple[Order, Fork]:
    """Return the order of a branch, and the position where it leaves the other run."""
    state = parse(query, app_state.catalog)
    if state.fork is None or state.run is None:
        raise ParamError(next(iter(state.problems), "name a run, and the place where it goes on otherwise"))
    fork, whole = state.fork, app_state.store.find(state.run).trace
    entry = _entry(app_state, whole)
    trace = _bounded(whole, fork.step, entry)
    header = trace.header
    setting = METHODS[header.method].Params.parse(dict(header.params))
    if setting.nodes > LIMITS.nodes:
        raise ParamError(f"a step of this run has {setting.nodes} tokens, above the {LIMITS.nodes} of this page")
    made = Order(
        entry=entry,
        method=METHODS[header.method],
        params=setting,
        sampling=find_sampling(header.sampling),
        prompt="",
        max_new_tokens=min(header.max_new_tokens, entry.max_new_tokens),
        origin=BranchOrigin(state.run, trace, fork.step, fork.node, fork.keep, fork.text),
    )
    return made, fork


def _bounded(trace: Trace, step: int, entry: CatalogEntry) -> Trace:
    """Return the trace of a run, if continuing it stays within this page's limits for its model."""
    if step >= len(trace.steps):
        raise ParamError(f"this run has {len(trace.steps)} steps: choose an earlier one than {step}")
    header = trace.header
    if len(header.prompt) > entry.max_prompt_tokens + entry.max_new_tokens:
        raise ParamError(f"the run's prompt has {len(header.prompt)} tokens, more than this page reads")
    if len(header.reference) > LIMITS.reference_characters:
        raise ParamError("the run's reference is longer than this page reads")
    most = trace.steps[step].start - len(header.prompt) + entry.max_new_tokens
    chunk = min(header.prefill_chunk, _LARGEST_CHUNK)
    return replace(trace, header=replace(header, max_new_tokens=min(header.max_new_tokens, most), prefill_chunk=chunk))


def _entry(app_state: AppState, trace: Trace) -> CatalogEntry:
    """Return the catalog's entry for the run's model, if the method can run on it here."""
    entry = entry_of(app_state.catalog, trace.header)
    if entry is None or not entry.at_hand:
        raise ParamError("this page does not have the run's model, so nothing can go on from it")
    if trace.header.method not in METHODS or trace.header.method not in runnable(entry):
        raise ParamError(f"{entry.name} lacks the parts that the run's method needs, so nothing can go on from it")
    return entry
