"""Kangaroo's bookkeeping: what the adapter has read, when drafting stops, what the engine is given to go on from."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chi2

from decoding import accept
from decoding.codec import Codec
from decoding.drafting import writer
from decoding.drafting.chain import Adapt, Enter, OpenChain
from decoding.drafting.early_exit import EarlyExit
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.methods.base import Context
from decoding.methods.kangaroo import Kangaroo, KangarooParams
from decoding.model.decoder import Decoder
from decoding.model.decoder_session import DecoderSession
from decoding.model.loading import decoder_of
from decoding.model.table import TableModel
from decoding.parts import Parts
from decoding.parts.adapter import Adapter, AdapterSession
from decoding.parts.adapter_config import ARCHITECTURES, AdapterConfig
from decoding.sampling import Sampler, Sampling
from decoding.types import Draft, Verdict
from tests.distributions import FALSE_ALARM, power
from tests.families import tiny
from tests.tiers import crossed, sampled, slow
from tests.toy_adapter import ToyAdapter, ToySession, make
from tests.toys import cycle, hashed, plain, prompt_for, toy

TARGET = hashed(vocabulary=9, seed=3)
SETTINGS: Sequence[Mapping[str, Any]] = [{}, {"gamma": 1}, {"gamma": 4, "eta": 0.0}, {"gamma": 3, "eta": 1.0}]


def engine(model: TableModel, adapter: ToyAdapter | None = None) -> Engine:
    part = adapter or make(model)
    return Engine(model, Codec(), None, Parts({"kangaroo": lambda progress: part}))


class Watched(Kangaroo):
    """Checks at every turn what the adapter holds."""

    drafts: list[Draft]

    def propose(self) -> Draft:
        """Assert that what has been entered is what is proposed."""
        draft = super().propose()
        self.drafts = [*getattr(self, "drafts", []), draft]
        if draft.entry is not None:
            layer, hidden = draft.entry
            assert layer == 1 and hidden[:, -1].tolist() == list(draft.tokens)
        assert (draft.entry is None) == (len(draft.tokens) == 1)
        return draft

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Read and unread states together must be those of the stored text."""
        super().observe(draft, verdict)
        session, text = self._drafter.adapter, self._context.text
        assert isinstance(session, ToySession)
        assert session.text == text[: session.length], "the adapter holds a rejected token"
        unread = len(text) - 1 - session.length
        assert len(self._drafter.unread) == unread
        if draft.entry is not None:
            drafted = len(draft.tokens) - 1
            assert unread == (len(verdict.emitted) - 1 == drafted), "one short after full acceptance, else complete"


# On toys


