"""The commands beside `run`: methods, bench, demo, help."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cli import paint
from cli.paint import Paint, visible
from decoding import METHODS, load
from tests.test_load import save

from .conftest import ON_THE_TOY, Command

ROW = {
    "method",
    "params",
    "questions",
    "new_tokens",
    "mean_acceptance_length",
    "tokens_per_second",
    "speedup_vs_autoregressive",
    "step_cost",
    "identical_to_autoregressive",
}


def test_methods_keep_their_contract(command: Command) -> None:
    """Pages and scripts build their controls from this."""
    rows = command("methods", "--json").json
    assert [row["name"] for row in rows] == list(METHODS)
    for row in rows:
        assert {"name", "label", "paper", "lossless", "needs", "params", "presets"} <= set(row)
        for parameter in row["params"]:
            assert {"name", "symbol", "type", "default", "min", "max", "help"} <= set(parameter)
    assert {row["name"]: row["needs"] for row in rows}["draft_model"] == ["draft_model"]
    assert all(row["lossless"] is True for row in rows)  # as they are set by default
    lossy = {row["name"]: row["not_lossless"] for row in rows if row["not_lossless"]}
    assert lossy == {"medusa": {"acceptance": ["typical"]}}
    shown = command("methods").out
    assert all(name in shown for name in METHODS)


def test_bench_keeps_its_contract(command: Command, tmp_path: Path) -> None:
    """Other people's tables are made of these keys."""
    out = tmp_path / "bench.json"
    flags = ["--methods", "lookahead,prompt_lookup", "--param", "lookahead.W=4", "--param", "lookahead.N=4"]
    done = command("bench", "--json", *flags, "--max-new-tokens", "24", "--limit", "4", "--out", str(out))
    data = done.json
    assert data == json.loads(out.read_text())
    assert {"device", "dtype", "threads", "model", "tasks", "rows", "peers"} <= set(data)
    assert [row["method"] for row in data["rows"]] == ["autoregressive", "lookahead", "prompt_lookup"]
    base, lookahead, _ = data["rows"]
    assert lookahead["params"]["W"] == 4
    for row in data["rows"]:
        assert set(row) >= ROW
        assert row["questions"] == 4 and row["turns"] == 6 and row["identical_to_autoregressive"] is True
        assert row["new_tokens"] == base["new_tokens"] and row["tokens_per_second"] > 0
    assert base["mean_acceptance_length"] == base["speedup_vs_autoregressive"] == base["step_cost"] == 1.0
    expected = lookahead["mean_acceptance_length"] / lookahead["step_cost"]
    assert lookahead["speedup_vs_autoregressive"] == pytest.approx(expected, rel=0.35)  # first steps count in one only


@pytest.mark.slow
def test_tuned_settings_give_way_to_named_ones(command: Command) -> None:
    flags = ["--methods", "jacobi,lookahead", "--max-new-tokens", "6", "--limit", "1"]
    data = command("bench", "--json", "--tuned", *flags, "--param", "lookahead.W=4").json
    assert data["tuned"] is True
    assert [row["params"].get("W") or row["params"].get("n") for row in data["rows"]] == [None, 1, 4]
    shown = command("bench", "--tuned", *flags).out
    assert "tuned settings" in shown and "the papers' settings" not in shown
    assert "the papers' settings" in command("bench", *flags).out


def test_bench_runs_all_it_can_and_shows_a_table(command: Command) -> None:
    """The default must not fail on an engine without a drafter, nor leave a method out."""
    out = command("bench", "--max-new-tokens", "6", "--limit", "1", "--param", "lookahead.W=4").out
    assert [name for name in METHODS if load("toy").lacks(name) is None] == ON_THE_TOY
    assert all(re.search(rf"^{name}\s+[\d.]+ .*yes$", out, flags=re.MULTILINE) for name in ON_THE_TOY)
    assert "not a neural network" in out
    assert "1 thread; 1 task (built-in)" in out


