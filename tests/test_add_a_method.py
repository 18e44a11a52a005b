"""The method of CONTRIBUTING, added from outside with its screen: everything that ours have, without another file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from app.controls import order
from app.models.entry import CatalogEntry
from app.server.limits import LIMITS
from app.state import AppState
from app.ui import build
from cli import methods as command
from decoding import METHODS
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.trace.file import read_trace, write_trace
from decoding.types import Trace
from viz.methods import SCREENS
from viz.run_state import RunState
from viz.stream.play import Play, lines
from viz.views import VIEWS

from .event_loops import discard_event_loops
from .test_readme import blocks
from .toys import counted_text, engine
from .viz.records import expanded, parsed

EXAMPLE = next(block for block in blocks("CONTRIBUTING.md", "python") if "class Echo(Method)" in block)
PROMPT = [1, 2, 3, 3, 4, 5, 5]
WIDE_OF_TWO = round(54 * (2 + 3 + 1.5)) + 16  # pixels: its default of two echoes
TOY = {"toy": CatalogEntry("toy", "toy", draft="toy")}


@pytest.fixture(scope="module", autouse=True)
def added() -> Iterator[None]:
    """Run the README's own code, and take back what it registers afterwards."""
    with patch.dict(METHODS), patch.dict(SCREENS):
        exec(compile(EXAMPLE, "README.md", "exec", dont_inherit=True), {"__name__": "readme"})
        assert [*METHODS][-1] == [*SCREENS][-1] == "echo"
        yield
    assert "echo" not in METHODS and "echo" not in SCREENS


@pytest.fixture(scope="module")
def model() -> Engine:
    return engine(counted_text())


@pytest.fixture(scope="module")
def trace(model: Engine) -> Trace:
    options: dict[str, Any] = {"params": {"times": 3}, "max_new_tokens": 24, "record": "full"}
    return model.generate(PROMPT, "echo", **options).trace


def play(trace: Trace) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the first line of a run's stream, and its steps."""
    got = expanded(parsed(lines(trace, cap=None)))
    return got[0], [line for line in got if line["kind"] == "step"]


@pytest.mark.slow
def test_its_text_is_the_targets_own(model: Engine, trace: Trace) -> None:
    plain = model.generate(PROMPT, max_new_tokens=24)
    assert trace.ids == tuple(plain.ids)
    checked = model.rescore(trace)
    assert checked.exact == checked.checked == 24 and not checked.violations
    sampled = model.generate(PROMPT, "echo", max_new_tokens=24, sampling={"temperature": 1.0, "seed": 3})
    assert not model.rescore(sampled.trace).violations


def test_its_record_can_be_written_and_dropped_on_the_page(trace: Trace, tmp_path: Path) -> None:
    """The page's reader knows the names in its panel."""
    path = tmp_path / "echo.jsonl"
    write_trace(trace, path)
    assert read_trace(path, limits=LIMITS.files) == trace
    assert all(step.panel == {"echoed": step.tokens[0]} for step in trace.steps)


def test_it_has_every_view(trace: Trace) -> None:
    header, steps = play(trace)
    shown = {view["name"]: view for view in header["views"]}
    assert set(shown) == set(VIEWS) - {"window"} and header["header"]["label"] == "Echo"
    assert shown["pool"]["label"] == "Echoes"
    assert "draft_acceptance_rate" in {row["key"] for row in shown["counters"]["base"]["rows"]}
    strings = {string for line in lines(trace).splitlines() for string in json.loads(line).get("strings", ())}
    assert "echo 1 of the last token" in strings
    assert len(steps) == len(trace.steps)
    for line, step in zip(steps, trace.steps, strict=True):
        assert {"mask", "pool", "tree", "timeline", "counters", "text"} <= line["views"].keys()
        assert line["views"]["pool"]["data"][0]["x"] == [1, 2, 3][: step.drafted]
    guessed = next(line for line in steps if line["drafted"])
    assert "Guessed 3 tokens" in guessed["say"].replace("guessed", "Guessed")
    assert " by repeating the last token; the target" in guessed["say"]


def test_it_has_a_table(trace: Trace) -> None:
    player = Play(trace.header)
    player.begin(trace.texts)
    for step in trace.steps:
        player.step(step)
    step = next(step for step in trace.steps if step.drafted)
    table = parsed(player.rows(step.index))[-1]["views"]["pool"]
    assert table["headings"] == ["Token", "Echo", "Fate"] and table["say"] == [f"echoes token {step.tokens[0]}"]
    assert [row["node"] for row in table["rows"]] == [1, 2, 3]
    assert all(row["cells"][2]["propose"] == "Proposed" for row in table["rows"])


def test_a_method_without_a_screen_is_shown_as_well(trace: Trace) -> None:
    """Of one that is not even registered, as in another program's record, the name stands for the label."""
    whole, _ = play(trace)
    with patch.dict(SCREENS):
        del SCREENS["echo"]
        header, steps = play(trace)
        assert {view["name"] for view in header["views"]} == {view["name"] for view in whole["views"]} - {"pool"}
        assert header["header"]["label"] == "Echo"
        assert any("the target" in line["say"] for line in steps)
        with patch.dict(METHODS):
            del METHODS["echo"]
            header, _ = play(replace(trace, header=replace(trace.header, method="echo")))
            assert header["header"]["label"] == "echo"


def test_a_hostile_record_of_it_does_no_harm(trace: Trace) -> None:
    """Its screen reads panels and parameters through the same door as ours."""
    for junk in (None, -1, "x", [[]], {"a": 1}, 10**40):
        odd = replace(
            trace,
            header=replace(trace.header, params={"times": junk}),
            steps=tuple(replace(step, panel={"echoed": junk}) for step in trace.steps),
        )
        play(odd)
        run, pool = RunState.of(odd), SCREENS["echo"].pool
        assert pool is not None and "echoes token None" in json.dumps(pool.frame(run, 1))
        assert pool.base(run)["least"] == WIDE_OF_TWO
        assert pool.rows(run, 1).say == ("echoes token None",)


def test_it_is_listed_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(argparse.Namespace(json=True)) == 0
    row = json.loads(capsys.readouterr().out)[-1]
    assert (row["name"], row["label"], row["lossless"]) == ("echo", "Echo", True)
    assert [(param["name"], param["default"], param["min"], param["max"]) for param in row["params"]] == [
        ("times", 2, 1, 8)
    ]


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the event loops that Gradio leaves behind
def test_it_has_controls_on_the_page() -> None:
    """And what a visitor sends for it is checked by its own bounds."""
    page = build(AppState(TOY, "toy"))
    discard_event_loops()
    sliders = [block for block in page.blocks.values() if getattr(block, "elem_id", None) == "p-echo-times"]
    assert [(block.label, block.minimum, block.maximum) for block in sliders] == [("Echoes", 1, 8)]
    asked: dict[str, Any] = {"model": "toy", "sampling": {}, "prompt": "Monday", "max_new_tokens": 8, "method": "echo"}
    assert order(TOY, params={"times": 8}, **asked).params.to_json() == {"times": 8}
    with pytest.raises(ParamError, match="times must be between 1 and 8"):
        order(TOY, params={"times": 9}, **asked)


def test_a_run_on_the_page_can_ask_for_a_step(trace: Trace) -> None:
    player = Play(trace.header, cap=3_000)
    player.begin(trace.texts)
    for step in trace.steps:
        player.step(step)
    last = len(trace.steps) - 1
    assert parsed(player.full(last))[-1]["k"] == parsed(player.detail(last))[-1]["k"] == last
