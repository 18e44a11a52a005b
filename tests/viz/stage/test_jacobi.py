"""Jacobi on the stage: answers become the next block, passes become stairs."""

from __future__ import annotations

from itertools import pairwise

import pytest

from decoding.types import Step, Trace
from tests.toys import counted_text, cycle, engine
from tests.viz.records import record
from viz.palette import Fate
from viz.run_state import RunState

from .scenes import Scene, Shown, numbers

NOW, ANSWERS, SEEN = 5, 6, 6  # rows of the zone, and guesses of a block that are seen


def settling() -> Trace:
    """A run that settles much at once: the model counts up, whatever it has read."""
    return engine(cycle(13)).generate([1, 2, 3], "jacobi", params={"n": 4}, max_new_tokens=20).trace


def mixed() -> Trace:
    """A run that settles now this many guesses, now that many."""
    prompt = [1, 2, 3, 4, 5, 1, 2, 3, 4, 2, 3]
    return engine(counted_text()).generate(prompt, "jacobi", params={"n": 3}, max_new_tokens=40).trace


RUNS = {"recorded": record("jacobi"), "settling": settling(), "mixed": mixed()}
each_run = pytest.mark.parametrize("trace", RUNS.values(), ids=RUNS)


def steps(trace: Trace) -> list[tuple[Step, Scene]]:
    """Every step with its scene."""
    run = RunState.of(trace)
    return [(step, Scene(run, k)) for k, step in enumerate(run.steps)]


def row(scene: Scene, y: int, phase: str) -> list[Shown]:
    """The tokens of a row from left to right, without the root."""
    block = [piece for piece in scene.pieces(phase) if piece.zone == "block" and piece.y == y and piece.node != 0]
    return sorted(block, key=lambda piece: piece.x)


@each_run
def test_the_block_stands_below_its_places(trace: Trace) -> None:
    """A guess of depth d is in the column of the d-th token after the root; what is not seen is counted."""
    for step, scene in steps(trace):
        block, n = row(scene, NOW, "propose"), len(step.tokens) - 1
        [root] = [piece.x for piece in scene.pieces("propose") if piece.zone == "text" and piece.node == 0]
        assert [piece.token for piece in block] == list(step.tokens[1 : 1 + SEEN])
        assert [(piece.node, piece.x - root) for piece in block] == [(d, d) for d in range(1, min(n, SEEN) + 1)]
        assert (f"and {n - SEEN} more" in scene.words("propose")) == (n > SEEN)


@each_run
def test_answers_are_the_next_block(trace: Trace) -> None:
    """An answer that is not settled is the same object when it is guessed, in the column of the same place."""
    seen = 0
    for (step, scene), (_, later) in pairwise(steps(trace)):
        answers = {piece.id: piece for piece in row(scene, ANSWERS, "commit")}
        block = {piece.id: piece for piece in row(later, NOW, "propose")}
        written = len(step.emitted)
        for each in answers.keys() & block.keys():
            assert answers[each].token == block[each].token and answers[each].x - written == block[each].x
        kept = min(len(step.tokens), SEEN + 1) - written
        assert len(answers.keys() & block.keys()) == max(0, kept)
        seen += kept
    assert seen > 10


@each_run
def test_the_target_answers_behind_every_token_that_it_reads(trace: Trace) -> None:
    """An answer comes out of the token in front of it."""
    for step, scene in steps(trace):
        read = {piece.id: piece for piece in scene.pieces("answers") if piece.zone == "block" and piece.y == NOW}
        answers = row(scene, ANSWERS, "answers")
        assert [piece.token for piece in answers] == step.panel["answers"][: SEEN + 1]
        assert [read[piece.origin or 0].node for piece in answers] == [*range(len(answers))]
        assert not row(scene, ANSWERS, "propose")


@each_run
def test_settled_answers_go_up_into_the_text(trace: Trace) -> None:
    """They come out of the row of answers, with the same token, and the words count them."""
    for step, scene in steps(trace):
        answers = {piece.id: piece for piece in row(scene, ANSWERS, "answers")}
        [root] = [piece.x for piece in scene.pieces("propose") if piece.zone == "text" and piece.node == 0]
        line = [piece for piece in scene.pieces("commit") if piece.zone == "text" and piece.x > root]
        line.sort(key=lambda piece: piece.x)
        assert [piece.token for piece in line] == list(step.emitted)
        for piece, likeliest in zip(line, step.panel["answers"][: SEEN + 1], strict=False):
            assert (piece.origin is not None) == (piece.token == likeliest)  # else another one was sampled
            origin = answers.get(piece.origin or 0, piece)
            assert (origin.token, origin.x) == (piece.token, piece.x)
        words = " ".join(scene.words("accept"))
        assert f"{step.accepted} of {len(step.tokens) - 1} guess" in words
        assert f"grows by {len(step.emitted)} token" in words
        assert "settled" not in " ".join(scene.words("verify"))


@each_run
def test_earlier_passes_are_stairs(trace: Trace) -> None:
    """Every row begins after the text of its time; its tokens are those of its pass, and keep their judgement."""
    passes, steps_up = list[tuple[Step, dict[int, int]]](), 0
    for step, scene in steps(trace):
        frames = scene.patch["frames"]
        wide = dict(zip(numbers(frames["y"]), numbers(frames["wide"]), strict=True))
        judged = dict(zip(*map(numbers, scene.patch.get("some", {}).get("judged", ((), ()))), strict=True))
        ids = numbers(scene.patch["pieces"]["id"])
        fates_by_id = {ids[number]: fate for number, fate in judged.items()}
        for age, (before, pieces) in enumerate(passes[::-1][:5], start=1):
            past = row(scene, NOW - age, "propose")
            kept = [piece for piece in past if piece.id in pieces]
            assert all(pieces[piece.id] == piece.token for piece in kept) and (kept or not past)
            accepted = [piece for piece in past if fates_by_id[piece.id] == Fate.ACCEPTED]
            places = {d for d in range(1, len(before.tokens)) if d in before.path}
            first = wide[NOW] + 1 - (step.start - before.start)  # the column of its first guess
            assert {piece.x - first + 1 for piece in accepted} == {d for d in places if first + d - 1 >= 0}
            assert all(piece.token == before.tokens[round(piece.x - first) + 1] for piece in past)
            if first > 0:
                assert wide[NOW - age] == first == min(piece.x for piece in past)
                steps_up += 1
        passes.append((step, {piece.id: piece.token for piece in row(scene, NOW, "propose")}))
    assert steps_up >= 5


@each_run
def test_what_was_right_too_early_is_seen_once_the_text_has_got_there(trace: Trace) -> None:
    """Hindsight needs no later step: it is about earlier passes, and the text before this one."""
    written = [*trace.header.prompt, *trace.ids]
    for step, scene in steps(trace):
        [root] = [piece.x for piece in scene.pieces("propose") if piece.zone == "text" and piece.node == 0]
        for piece in scene.pieces("propose"):
            position = step.start - 1 + round(piece.x - root)
            if piece.zone == "block" and piece.y < NOW and piece.fate != Fate.ACCEPTED:
                right = position < step.start and written[position] == piece.token
                assert (piece.fate == Fate.EARLY) == right


def test_a_right_guess_after_a_wrong_one_is_found_in_hindsight() -> None:
    early = [
        piece for _, scene in steps(RUNS["mixed"]) for piece in scene.pieces("propose") if piece.fate == Fate.EARLY
    ]
    assert len(early) > 3
