"""The bodies of requests: bounded in size and time, and of exactly the shape that the page sends.

Gradio would take more: files by address, which it fetches; nested values, which it searches for such files; keys that
change how an event is handled. What passes here is written anew from what was checked.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import gradio as gr
from starlette.types import Message, Receive

from ..limits import LIMITS
from .refused import RefusedError
from .routes import SESSION

_SESSION = re.compile(SESSION)
_MISFIT = "The request does not fit this page: load it anew."
_STRUCTURE = 64  # commas and brackets around a file: it is one text
_ITEMS = 256  # of a list inside an event's values: methods of a race are one
_FILE_CALL = "open_trace"
Told = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """What an event of the page is sent with."""

    inputs: int
    targets: frozenset[int]


@dataclass(frozen=True, slots=True)
class Shapes:
    """Everything that the page can send."""

    quick: Mapping[int, Event]
    runs: Mapping[int, Event]
    calls: Mapping[int, frozenset[str]]  # by component: its functions

    @classmethod
    def of(cls, page: gr.Blocks) -> Shapes:
        """As the page is built."""
        events = {
            number: Event(len(event.inputs), frozenset(target for target, _ in event.targets if target is not None))
            for number, event in page.fns.items()
            if event.fn is not None and all(name != "unload" for _, name in event.targets)  # that one Gradio starts
        }
        calls = {number: frozenset(_names(block)) for number, block in page.blocks.items()}
        return cls(
            {number: event for number, event in events.items() if not page.fns[number].queue},
            {number: event for number, event in events.items() if page.fns[number].queue},
            {number: names for number, names in calls.items() if names},
        )


async def read(receive: Receive, length: str | None, most: int, seconds: float) -> bytes:
    """A whole body; raises RefusedError where it is too large or too slow."""
    large = RefusedError(413, f"The request is larger than {_size(most)}: send less.")
    if length is not None and (not length.isdigit() or int(length[:20]) > most):
        raise large
    pieces, size = list[bytes](), 0
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise RefusedError(400, "The request was broken off.")
                pieces.append(message.get("body", b""))
                size += len(pieces[-1])
                if size > most:  # it came in pieces, without a length
                    raise large
                if not message.get("more_body", False):
                    return b"".join(pieces)
    except TimeoutError:
        raise RefusedError(408, "The request took too long to arrive: try again.") from None


def replayed(body: bytes) -> Receive:
    """Gives a body that was read already, then nothing more: who waits for a disconnect hears of it from the server."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]
    never = asyncio.Event()

    async def receive() -> Message:
        if not messages:
            await never.wait()
        return messages.pop()

    return receive


def check_event(body: bytes, known: Mapping[int, Event]) -> tuple[bytes, str]:
    """An event, written anew, and the tab that sent it."""
    told = _parse(body)
    number, data = told.get("fn_index"), told.get("data")
    event = known.get(number) if type(number) is int else None
    if event is None or not isinstance(data, list) or len(data) != event.inputs or not all(map(_is_value, data)):
        raise RefusedError(422, _MISFIT)
    session, target = _session(told), told.get("trigger_id")
    clean = {
        "data": data,
        "event_data": _event_data(told.get("event_data")),
        "fn_index": number,
        "trigger_id": target if type(target) is int and target in event.targets else None,
        "session_hash": session,
    }
    return json.dumps(clean).encode(), session


def check_call(body: bytes, calls: Mapping[int, frozenset[str]]) -> tuple[bytes, str]:
    """A call of a function, as it is, and the function's name."""
    if len(body) > LIMITS.body_bytes and sum(map(body.count, (b",", b"[", b"{"))) > _STRUCTURE:
        raise RefusedError(413, f"Only a file may be larger than {_size(LIMITS.body_bytes)}: send less.")
    told = _parse(body)
    component, name, data = told.get("component_id"), told.get("fn_name"), told.get("data")
    if type(component) is not int or not isinstance(name, str) or name not in calls.get(component, ()):
        raise RefusedError(422, _MISFIT)
    _session(told)
    if not _is_value(data):
        raise RefusedError(422, _MISFIT)
    if name != _FILE_CALL and len(body) > LIMITS.body_bytes:
        raise RefusedError(413, f"Only a file may be larger than {_size(LIMITS.body_bytes)}: send less.")
    return body, name


def check_session(session: str | None) -> str:
    """The name that a tab has given itself."""
    if session is None or not _SESSION.fullmatch(session):
        raise RefusedError(422, _MISFIT)
    return session


def _names(block: Any) -> Iterable[str]:
    return (function.__name__ for function in getattr(block, "server_fns", ()))


def _parse(body: bytes) -> Told:
    try:
        told = json.loads(body, parse_constant=_constant)
    except (ValueError, RecursionError):  # no JSON, no text, a number of thousands of digits, or nested too deep
        raise RefusedError(400, "The request is not JSON.") from None
    if not isinstance(told, dict):
        raise RefusedError(422, _MISFIT)
    return told


def _constant(name: str) -> NoReturn:
    raise ValueError(name)


def _session(told: Told) -> str:
    session = told.get("session_hash")
    return check_session(session if isinstance(session, str) else None)


def _event_data(value: object) -> dict[str, str] | None:
    """What an event says of itself: a few texts, or nothing."""
    if not isinstance(value, dict) or len(value) > 4:
        return None
    return {name: text for name, text in value.items() if isinstance(text, str)}


def _is_value(value: object) -> bool:
    """A control's value: no object, in which Gradio would look for files."""
    if isinstance(value, list):
        return len(value) <= _ITEMS and all(map(_is_scalar, value))
    return _is_scalar(value)


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def _size(most: int) -> str:
    return f"{most >> 20} MB" if most >= 2**20 else f"{most >> 10} KB"
