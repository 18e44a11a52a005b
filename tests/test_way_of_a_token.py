"""The way of a token in docs/design.md is the way that it takes, with nothing between that the document leaves out."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

from app.catalog import POCKET
from app.controls import order
from app.limits import LIMITS
from app.live_runs import LiveRuns
from app.model_pool import ModelPool
from app.trace_store import TraceStore

ROOT = Path(__file__).parent.parent
PACKAGES = ("app", "decoding", "viz")
QUOTED = re.compile(r"`([^`]+)`")


class Function(NamedTuple):
    """A function of ours: its file and its name there."""

    file: str
    name: str


class Part(NamedTuple):
    """A part of the way: how many functions the document says it has, and which."""

    count: int
    functions: list[Function]


def parts() -> list[Part]:
    """The way as the document has it: a file in brackets belongs to the names in front of it."""
    text = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    text = text.split("### The way of one token")[1].split("\n## ")[0]
    found = []
    for paragraph in text.split("\n\n**")[1:]:
        names, functions = list[str](), list[Function]()
        for quoted in QUOTED.findall(paragraph):
            if "/" in quoted:
                functions += [Function(quoted, name) for name in names]
                names = []
            else:
                names.append(quoted)
        assert not names, f"without a file: {names}"
        count = re.search(r"\*\*, (\d+) functions", paragraph)
        assert count is not None
        found.append(Part(int(count[1]), functions))
    return found


class Watch:
    """Notes every call of a function of ours, with those of ours that it was called through."""

    def __init__(self) -> None:
        self.calls: list[tuple[Function, ...]] = []
        self._known: dict[Any, Function | None] = {}

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and self.function(frame) is not None:
            self.calls.append(tuple(self.stack(frame)))

    def stack(self, frame: FrameType | None) -> Iterator[Function]:
        """The functions of ours on the stack, the called one first."""
        while frame is not None:
            if (function := self.function(frame)) is not None:
                yield function
            frame = frame.f_back

    def function(self, frame: FrameType) -> Function | None:
        """What of ours runs in a frame, if anything; what stands inside of a function is a part of it."""
        code = frame.f_code
        if code not in self._known:
            path = Path(code.co_filename)
            ours = path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in PACKAGES
            inner = "<" in code.co_qualname
            self._known[code] = (
                Function(path.relative_to(ROOT).as_posix(), code.co_qualname) if ours and not inner else None
            )
        return self._known[code]


class Calls(NamedTuple):
    """The calls of a live run up to its first step's line, and those of the second step."""

    start: list[tuple[Function, ...]]
    step: list[tuple[Function, ...]]

    def of(self, part: int) -> list[tuple[Function, ...]]:
        """Those in which a part of the way is to be found."""
        return self.step if part else self.start


@pytest.fixture(scope="module")
def calls() -> Calls:
    """The calls of a short run of the model that the page offers first."""
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
    runs, watches = LiveRuns(models, TraceStore()), (Watch(), Watch())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.live_runs.LIMITS", replace(LIMITS, live_gap=0.0))
        try:
            sys.setprofile(watches[0])
            texts = runs.start(asked, "tab", "")
            for steps, watch in enumerate(watches):
                sys.setprofile(watch)
                assert any(text.count('"kind":"step"') > steps for text in texts)
        finally:
            sys.setprofile(None)
        texts.close()  # type: ignore[attr-defined]
    return Calls(watches[0].calls, watches[1].calls)


def way() -> list[Function]:
    """The way in Python."""
    return [function for part in parts()[:3] for function in part.functions]


def detours(calls: Calls, known: Sequence[Function]) -> set[str]:
    """The functions through which the way is taken and which are not among those given."""
    found = set()
    for number, part in enumerate(parts()[:3]):
        for called, *through in calls.of(number):
            found |= {above.name for above in through if called in part.functions and above not in known}
    return found


def first_calls(calls: Sequence[tuple[Function, ...]]) -> list[Function]:
    """The functions in the order of their first calls."""
    return list(dict.fromkeys(called for called, *_ in calls))


def test_the_document_counts_what_it_lists() -> None:
    assert len(parts()) == 4 and all(part.count == len(part.functions) for part in parts())


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_token_goes_the_way_of_the_document(calls: Calls, number: int) -> None:
    """Every function is called, in this order."""
    part, called = parts()[number].functions, first_calls(calls.of(number))
    assert [function for function in part if function not in called] == []
    assert sorted(part, key=called.index) == part


def test_nothing_stands_between(calls: Calls) -> None:
    """A function that only hands its arguments on makes every reader take one step more."""
    assert detours(calls, way()) == set()


@pytest.mark.parametrize("left_out", ["Loop.turn", "TreeReader.read", "Play._whole_step"])
def test_a_function_that_is_not_listed_is_found(calls: Calls, left_out: str) -> None:
    """The control: without one of the inner functions the list is not the whole way."""
    assert detours(calls, [function for function in way() if function.name != left_out]) == {left_out}


def test_the_browser_has_the_functions_of_the_document() -> None:
    """As methods of the named class, or as functions of the file."""
    for file, name in parts()[3].functions:
        script = (ROOT / file).read_text(encoding="utf-8")
        owner, _, method = name.rpartition(".")
        declared = rf"^\s*(?:export )?(?:const {method} =|{method}\()"
        assert re.search(declared, script, re.M), f"{file} has no {name}"
        assert not owner or re.search(rf"^export class {owner}\b", script, re.M), f"{file} has no {owner}"
