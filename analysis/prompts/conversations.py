"""Parses conversations in JSON lines, in all common formats."""

from __future__ import annotations

import json
from typing import Any

from decoding.errors import ParamError

FORMS = '"messages", "conversations", "turns", "prompt" or "text"'
_CHATS = ("messages", "conversations", "conversation")
_ANSWERS = ("answer", "completion", "response", "output")
_ROLES = {"human": "user", "gpt": "assistant", "chatgpt": "assistant"}  # what collections call them


def read_object(line: bytes, wanted: str) -> dict[str, Any]:
    """Parse the JSON object of a line; an error's sentence names its number and what is `wanted`."""
    try:
        data = json.loads(line)
    except json.JSONDecodeError as error:
        raise ParamError(f"not JSON at character {error.pos + 1}") from None
    except (ValueError, RecursionError):
        raise ParamError("not JSON that can be read as UTF-8") from None
    if not isinstance(data, dict):
        raise ParamError(f"must be a JSON object with {wanted}")
    return data


def read_line(line: bytes) -> str | list[dict[str, str]]:
    """Read a plain text, or the messages of a conversation; an error's sentence names the line's number.

    Every message has a role and a content, as chat templates want them; its role may be one of a collection's own.
    """
    data = read_object(line, FORMS)
    given = {name: value for name, value in data.items() if value is not None}
    for key in _CHATS:
        if key in given:
            return _chat(key, given[key])
    if "turns" in given:
        return _turns(given["turns"], given.get("reference") or [])
    answer = next((name for name in _ANSWERS if name in given), None)
    if "prompt" in given and answer is not None:
        return [_message("user", "prompt", given["prompt"]), _message("assistant", answer, given[answer])]
    if "prompt" in given and "text" not in given:  # with both, the text is what was written to the prompt
        return [_message("user", "prompt", given["prompt"])]
    if "text" in given:
        return _text("text", given["text"])
    raise ParamError(f"holds none of {FORMS}")


def first_answers(references: list[Any]) -> list[Any]:
    """Return one reference a turn: of several right answers, as in Spec-Bench's rag, the first."""
    return [entry[0] if isinstance(entry, list) and entry else entry for entry in references]


def _chat(key: str, messages: Any) -> list[dict[str, str]]:
    """Read messages with role and content, or from and value; bare texts alternate between user and assistant."""
    if not isinstance(messages, list):
        raise ParamError(f"{key} must be a list of messages")
    chat: list[dict[str, str]] = []
    for message in messages:
        if isinstance(message, str):
            message = {"role": ("user", "assistant")[len(chat) % 2], "content": message}
        fields = message if isinstance(message, dict) else {}
        role, content = (_first(fields, *names) for names in (("role", "from"), ("content", "value")))
        if not isinstance(role, str):
            raise ParamError(f"every message of {key} must have a role and a content")
        chat.append(_message(_ROLES.get(role, role), f"the content of a message of {key}", content))
    return chat


def _turns(turns: Any, references: Any) -> list[dict[str, str]]:
    """Read questions in Spec-Bench's form; references are answers where there is one for every question."""
    if isinstance(turns, list) and any(isinstance(turn, dict) for turn in turns):
        return _chat("turns", turns)
    if not isinstance(turns, list) or not isinstance(references, list):
        raise ParamError("turns and reference must be lists of texts")
    answers = first_answers(references)
    chat: list[dict[str, str]] = []
    for place, turn in enumerate(turns):
        chat.append(_message("user", "every turn", turn))
        if len(answers) == len(turns):
            chat.append(_message("assistant", "every reference", answers[place]))
    return chat


def _first(fields: dict[str, Any], *names: str) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _message(role: str, what: str, content: Any) -> dict[str, str]:
    return {"role": role, "content": _text(what, content)}


def _text(what: str, value: Any) -> str:
    """Return a text that UTF-8 can hold: JSON may spell lone surrogates."""
    if not isinstance(value, str):
        raise ParamError(f"{what} must be a text")
    return value.encode(errors="replace").decode()
