"""What all stages share: text, answers, guesses, and the names by which a token is one object."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from decoding import tree
from decoding.types import Step
from tests.viz.records import METHODS, record
from viz.fates import node_fates, target_choices
from viz.palette import Fate
from viz.run_state import RunState
from viz.stage.parts import Room, StepScene, text_zone
from viz.stage.scene import COLUMNS, NARROW, Scene, StagePiece, Zone, ZoneCell, stage
from viz.views import stage as view

from . import scenes as read


def steps(method: str) -> Iterator[tuple[RunState, int, Step, read.Scene]]:
    """Yield all steps of a recorded run, with their scenes."""
    run = RunState.of(record(method))
    for k, step in enumerate(run.steps):
        yield run, k, step, read.Scene(run, k)


@pytest.mark.parametrize("method", METHODS)
def test_pieces_have_names_of_their_own(method: str) -> None:
    """Two pieces of one name would be one element, which cannot be in two places."""
    for _, _, _, scene in steps(method):
        ids = [piece.id for piece in scene.pieces("propose")]
        assert len(ids) == len(set(ids))


@pytest.mark.parametrize("method", METHODS)
def test_what_is_written_is_a_piece_of_the_text_from_then_on(method: str) -> None:
    """An accepted guess goes up into the text, and the next step finds the same object there."""
    before: dict[int, int] = {}
    for run, _, step, scene in steps(method):
        written = {piece.id: piece.token for piece in scene.pieces("propose") if piece.zone == "text"}
        shown = {each: token for each, token in before.items() if each in written}
        assert shown == {each: written[each] for each in shown}
        assert not before or len(shown) >= min(len(before), 2)  # the end of the text is in sight
        line = [piece for piece in scene.pieces("commit") if piece.zone == "text" and piece.y == 0]
        line.sort(key=lambda piece: piece.x)
        text = run.ids[: step.start + len(step.emitted)]
        tokens = [piece.token for piece in line if piece.x < COLUMNS]
        assert tokens and tokens == text[step.start + len(step.emitted) - len(line) :][: len(tokens)]
        before = {piece.id: piece.token for piece in line}


@pytest.mark.parametrize("method", METHODS)
def test_guesses_stand_below_the_places_that_they_are_made_for(method: str) -> None:
    """A guess of depth d is in the column of the d-th token after the root, on a wide stage and on a narrow one."""
    for _, _, step, scene in steps(method):
        depths = tree.depths(step.parents)
        [root] = [piece.x for piece in scene.pieces("propose") if piece.zone == "text" and piece.node == 0]
        names = [zone["name"] for zone in scene.base["zones"]]
        guesses = [piece for piece in scene.pieces("accept") if piece.zone == "guesses"]
        for floor in ("wide", "narrow"):
            places = scene.base[floor]["places"]
            for piece in guesses:
                assert piece.token == step.tokens[piece.node]
                left = places[names.index("guesses")][0] + piece.x
                assert left == pytest.approx(places[names.index("text")][0] + root + (depths[piece.node] or 0))


@pytest.mark.parametrize("method", METHODS)
def test_nothing_of_the_answers_is_seen_before_the_verdict(method: str) -> None:
    """What the target wants is not shown while it is still reading."""
    row = ("block", 6) if method == "jacobi" else ("text", 1)  # of Jacobi they are the next block, too
    for _, _, step, scene in steps(method):
        for phase in ("propose", "verify", "answers"):
            pieces = scene.pieces(phase)
            assert not [piece for piece in pieces if piece.fate in (Fate.CORRECTION, Fate.BONUS, Fate.OWN)]
            assert not [piece for piece in pieces if (piece.zone, piece.y) == row and piece.node >= 0]
        answers = [piece for piece in scene.pieces("accept") if (piece.zone, piece.y) == row and piece.node >= 0]
        answers.sort(key=lambda piece: piece.x)
        along = [piece.token for piece in answers][: len(step.emitted)]  # others stand behind guesses that were wrong
        assert along and along == list(step.emitted)[: len(along)]


@pytest.mark.parametrize("method", METHODS)
def test_the_target_s_word_is_at_every_guess_that_is_drawn(method: str) -> None:
    """A visitor can judge before the rule does, so it is the token after the guess's parent, right or wrong."""
    for run, _, step, scene in steps(method):
        words = {piece.node: piece.answer for piece in scene.pieces("answers") if piece.answer >= 0}
        guesses = {piece.node for piece in scene.pieces("answers") if piece.zone == "guesses" and piece.node > 0}
        assert guesses <= words.keys()
        greedy = not run.header.sampling["temperature"]
        assert not greedy or words == {node: target_choices(step)[step.parents[node]] for node in words}
        assert not greedy or all(words[node] == step.tokens[node] for node in step.path[1:] if node in words)


