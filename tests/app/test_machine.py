"""A recording says so if it was made on another machine than the page's."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.server.machine import device_of, elsewhere
from app.state import AppState
from app.store.recordings import Recordings
from decoding.processor import processor_name
from decoding.types import Header
from tests import GOLDEN

from .conftest import lines

LOOKAHEAD = GOLDEN / "lookahead.jsonl"
HEADER = replace(Recordings().header("lookahead"), processor="Abacus 9", threads=2, dtype="bfloat16")


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        (HEADER, "Recorded on another machine (Abacus 9, 2 threads, bfloat16)."),
        (replace(HEADER, threads=1), "Recorded on another machine (Abacus 9, 1 thread, bfloat16)."),
        (replace(HEADER, threads=None), "Recorded on another machine (Abacus 9, bfloat16)."),
        (replace(HEADER, device="cuda:0"), "Recorded on another machine (Abacus 9, cuda:0, 2 threads, bfloat16)."),
        (replace(HEADER, processor=processor_name()), ""),
        (replace(HEADER, processor=None), ""),  # older than the field
    ],
)
def test_it_is_one_sentence(header: Header, sentence: str) -> None:
    assert elsewhere(header) == sentence


def uploaded(app_state: AppState, **changes: Any) -> dict[str, Any]:
    """Return what the page answers to a file with these values in its header."""
    first, rest = LOOKAHEAD.read_text().split("\n", 1)
    text = json.dumps(json.loads(first) | changes) + "\n" + rest
    function = {each.__name__: each for each in app_state.calls.functions()}["open_trace"]
    return function(base64.b64encode(text.encode()).decode())


def test_a_visitors_file_says_so_too(app_state: AppState) -> None:
    answer = uploaded(app_state, processor="Abacus 9", threads=3)
    host, play = lines(answer["lines"])[:2]
    assert host["machine"] == "Recorded on another machine (Abacus 9, 3 threads, float64)."
    assert (play["header"]["processor"], play["header"]["threads"]) == ("Abacus 9", 3)


@pytest.mark.parametrize("processor", ["", "x" * 81, "\u202ex", "a\nb", 7, ["x"]])
def test_a_hostile_name_is_refused(app_state: AppState, processor: object) -> None:
    """It stands inside a sentence of the page, which a long name, or one that turns the line round, would change."""
    fault = uploaded(app_state, processor=processor)["fault"]
    assert "header.processor must be" in fault and len(fault) < 400


@pytest.mark.parametrize("threads", [0, -1, 10**9, 1.5, "2"])
def test_a_hostile_number_of_threads_is_refused(app_state: AppState, threads: object) -> None:
    assert "header.threads must" in uploaded(app_state, threads=threads)["fault"]


def test_a_model_runs_on_the_device_named_or_on_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("app.server.machine._GPU", tmp_path)
    assert [device_of(name) for name in (None, "cpu", "cuda:1")] == ["cuda", "cpu", "cuda"]
    monkeypatch.setattr("app.server.machine._GPU", tmp_path / "none")
    assert [device_of(name) for name in (None, "cpu", "cuda")] == ["cpu", "cpu", "cuda"]
    assert [device_of(name) for name in ("cpu,cpu", "cuda:0,cuda:1")] == ["cpu", "cuda"]
