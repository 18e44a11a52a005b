"""Attacks on the API: streams that are not read or abandoned, large bodies, keys, and sessions of MCP."""

from __future__ import annotations

import contextlib
import json
import time

from .attack import KEY, Attack

_BEARER = f"Bearer {KEY}"
_LONG = {"prompt": "The tide", "method": "ngrammys", "max_new_tokens": 256, "stream": True}


def unread_streams(attack: Attack) -> None:
    """Start streams, and read nothing for a while."""
    body = json.dumps(_LONG).encode()
    head = f"Host: localhost\r\nContent-Type: application/json\r\nAuthorization: {_BEARER}\r\n"
    asked = f"POST /v1/decode HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    with contextlib.ExitStack() as opened:
        for _ in range(max(4, round(200 * attack.scale))):
            client = opened.enter_context(attack.connect())
            client.sendall(asked)
        time.sleep(20.0 * min(1.0, 4 * attack.scale))
    attack.statuses.update([0])


def left_streams(attack: Attack) -> None:
    """Start streams, and disconnect after the first piece."""
    attack.many(300, lambda n: attack.visitor().leave("/v1/decode", _LONG, Authorization=_BEARER), 6)


def large_calls(attack: Attack) -> None:
    """Send bodies of megabytes to every path that takes one."""
    body = b'{"prompt":"' + b"x" * 6_000_000 + b'"}'
    paths = ("/v1/decode", "/v1/chat/completions", "/v1/gradio/queue/data", "/mcp")
    attack.many(80, lambda n: attack.visitor().program(paths[n % 4], body, Authorization=_BEARER).status, 4)


def many_keys(attack: Attack) -> None:
    """Call with thousands of keys that the server does not have."""
    attack.many(4_000, lambda n: attack.visitor().ask("GET", "/v1/models", Authorization=f"Bearer {n:030}").status)


def open_sessions(attack: Attack) -> None:
    """Open thousands of MCP sessions, and close none."""
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}
    attack.many(3_000, lambda n: attack.visitor().program("/mcp", asked, Authorization=_BEARER).status)


def unfilled_events(attack: Attack) -> None:
    """Open streams of gradio_client that never get their values, and send values to events of others."""

    def ask(number: int) -> int:
        with contextlib.closing(attack.visitor().connect(20)) as line:
            line.request("GET", "/v1/gradio/queue/join", headers={"Authorization": _BEARER})
            answer = line.getresponse()
            answer.read1(100)
            body = {"event_id": f"guess{number}", "data": ["x"]}
            return attack.visitor().program("/v1/gradio/queue/data", body, Authorization=_BEARER).status

    attack.many(1_000, ask, 16)


ATTACKS = (unread_streams, left_streams, large_calls, many_keys, open_sessions, unfilled_events)
