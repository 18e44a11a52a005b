"""Reads a run's parameters as its method's own Params. A header from elsewhere may hold anything in them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, TypeVar, cast

from decoding.errors import ParamError
from decoding.params import Params
from decoding.types import JSON, Header

from .identity import Held

_RECENT = 32  # headers whose parameters are remembered
ParamsType = TypeVar("ParamsType", bound=Params)


def read_params(kind: type[ParamsType], header: Header) -> ParamsType:
    """Return the run's parameters; one that is missing or does not fit has its default."""
    params: ParamsType = _read(cast(Hashable, kind), Held(header.params))
    return params


def params_reader(kind: type[ParamsType]) -> Callable[[Header], ParamsType]:
    """Return a function that reads the parameters of a run."""
    return lambda header: read_params(kind, header)


def setting_label(row: Mapping[str, JSON]) -> str:
    """Return the name of a setting for people: its label, and its symbol in the paper where it has one.

    `row` is one that `Params.describe` returns.
    """
    label, symbol = str(row["label"]), str(row["symbol"])
    return label if symbol == row["name"] and len(symbol) > 1 else f"{label} ({symbol})"


@lru_cache(maxsize=_RECENT)
def _read(kind: Any, given: Held) -> Any:
    values = {field.name: given.value[field.name] for field in fields(kind) if field.name in given.value}
    try:
        return kind(**values)
    except ParamError:
        return _of_fitting_ones(kind, values)


def _of_fitting_ones(kind: Any, values: Mapping[str, JSON]) -> Any:
    """Return the parameters with those values that fit, together with the ones before them."""
    params = kind()
    for name, value in values.items():
        try:
            params = replace(params, **{name: value})
        except ParamError:
            continue
    return params
