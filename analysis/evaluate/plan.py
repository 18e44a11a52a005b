"""The plan of an evaluation: questions, methods with their settings, and how every run is decoded and recorded."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from decoding.errors import ParamError
from decoding.methods import find_method
from decoding.params import check_count
from decoding.request import find_sampling
from decoding.trace.columns import LEVELS
from decoding.types import JSON

from ..prompts.tasks import Task

BASE, DEFAULT, TUNED = "autoregressive", "default", "tuned"
_SETTING_NAME = re.compile(r"[\w.-]{1,40}", re.ASCII)  # part of a trace's file name


@dataclass(frozen=True, slots=True)
class MethodSetting:
    """A method in one of its settings."""

    method: str
    setting: str
    params: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """A whole evaluation. The first entry's answers go into a question's later turns, for all entries."""

    tasks: tuple[Task, ...]
    entries: tuple[MethodSetting, ...]
    sampling: Mapping[str, JSON] = field(default_factory=dict)
    max_new_tokens: int = 128
    record: str = "full"
    traces: bool = False

    def settings(self) -> dict[str, JSON]:
        """Return all that decides the results, as JSON: an evaluation only resumes where it is the same."""
        questions = [[task.id, task.category, *task.turns] for task in self.tasks]
        return {
            "tasks": hashlib.sha256(json.dumps(questions).encode()).hexdigest(),
            "methods": [
                {"method": entry.method, "setting": entry.setting, "params": dict(entry.params)}
                for entry in self.entries
            ],
            "sampling": dict(self.sampling),
            "max_new_tokens": self.max_new_tokens,
            "record": self.record,
            "traces": self.traces,
        }


def make_plan(
    tasks: Sequence[Task],
    methods: Sequence[str],
    *,
    params: Mapping[str, Mapping[str, JSON]] | None = None,
    tuned: Mapping[str, Mapping[str, JSON]] | None = None,
    settings: Mapping[str, tuple[str, Mapping[str, JSON]]] | None = None,
    sampling: Mapping[str, JSON] | None = None,
    max_new_tokens: int = 128,
    record: str = "full",
    traces: bool = False,
    baseline: bool = True,
) -> EvaluationPlan:
    """Check the arguments before anything runs.

    `params` holds settings by method, and `tuned` those of the methods that `params` leaves out, named "tuned".
    `settings` holds further ones by the name of each: the method and what differs from its first setting.
    Autoregressive decoding comes first, unless `baseline` is False.
    """
    params, settings = params or {}, settings or {}
    named = dict.fromkeys((tuned or {}).keys() - params.keys(), TUNED)
    params = {**(tuned or {}), **params}
    names = [*([BASE] if baseline else []), *methods]
    wanted = [(name, named.get(name, DEFAULT), params.get(name, {})) for name in dict.fromkeys(names)]
    for name, (method, changes) in settings.items():
        if not _SETTING_NAME.fullmatch(name) or name == DEFAULT or name == named.get(method):
            raise ParamError(f"a setting's name must be 1 to 40 letters, digits, _, . or -, not {name[:40]!r}")
        wanted.append((method, name, {**params.get(method, {}), **changes}))
    seen = set[str]()
    for task in tasks:
        if str(task.id) in seen:
            raise ParamError(
                f"two questions have the id {str(task.id)[:40]!r}: give each its own, since runs are paired by it"
            )
        seen.add(str(task.id))
    if not wanted:
        raise ParamError("name at least one method to evaluate")
    if strangers := sorted(params.keys() - {method for method, _, _ in wanted}):
        raise ParamError(f"there are settings for {', '.join(strangers)}, which is not among the methods evaluated")
    if record not in LEVELS[1:]:
        raise ParamError(f"record must be one of {', '.join(LEVELS[1:])}, not {str(record)[:40]!r}")
    return EvaluationPlan(
        tuple(tasks),
        tuple(MethodSetting(method, name, _checked(method, raw)) for method, name, raw in wanted),
        find_sampling(sampling).to_json(),
        check_count("max_new_tokens", max_new_tokens, 1, 1_000_000),
        record,
        traces,
    )


def _checked(method: str, raw: Mapping[str, JSON]) -> dict[str, Any]:
    params: dict[str, Any] = find_method(method).Params.parse(raw).to_json()
    return params
