"""DFlash on the stage: features in the columns of the text, a block of masks, and the guesses that fill it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from decoding.types import Trace
from tests.toys import counted_text, engine
from tests.viz.records import changed, record
from viz.methods.stages.features import unsayable_words
from viz.run_state import RunState
from viz.stage.parts import depths_of
from viz.wording import share

from .scenes import Scene

PROMPT = (3, 1, 4, 1, 5, 9, 2, 6)
TREE: dict[str, Any] = {"form": "tree", "m": 9, "k": 3, "gamma": 4}
DRAWN: dict[str, Any] = {"form": "drawn", "gamma": 4}
FORMS = pytest.mark.parametrize("params", [{}, TREE, DRAWN], ids=["chain", "tree", "drawn"])


def run_of(params: dict[str, Any]) -> RunState:
    return _run(tuple(params.items()))


@cache
def _run(params: tuple[tuple[str, Any], ...]) -> RunState:
    sampling = {"temperature": 0.7, "seed": 4}
    options: dict[str, Any] = {"sampling": sampling, "max_new_tokens": 24, "record": "full"}
    return RunState.of(engine(counted_text()).generate(PROMPT, "dflash", dict(params), **options).trace)


def drafting(run: RunState) -> list[int]:
    steps = [k for k, step in enumerate(run.steps) if step.drafted]
    assert steps and any(run.steps[k].accepted for k in steps)
    return steps


@FORMS
def test_features_and_block_are_below_the_tokens_that_they_are_of(params: dict[str, Any]) -> None:
    """The root has no feature yet: it is the first row of the block."""
    run = run_of(params)
    for k in drafting(run):
        scene, last = Scene(run, k), run.steps[k].start - 1
        zones = zip(scene.base["zones"], scene.base["wide"]["places"], strict=True)
        left = {zone["name"]: x for zone, (x, _) in zones}
        column = {piece.id: left[piece.zone] + piece.x for piece in scene.pieces("propose")}
        text = {column[piece.id]: piece.token for piece in scene.pieces("propose") if piece.zone == "text"}
        rows = scene.rows("features")
        assert len(rows) == 1 + len(run.steps[k].panel["layers"])
        assert all([piece.token for piece in row] == list(run.ids[last - len(row) : last]) for row in rows)
        assert all(text[column[piece.id]] == piece.token for row in rows for piece in row)
        root, *masks = scene.rows("masks")[0]
        assert (root.node, root.token) == (0, text[column[root.id]]) and {mask.token for mask in masks} == {-1}
        guesses = [piece for piece in scene.pieces("propose") if piece.zone == "guesses"]
        depths = depths_of(run.steps[k].parents)
        assert all(column[piece.id] == column[root.id] + depths[piece.node] for piece in guesses)


@FORMS
def test_the_block_has_a_mask_for_every_guess_that_may_still_be_written(params: dict[str, Any]) -> None:
    run = run_of(params)
    for k in drafting(run):
        step = run.steps[k]
        masks = len(Scene(run, k).rows("masks")[0]) - 1
        left = len(PROMPT) + 24 - step.start - 1
        assert masks == min(params.get("gamma", 15), step.panel["block"], left)


def test_a_chain_comes_out_of_the_masks_and_shows_how_likely_each_token_is() -> None:
    run = run_of({})
    for k in drafting(run):
        scene, step = Scene(run, k), run.steps[k]
        masks = scene.rows("masks")[0]
        guesses = {piece.node: piece for piece in scene.pieces("propose") if piece.zone == "guesses"}
        assert all(piece.origin == masks[node].id for node, piece in guesses.items())
        words = scene.words("propose")
        assert {share(chance).replace("under 0.01", "<.01") for chance in step.panel["chances"]} <= {*words}


def test_a_row_that_guesses_the_token_after_it_has_its_guess_come_out_of_it() -> None:
    """The root's row makes the first guess, and the block has a mask fewer."""
    trace = record("dflash")
    run = RunState.of(trace)
    k = drafting(run)[0]
    anchored = RunState.of(changed(trace, k, panel={**run.steps[k].panel, "anchored": True}))
    before, after = (Scene(each, k).rows("masks")[0] for each in (run, anchored))
    assert len(after) == len(before) - 1
    guesses = {piece.node: piece for piece in Scene(anchored, k).pieces("propose") if piece.zone == "guesses"}
    assert all(piece.origin == after[node - 1].id for node, piece in guesses.items())


def test_drawn_tokens_have_what_decided_below_them() -> None:
    """The chance is known with the answers, the number that it was tested with when the guess is judged."""
    run = run_of(DRAWN)
    for k in drafting(run):
        scene = Scene(run, k)
        assert any(word.startswith("q ") for word in scene.words("propose"))
        assert "kept with a chance of min(1, p/q)" in {*scene.words("answers")} - {*scene.words("propose")}
        assert "kept if u is less than min(1, p/q)" in {*scene.words("accept")} - {*scene.words("answers")}


def test_guesses_of_a_tree_come_out_of_the_candidates_of_their_place() -> None:
    """All guesses with the same token at the same depth are the same candidate."""
    run, merged = run_of(TREE), 0
    for k in drafting(run):
        scene, step = Scene(run, k), run.steps[k]
        masks, *rows = scene.rows("masks")
        candidates = {(piece.x, piece.token): piece.id for row in rows for piece in row}
        guesses = [piece for piece in scene.pieces("propose") if piece.zone == "guesses"]
        depths = depths_of(step.parents)
        for piece in guesses:
            depth = depths[piece.node]
            assert piece.origin == candidates.get((depth, piece.token), masks[depth].id)
        merged += len(guesses) > len({(depths[piece.node], piece.token) for piece in guesses})
        accepted = {(depths[node], step.tokens[node]) for node in step.path[1:]}
        assert accepted <= {*candidates}
    assert merged


def test_what_the_drafter_cannot_say_does_not_run_into_its_guesses() -> None:
    """It is told in short lines on the left, once the target's token is known."""
    trace = record("dflash")
    k = next(k for k, step in enumerate(trace.steps) if step.drafted)
    panel = {**trace.steps[k].panel, "unsayable": [trace.steps[k].emitted[-1]], "vocabulary": 2304}
    run = RunState.of(changed(trace, k, panel=panel))
    scene, sentence = Scene(run, k), unsayable_words(run, run.steps[k])
    lines = [word for word in scene.words("accept") if word and word in sentence]
    assert " ".join(lines) == sentence and len(lines) == 2
    assert not any(line in scene.words("propose") for line in lines)


def test_panels_of_other_makers_are_drawn() -> None:
    """Numbers that no run of ours would write."""
    trace: Trace = record("dflash")
    k = next(k for k, step in enumerate(trace.steps) if step.drafted)
    for panel in (
        {},
        {"products": [7.0] * 60, "chances": [-3.0] * 60, "layers": [2**30] * 9, "block": 0, "stopped": "budget"},
        {"products": [0.5], "chances": [9.0], "unsayable": [*range(500)], "vocabulary": None, "block": 2**30},
    ):
        for params in ({}, TREE):
            header = replace(trace.header, params=params)
            run = RunState.of(replace(changed(trace, k, panel=panel), header=header))
            assert Scene(run, k).pieces("commit")


@pytest.mark.parametrize(
    ("stopped", "words"), [("start", "the prompt has to be read first"), ("interrupted", "the run was interrupted")]
)
def test_a_step_without_a_guess_says_why(stopped: str, words: str) -> None:
    scene = Scene(RunState.of(changed(record("dflash"), 0, panel={"stopped": stopped})), 0)
    assert f"no guess: {words}" in scene.words("propose")