def test_bench_against_transformers(command: Command, tmp_path: Path) -> None:
    """A peer on other weights, prompts or ends would be no comparison."""
    folder = save(tmp_path / "model")
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text('{"prompt": "w3 w4 w5"}\n{"turns": ["w6 w7", "w8"]}\n{"prompt": "%s"}\n' % ("w9 " * 250))
    flags = ["--model", folder, "--device", "cpu", "--dtype", "float32", "--tasks", str(tasks), "--ignore-end"]
    done = command("bench", "--json", *flags, "--methods", "jacobi", "--peers", "transformers", "--max-new-tokens", "9")
    assert done.code == 0, done.err
    data = done.json
    [peer] = data["peers"]
    assert peer["name"] == "transformers" and peer["tokens_per_second"] > 0
    assert peer["identical_to_autoregressive"] is True
    assert [row["method"] for row in data["rows"]] == ["autoregressive", "jacobi"]
    assert data["rows"][0]["new_tokens"] == 27 and data["rows"][0]["questions"] == 2
    assert data["skipped"] == [{"question": 3, "turn": 1, "prompt_tokens": 250}]
    shown = command("bench", *flags, "--methods", "", "--peers", "transformers", "--max-new-tokens", "9").out
    assert re.search(r"^transformers .*yes$", shown, flags=re.MULTILINE) and "left out: question 3" in shown


@pytest.mark.parametrize("model", ["pocket", pytest.param("smollm2", marks=pytest.mark.slow)])
def test_demo_shows_every_method_and_one_text(command: Command, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first thing a newcomer sees must be right, and fit an ordinary terminal."""
    monkeypatch.setattr("cli.demo.best_model", lambda: model)
    monkeypatch.setattr("cli.demo._TOKENS", {"pocket": 96, "smollm2": 8}[model])
    out = command("demo").out
    assert "\x1b" not in out
    assert all(len(line) <= 80 for line in out.splitlines())
    texts = {}
    for name in METHODS:
        match = re.search(rf"^{name} +(\d+) steps.*?\n(.*?)\n\n", out, flags=re.MULTILINE | re.DOTALL)
        assert match, name
        assert match[2].count("│") == int(match[1])
        texts[name] = re.sub(r"[\s│]", "", match[2])
    assert len(set(texts.values())) == 1
    assert "Mask" in out and "█" in out and "Window" in out


@pytest.mark.slow
def test_the_demo_is_painted_for_a_terminal(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.demo._TOKENS", 24)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("cli.demo.best_model", lambda: "pocket")  # it is described in two lines
    painted = command("demo").out
    assert "\x1b[4;38;5;36m" in painted and "from the n-gram pool" in painted
    lines = painted.splitlines()
    note = lines[1 : next(index for index, line in enumerate(lines) if line.startswith("prompt: "))]
    assert len(note) > 1 and all(line.startswith("\x1b[2m") for line in note)


@pytest.mark.slow
def test_demo_works_without_unicode(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal in the C locale must not end the demo with an encoding error."""
    monkeypatch.setattr("cli.demo._TOKENS", 24)
    monkeypatch.setattr(Paint, "for_stream", lambda stream: Paint(unicode=False))
    monkeypatch.setattr("cli.demo.best_model", lambda: "pocket")
    out = command("demo").out
    assert out.isascii()


def test_no_command_prints_help(command: Command) -> None:
    """Somebody who types the name alone wants to know what there is."""
    done = command()
    assert done.code == 0 and "run" in done.out and "example" in done.out


@pytest.mark.parametrize("name", ["demo", "run", "methods", "bench", "rescore", "quality", "train"])
def test_every_command_explains_itself(command: Command, name: str) -> None:
    """A help text without an example sends people to the source."""
    done = command(name, "--help")
    assert done.code == 0 and f"python -m decoding {name}" in done.out.split("example:")[1]


def test_control_characters_become_visible() -> None:
    """A model that writes escape codes must not repaint, rename or clear a person's terminal."""
    assert visible("a\x1b[2J\r\x9b\u202eb\n\tc\x7f") == "a␛[2J␍\ufffd\ufffdb\n\tc\ufffd"
    assert paint.one_line("a\nb") == "a⏎b"


def test_every_line_of_a_styled_text_is_styled() -> None:
    """A pager begins every line plain: a style that spans lines is lost on all but the first."""
    assert Paint(styles=True).dim("a\n\nb") == "\x1b[2ma\x1b[0m\n\n\x1b[2mb\x1b[0m"
    assert Paint().dim("a\nb") == "a\nb"


def test_a_flag_of_another_command_is_told_by_its_own_help(command: Command) -> None:
    done = command("doctor", "--method", "medusa")
    assert (done.code, done.out) == (2, "") and "--method medusa (see python -m decoding doctor --help)" in done.err
    assert "(see python -m decoding --help)" in command("--method").err
