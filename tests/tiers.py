"""Two tiers of tests, and the whole lists of which these take samples.

`pytest` runs the default tier: all tests but those marked `slow`, such as those that start servers, and four cases of
each test marked `sampled`. `pytest --all` adds the others, and gives tests that take the fixture `everything` more
samples. `pytest --rest` runs only what `--all` adds. Both tiers are samples: not every setting meets every model.
Tests marked `long` are begun before the others.

What is left of these lists is marked `nightly`. Whoever changes what such a test judges, as the doctor's thresholds,
runs `pytest --nightly`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from itertools import islice
from typing import Any
from zlib import crc32

import pytest

slow, nightly, sampled = pytest.mark.slow, pytest.mark.nightly, pytest.mark.sampled
MOST = 4  # cases of a sampled test in the default tier
_LEFT_OUT = pytest.StashKey[int]()


def crossed(cases: Iterable[Sequence[Any]], others: Sequence[Any]) -> list[Any]:
    """Return every case with two of the others; by default with one of them, in turn.

    The cases of a method stand side by side, so a method with as many cases as there are others meets each of them in
    the default tier too.
    """
    return [
        pytest.param(*case, other, marks=() if at % len(others) == turn else slow)
        for at, case in enumerate(cases)
        for turn, other in enumerate(others)
        if (turn - at) % len(others) < 2
    ]


def choose(every: Iterable[Any], quick: Container[Any]) -> list[Any]:
    """Return every case; by default only those that are among the quick ones."""
    return [pytest.param(case, marks=() if case in quick else slow) for case in every]


def few(most: int, cases: Iterable[Any], more: int = 1) -> list[Any]:
    """Return of each method the first cases of what `crossed` gives, or of plain cases.

    By default no more than `most`, with `--all` some more. For a test to which a method's settings are all alike, since
    they only lead to trees of other shapes.
    """
    met, rest, marked = Counter[str](), Counter[str](), list[Any]()
    for plain in cases:
        case = plain if hasattr(plain, "marks") else pytest.param(*plain)
        method = case.values[0]
        if not case.marks and met[method] < most:
            met[method] += 1
            marked.append(case)
        elif rest[method] < more:
            rest[method] += 1
            marked.append(pytest.param(*case.values, marks=slow))
    return marked


def of_methods(quick: Container[Any], cases: Iterable[Any]) -> list[Any]:
    """Return what `crossed` gives; by default only those of the quick methods."""
    return [pytest.param(*case.values, marks=case.marks if case.values[0] in quick else slow) for case in cases]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Start two processes more than there are cores: one more left these idle for three tenths of the time, while all
    waited for browsers, servers and files. With three more the tests took as long.
    """
    return None if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else (os.cpu_count() or 1) + 2


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flags that ask for the second tier, with the first or alone."""
    parser.addoption("--all", action="store_true", help="run slow tests too, and give some tests more samples")
    parser.addoption("--rest", action="store_true", help="run only what --all adds to a run without it")
    parser.addoption("--nightly", action="store_true", help="run what --all runs, with the whole of every list")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only the whole suite runs, unless it is asked for: by a flag, by -m, or by a test's full name."""
    named = "slow" in config.getoption("markexpr") or any("::" in name for name in config.args)
    daily = [item for item in items if item.get_closest_marker("nightly") is None]
    _thin([item for item in daily if not _is_slow(item)])
    if config.getoption("rest"):
        selected = [item for item in daily if _is_slow(item) or "everything" in getattr(item, "fixturenames", ())]
    elif named or config.getoption("nightly"):
        selected = list(items)
    elif config.getoption("all"):
        selected = daily
    else:
        selected = [item for item in daily if not _is_slow(item)]
        _count(config, len(daily) - len(selected))
    deselected = set(items).difference(selected)
    config.hook.pytest_deselected(items=list(deselected))
    items[:] = _long_first(selected, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def _long_first(items: list[pytest.Item], processes: int) -> list[pytest.Item]:
    """Begin each process's share of the tests with the long ones: at the end all would wait for the last of them.

    Its share is what xdist hands out at first: as many neighbours as the next process gets, or one fewer.
    """
    long = [item for item in items if item.get_closest_marker("long") is not None]
    others = iter([item for item in items if item.get_closest_marker("long") is None])
    ordered = list[pytest.Item]()
    for process in range(processes):
        share = (len(items) - len(ordered)) // (processes - process)
        begun = long[process::processes]
        ordered += [*begun, *islice(others, max(0, share - len(begun)))]
    return [*ordered, *others]


def _thin(items: list[pytest.Item]) -> None:
    """Mark as slow what a sampled test has beyond four cases.

    The four lie evenly in the list of cases, and begin elsewhere in each test, so that not all
    tests leave out the same methods.
    """
    tests = dict[str, list[pytest.Item]]()
    for item in items:
        if item.get_closest_marker("sampled") is not None:
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for test, cases in tests.items():
        first, count = crc32(test.encode()), len(cases)
        chosen = {(first + at * count // MOST) % count for at in range(MOST)}
        for at, item in enumerate(cases):
            if at not in chosen:
                item.add_marker(slow)


def _is_slow(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is not None


def _count(config: pytest.Config, left_out: int) -> None:
    config.stash[_LEFT_OUT] = left_out
    if hasattr(config, "workeroutput"):  # in a process of xdist, which collects for itself
        config.workeroutput["left_out"] = left_out


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Take over what a process of xdist has left out: the same as every other that did not crash."""
    if "left_out" in getattr(node, "workeroutput", {}):
        node.config.stash[_LEFT_OUT] = node.workeroutput["left_out"]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say how much was left out."""
    if left_out := config.stash.get(_LEFT_OUT, 0):
        terminalreporter.write_line(f"slow tests left out: {left_out} (`make test-rest` runs them, with pytest --rest)")


@pytest.fixture(scope="session")
def everything(request: pytest.FixtureRequest) -> bool:
    """Return whether a test shall take more samples than by default."""
    return any(request.config.getoption(flag) for flag in ("all", "rest", "nightly"))
