"""The landscape: what the first step of a run accepts at every place of a text, without making the runs."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pytest

from analysis.landscape import measure_landscape
from decoding import Engine, load
from decoding.embedded import PROMPT as PROMPT_OF_POCKET
from decoding.errors import ParamError
from decoding.methods import METHODS
from decoding.model.table import TableSession
from decoding.parts.base import TAPPING
from tests import families
from tests.noise import noise
from tests.tiers import choose, few, sampled, slow
from tests.toys import CASES, counted_text, engine, hashed, plain, title

PROMPT = (3, 1, 4, 1, 5, 9, 2, 6)
NEW = 12
LEADING = TAPPING | {"hidden"}


@cache
def machine() -> Engine:
    return engine(counted_text())


@cache
def greedy_text() -> tuple[int, ...]:
    """Return the target's own, after a prompt that is not."""
    return (*PROMPT, *plain(counted_text(), PROMPT, 22))


def stepped(engine: Engine, text: Sequence[int], place: int, method: str, params: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what a run of the engine does there: None where no run writes the text's token first."""
    lead = bool(METHODS[method].needs & LEADING)
    if place - lead < 1:
        return (None, None)
    run = engine.decode(text[: place - lead], method, params, max_new_tokens=NEW, memory={})
    if lead and next(run).emitted != (text[place - 1],):
        return (None, None)
    step = next(run)
    return step.accepted, [*step.emitted]


@sampled
@pytest.mark.parametrize(("method", "params"), few(1, CASES), ids=title)
def test_every_place_is_what_a_step_does_there(method: str, params: Mapping[str, Any]) -> None:
    """A guess judged by the text where the target would say something else, or beyond the text's end."""
    text = greedy_text()
    [found] = measure_landscape(machine(), text, {method: params}, max_new_tokens=NEW)["methods"]
    compared = 0
    for place in range(1, len(text)):
        accepted, written = stepped(machine(), text, place, method, params)
        if accepted is not None:
            assert (found["accepted"][place - 1], found["written"][place - 1]) == (accepted, written), place
            compared += 1
    assert compared > 15


@pytest.mark.parametrize("method", ["prompt_lookup", "ngrammys", "rest", "jacobi", "draft_model"])
def test_a_text_that_the_target_would_not_write(method: str) -> None:
    """All of it is off the target's way: what was guessed right must be read after its own part of the text."""
    model = hashed(6, 1, 3, sharpness=8.0)
    other = engine(model)
    text = [int(abs(noise(1, [at], 1)[0]) * 100) % 6 for at in range(40)]
    landscape = measure_landscape(other, text, [method], max_new_tokens=NEW)
    [one] = landscape["methods"]
    assert landscape["greedy"] < 30
    for place in range(1, len(text)):
        assert (one["accepted"][place - 1], one["written"][place - 1]) == stepped(other, text, place, method, {}), place


@slow
@pytest.mark.parametrize("family", choose(["mistral", "qwen2-mixed"], ["qwen2-mixed"]))  # of both kinds of layers
def test_real_decoders_too(family: str) -> None:
    """A rolling window of 16 tokens, shorter than the text, and layers that see all of it; all methods together."""
    real = families.machine(family)
    begun = (5, 9, 33, 5, 9, 33, 5, 9)
    text = [*begun, *real.generate(begun, max_new_tokens=24, end_tokens=()).ids]
    landscape = measure_landscape(real, text, max_new_tokens=NEW)
    assert landscape["greedy"] >= 24
    for one in landscape["methods"]:
        for place in (10, 17, 18, len(text) - 1):
            wanted = stepped(real, text, place, one["name"], {})
            assert (one["accepted"][place - 1], one["written"][place - 1]) == wanted, (one["name"], place)


@pytest.mark.parametrize("family", ["dynamic", "longrope"])
def test_a_text_that_is_read_in_another_way_than_its_beginning_is_refused(family: str) -> None:
    """Behind 32 tokens these models rotate a prompt as its length asks for: no place of it would be that of a run."""
    real = families.machine(family)
    assert measure_landscape(real, [5, 9, 33, 7] * 8, ["jacobi"], first=31, max_new_tokens=NEW)["finished"]
    with pytest.raises(ParamError, match="shorten it"):
        measure_landscape(real, [5, 9, 33, 7] * 8 + [5], ["jacobi"], first=31, max_new_tokens=NEW)


def test_pocket_as_it_ships() -> None:
    """The parts that a visitor has, at a few places of an answer."""
    pocket = load("pocket")
    prompt = pocket.encode(pocket.as_turn(PROMPT_OF_POCKET))
    text = [*prompt, *pocket.generate(prompt, max_new_tokens=16).ids]
    methods = ("draft_model", "medusa", "kangaroo", "eagle3", "rest")
    landscape = measure_landscape(pocket, text, methods, first=len(prompt), max_new_tokens=NEW)
    assert landscape["greedy"] == len(text) - len(prompt)
    for one in landscape["methods"]:
        place = len(prompt) + 5
        wanted = stepped(pocket, text, place, one["name"], {})
        assert (one["accepted"][5], one["written"][5]) == wanted, one["name"]
    assert max(landscape["methods"][3]["accepted"]) > 1


def test_guesses_of_several_methods_are_read_together() -> None:
    """A pass for every place or method, where one is enough: the text, and what is guessed after its end."""
    landscape = measure_landscape(
        machine(), greedy_text(), ["prompt_lookup", "ngrammys", "jacobi"], first=10, max_new_tokens=NEW
    )
    assert landscape["passes"] <= 2 and landscape["rows"] < 200
    assert [len(one["accepted"]) for one in landscape["methods"]] == [len(greedy_text()) - 10] * 3
    alone = measure_landscape(machine(), greedy_text(), ["ngrammys"], first=10, max_new_tokens=NEW)["methods"][0]
    together = landscape["methods"][1]
    assert {**together, "seconds": 0} == {**alone, "seconds": 0}
    assert json.loads(json.dumps(landscape)) == landscape


@pytest.mark.parametrize(("method", "part"), [("kangaroo", "kangaroo"), ("eagle3", "eagle"), ("dflash", "dflash")])
def test_what_reads_along_reads_the_text_once(method: str, part: str) -> None:
    """Opened anew at every place, it would read N * N rows of a text of N tokens."""
    other = engine(counted_text())
    measure_landscape(other, greedy_text(), [method], max_new_tokens=NEW)
    assert len(other.part(part).sessions) == 1


@pytest.mark.parametrize("method", ["draft_model", "ouroboros"])
def test_a_draft_model_reads_behind_many_places_in_one_pass(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass for every token that is drafted at every place would take most of the time."""
    other, read, passes = engine(counted_text()), TableSession.read, list[int]()

    def counted(session: TableSession, tokens: Sequence[int], *rest: Any, **options: Any) -> Any:
        passes.append(len(tokens))
        return read(session, tokens, *rest, **options)

    monkeypatch.setattr(TableSession, "read", counted)
    [found] = measure_landscape(other, greedy_text(), [method], max_new_tokens=NEW)["methods"]
    assert len(passes) < len(greedy_text()) < sum(found["drafted"])


def test_few_rows_a_pass_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that begins in the middle of the text, with guesses after tokens that an earlier one has stored."""
    text = greedy_text()[4:]
    whole = measure_landscape(machine(), text, ["ngrammys", "rest", "draft_model"], max_new_tokens=NEW)
    monkeypatch.setattr("analysis.landscape.target.ROWS", 7)
    monkeypatch.setattr("analysis.landscape.draft_model.ROWS", 9)
    again = measure_landscape(machine(), text, ["ngrammys", "rest", "draft_model"], max_new_tokens=NEW)
    assert again["passes"] > whole["passes"]
    for one, other in zip(whole["methods"], again["methods"], strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}


def test_all_that_can_run_is_measured_and_every_token_has_a_text() -> None:
    landscape = measure_landscape(machine(), greedy_text(), first=20, max_new_tokens=NEW)
    assert [one["name"] for one in landscape["methods"]] == [name for name in METHODS if name != "autoregressive"]
    used = {token for one in landscape["methods"] for row in one["written"] for token in row}
    assert {str(token) for token in used} <= landscape["texts"].keys()
    assert all(one["lead"] == bool(METHODS[one["name"]].needs & LEADING) for one in landscape["methods"])


def test_it_can_be_stopped() -> None:
    """A visitor who has left: no method is half measured."""
    cancel = threading.Event()
    measured = list[str]()

    def progress(what: str, share: float) -> None:
        measured.append(what)
        if len(measured) == 3:
            cancel.set()

    methods = ["jacobi", "draft_model", "ngrammys", "rest"]
    landscape = measure_landscape(machine(), greedy_text(), methods, cancel=cancel, progress=progress)
    assert not landscape["finished"] and landscape["methods"] == [] and len(measured) == 3


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ([1], {}, "one token"),
        ([1] * 4097, {}, "shorten it"),
        ([1, 99], {}, "token id"),
        ([1, 2], {"first": 2}, "first must be"),
        ([1, 2], {"methods": "jacobi"}, "list of names"),
        ([1, 2], {"methods": []}, "list of names"),
        ([1, 2], {"methods": ["telepathy"]}, "unknown method"),
        ([1, 2], {"methods": {"jacobi": {"n": 0}}}, "n must be"),
        ([1, 2], {"max_new_tokens": 5000}, "context"),
        ([1, 2], {"cancel": 1}, "threading.Event"),
    ],
)
def test_what_cannot_be_measured_is_refused(text: list[int], options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ParamError, match=sentence):
        measure_landscape(machine(), text, **options)
