"""EAGLE-3, line by line: what the drafter reads, how a tree is grown and cut, and what a chain is drawn from."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from decoding.codec import Codec
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.model.table import TableModel
from decoding.parts import Parts
from decoding.types import Step
from tests import toy_eagle, toys

MODEL = toys.hashed(11, 2, 5, sharpness=2.5)
PROMPT = (3, 1, 4, 1, 5, 9, 2, 6)


def run(eagle: toy_eagle.ToyEagle, params: dict[str, Any], model: TableModel = MODEL, **options: Any) -> Any:
    engine = Engine(model, Codec(), parts=Parts({"eagle": lambda progress: eagle}))
    return engine.generate(PROMPT, "eagle3", params, record="full", end_tokens=(), **{"max_new_tokens": 40} | options)


def chances(eagle: toy_eagle.ToyEagle, text: list[int]) -> dict[int, float]:
    """Return the drafter's distribution after a text, over the tokens that it can say."""
    shares = torch.softmax(eagle.guess.logits(text), -1).tolist()
    ids = range(eagle.guess.card.vocabulary) if eagle.vocabulary is None else eagle.vocabulary.ids.tolist()
    return dict(zip(ids, shares, strict=True))


def best_tree(
    eagle: toy_eagle.ToyEagle, text: list[int], k: int, depth: int, m: int, expand: float = 0.0
) -> dict[tuple[int, ...], float]:
    """Return EAGLE-2's tree by paths, written without the drafter's code: products of the guesses that are kept."""
    products: dict[tuple[int, ...], float] = {}
    level: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(depth):
        fresh: dict[tuple[int, ...], float] = {}
        for path, product in level.items():
            behind = chances(eagle, [*text, *path])
            for token in sorted(behind, key=lambda each: (-behind[each], each))[:k]:
                fresh[(*path, token)] = product * behind[token]
        products |= fresh
        sure = [(path, product) for path, product in fresh.items() if product >= expand]
        level = dict(sorted(sure, key=lambda item: -item[1])[:k])
    return dict(sorted(products.items(), key=lambda item: -item[1])[:m])


def paths_of(step: Step) -> list[tuple[int, ...]]:
    paths: list[tuple[int, ...]] = []
    for token, parent in zip(step.tokens, step.parents, strict=True):
        paths.append((*paths[parent], token) if parent >= 0 else ())
    return paths[1:]


@pytest.mark.parametrize(("k", "depth", "m"), [(3, 4, 9), (2, 3, 60), (4, 2, 7), (1, 5, 5), (30, 2, 25)])
def test_a_tree_is_grown_by_products_and_its_best_guesses_are_kept(k: int, depth: int, m: int) -> None:
    """L5 and L6 against the same said in paths; every kept guess hangs off a kept one."""
    eagle = toy_eagle.make(MODEL)
    result = run(eagle, {"k": k, "depth": depth, "m": m})
    text = [*PROMPT, *result.ids]
    full = [step for step in result.trace.steps[1:] if 40 - (step.start - len(PROMPT)) > depth]
    assert len(full) > 5
    for step in full:
        wanted = best_tree(eagle, text[: step.start], k, depth, m)
        paths = paths_of(step)
        assert {*paths} == {*wanted} and len(paths) == len(wanted)
        assert step.panel["products"] == pytest.approx([wanted[path] for path in paths], abs=1e-6)


@pytest.mark.parametrize("expand", [0.05, 0.3, 1.0])
def test_nothing_is_guessed_behind_a_guess_below_the_bound(expand: float) -> None:
    """Guesses that are not worth the drafter's time may still be worth a row of the target's pass."""
    eagle = toy_eagle.make(MODEL)
    result = run(eagle, {"k": 3, "depth": 4, "m": 9, "expand": expand})
    text = [*PROMPT, *result.ids]
    for step in result.trace.steps[1:]:
        wanted = best_tree(eagle, text[: step.start], 3, min(4, 39 - (step.start - len(PROMPT))), 9, expand)
        assert {*paths_of(step)} == {*wanted}


def test_a_tree_may_have_no_guess() -> None:
    """Where nothing is sure enough."""
    result = run(toy_eagle.make(MODEL), {"threshold": 1.0})
    drafted = [step.drafted for step in result.trace.steps]
    assert len(result.ids) == 40 and 0 in drafted[1:]


