"""Reads the bodies of calls into orders. Unknown fields are refused, so that none is ignored silently."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from decoding.errors import ParamError
from decoding.params import shown
from decoding.request import check_stops

from ..controls import Order, order
from ..models.entry import CatalogEntry
from ..server.limits import LIMITS
from ..server.middleware.bodies import Json
from ..server.middleware.errors import RequestError

METHOD = "prompt_lookup"  # unless another one is named: lossless, and every model can run it
NEW_TOKENS = 128  # unless another number is named
_SAMPLING = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed")
_OURS = ("model", "method", "params", "stop", "stream")
_DECODE = ("prompt", *_OURS, "sampling", "max_new_tokens", "raw", "reference")
_CHAT = (
    "messages",
    *_OURS,
    *_SAMPLING,
    "max_tokens",
    "max_completion_tokens",
    "stream_options",
    "return_token_ids",
    "n",
    "user",
)


@dataclass(frozen=True, slots=True)
class Call:
    """A checked call."""

    order: Order
    stop: tuple[str, ...] = ()
    stream: bool = False
    usage: bool = False  # whether a stream ends with the counts of tokens
    ids: bool = False  # whether the answer lists token ids


def decode_call(catalog: Mapping[str, CatalogEntry], default_model: str, body: object) -> Call:
    """Check a call of `decode`."""
    fields = _fields(body, _DECODE)
    return _call(
        catalog,
        default_model,
        fields,
        prompt=fields.get("prompt", ""),
        sampling=fields.get("sampling"),
        max_new_tokens=fields.get("max_new_tokens", NEW_TOKENS),
        raw=_flag(fields, "raw"),
        reference=_text(fields, "reference"),
    )


def chat_call(catalog: Mapping[str, CatalogEntry], default_model: str, body: object) -> Call:
    """Check a call of OpenAI's chat completions, with the fields that vLLM adds and ours."""
    fields = _fields(body, _CHAT)
    if fields.get("n", 1) != 1 or isinstance(fields.get("n"), bool):
        raise ParamError("n must be 1: ask again for another answer")
    _text(fields, "user")  # of no use here
    options = fields.get("stream_options", {})
    if not isinstance(options, dict) or set(options) - {"include_usage"}:
        raise ParamError("stream_options has one field, include_usage")
    return _call(
        catalog,
        default_model,
        fields,
        prompt=_messages(fields.get("messages")),
        sampling={name: fields[name] for name in _SAMPLING if name in fields},
        max_new_tokens=_length(fields),
        usage=_flag(options, "include_usage"),
        ids=_flag(fields, "return_token_ids"),
    )


def _call(
    catalog: Mapping[str, CatalogEntry],
    default_model: str,
    fields: Json,
    *,
    usage: bool = False,
    ids: bool = False,
    **asked: Any,
) -> Call:
    model = fields.get("model", default_model)
    if not isinstance(model, str) or model not in catalog:
        raise no_model(catalog, model)
    length = asked["max_new_tokens"]
    if isinstance(length, bool) or not isinstance(length, int):
        raise ParamError(f"the number of new tokens must be a whole number, not {shown(length)}")
    checked = order(catalog, model=model, method=fields.get("method", METHOD), params=fields.get("params"), **asked)
    return Call(checked, check_stops(fields.get("stop", ())), _flag(fields, "stream"), usage, ids)


def no_model(catalog: Mapping[str, CatalogEntry], name: object) -> RequestError:
    """Return the error for a model that this server does not have."""
    return RequestError(404, f"there is no model {shown(name)}; choose one of {', '.join(catalog)}")


def _fields(body: object, names: tuple[str, ...]) -> Json:
    """Return the fields of a body that are not null; raises ParamError for one that is not listed."""
    if not isinstance(body, dict):
        raise ParamError("the body must be a JSON object")
    if unknown := sorted(set(body) - set(names)):
        raise ParamError(f"there is no field {shown(unknown[0])}; the fields are {', '.join(names)}")
    return {name: value for name, value in body.items() if value is not None}


def _flag(fields: Json, name: str) -> bool:
    value = fields.get(name, False)
    if not isinstance(value, bool):
        raise ParamError(f"{name} must be true or false, not {shown(value)}")
    return value


def _text(fields: Json, name: str) -> str:
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise ParamError(f"{name} must be a text, not {shown(value)}")
    return value


def _length(fields: Json) -> object:
    """Return the limit of new tokens, which has two names."""
    given = [fields[name] for name in ("max_completion_tokens", "max_tokens") if name in fields]
    if len(given) == 2 and given[0] != given[1]:
        raise ParamError("max_tokens and max_completion_tokens differ: leave one out")
    return given[0] if given else NEW_TOKENS


def _messages(messages: object) -> list[Any]:
    """Return the messages with texts for contents that are lists of parts."""
    if not isinstance(messages, list):
        raise ParamError("messages must be a list")
    if len(messages) > LIMITS.turns:
        raise ParamError(f"the conversation has more than {LIMITS.turns} messages: begin a new one")
    for message in messages:
        if isinstance(message, dict) and (unknown := sorted(set(message) - {"role", "content"})):
            raise ParamError(f"a message has a role and a content, no {shown(unknown[0])}")
    return [{**each, "content": _content(each.get("content"))} if isinstance(each, dict) else each for each in messages]


def _content(content: object) -> object:
    if not isinstance(content, list):
        return content
    if not all(isinstance(each, dict) and set(each) == {"type", "text"} for each in content):
        raise ParamError("a part of a content must be a text: this server reads nothing else")
    if not all(each["type"] == "text" and isinstance(each["text"], str) for each in content):
        raise ParamError("a part of a content must be a text: this server reads nothing else")
    return "".join(each["text"] for each in content)
