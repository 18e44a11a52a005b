"""The n-gram pool against a plain list of everything that was inserted."""

from __future__ import annotations

import sys
import threading

from hypothesis import given
from hypothesis import strategies as st

from decoding.drafting.ngram_pool import NgramPool

Insertion = tuple[int, tuple[int, ...]]
INSERTIONS = st.lists(
    st.tuples(st.integers(0, 5), st.tuples(st.integers(0, 2), st.integers(0, 2))), min_size=1, max_size=80
)


class NaivePool:
    """The rule in the words of the paper's reference: lists, oldest first."""

    def __init__(self, G: int, largest: int) -> None:
        self.G, self.largest = G, largest
        self.lists: dict[int, list[tuple[int, ...]]] = {}
        self.recency: list[int] = []  # keys, the least recently inserted one first

    def insert(self, key: int, ngram: tuple[int, ...]) -> str | None:
        if self.G == 0:
            return None
        held = self.lists.setdefault(key, [])
        self.recency = [*(other for other in self.recency if other != key), key]
        if ngram in held:
            held.remove(ngram)
            held.append(ngram)
            return "refreshed"
        if len(held) == self.G:
            held.pop(0)
            held.append(ngram)
            return "evicted-oldest"
        held.append(ngram)
        if sum(map(len, self.lists.values())) > self.largest:
            del self.lists[self.recency.pop(0)]
        return "added"


@given(INSERTIONS, st.integers(0, 4), st.integers(4, 12))
def test_the_pool_is_the_naive_one(insertions: list[Insertion], G: int, largest: int) -> None:
    """A wrong order, a lost or doubled n-gram, a wrong count or the wrong victim would each show here."""
    pool, naive = NgramPool(G, largest), NaivePool(G, largest)
    for key, ngram in insertions:
        assert pool.insert(key, ngram) == naive.insert(key, ngram)
        for token in range(6):
            assert list(pool.guesses(token)) == naive.lists.get(token, [])
        assert pool.keys == len(naive.lists)
        assert pool.entries == sum(map(len, naive.lists.values())) <= largest


def test_an_insertion_refreshes_an_n_gram() -> None:
    """First in, first out would drop the n-gram that was just seen again."""
    pool = NgramPool(2)
    assert pool.insert(7, (1, 1)) == pool.insert(7, (2, 2)) == "added"
    assert pool.insert(7, (1, 1)) == "refreshed"
    assert pool.insert(7, (3, 3)) == "evicted-oldest"
    assert pool.guesses(7) == ((1, 1), (3, 3))


def test_looking_up_is_no_insertion() -> None:
    """A look-up that refreshed, or that left an empty entry behind, would change what is kept."""
    pool = NgramPool(2, largest=2)
    pool.insert(1, (1,))
    pool.insert(2, (2,))
    assert pool.guesses(1) == ((1,),)
    assert pool.guesses(9) == ()
    pool.insert(3, (3,))
    assert pool.guesses(1) == ()
    assert pool.keys == pool.entries == 2


def test_a_pool_of_size_zero_holds_nothing() -> None:
    """G = 0 means no guess at all, not one guess and not an index error."""
    pool = NgramPool(0)
    assert pool.insert(1, (2, 3)) is None
    assert pool.guesses(1) == ()
    assert pool.keys == pool.entries == 0


def test_a_hostile_run_cannot_grow_the_pool() -> None:
    """Every insertion under a new token: without the total bound memory would grow with the run."""
    pool = NgramPool(15, largest=100)
    for key in range(1_000):
        pool.insert(key, (key, key))
    assert pool.keys == pool.entries == 100
    assert pool.guesses(899) == ()
    assert pool.guesses(900) == ((900, 900),)


def test_guesses_are_a_copy() -> None:
    """A step's guesses come from the pool before its own insertions: they must not change with it."""
    pool = NgramPool(1)
    pool.insert(1, (2,))
    before = pool.guesses(1)
    pool.insert(1, (3,))
    assert before == ((2,),)


NGRAMS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=4)


@given(INSERTIONS, st.lists(st.tuples(st.integers(0, 6), NGRAMS, NGRAMS), max_size=6), st.integers(0, 4))
def test_replacing_drops_and_inserts(
    insertions: list[Insertion], swaps: list[tuple[int, list[tuple[int, int]], list[tuple[int, int]]]], G: int
) -> None:
    """A wrong count of entries, a key left without n-grams, or a new n-gram lost because it is also an old one."""
    pool, naive = NgramPool(G, 12), NaivePool(G, 12)
    for key, ngram in insertions:
        pool.insert(key, ngram)
        naive.insert(key, ngram)
    for key, old, new in swaps:
        pool.replace(key, old, new)
        if left := [held for held in naive.lists.pop(key, []) if held not in old]:
            naive.lists[key] = left
        elif key in naive.recency:
            naive.recency.remove(key)
        for ngram in new:
            naive.insert(key, ngram)
        for token in range(7):
            assert list(pool.guesses(token)) == naive.lists.get(token, [])
        assert pool.keys == len(naive.lists)
        assert pool.entries == sum(map(len, naive.lists.values()))


def test_replacing_what_one_another_became() -> None:
    """Dropping and inserting one by one would lose a correction that equals the next one to be corrected."""
    pool = NgramPool(4)
    for ngram in ((9, 9), (1, 1), (2, 2)):
        pool.insert(7, ngram)
    pool.replace(7, [(1, 1), (2, 2)], [(2, 2), (3, 3)])
    assert pool.guesses(7) == ((9, 9), (2, 2), (3, 3))
    pool.replace(7, [(2, 2), (3, 3)], [(5, 5), (5, 5)])
    assert pool.guesses(7) == ((9, 9), (5, 5))
    assert pool.entries == 2
    pool.replace(8, [(1, 1)], [])
    assert pool.keys == 1


def test_a_texts_n_grams() -> None:
    """The last window of the text belongs to it; a text shorter than one window has none."""
    pool = NgramPool(4)
    assert pool.insert_text([1, 2, 3, 1, 2, 3], 3) == 3
    assert [pool.guesses(key) for key in (1, 2, 3)] == [((2, 3),), ((3, 1),), ((1, 2),)]
    assert pool.insert_text([1, 2], 3) == pool.insert_text([], 3) == NgramPool(0).insert_text([1, 2, 3], 3) == 0


def test_runs_can_share_a_pool() -> None:
    """Without a lock one run drops the key that another is about to write to, and the counts go astray."""
    pool, errors, interval = NgramPool(2, largest=4), list[Exception](), sys.getswitchinterval()

    def work(seed: int) -> None:
        try:
            for i in range(1500):
                pool.insert((seed + 7 * i) % 11, (i % 5, seed))
                pool.replace(i % 11, pool.guesses(i % 11), [(seed, seed)])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not errors
    held = [pool.guesses(key) for key in range(11)]
    assert pool.entries == sum(map(len, held)) <= 4
    assert pool.keys == sum(map(bool, held))
