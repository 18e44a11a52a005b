"""Evaluations from beginning to end: also those that are interrupted, run out of disk, or meet a failing model."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.evaluate import parts
from analysis.evaluate.evaluation import Answers, duration, evaluate, in_this_process
from analysis.evaluate.plan import EvaluationPlan, make_plan
from analysis.evaluate.question import Answered
from analysis.prompts.tasks import Task
from analysis.prompts.toy import TASKS
from analysis.store.folder import PARTS, RunFolder, read_folder
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.loop import Loop
from decoding.toy import toy
from decoding.trace import read_trace

ABOUT = {"model": "toy"}
TIMES = ("prefill_seconds", "decode_seconds", "tokens_per_second")
_SINGLE = [task for task in TASKS if len(task.turns) == 1][:3]
QUESTIONS = (*_SINGLE, Task("two", "chat", (_SINGLE[0].turns[0], _SINGLE[1].turns[0])))
RUNS = 3 * 5  # entries, turns


@pytest.fixture(scope="module")
def engine() -> Engine:
    return toy()


@pytest.fixture(scope="module")
def plan() -> EvaluationPlan:
    return make_plan(
        QUESTIONS, ["draft_model"], settings={"short": ("draft_model", {"gamma": 2})}, max_new_tokens=10, traces=True
    )


@pytest.fixture(scope="module")
def whole(engine: Engine, plan: EvaluationPlan, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """The folder of an evaluation that nothing happened to."""
    folder = tmp_path_factory.mktemp("whole") / "folder"
    evaluate(plan, folder, in_this_process(engine), ABOUT)
    return read_folder(folder)


def without_times(folder: RunFolder) -> list[pa.Table]:
    tables = (folder.runs, folder.steps, folder.nodes)
    return [
        table.drop_columns([name for name in table.column_names if name in TIMES or name.endswith("_ms")])
        for table in tables
    ]


def counted(answers: Answers, then: Callable[[int], None] = lambda given: None) -> tuple[Answers, list[int]]:
    """The same answers, and the numbers that were asked for; `then` is called after each with how many there were."""
    asked: list[int] = []

    def give(plan: EvaluationPlan, numbers: Sequence[int]) -> Iterator[tuple[int, Answered]]:
        for number, answered in answers(plan, numbers):
            asked.append(number)
            yield number, answered
            then(len(asked))

    return give, asked


def test_every_turn_of_every_entry_is_in_the_tables(whole: RunFolder, plan: EvaluationPlan) -> None:
    rows = whole.runs.to_pylist()
    assert [row["run"] for row in rows] == [*range(RUNS)] and whole.finished
    want = [
        (str(task.id), turn, entry.method, entry.setting)
        for task in QUESTIONS
        for turn in range(1, len(task.turns) + 1)
        for entry in plan.entries
    ]
    assert [(row["question"], row["turn"], row["method"], row["setting"]) for row in rows] == want
    assert [entry.params.get("gamma") for entry in plan.entries] == [None, 5, 2]
    for row in rows:
        assert row["ids"] == rows[row["run"] // 3 * 3]["ids"], "greedy texts are those of autoregressive decoding"
        trace = read_trace(whole.path / row["trace"])
        assert [*trace.ids] == row["ids"] and trace.header.method == row["method"]
    assert not (whole.path / PARTS).exists()
    assert whole.summary["missing"] == {} and whole.summary["name"] == "folder"


def test_the_second_turn_has_the_first_answer_in_its_prompt(whole: RunFolder, engine: Engine) -> None:
    """All entries go on with the same conversation, or their speeds could not be compared."""
    first, second = (whole.runs.to_pylist()[run] for run in (9, 12))
    assert engine.codec.continuation(first["prompt_ids"], first["ids"]) in engine.codec.decode(second["prompt_ids"])
    assert len({tuple(row["prompt_ids"]) for row in whole.runs.to_pylist()[12:]}) == 1


def test_an_interrupted_evaluation_goes_on_where_it_was(
    engine: Engine, plan: EvaluationPlan, whole: RunFolder, tmp_path: Path
) -> None:
    """After Ctrl-C, and after a kill between two files of a part, nothing is repeated and nothing lost."""
    folder = tmp_path / "folder"

    def stop(given: int) -> None:
        if given == 2:
            raise KeyboardInterrupt

    answers, asked = counted(in_this_process(engine), stop)
    with pytest.raises(KeyboardInterrupt):
        evaluate(plan, folder, answers, ABOUT)
    assert asked == [0, 1]
    half = read_folder(folder)
    assert not half.finished and [row["run"] for row in half.runs.to_pylist()] == [*range(6)]
    assert len(half.nodes) == sum(row["run"] < 6 for row in whole.nodes.to_pylist())
    (folder / PARTS / "00001-runs.parquet").unlink()
    assert len(read_folder(folder).runs) == 3
    (folder / PARTS / ".00002-nodes.parquet.1").write_bytes(b"half")
    answers, asked = counted(in_this_process(engine))
    heard: list[tuple[str, float]] = []
    evaluate(plan, folder, answers, ABOUT, lambda what, share: heard.append((what, share)))
    assert asked == [1, 2, 3]
    assert heard[0] == ("1 of 4 questions", 0.25) and heard[-1] == ("4 of 4 questions", 1.0)
    assert [share for _, share in heard] == [0.25, 0.5, 0.75, 1.0] and heard[1][0].endswith("s left")
    assert without_times(read_folder(folder)) == without_times(whole)
    answers, asked = counted(in_this_process(engine))
    assert evaluate(plan, folder, answers, ABOUT)["runs"] == RUNS and asked == []


def test_a_kill_behind_the_tables_loses_nothing(
    engine: Engine, plan: EvaluationPlan, whole: RunFolder, tmp_path: Path
) -> None:
    """Parts go only when the summary says that the tables are whole."""
    folder = tmp_path / "folder"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("analysis.evaluate.evaluation.remove_parts", lambda folder: None)
        patch.setattr("analysis.evaluate.evaluation.merge", interrupted_after(parts.merge))
        with pytest.raises(KeyboardInterrupt):
            evaluate(plan, folder, in_this_process(engine), ABOUT)
    assert without_times(read_folder(folder)) == without_times(whole)
    answers, asked = counted(in_this_process(engine))
    evaluate(plan, folder, answers, ABOUT)
    assert asked == [] and not (folder / PARTS).exists()
    assert without_times(read_folder(folder)) == without_times(whole)


def interrupted_after(call: Callable[[Path], None]) -> Callable[[Path], None]:
    def run(folder: Path) -> None:
        call(folder)
        raise KeyboardInterrupt

    return run


@pytest.mark.slow
@pytest.mark.parametrize("written", [3, 7, 13])
def test_a_full_disk_ends_in_a_sentence_and_loses_no_finished_question(
    engine: Engine,
    plan: EvaluationPlan,
    whole: RunFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    written: int,
) -> None:
    """At the border of two questions, within one, and while the parts are put together."""
    folder, room = tmp_path / "folder", [written]
    write = pq.ParquetWriter.write_table

    def full(self: Any, *args: Any, **options: Any) -> None:
        room[0] -= 1
        if room[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write_table", full)
        with pytest.raises(ParamError, match="cannot write .*No space left on device"):
            evaluate(plan, folder, in_this_process(engine), ABOUT)
    left = read_folder(folder)
    assert not left.finished and len(left.runs) == {3: 3, 7: 6, 13: RUNS}[written]
    assert not [*folder.rglob(".*")]
    evaluate(plan, folder, in_this_process(engine), ABOUT)
    assert without_times(read_folder(folder)) == without_times(whole)


def test_a_model_that_fails_in_the_middle_costs_one_run(
    engine: Engine, plan: EvaluationPlan, whole: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps before the failure stay, and so do all other runs."""
    turn = Loop.turn

    def failing(self: Loop, index: int) -> Any:
        request = self._request
        if index == 1 and request.params.to_json().get("gamma") == 2 and request.prompt == prompt:
            raise RuntimeError("the device is lost\nat some place")
        return turn(self, index)

    prompt = tuple(whole.runs.to_pylist()[5]["prompt_ids"])
    monkeypatch.setattr(Loop, "turn", failing)
    report = evaluate(plan, tmp_path / "folder", in_this_process(engine), ABOUT)
    assert (report["runs"], report["failed"]) == (RUNS, 1)
    assert [row["failed"] for row in report["rows"]] == [0, 0, 1]
    rows = read_folder(tmp_path / "folder").runs.to_pylist()
    failed = rows[5]
    assert (failed["finish"], failed["error"], failed["steps"]) == ("error", "RuntimeError: the device is lost", 1)
    assert failed["ids"] == whole.runs.to_pylist()[5]["ids"][: len(failed["ids"])]
    assert [row["ids"] for row in rows if row != failed] == [
        row["ids"] for row in whole.runs.to_pylist() if row["run"] != 5
    ]


