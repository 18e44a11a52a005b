"""The slots that are drawn against those that the record tells of."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from decoding.types import Role
from tests.viz.engines import RUNS, drawn, run_state
from viz.cache_slots import Use, cache_state, fed_nodes
from viz.lessons.sources import RunLibrary
from viz.palette import MEANINGS, Fate
from viz.run_state import RunState
from viz.views import cache
from viz.views.cache_drawings import LinesOfSlots, RingOfSlots

COLOURS = {"$line": Use.READ, "$panel": Use.UNTOUCHED, "$paper": Use.EMPTY}


def slots_of(state: RunState, trace: dict[str, Any], below: float = 0.0) -> list[int]:
    """The slots that bars or arcs cover, read off their places: one slot of a ring is one part of the turn."""
    if trace["type"] == "bar":
        page = LinesOfSlots(state.header).width
        pieces = zip(trace["x"], trace["base"], trace["y"], strict=True)
        return [round(y - below) * page + first + i for length, first, y in pieces for i in range(length)]
    turn = 360 / state.header.slots
    arcs = [
        (middle / turn - width / turn / 2, width / turn)
        for middle, width in zip(trace["theta"], trace["width"], strict=True)
    ]
    assert all(abs(value - round(value)) < 0.02 for arc in arcs for value in arc), "an arc ends between two slots"
    return [round(first) + i for first, count in arcs for i in range(round(count))]


def looks(state: RunState, k: int, phase: str = "commit", skip: str = "$text") -> dict[int, str]:
    """The colour that is on top in every slot, read off the figure."""
    base, order = cache.base(state)["data"], ("propose", "verify", "answers", "accept", "commit")
    colours = dict[int, str]()
    for i, (before, trace, seen) in enumerate(zip(base, drawn(state, k, cache), cache.VIEW.phases, strict=True)):
        if before.get("type") not in ("bar", "barpolar") or order.index(seen) > order.index(phase):
            continue
        colour = before["marker"]["color"]
        if i == 0 and state.header.slots:
            colours = dict.fromkeys(range(state.header.slots), colour)
        elif colour != skip:
            colours |= dict.fromkeys(slots_of(state, trace), colour)
    return colours


def use(colour: str) -> Use:
    """What a colour says of a slot after the step."""
    if colour in COLOURS:
        return COLOURS[colour]
    kept = [MEANINGS[fate].colour for fate in (Fate.PROMPT, Fate.ROOT, Fate.ACCEPTED)]
    return Use.STORED if colour in kept else Use.REJECTED


@pytest.mark.parametrize(("family", "method"), RUNS)
def test_every_slot_looks_like_what_became_of_it(family: str, method: str) -> None:
    state = run_state(family, method)
    for k in range(len(state.steps)):
        wanted, seen = cache_state(state.header, state.steps, k).uses, looks(state, k)
        assert [use(seen[slot]) for slot in range(len(wanted))] == list(wanted), f"step {k}"


@pytest.mark.parametrize("slots", [40, 50])
def test_a_ring_comes_round(slots: int) -> None:
    """With few slots: after the last one comes the first, and what was overwritten is marked."""
    state = run_state("mistral", "draft_model")
    ring = RunState(replace(state.header, slots=slots), state.texts, state.steps, state.ids)
    overwrote = 0
    for k in range(len(state.steps)):
        cache_after = cache_state(ring.header, ring.steps, k)
        assert [use(look) for _, look in sorted(looks(ring, k).items())] == list(cache_after.uses)
        marked = {*slots_of(ring, drawn(ring, k, cache)[10])}
        assert marked == {place % slots for place in cache_after.lost}
        overwrote += len(marked)
    assert overwrote > 0


def test_accepted_guesses_are_not_shown_as_rejected() -> None:
    """They move down to the text; what they leave behind is free, and no mark of a rejection."""
    got, left = run_state("llama", "ngrammys"), 0
    for k, step in enumerate(got.steps):
        cache = cache_state(got.header, got.steps, k)
        seen = looks(got, k)
        for node in step.path[1:]:
            place = step.start - 1 + node
            assert seen[place] == (MEANINGS[Fate.ACCEPTED].colour if place < cache.kept else "$faint")
            left += place >= cache.kept
    assert left > 0


def test_a_changed_record_looks_different() -> None:
    """One guess more accepted than was: the picture of the right record would not show it."""
    state = run_state("llama", "ngrammys")
    k = next(k for k, step in enumerate(state.steps) if k and step.accepted < step.drafted)
    step = state.steps[k]
    more = replace(step, accepted=step.accepted + 1, emitted=(*step.emitted, 1))
    changed = RunState(state.header, state.texts, [*state.steps[:k], more], state.ids)
    assert looks(changed, k) != looks(state, k)


def test_nothing_is_shown_before_the_verdict() -> None:
    """While the target reads, guesses are only guesses, and the write head has not moved."""
    state = run_state("llama", "ngrammys")
    for k, step in enumerate(state.steps):
        colours = set(looks(state, k, "verify").values())
        assert not colours & {MEANINGS[Fate.ACCEPTED].colour, MEANINGS[Fate.REJECTED].colour}
        assert (MEANINGS[Fate.PROPOSED].colour in colours) == (Role.VERIFY in step.roles)
    heads = [phase for name, phase in zip(cache.base(state)["data"], cache.VIEW.phases, strict=True) if "text" in name]
    assert heads == ["propose", "commit", "verify"]


def test_a_prefill_names_its_chunks() -> None:
    state = run_state("llama", "lookahead")
    signs = drawn(state, 0, cache)[11]
    assert list(signs["text"]) == ["chunk 1", "chunk 2", "chunk 3"]
    page = LinesOfSlots(state.header).width
    places = [round(y + 0.5) * page + x - 0.5 for x, y in zip(signs["x"], signs["y"], strict=True)]
    assert places == [0, 16, 32]


def test_a_header_from_elsewhere_is_drawn_in_bounds() -> None:
    state = run_state("llama", "autoregressive")
    header = replace(state.header, slots=10**15, max_new_tokens=10**12)
    step = replace(state.steps[0], fed=10**12, tokens=(), parents=(), roles=(), sources=(), path=(), choices=())
    strange = RunState(header, {}, [step], state.ids)
    assert len(json.dumps([cache.base(strange), cache.frame(strange, 0)])) < 8_000
    linear = RunState(replace(header, slots=0), {}, [step], state.ids)
    assert len(json.dumps([cache.base(linear), cache.frame(linear, 0)])) < 8_000


@pytest.mark.parametrize(("family", "method"), RUNS)
def test_the_rows_of_a_step_are_named_in_the_order_of_their_slots(family: str, method: str) -> None:
    """A strip of slots without tokens does not say which of them holds which guess."""
    state = run_state(family, method)
    for k, step in enumerate(state.steps):
        *_, tokens, words = drawn(state, k, cache)
        shown = [*fed_nodes(step)][:24]  # in lines of 12 on a page, of 8 below a ring
        assert list(tokens["customdata"]) == shown
        assert [int(text[1:]) for text in tokens["text"]] == [step.tokens[node] for node in shown]
        places = [*zip(tokens["y"], tokens["x"], strict=True)]
        assert places == sorted(places)
        (said,) = words["text"]
        slots = state.header.slots or 10**9
        assert f"slots {(step.start - 1) % slots}" in said


def test_rows_that_go_round_a_ring_go_on_at_its_first_slot() -> None:
    state = run_state("mistral", "draft_model")
    step = next(step for step in state.steps if len(step.tokens) > 2 and step.index)
    slots = step.start + 1
    ring = RunState(replace(state.header, slots=slots), state.texts, state.steps, state.ids)
    *_, words = drawn(ring, step.index, cache)
    assert f"slots {slots - 2} to {slots - 1}, then 0" in words["text"][0]


def test_only_a_ring_is_drawn_as_one() -> None:
    lines = run_state("mistral", "medusa")
    ring = RunState(replace(lines.header, slots=50), lines.texts, lines.steps, lines.ids)
    assert lines.header.slots == 0
    kinds = [{part["type"] for part in cache.base(run)["data"] if "type" in part} for run in (lines, ring)]
    assert kinds == [{"bar", "scatter"}, {"barpolar", "scatterpolar"}]


def test_a_ring_begins_at_the_top_and_its_slots_go_clockwise() -> None:
    """The seam between the last slot and the first is at the top, and every slot has the same part of the turn."""
    state = run_state("mistral", "draft_model")
    slots = 40
    ring = RunState(replace(state.header, slots=slots), state.texts, state.steps, state.ids)
    figure = cache.base(ring)
    angles = figure["layout"]["polar"]["angularaxis"]
    assert (angles["direction"], angles["rotation"]) == ("clockwise", 90)
    assert dict(zip(angles["tickvals"], angles["ticktext"], strict=True)) == {0: "0", 90: "10", 180: "20", 270: "30"}
    drawing = RingOfSlots(slots)
    whole = drawing.cover([range(80, 120)])
    assert (whole["theta"], whole["width"]) == ([180], [360])
    assert drawing.cover([range(39, 40), range(40, 41)]) == {"theta": [355.5, 4.5], "width": [9, 9]}
    assert drawing.cover([range(78, 83)]) == {"theta": [351, 13.5], "width": [18, 27]}, "it goes on at the first slot"
    assert drawing.cover([range(5, 5)]) == {}


@pytest.mark.parametrize("step", [10, 19, 20, 26])
def test_marks_of_a_ring_are_at_the_slots_that_they_name(step: int) -> None:
    """A recorded run whose step 19 writes the last slots and the first ones."""
    state = RunState.of(RunLibrary().trace("lesson-ring"))
    cache_after = cache_state(state.header, state.steps, step)
    window, following, lost = drawn(state, step, cache)[11:14]
    for mark, place in ((window, cache_after.seen), (following, cache_after.kept)):
        slot = place % 768
        assert mark["theta"][0] == pytest.approx(360 * (slot + 0.5) / 768, abs=0.001)
        assert mark["marker"]["angle"][0] == mark["theta"][0], "it points outwards"
        assert str(mark["text"][1]).endswith(f"slot {slot}")
    assert [words.split(": ")[1] for words in lost.get("text", [])] == [f"{len(cache_after.lost)} slots"] * bool(
        cache_after.lost
    )
    words = str(drawn(state, step, cache)[-1]["text"][0])
    assert (words == "written in this step, slots 766 to 767, then 0 to 3") == (step == 19)
    assert len(json.dumps(cache.frame(state, step))) < 1_500
