"""The engine on a CUDA device. Skipped, with the reason, where there is none."""

from __future__ import annotations

import gc
import random
import threading
import warnings
from typing import Any

import pytest
import torch

from benchmarks.gpu_shapes import llama, random_model
from decoding.engine import Engine
from decoding.errors import ModelError
from decoding.gpu.choice import OVERLAP, PREFERRED, chosen
from decoding.gpu.choice import VARIABLE as FUSED
from decoding.methods import METHODS
from decoding.model import graphs, kernels
from decoding.model.captured import SAME_ROWS, PassRows, PassSpec, StepBuffer
from decoding.model.decoder import Decoder
from decoding.model.graphs import Recorder
from decoding.model.linear import linear
from decoding.model.loading import decoder_of
from decoding.model.quantised import FEW, quantised, rounded
from decoding.ranking import likeliest
from tests import families
from tests.model.test_attention import BOUNDS, differs
from tests.pretended.test_pretended import PARAMS

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine"),
]


def engine(family: str, dtype: torch.dtype) -> tuple[Engine, torch.nn.Module]:
    """Make an engine and transformers' model; the drafter is a little off, so that drafts are rolled back."""
    model = families.tiny(family).to("cuda", dtype)
    return families.machine(family, torch.empty(0, dtype=dtype, device="cuda"), noise=0.01), model


def writes_the_plain_text(ours: Engine, method: str, prompts: int) -> None:
    """Assert that a method writes the text of autoregressive decoding."""
    for seed in range(prompts):
        prompt = torch.randint(0, 60, (20,), generator=torch.Generator().manual_seed(seed)).tolist()
        options = {"max_new_tokens": 60, "end_tokens": ()}
        expected = ours.generate(prompt, **options).ids
        assert ours.generate(prompt, method, params=PARAMS.get(method), **options).ids == expected


@pytest.mark.parametrize("family", families.FAMILIES)
def test_logits_equal_transformers(family: str) -> None:
    """A kernel that only exists on CUDA can be wrong only there."""
    ours, model = engine(family, torch.float32)
    ids = torch.randint(0, ours.model.card.vocabulary, (60,), generator=torch.Generator().manual_seed(0))
    session = ours.model.open(128, 128)
    session.reset(60)
    got = session.read(ids.tolist(), tuple(range(-1, 59))).logits
    with torch.inference_mode():
        expected = model(ids[None].cuda()).logits[0]
    torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", families.FAMILIES)
@pytest.mark.parametrize("method", METHODS)
def test_greedy_tokens_equal_autoregressive_ones(family: str, method: str) -> None:
    """Step shapes choose other kernels on CUDA: in float32 the tokens must still be the same."""
    ours, _ = engine(family, torch.float32)
    writes_the_plain_text(ours, method, 5)


@pytest.mark.parametrize("family", families.FAMILIES)
def test_drafts_are_accepted_and_rejected(family: str) -> None:
    """With a drafter equal to its model nothing is ever rolled back, and the other tests say little."""
    ours, _ = engine(family, torch.float32)
    options = {"sampling": {"temperature": 1.0, "seed": 1}, "max_new_tokens": 200, "end_tokens": ()}
    summary = ours.generate(list(range(20)), "draft_model", **options).summary
    assert summary.draft_acceptance_rate is not None and 0.2 < summary.draft_acceptance_rate < 0.95


@pytest.mark.parametrize("method", METHODS)
def test_bf16_departs_only_at_near_ties(method: str) -> None:
    """In bf16 a token may differ from the plain pass only where the margin is below the measured noise."""
    ours, _ = engine("llama", torch.bfloat16)
    result = ours.generate(list(range(20)), method, params=PARAMS.get(method), max_new_tokens=80, end_tokens=())
    assert ours.rescore(result.trace).violations == 0


