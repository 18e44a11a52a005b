"""The server's answers to the Debug page, by the made folders and by the sample."""

from __future__ import annotations

import base64
import csv
import io
import logging
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from analysis.store.folder import write_folder
from analysis.store.tables import RunIdentity, tables_of
from app.debug.cards import CARDS
from app.pages.debug import functions
from app.state import AppState
from app.store.run_folders import SHIPPED
from decoding.trace import write_trace
from tests.recheck.test_tampered import put, recorded, tampered

from .conftest import CATALOG, lines
from .debug_folders import make_folders
from .test_controls import ANYTHING

NAMES = ["debug_open", "debug_chart", "debug_steps", "debug_export", "debug_bring", "debug_play"]


class Calls:
    """The functions by their names; `first` and `second` are the ids of the made folders."""

    def __init__(self, place: Path) -> None:
        self._functions = {each.__name__: each for each in functions(AppState(CATALOG, "toy", runs_folder=place))}
        assert list(self._functions) == NAMES
        self.first, self.second = (each["id"] for each in self("open", "")["folders"][-2:])

    def __call__(self, name: str, asked: Any) -> dict[str, Any]:
        answer = self._functions[f"debug_{name}"](asked)
        assert answer.get("fault") != "The server could not answer that: try again."
        return answer


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Calls:
    return Calls(make_folders(tmp_path_factory.mktemp("runs")))


def test_a_folder_opens_with_its_facts_query_and_charts(calls: Calls) -> None:
    opened = calls("open", f"screen=debug&folder={calls.first}")
    assert opened["facts"]["steps"] == 288 and opened["chosen"] == 144  # of one method alone
    assert (
        opened["filters"] == {"method": "draft_model", "setting": "default"}
        and "method = 'draft_model'" in opened["sql"]
    )
    assert [each["key"] for each in opened["charts"]] == list(CARDS)
    assert calls("open", opened["address"])["address"] == opened["address"]


def test_without_an_address_the_sample_is_shown(calls: Calls) -> None:
    assert calls("open", "")["folder"] == calls("open", "")["folders"][0]["id"]


def test_an_address_of_a_folder_that_is_gone_opens_another(calls: Calls) -> None:
    """A link to dropped files showed a sentence alone, without a menu to choose from."""
    opened = calls("open", f"folder=gone&against={calls.first}&f.accepted=2&foo=1")
    assert opened["folder"] == "pocket" and opened["chosen"] and "no longer has this run folder" in opened["notice"]
    assert "'foo' in the address was left out" in opened["notice"]
    opened = calls("open", f"folder={calls.first}&against=gone&f.method=*&f.accepted=2")
    assert opened["folder"] == calls.first and opened["filters"]["accepted"] == 2 and not opened["against"]
    assert "no longer has this run folder" in opened["notice"] and "against=" not in opened["address"]


def test_filters_narrow_what_all_charts_are_of(calls: Calls) -> None:
    query = urlencode({"folder": calls.first, "f.method": "*", "f.accepted": 3})
    opened = calls("open", query)
    (result,) = calls("chart", [query, "acceptance_histogram"])["results"]
    assert sum(row[1] for row in result["rows"]) == opened["chosen"] < 288
    assert [row[0] for row in result["rows"] if row[1]] == [3, 4]


@pytest.mark.sampled
@pytest.mark.parametrize("key", CARDS)
def test_the_steps_behind_each_row_are_those_that_it_counts(calls: Calls, key: str) -> None:
    """A bar that opened other steps than it is made of would send its reader astray."""
    for query in (f"folder={calls.first}&f.method=*", "folder=pocket&f.method=draft_model&f.setting=default"):
        (result,) = calls("chart", [query, key])["results"]
        for row in range(min(4, len(result["rows"]))):
            behind = calls("steps", [query, key, row, False, 0])
            assert behind["count"] >= len(behind["steps"])
            values = dict(zip(result["columns"], result["rows"][row], strict=True))
            if key in ("by_category", "by_context", "by_entropy", "acceptance_histogram", "histogram_by_draft_length"):
                assert behind["count"] == values["steps"], (key, row)
            if key == "confusion":  # a step ends at one position
                assert behind["count"] == values["times"], row


@pytest.mark.parametrize("key", ["mean_acceptance_length", "suggested_tree"])
def test_a_number_that_is_split_is_made_of_all_chosen_steps(calls: Calls, key: str) -> None:
    """Its rows are no parts of the steps: once they opened nothing."""
    query = "folder=pocket&f.method=draft_model&f.setting=default"
    behind = calls("steps", [query, key, 1, False, 0])
    assert behind["count"] == calls("open", query)["chosen"] and behind["whole"] and not behind["slowest"]


