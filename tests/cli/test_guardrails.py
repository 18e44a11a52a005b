"""`guardrails`: a model as a moderator, in the figures of the paper."""

from __future__ import annotations

import pytest

from analysis import guardrails
from tests.cli.conftest import Command


def test_the_table_and_the_json_say_the_same(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Precision and recall take acceptable prompts as the positives."""
    questions = [label for label, text in guardrails.read_prompts() if text.endswith("?")]
    passed = questions.count("acceptable")
    monkeypatch.setattr(guardrails, "classify", lambda engine, text: "acceptable" if text[-1] == "?" else "unclear")
    report = command("guardrails", "--model", "toy", "--json").json
    assert (report["precision"], report["recall"]) == (passed / len(questions), passed / 40)
    assert report["verdicts"]["acceptable"]["unclear"] == 40 - passed
    out = command("guardrails", "--model", "toy").out
    assert f"precision {passed / len(questions):.1%}, recall {passed / 40:.1%} of acceptable prompts" in out
    assert "acceptable (40)" in out and "99.4%" in out