@sampled
@pytest.mark.parametrize("params", SETTINGS, ids=str)
@pytest.mark.parametrize("mix", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_adapter_holds_the_committed_text(params: Mapping[str, Any], mix: float, temperature: float) -> None:
    """After full acceptance the last draft is still unread; after a rejection everything after it must go."""
    adapter = make(TARGET, mix)
    machine = engine(TARGET, adapter)
    sampling = {"temperature": temperature, "seed": 5}
    accepted = set()
    for chunk, prompt in ((512, (1,)), (1, (1, 2, 3)), (4, tuple(range(9)) * 3)):
        run = machine.decode(prompt, Watched, params, sampling, 30, prefill_chunk=chunk)
        for step in run:
            accepted.add((step.accepted > 0, step.accepted == step.drafted))
        assert len(run.ids) == 30
        reads = adapter.sessions[-1].reads
        assert reads[0] == max(2, len(prompt)) and set(reads[1:]) <= {1, 2}, "the prompt alone, then what is new"
    assert accepted >= ({(True, False), (True, True)} if mix == 0.6 and params.get("gamma") == 4 else set())


@pytest.mark.parametrize("params", SETTINGS, ids=str)
def test_greedy_text_is_the_plain_one(params: Mapping[str, Any]) -> None:
    """A stale state in the entry, a wrong position or a lost bonus would change a token."""
    for seed in range(10):
        model = toy(seed, seed)
        machine, prompt = engine(model), prompt_for(model, seed)
        expected = plain(model, prompt, 24)
        for budget in (1 + 2 * seed, 24):
            assert machine.generate(prompt, Watched, params=params, max_new_tokens=budget).ids == expected[:budget]
        penalised = machine.generate(
            prompt, Watched, params=params, sampling={"repetition_penalty": 1.3}, max_new_tokens=24
        )
        assert penalised.ids == plain(model, prompt, 24, 1.3)
        end = expected[seed % 24]
        ended = machine.generate(prompt, Watched, params=params, max_new_tokens=24, end_tokens=[end])
        assert ended.ids == expected[: expected.index(end) + 1]


def test_an_adapter_that_is_always_right_fills_every_step() -> None:
    """A drafter off by one place, or a bonus that costs a pass of its own, would show in the count of steps."""
    adapter = make(TARGET, mix=1.0, order=2)
    steps = engine(TARGET, adapter).generate((1, 2), Watched, params={"eta": 0.0}, max_new_tokens=1 + 7 * 5).trace.steps
    assert [len(step.emitted) for step in steps] == [1, 7, 7, 7, 7, 7]
    assert [step.fed for step in steps] == [2, 7, 7, 7, 7, 7]
    # The prompt, then the root and one draft at a time; in every later step the draft that was left, with the root.
    assert adapter.sessions[-1].reads == [2] + [1, 1, 1, 1, 1, 1] + [2, 1, 1, 1, 1, 1] * 4


class Dropped(Watched):
    """The engine reads every other draft as a whole, as it does where a text outgrows its rotation."""

    def propose(self) -> Draft:
        """Propose without the entry, which is an optimisation."""
        draft = super().propose()
        return replace(draft, entry=None) if len(self.drafts) % 2 else draft

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Assert that nothing differs for the adapter."""
        super().observe(self.drafts[-1], verdict)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_dropped_entry_changes_nothing(temperature: float) -> None:
    """Whether the engine takes the entry up is its own affair."""
    for seed in range(8):
        model = toy(seed, seed)
        options: dict[str, Any] = {"sampling": {"temperature": temperature, "seed": seed}, "max_new_tokens": 30}
        kept, dropped = (engine(model).generate((1, 2, 1), kind, **options) for kind in (Watched, Dropped))
        assert kept.ids == dropped.ids
        assert [step.accepted for step in kept.trace.steps] == [step.accepted for step in dropped.trace.steps]


# One draft


def ready(adapter: ToyAdapter, model: TableModel = TARGET, prompt: Sequence[int] = (1, 2), **known: Any) -> Watched:
    """Make a method whose first step is done: the text is the prompt and the plain next token."""
    settings = {key: known.pop(key) for key in ("gamma", "eta") if key in known}
    sampling, largest = Sampling(**known.pop("sampling", {})), known.pop("largest_step", 64)
    session = model.open(512, 64)
    sampler = Sampler(sampling, model.card.vocabulary, torch.device("cpu"), prompt)
    remaining = known.pop("remaining", 99)
    context = Context([*prompt], len(prompt), remaining + 1, sampler, largest_step=largest, **known)
    context.target = EarlyExit(session, context)
    context.parts = {"kangaroo": adapter}
    method = Watched(context, KangarooParams(**settings))
    root = method.propose()
    assert root.tokens == (prompt[-1],) and root.entry is None
    for start in range(0, len(prompt), 64):
        part = prompt[start : start + 64]
        session.read(part, tuple(range(-1, len(part) - 1)))
        session.commit(range(len(part)))
    written = plain(model, prompt, 1)
    context.text.extend(written)
    sampler.extend(written)
    method.observe(root, Verdict((0,), written, written))
    return method


def test_the_root_and_all_drafts_enter_with_their_states() -> None:
    """Without the last draft's state the later layers could not say what follows it: no bonus."""
    draft = ready(make(TARGET, 1.0), eta=0.0, gamma=3).propose()
    assert draft.tokens == plain(TARGET, (1, 2), 4)
    assert draft.sources == ("root", "exit:1", "exit:2", "exit:3") and draft.q == (None,) * 4
    assert draft.entry is not None and draft.entry[1].shape == (4, 2)


def test_drafting_stops_behind_the_first_unsure_token() -> None:
    """The first draft is always made, and the unsure one is kept: what it costs has been paid."""
    lengths = set()
    for seed in range(30):
        model = hashed(vocabulary=9, seed=seed, sharpness=3.0)
        method = ready(make(model, 1.0), model, eta=0.6)
        draft = method.propose()
        text = (1, 2, *draft.tokens)
        confidences = [float(model.logits(text[: 3 + i]).softmax(-1).max()) for i in range(len(draft.tokens) - 1)]
        panel = method.panel()
        assert panel["confidence"] == pytest.approx(confidences, abs=2e-6)
        assert all(sure >= 0.6 for sure in confidences[:-1])
        assert (panel["stopped"] == "unsure") == (confidences[-1] < 0.6 and len(confidences) < 6)
        assert draft.entry is not None and len(draft.entry[1]) == len(draft.tokens)
        lengths.add(len(confidences))
    assert lengths >= {1, 2, 3}
    assert len(ready(make(TARGET), eta=1.0).propose().tokens) == 2, "exactly one draft, two rows to verify"
    assert len(ready(make(TARGET), eta=0.0).propose().tokens) == 7, "fixed steps"


def test_confidence_is_the_distribution_before_it_is_shaped() -> None:
    """A stop rule on the shaped distribution would stop never at a low temperature and always at a high one."""
    for temperature in (0.05, 1.0, 20.0):
        method = ready(make(TARGET), eta=0.5, gamma=1, sampling={"temperature": temperature, "repetition_penalty": 1.4})
        method.propose()
        raw = make(TARGET).guess.logits(method._context.text)
        assert method.panel()["confidence"] == [pytest.approx(float(raw.softmax(-1).max()), abs=2e-6)]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_fixed_steps_ask_for_no_confidence(temperature: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU every number that is fetched is a wait, and without eta nobody needs this one."""
    asked: list[str] = []
    for name in ("surest_of_few", "largest_probability"):
        ask = getattr(writer, name)
        monkeypatch.setattr(writer, name, lambda *given, ask=ask, name=name: asked.append(name) or ask(*given))
    for eta in (0.0, 1e-9):
        method = ready(make(TARGET), eta=eta, gamma=4, sampling={"temperature": temperature})
        asked.clear()
        assert len(method.propose().tokens) == 5
        confidence = method.panel()["confidence"]
        assert isinstance(confidence, list) and len(confidence) == (4 if eta else 0)
        assert len(asked) == len(confidence)


def test_a_sampled_drafts_distribution_is_the_one_it_was_drawn_from() -> None:
    """q must be after temperature, filters and penalty, on the draft's own path."""
    settings = {"temperature": 0.7, "top_k": 3, "repetition_penalty": 1.5}
    method = ready(make(TARGET), eta=0.0, gamma=4, sampling=settings)
    draft = method.propose()
    before = [1, 2, draft.tokens[0]]
    for node in range(1, 5):
        sampler = Sampler(Sampling(**settings), 9, torch.device("cpu"), [*before, *draft.tokens[1:node]])
        raw = make(TARGET).guess.logits([*before, *draft.tokens[1:node]])
        distribution = sampler.probabilities(sampler.penalise(raw[None], [()])[0])
        assert draft.q is not None and draft.q[node] is not None and draft.q[0] is None
        torch.testing.assert_close(draft.q[node], distribution)
        assert draft.q[node][draft.tokens[node]] > 0


def test_drafting_stops_where_more_could_not_be_written() -> None:
    """Guesses after an end of text, the budget, or what a step holds are wasted or refused."""
    model = cycle(9)
    sure: dict[str, Any] = {"adapter": make(model, 1.0), "model": model, "eta": 0.0}
    for known, tokens, why in (
        ({}, (3, 4, 5, 6, 7, 8, 0), "gamma"),
        ({"end_tokens": frozenset({5})}, (3, 4, 5), "end"),
        ({"remaining": 3}, (3, 4, 5), "budget"),
        ({"remaining": 1}, (3,), "budget"),
        ({"largest_step": 3}, (3, 4, 5), "budget"),
        ({"largest_step": 1}, (3,), "budget"),
    ):
        method = ready(**sure, **known)
        assert method.propose().tokens == tokens
        assert method.panel()["stopped"] == why


def test_a_step_without_drafts_leaves_its_state_to_be_read_later() -> None:
    """A token that the adapter never reads would leave a hole in its text."""
    stop: list[int] = []
    method = ready(make(TARGET), eta=0.0, interrupted=lambda: bool(stop))
    context, session = method._context, method._drafter.session
    stop.append(1)
    for unread in (1, 2):
        root = method.propose()
        assert root.tokens == (context.text[-1],) and method.panel()["stopped"] == "interrupted"
        session.read(context.text[-1:], (-1,))
        session.commit((0,))
        written = plain(TARGET, context.text, 1)
        context.text.extend(written)
        method.observe(root, Verdict((0,), written, written))
        assert len(method._drafter.unread) == unread
    stop.clear()
    assert len(method.propose().tokens) == 7 and context.parts["kangaroo"].sessions[-1].reads[:3] == [2, 2, 1]


def test_a_long_prompt_is_read_in_portions_between_which_it_can_be_interrupted() -> None:
    """One reading of thousands of rows takes seconds and a mask of millions of numbers."""
    prompt, asked = tuple(range(9)) * 40, 0

    def interrupted() -> bool:
        nonlocal asked
        asked += 1
        return asked > 2

    adapter = make(TARGET)
    method = ready(adapter, prompt=prompt, gamma=2, eta=0.0)
    assert adapter.sessions[-1].reads == [64, 64, 64, 64, 64, 40], "the step that reads the prompt pays for it"
    assert len(method.propose().tokens) == 3 and adapter.sessions[-1].reads[6:] == [1, 1]
    method = ready(adapter, prompt=prompt, interrupted=interrupted)
    assert len(method.propose().tokens) == 1 and adapter.sessions[-1].reads == [64, 64]
    assert len(method._drafter.unread) == 360 - 128


def test_no_prompt_is_read_for_drafts_that_cannot_be() -> None:
    """One or two tokens leave nothing to draft."""
    for budget, reads in ((1, []), (2, []), (3, [3, 1])):
        adapter = make(TARGET, 1.0)
        engine(TARGET, adapter).generate((1, 2, 3), Watched, max_new_tokens=budget)
        assert adapter.sessions[-1].reads == reads


def test_a_run_is_cancelled_between_two_drafts() -> None:
    """64 drafts of a large model take seconds: who presses stop must not wait for them."""
    cancel = threading.Event()

    class Slow(Watched):
        def _draft(self, chain: OpenChain, enter: Enter, adapt: Adapt) -> None:
            def adapt_until_the_third(states: torch.Tensor) -> torch.Tensor:
                if len(chain.tokens) == 2:
                    cancel.set()
                return adapt(states)

            super()._draft(chain, enter, adapt_until_the_third)

    run = engine(TARGET, make(TARGET, 1.0)).decode(
        (1, 2), Slow, {"gamma": 64, "eta": 0.0}, max_new_tokens=99, cancel=cancel
    )
    steps = list(run)
    assert [step.drafted for step in steps] == [0, 3] and run.finish == "cancelled"
    assert steps[-1].panel["stopped"] == "interrupted"


def test_the_panel_is_plain_and_its_own() -> None:
    """A panel that shares its lists with the method would change in the record as the run goes on."""
    steps = engine(TARGET).generate((1, 2), Kangaroo, params={"gamma": 3}, max_new_tokens=12).trace.steps
    assert steps[0].panel == {"exit_layer": 1, "eta": 0.6, "confidence": [], "stopped": "start"}
    for step in steps:
        assert json.loads(json.dumps(step.panel)) == step.panel
        assert len(step.panel["confidence"]) == step.drafted
    assert {step.panel["stopped"] for step in steps[1:]} <= {"unsure", "gamma", "budget"}


def test_it_needs_an_adapter() -> None:
    """Without one the run must be refused in words, before it starts."""
    with pytest.raises(ParamError, match="kangaroo needs a Kangaroo adapter: load the engine with kangaroo="):
        Engine(TARGET, Codec()).decode((1,), Kangaroo)


# Sampling


def fit(biased: bool, monkeypatch: pytest.MonkeyPatch) -> float:
    """Return the chance that a sampled text's successions fit the target's distribution as badly as they do."""
    model = hashed(vocabulary=4, order=1, seed=11)
    if biased:
        monkeypatch.setattr(accept, "residual", lambda p, q: p)
    counts, machine, accepted = np.zeros((4, 4)), engine(model, make(model, 0.3, order=1)), 0
    for seed in range(4):
        options: dict[str, Any] = {"sampling": {"temperature": 1.0, "seed": seed}, "record": "off"}
        result = machine.generate((1,), Kangaroo, params={"gamma": 3, "eta": 0.4}, max_new_tokens=500, **options)
        np.add.at(counts, ((1, *result.ids[:-1]), result.ids), 1)
        accepted += sum(step.accepted for step in result.trace.steps)
    assert accepted > 500
    distribution = torch.stack([model.logits((token,)) for token in range(4)]).softmax(-1).numpy()
    due = distribution * counts.sum(1, keepdims=True)
    return float(chi2.sf(((counts - due) ** 2 / due).sum(), 12))


@slow
def test_sampled_text_follows_the_targets_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stop rule, the distribution in the record or the acceptance could each bend it.

    Power: of 2,000 tokens it rejects, with a probability of at least 0.99, every distribution whose rows are a
    total variation distance of 0.1 away from the right ones; and the right distribution once in a
    million times. The seeds are fixed.
    """
    assert fit(False, monkeypatch) > FALSE_ALARM
    assert power(12, 2000, 0.1) >= 0.99


def test_a_bent_distribution_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above would prove nothing if it let a known mistake pass."""
    assert fit(True, monkeypatch) < FALSE_ALARM


# On real decoders


@cache
def decoder(family: str) -> Decoder:
    return decoder_of(tiny(family), torch.float64)


@cache
def perfect(family: str, blur: float = 0.0) -> Adapter:
    """Make an adapter after the last layer that adds nothing: its guesses are the target's own, but for the blur."""
    model, config = decoder(family), AdapterConfig.fit(decoder(family).shape, 3)
    source = torch.Generator().manual_seed(4)
    sizes = config.tensors(64, 67)
    weights = {name: torch.randn(size, generator=source, dtype=torch.float64) for name, size in sizes.items()}
    weights["self_attn.o_proj.weight"] *= blur
    weights["norm.weight"] = tiny(family).state_dict()["model.norm.weight"].double()
    return Adapter(config, weights, model)


@cache
def shallow(family: str, architecture: str = "kangaroo") -> Adapter:
    """Make random weights after the second layer: almost every guess is wrong."""
    config = AdapterConfig.fit(decoder(family).shape, 2, architecture)
    source = torch.Generator().manual_seed(5)
    sizes = config.tensors(64, 67)
    weights = {name: 0.3 * torch.randn(size, generator=source, dtype=torch.float64) for name, size in sizes.items()}
    return Adapter(config, weights, decoder(family))


def machine(family: str, adapter: Adapter) -> Engine:
    return Engine(decoder(family), Codec(), None, Parts({"kangaroo": lambda progress: adapter}))


PROMPT = tuple(torch.randint(3, 67, (21,), generator=torch.Generator().manual_seed(1)).tolist())


@cache
def alone(family: str) -> tuple[int, ...]:
    return Engine(decoder(family), Codec()).generate(PROMPT, max_new_tokens=50).ids


@pytest.mark.parametrize("family", ["llama", "mistral"])
@pytest.mark.parametrize("chunk", [1, 5, 512])
def test_a_perfect_adapter_fills_every_step(family: str, chunk: int) -> None:
    """Any slip in a position, a cache or an entry makes a guess wrong: far beyond the window, none is."""
    options: dict[str, Any] = {"params": {"gamma": 6, "eta": 0.0}, "prefill_chunk": chunk}
    result = machine(family, perfect(family)).generate(PROMPT, Kangaroo, max_new_tokens=50, **options)
    assert result.ids == alone(family)
    assert [len(step.emitted) for step in result.trace.steps] == [1, 7, 7, 7, 7, 7, 7, 7]


@pytest.mark.parametrize(("params", "family"), crossed([(each,) for each in SETTINGS], ["llama", "mistral"]), ids=str)
def test_greedy_text_of_decoders_is_that_of_one_token_at_a_time(family: str, params: Mapping[str, Any]) -> None:
    """Rejected drafts must leave nothing in the shallow layers' cache, in the deep ones' or in the adapter's."""
    accepted, drafted = 0, 0
    for adapter in (*map(shallow, [family] * 4, ARCHITECTURES), perfect(family, 0.003), perfect(family, 0.02)):
        result = machine(family, adapter).generate(PROMPT, Kangaroo, params=params, max_new_tokens=30)
        assert result.ids == alone(family)[:30]
        accepted += sum(step.accepted for step in result.trace.steps)
        drafted += sum(step.drafted for step in result.trace.steps)
    assert 0 < accepted < drafted


def test_shallow_layers_run_once_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """The saving of the paper: what was entered is never entered again, and the adapter reads two rows at most."""
    calls: dict[str, list[int]] = {"read": [], "enter": [], "resume": [], "adapter": []}

    def counted(kind: type, name: str, key: str) -> None:
        plain_one = getattr(kind, name)

        def one(self: Any, tokens: Any, *rest: Any, **named: Any) -> Any:
            calls[key].append(len(tokens))
            return plain_one(self, tokens, *rest, **named)

        monkeypatch.setattr(kind, name, one)

    for name in ("read", "enter", "resume"):
        counted(DecoderSession, name, name)
    counted(AdapterSession, "read", "adapter")
    options: dict[str, Any] = {"params": {"gamma": 3, "eta": 0.0}, "max_new_tokens": 13}
    machine("mistral", perfect("mistral")).generate(PROMPT[:6], Kangaroo, **options)
    assert calls["read"] == [6] and calls["resume"] == [4, 4, 4]
    assert calls["enter"] == [1] * 12
    assert calls["adapter"] == [6, 1, 1, 1, 2, 1, 1, 2, 1, 1]


def test_a_text_that_outgrows_its_rotation_goes_on() -> None:
    """There the engine reads the text anew: the adapter must forget all of it, and be right again afterwards."""
    family = "longrope"
    prompt = PROMPT[:10]
    expected = Engine(decoder(family), Codec()).generate(prompt, max_new_tokens=45).ids
    options: dict[str, Any] = {"params": {"gamma": 4, "eta": 0.0}, "max_new_tokens": 45}
    result = machine(family, perfect(family)).generate(prompt, Kangaroo, **options)
    assert result.ids == expected
    behind = [step for step in result.trace.steps if step.start > 33]
    assert len(behind) > 2 and all(step.accepted == step.drafted for step in behind)
    assert any(step.accepted < step.drafted or step.pending for step in result.trace.steps[1:]), "the seam was crossed"
