"""A token passes through few functions on its way to the screen, and docs/design.md names functions that there are."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

from app.controls import order
from app.jobs.live_run import LiveRun
from app.jobs.runner import JobRunner
from app.models.catalog import POCKET
from app.models.model_pool import ModelPool
from app.server.limits import LIMITS
from app.store.trace_store import TraceStore
from decoding.model.session import Reading
from decoding.request import Request
from decoding.run import Run
from decoding.types import Draft, Step, Verdict
from tests import ROOT

PACKAGES = ("app", "decoding", "viz")
HOLDERS = (Request, Run, Draft, Reading, Verdict, Step)
CEILING = 40
ENTRY = re.compile(r"^\d+\. `([\w.]+)` in `([\w./]+)` .", re.M)


class Function(NamedTuple):
    """A function of ours: its file and its name there."""

    file: str
    name: str


def listed() -> set[Function]:
    """Return the functions of the way as the document has it."""
    text = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    section = text.split("\n## The way of one token")[1].split("\n## ")[0]
    return {Function(file, name) for name, file in ENTRY.findall(section)}


def holds_token(value: object) -> bool:
    """Return whether a function that returns this hands the token on, or what it is made from."""
    if isinstance(value, str):
        return '"kind":"step"' in value
    if isinstance(value, tuple | list):
        return any(holds_token(part) for part in value)
    return isinstance(value, HOLDERS) or (isinstance(value, dict) and "emitted" in value)


class Watch:
    """Collects the functions of ours that return what holds the token, and those that they are called through."""

    def __init__(self) -> None:
        self.passed = set[Function]()
        self._functions: dict[Any, Function | None] = {}

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "return" and self.function(frame) is not None and holds_token(argument):
            self.passed.update(self.stack(frame))

    def stack(self, frame: FrameType | None) -> Iterator[Function]:
        """Yield the functions of ours on the stack."""
        while frame is not None:
            if (function := self.function(frame)) is not None:
                yield function
            frame = frame.f_back

    def function(self, frame: FrameType) -> Function | None:
        """Return what of ours runs in a frame, if anything; what is inside a function is a part of it."""
        code = frame.f_code
        if code not in self._functions:
            path = Path(code.co_filename)
            ours = path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in PACKAGES
            inner = "<" in code.co_qualname
            self._functions[code] = (
                Function(path.relative_to(ROOT).as_posix(), code.co_qualname) if ours and not inner else None
            )
        return self._functions[code]


@pytest.fixture(scope="module")
def passed() -> set[Function]:
    """Trace what hands a token on, from the page's order to the second step's line, with the page's first model."""
    models = ModelPool({POCKET.name: POCKET})
    assert models.request(POCKET).wait(60) is not None
    asked = order(
        {POCKET.name: POCKET},
        model=POCKET.name,
        method="autoregressive",
        params={},
        sampling={},
        prompt="Monday:",
        max_new_tokens=4,
    )
    jobs, watch = JobRunner(models, TraceStore()), Watch()
    with pytest.MonkeyPatch.context() as patch:
        for module in ("runner", "live_run"):
            patch.setattr(f"app.jobs.{module}.LIMITS", replace(LIMITS, live_gap=0.0))
        try:
            sys.setprofile(watch)
            texts = jobs.start(LiveRun(asked, ""), "tab")
            assert any(text.count('"kind":"step"') > 1 for text in texts)
        finally:
            sys.setprofile(None)
        texts.close()  # type: ignore[attr-defined]
    return watch.passed


def test_a_token_passes_through_few_functions(passed: set[Function]) -> None:
    """Each costs its reader a step. Those of the list count, and every other that hands the token on."""
    others = sorted(passed - listed())
    assert len(listed()) + len(others) <= CEILING, f"not in docs/design.md: {others}"


def test_what_hands_a_token_on_is_seen(passed: set[Function]) -> None:
    """The control: the watch sees the ends and the middle of the way, so that the count is no count of nothing."""
    names = {function.name for function in passed}
    assert names >= {"JobRunner.start", "Engine.decode", "Loop.turn", "TreeReader.read", "Play.step"}


def is_declared(function: Function) -> bool:
    """Return whether its file has it: as a method of the named class, or as a function of the file."""
    script = (ROOT / function.file).read_text(encoding="utf-8")
    owner, _, name = function.name.rpartition(".")
    declared = rf"def {name}\(" if function.file.endswith(".py") else rf"(?:export )?(?:const {name} =|{name}\()"
    in_class = not owner or re.search(rf"^(?:export )?class {owner}\b", script, re.M)
    return bool(in_class and re.search(rf"^\s*{declared}", script, re.M))


def test_the_listed_functions_are_there() -> None:
    """Whoever looks for one finds it."""
    assert [function for function in listed() if not is_declared(function)] == []
    assert not is_declared(Function("app/jobs/runner.py", "JobRunner.no_such_function"))
