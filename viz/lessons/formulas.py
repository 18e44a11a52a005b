"""The facts about machines, counts of many runs, and the model of two letters, as pure functions."""

from __future__ import annotations

from typing import NewType

from decoding.trace import metrics

from .sources import DeviceCost, RunCounts

CountName = NewType("CountName", str)


def cost(device: DeviceCost, rows: int) -> float:
    """Return c(T): the cost of a pass over `rows` rows on a named device, in passes over one."""
    return device.cost(rows)


def letters(counts: RunCounts) -> int:
    """Return the number of letters written by the model of two letters."""
    return counts.count("A") + counts.count("B")


def as_in_hundred(counts: RunCounts) -> float:
    """Return how many of a hundred letters written by the model of two letters were an A."""
    return 100 * counts.count("A") / letters(counts)


def counted(counts: RunCounts, what: CountName) -> int:
    """Return a count over many runs: of an event, of passes or of tokens."""
    return counts.count(what)


def in_hundred(counts: RunCounts, what: CountName) -> float:
    """Return how many of a hundred counted things were this one."""
    return 100 * counts.counts.get(what, 0) / sum(counts.counts.values())


def ratio(counts: RunCounts, above: CountName, below: CountName) -> float:
    """Return one count divided by another, such as tokens by passes."""
    return counts.count(above) / counts.count(below)


def percent(counts: RunCounts, above: CountName, below: CountName) -> float:
    """Return one count as a percentage of another, such as right guesses of those that were tried."""
    return 100 * ratio(counts, above, below)


def percent_more(counts: RunCounts, other: RunCounts, above: CountName, below: CountName) -> float:
    """Return by how many percent a ratio of counts exceeds the same ratio elsewhere."""
    return 100 * (ratio(counts, above, below) / ratio(other, above, below) - 1)


def tokens_by_position(counts: RunCounts) -> float:
    """Return the expected tokens of a step that guesses every position: one, and the chance of reaching each."""
    tokens = lasting = 1.0
    for position in range(1, sum(name.startswith("right-") for name in counts.counts) + 1):
        lasting *= ratio(counts, CountName(f"right-{position}"), CountName(f"tried-{position}"))
        tokens += lasting
    return tokens


def keys_missing(ring: int, window: int, rows: int) -> int:
    """Return how many keys that the root sees would be overwritten by its own step's later rows, in a ring of slots."""
    return max(0, rows - 1 - (ring - window))


def overlap(p_of_a: float, q_of_a: float) -> float:
    """Return the chance that a guess of two letters is kept: the sum of min(p, q)."""
    return min(p_of_a, q_of_a) + min(1 - p_of_a, 1 - q_of_a)


def agreement(p_of_a: float, q_of_a: float) -> float:
    """Return the chance that a letter drawn from p and one drawn from q are the same."""
    return p_of_a * q_of_a + (1 - p_of_a) * (1 - q_of_a)


def best_of_hundred(p_of_a: float, q_of_a: float) -> float:
    """Return how many of a hundred guesses are an A that is kept."""
    return 100 * min(p_of_a, q_of_a)


def expected_tokens(guesses: int, alpha: float) -> float:
    """Return the expected tokens of a step: Leviathan's equation 1."""
    return metrics.expected_tokens(guesses, alpha)


def expected_speedup(guesses: int, alpha: float, draft_cost: float) -> float:
    """Return the expected speed-up if a pass over a few rows costs as much as one over a single row."""
    return expected_tokens(guesses, alpha) / (1 + guesses * draft_cost)


def best_guesses(alpha: float, draft_cost: float) -> int:
    """Return the number of guesses per step with the greatest expected speed-up; 0: do not guess."""
    return max(range(33), key=lambda guesses: expected_speedup(guesses, alpha, draft_cost))
