"""Medusa on the stage: heads list words, and every guess of the tree comes out of one of them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from decoding.types import Step, Trace
from tests.viz.records import changed, record
from viz.cells import STEP_PHASES
from viz.narration import say
from viz.palette import Fate, meanings
from viz.run_state import RunState
from viz.views.pair import SAY, of_node

from .scenes import Scene, shipped, steps

NAMES = ("medusa-defaults", "medusa-figure-2", "medusa-best-guesses-only", "medusa-typical", "smollm2-rain-medusa")


def heads_word(step: Step, node: int) -> tuple[int, int]:
    """Head and rank of a guess."""
    head, rank = step.sources[node].removeprefix("medusa:").split(",")
    return int(head), int(rank)


@pytest.mark.parametrize("trace", [record("medusa"), *map(shipped, NAMES)], ids=["golden", *NAMES])
def test_every_guess_comes_out_of_the_heads_word_that_it_is(trace: Trace) -> None:
    """Of the same head and rank, and a box holds a head's words by rank, from left to right."""
    seen = 0
    for _, step, scene in steps(trace):
        pieces = scene.pieces("propose")
        words = {piece.id: piece for piece in pieces if piece.zone == "heads" and piece.node > 0}
        guesses = [piece for piece in pieces if piece.zone == "guesses"]
        for piece in guesses:
            word = words[piece.origin or 0]
            assert word.token == piece.token
            assert heads_word(step, word.node) == heads_word(step, piece.node)
        boxes: dict[float, list[tuple[float, tuple[int, int]]]] = {}
        for word in words.values():
            boxes.setdefault(word.y, []).append((word.x, heads_word(step, word.node)))
        for box in boxes.values():
            listed = [word for _, word in sorted(box)]
            assert listed == sorted(listed) and len({head for head, _ in listed}) == 1
        assert bool(guesses) == (len(step.tokens) > 1)
        seen += len(guesses)
    assert seen > 15


@pytest.mark.parametrize("name", NAMES)
def test_what_was_written_is_seen_and_what_is_not_seen_is_counted(name: str) -> None:
    """The accepted path is always among the rows, in boxes too, and the rest is a number."""
    for _, step, scene in steps(shipped(name)):
        guesses = [piece.node for piece in scene.pieces("accept") if piece.zone == "guesses"]
        words = [piece for piece in scene.pieces("accept") if piece.zone == "heads" and piece.node > 0]
        assert set(step.path[1:]) <= set(guesses)
        taken = {heads_word(step, node) for node in step.path[1:]}
        assert {heads_word(step, word.node) for word in words if word.fate == Fate.ACCEPTED} == taken
        told = [re.match(r"and (\d+) guess", word) for word in scene.words("accept")]
        assert sum(int(found[1]) for found in told if found) == step.drafted - len(guesses)
        assert len({piece.y for piece in scene.pieces("accept") if piece.zone == "guesses"}) <= 7


@pytest.mark.parametrize("name", NAMES)
def test_boxes_say_which_word_was_right_once_it_is_known(name: str) -> None:
    """By the panel's own ranks; before the verdict no box says a word of it."""
    right = 0
    for _, step, scene in steps(shipped(name)):
        titles = " ".join(scene.frames("accept"))
        for head, rank in enumerate(step.panel["hits"], start=1):
            if head > len([title for title in scene.frames("propose") if title.startswith("head ")]):
                continue
            match = re.search(
                rf"head {head}: (?:its (\d+)(?:st|nd|rd|th) was (?:right|written)|none was (?:right|written))", titles
            )
            assert match and (match[1] is None if rank is None else int(match[1]) == rank + 1)
            right += rank is not None
        assert not [title for title in scene.frames("propose") + scene.frames("verify") if "right" in title]
    assert right > 5


def test_the_root_is_the_targets_own_and_no_heads_word() -> None:
    """It is in a box of its own, made of the hidden state of the word in front of it."""
    for run, step, scene in steps(shipped("medusa-defaults")):
        heads = [piece for piece in scene.pieces("propose") if piece.zone == "heads"]
        root_pieces = [piece for piece in heads if piece.node == 0]
        if not step.index:
            assert not heads
            continue
        [root] = root_pieces
        [state] = [piece for piece in heads if piece.node < 0]
        assert (root.token, root.fate, root.y) == (step.tokens[0], Fate.ROOT, min(piece.y for piece in heads))
        assert root.origin == state.id and state.token == run.ids[step.start - 2]
        assert all(piece.origin == state.id for piece in heads if piece.node > 0)


