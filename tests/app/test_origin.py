"""Where a request comes from, with and without a proxy."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.datastructures import Headers

from app.server.middleware.errors import RequestError
from app.server.middleware.origin import Origin, Owner
from decoding.errors import ParamError

SPACE = {"SPACE_ID": "org/space", "SPACE_HOST": "Org-Space.hf.space"}


def read(owner: Owner, peer: str = "10.1.2.3", **headers: str) -> Origin:
    given = {"host": "localhost:7860"} | {name.replace("_", "-"): value for name, value in headers.items()}
    scope: dict[str, Any] = {"client": (peer, 4000), "scheme": "http"}
    return owner.read(scope, Headers(given))


@pytest.mark.parametrize(
    ("peer", "client"),
    [
        ("127.0.0.2", "127.0.0.2"),
        ("::ffff:9.8.7.6", "9.8.7.6"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),  # a household has them all
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("", "unknown"),
    ],
)
def test_a_client_is_its_address(peer: str, client: str) -> None:
    assert read(Owner(), peer).client == client
    assert read(Owner(), peer, x_forwarded_for="8.8.8.8").client == client


@pytest.mark.parametrize(
    ("header", "client"),
    [
        ("9.9.9.9", "9.9.9.9"),
        ("1.1.1.1, 9.9.9.9", "9.9.9.9"),  # whoever asks may have written the first
        ("9.9.9.9, 10.0.0.1, 192.168.1.1", "9.9.9.9"),  # proxies of the same house
        ("nonsense, , 10.0.0.1", "10.1.2.3"),
        ("", "10.1.2.3"),
        ("9.9.9.9," * 1_000 + "8.8.8.8", "8.8.8.8"),
    ],
)
def test_behind_a_proxy_a_client_is_whom_the_outermost_heard(header: str, client: str) -> None:
    assert read(Owner(proxied=True), x_forwarded_for=header).client == client


def test_a_proxy_names_host_and_scheme() -> None:
    owner = Owner.of(["page.example.org"], True, {})
    origin = read(owner, x_forwarded_host="page.example.org", x_forwarded_proto="https,http")
    assert (origin.host, origin.scheme) == ("page.example.org", "https")
    with pytest.raises(RequestError, match="does not know that name"):
        read(owner, x_forwarded_host="evil.example")


@pytest.mark.parametrize(
    ("prefix", "path"),
    [
        ("/scope", "/scope"),
        ("/models/scope/", "/models/scope"),
        ("/a, /b", "/a"),
        *((bad, "") for bad in ("", "/", "scope", "//evil.example", "/../x", "/a b", "/a?b", '/a"b', "/a" * 9)),
    ],
)
def test_a_proxy_names_the_path_that_it_takes_away(prefix: str, path: str) -> None:
    """It becomes a part of links to records; without the owner's word nobody may choose it."""
    assert read(Owner(proxied=True), x_forwarded_prefix=prefix).path == path
    assert read(Owner(), x_forwarded_prefix=prefix).path == ""


def test_a_space_is_recognised_and_reached_by_whatever_name() -> None:
    owner = Owner.of([], False, SPACE)
    assert owner.proxied and owner.any_host and owner.hosts == {"org-space.hf.space"}
    assert read(owner, host="anything.example").host == "anything.example"
    strict = Owner.of(["page.example.org"], False, SPACE)
    with pytest.raises(RequestError):
        read(strict, host="anything.example")


def test_a_space_may_post_to_itself_behind_a_name_that_its_proxy_hides() -> None:
    owner = Owner.of([], False, SPACE)
    kind = {"content-type": "application/json"}
    origin = read(owner, host="10.0.0.1:7860")
    owner.check_post(origin, Headers(kind | {"origin": "https://org-space.hf.space"}))
    with pytest.raises(RequestError, match="another site"):
        owner.check_post(origin, Headers(kind | {"origin": "https://evil.hf.space"}))


@pytest.mark.parametrize("name", ["", "*", "a b", "https://x.example", "x.example:80", "x/y", "-x", "a" * 300])
def test_a_name_with_a_mistake_is_told(name: str) -> None:
    with pytest.raises(ParamError, match="--allow-host takes a name such as"):
        Owner.of([name], False, {})
