"""Suffix arrays: the positions of a token stream, sorted by what follows, so a phrase is found by bisection.

A stream holds documents with a border token after each. The border is larger than every real token.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[Any]


class Suffixes:
    """A stream and its suffix array, possibly on disk and possibly damaged: no content makes a method fail."""

    def __init__(self, tokens: Integers, order: Integers, border: int) -> None:
        self._tokens, self._order, self._border = tokens, order, border

    def find(self, phrase: list[int]) -> range:
        """Return the ranks of all occurrences of `phrase` that a token of the same document follows."""
        ranks, size = range(len(self._order)), len(phrase)

        def phrase_at(rank: int) -> list[int]:
            place = int(self._order[rank])
            tokens: list[int] = self._tokens[place : place + size].tolist()
            return tokens

        first = bisect_left(ranks, phrase, key=phrase_at)
        size += 1  # the border sorts after every token, so the matches that end a document come last
        return range(first, bisect_left(ranks, [*phrase, self._border], lo=first, key=phrase_at))

    def read(self, ranks: Integers, skip: int, length: int, limit: int) -> npt.NDArray[np.int64]:  # (length, m)
        """Read `length` tokens after the first `skip` at m positions; -1 from the first one on that reaches `limit`."""
        places = self._order[ranks].astype(np.int64) + np.arange(skip, skip + length)[:, None]
        tokens = self._tokens.take(places, mode="clip").astype(np.int64)
        ended = np.logical_or.accumulate((places >= len(self._tokens)) | (tokens >= limit), axis=0)
        return np.where(ended, -1, tokens)


def frequent(ways: Integers, most: int) -> list[tuple[tuple[int, ...], int]]:
    """Return the most frequent prefixes of sorted columns (length, m), which -1 ends, with their counts.

    Ties go to the shorter one, then to the one with the lower tokens. A prefix is never rarer than what continues it,
    and it is shorter, so each comes after its own prefixes.
    """
    starts = np.ones(ways.shape, dtype=np.bool_)  # whether a prefix of this length differs from its left neighbour
    starts[:, 1:] = np.logical_or.accumulate(ways[:, 1:] != ways[:, :-1], axis=0)
    last, way = np.nonzero(starts)  # by length, then in the order of the ways, which is that of the tokens
    stops = np.append(way[1:], 0)
    counts = np.where(stops == 0, ways.shape[1], stops) - way
    real = ways[last, way] >= 0
    last, way, counts = last[real], way[real], counts[real]
    best = _largest(counts, most)
    return [(tuple(ways[: last[i] + 1, way[i]].tolist()), int(counts[i])) for i in best]


def _largest(counts: Integers, most: int) -> Integers:
    """Return the positions of the largest counts in descending order, ties in order of position, sorting only those."""
    if len(counts) > most > 0:
        least = np.partition(counts, -most)[-most]
        above = np.flatnonzero(counts > least)
        equal = np.flatnonzero(counts == least)[: most - len(above)]
        return np.concatenate((above[_largest(counts[above], most)], equal))
    return np.argsort(-counts, kind="stable")[:most]


def cut_at_ends(ways: Integers, ends: Sequence[int]) -> Integers:  # (length, m) -> (length, m)
    """Cut the ways after their first end token."""
    ended = np.logical_or.accumulate(np.isin(ways, ends), axis=0)
    return np.concatenate((ways[:1], np.where(ended[:-1], -1, ways[1:])))
