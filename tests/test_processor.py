"""The processor's name, as a record holds it."""

from __future__ import annotations

import pytest

from decoding.processor import LONGEST, processor_name, shorten
from decoding.trace.rules import TraceChecker
from tests.toys import counted_text, engine


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (" Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", "Intel Xeon E5-2680 v4"),
        ("AMD EPYC 7B13 64-Core Processor", "AMD EPYC 7B13 64-Core"),
        ("Apple M2", "Apple M2"),
        ("x" * 200, "x" * LONGEST),
        ("a\u202e\nb", "a b"),
        (" CPU ", None),
        ("", None),
    ],
)
def test_names_are_short_and_printable(name: str, short: str | None) -> None:
    """A virtual machine's owner writes what they like there."""
    assert shorten(name) == short


def test_a_run_names_its_processor_and_threads() -> None:
    """As its own reader accepts it."""
    header = engine(counted_text()).generate((3, 1, 4), max_new_tokens=2).trace.header
    assert header.processor == processor_name() and header.threads is not None and header.threads >= 1
    TraceChecker(header, "line 1: header")
