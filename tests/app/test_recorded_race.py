"""The race that is shown before one is run."""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from app.jobs.recorded_race import OPENING, RACES, opening, recorded_race
from app.state import AppState
from app.store.recordings import FOLDER, INDEX, Recordings
from decoding.trace.file import read_trace, write_trace

from .conftest import lines

REAL, POCKET = RACES


def folder_of(path: Path, sources: dict[str, str]) -> Recordings:
    """Return recordings under other ids than those that they shipped with."""
    rows = {row["id"]: row for row in json.loads((FOLDER / INDEX).read_text())}
    for run, source in sources.items():
        shutil.copy(FOLDER / f"{source}.jsonl.gz", path / f"{run}.jsonl.gz")
    (path / INDEX).write_text(json.dumps([rows[source] | {"id": run} for run, source in sources.items()]))
    return Recordings(path)


def test_it_has_the_recordings_lanes_at_their_times() -> None:
    got = lines(recorded_race(Recordings()))
    host, race = got[:2]
    assert host["recorded"] and host["title"] == "A recorded race" and "press Race to run" in host["shows"]
    names = [line["header"]["label"] for line in got if line["kind"] == "play"]
    assert names == race["labels"] and 2 <= len(names) <= 6
    runs = dict(got[-1]["runs"])
    assert got[-1]["kind"] == "done" and list(runs) == names
    for lane, run in enumerate(runs.values()):
        trace = Recordings().trace(run)
        assert trace is not None
        steps = [line for line in got if line["kind"] == "step" and line["lane"] == lane]
        assert [step["ms"][4] for step in steps] == [round(step.timing.total_ms, 3) for step in trace.steps]
        texts = {
            int(token) for line in got if line["kind"] == "texts" and line["lane"] == lane for token in line["texts"]
        }
        assert texts >= set(trace.ids)
    assert len(recorded_race(Recordings())) < 300_000


def test_the_opening_is_small_and_of_one_text() -> None:
    """It is what a visitor's first picture waits for: texts and times, no views."""
    text = opening(Recordings())
    got = lines(text)
    assert len(gzip.compress(text.encode())) < 8_000
    assert got[0]["title"] == OPENING.prompt and got[0]["model"] == "SmolLM2 135M"
    assert [line["views"] for line in got if line["kind"] == "play"] == [[], []]
    plain, fast = (
        [token for line in got if line["kind"] == "step" and line["lane"] == lane for token in line["emitted"]]
        for lane in (0, 1)
    )
    assert plain == fast
    assert sum(line["kind"] == "step" and line["lane"] == 1 for line in got) * 3 < len(plain)


@pytest.mark.parametrize("lost", [0, 1])
def test_without_one_of_its_lanes_there_is_no_opening(tmp_path: Path, lost: int) -> None:
    recordings = folder_of(tmp_path, {run: run for run in OPENING.runs})
    (tmp_path / f"{OPENING.runs[lost]}.jsonl.gz").write_bytes(b"")
    assert opening(recordings) == ""
    assert opening(folder_of(tmp_path, {run: run for run in POCKET.runs[:2]})) == ""


def test_the_real_models_race_is_preferred_and_made_of_those_that_are_there(tmp_path: Path) -> None:
    """Its heads and drafter may be missing: the methods without parts race already."""
    real = [REAL.runs[0], REAL.runs[1]]
    sources = {REAL.runs[0]: "autoregressive-defaults", REAL.runs[1]: "lookahead-defaults"}
    sources |= {run: run for run in POCKET.runs}
    got = lines(recorded_race(folder_of(tmp_path, sources)))
    assert REAL.prompt in got[0]["shows"] and got[0]["shows"].startswith("Two methods")
    assert [run for _, run in got[-1]["runs"]] == real


def test_lanes_have_one_prompt(tmp_path: Path) -> None:
    """A recording of another prompt, made after the recipe was changed, would race to another end."""
    sources = {
        REAL.runs[0]: "autoregressive-defaults",
        REAL.runs[1]: "draft-model-defaults",
        REAL.runs[2]: "jacobi-defaults",
    }
    got = lines(recorded_race(folder_of(tmp_path, sources)))
    assert [run for _, run in got[-1]["runs"]] == [REAL.runs[0], REAL.runs[2]]


def test_a_broken_lane_is_left_out_and_with_one_lane_there_is_no_race(tmp_path: Path) -> None:
    recordings = folder_of(tmp_path, {run: run for run in POCKET.runs[:3]})
    (tmp_path / f"{POCKET.runs[1]}.jsonl.gz").write_bytes(b"")
    assert [run for _, run in lines(recorded_race(recordings))[-1]["runs"]] == [POCKET.runs[0], POCKET.runs[2]]
    (tmp_path / f"{POCKET.runs[0]}.jsonl.gz").unlink()
    assert recorded_race(recordings) == ""


@pytest.mark.parametrize("asked", [None, "", 7, ["x"]])
def test_the_page_gets_it_whatever_it_sends(app_state: AppState, asked: object) -> None:
    function = {each.__name__: each for each in app_state.calls.functions()}["open_race"]
    assert function(asked)["lines"] is app_state.calls.race_lines()


def test_it_says_if_it_was_recorded_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recordings = folder_of(tmp_path, {run: run for run in POCKET.runs[:2]})
    path = tmp_path / f"{POCKET.runs[1]}.jsonl.gz"
    trace = read_trace(path)
    monkeypatch.setattr("app.server.machine.processor_name", lambda: trace.header.processor)  # the other run's too
    write_trace(replace(trace, header=replace(trace.header, processor="Abacus 9", threads=2)), path)
    assert (
        lines(recorded_race(recordings))[0]["machine"] == "Recorded on another machine (Abacus 9, 2 threads, float32)."
    )
