"""The benchmarks' command line; what they measure is seen when they run."""

from __future__ import annotations

import sys

import pytest

from benchmarks.measure import command


@pytest.mark.parametrize("flag", ["--help", "--nonsense"])
def test_flags_are_read_before_anything_is_measured(flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark", flag])
    with pytest.raises(SystemExit):
        command("Measures.", lambda: pytest.fail("it measured"))
