"""Sorts the suffix arrays of datastores: by pydivsufsort if it is installed, else by numpy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from decoding.parts.suffixes import Integers


def sort_suffixes(tokens: Integers) -> npt.NDArray[np.uint32]:  # (n,) -> (n,)
    """Sort the positions of a stream by what follows them."""
    try:
        from pydivsufsort import divsufsort  # type: ignore[import-untyped]  # not built for every machine
    except ImportError:
        return sort_by_doubling(tokens)
    return np.asarray(divsufsort(tokens), dtype=np.uint32)


def sort_by_doubling(tokens: Integers) -> npt.NDArray[np.uint32]:  # (n,) -> (n,)
    """Do the same with numpy alone, at many times the cost: by 1, 2, 4, ... tokens, until no two are equal."""
    ranks, width = np.unique(tokens, return_inverse=True)[1].astype(np.int64), 1
    while True:
        following = np.zeros_like(ranks)  # an end comes before all continuations
        following[:-width] = ranks[width:] + 1
        keys = ranks * (len(ranks) + 1) + following
        different, ranks = np.unique(keys, return_inverse=True)
        if len(different) == len(ranks):
            return np.argsort(ranks).astype(np.uint32)
        width *= 2
