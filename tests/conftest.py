"""Two tiers of tests; one thread for torch, hypothesis without chance (a failure found once is found by everyone), and
one browser.

`pytest` runs the default tier: every promise, in as many samples as show a break of it. `pytest --all` adds the tests
marked `slow`, and gives the tests that take the fixture `everything` all of their samples and combinations.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, settings

from tools.browser import browser, find_chromium

torch.set_num_threads(1)  # the tests run side by side

_STEADY = {"derandomize": True, "deadline": None, "print_blob": True}
_SLOW_FIXTURES = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile("ci", max_examples=100, suppress_health_check=_SLOW_FIXTURES, **_STEADY)
settings.register_profile("nightly", max_examples=10_000, suppress_health_check=_SLOW_FIXTURES, **_STEADY)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag that asks for both tiers."""
    parser.addoption("--all", action="store_true", help="run slow tests too, and every test with all of its samples")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only the whole suite runs, unless it is asked for: by --all, by -m, or by a test's full name."""
    named = "slow" in config.getoption("markexpr") or any("::" in name for name in config.args)
    asked = named or config.getoption("all")
    left_out = [] if asked else [item for item in items if item.get_closest_marker("slow")]
    if left_out:
        items[:] = [item for item in items if not item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=left_out)
    _count(config, len(left_out))


_LEFT_OUT = pytest.StashKey[int]()


def _count(config: pytest.Config, left_out: int) -> None:
    config.stash[_LEFT_OUT] = left_out
    if hasattr(config, "workeroutput"):  # in a process of xdist, which collects for itself
        config.workeroutput["left_out"] = left_out


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Take over what a process of xdist has left out: the same as every other."""
    node.config.stash[_LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say how much was left out."""
    if left_out := config.stash.get(_LEFT_OUT, 0):
        terminalreporter.write_line(f"{left_out} slow tests were left out: `make test-all` runs them (pytest --all)")


@pytest.fixture(scope="session")
def everything(request: pytest.FixtureRequest) -> bool:
    """Whether a test shall take all of its samples and combinations."""
    return bool(request.config.getoption("all"))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """One browser for all tests of a process, because playwright cannot be started twice in it."""
    if find_chromium() is None and "CI" not in os.environ:
        pytest.skip("the pages are tested in a browser: install chromium")
    with browser() as running:
        yield running