def test_ties_go_to_the_lowest_id() -> None:
    """A reduction over many blocks may return any of several maxima unless it breaks ties itself."""
    logits = torch.zeros(3, 150_000, device="cuda", dtype=torch.bfloat16)
    logits[0, 70_000:] = 1.0
    logits[1, [149_999, 5, 80_000]] = 2.0
    assert likeliest(logits) == [70_000, 5, 0]


def test_memory_is_given_back() -> None:
    """A run that keeps a cache or a graph alive would fill the device within an afternoon."""
    gc.collect()
    empty = torch.cuda.memory_allocated()
    ours, _ = engine("llama", torch.bfloat16)
    sizes = []
    for _ in range(3):
        for seed in range(20):  # the first time a tree is met, its mask is kept
            sampling = {"temperature": 1.0, "seed": seed}
            ours.generate([seed, 1, 2], "draft_model", sampling=sampling, max_new_tokens=20)
        torch.cuda.synchronize()
        sizes.append(torch.cuda.memory_allocated())
    assert sizes[1] == sizes[2]
    del ours, _
    gc.collect()
    assert torch.cuda.memory_allocated() == empty, "masks and tables go with their model"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own compiler, when FlexAttention is compiled
@pytest.mark.parametrize("name", ["flash-attn-3", "flash-attn", "torch-flash", "flex", "sdpa", "plain"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_every_kernel_against_the_definition(name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a device can only suppose what a kernel returns."""
    monkeypatch.setenv(kernels.VARIABLE, name)
    cuda = torch.device("cuda", 0)
    try:
        made = kernels.choose(cuda, dtype, 64)
    except ModelError as error:
        pytest.skip(str(error))
    for prefix in (0, 1, 255, 256, 257, 5000):
        for rows in (1, 7, 128):
            error = differs(made, rows, prefix, 4, dtype, device=cuda, size=64)
            assert error < BOUNDS[dtype], (prefix, rows)


@pytest.mark.parametrize("sampling", [{}, {"temperature": 1.0, "seed": 1}], ids=["greedy", "sampling"])
@pytest.mark.parametrize("method", METHODS)
def test_steps_wait_only_where_they_fetch(method: str, sampling: dict[str, float]) -> None:
    """Torch refuses every wait that it sees; the one on an event, for what is fetched, it does not count."""
    ours, _ = engine("mistral-full", torch.bfloat16)
    options = {"max_new_tokens": 24, "end_tokens": ()}
    ours.generate(list(range(20)), method, params=PARAMS.get(method), sampling=sampling, **options)  # makes its parts
    run = ours.decode(list(range(20)), method, params=PARAMS.get(method), sampling=sampling, **options)
    while run.finish is None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # torch calls the mode a prototype
                torch.cuda.set_sync_debug_mode("error")
            next(run, None)
        finally:
            torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("devices", [("cuda:0", "cuda:0"), ("cuda:0", "cuda:1")], ids=["one device", "two devices"])
def test_a_split_model_writes_the_same(method: str, devices: tuple[str, str]) -> None:
    """Streams of two devices must wait for each other's hidden states, and only for them."""
    if len(set(devices)) > torch.cuda.device_count():
        pytest.skip("one CUDA device only")
    like, options = torch.empty(0, device="cuda"), {"max_new_tokens": 60, "end_tokens": (), "record": "full"}
    whole = families.machine("qwen2-mixed", like, noise=0.01)
    split = families.machine("qwen2-mixed", like, noise=0.01, devices=devices)
    assert tuple(map(str, split.model.devices)) == devices
    for seed in range(3):
        prompt = torch.randint(0, 60, (20,), generator=torch.Generator().manual_seed(seed)).tolist()
        got = split.generate(prompt, method, params=PARAMS.get(method), **options)
        assert got.ids == whole.generate(prompt, **options).ids
        assert split.rescore(got.trace).violations == 0


@pytest.mark.parametrize("rows", [1, FEW, FEW + 1, 128])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_products_with_weights_of_eight_bits(dtype: torch.dtype, rows: int) -> None:
    """Which kernel torch has for them depends on its version."""
    weight, x = (torch.randn(size, 512, device="cuda", dtype=dtype) for size in (300, rows))
    codes, scales = (part.double() for part in rounded(weight))
    expected = x.double() @ (codes * scales[:, None]).T
    product = quantised(weight, None)(x)
    assert product.dtype == dtype
    assert (product - expected).abs().max() <= max(1e-5, 4 * torch.finfo(dtype).eps) * expected.abs().max()


@pytest.mark.parametrize("method", METHODS)
def test_every_method_writes_the_quantised_models_text(method: str) -> None:
    """Few rows and many go through different kernels: in float32 the tokens must still be the same."""
    ours = families.machine("llama", torch.empty(0, device="cuda"), noise=0.01, precision="int8+float32")
    options = {"max_new_tokens": 60, "end_tokens": ()}
    got = ours.generate(list(range(20)), method, params=PARAMS.get(method), **options)
    assert got.ids == ours.generate(list(range(20)), **options).ids


@pytest.mark.parametrize("method", METHODS)
def test_as_many_tokens_a_step_as_on_a_cpu(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph that reads stale keys for guesses alone writes the right text, more slowly; so does one that fails."""
    failures, record = list[str | None](), Recorder.record

    def note(recorder: Recorder, *arguments: Any, **options: Any) -> Any:
        graph = record(recorder, *arguments, **options)
        failures.extend([recorder.failed] if graph is None else [])
        return graph

    monkeypatch.setattr(Recorder, "record", note)
    ours, _ = engine("llama", torch.float32)
    there = families.machine("llama", torch.empty(0), noise=0.01)
    for seed in range(3):
        prompt = torch.randint(0, 60, (20,), generator=torch.Generator().manual_seed(seed)).tolist()
        options = {"params": PARAMS.get(method), "max_new_tokens": 60, "end_tokens": ()}
        # Each with a memory of its own: what a method learnt from the first run would make the second one shorter.
        got, expected = (each.generate(prompt, method, memory={}, **options).trace for each in (ours, there))
        assert [step.path for step in got.steps] == [step.path for step in expected.steps]
    assert failures == []


@pytest.mark.parametrize("rows", [2, 16, 17, 64, 128])
@pytest.mark.parametrize(("outputs", "inputs"), [(960, 576), (2048, 2048), (4096, 14_336), (32_000, 256)])
def test_a_row_of_a_product_does_not_depend_on_how_many_there_are(outputs: int, inputs: int, rows: int) -> None:
    """Only a device shows it: its tensor cores take blocks of other sizes for more rows."""
    made = torch.Generator("cuda").manual_seed(0)
    x, weight = (
        torch.randn(count, inputs, device="cuda", dtype=torch.bfloat16, generator=made) for count in (rows, outputs)
    )
    multiply = linear(weight, None)
    assert torch.equal(multiply(x[-1:]), multiply(x)[-1:])


@pytest.mark.parametrize("method", ["jacobi", "draft_model", "prompt_lookup", "kangaroo"])
def test_chains_write_one_text_in_bf16(method: str) -> None:
    """Where guesses stand in the order of the text, a token has the same numbers as a guess and alone."""
    ours, _ = engine("llama", torch.bfloat16)
    writes_the_plain_text(ours, method, 10)


@pytest.mark.parametrize("method", METHODS)
def test_equal_rows_write_one_text_in_bf16(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of one shape give a row the same numbers, whatever the other rows are."""
    monkeypatch.setenv(SAME_ROWS, "64")
    ours, _ = engine("llama", torch.bfloat16)
    writes_the_plain_text(ours, method, 5)


def test_a_replay_is_bit_by_bit_what_was_recorded() -> None:
    """The same kernels on the same shapes; a graph that reads another address would show here."""
    model = engine("mistral-full", torch.bfloat16)[0].model
    assert isinstance(model, Decoder) and model.recorder is not None
    session = model.open(1024, 64)
    session.reset(1)
    text = torch.randint(3, 67, (300,), generator=torch.Generator().manual_seed(0)).tolist()
    for start in range(0, 300, 60):
        session.read(text[start : start + 60], tuple(range(-1, 59)), skip=60)
        session.commit(range(60))
    parents = (-1, 0, 0, 1, 2)
    buffer, part = StepBuffer(8, model.device), PassSpec(0, model.shape.layers)
    for turn in range(4):
        tokens = text[turn : turn + 5]
        got = session.read(tokens, parents)
        with torch.inference_mode():
            buffer.fill(PassRows(tokens, parents, session.length))
            expected = model.buffered(buffer, None, session._text(session.length), part)
        if turn > 0:
            assert torch.equal(got.logits, expected[-1][:5]) and torch.equal(got.hidden, expected[-2][:5])
        session.commit([0, 1])
    assert model.recorder.failed is None


@torch.inference_mode()
def test_overlapping_launches_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that reads before the one in front of it has written reads what was there before."""
    weights, made = random_model(llama(4096, 1024, 2816, 6, 16, 4), "cuda"), list[list[torch.Tensor]]()
    for names in (PREFERRED, {*PREFERRED, OVERLAP}):
        monkeypatch.setenv(FUSED, ",".join(sorted(names)))
        if OVERLAP in names and OVERLAP not in chosen(torch.device("cuda", 0), torch.bfloat16):
            pytest.skip("launches overlap on Hopper and later")
        model = decoder_of(weights)
        session, logits = model.open(1024, 64), list[torch.Tensor]()
        session.reset(1)
        numbers = torch.Generator().manual_seed(0)
        for turn in range(120):
            rows = (1, 1, 5, 16, 40, 1, 64)[turn % 7]
            tokens = torch.randint(0, 4096, (rows,), generator=numbers).tolist()
            logits.append(session.read(tokens, tuple(range(-1, rows - 1))).logits.clone())
            session.commit(range(min(rows, 4)))
        assert isinstance(model, Decoder) and model.recorder is not None and model.recorder.failed is None
        made.append(logits)
    assert all(torch.equal(one, other) for one, other in zip(*made, strict=True))


def test_graphs_are_recorded_after_all_others_have_gone() -> None:
    """The memory that the graphs of a model share is given back with the last of them."""
    model = engine("llama", torch.bfloat16)[0].model
    assert isinstance(model, Decoder) and model.recorder is not None
    for _ in range(graphs.ATTEMPTS + 2):
        session = model.open(64, 8)
        session.reset(1)
        for token in (5, 6, 7):
            session.read([token], (-1,))
            session.commit([0])
        assert len(session._captured._recorded) == 1, model.recorder.failed  # type: ignore[union-attr]
        del session
        gc.collect()


def test_another_thread_may_allocate_while_a_step_is_captured() -> None:
    """A page has a thread for every visitor."""
    ours, _ = engine("llama", torch.bfloat16)
    done = threading.Event()

    def allocate() -> None:
        while not done.is_set():
            torch.empty(random.randrange(1, 2**24), device="cuda").fill_(
                1
            )  # random numbers would be part of the capture
            torch.cuda.empty_cache()

    thread = threading.Thread(target=allocate)
    thread.start()
    try:
        for method in ("autoregressive", "lookahead", "medusa", "prompt_lookup"):
            ours.generate(list(range(20)), method, params=PARAMS.get(method), max_new_tokens=60, end_tokens=())
    finally:
        done.set()
        thread.join()
    assert isinstance(ours.model, Decoder) and ours.model.recorder is not None and ours.model.recorder.failed is None


def test_steps_are_timed_by_the_device() -> None:
    """A host clock around an asynchronous launch measures the launch."""
    ours, _ = engine("llama", torch.float32)
    steps = list(ours.decode([1, 2, 3], max_new_tokens=8, end_tokens=()))
    assert all(step.timing.forward_ms > 0.0 for step in steps)
    assert all(step.timing.forward_ms <= step.timing.total_ms + 0.05 for step in steps)