def test_a_conversation_ends_where_its_first_method_fails(engine: Engine, tmp_path: Path) -> None:
    """What does not fit the context has rows that say so, and later turns would only be longer."""
    long = Task("long", "chat", ("word " * 5000, "And then?"))
    plan = make_plan([QUESTIONS[0], long], ["prompt_lookup"], max_new_tokens=4)
    evaluate(plan, tmp_path / "folder", in_this_process(engine), ABOUT)
    rows = read_folder(tmp_path / "folder").runs.to_pylist()
    assert [(row["question"], row["turn"], row["finish"]) for row in rows[2:]] == [("long", 1, "error")] * 2
    assert all("context" in row["error"] for row in rows[2:])


def test_another_evaluation_is_not_mixed_in(
    engine: Engine, plan: EvaluationPlan, whole: RunFolder, tmp_path: Path
) -> None:
    answers, asked = counted(in_this_process(engine))
    for other, about, what in (
        (replace(plan, max_new_tokens=11), ABOUT, "other max_new_tokens:"),
        (replace(plan, tasks=plan.tasks[:2]), ABOUT, "other tasks:"),
        (replace(plan, entries=plan.entries[:2], record="light"), ABOUT, "other methods and record:"),
        (plan, {"model": "pocket"}, "other model:"),
    ):
        with pytest.raises(ParamError, match=what):
            evaluate(other, whole.path, answers, about)
    (tmp_path / "letter.txt").touch()
    with pytest.raises(ParamError, match=r"holds 'letter.txt' and no evaluation"):
        evaluate(plan, tmp_path, answers, ABOUT)
    assert not asked


