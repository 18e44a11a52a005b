"""Attention against its definition in float64: every kernel's arithmetic, and what surrounds kernels of CUDA."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from decoding.errors import ModelError
from decoding.gpu import choice
from decoding.model import kernels
from decoding.model.attention import BLOCK, Attention, merge, pack
from decoding.model.cache import Cache
from decoding.model.kernels import PREFIXES, Kernels, agrees, choose, plain
from tests.model.texts import random_tree
from tests.tiers import crossed, sampled

KV_HEADS, SIZE = 2, 16
CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)
# Largest errors, in shares of one more than the true value: what float64 makes of the same rounded numbers.
BOUNDS = {torch.float32: 1.4e-6, torch.bfloat16: 3.3e-3, torch.float64: 1e-12}
ON_CPU = ("plain", "sdpa", "flex")
ON_CUDA = ("flash-attn-3", "flash-attn", "flash-attn-hub", "torch-flash", "sdpa", "plain")


def defined(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, visible: torch.Tensor
) -> torch.Tensor:  # (T, heads, D), (P, kv_heads, D) twice, (T, P) -> (T, heads, D)
    """Compute softmax attention head by head; query head h shares the key/value head h mod kv_heads."""
    out = torch.empty_like(query)
    for head in range(query.shape[1]):
        k, v = key[:, head % KV_HEADS], value[:, head % KV_HEADS]
        scores = query[:, head] @ k.T / query.shape[2] ** 0.5
        out[:, head] = torch.softmax(scores.masked_fill(~visible, -torch.inf), -1) @ v
    return out


def visible_rows(parents: tuple[int, ...], prefix: int, window: int | None) -> torch.Tensor:  # (T, P + T)
    """Mark ancestors and prefix; with a window only what is less than that far before the row."""
    rows, depth = len(parents), list[int]()
    visible = torch.zeros(rows, prefix + rows, dtype=torch.bool)
    visible[:, :prefix] = True
    for row, parent in enumerate(parents):
        depth.append(0 if parent < 0 else depth[parent] + 1)
        if parent >= 0:
            visible[row] |= visible[parent]
        visible[row, prefix + row] = True
    if window is not None:
        place = torch.tensor([*range(prefix), *(prefix + d for d in depth)])
        visible &= place[None] > place[prefix:, None] - window
    return visible


@torch.inference_mode()
def differs(
    made: Kernels,
    rows: int,
    prefix: int,
    repeats: int,
    dtype: torch.dtype,
    window: int | None = None,
    device: torch.device = CPU,
    size: int = SIZE,
) -> float:
    """Return the largest error of a tree's attention after a text, in a cache whose other slots hold large numbers."""
    torch.manual_seed(rows + prefix)
    parents = random_tree(rows, rows + prefix)
    attention = Attention(made, repeats, device, dtype)
    cache = Cache(1, KV_HEADS, size, prefix + 3, rows + 2, None, device, dtype, attention.spare)
    cache.data.copy_(1e3 * torch.randn(cache.data.shape))
    cache.length = prefix
    cache.data[0, :, : prefix + rows] = torch.randn(2, prefix + rows, KV_HEADS, size).to(device, dtype)
    query = torch.randn(rows, repeats * KV_HEADS, size).to(device, dtype)
    mixed = attention.span(cache, prefix, parents, window).attend(0, query)
    assert mixed.shape == (rows, repeats * KV_HEADS * size) and mixed.dtype == dtype
    key, value = cache.data[0, :, : prefix + rows].double().cpu()
    wanted = defined(query.double().cpu(), key, value, visible_rows(parents, prefix, window)).flatten(1)
    return float(((mixed.double().cpu() - wanted) / (1.0 + wanted.abs())).abs().max())


@pytest.mark.parametrize("rows", [1, 2, 7, 64])
@pytest.mark.parametrize("prefix", [0, 1, 17, 300])
@pytest.mark.parametrize("repeats", [1, 2, 4])
@pytest.mark.parametrize("window", [None, 5])
def test_one_call_against_the_definition(rows: int, prefix: int, repeats: int, window: int | None) -> None:
    """Heads packed in the wrong order, or a bias row that belongs to another query, change every number."""
    made = choose(CPU, torch.float32, SIZE)
    assert made.prefix is None and differs(made, rows, prefix, repeats, torch.float32, window) < 1.4e-6