@pytest.mark.parametrize(
    ("key", "row", "column"),
    [("step_time", 1, "draft_ms"), ("step_time", 0, "total_ms"), ("latency", 0, "total_ms"), ("latency", 1, "total_ms"),
     ("throughput", 0, "total_ms"), ("step_cost", 2, "draft_ms"), ("speedup", 2, "forward_ms"),
     ("best_gamma", 3, "total_ms")],
)  # fmt: skip
def test_behind_a_time_the_slowest_steps_come_first(calls: Calls, key: str, row: int, column: str) -> None:
    query = "folder=pocket&f.method=draft_model&f.setting=default"
    behind = calls("steps", [query, key, row, False, 0])
    table = pq.read_table(SHIPPED / "pocket" / "steps.parquet", columns=["run", "step", column]).to_pylist()
    times = {(each["run"], each["step"]): each[column] for each in table}
    listed = [(each["run"], each["step"]) for each in behind["steps"]]
    slowest = [times[place] for place in listed]
    assert (
        behind["whole"] and behind["slowest"] and slowest == sorted(slowest, reverse=True) and slowest[0] > slowest[-1]
    )
    assert {step == 0 for _, step in listed} == {key == "latency" and row == 0}  # which alone reads the prompt


def test_a_list_of_steps_says_what_became_of_guesses(calls: Calls) -> None:
    query = f"folder={calls.first}&f.method=*"
    behind = calls("steps", [query, "", -1, False, 40])
    assert behind["count"] == 288 and behind["offset"] == 40
    for row in behind["steps"]:
        fates = [fate for _, fate in row["pieces"]]
        assert fates == ["accepted"] * row["accepted"] + ["rejected"] * (row["accepted"] < 4)
        assert (row["wanted"] is None) == (row["accepted"] == 4)


def test_a_listed_step_shows_every_token_that_it_wrote(calls: Calls) -> None:
    """The target's own token after guesses that were all right was missing: "5 of 5 accepted" showed five of six."""
    rows = calls("steps", ["folder=pocket&f.method=draft_model&f.setting=default", "", -1, False, 0])["steps"]
    guessing = [row for row in rows if row["pieces"]]
    for row in guessing:
        written = [text for text, fate in row["pieces"] if fate != "rejected"]
        assert "".join(written) + (row["wanted"] or "") == row["text"]
    assert {"accepted", "bonus", "rejected"} == {fate for row in guessing for _, fate in row["pieces"]}


def test_two_selections_are_drawn_together_and_compared(calls: Calls) -> None:
    query = f"folder={calls.first}&f.method=medusa&against={calls.second}&b.method=medusa"
    opened = calls("open", query)
    assert opened["chosen"] == opened["against_chosen"] == 144 and opened["names"][1].startswith("B: Medusa")
    drawn = calls("chart", [query, "survival"])
    assert len(drawn["results"]) == 2 and [trace["meta"] for trace in drawn["figure"]["data"]] == [0, 1]
    (result,) = calls("chart", [query, "compared"])["results"]
    assert result["reason"] is None and result["sentence"] and result["columns"][4] == "difference"
    assert calls("steps", [query, "survival", 0, True, 0])["steps"]
    each = calls("chart", [query, "questions"])["results"][0]
    assert len(each["rows"]) == 12 and calls("steps", [query, "questions", 0, False, 0])["count"] == 12


def test_a_selection_compared_with_itself_has_no_difference(calls: Calls) -> None:
    query = f"folder={calls.first}&f.method=medusa&against={calls.first}&b.method=medusa"
    (result,) = calls("chart", [query, "compared"])["results"]
    assert result["value"] == 0 and "no difference" in result["sentence"]


def test_a_link_may_point_to_the_comparison(calls: Calls) -> None:
    query = f"folder={calls.first}&f.method=medusa&against={calls.second}&b.method=medusa&chart=compared"
    opened = calls("open", query)
    assert opened["chart"] == "compared" and not opened["notice"] and "chart=compared" in opened["address"]


def test_a_wrong_filter_is_named_as_the_form_has_it(calls: Calls) -> None:
    opened = calls("open", f"folder={calls.first}&f.method=*&f.slower=99999999999")
    assert opened["notice"].startswith("The filter slower must be a number") and opened["chosen"] == 288


def test_a_query_without_steps_answers_with_a_table(calls: Calls) -> None:
    query = urlencode({"folder": calls.first, "sql": "SELECT category, count(*) AS n FROM runs GROUP BY 1 ORDER BY 1"})
    answer = calls("open", query)
    assert answer["table"]["rows"] == [["chat", 8], ["code", 8], ["maths", 8]] and "chosen" not in answer


