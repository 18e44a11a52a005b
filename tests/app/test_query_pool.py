"""Few queries run at once, and one of each client."""

from __future__ import annotations

import threading

import pytest

from app import query_pool
from app.limits import LIMITS
from app.middleware.session_tracker import CLIENT
from app.query_pool import QueryPool
from decoding.errors import TraceError


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    monkeypatch.setattr(query_pool, "LIMITS", replace(LIMITS, query_patience=0.05))


def entered(pool: QueryPool, client: str) -> bool:
    """Whether a client gets a place, in a thread of its own."""
    found = list[bool]()

    def enter() -> None:
        CLIENT.set(client)
        try:
            with pool.place():
                found.append(True)
        except TraceError:
            found.append(False)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return found[0]


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