@sampled
@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize(("name", "repeats"), crossed([(name,) for name in ON_CPU], [1, 4, 7]))
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")  # which lacks logarithms on a CPU
def test_two_parts_against_the_definition(
    name: str, repeats: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cut in the wrong place counts a key twice or not at all; a logarithm to another base weighs the parts wrong."""
    monkeypatch.setenv(kernels.VARIABLE, name)
    made = choose(CPU, dtype, SIZE)
    assert made.prefix is not None and made.prefix.name in made.name
    for prefix in (0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 1000, 5000):
        for rows in (1, 2, 7, 128) if prefix <= BLOCK else (7,):
            assert differs(made, rows, prefix, repeats, dtype) < BOUNDS[dtype], (prefix, rows)


class OnCuda:
    """What CUDA's kernels take and give, in plain arithmetic: shapes, orders, paddings and what they refuse."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def flash(self, query: Any, key: Any, value: Any, *rest: Any, **options: Any) -> tuple[Any, ...]:
        """Stand in for torch's own flash kernel: half precision, no bias, and no sensible answer without keys."""
        self.calls.append("torch-flash")
        assert query.dtype in (torch.bfloat16, torch.float16) and key.shape[2] > 0 and not rest and not options
        assert query.stride(-1) == key.stride(-1) == 1 and query.shape[1] == key.shape[1]
        mixed, total = plain(query, key, value, None)
        nothing = torch.empty(0)
        return mixed.to(query.dtype), total, nothing, nothing, 0, 0, nothing, nothing, nothing

    def efficient(self, query: Any, key: Any, value: Any, bias: Any, logarithms: bool, *rest: Any) -> tuple[Any, ...]:
        """Stand in for torch's memory-efficient kernel: a bias of four dimensions, logarithms padded to 32."""
        self.calls.append("efficient")
        assert logarithms and not any(rest) and query.dtype != torch.float64 and key.shape[2] > 0
        if bias is not None:
            assert bias.shape == (*query.shape[:3], key.shape[2]) and bias.dtype == query.dtype
            assert bias.stride(-1) == 1 and all(stride % 16 == 0 for stride in bias.stride()[:3])
            bias = bias[0, 0]
        mixed, total = plain(query, key, value, bias)
        padded = torch.nn.functional.pad(total, (0, -total.shape[2] % 32), value=torch.inf)
        return mixed.to(query.dtype), padded, torch.empty(0), torch.empty(0)

    def with_cache(
        self, q: Any, k_cache: Any, v_cache: Any, *, cache_seqlens: Any, return_softmax_lse: bool
    ) -> tuple[Any, Any]:
        """Stand in for flash-attn: sequences before heads, and the number of keys from the device."""
        self.calls.append("flash-attn")
        assert return_softmax_lse and cache_seqlens.dtype == torch.int32 and cache_seqlens.shape == (1,)
        count = int(cache_seqlens)
        assert q.dtype in (torch.bfloat16, torch.float16) and 0 < count <= k_cache.shape[1]
        assert q.shape[0] == k_cache.shape[0] == 1 and q.shape[2:] == k_cache.shape[2:] == v_cache.shape[2:]
        q, k, v = (part.transpose(1, 2) for part in (q, k_cache[:, :count], v_cache[:, :count]))
        mixed, total = plain(q, k, v, None)
        return mixed.transpose(1, 2).to(q.dtype), total


@pytest.fixture
def on_cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[OnCuda]:
    """Yield a device like an H100 to choose kernels for, with all packages there are."""
    made, library = OnCuda(), torch.library.Library("aten", "IMPL")
    library.impl("_scaled_dot_product_flash_attention", made.flash, "CPU")
    library.impl("_scaled_dot_product_efficient_attention", made.efficient, "CPU")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(torch.backends.cuda, "is_flash_attention_available", lambda: True)
    monkeypatch.setattr(kernels, "version", lambda package: "2.8.3")
    monkeypatch.setenv(choice.VARIABLE, "off")  # packages, not the kernels of our own
    package = SimpleNamespace(flash_attn_with_kvcache=made.with_cache)
    for module in ("flash_attn", "flash_attn_interface"):
        monkeypatch.setitem(sys.modules, module, package)
    monkeypatch.setitem(sys.modules, "kernels", SimpleNamespace(get_kernel=lambda name, version: package))
    monkeypatch.setattr(kernels, "agrees", lambda attend, device, *rest: agrees(attend, CPU, *rest))
    yield made
    library._destroy()


@sampled
@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("repeats", [1, 4, 7])
@pytest.mark.parametrize("name", ON_CUDA)
def test_kernels_of_cuda_are_fed_and_read_rightly(
    name: str, repeats: int, dtype: torch.dtype, on_cuda: OnCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a device it would be wrong text or an error that a machine without one never shows."""
    monkeypatch.setenv(kernels.VARIABLE, name)
    if dtype != torch.bfloat16 and (("flash" in name) or (name == "sdpa" and dtype == torch.float64)):
        with pytest.raises(ModelError, match=f"{name} cannot run"):
            choose(CUDA, dtype, SIZE)
        return
    made = choose(CUDA, dtype, SIZE)
    for prefix in (0, 3, BLOCK, 700):
        for rows in (1, 5, 33):
            assert differs(made, rows, prefix, repeats, dtype) < BOUNDS[dtype], (prefix, rows)
    assert {call for call in on_cuda.calls if call != "efficient"} <= {name.removesuffix("-3").removesuffix("-hub")}


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
def test_windows_on_cuda(dtype: torch.dtype, on_cuda: OnCuda) -> None:
    """Where a window hides some of the text, one call with a mask, and never the one that torch would choose."""
    made = choose(CUDA, dtype, SIZE)
    assert "scaled_dot_product" not in made.name
    attention = Attention(made, 2, CPU, dtype)
    for window, prefix, split in ((9, 40, False), (600, 500, True), (506, 500, True), (505, 500, False)):
        cache, parents = Cache(1, KV_HEADS, SIZE, prefix, 8, None, CPU, dtype, attention.spare), (-1, 0, 1, 2, 3, 4)
        assert attention.splits(cache, prefix, parents, window) is split
        assert all(differs(made, rows, prefix, 2, dtype, window) < BOUNDS[dtype] for rows in (1, 6))


def test_the_first_kernel_that_runs_is_chosen(on_cuda: OnCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a header names must be what runs; a device that is too old, or lacks a package, gets the next best."""

    def chosen(dtype: torch.dtype = torch.bfloat16, head_dim: int = 128) -> str:
        return choose(CUDA, dtype, head_dim).name.split(" on the prefix")[0]

    assert chosen() == "flash-attn 3"
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    assert chosen() == "flash-attn 2.8.3"
    assert chosen(torch.float32) == chosen(head_dim=264) == "torch memory-efficient attention"
    assert chosen(torch.float64) == chosen(head_dim=20) == "matrix products"
    monkeypatch.setitem(sys.modules, "flash_attn", None)
    assert chosen() == "torch flash attention"
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    assert chosen() == "torch memory-efficient attention"


def test_a_package_that_computes_something_else_is_left_alone(on_cuda: OnCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    """Built for another torch it may raise; a logarithm to another base would weigh the parts of a text wrong."""

    def to_base_two(*arguments: Any, **options: Any) -> tuple[Any, Any]:
        mixed, total = on_cuda.with_cache(*arguments, **options)
        return mixed, total / math.log(2)

    def raises(*arguments: Any, **options: Any) -> tuple[Any, Any]:
        raise RuntimeError("no kernel image is available for execution on the device")

    for broken in (to_base_two, raises):
        package = SimpleNamespace(flash_attn_with_kvcache=broken)
        for module in ("flash_attn", "flash_attn_interface"):
            monkeypatch.setitem(sys.modules, module, package)
        assert choose(CUDA, torch.bfloat16, 64).name.startswith("torch flash attention on the prefix")


def test_the_hubs_kernel_is_fetched_only_by_name(on_cuda: OnCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is compiled code from elsewhere, so the owner of the machine has to ask for it."""
    for module in ("flash_attn", "flash_attn_interface"):
        monkeypatch.setitem(sys.modules, module, None)
    assert choose(CUDA, torch.bfloat16, 64).name.startswith("torch flash attention")
    monkeypatch.setenv(kernels.VARIABLE, "flash-attn-hub")
    assert choose(CUDA, torch.bfloat16, 64).name.startswith("kernels-community/flash-attn2 3 on the prefix")

    def offline(name: str, version: int) -> Any:
        raise OSError("no route to host")

    monkeypatch.setitem(sys.modules, "kernels", SimpleNamespace(get_kernel=offline))
    with pytest.raises(ModelError, match=r"flash-attn2 cannot be fetched \(no route to host\): leave"):
        choose(CUDA, torch.bfloat16, 64)


def test_an_unknown_kernel_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name with a slip in it would be measured as another kernel."""
    monkeypatch.setenv(kernels.VARIABLE, "flash")
    with pytest.raises(ModelError, match="SPECSCOPE_ATTENTION must be one of"):
        choose(CPU, torch.float32, SIZE)
    monkeypatch.setenv(kernels.VARIABLE, "masked")
    assert choose(CPU, torch.float32, SIZE).prefix is None


def test_shapes_change_with_the_block_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that meets a new shape at every step plans anew, and a captured step could never be replayed."""
    monkeypatch.setenv(kernels.VARIABLE, "plain")
    made, shapes = choose(CPU, torch.float32, SIZE), list[tuple[int, ...]]()
    assert made.prefix is not None

    def tail(query: Any, key: Any, value: Any, bias: Any) -> kernels.Mixed:
        shapes.append((*query.shape, *key.shape, *bias.shape))
        return plain(query, key, value, bias)

    watched = Kernels(made.name, made.masked, tail, made.prefix, made.alignment)
    for prefix in (BLOCK, BLOCK + 1, 2 * BLOCK - 1, 2 * BLOCK):
        differs(watched, 6, prefix, 2, torch.float32)
    assert len(shapes) == 4 and len(set(shapes)) == 1


def test_packing_copies_nothing() -> None:
    """A copy of the queries in every layer would cost a launch each, and go unseen."""
    query = torch.randn(5, 6, SIZE)
    packed = pack(query, KV_HEADS)
    assert packed.shape == (1, KV_HEADS, 15, SIZE) and packed.data_ptr() == query.data_ptr()
    with pytest.raises(RuntimeError, match="view"):
        pack(torch.randn(5, 8, SIZE)[:, :6], KV_HEADS)


def test_parts_of_very_different_weight_are_merged() -> None:
    """A difference of exponentials would be 0 / 0 here; a part that weighs nothing must add nothing."""
    one, other = torch.full((1, 1, 3, 2), 1.0), torch.full((1, 1, 3, 2), 3.0)
    totals = torch.tensor([[[500.0, -500.0, 0.0]]])
    merged = merge((one, totals), (other, torch.zeros(1, 1, 3)), torch.empty(3, 1, 2))
    assert merged[:, 0].tolist() == [1.0, 3.0, 2.0]


def test_a_row_that_sees_nothing_of_the_first_thousand_keys() -> None:
    """Kernels that go through the keys in blocks must survive a block that is hidden as a whole."""
    torch.manual_seed(0)
    query = torch.randn(2, KV_HEADS, SIZE, dtype=torch.float64)
    key, value = torch.randn(2, 1500, KV_HEADS, SIZE, dtype=torch.float64)
    visible = torch.ones(2, 1500, dtype=torch.bool)
    visible[1, :1499] = False
    bias = torch.zeros(2, 1500).masked_fill(~visible, -torch.inf)
    views = [part.float().transpose(0, 1)[None] for part in (key, value)]
    masked = choose(CPU, torch.float32, SIZE).masked
    mixed = masked(pack(query.float(), KV_HEADS), *views, bias).transpose(1, 2)[0]
    torch.testing.assert_close(mixed.double(), defined(query, key, value, visible), rtol=0.0, atol=2e-6)


def test_every_kernel_is_tested() -> None:
    """One that is in no test has been compared with nothing."""
    assert {*ON_CPU, *ON_CUDA} == {*PREFIXES}
