"""Binds a tab's session to its browser, so that whoever learns a session's id cannot read, start or stop its runs.

A browser makes up the id of each tab's session. The server knows the session by another id, which it derives from that
one and from a cookie of the browser. Where the browser refuses cookies, as in a frame, the client's address takes its
place. So the same id from elsewhere is another session, and nothing needs to be stored.
"""

from __future__ import annotations

import hashlib
import re
import secrets

from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from .origin import Origin

_TOKEN = re.compile(r"[A-Za-z0-9_-]{22}")  # of secrets.token_urlsafe(16)


class BrowserCookie:
    """Sets the cookie and derives the ids; both end with the process."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def session(self, session: str, origin: Origin, headers: Headers) -> str:
        """Derive the server's id of a session."""
        browser = _token(origin, headers) or f"address {origin.client}"
        return hashlib.blake2b(f"{browser} {session}".encode(), key=self._key, digest_size=16).hexdigest()

    def headers(self, origin: Origin, headers: Headers) -> list[tuple[bytes, bytes]]:
        """Return the response header that sets the cookie; none if the browser has it.

        Over HTTPS the cookie is also sent from a frame of another site, as Spaces are; browsers accept that of secure
        cookies only.
        """
        if _token(origin, headers):
            return []
        flags = "SameSite=None; Secure; Partitioned" if origin.scheme == "https" else "SameSite=Lax"
        cookie = f"{_name(origin)}={secrets.token_urlsafe(16)}; Path=/; HttpOnly; {flags}"
        return [(b"set-cookie", cookie.encode())]


def _name(origin: Origin) -> str:
    """Return the cookie's name; with this prefix no other host of the domain can set it."""
    return "__Host-specscope" if origin.scheme == "https" else "specscope"


def _token(origin: Origin, headers: Headers) -> str:
    """Return the browser's cookie; "" if it sent none."""
    token = cookie_parser(headers.get("cookie", "")).get(_name(origin), "")
    return token if _TOKEN.fullmatch(token) else ""
