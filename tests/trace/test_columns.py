"""What a full record holds of the drafter: its distribution after every node, and its share of every drafted token."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from decoding import loop
from decoding.model.table import TableModel
from decoding.outlook import Outlook
from decoding.ranking import likeliest, ranked
from decoding.sampling import Sampler, Sampling
from decoding.tree import path_to
from decoding.types import Trace
from tests import toy_adapter
from tests.toys import correlated, engine, hashed, plain

MODEL = hashed(31, 3, 3, sharpness=4.0)
DRAFTER = correlated(MODEL)
DRAFTERS = {"draft_model": DRAFTER, "kangaroo": toy_adapter.make(MODEL).guess, "ouroboros": DRAFTER}
PARAMS: dict[str, dict[str, Any]] = {"kangaroo": {"eta": 0.0}, "ouroboros": {"N": 3, "warm_start": "prompt"}}
PROMPT = (1, 2, *plain(MODEL, (1, 2), 20), 1, 2)
SETTINGS: list[dict[str, Any]] = [
    {},
    {"repetition_penalty": 1.4},
    {"temperature": 1.0, "seed": 2},
    {"temperature": 0.7, "top_k": 3, "repetition_penalty": 1.2, "seed": 5},
]


def trace_of(method: str, sampling: dict[str, Any], record: str = "full") -> Trace:
    options: dict[str, Any] = {"params": PARAMS.get(method), "sampling": sampling, "record": record}
    return engine(MODEL, DRAFTER).generate(PROMPT, method, max_new_tokens=40, **options).trace


def distribution(model: TableModel, text: Sequence[int], sampling: dict[str, Any]) -> torch.Tensor:  # (V,)
    """Return a model's distribution after a text, computed apart from any method."""
    sampler = Sampler(Sampling(**sampling), 31, torch.device("cpu"), text)
    return sampler.probabilities(sampler.penalise(model.logits(text)[None], [()])[0])


@pytest.mark.parametrize("method", DRAFTERS)
def test_the_number_of_every_test_is_recorded_and_decides_it(method: str) -> None:
    """A chance of 0.67 alone does not say why a guess was lost."""
    trace, outcomes = trace_of(method, {"temperature": 0.9, "seed": 5}), set[bool]()
    for step in trace.steps:
        first = {parent: node for node, parent in reversed([*enumerate(step.parents)])}
        for node, u in enumerate(step.u):
            p, q = step.p[node], step.q[node]
            if u is None or first[step.parents[node]] != node:
                continue  # after a rejected guess its neighbours are tested against what is left of p
            assert p is not None and q is not None and step.parents[node] in step.path
            if abs(u * q - p) > 1e-5:
                assert (node in step.path) == (u * q < p)
                outcomes.add(node in step.path)
    assert outcomes == {False, True}


@pytest.mark.sampled
@pytest.mark.parametrize("sampling", SETTINGS, ids=["greedy", "penalised", "sampled", "filtered"])
@pytest.mark.parametrize("method", DRAFTERS)
def test_the_drafters_best_tokens_are_those_of_its_own_distribution(method: str, sampling: dict[str, Any]) -> None:
    """A distribution of the wrong node, or before the filters, would show a drafter that wanted something else."""
    trace, text, distributions, bare = trace_of(method, sampling), [*PROMPT], 0, 0
    for step in trace.steps:
        drafted = {n: source.startswith(("draft:", "exit:")) for n, source in enumerate(step.sources)}
        behind = {step.parents[node] for node in drafted if drafted[node]}
        assert bool(step.draft_top) == bool(step.overlap) == bool(behind)
        for node in range(len(step.tokens) if behind else 0):
            if node not in behind:
                assert step.draft_top[node] == () and step.overlap[node] is None
                bare += 1
                continue
            read = [*text, *(step.tokens[at] for at in path_to(step.parents, node)[1:])]
            q, p = distribution(DRAFTERS[method], read, sampling), distribution(MODEL, read, sampling)
            best = [token for token in ranked(q[None], 5)[0].tolist() if round(float(q[token]), 6)]
            assert [token for token, _, _ in step.draft_top[node]] == best
            for token, mine, theirs in step.draft_top[node]:
                assert (mine, theirs) == (round(float(q[token]), 6), round(float(p[token]), 6))
            assert step.overlap[node] == pytest.approx(float(torch.minimum(p, q).sum()), abs=2e-6)
            distributions += 1
            for child in (child for child in drafted if drafted[child] and step.parents[child] == node):
                assert step.q[child] == round(float(q[step.tokens[child]]), 6)
                assert sampling.get("temperature") or step.tokens[child] == best[0]
        assert all(drafted[node] == (q is not None) for node, q in enumerate(step.q))
        assert step.used <= trace.texts.keys()
        text.extend(step.emitted)
    assert distributions > 30 and bare > 5


