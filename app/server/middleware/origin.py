"""Host, Origin and client address of a request.

An unknown host name may belong to another site and point here (DNS rebinding); that site could then read this server.
X-Forwarded headers are trusted only if the owner says that a proxy sets them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from decoding.errors import ParamError

from .errors import RequestError

_HOST = re.compile(r"(?P<name>[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252})|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252})")
_PATH = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,62}){1,8}")
_OUTSIDE = "This request comes from another site's page: open this one instead."


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a request comes from."""

    client: str  # the address, or the /64 network of an IPv6 address
    host: str  # as the browser names it
    scheme: str
    path: str = ""  # that a proxy takes away from addresses, such as "/scope"


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner's settings: how the page is reached."""

    hosts: frozenset[str] = frozenset()  # names beside localhost and plain addresses
    any_host: bool = False  # for a public page, where DNS rebinding reaches nothing that is not public
    proxied: bool = False  # a proxy sets the X-Forwarded headers

    @classmethod
    def of(cls, hosts: Sequence[str], proxied: bool, environment: Mapping[str, str]) -> Owner:
        """Read the owner from the command line; a Space is recognised by its environment."""
        for host in hosts:
            if not _NAME.fullmatch(host):
                raise ParamError(f"--allow-host takes a name such as specscope.example.org, not {host[:60]!r}")
        space = "SPACE_ID" in environment
        names = {host.lower() for host in hosts}
        if space and (host := environment.get("SPACE_HOST", "").lower()):
            names.add(host)
        return cls(frozenset(names), any_host=space and not hosts, proxied=proxied or space)

    def read(self, scope: Scope, headers: Headers) -> Origin:
        """Parse a request's origin; raises RequestError for an unknown host."""
        hosts = headers.getlist("host")
        host, scheme, path = hosts[0] if len(hosts) == 1 else "", str(scope.get("scheme", "http")), ""
        if self.proxied:
            host = _first(headers.get("x-forwarded-host")) or host
            scheme = "https" if _first(headers.get("x-forwarded-proto")) == "https" else scheme
            prefix = headers.get("x-forwarded-prefix", "").split(",")[0].strip().rstrip("/")
            path = prefix if _PATH.fullmatch(prefix) else ""
        parsed = _HOST.fullmatch(host)
        if parsed is None:
            raise RequestError(400, "The request names no host.")
        name = parsed["name"].lower()
        if not (self.any_host or name in self.hosts or name == "localhost" or _is_address(name)):
            raise RequestError(421, "This server does not know that name: its owner can add it with --allow-host.")
        return Origin(self._client(scope, headers), host.lower(), scheme, path)

    def check_post(self, origin: Origin, headers: Headers) -> None:
        """Raise RequestError for a POST that another site made a browser send."""
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise RequestError(403, _OUTSIDE)
        sender = headers.get("origin")
        if sender is not None:
            try:
                netloc = urlsplit(sender).netloc.lower()
            except ValueError:
                netloc = ""
            if netloc != origin.host and netloc not in self.hosts:
                raise RequestError(403, _OUTSIDE)
        kind = headers.get("content-type", "").split(";")[0].strip().lower()
        if kind != "application/json":  # browsers send it across sites only after a CORS preflight
            raise RequestError(415, "Only JSON is read here.")

    def _client(self, scope: Scope, headers: Headers) -> str:
        """Return the client's address; an IPv6 address is cut to the /64 network that one customer holds."""
        peer = (scope.get("client") or ("",))[0]
        if self.proxied:
            # Each proxy appends its peer. What comes before the last public address may be forged.
            hops = [hop.strip() for hop in headers.get("x-forwarded-for", "").split(",")[-8:]]
            peer = next((hop for hop in reversed(hops) if _is_public(hop)), peer)
        try:
            address = ipaddress.ip_address(peer)
        except ValueError:
            return "unknown"
        if isinstance(address, ipaddress.IPv6Address):
            mapped = address.ipv4_mapped
            return str(mapped) if mapped else str(ipaddress.ip_network((address, 64), strict=False))
        return str(address)


def _first(value: str | None) -> str:
    return (value or "").split(",")[0].strip().lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _is_public(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).is_global
    except ValueError:
        return False
