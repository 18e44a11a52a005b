"""Autoregressive decoding on the stage: a token goes into the target, another comes out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.viz.records import changed, record, timed
from viz.run_state import RunState

from .scenes import Scene, numbers


def test_one_token_goes_in_and_the_answer_comes_out_of_it() -> None:
    """From the reading on a copy of the last token in it, and what it says flies out of that."""
    run = RunState.of(record("autoregressive"))
    for k, step in enumerate(run.steps):
        scene = Scene(run, k)
        assert {zone["name"] for zone in scene.base["zones"]} == {"text", "target", "time"}
        [last] = [piece for piece in scene.pieces("propose") if piece.node == 0]
        for phase, inside in (("propose", 0), ("verify", 1), ("accept", 1), ("commit", 1)):
            read = [piece for piece in scene.pieces(phase) if piece.zone == "target"]
            assert [(piece.token, piece.origin) for piece in read] == [(last.token, last.id)] * inside
        [own] = [piece for piece in scene.pieces("accept") if piece.zone == "text" and piece.y == 1]
        [read] = [piece for piece in scene.pieces("accept") if piece.zone == "target"]
        assert (
            own.token == step.emitted[0]
            and own.origin == read.id
            and (read.id, own.id) in scene.links("flow", "accept")
        )
        assert f"once for {step.fed} token" in " ".join(scene.words("propose"))


def test_the_token_goes_straight_down() -> None:
    """It is in the target below its place in the text, on a wide stage and on a narrow one."""
    scene = Scene(RunState.of(record("autoregressive")), 3)
    names = [zone["name"] for zone in scene.base["zones"]]
    for floor in ("wide", "narrow"):
        places = scene.base[floor]["places"]
        columns = {places[names.index(piece.zone)][0] + piece.x for piece in scene.pieces("verify") if piece.node == 0}
        assert len(columns) == 1


def test_the_bar_is_the_share_of_the_pass() -> None:
    """Of the recorded times; where there are none nothing is said."""
    bare = Scene(RunState.of(record("autoregressive")), 3)
    assert not [word for word in bare.words("commit") if "%" in word]
    trace = timed(record("autoregressive"))
    for k, step in enumerate(trace.steps):
        scene = Scene(RunState.of(trace), k)
        share = step.timing.forward_ms / step.timing.total_ms
        assert f"{share:.0%} of the time for one token" in scene.words("accept")
        assert not [word for word in scene.words("verify") if "time" in word]
        wide = dict(zip(scene.patch["frames"]["text"]["strings"], numbers(scene.patch["frames"]["wide"]), strict=True))
        [words] = [text for text in wide if text]
        assert f"{step.timing.forward_ms:.3g} ms of {step.timing.total_ms:.3g} ms" in words
        assert wide[words] == pytest.approx(7 * share, abs=0.001)
    odd = changed(trace, 3, timing=replace(trace.steps[3].timing, forward_ms=1e9))
    assert not [word for word in Scene(RunState.of(odd), 3).words("accept") if "%" in word]


def test_the_weights_are_those_that_a_pass_reads() -> None:
    """From the model's card; none where it does not say."""
    trace = record("autoregressive")
    for size, words in ((None, "all layers, once"), (269e6, "269 MB of weights"), (13.5e9, "13.5 GB of weights")):
        model = replace(trace.header.model, pass_bytes=None if size is None else int(size))
        run = RunState.of(replace(trace, header=replace(trace.header, model=model)))
        assert words in " ".join(Scene(run, 3).words("propose"))
