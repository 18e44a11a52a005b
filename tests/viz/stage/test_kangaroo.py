"""Kangaroo on the stage: out of the first layers one guess after another, through the other layers all at once."""

from __future__ import annotations

import pytest

from decoding.types import Trace
from tests.viz.records import changed, record
from viz.notebook import figure
from viz.palette import LIGHT, Fate
from viz.run_state import RunState

from .scenes import Scene, Shown, numbers, shipped, steps

NAMES = ("kangaroo-defaults", "smollm2-rain-kangaroo")


TRACES = [record("kangaroo"), *map(shipped, NAMES)]
every_trace = pytest.mark.parametrize("trace", TRACES, ids=["golden", *NAMES])


def inside(scene: Scene, zone: str, phase: str) -> list[Shown]:
    """A zone's pieces from left to right."""
    return sorted((piece for piece in scene.pieces(phase) if piece.zone == zone), key=lambda piece: piece.x)


@every_trace
def test_guesses_come_out_of_the_first_layers_one_after_another(trace: Trace) -> None:
    """Each out of the token in front of it, which the first layers have read; that one came from its own place."""
    drafted = 0
    for _, step, scene in steps(trace):
        read, guesses = inside(scene, "read", "propose"), inside(scene, "guesses", "propose")
        assert [piece.token for piece in read] == (list(step.tokens) if guesses else [])
        assert [piece.token for piece in guesses] == list(step.tokens[1:])
        if not guesses:
            continue
        assert [piece.origin for piece in guesses] == [piece.id for piece in read[:-1]]
        assert [piece.origin for piece in read[1:]] == [piece.id for piece in guesses]
        chain = {(before.id, guess.id) for before, guess in zip(read, guesses, strict=False)}
        assert chain <= set(scene.links("flow", "propose"))
        turns = dict(zip(*map(numbers, scene.patch["some"]["turn"]), strict=True))
        ids = numbers(scene.patch["pieces"]["id"])
        order = [turns.get(ids.index(piece.id), 0) for pair in zip(read, guesses, strict=False) for piece in pair]
        assert order == sorted(order) and len(set(order)) == len(order)
        drafted += len(guesses)
    assert drafted > 10


@every_trace
def test_the_other_layers_read_all_in_one_pass_from_what_was_kept(trace: Trace) -> None:
    """Nothing is in them before "verify", then all of it, and each token comes from the first layers."""
    for _, step, scene in steps(trace):
        assert not inside(scene, "passed", "propose")
        read, passed = inside(scene, "read", "verify"), inside(scene, "passed", "verify")
        assert [piece.token for piece in passed] == list(step.tokens)
        assert [piece.origin for piece in passed] == [piece.id for piece in read]
        assert [piece.node for piece in passed] == [*range(len(step.tokens))]
        layer = step.panel["exit_layer"]
        first = "layer 1" if layer == 1 else f"layers 1 to {layer}"
        kept = f"kept: {first} already ran"
        assert (kept in scene.words("verify")) == (len(step.tokens) > 1) and kept not in scene.words("propose")
        assert f"{first}, with the adapter" in scene.frames("propose")
        assert f"layers {layer + 1} to the last" in scene.frames("propose")


@every_trace
def test_the_full_exit_decides_and_says_its_own(trace: Trace) -> None:
    """Fates stand there, the target's own token comes out of the last right one, and what was wrong is forgotten."""
    for _, step, scene in steps(trace):
        passed = inside(scene, "passed", "accept")
        assert [piece.node for piece in passed if piece.fate == Fate.ACCEPTED] == list(step.path[1:])
        kept = [piece.node for piece in inside(scene, "passed", "commit")]
        assert kept == list(step.path) == [piece.node for piece in inside(scene, "read", "commit")]
        answers = [piece for piece in inside(scene, "text", "accept") if piece.y == 1][step.accepted :]
        assert [piece.origin for piece in answers] == [passed[step.accepted].id] * (len(step.emitted) - step.accepted)


@every_trace
def test_gauges_show_how_sure_the_exit_was(trace: Trace) -> None:
    """One below each guess, with the panel's number and the limit; the one that stopped the draft is told."""
    stopped = 0
    for run, step, scene in steps(trace):
        sure, eta = step.panel["confidence"], run.header.params["eta"]
        frames = scene.patch["frames"]
        filled = [each for each in numbers(frames.get("filled", ())) if each >= 0]
        assert filled == pytest.approx(sure, abs=0.001)
        assert {limit for limit in numbers(frames.get("limit", ())) if limit} == ({eta} if sure else set())
        words = scene.words("propose")
        assert {f"{share:.2f}" for share in sure} <= set(words) and (f"limit {eta:g}" in words) == bool(sure)
        if step.panel["stopped"] == "unsure":
            assert f"Stopped: {sure[-1]:.2f} is under the limit {eta:g}" in words
            stopped += 1
        if step.panel["stopped"] == "start":
            assert "No draft: the prompt has to be read first" in words
    assert stopped


def test_gauges_are_in_the_picture_of_the_notebook_too() -> None:
    """Each is filled to its share, and its line is at the limit."""
    trace = shipped("kangaroo-defaults")
    shapes = figure(trace, "stage", 1).to_dict()["layout"]["shapes"]
    filled = [each["y1"] - each["y0"] for each in shapes if each.get("fillcolor") == LIGHT["proposed"]]
    sure = trace.steps[1].panel["confidence"]
    assert [each / filled[0] for each in filled] == pytest.approx([share / sure[0] for share in sure], abs=0.01)
    [limit] = {each["y0"] for each in shapes if each["type"] == "line" and "dash" in each["line"]}
    high = filled[0] / sure[0]
    bottom = max(each["y1"] for each in shapes if each.get("fillcolor") == LIGHT["proposed"])
    assert (bottom - limit) / high == pytest.approx(0.6, abs=0.01)


def test_what_is_not_recorded_is_not_made_up() -> None:
    """Without the exit's layer no layer has a number, and confidences that are none have no gauge."""
    trace = shipped("kangaroo-defaults")
    bare = Scene(RunState.of(changed(trace, 3, panel={"confidence": [0.9, 7.0], "stopped": "unsure"})), 3)
    assert "the first layers, with the adapter" in bare.frames("propose")
    assert "the other layers" in bare.frames("propose") and "filled" not in bare.patch["frames"]
    assert not [word for word in bare.words("propose") if "limit" in word]
