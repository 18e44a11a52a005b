"""`tune`: the fastest settings of a method on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cli.tune
from analysis.tuning import tune

from .conftest import Command

TOY = ("tune", "--model", "toy", "--method", "jacobi", "--limit", "2", "--max-new-tokens", "6")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_json_keeps_its_contract(command: Command) -> None:
    """Scripts break when a key goes missing; bench --tuned takes what was found."""
    done = command(*TOY, "--json")
    assert (done.code, done.err) == (0, "")
    report = done.json
    assert report["fastest"] == ("jacobi" if report["speculate"] else "autoregressive")
    assert {"device", "params", "speedup_vs_autoregressive", "tokens", "grid_tokens", "seconds"} <= report.keys()
    bench = command("bench", "--methods", "jacobi", "--tuned", "--limit", "1", "--max-new-tokens", "4", "--json").json
    assert bench["rows"][1]["params"] == report["params"]
    shown = command(*TOY)
    assert shown.code == 0 and "autoregressive decoding" in shown.out and report["saved"] in shown.out


@pytest.mark.parametrize("close", [True, False])
def test_a_gain_within_chance_is_called_close(command: Command, monkeypatch: pytest.MonkeyPatch, close: bool) -> None:
    """A reader must not take one hundredth for a finding, nor doubt twice the speed."""

    def tuned(*given: Any, **options: Any) -> Any:
        return {**tune(*given, **options), "too_close": close}

    monkeypatch.setattr(cli.tune, "tune", tuned)
    assert command(*TOY).out.count("prompts, but too close to call") == close


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--method", "autoregressive"], "--method must be one of"),
        (["--limit", "0"], "--limit must be from 1"),
        (["--max-new-tokens", "1"], "--max-new-tokens must be from 2"),
    ],
)
def test_a_mistake_ends_in_one_line(command: Command, flags: list[str], reason: str) -> None:
    done = command(*TOY, *flags)
    assert done.code == 2 and done.out == "" and done.err.count("\n") == 1 and reason in done.err