@pytest.mark.parametrize("bound", ["threshold", "expand"])
def test_the_drafter_reads_no_guess_that_has_none_behind_it(bound: str) -> None:
    """Products fall along a path: after one that is too small, the drafter's time is lost."""
    for step in run(toy_eagle.make(MODEL), {"k": 3, "depth": 4, bound: 0.25}).trace.steps[1:-1]:
        read = [product for product in step.panel["products"] if product >= 0.25]
        assert step.panel["made"] <= 3 * (1 + len(read))


def test_features_are_replaced_by_the_targets_after_every_step() -> None:
    """L2: the toy's session refuses any feature but the right one, and holds the whole text in the end."""
    eagle = toy_eagle.make(MODEL)
    result = run(eagle, {"k": 3, "depth": 4, "m": 12}, prefill_chunk=3)
    assert result.summary.mean_acceptance_length > 1.3
    last = result.trace.steps[-1]
    assert eagle.sessions[-1].length >= last.start - 1 - len(last.emitted)


def test_the_first_step_has_nothing_to_draft_from_and_the_last_needs_nothing() -> None:
    steps = run(toy_eagle.make(MODEL), {}, max_new_tokens=7).trace.steps
    assert steps[0].panel["stopped"] == "start" and steps[0].drafted == 0
    assert all(max(len(path) for path in paths_of(step)) <= 7 - (step.start - len(PROMPT)) - 1 for step in steps[1:-1])
    if steps[-1].drafted == 0:
        assert steps[-1].panel["stopped"] == "budget"


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_a_chain_has_the_q_that_it_was_drawn_from(temperature: float) -> None:
    """L4: q is the drafter's distribution after temperature, and zero for what it cannot say."""
    eagle = toy_eagle.make(MODEL)
    result = run(eagle, {"form": "chain", "gamma": 3}, sampling={"temperature": temperature, "seed": 3})
    text = [*PROMPT, *result.ids]
    for step in result.trace.steps[1:]:
        behind = text[: step.start]
        for node in range(1, len(step.tokens)):
            logits = eagle.guess.logits(behind).float() / (temperature or 1.0)
            ids = eagle.vocabulary.ids.tolist() if eagle.vocabulary is not None else []
            q = dict(zip(ids, torch.softmax(logits, -1).tolist(), strict=True))
            assert step.q[node] == pytest.approx(q[step.tokens[node]], abs=1e-5)
            behind = [*behind, step.tokens[node]]
        assert all(token % 5 != 4 for token in step.tokens[1:]), "it drafted what it cannot say"


def test_guesses_of_a_sampled_tree_are_point_masses() -> None:
    """They were not drawn: with a q beside them the engine would accept them by the wrong rule."""
    steps = run(toy_eagle.make(MODEL), {"k": 3, "depth": 3, "m": 9}, sampling={"temperature": 1.0}).trace.steps
    assert all(q is None for step in steps for q in step.q)


@pytest.mark.parametrize("form", ["tree", "chain"])
def test_nothing_is_guessed_behind_an_unsure_one(form: str) -> None:
    steps = run(toy_eagle.make(MODEL), {"form": form, "threshold": 0.2, "gamma": 6}).trace.steps[1:]
    products = [step.panel["products"] for step in steps]
    if form == "tree":
        assert all(product >= 0.2 for each in products for product in each) and any(products)
    else:
        assert all(product >= 0.2 for each in products for product in each[:-1]) and any(
            len(each) < 6 for each in products
        )


def test_what_the_drafter_cannot_say_is_told() -> None:
    eagle = toy_eagle.make(MODEL)
    steps = run(eagle, {}).trace.steps
    for step in steps:
        written = {*step.choices, *step.emitted}
        assert step.panel["unsayable"] == sorted(token for token in written if token % 5 == 4)
        assert step.panel["vocabulary"] == 9
    assert any(step.panel["unsayable"] for step in steps)


def test_the_drafters_own_features_are_held_against_the_targets() -> None:
    """The toy makes exactly the target's; one number for the root and one for each accepted guess that it has read."""
    steps = run(toy_eagle.make(MODEL), {"k": 3, "depth": 4, "m": 20}).trace.steps
    assert steps[0].panel.get("agreement", []) == []
    for step in steps[1:-1]:
        cosines = step.panel["agreement"]
        assert 1 <= len(cosines) <= 1 + step.accepted and cosines == pytest.approx([1.0] * len(cosines), abs=1e-3)


def test_a_tree_larger_than_a_step_is_refused() -> None:
    with pytest.raises(ParamError, match="m must be"):
        run(toy_eagle.make(MODEL), {"m": 5000})
