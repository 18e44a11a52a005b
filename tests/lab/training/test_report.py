"""Cards and curves of trained heads and adapters."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from decoding.errors import ParamError
from lab.training.checkpoint import read_log
from lab.training.plot import Chart, plot
from lab.training.report import charts, write_report

from .test_loop import loop, quiet

FINAL = {"heads": [{"loss": 1.0, "top": [0.1] * 5, "acceptance": 0.5}]}


def test_a_log_that_does_not_tell_of_the_whole_training_is_refused(tmp_path: Path) -> None:
    """The card must not say less than was done, and a damaged file ends in no traceback."""
    settings, path = {"kind": "kangaroo", "steps": 24}, tmp_path / "log.jsonl"
    loop(tmp_path).run(quiet)
    write_report(tmp_path, "org/base", settings, path, FINAL, torch.device("cpu"))
    card, lines = (tmp_path / "README.md").read_text(), path.read_text().splitlines()
    assert "24 steps" in card and f"{torch.get_num_threads()} thread" in card
    for content in (
        *("", "no log", '{"step": 24}', "\n".join([*lines[:9], "{", *lines[10:]])),
        '{"step": 24, "tokens": "many", "seconds": 1, "loss": 1}',
        '{"step": 24, "tokens": 5, "seconds": 1, "loss": "low"}',
        '{"step": 24, "tokens": 5, "seconds": 1, "loss": 1, "held_out": {"heads": [{}]}}',
        f'{{"step": 24, "tokens": 1{"0" * 400}, "seconds": 1, "loss": 1}}',
    ):
        path.write_text(content)
        with pytest.raises(ParamError, match=r"log\.jsonl is damaged: delete checkpoint\.safetensors beside it"):
            write_report(tmp_path, "org/base", settings, path, FINAL, torch.device("cpu"))
        assert (tmp_path / "README.md").read_text() == card
    path.unlink()
    with pytest.raises(ParamError, match="is damaged"):
        write_report(tmp_path, "org/base", settings, path, FINAL, torch.device("cpu"))


def test_curves_show_every_head(tmp_path: Path) -> None:
    loop(tmp_path).run(quiet)
    log = read_log(tmp_path / "log.jsonl")
    drawn = list(charts(log))
    assert [chart.title for chart in drawn][-1] == "held out: top-5 accuracy" and len(drawn) == 8
    picture = plot(drawn)
    assert picture.startswith("<svg") and picture.count("<polyline") == 8
    assert plot(list(charts([]))).endswith("</svg>\n")
    hostile = plot([Chart("<b>", {"<i>": [(1.0, 2.0), (2.0, float("nan"))]})])
    assert "<b>" not in hostile and "<i>" not in hostile and "nan" not in hostile
