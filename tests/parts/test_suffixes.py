"""Suffix arrays without the package that sorts them fast, which not every machine has."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from lab.training.suffix_sorting import sort_by_doubling, sort_suffixes


@pytest.mark.parametrize("vocabulary", [1, 2, 5, 60_000])
@pytest.mark.parametrize("length", [0, 1, 2, 7, 300])
def test_without_the_package_the_order_is_the_same(
    monkeypatch: pytest.MonkeyPatch, vocabulary: int, length: int
) -> None:
    """A datastore must not depend on what is installed, nor building one fail."""
    tokens = np.random.default_rng(length).integers(0, vocabulary, length).astype(np.uint16)
    expected = sorted(range(length), key=lambda place: tokens[place:].tolist())
    assert sort_by_doubling(tokens).tolist() == expected
    if length:  # the package takes no empty stream
        assert sort_suffixes(tokens).tolist() == expected
    monkeypatch.setitem(sys.modules, "pydivsufsort", None)
    order = sort_suffixes(tokens)
    assert order.tolist() == expected and order.dtype == np.uint32
