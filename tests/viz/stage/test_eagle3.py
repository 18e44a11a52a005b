"""EAGLE-3 on the stage: what feeds the drafter, the products of its guesses, and what it cannot say."""

from __future__ import annotations

from tests.viz.records import changed, record
from viz.run_state import RunState
from viz.stage.parts import depths_of
from viz.wording import share

from .scenes import Scene

TRACE = record("eagle3")
RUN = RunState.of(TRACE)
DRAFTING = [k for k, step in enumerate(TRACE.steps) if step.drafted]


def test_every_tapped_layer_feeds_the_feature_that_is_read_with_the_root() -> None:
    """The states are those of the token in front of the root: the target has not read the root itself yet."""
    for k in DRAFTING:
        step, scene = TRACE.steps[k], Scene(RUN, k)
        left = [piece for piece in scene.pieces("propose") if piece.zone == "features"]
        [root] = [piece for piece in left if piece.node == 0]
        others = [piece for piece in left if piece.node < 0]
        assert root.token == step.tokens[0] and {piece.token for piece in others} == {RUN.ids[step.start - 2]}
        assert len(others) == len(step.panel["layers"]) + 1
        assert {"embedding", "layer 1", "layer 2", "one feature"} <= {*scene.frames("propose")}
        flows = scene.links("flow", "propose")
        assert len(flows) == len(others) and (feature := {one for one, other in flows if other == root.id})
        assert {other for one, other in flows if one not in feature} == feature


def test_guesses_come_out_of_their_parents_and_rows_end_with_their_products() -> None:
    for k in DRAFTING:
        step, scene = TRACE.steps[k], Scene(RUN, k)
        guesses = {piece.node: piece for piece in scene.pieces("propose") if piece.zone == "guesses"}
        [root] = [piece for piece in scene.pieces("propose") if piece.zone == "features" and piece.node == 0]
        for node, piece in guesses.items():
            above = step.parents[node]
            assert piece.origin == (guesses[above].id if above else root.id)
        rows: dict[float, int] = {}
        for node, piece in guesses.items():
            last = rows.setdefault(piece.y, node)
            rows[piece.y] = max(last, node, key=lambda each: depths_of(step.parents)[each])
        words = scene.words("propose")
        assert all(share(step.panel["products"][node - 1]) in words for node in rows.values())
        assert set(step.path[1:]) <= {*guesses, *(n for n, d in enumerate(depths_of(step.parents)) if d > 5)}


def test_the_largest_products_are_those_that_are_seen() -> None:
    """A guess that is left out is no better than the worst of the rows' ends, unless its parent is left out too."""
    for k in DRAFTING:
        step, scene = TRACE.steps[k], Scene(RUN, k)
        first = [node for node, parent in enumerate(step.parents) if parent == 0]
        seen = {piece.node for piece in scene.pieces("propose") if piece.zone == "guesses"}
        best = max(first, key=lambda node: step.panel["products"][node - 1])
        assert best in seen


def test_words_that_the_drafter_lacks_are_named_once_they_are_known() -> None:
    step = TRACE.steps[DRAFTING[0]]
    lacking = changed(TRACE, step.index, panel={**step.panel, "unsayable": [step.emitted[-1]]})
    scene = Scene(RunState.of(lacking), step.index)
    assert any(word.startswith("The drafter's vocabulary ") for word in scene.words("accept"))
    assert not any(word.startswith("The drafter's vocabulary ") for word in scene.words("propose"))


def test_drift_is_a_gauge_for_the_root_and_for_every_accepted_guess() -> None:
    for k in DRAFTING:
        cosines, words = TRACE.steps[k].panel["agreement"], Scene(RUN, k).words("accept")
        assert all({f"+{x}" if x else "root", f"{cosine:.2f}"} <= {*words} for x, cosine in enumerate(cosines[:5]))


def test_panels_of_other_makers_are_drawn() -> None:
    """Numbers that no run of ours would write."""
    k = DRAFTING[0]
    for panel in (
        {},
        {"products": [7.0] * 60, "layers": [2**30] * 9, "agreement": [-5.0, 9.0], "stopped": "budget"},
        {"products": [0.5], "unsayable": [*range(500)], "vocabulary": None},
    ):
        scene = Scene(RunState.of(changed(TRACE, k, panel=panel)), k)
        assert scene.pieces("commit") and scene.base["zones"]
    assert "and 6 more layers" in Scene(RunState.of(changed(TRACE, k, panel={"layers": [*range(9)]})), k).words(
        "propose"
    )


def test_a_step_without_a_guess_says_why() -> None:
    assert "no guess: the prompt has to be read first" in Scene(RUN, 0).words("propose")


def test_a_step_whose_guesses_are_all_unlikely_says_so() -> None:
    few = changed(TRACE, 0, panel={"stopped": "", "made": 4})
    assert "no guess: all guesses are below the threshold" in Scene(RunState.of(few), 0).words("propose")
