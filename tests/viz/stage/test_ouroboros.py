"""Ouroboros on the stage: the draft, the phrases that lengthen it, and what the target's answers put into the pool."""

from __future__ import annotations

import pytest

from decoding.types import Step, Trace
from tests.viz.records import record
from viz.palette import Fate

from .scenes import numbers, shipped, steps

NAMES = ("golden", "smollm2-prime-ouroboros", "ouroboros-defaults", "ouroboros-humaneval", "ouroboros-reference-sizes")


def trace_of(name: str) -> Trace:
    """A recorded run."""
    return record("ouroboros") if name == "golden" else shipped(name)


def drafted(step: Step) -> list[int]:
    """The nodes that the drafter wrote."""
    return [node for node, source in enumerate(step.sources) if source.startswith("draft")]


@pytest.mark.parametrize("name", NAMES)
def test_draft_and_phrases_are_the_nodes_that_were_read(name: str) -> None:
    """The whole draft is seen, and after it a row for each of the phrases that are shown in the pool."""
    for _, step, scene in steps(trace_of(name)):
        pieces = [piece for piece in scene.pieces("verify") if piece.zone in ("guesses", "behind")]
        nodes = [piece.node for piece in pieces]
        assert len(set(nodes)) == len(nodes) and all(piece.token == step.tokens[piece.node] for piece in pieces)
        assert set(drafted(step)) <= set(nodes)
        hidden = len(step.panel["suffixes"]) - len(scene.rows("pool", "verify"))
        assert hidden or set(nodes) == set(range(1, len(step.tokens)))
        assert set(step.path) - {0} <= set(nodes)
        assert not hidden or f"{hidden} not shown" in " ".join(scene.words("propose"))


@pytest.mark.parametrize("name", NAMES)
def test_guesses_come_out_of_the_pools_phrases(name: str) -> None:
    """A phrase's tokens fly to where they lengthen the draft; they are the panel's."""
    seen = 0
    for _, step, scene in steps(trace_of(name)):
        pool = {piece.id: piece for row in scene.rows("pool") for piece in row}
        shown = [[piece.token for piece in row[1:]] for row in scene.rows("pool")]
        assert all(any(phrase[: len(row)] == row for phrase in step.panel["suffixes"]) for row in shown)
        for piece in scene.pieces("propose"):
            if piece.zone == "behind" and piece.node not in drafted(step) and piece.origin is not None:
                assert pool[piece.origin].token == piece.token
                seen += 1
    assert seen > 3


@pytest.mark.parametrize("name", NAMES)
def test_words_out_of_phrases_differ_from_the_drafters_own(name: str) -> None:
    """A pass of the drafter writes one word of its own; those before it and those after the draft are copied."""
    both = 0
    for _, step, scene in steps(trace_of(name)):
        drafted_nodes, last = set[int](), 0
        for wrote in step.panel["passes"]:
            last += wrote
            drafted_nodes.add(drafted(step)[last - 1])
        nodes = numbers(scene.patch["pieces"]["nodes"])
        copied = {nodes[i] for i in numbers(scene.patch.get("some", {}).get("copied", ((), ()))[0])}
        shown = {piece.node for piece in scene.pieces("propose") if piece.zone in ("guesses", "behind")}
        assert copied == shown - drafted_nodes
        passes = step.panel["passes"]
        wrote = " + ".join(map(str, passes[:8]))
        assert not passes or f"{len(passes)} drafter pass" in " ".join(scene.words("propose"))
        assert not passes or f"wrote {wrote}" in " ".join(scene.words("propose"))
        both += bool(copied and drafted_nodes)
    assert both > 1


@pytest.mark.parametrize("name", NAMES)
def test_the_targets_words_go_into_the_pool(name: str) -> None:
    """Refined phrases take the place of the old ones, inspired ones come below; each token from where it was seen."""
    refined = inspired = 0
    for _, step, scene in steps(trace_of(name)):
        before = {piece.id: piece for piece in scene.pieces("accept")}
        panel, key = step.panel, step.tokens[(drafted(step) or [0])[-1]]
        corrected = panel["refined"] or panel["suffixes"]
        new = [[first, *phrase] for first, phrase, became in panel["inspired"] if became != "refreshed"]
        held = {(key, *phrase) for phrase in corrected}
        rows = scene.rows("pool", "commit")
        for row in rows:
            tokens = [piece.token for piece in row]
            assert any(tokens == [*phrase[: len(tokens)]] for phrase in [*held, *new])
            for piece in row:
                assert piece.origin is None or before[piece.origin].token == piece.token
        changed = sum(one != other for one, other in zip(panel["suffixes"], corrected, strict=True))
        words = " ".join(scene.words("commit"))
        assert not changed or f"refined {changed} phrase" in words
        assert not new or f"inspired {len(new)} phrase" in words
        assert not new or len(rows) > 0
        refined += changed
        inspired += sum(piece.origin is not None for row in rows for piece in row if piece.y >= len(panel["suffixes"]))
    params = trace_of(name).header.params
    assert refined or params["refine"] == "never" or name.startswith("ouroboros-ref")
    assert inspired or params["shortest"] > 2 or name.startswith("smollm2")


def test_what_the_target_wants_instead_is_seen_from_the_verdict_on() -> None:
    """Below a phrase, in the column of the word that it replaces."""
    seen = 0
    for _, step, scene in steps(trace_of("ouroboros-defaults")):
        words = [piece for piece in scene.pieces("verify") if piece.zone == "behind" and piece.node < 0]
        assert not words
        cells = {(piece.x, piece.y): piece for piece in scene.pieces("accept") if piece.zone == "behind"}
        for (x, y), piece in cells.items():
            if piece.node < 0:
                assert piece.fate == Fate.INSPIRED
                above = next(other for (u, v), other in cells.items() if u == x and abs(v - y + 0.85) < 0.01)
                assert above.token != piece.token == step.choices[step.parents[above.node]]
                seen += 1
    assert seen > 3


def test_a_long_draft_goes_on_in_the_next_line() -> None:
    """Nothing of it is hidden, and the room after it is kept for phrases."""
    for _, step, scene in steps(trace_of("ouroboros-humaneval")):
        line = sorted(
            (piece for piece in scene.pieces("propose") if piece.zone == "guesses"), key=lambda piece: piece.x
        )
        rest = [piece for piece in scene.pieces("propose") if piece.zone == "behind" and piece.node in drafted(step)]
        assert len(line) == 6 and len(line) + len(rest) == len(drafted(step)) == 12
        assert {piece.y for piece in rest} == {0}
