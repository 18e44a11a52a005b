"""The lanes of a race: methods, each with one or more settings, as a form or an address names them.

A preset goes by its name. Other settings are written out where they differ from the defaults, as "W=4, N=3".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from decoding.errors import ParamError
from decoding.methods import Method, find_method
from decoding.params import Params, shown
from decoding.types import JSON

from .controls import Order, check_params
from .presets import DEFAULTS, preset_name, presets
from .server.limits import LIMITS

_NEXT = re.compile(r",(?=\s*\w+\s*=)")  # the comma before another setting: values hold commas, too
_BETWEEN = "|"  # names in an address
_EXAMPLES = 2  # settings in an example
Lane = tuple[type[Method], Params]


def find_settings(kind: type[Method], name: str) -> Params:
    """Return the settings that a visitor names: a preset, or what differs from the defaults."""
    if (by_name := presets(kind)).keys() >= {name}:
        return kind.Params.parse(by_name[name])
    if "=" not in name:
        raise ParamError(f"choose one of {', '.join(by_name)}, or write settings, as {example_of(kind)}")
    given = dict[str, str]()
    for part in _NEXT.split(name):
        key, _, value = part.partition("=")
        if key.strip() in given:
            raise ParamError(f"{shown(key.strip())} has two values: a race lists each lane's settings by themselves")
        given[key.strip()] = value.strip()
    return check_params(kind, given)


def name_of(kind: type[Method], settings: Mapping[str, JSON]) -> str:
    """Return the name under which `find_settings` finds these settings."""
    plain = kind.Params().to_json()
    changed = (f"{key}={_written(value)}" for key, value in settings.items() if value != plain[key])
    return preset_name(kind, settings) or ", ".join(changed)


def read_names(kind: type[Method], text: str) -> tuple[str, ...]:
    """Read the names of settings that a field of an address lists."""
    by_name = presets(kind)
    names = [text] if text in by_name else text.split(_BETWEEN)
    if len(names) > LIMITS.lanes:
        raise ParamError(f"a race has 2 to {LIMITS.lanes} lanes, not {len(names)}")
    return tuple(name if name in by_name else name_of(kind, find_settings(kind, name).to_json()) for name in names)


def write_names(names: Sequence[str]) -> str:
    """Write the names of settings for an address."""
    return _BETWEEN.join(names)


def example_of(kind: type[Method]) -> str:
    """Write out some of a method's settings, for visitors who write their own."""
    return ", ".join(kind.Params().in_words()[:_EXAMPLES])


def check_lanes(names: Mapping[str, Sequence[str]]) -> list[Lane]:
    """Check the names of the settings that are to race, by method; returns the lanes in the order given."""
    empty = next((method for method, each in names.items() if not each), None)
    if empty is not None:
        raise ParamError(f"choose settings for {find_method(empty).label}, or leave it out")
    count = sum(len(each) for each in names.values())
    if not 2 <= count <= LIMITS.lanes:
        raise ParamError(f"a race has 2 to {LIMITS.lanes} lanes, not {count}")
    return [lane for method, each in names.items() for lane in _lanes_of(find_method(method), each)]


def _lanes_of(kind: type[Method], names: Sequence[str]) -> list[Lane]:
    names_of = dict[Params, str]()
    for name in names:
        try:
            settings = find_settings(kind, name)
        except ParamError as error:
            raise ParamError(f"{kind.label}: {error}") from None
        if settings in names_of:
            other = names_of[settings]
            same = "is there twice" if name == other else f"and {shown(name)} are the same settings"
            raise ParamError(f"{kind.label}: {shown(other)} {same}: leave one out")
        names_of[settings] = name
    return [(kind, settings) for settings in names_of]


def titles_of(orders: Sequence[Order]) -> list[tuple[str, str]]:
    """Return the title of each lane, and the settings that the title leaves out, unless they are the defaults.

    The title of a method that races more than once names its settings.
    """
    times, titles = Counter(order.method for order in orders), list[tuple[str, str]]()
    for order in orders:
        label, settings = order.method.label, name_of(order.method, order.params.to_json())
        more = "" if settings == DEFAULTS else settings
        titles.append((label, more) if times[order.method] == 1 else (f"{label} ({settings})", ""))
    return titles


def _written(value: JSON) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
