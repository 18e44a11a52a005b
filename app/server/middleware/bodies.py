"""Checks request bodies: limited in size and time, and of exactly the shape that the page sends.

Gradio accepts more: files by URL, which it downloads; nested values, which it searches for such files; keys that change
how an event is handled. A checked event is serialised again from the checked fields alone.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import gradio as gr
from starlette.types import Message, Receive

from ..control_values import MOST_ITEMS, ControlCheck, check_of
from ..limits import LIMITS
from .errors import RequestError
from .routes import SESSION

_SESSION = re.compile(SESSION)
_MISFIT = "The request does not match this page: reload it."
_HALF = "The text holds half of a character, such as an emoji that was cut in two: remove it."
_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # of whole characters too
_STRUCTURE = 64  # commas and brackets around an uploaded trace, which is one string
_FILE_CALLS = frozenset({"open_trace", "debug_bring"})
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """The signature of an event."""

    inputs: Sequence[ControlCheck]
    targets: frozenset[int]
    has_address: bool = False  # its function reads an address from the event's data


@dataclass(frozen=True, slots=True)
class Shapes:
    """The events and server functions of the page."""

    quick: Mapping[int, Event]
    runs: Mapping[int, Event]
    calls: Mapping[int, frozenset[str]]  # by component: its functions

    @classmethod
    def of(cls, page: gr.Blocks) -> Shapes:
        """Read from the built page."""
        events = {
            number: Event(
                tuple(map(check_of, event.inputs)),
                frozenset(target for target, _ in event.targets if target is not None),
                event.collects_event_data,
            )
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
    """Read a whole body; raises RequestError if it is too large or too slow."""
    large = RequestError(413, f"The request is larger than {_size(most)}: send less.")
    if length is not None and (not length.isdigit() or int(length[:20]) > most):
        raise large
    pieces, size = list[bytes](), 0
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise RequestError(400, "The request was broken off.")
                pieces.append(message.get("body", b""))
                size += len(pieces[-1])
                if size > most:  # it came in pieces, without a length
                    raise large
                if not message.get("more_body", False):
                    return b"".join(pieces)
    except TimeoutError:
        raise RequestError(408, "The request took too long to arrive: try again.") from None


def replayed(body: bytes) -> Receive:
    """Return an ASGI receive function for a body that was read already."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]
    never = asyncio.Event()

    async def receive() -> Message:
        if not messages:
            await never.wait()
        return messages.pop()

    return receive


def check_event(body: bytes, events: Mapping[int, Event], derive: Callable[[str], str]) -> tuple[bytes, str]:
    """Check an event; returns its canonical body and its session, whose id is derived from the browser's."""
    parsed = _parse(body)
    number, data = parsed.get("fn_index"), parsed.get("data")
    event = events.get(number) if type(number) is int else None
    if event is None or not isinstance(data, list) or len(data) != len(event.inputs):
        raise RequestError(422, _MISFIT)
    if not all(fits(value) for fits, value in zip(event.inputs, data, strict=True)):
        raise RequestError(422, _MISFIT)
    session, target = derive(_session(parsed)), parsed.get("trigger_id")
    clean = {
        "data": data,
        "event_data": _event_data(parsed.get("event_data")) if event.has_address else None,
        "fn_index": number,
        "trigger_id": target if type(target) is int and target in event.targets else None,
        "session_hash": session,
    }
    return json.dumps(clean).encode(), session


def check_call(body: bytes, calls: Mapping[int, frozenset[str]]) -> bytes:
    """Check a call of a server function; returns a body that Gradio reads."""
    too_large = RequestError(413, f"Only a file may be larger than {_size(LIMITS.body_bytes)}: send less.")
    if len(body) > LIMITS.body_bytes and sum(map(body.count, (b",", b"[", b"{"))) > _STRUCTURE:
        raise too_large
    parsed = _parse(body)
    component, name, data = parsed.get("component_id"), parsed.get("fn_name"), parsed.get("data")
    if type(component) is not int or not isinstance(name, str) or name not in calls.get(component, ()):
        raise RequestError(422, _MISFIT)
    _session(parsed)
    if not _is_value(data):
        raise RequestError(422, _MISFIT)
    if name not in _FILE_CALLS and len(body) > LIMITS.body_bytes:
        raise too_large
    # JSON leaves out undefined values, such as a run whose first line has not arrived; Gradio would refuse that.
    return body if "data" in parsed else json.dumps({**parsed, "data": None}).encode()


def check_session(session: str | None) -> str:
    """Check a session's id, which the browser made up."""
    if session is None or not _SESSION.fullmatch(session):
        raise RequestError(422, _MISFIT)
    return session


def _names(block: Any) -> Iterable[str]:
    return (function.__name__ for function in getattr(block, "server_fns", ()))


def parse_json(body: bytes) -> Any:
    """Parse a body; raises RequestError for invalid JSON, for NaN, and for lone surrogates."""
    try:
        text = body.decode()  # json.loads accepts lone surrogates
        parsed = json.loads(text, parse_constant=_constant)
    except (ValueError, RecursionError):  # no JSON, no text, a number of thousands of digits, or nested too deep
        raise RequestError(400, "The request is not JSON.") from None
    if _ESCAPED_HALF.search(text):
        try:
            json.dumps(parsed, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise RequestError(422, _HALF) from None
    return parsed


def _parse(body: bytes) -> Json:
    parsed = parse_json(body)
    if not isinstance(parsed, dict):
        raise RequestError(422, _MISFIT)
    return parsed


def _constant(name: str) -> NoReturn:
    raise ValueError(name)


def _session(parsed: Json) -> str:
    session = parsed.get("session_hash")
    return check_session(session if isinstance(session, str) else None)


def _event_data(value: object) -> dict[str, str]:
    """Check the event's own data: the address of a run, which the page's scripts send with it."""
    address = value.get("address", "") if isinstance(value, dict) else None
    if not isinstance(address, str):
        raise RequestError(422, _MISFIT)
    return {"address": address}


def _is_value(value: object) -> bool:
    """Return True if a call may send this. Objects are rejected: Gradio would search them for files."""
    if isinstance(value, list):
        return len(value) <= MOST_ITEMS and all(map(_is_scalar, value))
    return _is_scalar(value)


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def _size(most: int) -> str:
    return f"{most >> 20} MB" if most >= 2**20 else f"{most >> 10} KB"
