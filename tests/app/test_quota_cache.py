"""What is kept for visitors: nobody takes the room of all others."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from app.store.quota_cache import Quota, QuotaCache


def shelf(things: int = 6, each: int = 4, weight: int = 100, weight_each: int = 60) -> QuotaCache[str]:
    return QuotaCache(Quota(things, weight), Quota(each, weight_each))


def test_a_visitor_beyond_the_share_loses_the_oldest_of_their_own() -> None:
    kept = shelf()
    kept.put("quiet", "q", "theirs")
    gone = [key for number in range(100) for key in kept.put("loud", f"l{number}", "x")]
    assert gone == [f"l{number}" for number in range(96)]
    assert kept.get("q") == "theirs" and kept.get("l99") == "x"


def test_where_all_is_full_whoever_holds_most_makes_room() -> None:
    kept = shelf(each=6)
    for number in range(5):
        kept.put("loud", f"l{number}", "x")
    kept.put("quiet", "q0", "x")
    assert kept.put("new", "n0", "x") == {"l0": "loud"} and kept.put("quiet", "q1", "x") == {"l1": "loud"}
    assert kept.put("loud", "l5", "x") == {"l2": "loud"}


def test_weights_count_and_the_newest_stays() -> None:
    kept = shelf()
    assert kept.put("one", "heavy", "x", 90) == {}  # alone it is above the share, and there is nothing else to go
    assert kept.put("two", "a", "x", 30) == {"heavy": "one"}
    assert kept.put("two", "b", "x", 30) == {} and kept.put("two", "c", "x", 30) == {"a": "two"}


def test_what_was_used_outlives_what_was_not() -> None:
    kept = shelf(each=2)
    for key in "ab":
        kept.put("one", key, key)
    assert kept.get("a") == "a"
    assert kept.put("one", "c", "c") == {"b": "one"}
    kept.change("a", "another")
    kept.change("gone", "x")
    assert kept.pop("a") == "another" and kept.pop("a") is None and kept.get("a") is None and len(kept) == 1


def test_a_heavy_entry_makes_room_from_others_where_its_client_has_none() -> None:
    kept = shelf(things=9, each=9)
    assert kept.put("a", "a", "x", 50) == {} and kept.put("b", "b", "x", 40) == {}
    assert kept.put("c", "c", "x", 90) == {"a": "a", "b": "b"}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.integers(0, 80)), max_size=60))
def test_bounds_hold_whatever_comes(puts: list[tuple[str, int, int]]) -> None:
    kept = shelf()
    for client, number, weight in puts:
        newest = f"{client}{number}"
        before = dict(kept.items())
        gone = kept.put(client, newest, f"{weight}", weight)
        held = {key: (key[0], int(value)) for key, value in kept.items()}
        counts = Counter(owner for owner, _ in held.values())
        assert newest in kept and set(before) - set(held) == set(gone) - {newest}
        assert len(held) <= 6 and max(counts.values()) <= 4
        assert len(held) == 1 or sum(weight for _, weight in held.values()) <= 100
        for each in "abc":
            weights = [weight for owner, weight in held.values() if owner == each]
            assert len(weights) <= 1 or sum(weights) <= 60
