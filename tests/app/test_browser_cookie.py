"""The cookie that binds sessions to a browser."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from app.server.middleware.browser_cookie import BrowserCookie
from app.server.middleware.origin import Origin

HERE, THERE = Origin("10.0.0.1", "localhost", "http"), Origin("10.0.0.2", "localhost", "http")
SECURE = Origin("10.0.0.1", "page.example.org", "https")


def cookie_of(cookie: BrowserCookie, origin: Origin) -> tuple[str, set[str]]:
    """Return what a browser without the cookie sends from then on, and the cookie's flags."""
    ((name, value),) = cookie.headers(origin, Headers())
    assert name == b"set-cookie"
    sent, *flags = value.decode().split("; ")
    return sent, set(flags)


def test_a_frame_of_another_site_gets_the_cookie_where_browsers_allow_that() -> None:
    cookie = BrowserCookie()
    sent, flags = cookie_of(cookie, HERE)
    assert sent.startswith("specscope=") and flags == {"Path=/", "HttpOnly", "SameSite=Lax"}
    sent, flags = cookie_of(cookie, SECURE)
    assert sent.startswith("__Host-specscope=")
    assert flags == {"Path=/", "HttpOnly", "SameSite=None", "Secure", "Partitioned"}
    assert not cookie.headers(SECURE, Headers({"cookie": f"a=b; {sent}"}))
    assert cookie_of(cookie, HERE)[0] != cookie_of(cookie, HERE)[0]


def test_a_session_follows_its_browser_and_else_its_address() -> None:
    cookie = BrowserCookie()
    mine, others = (Headers({"cookie": cookie_of(cookie, HERE)[0]}) for _ in range(2))
    ids = [
        cookie.session("tab", HERE, mine),
        cookie.session("tab", HERE, others),
        cookie.session("tab", HERE, Headers()),
        cookie.session("tab", THERE, Headers()),
        cookie.session("another", HERE, mine),
    ]
    assert len(set(ids)) == 5
    assert cookie.session("tab", THERE, mine) == ids[0]  # a phone that left its network
    assert BrowserCookie().session("tab", HERE, mine) != ids[0]


@pytest.mark.parametrize(
    "sent", ["", "specscope=", "specscope=a", "specscope=" + "a" * 23, "x", "specscope=address 10.0.0.1"]
)
def test_a_cookie_that_the_server_did_not_make_is_replaced(sent: str) -> None:
    cookie, headers = BrowserCookie(), Headers({"cookie": sent})
    assert cookie.headers(HERE, headers)
    assert cookie.session("tab", THERE, headers) == cookie.session("tab", THERE, Headers())