@pytest.mark.sampled
@pytest.mark.parametrize("sampling", SETTINGS, ids=["greedy", "penalised", "sampled", "filtered"])
@pytest.mark.parametrize("method", ["autoregressive", "lookahead", "ouroboros"])
def test_the_entropy_is_that_of_the_targets_distribution_at_every_node(method: str, sampling: dict[str, Any]) -> None:
    """Of a filtered distribution too, in which most tokens have no probability at all."""
    trace, text, seen = trace_of(method, sampling), [*PROMPT], set[float]()
    for step in trace.steps:
        for node in range(len(step.tokens)):
            read = [*text, *(step.tokens[at] for at in path_to(step.parents, node)[1:])]
            p = distribution(MODEL, read, sampling)
            assert step.entropy[node] == pytest.approx(float(torch.special.entr(p).sum()), abs=2e-6)
            seen.add(step.entropy[node])
        text.extend(step.emitted)
    assert len(seen) > 10


@pytest.mark.sampled
@pytest.mark.parametrize("sampling", SETTINGS, ids=["greedy", "penalised", "sampled", "filtered"])
@pytest.mark.parametrize("method", DRAFTERS)
def test_what_is_recorded_changes_no_token(method: str, sampling: dict[str, Any]) -> None:
    """A distribution that a greedy draft carries must not be tested, nor take a random number."""
    full, light, off = (trace_of(method, sampling, record) for record in ("full", "light", "off"))
    assert full.ids == light.ids == off.ids
    assert [step.accepted for step in full.steps] == [step.accepted for step in off.steps]
    for one, other in zip(full.steps, light.steps, strict=True):
        assert (one.tokens, one.parents, one.path) == (other.tokens, other.parents, other.path)
        assert other.draft_top == other.q == other.entropy == other.overlap == ()
    if not sampling.get("temperature"):
        assert full.ids == plain(MODEL, PROMPT, 40, sampling.get("repetition_penalty", 1.0))


@pytest.mark.parametrize("method", DRAFTERS)
def test_a_greedy_draft_asks_for_no_distribution_that_nobody_records(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over a real vocabulary a distribution for every drafted token is work that no token depends on."""
    asked = list[int]()
    probabilities = Sampler.probabilities
    monkeypatch.setattr(Sampler, "probabilities", lambda self, row: asked.append(1) or probabilities(self, row))
    for record in ("off", "light"):
        trace_of(method, {}, record)
    assert not asked
    trace_of(method, {})
    assert asked


def test_a_step_that_is_recorded_leaves_no_logits_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a wide step over a large vocabulary take gigabytes, and the next step makes new ones."""
    seen, outlook = list[weakref.ref[Outlook]](), Sampler.outlook

    def noted(self: Sampler, logits: torch.Tensor) -> Outlook:
        got = outlook(self, logits)
        seen.append(weakref.ref(got))
        return got

    monkeypatch.setattr(Sampler, "outlook", noted)
    for _ in engine(MODEL, DRAFTER).decode(PROMPT, "draft_model", max_new_tokens=8, record="full"):
        assert seen[-1]() is None
    assert len(seen) > 1


def test_guesses_behind_one_node_share_the_drafters_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worked out for each of sixty guesses of a tree, it took as long as the target's pass."""
    asked, beside = list[tuple[list[int], int]](), Outlook.beside

    def counted(self: Outlook, q: Any, behind: list[int], places: Any, tokens: list[int]) -> Any:
        asked.append((behind, len(tokens)))
        return beside(self, q, behind, places, tokens)

    monkeypatch.setattr(Outlook, "beside", counted)
    trace = trace_of("eagle3", {})
    assert len(asked) > 5 and any(guesses > 2 * len(behind) for behind, guesses in asked)
    assert all(len({*behind}) == len(behind) for behind, _ in asked)
    assert [guesses for _, guesses in asked] == [step.drafted for step in trace.steps if step.drafted]


@pytest.mark.parametrize("sampling", SETTINGS, ids=["greedy", "penalised", "sampled", "filtered"])
def test_the_choices_of_a_full_record_come_from_one_look_at_the_logits(
    sampling: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second search of every row cost a tenth of a small model's pass; filtered rows alone need it."""
    light, searched = trace_of("autoregressive", sampling, "light"), list[int]()
    monkeypatch.setattr(loop, "likeliest", lambda logits: searched.append(1) or likeliest(logits))
    full = trace_of("autoregressive", sampling)
    assert [step.choices for step in full.steps] == [step.choices for step in light.steps]
    assert bool(searched) == ("top_k" in sampling)


@pytest.mark.parametrize("method", ["prompt_lookup", "lookahead", "medusa", "rest", "ngrammys", "jacobi"])
def test_guesses_without_a_distribution_have_none_in_the_record(method: str) -> None:
    """Copies and ranks are no distribution: an entry for them would be made up."""
    for step in trace_of(method, {"temperature": 1.0}).steps:
        assert step.draft_top == step.overlap == () and set(step.q) == {None}
