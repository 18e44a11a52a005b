"""Selections: the runs, steps and guesses that a metric uses."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa

from decoding.errors import TraceError
from decoding.types import JSON

from .columns import NO_GUESS, Array, ChosenRows, TableColumns
from .intervals import CLUSTERS
from .result import UnknownError

BASELINE = "autoregressive"
_MOST = 2**31  # steps of a run, nodes of a step: a step and a node fit one int64


class FolderTables(Protocol):
    """What a run folder was read into."""

    @property
    def runs(self) -> pa.Table: ...
    @property
    def steps(self) -> pa.Table: ...
    @property
    def nodes(self) -> pa.Table: ...
    @property
    def summary(self) -> Mapping[str, JSON]: ...


class Selection:
    """Rows of the three tables that belong together. A narrower selection shares the columns of its origin."""

    def __init__(
        self, runs: ChosenRows, steps: ChosenRows, nodes: ChosenRows, run_of_step: Array, step_of_node: Array
    ) -> None:
        self.runs, self.steps, self.nodes = runs, steps, nodes
        self.run_of_step = run_of_step  # indices in `runs`
        self.step_of_node = step_of_node  # indices in `steps`
        self.whole: Selection = self  # all rows of the folder that this was selected from

    @classmethod
    def of(
        cls, runs: pa.Table, steps: pa.Table, nodes: pa.Table, missing: Mapping[str, str] | None = None
    ) -> Selection:
        """Select everything in three tables; `missing` gives reasons by column or metric, as a folder's summary has."""
        a, b, c = (
            TableColumns(name, table, missing or {})
            for name, table in (("runs", runs), ("steps", steps), ("nodes", nodes))
        )
        run_of_step = _places(a.number("run"), b.number("run"), "run")
        keys = run_of_step * _MOST + _index(b.number("step"))
        node_run = _places(a.number("run"), c.number("run"), "run")
        step_of_node = _places(keys, node_run * _MOST + _index(c.number("step")), "step")
        all_runs, all_steps, all_nodes = (ChosenRows(table, np.arange(len(table))) for table in (a, b, c))
        return cls(all_runs, all_steps, all_nodes, run_of_step, step_of_node)

    @classmethod
    def from_folder(cls, folder: FolderTables) -> Selection:
        """Select everything in a run folder."""
        return cls.of(folder.runs, folder.steps, folder.nodes, folder.summary.get("missing"))

    def masked(self, steps: Array) -> Selection:
        """Select the steps of a boolean mask, with the runs and nodes that belong to them."""
        return self._narrowed(np.bincount(self.run_of_step[steps], minlength=len(self.runs)) > 0, steps)

    def where(
        self,
        *,
        runs: Sequence[int] | None = None,
        method: str | None = None,
        setting: str | None = None,
        category: str | None = None,
    ) -> Selection:
        """Select the runs that satisfy every given condition."""
        mask = np.ones(len(self.runs), bool)
        if runs is not None:
            mask &= np.isin(self.runs.maybe("run"), np.asarray(list(runs)))
        for column, text in (("method", method), ("setting", setting), ("category", category)):
            if text is not None:
                mask &= self.runs.is_text(column, text)
        return self._of_runs(mask)

    def on_questions(self, names: Collection[str]) -> Selection:
        """Select the runs on these questions."""
        places = [place for place, name in enumerate(self.questions) if name in names]
        if len(places) == len(self.questions):
            return self
        return self._of_runs(np.isin(self.question_of_run, np.asarray(places)))

    @cached_property
    def methods(self) -> list[tuple[str, str]]:
        """List every method with its settings, in the order of the runs."""
        named = [self.runs.columns.codes(column) for column in ("method", "setting")]
        texts = [[texts[code] for code in codes[self.runs.rows]] for codes, texts in named]
        return list(dict.fromkeys(zip(*texts, strict=True)))

    @cached_property
    def baseline(self) -> Selection:
        """Select the folder's autoregressive runs on the same questions; if there are none, on all questions."""
        whole = self.whole
        plain = whole.runs.is_text("method", BASELINE)
        if not plain.any():
            raise UnknownError("the folder has no autoregressive run to compare with: evaluate that method too")
        codes, _ = whole.runs.columns.codes("question")
        same = plain & np.isin(codes[whole.runs.rows], codes[self.runs.rows])
        return whole._of_runs(same if same.any() else plain)

    @cached_property
    def questions(self) -> list[str]:
        """List the ids of the questions, in the order of the runs."""
        return self._questions[1]

    @property
    def question_of_run(self) -> Array:
        """Return, for each run, the index of its question in `questions`."""
        return self._questions[0]

    @property
    def question_of_step(self) -> Array:
        """Return, for each step, the index of its question in `questions`."""
        return self.question_of_run[self.run_of_step]

    @cached_property
    def complete(self) -> Array:
        """Return a mask of the runs with all of their steps selected: only their totals describe this selection."""
        all_steps = np.bincount(self.whole.run_of_step, minlength=len(self.whole.runs))
        place = np.full(len(self.runs.columns), -1)
        place[self.whole.runs.rows] = np.arange(len(self.whole.runs))
        return np.asarray(all_steps[place[self.runs.rows]] == self.by_run(np.ones(len(self.steps))))

    def by_run(self, values: Array) -> Array:
        """Sum one value a step by run."""
        sums = np.bincount(self.run_of_step, weights=np.asarray(values, float), minlength=len(self.runs))
        return np.asarray(sums)

    def runs_by_question(self, values: Array) -> Array:
        """Sum one value a run by question."""
        return np.bincount(self.question_of_run, weights=np.asarray(values, float), minlength=len(self.questions))

    @property
    def cluster_of_step(self) -> Array:
        """Return, for each step, the cluster of its question: few enough clusters for a small table by group."""
        return self.question_of_step % CLUSTERS

    @property
    def clusters(self) -> int:
        """Return the number of clusters: one per question, up to a bound."""
        return min(len(self.questions), CLUSTERS)

    @cached_property
    def guessing(self) -> Array:
        """Return a mask of the steps that had a guess, and of those whose guesses were not counted."""
        drafted = self.steps.maybe("drafted")
        return np.isnan(drafted) | (drafted > 0)

    @cached_property
    def temperature(self) -> Array:
        """Return each run's temperature, NaN where not recorded. A greedy run may record q, but never draws from it."""
        codes, texts = self.runs.columns.codes("sampling")
        return np.array([*map(_temperature, texts), np.nan])[codes[self.runs.rows]]

    @property
    def temperature_of_node(self) -> Array:
        """Return the temperature of each node's run, NaN where not recorded."""
        return np.asarray(self.temperature[self.run_of_step[self.step_of_node]])

    @cached_property
    def guesses(self) -> Array:
        """Return a mask of the nodes that could have been emitted: neither roots nor window cells."""
        return self.nodes.is_text("role", "verify")

    @cached_property
    def judged(self) -> Array:
        """Return a mask of the guesses that the target decided on; raises UnknownError if there are none."""
        judged = self.guesses & (self.nodes.number("judged") > 0)
        if not judged.any():
            raise UnknownError("no guess of this selection was judged" if self.guessing.any() else NO_GUESS)
        return judged

    @cached_property
    def places(self) -> Array:
        """Return one judged guess for each position that the target decided: the first of its siblings."""
        rows = np.flatnonzero(self.judged)
        keys = self.step_of_node[rows] * _MOST + self.nodes.maybe("parent")[rows].astype(np.int64)
        order = np.argsort(keys, kind="stable")
        first = np.ones(len(order), bool)
        first[1:] = keys[order[1:]] != keys[order[:-1]]
        return np.sort(rows[order[first]])

    @cached_property
    def lost(self) -> Array:
        """Return those of `places` where no guess was accepted, so that the target's own token was written."""
        judged = np.flatnonzero(self.judged)
        parents = self.nodes.maybe("parent").astype(np.int64)
        keys = self.step_of_node * _MOST + parents
        hit = judged[self.nodes.number("accepted")[judged] > 0]
        return self.places[~np.isin(keys[self.places], keys[hit])]

    def by_question(self, values: Array, steps: Array | slice = slice(None)) -> Array:
        """Sum values of steps by question; `steps` selects the steps that the values belong to."""
        places = self.question_of_step[steps]
        return np.bincount(places, weights=np.asarray(values, float), minlength=len(self.questions))

    @cached_property
    def _questions(self) -> tuple[Array, list[str]]:
        codes, texts = self.runs.columns.codes("question")
        used, first, places = np.unique(codes[self.runs.rows], return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return rank[places], [texts[code] for code in used[order]]

    def _of_runs(self, runs: Array) -> Selection:
        return self._narrowed(runs, runs[self.run_of_step] if len(runs) else np.zeros(0, bool))

    def _narrowed(self, runs: Array, steps: Array) -> Selection:
        run_place, step_place = _renumbered(runs), _renumbered(steps)
        node_place = step_place[self.step_of_node]
        nodes = node_place >= 0
        part = Selection(
            self.runs.only(runs),
            self.steps.only(steps),
            self.nodes.only(nodes),
            run_place[self.run_of_step[steps]],
            node_place[nodes],
        )
        part.whole = self.whole
        return part


def _temperature(sampling: str) -> float:
    try:
        settings = json.loads(sampling)
        return float(settings["temperature"])
    except (ValueError, RecursionError, KeyError, TypeError, OverflowError):
        return math.nan


def _renumbered(mask: Array) -> Array:
    """Return the new index of every row of a mask; -1 where it is left out."""
    return np.where(mask, np.cumsum(mask) - 1, -1)


def _index(values: Array) -> Array:
    if len(values) and not (np.min(values) >= 0 and np.max(values) < _MOST):
        raise TraceError(f"steps must be numbered from 0 to {_MOST - 1}: this record is damaged")
    return values.astype(np.int64)


def _places(listed: Array, asked: Array, what: str) -> Array:
    """Find each key among the sorted ones; raise TraceError if one is missing."""
    order = np.argsort(listed, kind="stable")
    places = np.searchsorted(listed, asked, sorter=order)
    indices = order[np.minimum(places, max(0, len(listed) - 1))] if len(listed) else np.zeros(len(asked), np.int64)
    if len(asked) and (not len(listed) or (listed[indices] != asked).any()):
        raise TraceError(f"a row belongs to a {what} that the record lacks: this record is damaged")
    if len(listed) > 1 and (np.diff(listed[order]) == 0).any():
        raise TraceError(f"two rows describe the same {what}: this record is damaged")
    return indices.astype(np.int64)
