"""What is kept for visitors: nobody takes the room of all others."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from app.shelf import Bound, Shelf


def shelf(things: int = 6, each: int = 4, weight: int = 100, weight_each: int = 60) -> Shelf[str]:
    return Shelf(Bound(things, weight), Bound(each, weight_each))


def test_a_visitor_beyond_the_share_loses_the_oldest_of_their_own() -> None:
    kept = shelf()
    kept.put("quiet", "q", "theirs")
    gone = [key for number in range(100) for key in kept.put("loud", f"l{number}", "x")]
    assert gone == [f"l{number}" for number in range(96)]
    assert kept.get("q") == "theirs" and kept.owner("l99") == "loud"


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


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.integers(0, 50)), max_size=60))
def test_bounds_hold_whatever_comes(puts: list[tuple[str, int, int]]) -> None:
    kept = shelf()
    for client, number, weight in puts:
        before = {key: kept.owner(key) for key, _ in kept.items()}
        gone = kept.put(client, f"{client}{number}", "x", weight)
        held = Counter(kept.owner(key) for key, _ in kept.items())
        assert len(kept) <= 6 and max(held.values()) <= 4 and f"{client}{number}" in kept
        assert all(before[key] == client or held[before[key]] + 1 >= held[client] for key in gone)
