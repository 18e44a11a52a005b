"""Attacks from one address, with a bounded number of requests and time."""

from __future__ import annotations

import base64
import contextlib
import socket
import time
from collections.abc import Callable

from tools.page import API, Visitor

from . import bombs, files, programs, transport
from .attack import Attack
from .queries import hostile_queries


def fetch_and_inject(attack: Attack) -> None:
    """Try to make the server fetch addresses and send its files."""
    paths = [
        "file=https://example.org/x.png",
        "file=/etc/passwd",
        "proxy=https://x.hf.space/",
        "custom_component/1/a/b/c.js",
    ]
    attack.many(400, lambda n: attack.visitor().ask("GET", f"{API}/{paths[n % len(paths)]}").status)


def nested_bodies(attack: Attack) -> None:
    """Send six megabytes of small lists as the value of a control, each from another tab."""
    body = b'{"fn_index":0,"session_hash":"%d","data":[[' + b"[]," * 2_000_000 + b"0]]}"
    attack.many(40, lambda n: attack.visitor().post("/run/predict", body.replace(b"%d", b"%d" % n)).status, 4)


def long_sessions(attack: Attack) -> None:
    """Open tabs with names of five megabytes, and thousands of tabs."""
    names = ["x" * 5_000_000, "x" * 65]
    attack.many(40, lambda n: attack.visitor(names[n % 2]).join().status, 4)
    attack.many(
        2_000,
        lambda n: attack.visitor(f"tab{n}").post("/run/predict", attack.visitor(f"tab{n}").event(0, ["x"])).status,
    )


def files_on_disk(attack: Attack) -> None:
    """Abort uploads and recordings halfway."""
    head = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.webm"\r\n\r\n' + b"A" * 3_000_000

    def broken_off(number: int) -> int:
        path = ("/upload", "/process_recording", "/component_server/")[number % 3]
        line = attack.visitor().connect(10)
        with contextlib.closing(line):
            line.putrequest("POST", API + path)
            line.putheader("Content-Type", "multipart/form-data; boundary=x")
            line.putheader("Content-Length", str(10 * len(head)))
            line.endheaders()
            line.send(head)
            return 0

    attack.many(30, broken_off, 4)


def trace_bombs(attack: Attack) -> None:
    """Open small files that grow: lists in an unknown panel, and a million nodes."""
    files = [bombs.of_lists(), bombs.of_nodes()]
    attack.many(12, lambda n: attack.visitor().call("open_trace", files[n % 2]).status, 4)


def largest_files(attack: Attack) -> None:
    """Repeatedly open and export the largest traces that the page reads."""
    file = bombs.of_nodes(256, 256)
    attack.many(24, lambda n: attack.export(file, ("html", "perfetto", "csv")[n % 3]), 6)


def unread_races(attack: Attack) -> None:
    """Start races that nobody reads."""
    attack.many(20, lambda n: attack.visitor().join("race-go").status)


def tiny_traces(attack: Attack) -> None:
    """Open more files than the server stores, so that those of others might be evicted."""
    text = base64.b64encode(bombs.GOLDEN.read_bytes()).decode()
    attack.many(300, lambda n: attack.visitor().call("open_trace", text).status, 4)


def cancelled_runs(attack: Attack) -> None:
    """Start heavy runs, and close their tabs at once."""

    def leave(number: int) -> int:
        tab = attack.visitor()
        joined = tab.join(run_length=256, run_method="ngrammys")
        with contextlib.closing(tab.connect(10)) as line:
            line.request("GET", f"{API}/queue/data?session_hash={tab.session}")
            line.getresponse().read(2_000)
        return joined.status

    attack.many(100, leave, 4)


def mixed_nonsense(attack: Attack) -> None:
    """Send requests of every wrong kind."""
    kinds: list[Callable[[Visitor, int], int]] = [
        lambda tab, n: tab.ask("GET", f"/{n}%0aforged%0d").status,
        lambda tab, n: tab.ask("GET", f"{API}/queue/data?session_hash=no{n}").status,
        lambda tab, n: tab.post("/run/predict", tab.event(n % 40, [{"path": "https://example.org"}] * (n % 4))).status,
        lambda tab, n: tab.post("/run/predict", tab.event(n % 40, [["x"], "\ud800", -1e300, None][: n % 5])).status,
        lambda tab, n: tab.post("/queue/join", tab.event(n % 40, ["{}", "[" * 5_000][n % 2 :])).status,
        lambda tab, n: tab.call(["run_step", "run_export", "open_recording", "nothing"][n % 4], [n, "x"]).status,
        lambda tab, n: tab.post("/component_server/", b'{"data":' + b"[" * 50_000).status,
        lambda tab, n: tab.ask("GET", "/", Host=f"evil{n}.example").status,
        lambda tab, n: tab.ask("PUT", "/", b"x" * 1_000).status,
        lambda tab, n: tab.post("/run/predict", b"\xff" * 1_000, Origin="https://evil.example").status,
    ]
    attack.many(4_000, lambda n: kinds[n % len(kinds)](attack.visitor(), n))


def held_connections(attack: Attack) -> None:
    """Open connections that send nothing, or only the beginning of a request."""
    connections = list[socket.socket]()
    with contextlib.suppress(OSError):
        for number in range(round(3_000 * attack.scale)):
            line = attack.connect()
            connections.append(line)
            with contextlib.suppress(OSError):
                line.sendall(b"GET / HTTP/1.1\r\nX: "[: number % 20])
    time.sleep(3.0)
    for line in connections:
        line.close()


def slow_bodies(attack: Attack) -> None:
    """Send bodies one byte at a time."""

    def slow(number: int) -> int:
        with contextlib.closing(attack.visitor().connect(4)) as line:
            line.putrequest("POST", f"{API}/component_server/")
            line.putheader("Content-Type", "application/json")
            line.putheader("Content-Length", "5000000")
            line.endheaders()
            for _ in range(6):
                line.send(b" ")
                time.sleep(0.5)
            return 0

    attack.many(60, slow, 60)


ATTACKS: tuple[Callable[[Attack], None], ...] = (
    fetch_and_inject,
    nested_bodies,
    long_sessions,
    files_on_disk,
    trace_bombs,
    largest_files,
    unread_races,
    tiny_traces,
    cancelled_runs,
    mixed_nonsense,
    held_connections,
    slow_bodies,
    hostile_queries,
    transport.unread_answers,
    transport.failing_events,
    transport.impossible_paths,
    transport.new_hosts,
    transport.sessions_of_others,
    files.contradicting_folders,
    files.half_characters,
    files.brought_models,
    *programs.ATTACKS,
)
