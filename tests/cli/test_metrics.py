"""`metrics`: a report on a run folder, for people and for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from analysis.metrics import METRICS
from analysis.store.folder import write_folder
from tests.metrics.tables import Row, guess, root, run, step

from .conftest import Command


def folder(path: Path, accepted: Sequence[int], **of_runs: str) -> str:
    """Return a folder of eight questions, autoregressive and drafted: chains of three of which so many came true."""
    runs, steps, nodes = list[Row](), list[Row](), list[Row]()
    for number in range(16):
        plain = number >= 8
        method = {"method": "autoregressive"} if plain else of_runs
        runs.append(run(number, f"q{number % 8}", **({"method": "draft_model"} | method)))
        for place, count in enumerate([0] if plain else accepted):
            times = {"total_ms": 10.0, "draft_ms": 0.0, "forward_ms": 9.0}
            times |= {"accept_ms": 0.5, "commit_ms": 0.25, "other_ms": 0.25}
            steps.append(step(place + 1, count, 0 if plain else 3, of=number, fed=1 if plain else 4, **times))
            nodes.append(root(place + 1, of=number))
            for depth in (1, 2, 3) if not plain else ():
                outcome = {"accepted": depth <= count, "judged": depth <= count + 1, "wanted": 4}
                outcome |= {"token": 4 if depth <= count else 3}
                words = {"text": "\x1b[31m<red>\n", "wanted_text": "blue"}
                nodes.append(guess(depth, depth - 1, depth, of=number, at=place + 1, **outcome, **words))
    summary = {"source": "specscope", "name": "a test", "missing": {"rank": "the drafter was not asked"}}
    return str(write_folder(path, runs, steps, nodes, summary))


def test_a_report_for_people(command: Command, tmp_path: Path) -> None:
    """Sentences only; what the record lacks is at the end, with the record's own reason."""
    out = command("metrics", folder(tmp_path / "a", [2, 0, 3])).out
    assert "draft_model  8 questions" in out and "autoregressive  8 questions" in out
    assert "A step writes 2.67 tokens" in out and "2.67 times as fast" in out
    assert "the drafter was not asked" in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_rows_of_one_metric_cannot_steer_a_terminal(command: Command, tmp_path: Path) -> None:
    out = command("metrics", folder(tmp_path / "a", [2, 0]), "--only", "confusion", "--method", "draft_model").out
    assert "␛[31m<red>⏎" in out and "\x1b" not in out and "blue" in out
    assert "Mean acceptance length" not in out


def test_the_contract_of_its_json(command: Command, tmp_path: Path) -> None:
    """Pages and scripts read these keys."""
    report = command("metrics", folder(tmp_path / "a", [2, 0, 3]), "--json").json
    drafted, plain = report["selections"]
    assert (drafted["method"], plain["method"]) == ("draft_model", "autoregressive")
    assert {"method", "setting", "questions", "runs", "steps", "nodes", "metrics", "against"} <= set(drafted)
    assert list(drafted["metrics"]) == list(METRICS)
    acceptance = drafted["metrics"]["mean_acceptance_length"]
    keys = {"reason", "value", "low", "high", "unit", "sentence", "columns", "rows", "where", "slowest"}
    assert acceptance.keys() == keys
    assert acceptance["value"] == pytest.approx(8 / 3) and drafted["against"] is None


def test_two_folders(command: Command, tmp_path: Path) -> None:
    """The other folder is the earlier one. Here every question lost the same."""
    now, before = folder(tmp_path / "now", [1, 0, 1]), folder(tmp_path / "before", [3, 2, 3])
    done = command("metrics", now, "--against", before, "--json")
    against = done.json["selections"][0]["against"]
    assert against["value"] == pytest.approx(-2) and against["sentence"].startswith("Acceptance fell from 3.67 to 1.67")
    assert done.json["selections"][1]["against"] is None  # one token at a time is the same everywhere
    assert "Acceptance fell from 3.67 to 1.67" in command("metrics", now, "--against", before).out
    assert "no difference beyond noise" in command("metrics", now, "--against", now).out


def test_other_methods_are_compared_where_there_is_no_doubt(command: Command, tmp_path: Path) -> None:
    now, before = folder(tmp_path / "a", [1], method="eagle3"), folder(tmp_path / "b", [1], setting="old")
    assert "no difference" in command("metrics", now, "--against", before).out


def test_the_list_of_metrics(command: Command) -> None:
    """No folder is read for it."""
    out = command("metrics", "--list").out
    assert all(key in out and metric.formula in out for key, metric in METRICS.items())
    assert [row["key"] for row in command("metrics", "--list", "--json").json["metrics"]] == list(METRICS)


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--only", "telepathy"], "--only must name metrics of"),
        (["--only", ""], "--only must name metrics of"),
        (["--method", "telepathy"], "no run that these flags choose"),
        (["--category", "\udcff"], "no run that these flags choose"),
        (["--against", "/no/such/folder"], "no run folder"),
    ],
)
def test_mistakes_end_in_one_line(command: Command, tmp_path: Path, flags: list[str], reason: str) -> None:
    done = command("metrics", folder(tmp_path / "a", [1]), *flags)
    assert done.code == 2 and done.out == "" and reason in done.err and done.err.count("\n") == 1


def test_no_folder_is_a_mistake(command: Command) -> None:
    for place, reason in ((["/no/such/folder"], "no run folder"), ([], "name a run folder")):
        done = command("metrics", *place)
        assert done.code == 2 and reason in done.err
