"""Plain requests to a real page: what the page sends is answered, and nothing else."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import re
import socket
from typing import Any

import pytest

from app.server.limits import LIMITS
from tests import GOLDEN
from tools.page import API, Page, Visitor

LOOKAHEAD = GOLDEN / "lookahead.jsonl"


@pytest.fixture
def page(replaying: Page) -> Page:
    """Return the page without a model: runs have tests of their own."""
    return replaying


@pytest.fixture
def visitor(page: Page) -> Visitor:
    return page.visitor()


def test_the_page_and_its_files_are_answered(visitor: Visitor) -> None:
    page = visitor.ask("GET", "/?run=lookahead&step=3")
    assert page.status == 200 and "Specscope" in page.text
    files = re.findall(r"\./(assets/[^\"]+)", page.text)
    files += re.findall(r"specscope/[a-z]+\?[0-9a-f]+", visitor.read()["head"])
    assert len(files) >= 6
    for path in (*files, "theme.css?v=1"):
        answer = visitor.ask("GET", f"/{path}")
        assert answer.status == 200 and answer.text, path
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_page_that_lost_its_server_finds_the_next_one(visitor: Visitor) -> None:
    """It was answered with 404, so a page that was open at a restart asked on, and worked no more."""
    answer = visitor.ask("GET", f"{API}/app_id")
    assert answer.status == 200 and answer.json() == {"app_id": visitor.read()["app_id"]}
    assert visitor.ask("GET", f"{API}/app_id", Host="evil.example").status == 421


def test_a_page_without_live_runs_offers_none(visitor: Visitor) -> None:
    """It has no model that could run, be examined, or measure a landscape."""
    page = visitor.ask("GET", "/").text
    assert "SpecscopeApp.viewer(" in page
    assert "SpecscopeApp.doctor(" not in page and "SpecscopeApp.landscape(" not in page


@pytest.mark.parametrize(
    "path",
    [
        f"{API}/file=https://example.org/x.png",
        f"{API}/file=/etc/passwd",
        f"{API}/proxy=https://example.hf.space/x",
        f"{API}/startup-events",
        f"{API}/info",
        f"{API}/openapi.json",
        f"{API}/queue/status",
        f"{API}/upload_progress?upload_id=a",
        f"{API}/deep_link?session_hash=a",
        f"{API}/stream/a/b/1/playlist.m3u8",
        f"{API}/call/start/abc",
        f"{API}/custom_component/a/client/component/index.js",
        f"{API}/vibe-code/",
        f"{API}/heartbeat/{'a' * 65}",
        f"{API}/heartbeat/a%0ab",
        f"{API}/queue/data?session_hash={'a' * 65}",
        f"{API}/queue/data?session_hash=unknown",
        f"{API}/queue/data",
        "/config",
        "/monitoring",
        "/manifest.json",
        "/robots.txt",
        "/pwa_icon",
        "/login",
        "/docs",
        "/openapi.json",
        "/svelte/x",
        "/assets/../index.html",
        "/assets/%2e%2e/index.html",
        "/assets/..%2findex.html",
        "/static/.env",
        "/assets/no-such-file.js",
        f"/assets/{'a' * 256}",
        f"/static/img/{'a' * 256}",
        "/static" + f"/{'a' * 99}" * 60,
        "/assets/%ed%a0%80",
        "/assets/%ff",
        "/specscope/nothing",
        "/run",
        "/%00",
    ],
)
def test_no_other_path_is_answered(visitor: Visitor, path: str) -> None:
    answer = visitor.ask("GET", path)
    assert answer.status in (404, 422) and answer.headers["content-type"].startswith("text/plain")
    assert "Traceback" not in answer.text and len(answer.text) < 200


@pytest.mark.parametrize(
    "path",
    [
        "/upload",
        "/process_recording",
        "/cancel",
        "/reset",
        "/stream/a",
        "/stream/a/close",
        "/call/start",
        "/api/predict",
        "/vibe-edit",
        "/run-history/connect",
        "/run/start",
        "/component_server",
    ],
)
def test_nothing_else_can_be_posted(visitor: Visitor, path: str) -> None:
    assert visitor.post(path, {}).status == 404


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "POST"])
def test_the_page_is_only_read(visitor: Visitor, method: str) -> None:
    assert visitor.ask(method, "/", b"{}").status == 405


def test_multipart_and_plain_text_are_refused(visitor: Visitor) -> None:
    """One writes files before anybody reads them; the other is what any site can make a browser send."""
    file = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\nA\r\n--x--\r\n'
    for kind in ('multipart/form-data; boundary="x"', "text/plain", "application/x-www-form-urlencoded", ""):
        for path in ("/component_server/", "/run/predict", "/queue/join"):
            assert visitor.ask("POST", API + path, file, Content_Type=kind).status == 415


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "http://[::1"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Sec_Fetch_Site": "same-origin"}, 200),
        ({}, 200),
    ],
)
def test_other_sites_cannot_post(visitor: Visitor, headers: dict[str, str], status: int) -> None:
    call = {"data": "x", "fn_name": "run_lives", "component_id": visitor.component("viewer"), "session_hash": "a"}
    assert visitor.post("/component_server/", call, **headers).status == status
    origin = f"http://127.0.0.1:{visitor.port}"
    assert visitor.post("/component_server/", call, Origin=origin).status == 200
    answer = visitor.ask("GET", "/", Origin="https://evil.example")
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evil.example", 421),
        ("localhost.evil.example:7860", 421),
        ("localhost:9999", 200),  # a tunnel
        ("192.168.0.7:7860", 200),
        ("[::1]:7860", 200),
        ("", 400),
        ("a b", 400),
        ("x/../y", 400),
        ("127.0.0.1@evil.example", 400),
    ],
)
def test_a_name_that_the_owner_did_not_give_is_refused(visitor: Visitor, host: str, status: int) -> None:
    """A page of that name could point it here and read what it likes."""
    assert visitor.ask("GET", "/", Host=host).status == status


@pytest.mark.parametrize("packed", ["br", "gzip", "identity"])
def test_the_page_is_the_same_whatever_host_is_named(visitor: Visitor, packed: str) -> None:
    """Gradio renders its address into it; to render and hash it anew for each name would stop everybody else."""
    hosts = [{"Host": f"10.0.0.{number}"} for number in range(3)]
    hosts.append({"X_Forwarded_Host": "evil.example", "X_Forwarded_Proto": "https", "X_Forwarded_For": "9.9.9.9"})
    answers = [visitor.ask("GET", "/", Accept_Encoding=packed, **host) for host in hosts]
    assert {answer.status for answer in answers} == {200}
    assert len({(answer.text, answer.headers["content-security-policy"]) for answer in answers}) == 1
    assert answers[0].headers.get("content-encoding", "identity") == packed
    assert visitor.read()["root"] == "." and "page.invalid" not in visitor.ask("GET", "/").text


def test_browsers_are_told_to_run_only_our_scripts(visitor: Visitor) -> None:
    page = visitor.ask("GET", "/")
    rules = dict(rule.strip().split(" ", 1) for rule in page.headers["content-security-policy"].split(";"))
    assert page.headers["cache-control"] == "no-store"
    assert rules["default-src"] == rules["connect-src"] == "'self'" and rules["object-src"] == "'none'"
    assert "'unsafe-inline'" not in rules["script-src"] and "http" not in page.headers["content-security-policy"]
    assert "frame-ancestors" not in rules and "x-frame-options" not in page.headers  # Spaces frame it
    assert visitor.ask("GET", "/nothing").headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(("offered", "packed"), [("gzip, deflate, br", "gzip"), ("gzip", "gzip"), ("identity", None)])
def test_our_own_files_come_packed_and_are_kept_for_good(visitor: Visitor, offered: str, packed: str | None) -> None:
    """Charts' library alone is 4.6 MB: to unpack it for each who asks would stop everybody else."""
    path = re.findall(r"specscope/plotly\?[0-9a-f]+", visitor.read()["head"])[0]
    answer = visitor.ask("GET", f"/{path}", Accept_Encoding=offered)
    assert answer.status == 200 and answer.headers.get("content-encoding") == packed
    assert "immutable" in answer.headers["cache-control"] and answer.headers["vary"] == "Accept-Encoding"
    assert answer.headers["content-type"].startswith("text/javascript")


