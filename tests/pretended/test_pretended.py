"""Steps of every method on pretended CUDA devices: `pytest -m pretended`.

A tensor on the wrong device, a shape that does not fit, or an operation whose result's size only the device knows
raises here as it would there. How often the host waits in a step is held to what it is at present.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from statistics import median
from typing import Any

import pytest
import torch

from analysis.landscape import measure_landscape
from decoding.codec import Codec
from decoding.engine import Engine
from decoding.methods import METHODS
from decoding.model import kernels
from decoding.model.decoder import Decoder
from decoding.model.layout import Layout, Sizes, share_out
from decoding.model.precision import Precision
from decoding.model.rope import Rope
from decoding.model.split import AnyDecoder, SplitDecoder
from decoding.model.weights import assemble
from decoding.parts import Parts
from decoding.parts.adapter import Adapter
from decoding.parts.adapter_config import AdapterConfig
from decoding.parts.dflash import DFlash
from decoding.parts.eagle import Eagle
from decoding.parts.heads import Heads, HeadWeights
from tests.families import machine, tiny
from tests.pretended.device import Pretended, pretended
from tests.tiers import crossed, few, of_methods, sampled, slow

pytestmark = pytest.mark.pretended
PARAMS: dict[str, dict[str, Any]] = {
    "lookahead": {"W": 5, "N": 4, "G": 5},
    "draft_model": {"gamma": 3},
    "kangaroo": {"gamma": 3, "eta": 0.0},
    "eagle3": {"m": 9, "k": 3, "depth": 3},
    "dflash": {"gamma": 4},
}
PROMPT = [1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0]
GREEDY, SAMPLED = {"temperature": 0.0}, {"temperature": 1.0, "seed": 1}
# Host waits of a step after the prompt, at most: one, in which the host learns the draft and the target's choices.
# In front of each pass of its drafter, and of the target's, Ouroboros looks up in a pool on the host which phrases
# follow the token that the drafter has just written: so the host has to know what a pass wrote before it can queue the
# next.
PASSES = {"ouroboros": 4}
# Operations that such a step launches, at most, where a drafter takes up to two passes that the host waits for.
LAUNCHES, OF_A_FURTHER_PASS = 15, 5
# So many tokens take every kind of step.
LONG = 120  # tokens by which most graphs have been recorded
OPTIONS: dict[str, Any] = {"max_new_tokens": 16, "end_tokens": (), "prefill_chunk": 4}
EACH, SAMPLINGS = [(method,) for method in METHODS], [GREEDY, SAMPLED]
# What methods do to the device besides handing over a tree of the host, as Lookahead does: they read with another
# model, with layers of their own, or stop half-way.
KINDS = {"lookahead", "draft_model", "kangaroo", "eagle3"}
SPLIT = {"draft_model", "eagle3"}  # of a model of its own, and of layers that read the target's states


def title(case: Any) -> str:
    """Return a test's name for a case."""
    names = [(GREEDY, "greedy"), (SAMPLED, "sampling"), ((0,), "one device"), ((0, 1), "split")]
    return next((name for known, name in names if case == known), str(case))


class Made:
    """Everything that is made of real numbers, before devices are pretended."""

    def __init__(self, family: str, dtype: torch.dtype) -> None:
        self.model, self.dtype = tiny(family), dtype
        real = machine(family)
        assert isinstance(real.model, Decoder)
        self.shape, self.card = real.model.shape, replace(real.model.card, pass_bytes=None)
        self.parts = {name: real.part(name) for name in ("tables", "datastore")}
        drafter = real.part("eagle")
        self._eagle = drafter.config, drafter.layers, drafter.vocabulary.ids
        places = [torch.device("cuda", at) for at in (0, 1, 2)]
        self._eagle_ropes = {place: drafter.config.rope(place, dtype) for place in places}
        blocks = real.part("dflash")
        self._dflash = blocks.config, blocks.vocabulary.ids
        self._dflash_ropes = {place: blocks.config.rope(place, dtype) for place in places}
        self._ropes = {at: Rope(self.model.config, self.shape, torch.device("cuda", at), dtype) for at in (0, 1, 2)}

    def decoder(self, *at: int, int8: bool = False) -> AnyDecoder:
        """Return a decoder on the device of that number, or split over several, its weights pretended."""
        shape, sizes = self.shape, dict(self.shape.tensors(tied=False))
        devices = tuple(torch.device("cuda", number) for number in at)
        # The sizes of cards of equal memory, of which there are none here.
        layers = share_out(Sizes.of(shape, Precision(self.dtype, int8)), [1.0] * len(at))
        layout = Layout(devices, layers)

        def get(name: str) -> torch.Tensor:
            return torch.empty(sizes[name], device=layout.device_of(name), dtype=self.dtype)

        weights, ropes = assemble(shape, get, False, lambda share: None, int8=int8), [self._ropes[each] for each in at]
        if len(at) > 1:
            return SplitDecoder(shape, weights, ropes, self.card, layout)
        return Decoder(shape, weights, *ropes, self.card)

    def eagle(self, target: AnyDecoder) -> Eagle:
        """Make a drafter of features; its ids are real, since a mapping of chance would lead nowhere."""
        config, taps, ids = self._eagle
        sizes = config.tensors(len(taps)).items()
        weights = {name: torch.empty(size, device=target.device, dtype=self.dtype) for name, size in sizes}
        return Eagle(config, taps, weights | {"ids": ids}, target, "pretended", self._eagle_ropes[target.device])

    def dflash(self, target: AnyDecoder) -> DFlash:
        """Make a drafter of blocks; its ids are real, as those of `eagle`."""
        config, ids = self._dflash
        weights = {
            name: torch.empty(size, device=target.device, dtype=self.dtype) for name, size in config.tensors().items()
        }
        return DFlash(config, weights | {"ids": ids}, target, "pretended", self._dflash_ropes[target.device])

    def engine(self, *at: int, drafter_at: int = 0, int8: bool = False) -> Engine:
        """Make an engine with everything that a method may need."""
        target, hidden, vocabulary = self.decoder(*at or (0,), int8=int8), self.shape.hidden, self.shape.vocabulary

        def empty(*size: int) -> torch.Tensor:
            return torch.empty(size, device=target.device, dtype=self.dtype)

        heads = HeadWeights(empty(1, 3, hidden, hidden), empty(1, 3, hidden), empty(1, vocabulary, hidden), (1,))
        config = AdapterConfig.fit(self.shape, 1)
        weights = {name: empty(*size) for name, size in config.tensors(hidden, vocabulary).items()}
        parts = {
            **{name: lambda progress, part=part: part for name, part in self.parts.items()},
            "medusa": lambda progress: Heads(heads, target.head, "pretended"),
            "kangaroo": lambda progress: Adapter(config, weights, target),
            "eagle": lambda progress: self.eagle(target),
            "dflash": lambda progress: self.dflash(target),
        }
        return Engine(target, Codec(), self.decoder(drafter_at), Parts(parts))


