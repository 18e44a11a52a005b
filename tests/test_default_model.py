"""The model that is used where none is named: a real one wherever it can be had."""

from __future__ import annotations

from pathlib import Path

import pytest

import decoding
from app.models.catalog import default_catalog
from cli.main import build_parser
from decoding import default_model, smollm2
from decoding.default_model import best_model, named_model
from decoding.embedded import PARTS


def test_smollm2_comes_first_and_pocket_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smollm2, "here", lambda: Path("SmolLM2.gguf"))
    assert best_model() == named_model("best") == "smollm2"
    monkeypatch.setattr(smollm2, "here", lambda: None)
    assert best_model() == named_model("best") == "pocket"
    assert named_model("toy") == "toy"


def test_pocket_stands_in_for_smollm2_without_its_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A copy may leave assets/smollm2 out: most methods would have nothing to draft with."""
    monkeypatch.setattr(smollm2, "here", lambda: Path("SmolLM2.gguf"))
    monkeypatch.setitem(PARTS, "smollm2", {"medusa": tmp_path / "medusa"})
    assert best_model() == "pocket" and next(iter(default_catalog())) == "pocket"


@pytest.mark.parametrize(
    "command", [["bench"], ["doctor"], ["tree-search"], ["evaluate", "--methods", "jacobi", "--out", "x"]]
)
def test_commands_begin_with_it(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smollm2, "here", lambda: Path("SmolLM2.gguf"))
    assert build_parser().parse_args(command).model == "smollm2"
    assert build_parser().parse_args([*command, "--model", "pocket"]).model == "pocket"


def test_a_script_loads_it_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """README's examples run on either."""
    monkeypatch.setattr(default_model, "best_model", lambda: "toy")
    assert decoding.load().model.card.name == "toy"
