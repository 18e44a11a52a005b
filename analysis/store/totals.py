"""Checks that the three tables agree: totals with their parts, trees, paths and ends of runs.

Numbers can be possible by themselves and impossible together, such as a million accepted guesses of three. Missing
values are not compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from decoding.errors import TraceError
from decoding.types import TIME_PARTS

from .schema import NODES, RUNS, STEPS

_KEYS = {RUNS: ("run",), STEPS: ("run", "step"), NODES: ("run", "step", "node")}
_MOST_NODES = 4_096  # of a step: as many as the engine's largest step may have
_ROUNDING = 1e-4  # of times, which are rounded before they are summed
_Array = np.ndarray[Any, Any]


class _Rows:
    """A table's columns as numbers, NaN where they are null."""

    def __init__(self, name: str, table: pa.Table) -> None:
        self._name, self._table = name, table

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __getitem__(self, column: str) -> _Array:
        values = self._table[column]
        if pa.types.is_list(values.type):
            values = pc.list_value_length(values)
        return np.asarray(values.to_numpy(), float)

    def is_text(self, column: str, text: str) -> _Array:
        """Return a mask of the rows with this text."""
        return np.asarray(pc.equal(self._table[column], text).to_numpy())

    def refuse(self, wrong: _Array, sentence: str, *amounts: _Array | float) -> None:
        """Raise TraceError for the first row that is wrong; `amounts` are put into the sentence."""
        if not wrong.any():
            return
        row = int(np.argmax(wrong))
        place = ", ".join(f"{key} {self._table[key][row].as_py()}" for key in _KEYS[self._name])
        shown = [f"{amount if np.ndim(amount) == 0 else np.asarray(amount)[row]:,.12g}" for amount in amounts]
        raise TraceError(f"{self._name}: row {row + 1} ({place}) {sentence.format(*shown)}")


def check_totals(runs: pa.Table, steps: pa.Table, nodes: pa.Table) -> None:
    """Check tables whose rows are sorted and have their run and step; raises TraceError for the first wrong row."""
    of_runs, of_steps, of_nodes = _Rows(RUNS, runs), _Rows(STEPS, steps), _Rows(NODES, nodes)
    run_of_step = np.searchsorted(of_runs["run"], of_steps["run"])
    _check_steps(of_steps, of_runs, run_of_step)
    _check_runs(of_runs, of_steps, run_of_step)
    if len(of_nodes):
        _check_nodes(of_nodes, of_steps)


def _check_steps(steps: _Rows, runs: _Rows, run_of_step: _Array) -> None:
    accepted, drafted, written, nodes = (steps[name] for name in ("accepted", "drafted", "written", "nodes"))
    for name in ("accepted", "drafted", "nodes"):
        steps.refuse(steps[name] > _MOST_NODES, f"has {name} {{}}, more than the {_MOST_NODES:,} allowed", steps[name])
    steps.refuse(accepted > drafted, "accepts {} of {} drafted guesses", accepted, drafted)
    steps.refuse(drafted > nodes - 1, "drafts {} guesses with {} nodes, the root included", drafted, nodes)
    wrong = (written < 1) | (written > accepted + 1)
    steps.refuse(wrong, "writes {} tokens, but accepts {} and may write one more", written, accepted)
    fed, start = steps["fed"], steps["start"]
    most = start - 1 + np.where(np.isnan(nodes), _MOST_NODES, nodes)  # all tokens before the root, and the tree
    steps.refuse((fed < 1) | (fed > most), "feeds {} rows, but from 1 to {} can be fed", fed, most)
    experts = runs["experts"][run_of_step]
    steps.refuse(steps["experts"] > experts, "reads {} experts of {}", steps["experts"], experts)
    total, phases = steps["total_ms"], np.nansum([steps[f"{part}_ms"] for part in TIME_PARTS], axis=0)
    wrong = phases > total * 1.01 + 0.1  # a device measures its part by a clock of its own
    steps.refuse(wrong, "spends {} ms in its phases, but {} ms in all", phases, total)
    later = (np.diff(steps["run"]) == 0) & (np.diff(steps["step"]) == 1)  # of each row but the first
    begun = np.where(steps["step"] == 0, runs["prompt_tokens"][run_of_step], np.nan)
    begun[1:] = np.where(later, start[:-1] + written[:-1], begun[1:])
    both = ~np.isnan(begun) & ~np.isnan(start)
    steps.refuse(both & (start != begun), "starts after {} tokens, but {} were written before", start, begun)


