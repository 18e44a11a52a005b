"""Converts the state of the page to the query of its address, and back. An address is untrusted input.

screen=run|race|debug|cost|learn (Gradio has a "page" of its own; app/debug/state.py reads the fields of the third, the
    page's scripts those of the last two: assets/page/cost/choices.js; lesson=ID and at=ANCHOR)
run=ID of a recording or of a run made here
step, phase, view, node: a place in the run; the node after the last one is the token that the target wrote itself
beside=ID of a second run, recorded or made here, which the page shows in step with the first
branch=12n3 (another guess, node 3 of step 12) or 12k2 with force=TEXT (after the first 2 tokens of the step)
model, method, methods (of a race)
p.NAME: parameters that differ from their defaults   length, temperature, top_k, ..., seed
preset.METHOD: in a race, the names of its settings (lanes.py), with | between them; without it the defaults
example=ID, or prompt=TEXT, or raw=TEXT without the model's chat template, or chat=JSON messages   reference=TEXT
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlencode

from decoding.errors import ParamError
from decoding.methods import METHODS, find_method
from decoding.params import check_count, shown
from decoding.request import find_sampling
from decoding.sampling import Sampling
from decoding.types import JSON
from viz.cells import STEP_PHASES

from .controls import (
    CheckedPrompt,
    Order,
    as_integer,
    check_params,
    check_prompt,
    check_reference,
    without_surrogates,
)
from .examples import EXAMPLES
from .lanes import check_lanes, name_of, read_names, write_names
from .left_out import left_out, unknown_fields
from .models.catalog import choose
from .models.entry import CatalogEntry
from .presets import DEFAULTS
from .server.limits import LIMITS
from .store.trace_store import ID

SCREENS = ("run", "race", "debug", "cost", "learn")
_VIEW = re.compile(r"[a-z_]{1,24}")
_FORK = re.compile(r"(\d{1,6})([nk])(\d{1,4})", re.ASCII)
_MAX_KEYS = 64
_TEXTS = {"reference": "reference", "prompt": "prompt", "raw": "prompt", "chat": "conversation"}  # fields of any length
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Fork:
    """A position where a run is to continue differently: with a guess of the step's tree, or with a text."""

    step: int
    node: int | None
    keep: int | None = None  # tokens of the step before the text
    text: str | None = None

    @property
    def query(self) -> str:
        """The fields of an address that name it."""
        if self.text is None:
            return f"branch={self.step}n{self.node}"
        return urlencode({"branch": f"{self.step}k{self.keep}", "force": self.text})


@dataclass(slots=True)
class PageState:
    """The state of the page that an address describes; `problems` are sentences on what was invalid in it."""

    screen: str = "run"
    run: str | None = None
    fork: Fork | None = None  # of the run
    model: str | None = None
    method: str | None = None
    params: dict[str, JSON] = field(default_factory=dict)  # of `method`, all of them
    lanes: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of a race: names of settings, by method
    sampling: dict[str, JSON] = field(default_factory=dict)
    example: str | None = None
    prompt: CheckedPrompt | None = None
    raw: bool = False  # whether the prompt is fed without the model's chat template
    reference: str = ""
    length: int | None = None
    place: dict[str, JSON] = field(default_factory=dict)  # step, phase, view, node
    problems: list[str] = field(default_factory=list)


