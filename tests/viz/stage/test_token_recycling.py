"""Token Recycling on the stage: rows give guesses, answers give rows, and what was passed over pays off later."""

from __future__ import annotations

import pytest

from decoding.types import Trace
from tests.toys import counted_text, engine
from tests.viz.records import changed, record
from viz.methods.stages.token_recycling import paid_off
from viz.run_state import RunState

from .scenes import Scene, Shown, shipped, steps

NAMES = ("golden", "smollm2-prime-token_recycling")


def trace_of(name: str) -> Trace:
    """A recorded run."""
    return record("token_recycling") if name == "golden" else shipped(name)


def table(scene: Scene, phase: str) -> dict[int, list[Shown]]:
    """The entries of every row that is seen, by its token."""
    rows = scene.rows("table", phase)
    assert all(row[0].x == 0 for row in rows)
    return {row[0].token: row[1:] for row in rows}


@pytest.mark.parametrize("name", NAMES)
def test_guesses_come_out_of_the_rows_that_were_read(name: str) -> None:
    """Of every row the first entries, in their order; a guess flies out of the entry of its own token."""
    seen = 0
    for _, step, scene in steps(trace_of(name)):
        read = {row["token"]: list(row["entries"]) for row in step.panel["rows"]}
        rows = table(scene, "propose")
        assert len(rows) == min(4, len(read))
        for token, entries in rows.items():
            assert [piece.token for piece in entries] == read[token][:4]
        pieces = {piece.id: (token, piece) for token, entries in rows.items() for piece in entries}
        for guess in (piece for piece in scene.pieces("propose") if piece.zone == "guesses"):
            if guess.origin in pieces:
                key, entry = pieces[guess.origin]
                assert entry.token == guess.token == step.tokens[guess.node]
                assert step.tokens[step.parents[guess.node]] == key
                seen += 1
    assert seen > 10


@pytest.mark.parametrize("name", NAMES)
def test_in_the_end_rows_are_those_that_the_target_gave(name: str) -> None:
    """What was read gives way to what the answers say; before the last phase nothing of them is seen."""
    known, turned = dict[int, list[int]](), 0
    for _, step, scene in steps(trace_of(name)):
        now = {token: list(after) for token, _, after, _ in step.panel["changed"]}
        known |= {row["token"]: list(row["entries"]) for row in step.panel["rows"] if not row["ago"]}
        for token, before, _, _ in step.panel["changed"]:
            assert list(before) == known.get(token, []) or (token not in known and name != "golden")
        known |= now
        rows = table(scene, "commit")
        for token, entries in rows.items():
            assert [piece.token for piece in entries] == known[token][:4]
        read = {row["token"] for row in step.panel["rows"]}
        before = set(table(scene, "accept"))
        assert before <= read and before <= rows.keys() and len(before) == min(4, len(read))
        new = [token for token in now if token in rows]
        assert sum(word.startswith("now") for word in scene.words("commit")) == len(new)
        assert f"{len(step.panel['changed'])} row{'s' * (len(now) != 1)} updated" in " ".join(scene.words("commit"))
        turned += len(new)
        assert not any(word.startswith("now") for word in scene.words("accept"))
    assert turned > 10


def test_an_entry_that_stays_is_the_same_piece_at_its_new_rank() -> None:
    """It glides within its row: the eye sees which candidates rise."""
    moved = 0
    for _, _, scene in steps(trace_of("smollm2-prime-token_recycling")):
        before, after = table(scene, "accept"), table(scene, "commit")
        for token in before.keys() & after.keys():
            old, new = ({piece.token: piece for piece in rows[token]} for rows in (before, after))
            for entry in old.keys() & new.keys():
                assert old[entry].id == new[entry].id
                moved += old[entry].x != new[entry].x
    assert moved > 5


def test_what_paid_off_was_passed_over_before() -> None:
    """The sentence is true: at the step that gave the row the target had another choice, or the guess was rejected."""
    trace = trace_of("smollm2-prime-token_recycling")
    run, likelier, rejected = RunState.of(trace), 0, 0
    for k, step in enumerate(run.steps):
        rows = {row["token"]: row for row in step.panel["rows"]}
        remarks = paid_off(run, step)
        expected = 0
        for node in step.path[1:]:
            row, rank = rows[step.tokens[step.parents[node]]], int(step.sources[node].split(":")[1])
            if row["ago"]:  # else an earlier run gave it
                given = run.steps[k - row["ago"]]
                nodes = [i for i, token in enumerate(given.tokens) if token == row["token"]]
                assert (row["behind"] == "accepted") == any(i in given.path for i in nodes)
                assert row["entries"][0] in {given.choices[i] for i in nodes}
            likelier += rank > 0
            rejected += rank == 0 and row["behind"] == "rejected"
            expected += rank > 0 or row["behind"] == "rejected"
        assert len(remarks) == expected
        words = Scene(run, k).words("accept")
        assert not remarks or remarks[0] in words
        assert not any("paid off" in word for word in Scene(run, k).words("verify"))
    assert likelier > 2 and rejected > 2


def test_a_row_of_the_prompt_says_so_and_pays_nothing_off() -> None:
    """The target has passed nothing over there: the prompt's pairs stand first."""
    params = {"tree": "given", "paths": "0;1", "prompt_as_reference": True}
    run = RunState.of(engine(counted_text()).generate((3, 1, 3, 4, 3), "token_recycling", params, record="full").trace)
    assert [piece.token for piece in table(Scene(run, 0), "propose")[3]] == [4, 1]
    assert "from a prompt" in Scene(run, 0).words("verify")
    assert not any(
        paid_off(run, step) and all(row["behind"] == "prompt" for row in step.panel["rows"]) for step in run.steps
    )


def test_a_panel_of_another_making_is_drawn_as_far_as_it_can_be_read() -> None:
    """A file may claim anything."""
    trace = record("token_recycling")
    k = next(k for k, step in enumerate(trace.steps) if step.accepted)
    root = trace.steps[k].tokens[0]
    row = {"token": root, "entries": [1] * 500, "ago": -(10**9), "behind": "accepted"}
    for panel in (
        {},
        {
            "rows": [{"token": root}, {**row}, {**row, "entries": []}],
            "changed": [[root, [], [2, 2, 2], "rejected"]] * 600,
        },
        {"rows": [{**row, "ago": 10**9, "behind": "else"}], "changed": [[root]], "known": -1},
    ):
        assert Scene(RunState.of(changed(trace, k, panel=panel)), k).pieces("commit")
