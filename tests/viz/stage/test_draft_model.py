"""A draft model on the stage: what the drafter wrote, what the target says of it, and what is thrown away."""

from __future__ import annotations

from dataclasses import replace

from tests.toys import counted_text, engine
from tests.viz.records import changed, record

from .scenes import numbers, shipped, steps


def said(p: float | None) -> str:
    """Return a probability as the stage says it."""
    assert p is not None
    return f"{p:.2f}" if p >= 0.005 else "<.01"


def test_a_drafted_token_comes_out_of_the_one_before() -> None:
    """The drafter writes one token after another."""
    seen = 0
    for _, step, scene in steps(record("draft_model")):
        pieces = {piece.node: piece for piece in scene.pieces("propose") if piece.zone == "guesses"}
        assert [*pieces] == [*range(1, step.drafted + 1)]
        for node in range(2, step.drafted + 1):
            assert pieces[node].origin == pieces[node - 1].id
            seen += 1
    assert seen > 10


def test_the_target_answers_at_every_place() -> None:
    """Above each drafted token is the target's own, after the last one more, and not before the verdict."""
    for _, step, scene in steps(record("draft_model")):
        answers = [piece for piece in scene.pieces("accept") if piece.zone == "text" and piece.y == 1]
        answers.sort(key=lambda piece: piece.x)
        assert len({piece.x for piece in answers}) == len(answers) == step.drafted + 1
        rest = [piece.token for piece in answers[step.accepted + 1 :]]
        assert rest == list(step.choices[step.accepted + 1 :])


def test_the_first_disagreement_is_a_pair() -> None:
    """A line joins the drafter's word and the target's, in one column; without a disagreement there is none."""
    seen = 0
    for _, step, scene in steps(record("draft_model")):
        pairs = scene.links("against", "accept")
        assert not scene.links("against", "verify")
        assert len(pairs) == (step.accepted < min(step.drafted, len(step.emitted)))
        pieces = {piece.id: piece for piece in scene.pieces("accept")}
        places = scene.base["wide"]["places"]
        for own, wrong in pairs:
            assert pieces[own].token == step.emitted[-1] and pieces[wrong].node == step.accepted + 1
            assert pieces[own].x + places[0][0] == pieces[wrong].x + places[1][0]
            seen += 1
    assert seen > 2


def test_what_is_wrong_is_counted() -> None:
    """From the first wrong token on all of it is thrown away."""
    for _, step, scene in steps(record("draft_model")):
        wrong = step.drafted - step.accepted
        assert not wrong or f"{wrong} drafted token" in " ".join(scene.words("commit"))


def test_chances_are_said_where_they_were_drawn() -> None:
    """Of a sampled run: q at once, p and min(1, p/q) with the answers, and u of what was tested."""
    rejected = 0
    for run, step, scene in steps(record("draft_model")):
        assert run.header.sampling["temperature"]
        early, late = scene.words("verify"), scene.words("accept")
        answers = [word for word in scene.words("answers") if word.startswith("p ")]
        assert answers == [f"p {said(p)}" for p in step.p[1:]]
        assert not [word for word in early if word.startswith("p ")]
        for node in range(1, step.drafted + 1):
            assert f"q {said(step.q[node])}" in early
        judged = range(1, min(step.accepted + 1, step.drafted) + 1)
        assert [word for word in late if word.startswith("p ")] == [f"p {said(step.p[node])}" for node in judged]
        for node in judged:
            chance = min(1.0, (step.p[node] or 0) / (step.q[node] or 1))
            assert said(chance) in late
            assert f"u {step.u[node]:.2f}" in late and (step.u[node] < chance) == (node in step.path)
            rejected += chance < 1
    assert rejected > 2


def test_bars_are_as_long_as_the_drafter_was_sure() -> None:
    """Below each token, and where it was unsure it says why it stopped."""
    stopped = 0
    for _, step, scene in steps(shipped("smollm2-prime-draft_model")):
        sure = step.panel["confidence"]
        shares = zip(*map(numbers, scene.patch.get("some", {}).get("share", ((), ()))), strict=True)
        nodes = numbers(scene.patch["pieces"]["nodes"])
        bars = {nodes[piece]: share for piece, share in shares}
        assert len(bars) == len(sure)
        assert all(abs(bars[node] - each) < 0.001 for node, each in enumerate(sure, start=1))
        unsure = bool(sure) and sure[-1] < step.panel["threshold"]
        words = [word for word in scene.words("propose") if word.startswith("stopped")]
        assert words == ([f"stopped: {sure[-1]:.2f} is under the limit 0.3"] if unsure else [])
        stopped += unsure
    assert stopped > 10


def test_no_guess_says_why() -> None:
    """The last token asked for needs no draft."""
    trace = record("draft_model")
    last = trace.steps[-1]
    bare = {"tokens": last.tokens[:1], "parents": (-1,), "roles": last.roles[:1], "sources": ("root",), "path": (0,)}
    full = {"choices": last.choices[:1], "p": (None,), "q": (None,), "top": last.top[:1], "draft_top": ()}
    none = changed(trace, -1 % len(trace.steps), **bare, **full, emitted=last.emitted[:1], accepted=0, drafted=0)
    none = replace(none, header=replace(none.header, max_new_tokens=last.start + 1 - len(trace.header.prompt)))
    *_, (_, _, scene) = steps(none)
    assert "no guess: only one more token is needed" in scene.words("propose")


def test_guesses_without_room_are_counted_below_the_numbers() -> None:
    """The words covered the probabilities of a chain with more than six tokens."""
    seen = 0
    sampling, options = {"temperature": 0.7, "seed": 4}, {"max_new_tokens": 24, "record": "full"}
    trace = engine(counted_text()).generate((3, 1, 4, 1, 5), "draft_model", {"gamma": 9}, sampling=sampling, **options)
    for _, _, scene in steps(trace.trace):
        words = scene.patch.get("words", {"text": {"strings": ()}, "y": ()})
        rows = dict(zip(words["text"]["strings"], numbers(words["y"]), strict=True))
        for more in (rows.pop(text) for text in [*rows] if text.endswith(" more")):
            assert max(y for text, y in rows.items() if text[:2] in ("q ", "p ", "u ")) < more - 0.5
            seen += 1
    assert seen
