"""`cost`: what decoding costs on this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analysis.cost import sweep

from .conftest import Command

TOY = ("cost", "--model", "toy", "--contexts", "16", "--rounds", "1")


@pytest.fixture(autouse=True)
def brief(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of its own, and few trees."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sweep, "ROWS", (1, 2))
    monkeypatch.setattr(sweep, "METHODS", ("autoregressive", "jacobi"))


def test_json_keeps_its_contract(command: Command, tmp_path: Path) -> None:
    """Scripts break when a key goes missing; a second command prints what the first one saved."""
    out = tmp_path / "machine.json"
    done = command(*TOY, "--json", "--out", str(out))
    assert (done.code, done.err) == (0, "")
    assert {"model", "device", "dtype", "threads", "versions", "date", "prefill", "saved"} <= done.json.keys()
    (shape,), (tree,) = done.json["shapes"], done.json["trees"]
    assert shape["rows"] == [1, 2] and len(shape["milliseconds"]) == 2 and shape["context"] == 16
    assert [len(row) for row in tree["milliseconds"]] == len(tree["k"]) * [len(tree["w"])]
    assert [row["method"] for row in done.json["methods"]] == ["autoregressive", "jacobi"]
    assert command(*TOY, "--json").json == done.json
    shown = command(*TOY)
    assert "jacobi" in shown.out and "after 16" in shown.out and done.json["saved"] in shown.out
    assert command(*TOY, "--out", str(out)).code == 0
    assert json.loads(out.read_text())["shapes"] == [shape]  # replaced, not added twice
    out.write_text(json.dumps(json.loads(out.read_text()) | {"threads": 99}))
    refused = command(*TOY, "--out", str(out))
    assert refused.code == 2 and "another device" in refused.err and refused.err.count("\n") == 1
    out.write_text("[[")
    refused = command(*TOY, "--out", str(out))
    assert refused.code == 2 and "holds no costs" in refused.err and refused.err.count("\n") == 1
    assert out.read_text() == "[["


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--contexts", "many"], "--contexts must be a whole number"),
        (["--rounds", "0"], "--rounds must be from 1"),
        (["--out", "/no/such/folder/file.json"], "--out must name a file"),
    ],
)
def test_a_mistake_ends_in_one_line(command: Command, flags: list[str], reason: str) -> None:
    done = command(*TOY, *flags)
    assert done.code == 2 and done.out == "" and done.err.count("\n") == 1 and reason in done.err
