"""One view of the Debug page: the selections that its address names, their metrics, and the steps that a bar counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.metrics import Condition, MetricResult, Selection, compared
from analysis.metrics.result import LOST
from analysis.store.query import Shown
from analysis.store.schema import NODES, RUNS, STEPS
from decoding.errors import ParamError, TraceError
from viz.debug.charts import Side, chart, differences
from viz.token_text import raw

from ..server.limits import LIMITS
from ..store.run_folders import OpenFolder, method_label
from .cards import CARDS
from .question_differences import by_question
from .state import COMPARED, QUESTIONS, DebugState

_SIGNS: dict[str, Callable[[pa.ChunkedArray, Any], pa.ChunkedArray]] = {
    "=": pc.equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "is": lambda column, _: pc.is_null(column),
    "is not": lambda column, _: pc.is_valid(column),
}  # of a condition, of which the last two are of None alone
_ROWS = 200  # of a result that the page is given


class Selected:
    """The steps of one folder that a query chose."""

    def __init__(self, folder: OpenFolder, query: str, method: str = "", setting: str = "") -> None:
        self.folder, self.query, self.key = folder, query, (query, method, setting)
        self._method, self._setting = method, setting

    @property
    def answer(self) -> Selection | Shown:
        """The steps that the query chooses, or the table that it answers with."""
        return self.folder.selections.get(self.key, self._ask)

    @property
    def selection(self) -> Selection:
        """The steps, for the metrics; raises ParamError if the query answers with a table."""
        answer = self.answer
        if isinstance(answer, Shown):
            raise ParamError("a query that chooses steps has one column run and one column step: select both")
        return answer

    def measure(self, metric: str) -> MetricResult:
        """Return a metric of these steps."""
        return self.folder.results.get((*self.key, metric), lambda: CARDS[metric].measure(self.selection))

    def _ask(self) -> Selection | Shown:
        answer = self.folder.answer(self.query)
        if isinstance(answer, Shown):
            return answer
        chosen = self.folder.selection.masked(self.folder.mask(answer))
        wanted = {"method": self._method or None, "setting": self._setting or None}
        return chosen.where(**wanted) if any(wanted.values()) else chosen  # type: ignore[arg-type]

    def steps(self, conditions: Sequence[Condition] = (), slowest: str = "") -> np.ndarray[Any, Any]:
        """Return the positions in the table of the chosen steps that satisfy some conditions.

        The slowest come first by the column that `slowest` names.
        """
        rows = self.selection.steps.rows
        if conditions:
            rows = rows[steps_where(self.folder, conditions)[rows]]
        if not slowest:
            return rows
        values = self.folder.folder.steps[slowest].to_numpy()[rows]  # NaN where null, which sorts last
        return rows[np.argsort(-values, kind="stable")]


def steps_where(folder: OpenFolder, conditions: Sequence[Condition]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return a mask of the steps that satisfy conditions; one node must satisfy all conditions on nodes.

    The conditions are the metrics' own, so they need no limits of queries, and a bar's steps are listed at once.
    """
    whole, tables = folder.selection, folder.folder
    holds = {RUNS: np.ones(len(tables.runs), bool), STEPS: np.ones(len(tables.steps), bool)}
    nodes = np.ones(len(tables.nodes), bool)
    for condition in conditions:
        table, column, sign, value = condition
        if condition == LOST:
            paths = pc.add(tables.steps["accepted"], 1).take(pa.array(whole.step_of_node))
            nodes &= _true(pc.equal(tables.nodes["depth"], paths))
        elif table == NODES:
            nodes &= _true(_SIGNS[sign](tables.nodes[column], value))
        else:
            holds[table] &= _true(_SIGNS[sign]((tables.runs if table == RUNS else tables.steps)[column], value))
    chosen = holds[STEPS] & holds[RUNS][whole.run_of_step]
    if any(table == NODES for table, *_ in conditions):
        chosen &= np.bincount(whole.step_of_node[nodes], minlength=len(chosen)) > 0
    return chosen


