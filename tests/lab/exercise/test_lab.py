"""The lab: its notebook solved and run, and each check's sentence for a wrong answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from decoding import METHODS, load
from lab.exercise import checks
from lab.exercise.checks import ExerciseError
from tests import ROOT

from .solved import SOLVED

NOTEBOOK = json.loads((ROOT / "docs" / "lab_speculation.ipynb").read_text(encoding="utf-8"))
CELLS = {cell["id"]: "".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"}


def solved(name: str, cell: str) -> str:
    for answer in SOLVED.get(name, ()):
        assert "..." in cell, name
        cell = cell.replace("return ..." if "return ..." in cell else "...", answer, 1)
    assert "..." not in cell, name
    return cell


@pytest.mark.slow  # a model times its passes and decodes a few dozen answers
def test_the_solved_notebook_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """On the embedded model, whose passes are a fifth; times may be anything, and are only told."""
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {"__name__": "notebook"}
    for name, cell in CELLS.items():
        cell = solved(name, cell).replace('MODEL, NEW_TOKENS = "smollm2", 96', 'MODEL, NEW_TOKENS = "pocket", 48')
        exec(compile(cell, f"lab_speculation.ipynb:{name}", "exec", dont_inherit=True), names)
    printed = capsys.readouterr().out
    for task in range(2, 7):
        assert f"Task {task} holds" in printed
    assert printed.count("Task 4 holds") == 2 and "guesses, as derived, it takes" in printed
    assert "best gamma" in printed and names["passes"][1] > names["passes"][4]
    assert names["second_passes"] != names["passes"] and list(names["seconds"]) == [0, *names["GAMMAS"]]
    assert [(curve.name, list(curve.x)) for curve in names["figure"].data] == [
        ("expected", list(names["GAMMAS"])),
        ("measured", list(names["GAMMAS"])),
    ]


def test_the_notebook_is_unsolved_and_keeps_no_output() -> None:
    assert all(not cell.get("outputs") for cell in NOTEBOOK["cells"])
    assert {name for name, cell in CELLS.items() if "..." in cell} == SOLVED.keys()
    assert """*PACKAGES, f"torch=={version('torch')}"]""" in CELLS["colab"], "or pip may bring another torch"


def fair(p: Any, q: Any, token: int, u: float) -> bool:
    return bool(u * q[token] < p[token])


def rest(p: Any, q: Any) -> list[float]:
    left = [max(0.0, a - b) for a, b in zip(p, q, strict=True)]
    return [each / sum(left) for each in left]


@pytest.mark.parametrize(
    ("accept", "residual", "words"),
    [
        (lambda p, q, token, u: True, rest, "keeps every guess"),
        (fair, lambda p, q: list(p), "residual returns p"),
        (lambda p, q, token, u: u < p[token], rest, "only as often as p alone"),
        (fair, lambda p, q: [max(0.0, a - b) for a, b in zip(p, q, strict=True)], "whose sum is 0.30"),
        (fair, lambda p, q: [1.0, 0.0], "A is written in 90.0 of 100"),
        (fair, lambda p, q: [0.0, 1.0, *[0.0] * (len(p) - 2)], "for five tokens some probability is off"),
    ],
)
def test_a_wrong_rule_is_named(accept: Callable[..., bool], residual: Callable[..., list[float]], words: str) -> None:
    with pytest.raises(ExerciseError, match=words):
        checks.check_acceptance(accept, residual)


def test_the_fair_rule_holds() -> None:
    assert "Task 2 holds" in checks.check_acceptance(fair, rest)


def test_other_mistakes_are_a_sentence() -> None:
    def flat(gamma: int, alpha: float) -> float:
        return 1 + gamma * alpha

    with pytest.raises(ExerciseError, match="write a number for alpha"):
        checks.predictions(c8=1, alpha=..., tokens_per_step=1, speedup=1, best_gamma=1)
    with pytest.raises(ExerciseError, match="divide each time"):
        checks.check_cost({1: 8.0, 2: 8.1, 4: 8.9, 8: 10.0, 16: 17.0})
    with pytest.raises(ExerciseError, match="only where all before it were kept"):
        checks.check_formulas(flat, lambda gamma, alpha, c, d: flat(gamma, alpha) / (c + d))
    with pytest.raises(ExerciseError, match="b comes after a, but is faster"):
        checks.check_order(["a", "b"], {"a": (1.0, 1.0, 0.0), "b": (2.0, 1.0, 0.0)})
    with pytest.raises(ExerciseError, match="5 guesses were not measured"):
        checks.check_best(5, {0: 1.0, 1: 1.0})
    assert "Task 5 holds" in checks.check_best(2, {0: 0.5, 1: 1.0, 2: 1.02})
    assert "4.0% longer than with 1, the fastest. Is c or d off" in checks.check_best(2, {0: 0.5, 1: 1.0, 2: 1.04})
    assert "Measure again" in checks.check_cost({1: 1.0, 2: 1.1, 4: 1.0, 8: 9.0, 16: 9.0})


def test_a_method_that_never_guesses_is_named() -> None:
    with pytest.raises(ExerciseError, match="never guesses"):
        checks.check_method(METHODS["autoregressive"], load("toy"), ["The clock"], {}, 3)
