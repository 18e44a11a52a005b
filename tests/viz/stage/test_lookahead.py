"""Lookahead on the stage: cells move up a line, diagonals become n-grams, n-grams become guesses."""

from __future__ import annotations

from collections.abc import Iterator

from decoding.types import Step
from tests.viz.records import record
from viz.palette import Fate
from viz.run_state import RunState

from .scenes import Scene, numbers

N = 4  # of the record


def steps() -> Iterator[tuple[Step, Scene, Scene | None]]:
    """Every step with its scene, and the one before."""
    run, before = RunState.of(record("lookahead")), None
    assert run.header.params["N"] == N
    for k, step in enumerate(run.steps):
        scene = Scene(run, k)
        yield step, scene, before
        before = scene


def window(scene: Scene, phase: str) -> dict[int, tuple[int, float, float]]:
    """Token and place of every cell, by its id; without the root."""
    window = [piece for piece in scene.pieces(phase) if piece.zone == "window" and piece.node != 0]
    return {piece.id: (piece.token, piece.x, piece.y) for piece in window}


def test_the_window_is_the_one_that_was_fed() -> None:
    """Line by line, the oldest on top; a cell is as far to the right as its position is after the root."""
    for step, scene, _ in steps():
        lines = step.panel["rows"]
        top = N - 1 - len(lines)
        want = [(token, r + i, top + r) for r, line in enumerate(lines) for i, token in enumerate(line, start=r == 0)]
        assert sorted(window(scene, "propose").values()) == sorted(want)
        answers = [(token, len(lines) + i, N - 1) for i, token in enumerate(step.panel["new"])]
        assert sorted(window(scene, "answers").values()) == sorted([*want, *answers])


def test_a_token_is_one_object_for_as_long_as_it_is_in_the_window() -> None:
    """Answers become the newest line, every line moves up, and nothing else takes their names."""
    moved = 0
    for step, scene, before in steps():
        if before is None:
            continue
        old, new = window(before, "commit"), window(scene, "propose")
        same = old.keys() & new.keys()
        assert {each: old[each][0] for each in same} == {each: new[each][0] for each in same}
        newest = {each for each, (_, _, y) in new.items() if y == N - 2}
        assert newest <= old.keys()  # they were the answers
        if step.panel["phase"] == "steady" and len(same) > len(newest):
            assert {old[each][2] - new[each][2] for each in same} == {1}
            moved += 1
    assert moved > 10


def test_guesses_come_out_of_n_grams_with_their_tokens() -> None:
    """Every guess flies out of the piece of the pool that it is copied from."""
    seen = 0
    for step, scene, _ in steps():
        pool = {piece.id: piece for piece in scene.pieces("propose") if piece.zone == "pool"}
        guesses = [piece for piece in scene.pieces("propose") if piece.zone == "guesses"]
        assert all(piece.origin in pool and pool[piece.origin].token == piece.token for piece in guesses)
        assert bool(guesses) == bool(step.panel["guesses"])
        words = " ".join(scene.words("propose"))
        count = len(step.panel["guesses"])
        assert not count or f"{count} n-gram" in words
        seen += len(guesses)
    assert seen > 10


def test_n_grams_come_off_their_diagonals() -> None:
    """What the pool learns flies out of the window's cells, which lie on one diagonal, and is what was recorded."""
    seen = 0
    for step, scene, _ in steps():
        cells = {piece.id: piece for piece in scene.pieces("commit") if piece.zone == "window"}
        rows: dict[float, list[tuple[float, int, int | None]]] = {}
        used = {piece.id for piece in scene.pieces("accept") if piece.zone == "pool"}
        for piece in scene.pieces("commit"):
            if piece.zone == "pool" and piece.id not in used:
                rows.setdefault(piece.y, []).append((piece.x, piece.token, piece.origin))
        inserted = [[key, *ngram] for key, ngram, _ in step.panel["pool"]["inserted"]]
        for row in rows.values():
            tokens = [token for _, token, _ in sorted(row)]
            assert tokens in inserted
            line = [cells[origin] for _, _, origin in sorted(row) if origin is not None]
            assert [cell.token for cell in line] == tokens
            assert len({(cell.x - cell.y) for cell in line}) == 1
            seen += 1
        new = sum(became != "refreshed" for _, _, became in step.panel["pool"]["inserted"])
        assert not inserted or f"learned {len(inserted)} n-gram" in " ".join(scene.words("commit"))
        assert not inserted or f"{new} new" in " ".join(scene.words("commit"))
    assert seen > 20


def test_a_window_cell_that_is_written_elsewhere_is_right_too_early() -> None:
    """Nothing is written from the window: the cell is read, and the target writes the same token itself."""
    found = 0
    for step, scene, _ in steps():
        for phase in ("propose", "verify", "answers"):
            assert not [piece for piece in scene.pieces(phase) if piece.fate == Fate.EARLY]
        cells = [piece for piece in scene.pieces("answers") if piece.zone == "window" and piece.node > 0]
        want = {piece.node for piece in cells if piece.token in step.emitted[round(piece.x) - 1 : round(piece.x)]}
        assert {piece.node for piece in scene.pieces("accept") if piece.fate == Fate.EARLY} == want
        found += len(want)
    assert found > 1


def test_every_learned_n_gram_is_there_for_whoever_follows_it() -> None:
    """The one that pays was not among the few that there was room for."""
    spare = 0
    for step, scene, _ in steps():
        columns = scene.patch["pieces"]
        hidden = numbers(scene.patch.get("some", {}).get("spare", ((),))[0])
        keys = {numbers(columns["y"])[i] for i in hidden}
        shown = sum(piece.zone == "pool" and not piece.x for piece in scene.pieces("commit"))
        held = sum(piece.zone == "pool" and not piece.x for piece in scene.pieces("propose"))
        new = [entry for entry in step.panel["pool"]["inserted"] if entry[2] != "refreshed"]
        assert not new or shown - held + len(keys) == len(new)
        spare += len(keys)
    assert spare > 2
