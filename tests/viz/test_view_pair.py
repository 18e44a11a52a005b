"""Target against drafter: the bars are the recorded p and q, and the sentence says what the engine did with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from decoding import tree
from decoding.types import Role, Step, Trace
from tests.toys import correlated, counted_text, engine
from viz.fates import node_fates, target_choices
from viz.palette import LIGHT, MEANINGS
from viz.run_state import RunState
from viz.stream.encode import resolve
from viz.views.pair import (
    CUT,
    DRAFT,
    MARKS,
    NAMES,
    ROOT,
    SAY,
    TARGET,
    UNTRIED,
    VIEW,
    default_node,
    keep,
    of_node,
    pinned,
    residuals,
)

from .drawings import drawn
from .records import METHODS, changed, record

DRAFTERS = ("draft_model", "kangaroo", "ouroboros")
NTH = ("best", "2nd best", "3rd best", "4th best", "5th best")


def sampled(method: str, **sampling: Any) -> Trace:
    """A sampled run whose drafter is often wrong."""
    model = counted_text()
    sampling = {"temperature": 1.0, "seed": 5} | sampling
    made = engine(model, correlated(model, mix=0.3)).generate(
        [1, 2, 3, 4, 5, 1, 2], method, record="full", max_new_tokens=40, sampling=sampling
    )
    return made.trace


def full(method: str) -> Trace:
    """A greedy run with all probabilities."""
    prompt = [1, 2, 3, 4, 5, 1, 2, 3]
    return engine(counted_text()).generate(prompt, method, record="full", max_new_tokens=30).trace


def shares(step: Step, node: int) -> dict[int, float]:
    """The target's recorded shares at the place of a node."""
    parent = max(0, step.parents[node])
    ways, best = tree.paths(step.parents, step.tokens), step.draft_top[parent] if step.draft_top else ()
    recorded = {token: p for token, _, p in best} | dict(step.top[parent])
    for guess, above in enumerate(step.parents):
        wanted = guess == node or (step.roles[guess] is Role.VERIFY and ways[above] == ways[parent])
        if guess and wanted and step.p[guess] is not None:
            recorded.setdefault(step.tokens[guess], step.p[guess] or 0.0)
    return recorded


@pytest.mark.sampled
@pytest.mark.parametrize("method", [name for name in METHODS if name != "autoregressive"])
def test_bars_are_the_recorded_shares(method: str) -> None:
    """Of every node that can be pinned, not only of the one that is shown first."""
    trace = full(method)
    state, seen = RunState.of(trace), 0
    for step in trace.steps:
        for node in range(0, len(step.tokens), 3):
            got = RunState(trace.header, {token: f"t{token}" for token in range(50)}, state.steps)
            data = drawn_pair(got, step, node)
            names, p = data[NAMES]["text"], data[TARGET]["x"]
            recorded = shares(step, node)
            assert (
                dict(zip((int(name[1:]) for name in names), p, strict=True)).items()
                <= {token: round(share, 4) for token, share in recorded.items()}.items()
            )
            assert p == sorted(p, reverse=True) and len(p) == min(7, len(recorded))
            assert not node or f"t{step.tokens[node]}" in names
            marks = dict(zip(data[MARKS]["sign"], data[MARKS]["y"], strict=True))
            if node:
                assert names[marks[MEANINGS[node_fates(step)[node]].symbol]] == f"t{step.tokens[node]}"
            seen += 1
    assert seen > 10


def sentence(trace: Trace, step: Step, node: int) -> str:
    """What is said of a guess."""
    state = RunState(trace.header, dict(trace.texts), [replace(step, index=0)])
    text: str = of_node(state, 0, node)["data"][SAY]["text"]["strings"][0]
    return text


def drawn_pair(state: RunState, step: Step, node: int) -> list[dict[str, Any]]:
    """The traces of a node's figure, resolved."""
    resolved = resolve(of_node(state, step.index, node), state.texts, (), LIGHT, step)
    data: list[dict[str, Any]] = resolved["data"]
    return data


def test_the_chance_to_be_kept_is_the_engines() -> None:
    """min(1, p/q), and p where nothing was drawn: over a run as many guesses are kept as these chances say."""
    trace, chance, kept, judged = sampled("draft_model"), 0.0, 0, 0
    for step in trace.steps:
        for node in [*step.path[1:], *[n for n in [default_node(step)] if n not in step.path]]:
            p, q = step.p[node], step.q[node]
            assert p is not None and q is not None
            assert keep(step, node) == pytest.approx(min(1.0, p / q))
            chance += keep(step, node) or 0.0
            kept += node in step.path
            judged += 1
    assert judged > 30 and 0 < kept < judged
    assert abs(chance - kept) < 4 * (judged / 4) ** 0.5  # four standard deviations of a fair coin's, at most