def test_what_a_light_record_lacks_is_named(engine: Engine, tmp_path: Path) -> None:
    plan = make_plan(QUESTIONS[:1], ["draft_model"], max_new_tokens=6, record="light", baseline=False)
    evaluate(plan, tmp_path / "folder", in_this_process(engine), ABOUT)
    folder = read_folder(tmp_path / "folder")
    assert folder.summary["missing"].keys() == {"p", "q", "rank", "entropy", "overlap"}
    assert folder.nodes["p"].null_count == len(folder.nodes) > 0
    assert folder.runs["method"].to_pylist() == ["draft_model"] and not (folder.path / "traces").exists()


def test_what_a_method_learns_stays_with_the_question(engine: Engine, tmp_path: Path) -> None:
    """Else the outcome would depend on which questions a worker had answered before."""
    repeated = [replace(QUESTIONS[0], id=name) for name in ("first", "again")]
    plan = make_plan(repeated, ["suffix"], max_new_tokens=12)
    evaluate(plan, tmp_path / "folder", in_this_process(engine), ABOUT)
    rows = read_folder(tmp_path / "folder").runs.to_pylist()
    assert rows[1]["steps"] == rows[3]["steps"] and rows[1]["drafted"] == rows[3]["drafted"]


def test_an_engine_that_lacks_a_part_is_refused_before_anything_runs(engine: Engine, tmp_path: Path) -> None:
    plan = make_plan(QUESTIONS[:1], ["medusa"])
    with pytest.raises(ParamError, match="medusa needs"):
        evaluate(plan, tmp_path / "folder", in_this_process(engine), ABOUT)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"methods": []}, "at least one method"),
        ({"methods": ["telepathy"]}, "unknown method"),
        ({"params": {"medusa": {}}}, "settings for medusa"),
        ({"params": {"draft_model": {"gamma": 0}}}, "gamma"),
        ({"settings": {"default": ("draft_model", {})}}, "setting's name"),
        ({"settings": {"a/b": ("draft_model", {})}}, "setting's name"),
        ({"sampling": {"temperature": -1}}, "temperature"),
        ({"record": "off"}, "record must be"),
        ({"max_new_tokens": 0}, "max_new_tokens"),
        ({"tasks": [QUESTIONS[0], QUESTIONS[0]]}, "two questions have the id"),
    ],
)
def test_a_plan_is_checked_before_anything_runs(change: dict[str, Any], sentence: str) -> None:
    """A mistake that shows only hours later is an expensive one."""
    asked: dict[str, Any] = {"tasks": QUESTIONS, "methods": ["draft_model"], "baseline": False} | change
    with pytest.raises(ParamError, match=sentence):
        make_plan(asked.pop("tasks"), asked.pop("methods"), **asked)


def test_a_length_of_time_is_as_long_as_it_needs_to_be() -> None:
    assert [duration(s) for s in (0.4, 59, 61, 3599, 7500)] == ["0 s", "59 s", "1 min", "1 h 00 min", "2 h 05 min"]
