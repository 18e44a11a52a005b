"""Prompt lookup on the stage: the text's ending, where it stood before, and copies of what followed."""

from __future__ import annotations

import zlib

import pytest

from decoding.types import Step, Trace
from tests.toys import counted_text, engine, hashed
from tests.viz.records import changed, record
from viz.run_state import RunState
from viz.sources import parse

from .scenes import Scene, scenes

PROMPT = [1, 2, 3, 4, 5, 1, 2, 3, 4, 2, 3]


def run(**params: int | str | bool) -> Trace:
    """Make a run on a text that repeats itself."""
    return engine(counted_text()).generate(PROMPT, "prompt_lookup", params=params, max_new_tokens=40).trace


def with_reference(*reference: int) -> Trace:
    """Make a run that finds its endings in a document, too."""
    made = engine(hashed())
    return made.generate([7, 8], "prompt_lookup", params={"K": 4}, max_new_tokens=30, reference=reference).trace


RUNS = {
    "recorded": record("prompt_lookup"),
    "repeating": run(max_ngram=4, K=7),
    "short": run(max_ngram=2, K=4, tie="earliest", tail="short"),
    "reference": with_reference(7, 8, 9, 10, 11, 12, 3, 4, 5, 6, 1, 2, 0, 3, 1, 4, 2),
}
each_run = pytest.mark.parametrize("trace", RUNS.values(), ids=RUNS)


def found(trace: Trace) -> list[tuple[Step, Scene]]:
    """Return the steps that found their ending, with their scenes."""
    pairs = zip(trace.steps, scenes(trace), strict=True)
    return [(step, scene) for step, scene in pairs if step.panel.get("n")]


def piece_id(name: str) -> int:
    """Return the number of a piece by its name."""
    return zlib.crc32(name.encode()) - 2**31


@each_run
def test_the_match_is_tied_word_by_word(trace: Trace) -> None:
    """The same tokens lie below one another: the text's last ones, and those in front of the copied ones."""
    for step, scene in found(trace):
        pieces = {piece.id: piece for piece in scene.pieces("propose")}
        tied = [(pieces[one], pieces[other]) for one, other in scene.links("match", "propose")]
        assert {(one.zone, other.zone) for one, other in tied} == {("text", "passage")}
        assert all(one.token == other.token and one.x == other.x for one, other in tied)
        tied.sort(key=lambda pair: pair[0].x)
        shown = [piece for piece in pieces.values() if piece.zone == "text"]
        assert [one.token for one, _ in tied] == list(step.panel["ending"])[-len(shown) :]
        frames = scene.patch["frames"]
        assert frames["loud"][:2] == [True, True] and len(tied) == min(step.panel["n"], len(shown))


@each_run
def test_guesses_fly_out_of_the_places_that_they_are_copied_from(trace: Trace) -> None:
    """The piece that a guess comes out of is the one of its source, with its token, and belongs to the passage."""
    seen = 0
    for step, scene in found(trace):
        passage = {piece.id: piece.token for piece in scene.pieces("propose") if piece.zone == "passage"}
        guesses = [piece for piece in scene.pieces("propose") if piece.zone == "guesses"]
        for guess in guesses:
            kind, (place, *_) = parse(step.sources[guess.node])
            assert guess.origin == piece_id(f"{'d' if kind == 'reference' else 's'}{place}")
            assert passage[guess.origin] == guess.token
        hidden = step.drafted - len(guesses)
        assert any(f"{hidden} guess" in word for word in scene.words("propose")) or not hidden
        assert len(scene.links("flow", "propose")) == len(guesses) and not scene.links("flow", "verify")
        seen += len(guesses)
    assert seen > 10


@each_run
def test_a_place_of_the_passage_is_one_object(trace: Trace) -> None:
    """Where the next step copies on from there, the passage moves on, as the text does."""
    tokens, kept = dict[int, int](), 0
    for _, scene in found(trace):
        passage = {piece.id: piece.token for piece in scene.pieces("propose") if piece.zone == "passage"}
        same = tokens.keys() & passage.keys()
        assert {each: tokens[each] for each in same} == {each: passage[each] for each in same}
        tokens, kept = passage, kept + len(same)
    assert kept > 5


@each_run
def test_words_say_where_the_passage_stands(trace: Trace) -> None:
    """How many tokens matched, how far back they stood, and how many are copied."""
    for step, scene in found(trace):
        words = " ".join(scene.words("propose"))
        kind, (place, *_) = parse(step.panel["copied_from"])
        ending = f"last {step.panel['n']} tokens occur" if step.panel["n"] > 1 else "the last token occurs"
        assert f"{ending} earlier" in words
        where = f"in the reference, up to its token {place}"
        assert (where if kind == "reference" else f"{step.start - place} token") in words
        assert f"copied: {step.drafted} token" in words


def test_on_a_narrow_stage_no_words_lie_between_the_text_and_its_guesses() -> None:
    """Lines run from the text and the passage to the guesses: what was looked for is below them."""
    base = scenes(record("prompt_lookup"))[0].base
    tops = {zone["name"]: y for zone, (_, y) in zip(base["zones"], base["narrow"]["places"], strict=True)}
    assert tops["text"] < tops["passage"] < tops["guesses"] < tops["match"]


def test_what_was_not_found_is_named() -> None:
    """The endings that were looked for, from the longest on."""
    trace, seen = with_reference(12), 0
    state = RunState.of(trace)
    for step, scene in zip(trace.steps, scenes(trace), strict=True):
        if step.drafted == 0 and not state.wants_one(step):
            words = " ".join(scene.words("propose"))
            assert "not found earlier, nor in the reference" in words
            assert f"'{state.text(state.ids[step.start - 1]).strip()}'" in words.replace("' ", "'")
            assert not [piece for piece in scene.pieces("propose") if piece.zone == "passage"]
            seen += 1
    assert seen > 2


def test_a_made_up_match_is_no_passage() -> None:
    """A file may name a place that the text does not have."""
    trace = record("prompt_lookup")
    for copied_from in ("prompt:999999999", "prompt:", "reference:0", "draft:1", "output:1,2", ""):
        panel = {"n": 2**30, "ending": [1], "copied_from": copied_from}
        scene = scenes(changed(trace, 3, panel=panel))[3]
        assert not scene.links("match", "propose") or copied_from == "output:1,2"
        assert len(scene.pieces("propose")) < 30
