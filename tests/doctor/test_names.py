"""Mistyped entries of a drafter's config.json are named, and those of other programs are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.doctor.names import check_names
from cli.main import main
from decoding.embedded import FOLDERS, PARTS
from decoding.model.config import FAMILIES

from .planted import P, Planted, opened, plant, report_on

LAYER = "transformer_layer_config"
MISTYPED: list[tuple[str, dict[str, Any], str]] = [
    ("draft", {"model_type": "llama", "num_hiden_layers": 2}, "num_hidden_layers"),
    ("draft", {"model_type": "qwen3", "rope_thtea": 1e6}, "rope_theta"),
    ("draft", {"model_type": "llama", "Tie-Word-Embedding": True}, "tie_word_embeddings"),
    ("eagle", {"speculators_model_type": "eagle3", "norm_befor_residual": True}, "norm_before_residual"),
    ("eagle", {"speculators_model_type": "eagle3", LAYER: {"rms_norm_epss": 1.0}}, "rms_norm_eps"),
    ("eagle", {"draft_vocab_sise": 9}, "draft_vocab_size"),
    ("dflash", {"speculators_model_type": "dflash", "sample_from_ancor": True}, "sample_from_anchor"),
    ("dflash", {"speculators_model_type": "dflash", LAYER: {"sliding_windows": 9}}, "sliding_window"),
    ("dflash", {"dflash_config": {"mask_tokn_id": 9}}, "mask_token_id"),
    ("kangaroo", {"exit_layr": 2}, "exit_layer"),
    ("kangaroo", {"widnow": 4}, "window"),
    ("medusa", {"acuracies": []}, "accuracies"),
]


@pytest.mark.parametrize(("kind", "config", "meant"), MISTYPED, ids=[each[2] for each in MISTYPED])
def test_a_mistyped_entry_is_named(kind: str, config: dict[str, Any], meant: str) -> None:
    """It is ignored, and where the default happens to be right nothing else shows it."""
    check = check_names(kind, config)
    assert check.fine and check.note and f"perhaps {meant} is meant" in check.sentence


def test_an_entry_beside_the_right_one_is_not_mistyped() -> None:
    assert not check_names("kangaroo", {"exit_layr": 2, "exit_layer": 2}).note


SHIPPED = [(kind, path) for parts in PARTS.values() for kind, path in parts.items() if (path / "config.json").is_file()]
SHIPPED += [("draft", path) for path in FOLDERS.values()]


@pytest.mark.parametrize(("kind", "folder"), SHIPPED, ids=lambda value: getattr(value, "name", value))
def test_nothing_is_said_of_what_ships(kind: str, folder: Path) -> None:
    assert not check_names(kind, json.loads((folder / "config.json").read_text())).note


@pytest.mark.parametrize("family", [*FAMILIES, "gemma3_text", "deepseek_v3", "gpt2", "mixtral", "olmo2", "qwen3_moe"])
def test_nothing_is_said_of_other_programs_entries(family: str) -> None:
    """Of all kinds of models that transformers knows, only some that see pictures have names that are nearly ours."""
    from transformers import CONFIG_MAPPING

    theirs = CONFIG_MAPPING[family]().to_dict() | {"auto_map": {}, "unsloth_version": "1"}
    for held in (theirs, {"model_type": "llama"} | {name: theirs[name] for name in theirs.keys() - {"model_type"}}):
        for kind in ("draft", "eagle", "dflash", "kangaroo", "medusa"):
            assert not check_names(kind, held).note, (kind, check_names(kind, held).sentence)


def mistyped(config: dict[str, Any], weights: dict[str, Any]) -> None:
    config["base_model_name_or_pth"] = config.pop("base_model_name_or_path")


def test_the_report_of_a_sound_drafter_has_it_as_a_note(tmp_path: Path) -> None:
    report = report_on(opened(plant(Planted(P, "medusa", "", mistyped), tmp_path), "medusa"))
    assert report.healthy and "base_model_name_or_path" in report.remark and report.remark.strip() in report.verdict
    assert [row["name"] for row in report.to_json()["checks"] if row["note"]] == ["names"]  # type: ignore[index,call-overload,union-attr]


def test_the_report_of_a_refused_drafter_has_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """That an entry is missing is half of what its owner needs to know."""

    def slip(config: dict[str, Any], weights: dict[str, Any]) -> None:
        config["exit_layr"] = config.pop("exit_layer")

    folder = plant(Planted(P, "kangaroo", "", slip), tmp_path)
    assert main(["doctor", "--model", P, "--kangaroo", str(folder), "--device", "cpu"]) == 1
    shown = capsys.readouterr().out
    assert "NOTE" in shown and "has no exit_layer" in shown and "nothing reads 'exit_layr'" in shown