def parse(query: Mapping[str, str], catalog: Mapping[str, CatalogEntry]) -> PageState:
    """Parse an address. Invalid fields are left out, each with a sentence in `problems`."""
    state = PageState()
    given = {str(key): str(value) for key, value in list(query.items())[:_MAX_KEYS]}
    if sum(len(key) + len(value) for key, value in given.items()) > LIMITS.address_characters:
        state.problems.append(f"the address is longer than {LIMITS.address_characters} characters, so it was ignored")
        return state

    def take(key: str, check: Callable[[str], _Value], default: _Value) -> _Value:
        try:
            return check(given[key]) if key in given else default
        except ParamError as error:
            state.problems.append(left_out([key], error))
            return default

    state.screen = take("screen", _one_of(SCREENS), "run")
    if state.screen in ("debug", "cost", "learn"):
        return state
    state.run = take("run", _run, None)
    state.fork = take("branch", lambda text: _fork(text, given.get("force")), None)
    state.model = take("model", lambda name: choose(catalog, name).name, None)
    state.method = take("method", lambda name: find_method(name).name, None)
    state.example = take("example", _one_of(tuple(EXAMPLES)), None)
    state.prompt = take("prompt", check_prompt, None)
    state.prompt, state.raw = take("raw", check_prompt, state.prompt), "raw" in given
    state.prompt = take("chat", _chat, state.prompt)
    state.reference = take("reference", check_reference, "")
    state.length = take("length", lambda text: check_count("the length", as_integer(text), 1, LIMITS.new_tokens), None)
    state.place = {key: value for key, check in _PLACE.items() if (value := take(key, check, None)) is not None}
    for name in take("methods", _methods, tuple[str, ...]()):
        state.lanes[name] = take(f"preset.{name}", partial(read_names, find_method(name)), (DEFAULTS,))
    _check_race(state)
    _take_settings(given, state)
    state.problems += unknown_fields(given, _is_known)
    return state


def write(order: Order, example: str | None = None) -> str:
    """Write the query of a run, without texts that are too long for an address (see `missing_texts`)."""
    changed = {name: value for name, value in order.params.to_json().items() if value != _default(order, name)}
    fields: dict[str, Any] = {"model": order.entry.name, "method": order.method.name}
    fields |= {f"p.{name}": json.dumps(value) if isinstance(value, bool) else value for name, value in changed.items()}
    return _encode(fields | ({"reference": order.reference} if order.reference else {}), order, example)


def write_race(orders: Sequence[Order], example: str | None = None) -> str:
    """Return the query of a race."""
    lanes = dict[str, list[str]]()
    for order in orders:
        lanes.setdefault(order.method.name, []).append(name_of(order.method, order.params.to_json()))
    fields: dict[str, Any] = {"screen": "race", "model": orders[0].entry.name, "methods": ",".join(lanes)}
    fields |= {f"preset.{name}": write_names(each) for name, each in lanes.items() if each != [DEFAULTS]}
    return _encode(fields, orders[0], example)


def _encode(fields: dict[str, Any], order: Order, example: str | None) -> str:
    """Add sampling, length and prompt to the fields, and encode them; texts that are too long are left out."""
    fields |= {name: value for name, value in order.sampling.to_json().items() if value != Sampling().to_json()[name]}
    fields |= {"length": order.max_new_tokens} | _prompt_field(order, example)
    return urlencode({name: value for name, value in fields.items() if not _too_long(name, value)})


def _too_long(name: str, value: object) -> bool:
    return name in _TEXTS and len(urlencode({name: value})) > LIMITS.address_text_bytes


def missing_texts(order: Order, example: str | None = None) -> str:
    """Name the texts of an order that its address leaves out; "" if it has all of them."""
    texts = ({"reference": order.reference} if order.reference else {}) | _prompt_field(order, example)
    return " and the ".join(_TEXTS[name] for name, value in texts.items() if _too_long(name, value))


def _prompt_field(order: Order, example: str | None) -> dict[str, str]:
    chosen, prompt = EXAMPLES.get(example or ""), order.prompt
    conversation = None if chosen is None else tuple(dict(message) for message in chosen.messages)
    if chosen is not None and not order.raw and prompt in (chosen.prompt, conversation):
        return {"example": chosen.id}
    if isinstance(prompt, str):
        return {"raw" if order.raw else "prompt": prompt}
    return {"chat": json.dumps(prompt, ensure_ascii=False, separators=(",", ":"))}


def _default(order: Order, name: str) -> JSON:
    return order.method.Params().to_json()[name]


def _is_known(key: str) -> bool:
    kind, dot, name = key.partition(".")
    return key in _FIELDS or bool(dot) and (kind == "p" or kind == "preset" and name in METHODS)


