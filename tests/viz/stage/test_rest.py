"""REST on the stage: the matched end of the text, the passages that hold it, and the guesses that come out of them."""

from __future__ import annotations

import pytest

from decoding.types import Step, Trace
from tests.viz.records import record

from .scenes import numbers, shipped, steps

NAMES = ("golden", "smollm2-prime-rest", "rest-defaults")


def trace_of(name: str) -> Trace:
    """A recorded run."""
    return record("rest") if name == "golden" else shipped(name)


def hits(step: Step, node: int) -> int:
    """At how many places the text up to a guess was found."""
    return int(step.sources[node].split(":")[1])


@pytest.mark.parametrize("name", NAMES)
def test_the_matched_end_is_framed(name: str) -> None:
    """As many tokens of the text as were found, as far as they are in sight; it is said how many, and where."""
    matched = 0
    for _, step, scene in steps(trace_of(name)):
        span = step.panel.get("span", 0)
        frames = scene.patch.get("frames")
        if not span:
            assert not frames or not any(numbers(frames["loud"]))
            continue
        assert frames is not None
        line = [piece for piece in scene.pieces("propose") if piece.zone == "text"]
        [wide], [x] = numbers(frames["wide"]), numbers(frames["x"])
        inside = sorted((piece for piece in line if x <= piece.x < x + wide), key=lambda piece: piece.x)
        assert [piece.token for piece in inside] == list(step.panel["ending"])[-len(inside) :]
        assert len(inside) == min(span, len(line)) and inside[-1].node == 0
        words = " ".join(scene.words("propose"))
        assert (f"the last {span} tokens" if span > 1 else "the last token") in words
        assert f"found at {step.panel['hits']:,} position" in words
        matched += 1
    assert matched > 2


@pytest.mark.parametrize("name", NAMES)
def test_passages_begin_with_the_matched_end_and_go_on_as_a_branch(name: str) -> None:
    """The end flies out of the text, the rest is a path of the tree, and its count is the one that was recorded."""
    seen = 0
    for _, step, scene in steps(trace_of(name)):
        text = {piece.id: piece for piece in scene.pieces("propose") if piece.zone == "text"}
        rows = scene.rows("store")
        for row in rows:
            ending = [piece for piece in row if piece.node < 0]
            assert [piece.token for piece in ending] == list(step.panel["ending"])[-len(ending) :]
            assert all(piece.origin in text and text[piece.origin].token == piece.token for piece in ending)
            path = [piece.node for piece in row if piece.node > 0]
            assert [step.parents[node] for node in path] == [0, *path[:-1]]
            assert [piece.token for piece in row if piece.node > 0] == [step.tokens[node] for node in path]
            assert f"{hits(step, path[-1]):,} ×" in scene.words("propose")
            seen += 1
        guesses = {piece.node for piece in scene.pieces("propose") if piece.zone == "guesses"}
        assert {piece.node for row in rows for piece in row if piece.node > 0} == guesses
        hidden = step.drafted - len(guesses)
        assert not hidden or f"and {hidden} guess" in " ".join(scene.words("propose"))
    assert seen > 3


@pytest.mark.parametrize("name", NAMES)
def test_guesses_flow_out_of_the_passages(name: str) -> None:
    """Every guess flies out of a passage's token; the bar below it is the share of the places that were read."""
    seen = 0
    for _, step, scene in steps(trace_of(name)):
        store = {piece.id: piece for row in scene.rows("store") for piece in row}
        guesses = [piece for piece in scene.pieces("propose") if piece.zone == "guesses"]
        assert all(piece.origin in store and store[piece.origin].node == piece.node for piece in guesses)
        lines = scene.links("flow", "propose")
        assert len(lines) == len(scene.rows("store")) and not scene.links("flow", "verify")
        assert {store[one].y for one, _ in lines} == {row[0].y for row in scene.rows("store")}
        nodes = numbers(scene.patch["pieces"]["nodes"])
        for i, value in zip(*map(numbers, scene.patch.get("some", {}).get("share", ((), ()))), strict=True):
            assert value == pytest.approx(hits(step, nodes[i]) / step.panel["read"], abs=0.001)
            seen += 1
    assert seen > 5


@pytest.mark.parametrize("name", NAMES)
def test_nothing_found_says_what_was_looked_for(name: str) -> None:
    """The shortest end that is not in the datastore, and how it was searched."""
    seen = 0
    for run, step, scene in steps(trace_of(name)):
        words = " ".join(scene.words("propose"))
        missing = step.panel.get("span") == 0
        assert ("is not in the datastore" in words) == missing
        if missing:
            assert not scene.rows("store") and f"down to {run.header.params['shortest']}" in words
            last = run.text(step.tokens[0]).strip()
            assert last in words or not last.isalnum()
        seen += missing
    assert seen > 1


def test_an_accepted_branch_that_is_longer_than_its_line_is_in_the_text() -> None:
    """What there was no room for comes into the text; the text moves on, and the target's own token is in sight."""
    seen = 0
    for _, step, scene in steps(trace_of("rest-defaults")):
        line = [piece for piece in scene.pieces("commit") if piece.zone == "text" and piece.y == 0]
        line.sort(key=lambda piece: piece.x)
        new = [piece.token for piece in line][-len(step.emitted) :]
        assert new == list(step.emitted) and line[-1].x <= 12
        seen += step.accepted > 5
    assert seen > 2
