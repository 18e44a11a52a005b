"""SuffixDecoding on the stage: the ending, where else it occurs, both scores, and the guesses that come out of it."""

from __future__ import annotations

import pytest

from decoding.types import Trace
from tests.viz.records import changed, record
from viz.run_state import RunState
from viz.wording import count

from .scenes import Scene, numbers, shipped, steps

NAMES = ("golden", "smollm2-prime-suffix")


def trace_of(name: str) -> Trace:
    """A recorded run."""
    return record("suffix") if name == "golden" else shipped(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_ending_is_tied_to_the_places_where_it_stands_as_well(name: str) -> None:
    """A passage begins with the ending and goes on as the record says; those of this text come out of it."""
    seen = 0
    for run, step, scene in steps(trace_of(name)):
        text = {piece.id: piece for piece in scene.pieces("propose") if piece.zone == "text"}
        [root] = [piece for piece in text.values() if piece.node == 0]
        rows, places = scene.rows("places"), step.panel.get("places", [])
        assert len(rows) == min(len(places), 4)
        lines = scene.links("match", "propose")
        assert len(lines) == len(rows) and {one for one, _ in lines} <= {root.id}
        for row, place in zip(rows, places, strict=False):
            ending, tokens = list(step.panel["ending"])[-2:], [piece.token for piece in row]
            assert tokens[: len(ending)] == ending
            follows = tokens[len(ending) :]
            assert follows == list(place["follows"])[: len(follows)] and follows
            assert row[len(ending) - 1].id in {other for _, other in lines}
            if not place["answer"]:
                first = place["place"] - len(ending)
                assert tokens == list(run.ids[first : first + len(tokens)])
                assert count(step.start - place["place"], "token") + " back" in scene.words("propose")
                inside = [piece for piece in row if piece.origin in text]
                assert all(text[piece.origin or 0].token == piece.token for piece in inside)
            elif place["answer"] == 1:
                assert "last answer" in scene.words("propose")
            seen += 1
    assert seen > 5


@pytest.mark.parametrize("name", NAMES)
def test_guesses_come_out_of_passages(name: str) -> None:
    """A guess that a passage shows flies out of it, with the same token; its bar is how often it came next."""
    seen = 0
    for _, step, scene in steps(trace_of(name)):
        shown = {piece.id: piece for row in scene.rows("places") for piece in row}
        guesses = [piece for piece in scene.pieces("propose") if piece.zone == "guesses"]
        for guess in guesses:
            if guess.origin in shown:
                origin = shown[guess.origin]
                assert (origin.token, origin.node) == (guess.token, guess.node) == (step.tokens[guess.node], guess.node)
                seen += 1
        assert not scene.links("flow", "verify")
        hidden = step.drafted - len(guesses)
        assert not hidden or f"and {hidden} guess" in " ".join(scene.words("propose"))
        nodes = numbers(scene.patch["pieces"]["nodes"])
        side = step.panel["local" if step.panel.get("chosen") == "local" else "earlier"]
        for i, value in zip(*map(numbers, scene.patch.get("some", {}).get("share", ((), ()))), strict=True):
            times = int(step.sources[nodes[i]].split(":")[1])
            assert value == pytest.approx(times / side["count"], abs=0.001)
    assert seen > 8


@pytest.mark.parametrize("name", NAMES)
def test_both_scores_are_said_and_the_larger_one_is_loud(name: str) -> None:
    seen = set[str]()
    for _, step, scene in steps(trace_of(name)):
        words = scene.words("propose")
        for side in (step.panel["local"], step.panel["earlier"]):
            if side["guesses"]:
                assert f"{side['score']:.2f} of {side['guesses']} guess{'es' * (side['guesses'] > 1)}" in words
        assert ("nothing" in words) == (not step.panel["local"]["guesses"] or not step.panel["earlier"]["guesses"])
        bars = numbers(scene.patch["frames"]["filled"]).count(1) if "filled" in scene.patch.get("frames", {}) else 0
        assert bars == sum(side["guesses"] > 0 for side in (step.panel["local"], step.panel["earlier"]))
        loud = numbers(scene.patch["words"]["loud"])
        texts = [text for text, is_loud in zip(scene.patch["words"]["text"]["strings"], loud, strict=True) if is_loud]
        chosen = step.panel.get("chosen")
        if chosen:
            side = step.panel["local" if chosen == "local" else "earlier"]
            assert any(text.startswith(f"{side['score']:.2f}") for text in texts)
            seen.add(chosen)
        elif step.start < len(trace_of(name).header.prompt) + 5:
            assert any("no guess after" in text for text in texts)
    assert seen == ({"local"} if name == "golden" else {"local", "global"})


@pytest.mark.parametrize("name", NAMES)
def test_the_same_token_of_a_text_is_the_same_piece(name: str) -> None:
    """A passage that moves on with the text glides: its pieces keep their names, and no other token has them."""
    kept, seen = 0, dict[int, int]()
    for _, _, scene in steps(trace_of(name)):
        now = {piece.id: piece.token for row in scene.rows("places") for piece in row}
        assert all(seen[piece] == token for piece, token in now.items() if piece in seen)
        kept += len(now.keys() & seen.keys())
        seen |= now
    assert kept > 3


def test_a_panel_of_another_making_is_drawn_as_far_as_it_can_be_read() -> None:
    """A file may claim anything."""
    trace = record("suffix")
    k = next(k for k, step in enumerate(trace.steps) if step.drafted)
    places = [{"answer": 3, "place": 0, "follows": []}, {"answer": 0, "place": 10**9, "follows": [1]}, {"answer": 0}]
    for panel in (
        {},
        {"chosen": "local", "ending": [1] * 400, "places": places},
        {"chosen": "global", "local": {"p": 1, "count": 0, "score": 1e9, "guesses": 3}, "places": places},
        {"earlier": {"score": 0.5, "guesses": 2}, "answers": -4},
    ):
        assert Scene(RunState.of(changed(trace, k, panel=panel)), k).pieces("commit")