def _true(answers: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return a mask of the answers that are known and true."""
    return np.asarray(answers.fill_null(False))


@dataclass(frozen=True, slots=True)
class CountedSteps:
    """The steps that a row of a metric counts."""

    places: np.ndarray[Any, Any]  # in the table of steps
    whole: bool  # the row is made of all of them
    slowest: bool  # they are in the order of their times

    def order(self) -> dict[str, bool]:
        """Return the sentence on the order of their list."""
        return {"whole": self.whole, "slowest": self.slowest}


class DebugView:
    """The selections that an address names."""

    def __init__(self, state: DebugState, folder: OpenFolder, against: OpenFolder | None) -> None:
        self.state, self.folder, self.against = state, folder, against
        self.first = Selected(folder, state.query)
        self.second: Selected | None = None
        if against is not None:
            self.second = Selected(against, state.against_query, *state.against_choice)

    def head(self) -> dict[str, Any]:
        """Return what the page shows first: how much was selected, or the query's result table."""
        answer = self.first.answer
        if isinstance(answer, Shown):
            return {"table": asdict(answer)}
        facts: dict[str, Any] = {"chosen": len(answer.steps)}
        if self.second is not None:
            facts["against_chosen"] = len(self.second.selection.steps)
        return facts

    def names(self) -> list[str]:
        """Name the selections for legends."""
        names = [self._name(self.folder, self.state.filters.method, self.state.filters.setting)]
        if self.against is not None:
            names.append(self._name(self.against, *self.state.against_choice))
            if self.folder is not self.against:
                names = [f"{name} ({each.name})" for name, each in zip(names, (self.folder, self.against), strict=True)]
        return [f"{letter}: {name}"[:60] for letter, name in zip("AB", names, strict=False)]

    def _name(self, folder: OpenFolder, method: str | None, setting: str | None) -> str:
        named = " ".join(filter(None, (method and method_label(method), setting if setting != "default" else "")))
        return named or "all methods"

    def measure(self, key: str) -> dict[str, Any]:
        """Return a metric's answer for the page: the results, and a figure of them."""
        card = CARDS[key]
        sides = [side for side in (self.first, self.second) if side is not None]
        results = [side.measure(key) for side in sides]
        drawn = [
            Side(name, result["columns"], result["rows"][:_ROWS], second=place == 1)
            for place, (name, result) in enumerate(zip(self.names(), results, strict=True))
            if result["reason"] is None
        ]
        shown = [self._shown(result, side) for result, side in zip(results, sides, strict=True)]
        return {"key": key, "results": shown, "names": self.names(), "figure": chart(card.chart, drawn)}

    def compare(self, key: str) -> dict[str, Any]:
        """Compare the two selections on the questions that both have."""
        result = self._compared(key)
        drawn = differences(result["columns"], result["rows"][:_ROWS]) if key == COMPARED else None
        return {"key": key, "results": [self._shown(result, self.first)], "names": self.names(), "figure": drawn}

    def _compared(self, key: str) -> MetricResult:
        if self.second is None:
            raise ParamError("there is no second selection to compare with: choose a folder to compare with")
        first, second = self.first, self.second
        make = compared if key == COMPARED else by_question
        place = (key, *first.key, *second.key, self.state.against)
        return self.folder.results.get(place, lambda: make(first.selection, second.selection))

    def _shown(self, result: MetricResult, side: Selected) -> dict[str, Any]:
        """Return a result without the conditions that say which steps each row counts: those stay on the server.

        What it advises is the address of a run with these settings.
        """
        rows, advice = result["rows"][:_ROWS], result.get("advice")
        facts = {name: value for name, value in result.items() if name not in ("rows", "where", "slowest", "advice")}
        if advice is not None:
            [(method, _)] = side.selection.methods
            settings = {name: json.dumps(each) if isinstance(each, bool) else each for name, each in advice.items()}
            facts["run"] = urlencode({"method": method} | {f"p.{name}": each for name, each in settings.items()})
        return facts | {"rows": rows, "more": len(result["rows"]) - len(rows)}

    def steps(self, key: str, row: int, second: bool, offset: int) -> dict[str, Any]:
        """Return some of the steps that a row of a metric counts, or all rows."""
        side, counted = self._side(second), self.behind(key, row, second)
        listed = counted.places[offset : offset + LIMITS.listed_steps]
        steps = [step_facts(side.folder, int(at)) for at in listed]
        return {"count": len(counted.places), "offset": offset, **counted.order(), "steps": steps}

    def behind(self, key: str, row: int, second: bool = False) -> CountedSteps:
        """Return the steps that a row of a metric counts, or all rows."""
        side = self._side(second)
        conditions, slowest, whole = list[Condition](), "", False
        if key and row >= 0:
            result = self._compared(key) if key in (COMPARED, QUESTIONS) else side.measure(key)
            if row >= len(result["rows"]):
                raise ParamError(f"this chart has {len(result['rows'])} rows: ask for an earlier one")
            conditions = result["where"][row] if result["where"] else []
            slowest = result["slowest"][row] if result["slowest"] else ""
            whole = bool(slowest) or not result["where"]
        return CountedSteps(side.steps(conditions, slowest), whole, bool(slowest))

    def _side(self, second: bool) -> Selected:
        side = self.second if second else self.first
        if side is None:
            raise ParamError("there is no second selection to look into: choose a folder to compare with")
        return side

    def table(self, most: int) -> pa.Table:
        """Return the steps of the first selection with what is known of their runs."""
        places = self.first.steps()
        if len(places) > most:
            raise ParamError(f"{len(places):,} steps are chosen, above the {most:,} of a file: narrow the filters")
        steps, runs = self.folder.folder.steps.take(pa.array(places)), self.folder.folder.runs
        of_run = np.searchsorted(runs["run"].to_numpy(), steps["run"].to_numpy())
        for name in ("setting", "method", "turn", "category", "question"):
            steps = steps.add_column(1, name, runs[name].take(pa.array(of_run)))
        return steps


def step_facts(folder: OpenFolder, at: int) -> dict[str, Any]:
    """Return a step as the list of steps shows it; `at` is its position in the table."""
    steps, runs = folder.folder.steps, folder.folder.runs
    row = {name: steps[name][at].as_py() for name in ("run", "step", "start", "accepted", "drafted", "written", "text")}
    row["ms"] = steps["total_ms"][at].as_py()
    place = int(np.searchsorted(runs["run"].to_numpy(), row["run"]))
    row |= {name: runs[name][place].as_py() for name in ("question", "category", "turn", "method", "setting")}
    row["label"] = method_label(row["method"])
    return row | guess_texts(folder, row)


def guess_texts(folder: OpenFolder, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the texts and fates of a step's guesses: the accepted ones, then the first ones rejected.

    The target's own token follows: the correction, or the bonus if all guesses were right.
    """
    nodes, run, step = folder.folder.nodes, row["run"], row["step"]
    first, last = np.searchsorted(folder.node_keys, [(run << 32) | step, ((run << 32) | step) + 1])
    if first == last:
        return {"pieces": [], "wanted": None}
    part = nodes.slice(int(first), int(last - first)).select(
        ["parent", "depth", "role", "text", "accepted", "judged", "wanted_text"]
    )
    guesses = [guess for guess in part.to_pylist() if guess["role"] == "verify"]
    accepted = sorted((guess for guess in guesses if guess["accepted"]), key=lambda guess: guess["depth"])
    end = len(accepted) + 1
    rejected = [guess for guess in guesses if guess["judged"] and not guess["accepted"] and guess["depth"] == end]
    fates = [[raw(guess["text"] or ""), "accepted"] for guess in accepted]
    fates += [[raw(guess["text"] or ""), "rejected"] for guess in rejected[:3]]
    text, before = row["text"] or "", "".join(guess["text"] or "" for guess in accepted)
    if accepted and not rejected and row["written"] > len(accepted) and text.startswith(before):
        fates.append([raw(text.removeprefix(before)), "bonus"])
    return {
        "pieces": fates,
        "wanted": raw(wanted) if rejected and (wanted := rejected[0]["wanted_text"]) is not None else None,
    }


def whole_number(value: object, most: int) -> int:
    """Return a number that a browser sent."""
    if type(value) is not int or not -1 <= value <= most:
        raise TraceError(f"a row is a whole number up to {most}")
    return value
