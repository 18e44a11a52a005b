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
from decoding.model.session import Reading
from decoding.request import Request
from decoding.run import Run
from decoding.types import Draft, Step, Verdict

ROOT = Path(__file__).parent.parent
PACKAGES = ("app", "decoding", "viz")
HOLDERS = (Request, Run, Draft, Reading, Verdict, Step)
TITLE = re.compile(r"\*\*([^*]+)\*\*: (\d+) functions")
ENTRY = re.compile(r"^(\d+)\. `([\w.]+)` in `([\w./]+)` .", re.M)


class Function(NamedTuple):
    """A function of ours: its file and its name there."""

    file: str
    name: str


class Part(NamedTuple):
    """A part of the way: how many functions the document says it has, and which, with their numbers."""

    count: int
    numbers: list[int]
    functions: list[Function]


def section() -> str:
    text = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    return text.split("### The way of one token")[1].split("\n## ")[0]


def parts() -> list[Part]:
    """The way as the document has it."""
    _, *found = TITLE.split(section())
    made = []
    for count, body in zip(found[1::3], found[2::3], strict=True):
        entries = ENTRY.findall(body)
        functions = [Function(file, name) for _, name, file in entries]
        made.append(Part(int(count), [int(number) for number, _, _ in entries], functions))
    return made


def holds_token(value: object) -> bool:
    """Whether a function that returns this hands the token on, or what it is made from."""
    if isinstance(value, str):
        return '"kind":"step"' in value
    if isinstance(value, tuple | list):
        return any(holds_token(part) for part in value)
    return isinstance(value, HOLDERS) or (isinstance(value, dict) and "emitted" in value)


class Watch:
    """Notes every call of a function of ours, with those of ours that it was called through, and what hands on."""

    def __init__(self) -> None:
        self.calls: list[tuple[Function, ...]] = []
        self.handing: list[tuple[Function, ...]] = []  # the same of those that returned what holds the token
        self._known: dict[Any, Function | None] = {}

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event not in ("call", "return") or self.function(frame) is None:
            return
        if event == "call":
            self.calls.append(tuple(self.stack(frame)))
        elif holds_token(argument):
            self.handing.append(tuple(self.stack(frame)))

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


class Watched(NamedTuple):
    """A live run up to its first step's line, and its second step."""

    start: Watch
    step: Watch

    def of(self, part: int) -> Watch:
        """The one in which a part of the way is to be found."""
        return self.step if part else self.start


@pytest.fixture(scope="module")
def watched() -> Watched:
    """A short run of the model that the page offers first."""
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
    return Watched(*watches)


def way() -> list[Function]:
    """The way in Python."""
    return [function for part in parts()[:3] for function in part.functions]


def detours(watched: Watched, known: Sequence[Function]) -> set[str]:
    """The functions that the way is taken through, or that hand the token on, and are not among those given."""
    on_the_way = set[Function]()
    for number, part in enumerate(parts()[:3]):
        watch = watched.of(number)
        handing = {called for called, *_ in watch.handing}
        # Some also do other things, as `line`: what counts is how they are reached when they hand the token on.
        others = [stack for stack in watch.calls if stack[0] in part.functions and stack[0] not in handing]
        on_the_way.update(*watch.handing, *others)
    return {function.name for function in on_the_way if function not in known}


def first_calls(calls: Sequence[tuple[Function, ...]]) -> list[Function]:
    """The functions in the order of their first calls."""
    return list(dict.fromkeys(called for called, *_ in calls))


def test_the_document_counts_what_it_lists() -> None:
    assert len(parts()) == 4 and all(part.count == len(part.functions) for part in parts())
    numbers = [number for part in parts() for number in part.numbers]
    assert numbers == [*range(1, len(numbers) + 1)]
    assert f"Through {len(numbers)} functions" in section()


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_token_goes_the_way_of_the_document(watched: Watched, number: int) -> None:
    """Every function is called, in this order."""
    part, called = parts()[number].functions, first_calls(watched.of(number).calls)
    assert [function for function in part if function not in called] == []
    assert sorted(part, key=called.index) == part


def test_nothing_stands_between(watched: Watched) -> None:
    """A function that only hands its arguments on makes every reader take one step more."""
    assert detours(watched, way()) == set()


@pytest.mark.parametrize(
    "left_out",
    ["LiveRuns._lines", "Loop.turn", "Builder.draft", "Seam.fit", "TreeReader.read", "Play._whole_step", "line"],
)
def test_a_function_that_is_not_listed_is_found(watched: Watched, left_out: str) -> None:
    """The control: without one of its functions, an inner or a last one, the list is not the whole way."""
    assert detours(watched, [function for function in way() if function.name != left_out]) == {left_out}


def test_the_browser_has_the_functions_of_the_document() -> None:
    """As methods of the named class, or as functions of the file."""
    for file, name in parts()[3].functions:
        script = (ROOT / file).read_text(encoding="utf-8")
        owner, _, method = name.rpartition(".")
        declared = rf"^\s*(?:export )?(?:const {method} =|{method}\()"
        assert re.search(declared, script, re.M), f"{file} has no {name}"
        assert not owner or re.search(rf"^export class {owner}\b", script, re.M), f"{file} has no {owner}"
