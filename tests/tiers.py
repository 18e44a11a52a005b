"""What of a product of cases the default tier of the tests takes; `pytest --all` takes everything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

slow = pytest.mark.slow


def crossed(cases: Iterable[Sequence[Any]], others: Sequence[Any]) -> list[Any]:
    """Every case with every one of the others; by default each case with one of them, in turn.

    The cases of a method stand side by side, so a method with as many cases as there are others meets each of them in
    the default tier too.
    """
    return [
        pytest.param(*case, other, marks=() if at % len(others) == turn else slow)
        for at, case in enumerate(cases)
        for turn, other in enumerate(others)
    ]
