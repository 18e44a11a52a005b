"""Checks the settings that a visitor sends. All functions take untrusted JSON values or strings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from decoding.codec import Message
from decoding.errors import ParamError
from decoding.methods import METHODS, Method, find_method
from decoding.params import Params, check_count
from decoding.request import find_sampling
from decoding.sampling import Sampling
from decoding.types import JSON, Trace

from .models.catalog import choose
from .models.entry import CatalogEntry
from .server.limits import LIMITS

CheckedPrompt = str | tuple[Message, ...]
ROLES = ("system", "user", "assistant")


@dataclass(frozen=True, slots=True)
class BranchOrigin:
    """Where a branch leaves another run: the arguments of `Engine.branch`."""

    run: str
    trace: Trace
    step: int
    node: int | None
    keep: int | None
    token: str | None


@dataclass(frozen=True, slots=True)
class Order:
    """The checked settings of one run."""

    entry: CatalogEntry
    method: type[Method]
    params: Params
    sampling: Sampling
    prompt: CheckedPrompt
    max_new_tokens: int
    raw: bool = False  # whether a prompt that is a text is fed as it is, and not as a turn of a chat
    reference: str = ""  # a document to copy from
    origin: BranchOrigin | None = None  # the run that it goes on from, instead of a prompt
    compare: bool = False  # whether to decode the prompt again autoregressively, to measure the speedup


def runnable(entry: CatalogEntry) -> list[str]:
    """Return the names of all methods whose parts a model has."""
    return [name for name, method in METHODS.items() if method.needs <= entry.parts]


def order(
    catalog: Mapping[str, CatalogEntry],
    *,
    model: object,
    method: object,
    params: object,
    sampling: object,
    prompt: object,
    max_new_tokens: object,
    reference: object = "",
    compare: object = False,
    raw: object = False,
) -> Order:
    """Check all settings; raises ParamError for the first that is invalid."""
    entry, kind = choose(catalog, model), find_method(method if isinstance(method, str) else None)
    if kind.name not in runnable(entry):
        names = ", ".join(runnable(entry))
        raise ParamError(f"{entry.name} lacks the parts that {kind.name} needs; choose one of {names}")
    return Order(
        entry=entry,
        method=kind,
        params=check_params(kind, {} if params is None else params),
        sampling=find_sampling(_object("sampling", sampling)),
        prompt=check_prompt(prompt),
        max_new_tokens=check_count("the number of new tokens", as_integer(max_new_tokens), 1, entry.max_new_tokens),
        reference=check_reference(reference) if kind.takes_reference else "",
        compare=compare is True,
        raw=raw is True,
    )


def check_params(kind: type[Method], params: object) -> Params:
    """Check the settings of a method; those that are not given have their defaults."""
    checked = kind.Params.parse(params)
    if checked.nodes > LIMITS.nodes:
        raise ParamError(f"with these settings a step has {checked.nodes} tokens, above {LIMITS.nodes}: lower them")
    return checked


def check_prompt(prompt: object) -> CheckedPrompt:
    """Check a prompt: a text, or the messages of a conversation that ends with the user's."""
    if isinstance(prompt, str):
        if not prompt.strip():
            raise ParamError("the prompt is empty: write something, or choose an example")
        if len(prompt) > LIMITS.prompt_characters:
            raise ParamError(f"the prompt has {len(prompt)} characters: shorten it to {LIMITS.prompt_characters}")
        return without_surrogates(prompt)
    if not isinstance(prompt, Sequence) or not prompt:
        raise ParamError("the prompt must be a text or a conversation")
    if len(prompt) > LIMITS.turns:
        raise ParamError(f"the conversation has more than {LIMITS.turns} messages: begin a new one")
    messages = tuple(_message(message) for message in prompt)
    if messages[-1]["role"] != "user":
        raise ParamError("write a message: a conversation ends with the user's message")
    if any(message["role"] == "system" for message in messages[1:]):
        raise ParamError("only the first message of a conversation may be the system's")
    return messages


def check_reference(text: object) -> str:
    """Check a document to copy from; without one, the result is empty."""
    if not isinstance(text, str) or not text.strip():
        return ""
    if len(text) > LIMITS.reference_characters:
        raise ParamError(f"the reference has {len(text)} characters: shorten it to {LIMITS.reference_characters}")
    return without_surrogates(text)


def as_integer(value: object) -> object:
    """Convert a text or a float, as browsers send them, to a whole number; other values are returned unchanged."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= 2**53:
        return int(value)
    if isinstance(value, str) and len(value) <= 20 and value.strip().lstrip("-").isascii():
        try:
            return int(value)
        except ValueError:
            return value
    return value


def typed(cls: type[Params], values: Mapping[str, object]) -> dict[str, JSON]:
    """Convert the values of controls to the types of their fields (sliders send 5.0 for 5); leave out empty ones."""
    kinds = {row["name"]: row["type"] for row in cls.describe()}
    return {
        name: as_integer(value) if kinds.get(name) == "int" else value
        for name, value in values.items()
        if value is not None
    }


def _object(what: str, value: object) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ParamError(f"{what} must be an object of names and values")
    return {str(name): part for name, part in value.items()}


def _message(message: object) -> Message:
    if not isinstance(message, Mapping):
        raise ParamError("every message of a conversation needs a role and a text")
    role, content = message.get("role"), message.get("content")
    if role not in ROLES or not isinstance(content, str):
        raise ParamError("every message of a conversation needs a role and a text")
    if not content.strip():
        raise ParamError(f"the {role}'s message is empty: write something")
    if len(content) > LIMITS.message_characters:
        raise ParamError(f"a message has {len(content)} characters: shorten it to {LIMITS.message_characters}")
    return {"role": str(role), "content": without_surrogates(content)}


def without_surrogates(text: str) -> str:
    """Replace lone surrogates, which no file and no address can contain."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)
