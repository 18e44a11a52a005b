"""What a method's own types say of its parameters and panels is what its screen reads, and nothing else."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypedDict

import pytest

from decoding.methods import METHODS
from decoding.methods.lookahead import LookaheadParams
from decoding.methods.panels import LookaheadPanel
from decoding.methods.prompt_lookup import PromptLookupParams
from decoding.trace.file import read_trace
from decoding.types import Trace
from tests import ROOT
from tests.viz.engines import RUNS, run_state
from viz.fates import is_branching
from viz.methods import SCREENS, screen_of
from viz.panels import read_panel
from viz.params import read_params

from .records import record

RECORDINGS = sorted((ROOT / "assets" / "traces").glob("*.jsonl.gz"))


def plain(value: Any) -> Any:
    """Convert as JSON does: rows of a fixed form are lists in a file."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


def read_whole(trace: Trace) -> None:
    kind = METHODS[trace.header.method].Panel
    for step in trace.steps:
        assert plain(read_panel(kind, step.panel)) == plain(step.panel)


@pytest.mark.sampled
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name.split(".")[0])
def test_everything_in_a_recorded_panel_fits_its_type(path: Path) -> None:
    """What a method writes and its type forgets would be missing on the screen."""
    read_whole(read_trace(path))


@pytest.mark.parametrize("method", METHODS)
def test_everything_in_a_fresh_panel_fits_its_type(method: str) -> None:
    read_whole(record(method))


class Inner(TypedDict):
    count: int


class Panel(TypedDict, total=False):
    ids: list[int]
    pairs: list[tuple[int, Literal["a", "b"]]]
    share: float
    best: int | None
    word: str
    sure: bool
    inner: Inner


FITS: dict[str, list[Any]] = {
    "ids": [[], [0, 2**31 - 1]],
    "pairs": [[[1, "a"], [2, "b"]]],
    "share": [0, 0.5, -1.5],
    "best": [None, 3],
    "word": ["", "x" * 64],
    "sure": [True],
    "inner": [{"count": 1}, {"count": 1, "more": []}],
}
MISFITS: dict[str, list[Any]] = {
    "ids": [None, 3, "ab", {}, [True], [1.0], [-1], [2**31], [10**400], [[1]], [None]],
    "pairs": [[[1]], [[1, "c"]], [["a", 1]], [[1, "a", 2]], [1], [[1, ["a"]]]],
    "share": [None, "0", True, float("nan"), float("inf"), 10**400, [0.5]],
    "best": [False, -1, "3"],
    "word": [1, None, ["x"], "x" * 65],
    "sure": [1, None, "yes"],
    "inner": [{}, {"count": None}, [], 1],
}


@pytest.mark.parametrize("name", FITS)
def test_what_does_not_fit_is_as_if_it_were_not_there(name: str) -> None:
    """A file from elsewhere may hold anything; the entries beside it are read all the same."""
    for value in FITS[name]:
        assert name in read_panel(Panel, {name: value, "else": value})
    for value in MISFITS[name]:
        beside = "sure" if name != "sure" else "word"
        good = FITS[beside][0]
        assert read_panel(Panel, {name: value, beside: good}) == {beside: good}


def test_a_panel_is_read_up_to_a_bound_and_once() -> None:
    """Every view of a step reads its panel: a huge one must not be gone through again for each."""
    assert len(read_panel(Panel, {"ids": [1] * 5000}).get("ids", [])) == 512
    huge = {"rows": [[1] * 512] * 512, "guesses": [[1] * 512] * 512, "phase": "steady"}
    begin = time.process_time()
    first = read_panel(LookaheadPanel, huge)
    assert "rows" not in first and time.process_time() - begin < 0.5
    assert read_panel(LookaheadPanel, huge) is first
    assert read_panel(LookaheadPanel, {**huge}) is not first


def test_a_type_that_no_panel_can_hold_is_named() -> None:
    """Its author learns it in the first test, not from a picture that stays empty."""

    class Odd(TypedDict):
        odd: set[int]

    with pytest.raises(TypeError, match="a panel cannot hold"):
        read_panel(Odd, {"odd": [1]})


def test_parameters_that_do_not_fit_have_their_defaults() -> None:
    """Their bounds are those of the method's own class, and what fits beside them holds."""
    header = record("lookahead").header
    for junk in (None, True, "7", 7.5, 0, 10**400, [7], {}):
        assert read_params(LookaheadParams, replace(header, params={"W": junk, "N": 4})) == LookaheadParams(N=4)
    assert read_params(LookaheadParams, header) == LookaheadParams(**header.params)
    apart = replace(header, params={"min_ngram": 9, "K": 4})  # more than the default max_ngram
    assert read_params(PromptLookupParams, apart) == PromptLookupParams(K=4)
    crossed = replace(header, params={"min_ngram": 3, "max_ngram": 2, "K": 4})
    assert read_params(PromptLookupParams, crossed) == PromptLookupParams(max_ngram=2, K=4)


@pytest.mark.parametrize(("family", "method"), RUNS)
def test_a_screen_says_rightly_how_guesses_hang_together(family: str, method: str) -> None:
    """On it depend the height of the tree and which numbers make sense."""
    screen, steps = screen_of(run_state(family, method).header), run_state(family, method).steps
    assert not screen.chain or not any(map(is_branching, steps))
    assert screen.guesses == any(step.drafted for step in steps)
    assert screen is SCREENS[method]