def _take_settings(given: Mapping[str, str], state: PageState) -> None:
    params = {key: value for key, value in given.items() if key.startswith("p.")}
    if state.method is not None:
        kind = find_method(state.method)

        def setting(raw: Mapping[str, str]) -> dict[str, JSON]:
            return check_params(kind, {key[2:]: value for key, value in raw.items()}).to_json()

        state.params = _fitting(params, setting, state.problems)
    elif params and "method" not in given:
        state.problems.append(left_out([*params], "name the method in the address, too"))
    sampling = {key: given[key] for key in Sampling().to_json() if key in given}
    state.sampling = _fitting(sampling, _sampling, state.problems)


def _sampling(raw: Mapping[str, str]) -> dict[str, JSON]:
    found = find_sampling(raw)
    if found.temperature > LIMITS.temperature:
        raise ParamError(f"the temperature must be at most {LIMITS.temperature:g} on this page")
    return found.to_json()


def _fitting(
    given: Mapping[str, str], parsed: Callable[[Mapping[str, str]], dict[str, JSON]], problems: list[str]
) -> dict[str, JSON]:
    """Parse settings; where they do not all fit, those that fit with the ones before them."""
    try:
        return parsed(given)
    except ParamError:
        fit = dict[str, str]()
    for key, value in given.items():
        try:
            parsed(fit | {key: value})
        except ParamError as error:
            problems.append(left_out([key], error))
        else:
            fit[key] = value
    return parsed(fit)


def _one_of(names: tuple[str, ...]) -> Callable[[str], str]:
    def check(text: str) -> str:
        if text not in names:
            raise ParamError(f"choose one of {', '.join(names)}, not {shown(text)}")
        return text

    return check


def _run(text: str) -> str:
    if not ID.fullmatch(text):
        raise ParamError("a run's id consists of up to 64 letters, digits, dashes and underscores")
    return text


def _fork(text: str, forced: str | None) -> Fork:
    named = _FORK.fullmatch(text)
    if named is None:
        raise ParamError("a branch is a step and a node, as 12n3, or a step and a number of tokens, as 12k2")
    step = check_count("the step", int(named[1]), 0, LIMITS.detail_steps)
    if named[2] == "n":
        return Fork(step, int(named[3]))
    if not forced or len(forced) > LIMITS.forced_characters:
        raise ParamError(f"the text that is forced must have 1 to {LIMITS.forced_characters} characters")
    return Fork(step, None, int(named[3]), without_surrogates(forced))


def _methods(text: str) -> tuple[str, ...]:
    names = tuple(find_method(name).name for name in text.split(","))
    if len(set(names)) < len(names):
        raise ParamError("name each method once")
    return names


def _check_race(state: PageState) -> None:
    try:
        if state.lanes:
            check_lanes(state.lanes)
    except ParamError as error:
        state.problems.append(left_out(["methods"], error))
        state.lanes = {}


def _chat(text: str) -> CheckedPrompt:
    try:
        messages = json.loads(text)
    except (ValueError, RecursionError):
        raise ParamError("it must be a JSON list of messages") from None
    if not isinstance(messages, list):
        raise ParamError("it must be a JSON list of messages")
    return check_prompt(messages)


def _view(text: str) -> str:
    if not _VIEW.fullmatch(text):
        raise ParamError("a view's name consists of up to 24 lower-case letters")
    return text


_PLACE: Mapping[str, Callable[[str], JSON]] = {
    "step": lambda text: check_count("it", as_integer(text), 0, LIMITS.detail_steps),
    "phase": _one_of(STEP_PHASES),
    "view": _view,
    "node": lambda text: check_count("it", as_integer(text), 0, 4_095),
}
_FIELDS = frozenset((
    *("screen", "run", "beside", "branch", "force", "model", "method", "methods", "example", "length"),
    *("bare", "lesson", "at"),
    *_TEXTS, *_PLACE, *Sampling().to_json(),
))  # fmt: skip
