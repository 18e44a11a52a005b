"""Attacks on the transport: unread answers, the log, paths, host names, sessions of others."""

from __future__ import annotations

import concurrent.futures
import contextlib
import re
import select
import socket
import time

from tools.page import API, Visitor

from .attack import Attack

_UNREAD, _TRICKLING = 300, 16  # clients that read nothing of an answer, and a byte a second
_OPEN = 45.0  # seconds


def unread_answers(attack: Attack) -> None:
    """Request the charts' library, uncompressed, and do not read it; a connection closed by the server counts as 0."""
    path = re.findall(r"specscope/plotly\?[0-9a-f]+", attack.visitor().read()["head"])[0]
    request = f"GET /{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    closed = select.poll()
    with contextlib.ExitStack() as opened:
        clients = list[socket.socket]()
        for _ in range(max(4, round((_UNREAD + _TRICKLING) * attack.scale))):
            clients.append(opened.enter_context(attack.connect()))
            clients[-1].sendall(request)
            closed.register(clients[-1], 0)
        until = time.monotonic() + _OPEN * attack.scale
        while time.monotonic() < until:
            for client in clients[:_TRICKLING]:
                with contextlib.suppress(OSError):
                    client.recv(1)
            time.sleep(min(1.0, _OPEN * attack.scale))
        ended = len(closed.poll(0))
        attack.statuses.update([0] * ended + [200] * (len(clients) - ended))


def failing_events(attack: Attack) -> None:
    """Send events without the address that their functions read, and with a lone surrogate."""
    events = [each["id"] for each in attack.visitor().read()["dependencies"] if each["collects_event_data"]]

    def fail(number: int) -> int:
        tab = attack.visitor()
        data: object = (None, {"address": "\ud800"}, {"address": "?run=\x00&step=x"}, [])[number % 4]
        path = "/queue/join" if number % 2 else "/run/predict"
        return tab.post(path, tab.event(events[number % len(events)], [], event_data=data)).status

    attack.many(1_000, fail)


def impossible_paths(attack: Attack) -> None:
    """Request names that no file can have."""
    names = ["a" * 256, "a" * 4_000, "a/" * 2_000 + "a", "%00", "%ed%a0%80", "%ff", "..%2f..%2fetc", "a" * 99 + ".js/x"]
    folders = ["/assets/", "/static/img/", "/static/", "/specscope/", f"{API}/heartbeat/"]
    attack.many(2_000, lambda n: attack.visitor().ask("GET", folders[n % len(folders)] + names[n % len(names)]).status)


def new_hosts(attack: Attack) -> None:
    """Request the page, each time under another host name."""
    attack.many(2_000, lambda n: attack.visitor().ask("GET", "/", Host=f"10.9.{n >> 8 & 255}.{n & 255}").status)


def sessions_of_others(attack: Attack) -> None:
    """Try to read, start and stop the runs of another address's tab, whose id is known; raises if one succeeds."""

    def run(number: int) -> int:
        owner = attack.page.visitor("127.0.0.3")
        stranger = attack.visitor(owner.session)
        with concurrent.futures.ThreadPoolExecutor(1) as owners_thread:
            lines = owners_thread.submit(owner.run, 170, run_length=64)
            status = _meddle(stranger)
            if '"kind":"check"' not in lines.result():
                raise RuntimeError("another visitor's run was stopped")
        return status

    attack.many(40, run, 4)


def _meddle(stranger: Visitor) -> int:
    ends = [each["id"] for each in stranger.config["dependencies"] if each["api_name"] in ("end", "end_conversation")]
    status = 404
    for number in [*ends, *ends]:
        stranger.post("/run/predict", stranger.event(number, []))
        status = stranger.ask("GET", f"{API}/queue/data?session_hash={stranger.session}").status
    if status == 200:
        raise RuntimeError("another visitor's events were read")
    return status