@pytest.mark.parametrize("method", ["draft_model", "kangaroo", "lookahead", "medusa"])
def test_the_default_is_the_first_rejected_guess(method: str) -> None:
    """What a visitor asks first of a step is why it ended."""
    for step in full(method).steps:
        node, end = default_node(step), step.path[-1]
        ways = tree.paths(step.parents, step.tokens)
        columns = enumerate(zip(step.parents, step.roles, strict=True))
        rejected = [n for n, (above, role) in columns if role is Role.VERIFY and ways[above] == ways[end]]
        assert node == (rejected[0] if rejected else end)


def test_the_sentence_follows_the_way_of_sampling() -> None:
    """A greedy run keeps what is likeliest, a sampled one what chance keeps, a copied guess has no q."""
    for trace, words in ((full("draft_model"), "target's best"), (sampled("draft_model"), "min(1, p/q)")):
        k = next(step.index for step in trace.steps if step.drafted)
        assert words in drawn(trace, VIEW, k)["data"][SAY]["text"][0]
        assert any(drawn(trace, VIEW, k)["data"][DRAFT]["x"])
    for method in DRAFTERS:
        trace = full(method)
        for step in trace.steps:
            got = "".join(sentence(trace, step, node) for node in range(len(step.tokens)))
            assert "p/q" not in got and "p - q" not in got
    trace = sampled("prompt_lookup")
    k = next(step.index for step in trace.steps if step.drafted)
    figure = drawn(trace, VIEW, k)["data"]
    assert "copied, not sampled" in figure[SAY]["text"][0] and not figure[DRAFT]["x"]
    k = next(step.index for step in trace.steps if not step.drafted)
    assert drawn(trace, VIEW, k)["data"][SAY]["text"][0] == ROOT


def test_a_guess_that_was_never_tried_is_called_so() -> None:
    """Behind the first rejected guess nothing is kept by chance, and nothing is drawn from what is left."""
    trace, seen = sampled("draft_model"), set[str]()
    for step in trace.steps:
        for node in range(1, len(step.tokens)):
            got = sentence(trace, step, node)
            never = step.parents[node] not in step.path
            assert (got == UNTRIED) == never
            assert ("max(0, p - q)" in got) == (not never and node not in step.path)
            seen.add(got)
    assert UNTRIED in seen
    step = next(step for step in trace.steps if step.accepted > 1)
    cut = replace(step, path=step.path[:2], accepted=1, emitted=step.emitted[:1])
    assert {sentence(trace, cut, node) for node in range(2, len(step.tokens))} == {CUT}
    assert "below min(1, p/q)" in sentence(trace, cut, 1)
    assert "accepted with probability" in sentence(trace, replace(cut, u=()), 1)  # of an older record


def test_what_is_drawn_from_after_a_rejection_is_the_residual() -> None:
    """A guess is lost to what p has above q, in shares of all of that; the token that followed is one of these."""
    trace, known = sampled("draft_model"), 0
    for step in trace.steps:
        left = residuals(step)
        lost = {node for node, u in enumerate(step.u) if u is not None and node not in step.path}
        assert left.keys() <= lost
        for node, rows in left.items():
            parent = step.parents[node]
            p, q = ({token: (p, q)[which] for token, q, p in step.draft_top[parent]} for which in (0, 1))
            mass, overlap = sum(share for _, share in rows), step.overlap[parent]
            assert overlap is not None and mass <= 1 + 1e-3 and [*rows] == sorted(rows, key=lambda row: -row[1])
            assert all(share == pytest.approx((p[token] - q[token]) / (1 - overlap), abs=1e-3) for token, share in rows)
            assert step.tokens[node] not in dict(rows)
            known += dict(rows).keys() >= {step.emitted[step.accepted]}
    assert known > 3


def test_what_a_twin_guessed_was_guessed() -> None:
    """Rows of equal beginnings are one place in the text: the row beside tried what this one did not."""
    trace, got = full("ngrammys"), 0
    state = RunState.of(trace)
    for step in trace.steps:
        ways = tree.paths(step.parents, step.tokens)
        for node in range(len(step.tokens)):
            parent = max(0, step.parents[node])
            guessed = {step.tokens[n] for n in range(1, len(ways)) if ways[n][:-1] == ways[parent]}
            children = {step.tokens[n] for n in range(1, len(ways)) if step.parents[n] == parent}
            words = drawn_pair(state, step, node)[SAY]["text"][1]
            several = f"of {len(guessed)}.", f"of the {len(guessed)} guesses."
            assert words.endswith(several if len(guessed) != 1 else ("was the guess.", "was not the guess."))
            tried = words.startswith(("The target's choice was guess", "The target's choice was the guess"))
            assert tried == (step.choices[parent] in guessed)
            got += guessed != children
    assert got > 0


@pytest.mark.parametrize("method", ["draft_model", "lookahead", "ngrammys"])
def test_what_a_pin_may_ask_for_is_made_at_once(method: str) -> None:
    """A picture for each node, as when it is asked for alone, and one for the target's own token."""
    trace = full(method)
    state = RunState.of(trace)
    for k, step in enumerate(trace.steps):
        *nodes, target = pinned(state, k)
        assert nodes == [of_node(state, k, node) for node in range(len(step.tokens))]
        assert "chose this token itself" in target["data"][SAY]["text"]["strings"][0]
        assert "diamond" in target["data"][MARKS]["sign"] or step.choices[step.path[-1]] not in dict(
            step.top[step.path[-1]]
        )