made_of = cache(Made)


def waits(
    device: Pretended,
    engine: Engine,
    method: str,
    sampling: dict[str, Any],
    launches: list[int] | None = None,
    **options: Any,
) -> int:
    """Return the most waits of a step after the prompt.

    Fill `launches` with how many operations each step launched, without those of a drafter's third pass and later ones.
    """
    counts, before, launched = [], device.waits, 0
    for step in engine.decode(PROMPT, method, PARAMS.get(method), sampling, **{**OPTIONS, **options}):
        if step.pending == 0 and step.index > 0:
            counts.append(device.waits - before)
        if launches is not None:
            further = max(0, len((step.panel or {}).get("passes", ())) - 2)
            launches.append(len(device.launches) - launched - OF_A_FURTHER_PASS * further)
        before, launched = device.waits, len(device.launches)
    assert len(counts) > 1
    return max(counts)


@sampled
@pytest.mark.parametrize(("method", "sampling"), crossed(EACH, SAMPLINGS), ids=title)
def test_a_step_waits_once_and_launches_little(
    method: str, sampling: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every wait leaves the device idle until the host has launched what comes after it.

    And each operation costs the host 5 microseconds or more, so that a hundred take longer than a small model's pass.
    That is of steps whose graphs have been recorded: of most of them, once a text has grown for a while.

    By default a method that is sampled here is greedy over two devices, and the other way round.
    """
    made = made_of("mistral-full", torch.bfloat16)
    with pretended(monkeypatch) as device:
        engine, launches = made.engine(), list[int]()
        assert "torch flash attention on the prefix" in engine.model.attention
        assert waits(device, engine, method, sampling, launches, max_new_tokens=LONG) <= PASSES.get(method, 1)
    later = launches[len(launches) // 2 :]
    assert median(later) <= LAUNCHES, device.launches[-max(later) :]


@slow
@pytest.mark.parametrize(
    ("family", "dtype"),
    of_methods(
        {"qwen2-mixed"},  # which has both kinds of layers
        crossed([("mistral",), ("qwen2-mixed",), ("qwen3",), ("llama-wide-heads",)], [torch.float32, torch.bfloat16]),
    ),
    ids=str,
)
def test_a_tree_behind_a_rolling_window(family: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slots that go round the end, some layers with a window, norms of queries and keys, one key for all heads."""
    made = made_of(family, dtype)
    with pretended(monkeypatch) as device:
        assert waits(device, made.engine(), "lookahead", GREEDY, max_new_tokens=60) <= 1


def test_a_repetition_penalty_adds_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """It marks tokens, node by node; sampling with a penalty is tested with drafters on other devices."""
    made = made_of("mistral-full", torch.bfloat16)
    with pretended(monkeypatch) as device:
        got = waits(device, made.engine(), "lookahead", {**GREEDY, "repetition_penalty": 1.2})
    assert got == 1


@slow  # a model on pretended devices
@pytest.mark.parametrize(("method", "penalty"), crossed([("draft_model",), ("ouroboros",)], [1.0, 1.2]))
def test_a_drafter_on_another_device(method: str, penalty: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its distributions meet the target's where a guess is rejected, where tokens are penalised, and in the record."""
    made = made_of("mistral-full", torch.bfloat16)
    with pretended(monkeypatch) as device:
        engine, sampling = made.engine(drafter_at=1), {**SAMPLED, "repetition_penalty": penalty}
        assert str(engine.draft.device) == "cuda:1"  # type: ignore[union-attr]
        waits(device, engine, method, sampling, record="full")


@slow
@pytest.mark.parametrize(
    ("method", "sampling"), of_methods(SPLIT, few(1, crossed(EACH, SAMPLINGS[::-1]), more=0)), ids=title
)
def test_a_model_over_two_devices_and_a_drafter_on_a_third(
    method: str, sampling: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Moving from device to device is queued: the host waits as often as for one of them."""
    made = made_of("mistral-full", torch.bfloat16)
    with pretended(monkeypatch) as device:
        engine = made.engine(0, 1, drafter_at=2)
        assert [len(layers) for layers in engine.model.layers] == [2, 1]  # type: ignore[attr-defined]
        assert waits(device, engine, method, sampling) <= PASSES.get(method, 1)


@slow  # a model on pretended devices
@pytest.mark.parametrize("method", sorted(KINDS))
def test_the_full_record_of_a_split_model(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first layers see all of the text, the last device's only a window; tokens are penalised."""
    made = made_of("qwen2-mixed", torch.bfloat16)
    with pretended(monkeypatch) as device:
        engine, sampling = made.engine(0, 1, drafter_at=2), {**SAMPLED, "repetition_penalty": 1.2}
        waits(device, engine, method, sampling, record="full")
        assert engine.decode(PROMPT, method, PARAMS.get(method), sampling).header.device == "cuda:0,cuda:1"


@slow
@pytest.mark.parametrize(
    ("method", "at"),
    [(method, at) for method in sorted(KINDS) for at in ((0,), (0, 1))],
    ids=title,
)
def test_weights_of_eight_bits(method: str, at: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows go through one kernel, many through another."""
    made = made_of("mistral-full", torch.bfloat16)
    with pretended(monkeypatch) as device:
        assert waits(device, made.engine(*at, int8=True), method, GREEDY) <= PASSES.get(method, 1)


@slow  # a model on pretended devices
@pytest.mark.parametrize("method", sorted(KINDS))
def test_torch_chooses_no_kernel(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On some devices its first choice is cuDNN's attention, which takes long for every new length."""

    def refuse(*arguments: Any, **options: Any) -> torch.Tensor:
        raise AssertionError("torch was asked")

    made = made_of("mistral", torch.bfloat16)
    monkeypatch.setattr(kernels, "scaled_dot_product_attention", refuse)
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", refuse)
    with pretended(monkeypatch) as device:
        waits(device, made.engine(), method, GREEDY)


def test_typical_acceptance(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks at all guesses together."""
    made = made_of("mistral-full", torch.bfloat16)
    monkeypatch.setitem(PARAMS, "medusa", {"acceptance": "typical"})
    with pretended(monkeypatch) as device:
        assert waits(device, made.engine(), "medusa", SAMPLED) == 1


def test_what_a_device_would_refuse_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pretended device that lets mistakes pass proves nothing."""
    with pretended(monkeypatch):
        one, other = (torch.empty(4, device=f"cuda:{at}") for at in (0, 1))
        with pytest.raises(RuntimeError, match="same device|different devices"):
            one + other
        with pytest.raises(RuntimeError, match="same device|different devices"):
            one + torch.ones(4)
        with pytest.raises(RuntimeError, match="size|dimension"):
            one + torch.empty(5, device="cuda:0")
        with pytest.raises(RuntimeError, match="nonzero"):  # how many there are, only the device knows
            one.nonzero()


def test_waits_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is not seen would make every bound hold."""
    queued = {
        "arithmetic": lambda x: x[1:] * 2.0 + x.new_zeros(3),
        "out of pinned memory": lambda x: torch.ones(4).pin_memory().to(x.device, non_blocking=True),
        "to another device": lambda x: x.to("cuda:1"),
    }
    waiting = {
        "item": lambda x: x[0].item(),
        "list": lambda x: x.tolist(),
        "condition": lambda x: bool(x[0] > 0.0),
        "copy to the host": lambda x: x.cpu(),
        "copy of the host's memory": lambda x: torch.ones(4).to(x.device),
        "made of a list": lambda x: torch.tensor([1, 2], device=x.device),
        "index of the host": lambda x: x[torch.tensor([0, 1])],
    }
    with pretended(monkeypatch) as device, torch.inference_mode():
        for name, act in {**queued, **waiting}.items():
            before = device.waits
            act(torch.empty(4, device="cuda"))
            assert device.waits - before == (name in waiting), name


@slow
@pytest.mark.parametrize(("method", "params"), [("kangaroo", {}), ("eagle3", {"form": "chain"})])
def test_a_landscape_on_a_device(method: str, params: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """What reads along at one position records nothing; threads, one for each of several, would not pretend."""
    made = made_of("mistral-full", torch.bfloat16)
    with pretended(monkeypatch):
        landscape = measure_landscape(made.engine(), PROMPT, {method: params}, first=len(PROMPT) - 1, max_new_tokens=8)
    assert landscape["finished"]
