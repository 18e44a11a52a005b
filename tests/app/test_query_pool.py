"""Few queries run at once, and one of each client."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from app.debug import query_pool
from app.debug.query_pool import QueryPool
from app.server.limits import LIMITS
from app.server.middleware.session_tracker import CLIENT
from decoding.errors import TraceError


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_pool, "LIMITS", replace(LIMITS, query_patience=0.05))


def entered(pool: QueryPool, client: str) -> bool:
    """Return whether a client gets a place, in a thread of its own."""
    outcomes = list[bool]()

    def enter() -> None:
        CLIENT.set(client)
        try:
            with pool.place():
                outcomes.append(True)
        except TraceError:
            outcomes.append(False)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return outcomes[0]


def test_a_client_has_one_place_and_all_have_few() -> None:
    """One visitor's slow queries must not keep the others waiting."""
    pool = QueryPool(places=2, each=1)
    token = CLIENT.set("a")
    with pool.place():
        assert not entered(pool, "a") and entered(pool, "b")
        CLIENT.set("c")
        with pool.place():
            assert not entered(pool, "b")
        assert entered(pool, "b")
        CLIENT.set("a")
    assert entered(pool, "a") and entered(pool, "b")
    CLIENT.reset(token)


def test_a_place_is_given_back_after_an_error() -> None:
    pool = QueryPool(places=1, each=1)
    with pytest.raises(ValueError, match="wrong"), pool.place():
        raise ValueError("wrong")
    assert entered(pool, "a")


def test_a_client_with_many_queries_waits_behind_one_with_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two addresses that asked again and again left a third without an answer, since chance chose who came next."""
    monkeypatch.setattr(query_pool, "LIMITS", replace(LIMITS, query_patience=30.0))
    pool, order, ends = QueryPool(places=1, each=1), list[str](), threading.Semaphore(0)

    def ask(client: str) -> None:
        CLIENT.set(client)
        with pool.place():
            order.append(client)
            ends.acquire()

    threads = list[threading.Thread]()
    for number, client in enumerate("aaabbc"):
        threads.append(threading.Thread(target=ask, args=[client]))
        threads[-1].start()
        while len(order) + len(pool._waiting) <= number:
            time.sleep(0.001)
    for _ in threads:
        ends.release()
    for thread in threads:
        thread.join()
    assert "".join(order) == "abcaba"