@pytest.mark.sampled
@pytest.mark.parametrize("make", [full, sampled, lambda method: sampled(method, top_k=2)])
@pytest.mark.parametrize("method", DRAFTERS)
def test_the_drafters_distribution_is_drawn_beside_the_targets(method: str, make: Callable[[str], Trace]) -> None:
    """What the drafter liked and the target did not is what the view is for, in greedy runs too."""
    trace, alone, distributions, ranks = make(method), 0, 0, set[str]()
    texts = {token: f"t{token}" for token in range(50)}
    state = RunState(trace.header, texts, RunState.of(trace).steps)
    for step in trace.steps:
        for node in range(len(step.tokens)):
            parent = max(0, step.parents[node])
            distribution = {token: q for token, q, _ in step.draft_top[parent]} if step.draft_top else {}
            data = drawn_pair(state, step, node)
            shown, bars = data[NAMES]["text"], data[DRAFT] or {"x": [], "y": []}
            mine = {shown[round(y - 0.2)]: q for q, y in zip(bars["x"], bars["y"], strict=True)}
            assert len(shown) <= 7
            if not distribution:
                assert "the drafter's" not in data[SAY]["text"][1]
                continue
            taken = target_choices(step)[parent]
            assert {
                name: round(distribution[int(name[1:])], 4) for name in shown if int(name[1:]) in distribution
            }.items() <= mine.items()
            first = {max(distribution, key=lambda token: distribution[token]), *([step.tokens[node]] if node else ())}
            first |= {taken} & shares(step, node).keys()
            assert {f"t{token}" for token in first} <= {*shown}
            alone += any(int(name[1:]) not in dict(step.top[parent]) and name in mine for name in shown)
            distributions += 1
            place = [*distribution].index(taken) if taken in distribution else -1
            wanted = (
                f"the drafter's {NTH[place]}, q {distribution[taken]:.3f}"
                if place >= 0
                else "not among the drafter's best"
            )
            if place < 0 and len(distribution) > 1:
                wanted += f" {len(distribution)}"
            assert data[SAY]["text"][1] == f"The target's choice was {wanted}."
            ranks.add(wanted.split(",")[0])
    assert distributions > 20 and alone and "the drafter's best" in ranks and len(ranks) > 2


def test_what_to_look_for_is_the_rule_that_judged() -> None:
    """Greedily no guess is tested by its share: a long bar of the drafter costs it nothing."""
    greedy, free = (RunState(sampled("draft_model", temperature=t).header) for t in (0.0, 1.0))
    assert VIEW.base(greedy)["look_for"].startswith("A guess is accepted where its target bar is the longest")
    assert "look_for" not in VIEW.base(free) and "may be rejected" in VIEW.look_for


def test_a_record_without_the_drafters_distributions_shows_what_it_has() -> None:
    """The shares of sampled tokens alone, and the target's choice among the guesses."""
    trace = sampled("draft_model")
    k = next(step.index for step in trace.steps if step.drafted)
    step = replace(trace.steps[k], draft_top=())
    data = drawn_pair(RunState.of(changed(trace, k, draft_top=())), step, 1)
    assert data[DRAFT]["x"] == [round(step.q[1] or 0.0, 4)]
    assert data[SAY]["text"][1] in (
        "The target's choice was the guess.",
        "The target's choice was not the guess.",
    )


def test_a_light_record_says_so() -> None:
    """An empty chart without a word looks like an error."""
    trace = full("medusa")
    light = replace(trace.header, record="light")
    assert VIEW.shows(trace.header) and not VIEW.shows(light)
    notes = VIEW.base(RunState(light))["layout"]["annotations"]
    assert any("Record it in full" in note["text"] for note in notes)
    assert not any("Record it" in note["text"] for note in VIEW.base(RunState(trace.header))["layout"]["annotations"])
    bare = changed(trace, 1, top=(), p=(), q=())
    assert VIEW.frame(RunState.of(bare), 1) == {}
    assert not VIEW.shows(record("autoregressive").header)


def test_a_changed_record_gives_another_figure() -> None:
    """The negative control of the tests above."""
    trace = full("draft_model")
    k = next(step.index for step in trace.steps if step.drafted)
    best = [[*row] for row in trace.steps[k].top]
    (token, share), *rest = best[max(0, trace.steps[k].parents[default_node(trace.steps[k])])]
    best[max(0, trace.steps[k].parents[default_node(trace.steps[k])])] = [(token, share / 2), *rest]
    other = changed(trace, k, top=tuple(tuple(row) for row in best))
    assert drawn(trace, VIEW, k)["data"][TARGET] != drawn(other, VIEW, k)["data"][TARGET]