def test_unread_answers_take_little_memory(page: Page, visitor: Visitor) -> None:
    """Sixty clients who asked for the charts' library, unpacked, took 150 MB for as long as they liked."""
    path = re.findall(r"specscope/plotly\?[0-9a-f]+", visitor.read()["head"])[0]
    assert len(visitor.ask("GET", f"/{path}").text) > 4_000_000
    before = page.megabytes
    with contextlib.ExitStack() as unread:
        for _ in range(60):
            line = unread.enter_context(socket.create_connection(("127.0.0.1", page.port), 30))
            line.sendall(f"GET /{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert line.recv(15) == b"HTTP/1.1 200 OK"
        assert page.megabytes - before < 10


def test_a_copy_that_a_browser_has_is_not_sent_again(visitor: Visitor) -> None:
    path = re.findall(r"\./(assets/[^\"]+)", visitor.ask("GET", "/").text)[0]
    first = visitor.ask("GET", f"/{path}")
    assert "immutable" in first.headers["cache-control"]
    again = visitor.ask("GET", f"/{path}", If_None_Match=first.headers["etag"])
    assert (again.status, again.text) == (304, "")
    head = visitor.ask("HEAD", "/")
    assert head.status == 200 and head.text == "" and int(head.headers["content-length"]) > 10_000


def events(visitor: Visitor) -> list[dict[str, Any]]:
    return [each for each in visitor.read()["dependencies"] if each["backend_fn"]]


@pytest.mark.parametrize(
    "change",
    [
        {"fn_index": 99_999},
        {"fn_index": -1},
        {"fn_index": "0"},
        {"fn_index": True},
        {"fn_index": None},
        {"data": None},
        {"data": [1, 2, 3, 4, 5, 6, 7, 8]},
        {"data": {"path": "https://example.org/x.png"}},
        {"session_hash": None},
        {"session_hash": ""},
        {"session_hash": "a" * 65},
        {"session_hash": "a\nb"},
        {"session_hash": 5},
    ],
)
def test_an_event_of_another_shape_is_refused(visitor: Visitor, change: dict[str, Any]) -> None:
    event = visitor.event(events(visitor)[0]["id"], [])
    assert visitor.post("/run/predict", event).status == 200
    assert visitor.post("/run/predict", event | change).status == 422
    assert visitor.post("/queue/join", event).status == 422  # it is not of those that decode


@pytest.mark.parametrize("body", [b"", b"[]", b"nonsense", b"\xff\xfe", b"[" * 100_000, b'{"a":NaN}', b"1" * 5_000])
def test_what_is_no_json_object_is_refused(visitor: Visitor, body: bytes) -> None:
    for path in ("/run/predict", "/queue/join", "/component_server/"):
        assert visitor.post(path, body).status in (400, 422)


def test_half_a_character_is_refused_wherever_it_is(visitor: Visitor) -> None:
    """It can be neither encoded nor tokenised; a whole character outside the first plane comes as two halves."""
    event = visitor.event(events(visitor)[0]["id"], [])
    call = {
        "data": "\U0001f600",
        "fn_name": "run_lives",
        "component_id": visitor.component("viewer"),
        "session_hash": "a",
    }
    assert visitor.post("/component_server/", call).status == 200
    halves = {"data": ["\ud800"]}, {"data": [["a", "\udfff"]]}, {"event_data": {"address": "\ud83d"}}, {"\udc00": 1}
    for change in halves:
        for path, body in (("/run/predict", event), ("/queue/join", event), ("/component_server/", call)):
            answer = visitor.post(path, body | change)
            assert answer.status == 422 and "half of a character" in answer.json()["detail"]
    raw = json.dumps(call | {"data": "?"}).encode().replace(b"?", b"\xed\xa0\x80")
    assert visitor.post("/component_server/", raw).status == 400


def test_keys_that_the_page_does_not_send_reach_nobody(visitor: Visitor) -> None:
    """They change how Gradio handles an event: batches, tokens, events of others."""
    more = {"batched": True, "oauth_token": "x", "simple_format": True, "event_id": "x", "trigger_id": 10**30}
    event = visitor.event(events(visitor)[0]["id"], [], **more)
    assert visitor.post("/run/predict", event).status == 200
    assert visitor.post("/run/predict", event | {"event_data": [1], "trigger_id": "0"}).status == 200


def test_bodies_are_bounded(visitor: Visitor) -> None:
    """Nothing but a file may be large, and a large one is one text."""
    event = visitor.event(events(visitor)[0]["id"], [])
    large = json.dumps(event | {"more": "x" * LIMITS.body_bytes}).encode()
    answer = visitor.post("/run/predict", large)
    assert (answer.status, answer.json()) == (413, {"detail": "The request is larger than 256 KB: send less."})
    call = {"fn_name": "run_lives", "component_id": visitor.component("viewer"), "session_hash": "a"}
    for data in (["x" * 300_000], "x" * 300_000, [1] * 150_000):
        answer = visitor.post("/component_server/", call | {"data": data})
        assert answer.status == 413 and "Only a file may be larger than 256 KB" in answer.text
    got = {"Content_Type": "application/json", "Content_Length": "10" * 20}
    huge = visitor.ask("POST", f"{API}/component_server/", b"{}", **got)
    assert huge.status in (400, 413) and "Traceback" not in huge.text


def test_a_large_body_without_a_length_is_cut_off(visitor: Visitor) -> None:
    line = visitor.connect()
    line.putrequest("POST", f"{API}/run/predict")
    for name, value in (("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")):
        line.putheader(name, value)
    line.endheaders()
    piece, status = b" " * 65_536, 0
    try:
        for _ in range(64):
            line.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        status = line.getresponse().status
    except ConnectionError:  # it was closed in the middle
        status = 413
    line.close()
    assert status == 413


def test_functions_are_called_by_their_names_only(visitor: Visitor) -> None:
    component = visitor.component("viewer")
    call = {"data": "x", "fn_name": "run_lives", "component_id": component, "session_hash": "a"}
    assert visitor.post("/component_server/", call).json() == {"lives": False}
    without_run = {name: value for name, value in call.items() if name != "data"}  # undefined in a script
    assert visitor.post("/component_server/", without_run).json() == {"lives": False}
    for change in (
        {"fn_name": "__init__"},
        {"fn_name": "postprocess"},
        {"fn_name": None},
        {"component_id": 0},
        {"component_id": "x"},
        {"component_id": None},
        {"session_hash": "x" * 65},
        {"data": {"path": "/etc/passwd"}},
        {"data": [[1]]},
    ):
        assert visitor.post("/component_server/", call | change).status == 422


def test_a_file_is_still_read(visitor: Visitor) -> None:
    answer = visitor.call("open_trace", base64.b64encode(LOOKAHEAD.read_bytes()).decode()).json()
    assert '"kind":"play"' in answer["lines"]
    noise = base64.b64encode(bytes(range(256)) * 8_000).decode()
    assert "not a trace that can be shown" in visitor.call("open_trace", noise).json()["fault"]


def test_http_10_and_keep_alive_are_spoken(page: Page) -> None:
    line = http.client.HTTPConnection("127.0.0.1", page.port, timeout=30)
    for _ in range(3):
        line.request("GET", "/theme.css")
        answer = line.getresponse()
        assert answer.status == 200 and answer.read()
    line.close()
