"""What a clone weighs: the files that git tracks, of which each is downloaded by everybody who tries the program."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tools.screenshots import FOLDER, shown

from . import ROOT
from .optional import OPTIONAL, left_out
from .test_push import tracked

MIB = 2**20

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")


def check(paths: Iterable[Path], most: int) -> None:
    sizes = sorted(((path.stat().st_size, str(path.relative_to(ROOT))) for path in paths), reverse=True)
    total = sum(size for size, _ in sizes)
    largest = "\n".join(f"{size / MIB:6.1f} MiB  {name}" for size, name in sizes[:25])
    assert total <= most * MIB, f"{total / MIB:.1f} MiB are tracked, {most} are allowed; the largest:\n{largest}"


def test_a_clone_is_light() -> None:
    check(tracked(), 64)


def test_a_copy_for_another_machine_is_lighter() -> None:
    check((path for path in tracked() if not str(path.relative_to(ROOT)).startswith(OPTIONAL)), 48)


@pytest.mark.skipif(left_out(FOLDER), reason="this copy leaves docs/screenshots out")
def test_only_pictures_that_a_page_shows_are_carried() -> None:
    assert {path.name for path in tracked() if path.is_relative_to(FOLDER)} == shown()