def _check_runs(runs: _Rows, steps: _Rows, run_of_step: _Array) -> None:
    def summed(values: _Array) -> _Array:
        """Sum over each run's steps; NaN where the run has none, or one does not say."""
        sums = np.bincount(run_of_step, weights=np.asarray(values, float), minlength=len(runs))
        return np.where(counts > 0, sums, np.nan)

    counts = np.bincount(run_of_step, minlength=len(runs))
    runs.refuse(runs["accepted"] > runs["drafted"], "accepts {} of {} guesses", runs["accepted"], runs["drafted"])
    amounts = {"steps": np.ones(len(steps))} | {name: steps[name] for name in ("accepted", "drafted", "fed")}
    for name, values in amounts.items():
        total, sums = runs[name], summed(values)
        runs.refuse(_differ(total, sums), f"has {name} {{}}, but its steps make {{}}", total, sums)
    written, tokens = steps["written"], runs["new_tokens"]
    sums, longest = summed(written), np.zeros(len(runs))
    np.maximum.at(longest, run_of_step, written)
    # Some records count a step whole that the end of a text has cut, or leave out the pass that reads the prompt.
    wrong = (tokens > sums + 1) | (tokens <= sums - longest)
    runs.refuse(wrong, "has {} new tokens, but its steps write {}", tokens, sums)
    cut = summed(written <= steps["accepted"])
    runs.refuse(cut > 1, "has {} steps that write fewer tokens than they could, which only the last may", cut)
    runs.refuse(runs["accepted"] > sums, "accepts {} guesses, but writes {} tokens", runs["accepted"], sums)
    for name, ids in (("new_tokens", "ids"), ("prompt_tokens", "prompt_ids")):
        runs.refuse(_differ(runs[name], runs[ids]), f"has {name} {{}}, but {{}} tokens in {ids}", runs[name], runs[ids])
    mean, each = runs["mean_acceptance_length"], sums / np.maximum(counts, 1)
    runs.refuse(_differ(mean, each, 1e-6), "has mean_acceptance_length {}, but its steps make {}", mean, each)
    _check_times(runs, steps, summed)


def _check_times(runs: _Rows, steps: _Rows, summed: Callable[[_Array], _Array]) -> None:
    seconds, first = steps["total_ms"] / 1000, steps["step"] == 0
    begun = summed(first) > 0
    for name, part in (("prefill_seconds", first), ("decode_seconds", ~first)):
        total, whole = runs[name], np.where(begun, summed(np.where(part, seconds, 0.0)), np.nan)
        runs.refuse(_differ(total, whole, _ROUNDING), f"has {name} {{}}, but its steps make {{}}", total, whole)
    rate, later, tokens = (runs[name] for name in ("tokens_per_second", "decode_seconds", "new_tokens"))
    wrong = rate * later > tokens * (1 + _ROUNDING)
    runs.refuse(wrong, "has {} tokens a second for {} tokens in {} seconds", rate, tokens, later)


def _differ(one: _Array, other: _Array, tolerance: float = 0.0) -> _Array:
    """Return a mask of the rows whose two numbers are both given and differ."""
    return np.asarray(np.abs(one - other) > tolerance * np.maximum(one, other))


def _check_nodes(nodes: _Rows, steps: _Rows) -> None:
    """Check that the nodes of every step make a tree with one accepted path, and that their counts are the step's."""
    step_of_node = np.searchsorted(_keys(steps), _keys(nodes))
    root = np.diff(step_of_node, prepend=-1) != 0
    first = np.flatnonzero(root)  # the row of every step's root
    begin = first[np.cumsum(root) - 1]  # the row of every node's root
    place = np.arange(len(nodes)) - begin
    nodes.refuse(nodes["node"] != place, "is node {} of its step, counted from 0: number them so", place)
    above = np.where(root, begin, begin + nodes["parent"]).astype(np.int64)  # the row of every node's parent
    depth = np.where(root, 0, nodes["depth"][above] + 1)
    nodes.refuse(nodes["depth"] != depth, "has depth {}, but {} by its parent", nodes["depth"], depth)
    wrong = nodes.is_text("role", "root") != root
    nodes.refuse(wrong, "must have the role root if it is the first of its step, and no other")
    guess, accepted, judged = nodes.is_text("role", "verify"), nodes["accepted"] > 0, nodes["judged"] > 0
    taken, reached = accepted & guess, root | (accepted & guess)
    nodes.refuse(accepted & ~reached, "is accepted, but is no guess to verify")
    nodes.refuse(taken & ~(judged & reached[above]), "is accepted, but its parent is not, or it was not judged")
    nodes.refuse(judged & ~(guess & reached[above]), "was judged, but is no guess, or its parent is not accepted")
    same = above[taken]
    again = np.zeros(len(nodes), bool)
    again[np.flatnonzero(taken)] = np.bincount(same, minlength=len(nodes))[same] > 1
    nodes.refuse(again, "is accepted beside another guess of its parent")
    wrong = taken & _differ(nodes["token"], nodes["wanted"])
    nodes.refuse(wrong, "is accepted as token {}, but the target wanted {}", nodes["token"], nodes["wanted"])
    siblings = np.flatnonzero(guess)[np.argsort(above[guess], kind="stable")]  # the guesses of one parent in a row
    starts = np.flatnonzero(np.diff(above[siblings], prepend=-1))
    order = np.empty(len(nodes))
    order[siblings] = np.arange(len(siblings)) - np.repeat(starts, np.diff(starts, append=len(siblings)))
    wrong = guess & _differ(nodes["sibling"], order)
    nodes.refuse(wrong, "has sibling {}, but is guess {} of its parent", nodes["sibling"], order)
    recorded = np.bincount(step_of_node, minlength=len(steps)) > 0
    for name, counted in (("nodes", np.ones(len(nodes))), ("drafted", guess), ("accepted", taken)):
        counts = np.bincount(step_of_node, weights=counted, minlength=len(steps))
        total = steps[name]
        steps.refuse(recorded & _differ(total, counts), f"has {name} {{}}, but {{}} by its nodes", total, counts)


def _keys(rows: _Rows) -> _Array:
    """Join run and step to one number."""
    return np.asarray(rows["run"].astype(np.int64) << 32 | rows["step"].astype(np.int64))