def test_a_step_without_a_guess_says_why() -> None:
    """The first one has no hidden state yet; the last one is not asked for more."""
    trace = shipped("medusa-defaults")
    assert "no guess: no hidden state yet" in Scene(RunState.of(trace), 0).words("propose")
    step = trace.steps[3]
    columns = {"tokens": step.tokens[:1], "parents": step.parents[:1], "roles": step.roles[:1]}
    columns |= {"sources": step.sources[:1], "choices": step.choices[:1], "path": (0,), "p": (), "q": (), "top": ()}
    bare = changed(trace, 3, **columns, accepted=0, drafted=0, emitted=step.emitted[:1], draft_top=(), panel={})
    asked = step.start - len(trace.header.prompt) + 1
    last = replace(bare, header=replace(trace.header, max_new_tokens=asked))
    assert "no guess: only one more token is needed" in Scene(RunState.of(last), 3).words("propose")


def test_words_beyond_a_box_and_heads_without_a_box_are_told() -> None:
    """The tree of figure 2 has two of four heads; the sparse one has more words of a head than a box shows."""
    figure_2 = [scene for _, _, scene in steps(shipped("medusa-figure-2"))][3]
    assert "and 2 more heads" in figure_2.words("propose")
    _, step, sparse = [*steps(shipped("medusa-defaults"))][3]
    of_head = {heads_word(step, node)[1] for node in range(1, len(step.tokens)) if heads_word(step, node)[0] == 1}
    assert f"head 1: the 2nd next word, 5 of its {len(of_head)} in the tree" in sparse.frames("propose")
    small = [scene for _, _, scene in steps(shipped("smollm2-rain-medusa"))][3]
    assert "head 3: the 4th next word, not in the tree" in small.frames("propose")


def test_panels_and_trees_of_other_makers_are_drawn() -> None:
    """Sources, hits and settings that no run of ours would write."""
    trace = shipped("smollm2-rain-medusa")
    odd = tuple("medusa:0,1" if node == 1 else source for node, source in enumerate(trace.steps[3].sources))
    bent = changed(trace, 3, sources=odd, panel={"hits": [2**30, None, 0, 0, 0, 0, 0], "heads": 2**30})
    scene = Scene(RunState.of(bent), 3)
    assert scene.pieces("commit") and f"and {2**30 - 4} more heads" in scene.words("propose")
    header = replace(trace.header, params={**trace.header.params, "tree": "given", "paths": "nonsense"})
    assert Scene(RunState.of(replace(trace, header=header)), 3).pieces("propose")


def test_typical_acceptance_does_not_look_lossless() -> None:
    """What is likely enough need not be the target's choice: no word, no fate and no grey row may say that it is."""
    trace = shipped("medusa-typical")
    run, unlike = RunState.of(trace), 0
    labels = {meaning.label for meaning in meanings(lossless=False) if meaning.fate is not Fate.EARLY}
    assert not [label for label in labels if "right" in label.lower() or "Correction" in label]
    for step in trace.steps:
        said = say(run, step.index)
        assert not any(word in said for word in ("agreed", "instead of", "wanted"))
        scene = Scene(run, step.index)
        for phase in STEP_PHASES:
            assert "right" not in " ".join([*scene.words(phase), *scene.frames(phase)])
        row = [piece for piece in scene.pieces("accept") if (piece.zone, piece.y) == ("text", 1) and piece.node > 0]
        grey = [piece.token for piece in sorted(row, key=lambda piece: piece.x) if piece.node < len(step.tokens)]
        assert grey == [step.choices[node] for node in step.path[:-1]][: len(grey)]
        unlike += sum(token != written for token, written in zip(grey, step.emitted, strict=False))
    assert unlike > 1


def test_p_and_the_threshold_of_a_typical_guess_are_told() -> None:
    """The threshold is the lower one of epsilon and delta times exp(-H)."""
    trace = shipped("medusa-typical")
    step = replace(trace.steps[2], entropy=(0.98,) + (3.0,) * (len(trace.steps[2].tokens) - 1), index=0)
    run = RunState(trace.header, dict(trace.texts), [step])

    def sentence(node: int) -> str:
        return str(of_node(run, 0, node)["data"][SAY]["text"]["strings"][0])

    assert sentence(1) == "Typical, and accepted: p 0.293 is above min(ε, δ·exp(-H)) = 0.090."
    assert sentence(4) == "Typical, and not on the longest typical branch: p 0.550 is above min(ε, δ·exp(-H)) = 0.090."
    assert sentence(2) == "Not typical: p 0.000 is not above min(ε, δ·exp(-H)) = 0.015."
