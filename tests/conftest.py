"""Two tiers of tests; one thread for torch, hypothesis without chance (a failure found once is found by everyone), and
one browser.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, settings

from tests.tiers import (
    everything,
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_terminal_summary,
    pytest_testnodedown,
    pytest_xdist_auto_num_workers,
)
from tools.browser import browser, find_chromium

__all__ = [
    "everything",
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_terminal_summary",
    "pytest_testnodedown",
    "pytest_xdist_auto_num_workers",
]

torch.set_num_threads(1)  # the tests run side by side
os.environ.setdefault("OMP_NUM_THREADS", "1")  # and so do processes that they start, whose threads wait by spinning
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # kernels for devices run on the CPU, where they can be compared

_STEADY = {"derandomize": True, "deadline": None, "print_blob": True}
_SLOW_FIXTURES = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile("ci", max_examples=100, suppress_health_check=_SLOW_FIXTURES, **_STEADY)
settings.register_profile("nightly", max_examples=10_000, suppress_health_check=_SLOW_FIXTURES, **_STEADY)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_collection_finish() -> None:
    """Leave what collecting made out of all later searches for garbage, which took a twentieth of the tests' time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Yield one browser for all tests of a process, because playwright cannot be started twice in it."""
    if find_chromium() is None and "CI" not in os.environ:
        pytest.skip("the pages are tested in a browser: install chromium")
    with browser() as running:
        yield running
