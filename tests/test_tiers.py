"""The tests' own rules: what the default tier leaves out, what markers mean, and that statistical tests have power."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests import ROOT
from tests.tiers import choose, crossed, few, of_methods

TESTS = sorted(ROOT.glob("tests/**/*.py"))
THREE = """
import pytest

def test_quick(): pass

def test_both(everything): assert not everything

@pytest.mark.slow
def test_slow(): pass

@pytest.mark.nightly
def test_whole_list(): pass
"""
LONG = """
import pytest

@pytest.mark.parametrize("case", range(9))
def test_each(case): pass

@pytest.mark.long
@pytest.mark.parametrize("case", range(5))
def test_long(case): pass
"""
MANY = """
import pytest

@pytest.mark.sampled
@pytest.mark.parametrize("case", range(11))
def test_many(case): pass

@pytest.mark.parametrize("case", range(11))
def test_each(case): pass
"""


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def run(folder: Path, *flags: str, tests: str = THREE, processes: int = 1) -> str:
    """Run pytest: by default on a test of each tier, and one that takes more samples in the rest."""
    (folder / "test_three.py").write_text(tests)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  long\n  slow\n  nightly\n  sampled\n")
    plugins = ["-p", "tests.tiers", "-p", "xdist", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *plugins, "--rootdir", folder]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment["PYTEST_XDIST_WORKER_COUNT"] = str(processes)  # as xdist tells its processes
    done = subprocess.run(
        [*command, *flags, "test_three.py"], cwd=folder, env=environment, capture_output=True, text=True
    )
    return done.stdout


def test_slow_tests_are_left_out_and_counted(tmp_path: Path) -> None:
    """Also where they are collected in other processes, whose collecting nobody sees."""
    printed = run(tmp_path, "-n1")
    assert "2 passed" in printed and "slow tests left out: 1" in printed


def test_all_runs_everything(tmp_path: Path) -> None:
    printed = run(tmp_path, "--all")
    assert "1 failed, 2 passed" in printed and "left out" not in printed


def test_whole_lists_are_run_where_they_are_asked_for(tmp_path: Path) -> None:
    assert "1 failed, 3 passed" in run(tmp_path, "--nightly")


def test_the_rest_is_what_all_adds(tmp_path: Path) -> None:
    """Slow tests, and anew, with more samples, those that take few in the default tier."""
    printed = run(tmp_path, "--rest")
    assert "1 failed, 1 passed, 2 deselected" in printed and "test_three.py::test_both" in printed


def test_a_sampled_test_has_four_cases_by_default(tmp_path: Path) -> None:
    """And the others in the rest."""
    assert "15 passed, 7 deselected" in run(tmp_path, tests=MANY)
    assert "7 passed, 15 deselected" in run(tmp_path, "--rest", tests=MANY)
    assert "22 passed" in run(tmp_path, "--all", tests=MANY)


def test_every_process_begins_with_long_tests(tmp_path: Path) -> None:
    """Five of them among two processes, each of which is given seven of the fourteen."""
    printed = run(tmp_path, "--collect-only", "-q", tests=LONG, processes=2)
    order = re.findall(r"test_three.py::(\S+)", printed)
    for share, first, then in ((order[:7], (0, 2, 4), 0), (order[7:], (1, 3), 4)):
        names = [f"test_long[{case}]" for case in first] + [f"test_each[{then}]"]
        assert share[: len(names)] == names


def test_every_case_meets_two_others() -> None:
    """One of them in the default tier, where enough cases side by side meet all."""
    pairs = crossed([("a", 1), ("a", 2), ("a", 3), ("b", 1)], "xyz")
    quick = [pair.values for pair in pairs if not pair.marks]
    assert quick == [("a", 1, "x"), ("a", 2, "y"), ("a", 3, "z"), ("b", 1, "x")]
    slower = [pair.values for pair in pairs if [mark.name for mark in pair.marks] == ["slow"]]
    assert slower == [("a", 1, "y"), ("a", 2, "z"), ("a", 3, "x"), ("b", 1, "y")]
    assert len(pairs) == len(quick) + len(slower)


def test_few_cases_of_each_method_are_in_a_tier() -> None:
    """Every method stays in both."""
    fewer = few(1, crossed([("a", 1), ("a", 2), ("a", 3), ("b", 1)], "xy"), more=2)
    assert [case.values for case in fewer if not case.marks] == [("a", 1, "x"), ("b", 1, "y")]
    assert [case.values for case in fewer if case.marks] == [("a", 1, "y"), ("a", 2, "x"), ("b", 1, "x")]


def test_cases_of_methods_that_are_not_quick_are_slow() -> None:
    cases = of_methods("a", crossed([("a",), ("b",)], "xy"))
    assert [(*case.values, bool(case.marks)) for case in cases] == [
        ("a", "x", False), ("a", "y", True), ("b", "x", True), ("b", "y", True),
    ]  # fmt: skip


def test_cases_that_are_not_chosen_are_slow() -> None:
    cases = choose("abc", "ac")
    assert [(*case.values, len(case.marks)) for case in cases] == [("a", 0), ("b", 1), ("c", 0)]


def test_every_marker_is_documented_and_used() -> None:
    """pytest refuses a marker that pyproject.toml does not name; one that nothing uses selects nothing."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"]
    assert "--strict-markers" in options["addopts"]
    used = {found for path in TESTS for found in re.findall(r"\bmark\.(\w+)", path.read_text(encoding="utf-8"))}
    for marker in options["markers"]:
        word, _, meaning = marker.partition(": ")
        assert meaning and word in used, marker


def imported(path: Path) -> set[str]:
    """Return the names that a file imports from others."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}


def is_of_distributions(path: Path) -> bool:
    """Return whether a file tests samples. Most are not parsed."""
    judges = {"chi2", "chance", "FALSE_ALARM"}
    names = any(name in path.read_text(encoding="utf-8") for name in judges)
    return path.stem != "distributions" and names and bool(imported(path) & judges)


def states_its_power(path: Path) -> bool:
    """Return whether docstrings of a file state the power of its tests, and a test holds it."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    docstrings = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, ast.Module | ast.FunctionDef)]
    stated = [
        text for text in docstrings if re.search(r"Power: .*\b0\.99\b.*\bvariation\s+distance\b", text, re.DOTALL)
    ]
    return bool(stated) and "power" in imported(path)


def test_a_test_of_a_distribution_states_its_power() -> None:
    """A test of samples that does not say which bias it sees, and how surely, may see none."""
    judges = [path for path in TESTS if is_of_distributions(path)]
    assert {path.stem for path in judges} >= {"test_distribution", "test_kangaroo", "test_ouroboros"}
    silent = [path.name for path in judges if not states_its_power(path)]
    assert not silent, "state the power in a docstring, and test what it states"
