"""Medusa against its description: the tree it draws, the state it draws from, and what its runs write."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch

from decoding.codec import Codec
from decoding.engine import Engine, Result
from decoding.errors import ParamError
from decoding.methods.base import Context
from decoding.methods.medusa import Medusa, MedusaParams
from decoding.model.table import TableModel
from decoding.parts import Parts
from decoding.parts.medusa_tree import default
from decoding.sampling import Sampler, Sampling
from decoding.tree import path_to
from decoding.types import JSON, Draft, Role, Verdict
from tests.toy_heads import ToyHeads, make
from tests.toys import cycle, hashed, plain, prompt_for, title, toy

CHAIN = "0;0,0;0,0,0;0,0,0,0"
SETTINGS: Sequence[Mapping[str, Any]] = [
    {},
    {"tree": "cartesian", "sizes": "3,2,2", "acceptance": "typical"},
    {"tree": "given", "paths": "0;1;0,0;0,1;1,0;0,0,0;5", "heads": 3},
    {"size": 1, "heads": 1},
    {"size": 256, "heads": 64},
]
every_setting = pytest.mark.parametrize("params", SETTINGS, ids=title)


def engine(model: TableModel, heads: ToyHeads | None = None) -> Engine:
    """Make an engine with heads."""
    return Engine(model, Codec(), parts=Parts({"medusa": lambda progress: heads or make(model)}))


def run(model: TableModel, params: Mapping[str, Any], heads: ToyHeads | None = None, **options: Any) -> Result:
    """Make a run with heads."""
    return engine(model, heads).generate(options.pop("prompt", (1, 2)), Medusa, params=params, **options)


def proposal(guesser: ToyHeads, text: Sequence[int], remaining: int = 99, /, **settings: Any) -> tuple[Draft, Medusa]:
    """Return the draft after a text, of which all but the last token has been read."""
    limits = {name: settings.pop(name) for name in ("end_tokens", "largest_step") if name in settings}
    sampler = Sampler(Sampling(), 9, torch.device("cpu"), text)
    context = Context([*text], len(text), remaining, sampler, parts={"medusa": guesser}, **limits)
    method = Medusa(context, MedusaParams(**settings))
    tail = torch.tensor([*[-1] * 9, *text[:-1]][-2:], dtype=torch.float64)
    guesses = tuple(method.guess(tail).flatten().tolist())
    method.observe(Draft((0,), (-1,), (Role.ROOT,), ("root",)), Verdict((0,), (text[-1],), (0,), guesses))
    draft = method.propose()
    assert isinstance(draft, Draft)
    return draft, method


def paths(draft: Draft) -> list[tuple[str, ...]]:
    """Return every guess as the sources on its way from the root."""
    return [tuple(draft.sources[i] for i in path_to(draft.parents, node)[1:]) for node in range(1, len(draft.tokens))]


def test_nothing_is_drafted_before_the_target_has_said_anything() -> None:
    """There is no hidden state that the heads could look at."""
    steps = run(hashed(), {}, max_new_tokens=9).trace.steps
    assert (steps[0].tokens, steps[0].drafted) == ((2,), 0)
    assert steps[1].drafted > 0


def test_a_node_holds_the_guess_that_its_path_names() -> None:
    """The token depends on depth and rank alone, not on what is above: a Cartesian product of lists."""
    heads = make(hashed(order=2))
    draft, _ = proposal(heads, (4, 1, 3), tree="cartesian", sizes="2,3")
    first, second = heads.top(torch.tensor([4.0, 1.0]), 3)[:2].tolist()
    assert draft.tokens == (3, *first[:2], *second, *second)
    assert draft.parents == (-1, 0, 0, 1, 1, 1, 2, 2, 2)
    below = ("medusa:2,0", "medusa:2,1", "medusa:2,2")
    assert draft.sources == ("root", "medusa:1,0", "medusa:1,1", *below, *below)
    assert draft.q is None and set(draft.roles[1:]) == {Role.VERIFY}


class Watched(Medusa):
    """Checks the hidden state after every step: it must be that of the token in front of the next root."""

    seen = 0

    def guess(self, hidden: torch.Tensor) -> torch.Tensor:
        """Assert where the heads look from: the root, or a rejected node, would be one token or a branch off."""
        assert hidden.tolist() == [-1, -1, *self._context.text[:-1]][-2:]
        type(self).seen += 1
        return super().guess(hidden)


@pytest.mark.parametrize("mix", [0.1, 0.6, 1.0])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("acceptance", ["lossless", "typical"])
def test_the_heads_look_from_the_last_accepted_node(mix: float, temperature: float, acceptance: str) -> None:
    """After none, some and all of the guesses were accepted, and for prompts of one token."""
    model, accepted = hashed(vocabulary=9, order=2, sharpness=3.0), set[int]()
    params = {"size": 20, "acceptance": acceptance}
    for prompt in ((1,), (1, 2, 3)):
        for chunk in (1, 512):
            options = {"sampling": {"temperature": temperature}, "max_new_tokens": 40, "prefill_chunk": chunk}
            result = engine(model, make(model, 3, mix)).generate(prompt, Watched, params=params, **options)
            accepted |= {step.accepted for step in result.trace.steps[1:]}
    assert len(accepted) >= 3 or mix == 1.0 and max(accepted) == 3
    assert Watched.seen > 0


def test_perfect_heads_write_one_token_more_than_there_are_heads() -> None:
    """An offset of one between heads and places would accept nothing."""
    for seed in range(5):
        model = hashed(seed=seed)
        result = run(model, {"tree": "given", "paths": CHAIN}, make(model, 4, 1.0), max_new_tokens=31)
        assert [len(step.emitted) for step in result.trace.steps] == [1, *[5] * 6]
        assert result.ids == plain(model, (1, 2), 31)
        result = run(model, {"tree": "given", "paths": CHAIN, "heads": 2}, make(model, 4, 1.0), max_new_tokens=31)
        assert [len(step.emitted) for step in result.trace.steps] == [1, *[3] * 10]


@pytest.mark.sampled
@every_setting
def test_greedy_text_is_the_plain_one(params: Mapping[str, Any]) -> None:
    """No tree, no budget, no vocabulary and no acceptance rule may change a greedy token."""
    guesses = 0
    for seed in range(5):
        model = toy(seed, seed)
        prompt, machine = prompt_for(model, seed), engine(model)
        expected = plain(model, prompt, 30)
        for budget in (1, 2, 3, 30):
            result = machine.generate(prompt, Medusa, params=params, max_new_tokens=budget)
            assert result.ids == expected[:budget], f"seed {seed}, budget {budget}"
            guesses += sum(step.accepted for step in result.trace.steps)
        for end in sorted(set(expected[:12]))[:3]:
            result = machine.generate(prompt, Medusa, params=params, max_new_tokens=30, end_tokens=[end])
            assert result.ids == expected[: expected.index(end) + 1]
        penalty = {"repetition_penalty": 1.3}
        result = machine.generate(prompt, Medusa, params=params, max_new_tokens=20, sampling=penalty)
        assert result.ids == plain(model, prompt, 20, 1.3)
    assert guesses > 50


def test_nothing_is_drafted_behind_an_end_or_the_budget_or_the_room() -> None:
    """Such guesses can never be emitted, and a step that is too large ends the run."""
    heads = make(cycle(9), 4, 1.0)  # behind ..., 2 come 3, 4, 5, 6
    settings = {"tree": "given", "paths": CHAIN + ";1;1,0;0,1"}
    whole, _ = proposal(heads, (1, 2), **settings)
    assert len(whole.tokens) == 8 and whole.tokens[1] == 3
    ended, _ = proposal(heads, (1, 2), end_tokens=frozenset({4}), **settings)
    assert ("medusa:1,0", "medusa:2,0") in paths(ended)
    assert not any(len(path) > 2 and path[1] == "medusa:2,0" for path in paths(ended))
    for remaining, deepest in ((1, 0), (2, 1), (3, 2), (5, 4), (9, 4)):
        draft, _ = proposal(heads, (1, 2), remaining, **settings)
        assert max(map(len, paths(draft)), default=0) == deepest
    for room in range(1, 9):
        draft, _ = proposal(heads, (1, 2), largest_step=room, **settings)
        assert paths(draft) == paths(whole)[: room - 1]


def test_a_tree_is_cut_to_the_heads_and_the_vocabulary() -> None:
    """Published trees are four deep and ten wide, whatever the model."""
    draft, _ = proposal(make(cycle(3), 2), (1, 2), tree="given", paths=CHAIN + ";1;2;3;3,0;1,9")
    assert set(paths(draft)) == {("medusa:1,0",), ("medusa:1,0", "medusa:2,0"), ("medusa:1,1",), ("medusa:1,2",)}
    draft, _ = proposal(make(cycle(3), 4), (1, 2), heads=1)
    assert paths(draft) == [("medusa:1,0",), ("medusa:1,1",), ("medusa:1,2",)]
    draft, _ = proposal(make(cycle(9), 4), (1, 2), heads=64)
    assert max(map(len, paths(draft))) == 4


def test_a_sparse_tree_grows_from_the_heads_own_accuracies() -> None:
    """Measured ones say more than any built-in table."""
    heads = make(cycle(9), 2)
    heads.accuracies = [[0.0, 0.9], [0.5, 0.1]]
    draft, _ = proposal(heads, (1, 2))
    assert paths(draft) == [("medusa:1,1",), ("medusa:1,1", "medusa:2,0"), ("medusa:1,1", "medusa:2,1")]
    heads.accuracies = [[0.0], [0.0]]
    assert proposal(heads, (1, 2))[0].tokens == (2,), "heads that are never right are not asked"


def test_typical_acceptance_is_greedy_where_nothing_is_left_to_chance() -> None:
    """At temperature zero, and close to it, only the likeliest token has any probability."""
    for setting in ({}, {"temperature": 1e-6}, {"temperature": 1.0, "top_k": 1}, {"temperature": 1.0, "top_p": 0.0}):
        for seed in range(5):
            model = hashed(seed=seed)
            result = run(model, {"acceptance": "typical"}, max_new_tokens=30, sampling=setting)
            assert result.ids == plain(model, (1, 2), 30)


def test_typical_acceptance_changes_the_distribution_and_the_lossless_rule_does_not() -> None:
    """The negative control: this rule takes the likeliest guess where the target would often say something else."""
    model = hashed(vocabulary=6, order=1, sharpness=1.0)
    everything = {"tree": "cartesian", "sizes": "6"}
    machine, likely = engine(model), {"lossless": 0, "typical": 0, "autoregressive": 0}
    for seed in range(150):
        for rule in likely:
            method, params = (Medusa, {**everything, "acceptance": rule}) if rule[0] != "a" else (rule, {})
            sampling = {"temperature": 1.0, "seed": seed}
            first, second, _ = machine.generate(
                (1,), method, params=params, sampling=sampling, max_new_tokens=3, record="off"
            ).ids
            likely[rule] += second == int(model.logits((first,)).argmax())
    assert likely["lossless"] == likely["autoregressive"] < 110
    assert likely["typical"] == 150


def test_typical_acceptance_takes_more_guesses_when_it_is_warm() -> None:
    """That is what it is for; and the higher its bounds, the fewer."""
    model, lengths = hashed(vocabulary=13, sharpness=2.0), list[float]()
    bounds = [
        {"acceptance": "lossless"},
        *({"acceptance": "typical", "epsilon": e, "delta": e} for e in (0.9, 0.3, 0.0)),
    ]
    for params in bounds:
        results = [
            run(model, params, max_new_tokens=60, sampling={"temperature": 1.0, "seed": seed}) for seed in range(5)
        ]
        lengths.append(sum(result.summary.mean_acceptance_length for result in results) / 5)
    lossless, strict, usual, anything = lengths
    assert strict < usual < anything and lossless < usual


def test_the_panel_tells_every_guess_and_where_each_token_stood() -> None:
    """The screen colours nodes by it, and a teacher sees which rank would have been right."""
    model = hashed(vocabulary=13)
    heads, seen, wide = make(model), set[object](), max(default(4, nodes=12).ranks) + 1
    result = run(model, {"size": 12}, heads, max_new_tokens=60, sampling={"temperature": 1.0})
    for step in result.trace.steps:
        panel = json.loads(json.dumps(step.panel))
        assert panel == step.panel and "typical" not in panel
        assert [f"medusa:{head},{rank}" for head, rank, _ in panel["nodes"]] == list(step.sources[1:])
        assert [node for node, row in enumerate(panel["nodes"], start=1) if row[2]] == list(step.path[1:])
        if step.index == 0:
            assert panel["hits"] == []
            continue
        text = [*result.trace.header.prompt, *result.ids][: step.start]
        lists = heads.top(torch.tensor(text[-3:-1], dtype=torch.float64), wide).tolist()
        hits = [row.index(token) if token in row else None for row, token in zip(lists, step.emitted, strict=False)]
        assert panel["hits"] == (hits if step.drafted else [])
        seen.update(panel["hits"])
    assert {0, 1, None} <= seen


def test_the_panel_names_the_bounds_where_they_count() -> None:
    """A greedy run ignores them, and a screen that shows them would mislead."""
    params = {"acceptance": "typical", "epsilon": 0.2, "delta": 0.5}
    for temperature, shown in ((1.0, {"epsilon": 0.2, "delta": 0.5}), (0.0, None)):
        result = run(hashed(), params, max_new_tokens=9, sampling={"temperature": temperature}, record="full")
        assert all(step.panel.get("typical") == shown for step in result.trace.steps)


def test_a_panel_stays_as_it_was() -> None:
    """Lists shared with the method would change in the record as the run goes on."""
    model = hashed()
    iterator = engine(model).decode((1, 2), Medusa, {}, max_new_tokens=40)
    kept = [json.dumps(step.panel) for step in iterator]
    assert [json.dumps(step.panel) for step in iterator.steps] == kept


def test_params_know_their_largest_step() -> None:
    """The engine gives a step the room that the settings ask for, and refuses what no step can hold."""
    assert MedusaParams().nodes == 64
    assert MedusaParams(size=256).nodes == 257
    assert MedusaParams(tree="cartesian", sizes="2,3").nodes == 9
    assert MedusaParams(tree="given", paths=CHAIN).nodes == 5
    assert MedusaParams().typical is None
    assert MedusaParams(acceptance="typical").typical == (0.09, 0.3), (
        "these two stand swapped in the reference's helpers"
    )
    for values in MedusaParams.presets.values():
        assert MedusaParams.parse(values).nodes <= 256
    model = hashed(vocabulary=31)
    steps = run(model, {"tree": "cartesian", "sizes": "15,16"}, max_new_tokens=5).trace.steps
    assert max(len(step.tokens) for step in steps) == 1 + 15 + 15 * 16
    steps = run(model, {"size": 256}, max_new_tokens=9).trace.steps
    assert max(len(step.tokens) for step in steps) == 257


@pytest.mark.parametrize(
    ("name", "value"),
    [("paths", "0,0"), ("paths", ""), ("sizes", "0"), ("sizes", "256,256"), ("size", 257), ("size", 0), ("tree", "oak")]
    + [("epsilon", 1.1), ("delta", -0.1), ("heads", 65), ("acceptance", "all"), ("paths", 3)],
)
def test_settings_that_make_no_sense_are_refused(name: str, value: JSON) -> None:
    """Before the run, in a sentence that names the setting."""
    with pytest.raises(ParamError):
        engine(hashed()).decode((1, 2), Medusa, {name: value})


def test_it_needs_heads() -> None:
    """Without them the run must be refused in words, before it starts."""
    with pytest.raises(ParamError, match="medusa needs Medusa heads: load the engine with medusa="):
        Engine(hashed(), Codec()).decode((1,), Medusa)


def test_a_cancelled_run_ends_behind_the_step_that_is_going_on() -> None:
    """And its tokens are right so far."""
    model = hashed()
    iterator = engine(model).decode((1, 2), Medusa, {}, max_new_tokens=400)
    for _ in range(2):
        next(iterator)
    iterator.cancel()
    assert list(iterator) == [] and iterator.finish == "cancelled"
    assert iterator.ids == plain(model, (1, 2), len(iterator.ids))
    assert iterator.trace.header.parts == {"medusa": "toy heads"}