@pytest.mark.parametrize(
    "sql", ["SELECT", "DROP TABLE runs", "SELECT * FROM read_text('/etc/passwd')", "SELECT 1 AS run, 2.5 AS step"]
)
def test_a_query_that_cannot_run_is_shown_with_its_reason(calls: Calls, sql: str) -> None:
    """It stays in its field, to be mended."""
    answer = calls("open", urlencode({"folder": calls.first, "sql": sql}))
    assert answer["sql"] == sql and answer["refused"].endswith(".") and "chosen" not in answer
    assert calls("chart", [urlencode({"folder": calls.first, "sql": sql}), "survival"]).keys() == {"fault"}


def test_no_query_runs_in_the_servers_process(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a visitor wrote cannot be killed there."""

    def fail(*_: object) -> None:
        raise AssertionError("a query ran in the server")

    monkeypatch.setattr("analysis.store.query.run", fail)
    query = urlencode({"folder": calls.first, "f.accepted": 1, "f.p_from": 0.1})
    assert calls("open", query)["chosen"]
    assert calls("steps", [query, "acceptance_histogram", 1, False, 0])["count"]
    assert calls("open", urlencode({"folder": calls.first, "sql": "SELECT 'infinity'::DATE AS a"}))["table"]["rows"]


def test_chosen_steps_are_saved_as_csv_and_parquet(calls: Calls) -> None:
    query = f"folder={calls.first}&f.accepted=4&f.method=*"
    chosen = calls("open", query)["chosen"]
    rows = list(csv.DictReader(io.StringIO(calls("export", [query, "csv"])["text"])))
    table = pq.read_table(io.BytesIO(base64.b64decode(calls("export", [query, "parquet"])["bytes"])))
    assert len(rows) == len(table) == chosen and {row["accepted"] for row in rows} == {"4"}
    assert table["question"].to_pylist() == [row["question"] for row in rows]


@pytest.mark.parametrize("method", ["draft_model", "medusa", "prompt_lookup", "lookahead", "eagle3", "autoregressive"])
def test_a_step_of_the_sample_opens_in_the_player(calls: Calls, method: str) -> None:
    """The folder has no traces: the run is put together from its tables."""
    row = calls("steps", [f"folder=pocket&f.method={method}", "", -1, False, 4])["steps"][0]
    played = calls("play", ["pocket", row["run"], row["step"]])
    sent = lines(played["lines"])
    assert sent[0]["step"] == row["step"] and sent[0]["run"] == played["run"]
    steps = [line for line in sent if line["kind"] == "step"]
    assert steps[row["step"]]["accepted"] == row["accepted"] and sent[-1]["summary"]["steps"] == len(steps)


def test_a_trace_of_a_folder_that_contradicts_itself_is_not_played(tmp_path: Path) -> None:
    """Its tables are read apart from it, so only the trace itself can tell."""
    wrong = tampered("greedy", put("summary", "tokens_per_second", value=99_999.0))
    tables = tables_of(recorded("greedy"), RunIdentity(trace="traces/0.jsonl"))
    for name in ("one", "two"):
        write_folder(tmp_path / name, *tables, {"source": "specscope", "name": name})
        (tmp_path / name / "traces").mkdir()
    write_trace(recorded("greedy"), tmp_path / "one" / "traces" / "0.jsonl")
    (tmp_path / "two" / "traces" / "0.jsonl").write_bytes(wrong)
    made = Calls(tmp_path)
    assert "lines" in made("play", [made.first, 0, 0])
    assert "contradicts itself: summary.tokens_per_second is 99999" in made("play", [made.second, 0, 0])["fault"]


def test_a_run_without_tokens_cannot_be_played(calls: Calls) -> None:
    refusal = calls("play", [calls.first, 0, 0])
    assert "--traces" in refusal["fault"]


@pytest.mark.parametrize(
    "asked",
    [["pocket", -1, 0], ["pocket", 10**6, 0], ["pocket", 0, 10**6], ["pocket", True, 0], [1, 0, 0], ["..", 0, 0]],
)
def test_runs_that_are_not_there_are_not_played(calls: Calls, asked: list[Any]) -> None:
    assert calls("play", asked).keys() == {"fault"}


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(argument=ANYTHING)
def test_anything_is_answered(calls: Calls, name: str, argument: object) -> None:
    """Whatever it is: with a sentence, or with the page at its beginning; never with an error in the log."""
    caught = list[logging.LogRecord]()
    handler = logging.Handler()
    handler.emit = caught.append  # type: ignore[method-assign]
    logging.getLogger("app.pages.server_calls").addHandler(handler)
    try:
        answer = calls(name.removeprefix("debug_"), argument)
    finally:
        logging.getLogger("app.pages.server_calls").removeHandler(handler)
    assert not caught
    if name != "debug_open":
        assert answer.keys() == {"fault"} and len(answer["fault"]) <= 500
