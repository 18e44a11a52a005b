"""Reads facts as lessons write them, name(argument argument), and computes them.

Arguments are read by the types of the function's parameters: a run by its name in the lesson, a step of that run as a
number, a node of that step as n3, nodes as n1..n5.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import get_type_hints

from decoding.types import Step, Trace

from . import formulas, run_facts, step_facts
from .fact_types import At, FactError, NodeId, NodeRange, RunNames
from .formulas import CountName
from .sources import DeviceCost, RunCounts, RunLibrary

Value = int | float | str | bool | tuple[str, ...]

FACTS: Mapping[str, Callable[..., Value]] = {
    name: function
    for module in (run_facts, step_facts, formulas)
    for name, function in vars(module).items()
    if inspect.isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_")
}
_CALL = re.compile(r"([a-z_0-9]+)\(([^()]*)\)")
_NODE = re.compile(r"n(\d{1,4})", re.ASCII)
_RANGE = re.compile(r"n(\d{1,4})\.\.n(\d{1,4})", re.ASCII)


@dataclass(frozen=True, slots=True)
class FactReader:
    """Computes the facts of one lesson."""

    library: RunLibrary
    runs: Mapping[str, str]  # the lesson's names of recordings

    def run(self, name: str) -> Trace:
        """Return a run by the lesson's name for it."""
        if name not in self.runs:
            raise FactError(f"{name!r} is no run of this lesson")
        return self.library.trace(self.runs[name])

    def step(self, run: Trace, k: int) -> Step:
        """Return a step of a run."""
        if not 0 <= k < len(run.steps):
            raise FactError(f"this run has {len(run.steps)} steps, numbered from 0: there is no step {k}")
        return run.steps[k]

    def value(self, written_fact: str) -> Value:
        """Compute a fact."""
        call = _CALL.fullmatch(written_fact.strip())
        if not call or call[1] not in FACTS:
            raise FactError(f"{written_fact.strip()!r} is no fact: there are {', '.join(sorted(FACTS))}")
        function, words = FACTS[call[1]], call[2].split()
        arguments = list[object]()
        for kind in _kinds(function):
            arguments.append(self._argument(kind, words, arguments, call[1]))
        if words:
            raise FactError(f"{call[1]} has no use for {words[0]!r}")
        value = function(*arguments)
        return f"n{value}" if _kinds(function) and _returns_node(function) else value

    def step_of(self, written_fact: str) -> tuple[str, int] | None:
        """Return the run and the step that a fact is about; None if it is not about a single step."""
        call = _CALL.fullmatch(written_fact.strip())
        if not call or At not in _kinds(FACTS[call[1]])[:1]:
            return None
        run, step = call[2].split()[:2]
        return run, int(step)

    def text(self, written_fact: str) -> str:
        """Compute a fact and format it: `name(...)`, or `name(...) :2` for two digits after the point."""
        fact, _, digits = written_fact.partition(" :")
        value = self.value(fact)
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, tuple):
            return " ".join(value)
        if isinstance(value, str):
            return value
        if digits and not digits.strip().isdecimal():
            raise FactError(f"the digits of {fact} are a number, as in {fact} :2")
        return f"{value:,.{int(digits)}f}" if digits else f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"

    def _argument(self, kind: object, words: list[str], before: list[object], name: str) -> object:
        if not words:
            raise FactError(f"{name} needs more arguments")
        if kind is RunNames:
            runs = [(word, self.run(word)) for word in words]
            words.clear()
            return runs
        word = words.pop(0)
        if kind is Trace:
            return self.run(word)
        if kind is At:
            if not words or not words[0].isdecimal():
                raise FactError(f"{name} needs a run and the number of a step")
            run = self.run(word)
            return At(run, self.step(run, int(words.pop(0))))
        if kind is NodeId:
            return NodeId(_node(word, before))
        if kind is NodeRange:
            ends = _RANGE.fullmatch(word)
            if not ends:
                raise FactError(f"{word!r} are no nodes: write them as n1..n5")
            return range(_node(f"n{ends[1]}", before), _node(f"n{ends[2]}", before) + 1)
        if kind is DeviceCost:
            return self.library.device(word)
        if kind is RunCounts:
            return self.library.counts(word)
        if kind is CountName:
            return word
        try:
            return int(word) if kind is int else float(word)
        except ValueError:
            raise FactError(f"{name} needs a number, not {word!r}") from None


def _node(word: str, before: list[object]) -> int:
    named, at = _NODE.fullmatch(word), next(value for value in before if isinstance(value, At))
    if not named or int(named[1]) >= len(at.step.tokens):
        raise FactError(f"{word!r} is no node: this step has n0 to n{len(at.step.tokens) - 1}")
    return int(named[1])


@cache
def _kinds(function: Callable[..., Value]) -> tuple[object, ...]:
    hints = get_type_hints(function)
    return tuple(hints[name] for name in inspect.signature(function).parameters)


@cache
def _returns_node(function: Callable[..., Value]) -> bool:
    return get_type_hints(function)["return"] is NodeId
