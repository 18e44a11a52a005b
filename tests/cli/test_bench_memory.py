"""`bench` says how near autoregressive decoding is to what the memory allows."""

from __future__ import annotations

from cli.bench import _memory

REPORT = {
    "pass_bytes": 270_000_000,
    "bandwidth": [58e9, 60e9],
    "cache": 32_000_000,
    "rows": [{"tokens_per_second": 200}],
}


def test_the_share_is_of_the_fastest_reading() -> None:
    """Another program may have slowed one of the two."""
    assert _memory(REPORT).endswith("0.27 GB of weights: autoregressive decoding uses 90% of it")


def test_weights_that_a_cache_may_hold_have_no_share() -> None:
    """It would be a share of something that they do not pass through, and exceed 100%."""
    assert _memory(REPORT | {"cache": 270_000_000}).endswith("which the processor's cache may hold")