@pytest.mark.parametrize("method", METHODS)
def test_slots_of_the_cache_fill_and_are_freed(method: str) -> None:
    """Of what the target reads the text stays in the cache; the target's own token is read in the next step only."""
    for _, _, step, scene in steps(method):
        for phase in ("propose", "verify", "commit"):
            line = [piece for piece in scene.pieces(phase) if piece.zone == "text" and piece.y == 0]
            line.sort(key=lambda piece: piece.x)
            cached, unread = sum(piece.cached for piece in line), len(step.emitted) > step.accepted
            missing = {"propose": step.pending + 1, "verify": 0, "commit": unread}[phase]
            assert cached == max(0, len(line) - missing)
        guesses = [piece for piece in scene.pieces("commit") if piece.zone == "guesses"]
        assert not [piece for piece in guesses if piece.cached]
        assert all(piece.cached for piece in scene.pieces("accept") if piece.zone == "guesses")


def test_a_branch_that_is_not_seen_is_counted() -> None:
    """The accepted branch is seen wherever it is among the others."""
    room = Room(2, 2)
    trace = record("medusa")
    run = RunState.of(trace)
    for k, step in enumerate(trace.steps):
        base = stage([[text_zone()]], [[room.zone()]])
        scene = StepScene.begin(base, run, k, room)
        scene.draw_text()
        names = scene.draw_guesses()
        guesses = [node for node, fate in enumerate(node_fates(step)) if fate not in (Fate.ROOT, Fate.EXPLORED)]
        assert {node for node in step.path if (tree.depths(step.parents)[node] or 0) <= room.depth} <= set(names)
        hidden = len(guesses) - (len(names) - 1)
        words = scene.patch().get("words", {"text": {"strings": []}})["text"]["strings"]
        assert [word for word in words if f"{hidden} guess" in word] or not hidden


def test_zones_fill_the_width_and_stack_on_a_narrow_stage() -> None:
    """The last stack ends where the stage ends; zones that are too wide for a narrow one show their right end."""
    left, middle, right = Zone("a", "A", 4, 2), Zone("b", "B", 3, 1), Zone("c", "C", 3, 5)
    base = stage([[text_zone()]], [[left], [middle], [right]])
    assert [x for x, _ in base["wide"]["places"]] == [0, 0, 5.5, COLUMNS - 3]
    assert [x for x, _ in base["narrow"]["places"]] == [NARROW - COLUMNS, 0, 0, NARROW - 3]
    text, a, b, c = (y for _, y in base["narrow"]["places"])
    assert text < c < a < b  # the guesses are next to the text
    with pytest.raises(AssertionError, match="wider"):
        stage([[Zone("a", "A", 8, 1)], [Zone("b", "B", 6, 1)]])


NARROWEST: dict[str, dict[str, int]] = {"draft_model": {"gamma": 1}, "lookahead": {"W": 1, "N": 3}}
TITLES = [*((method, {}) for method in METHODS), *NARROWEST.items()]


@pytest.mark.parametrize(("method", "params"), TITLES)
def test_a_title_fits_its_zone(method: str, params: dict[str, int]) -> None:
    """A column is as wide as eight letters of a title, even where these are as small as may be."""
    trace = record(method)
    trace = replace(trace, header=replace(trace.header, params={**trace.header.params, **params}))
    for zone in view.base(RunState.of(trace))["zones"]:
        assert len(zone["title"]) <= 8 * zone["columns"], zone["title"]


def test_two_pieces_never_share_a_name() -> None:
    """A record from elsewhere may repeat what is unique in ours: the second piece gets another name."""
    scene = Scene(["a"])
    assert scene.add(StagePiece("x", 1, ZoneCell("a", 0, 0), Fate.PROMPT)) == "x"
    assert scene.add(StagePiece("x", 2, ZoneCell("a", 1, 0), Fate.PROMPT)) == "x'"
    assert len(set(read.numbers(scene.patch()["pieces"]["id"]))) == 2


def test_a_record_without_tokens_has_no_stage() -> None:
    """There is nothing that could be drawn."""
    header = record("lookahead").header
    assert view.shows(header) and not view.shows(replace(header, record="off"))


@pytest.mark.parametrize("method", METHODS)
def test_what_a_step_used_stays_until_the_next_one(method: str) -> None:
    """A run opens at the commit: guesses, and what they were made from, are still where they were judged."""
    kept = {"guesses", "heads", "features", "target"} | ({"pool"} if method == "lookahead" else set())
    for scene in read.scenes(record(method)):
        judged, written = (
            {(piece.zone, piece.x, piece.y, piece.token, piece.fate) for piece in scene.pieces(phase)}
            for phase in ("accept", "commit")
        )
        assert {piece for piece in judged if piece[0] in kept} <= written
        answers = {piece[:4] for piece in judged if piece[0] == "text" and piece[2] == 1}
        assert answers <= {piece[:4] for piece in written}
