"""A model whose layers are split over devices is the same model, to the last bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from decoding import METHODS, ModelError, load
from decoding.chat import Chat
from decoding.engine import Engine
from decoding.model import layout
from decoding.model.layout import Sizes, find_devices, lay_out, share_out
from decoding.model.loading import from_transformers
from decoding.model.precision import Precision
from decoding.model.split import SplitDecoder
from decoding.types import Step, Timing
from tests.families import ALL, machine, tiny
from tests.pretended.test_pretended import PARAMS
from tests.test_load import save
from tests.tiers import crossed, sampled

CPU = torch.device("cpu")
BFLOAT16 = Precision(torch.bfloat16)
TREE = (7, 11, 13, 17, 19, 23), (-1, 0, 0, 1, 2, 3)


def split(family: str, count: int, dtype: torch.dtype | None = None) -> SplitDecoder:
    model = from_transformers(tiny(family), dtype, [CPU] * count)
    assert isinstance(model, SplitDecoder)
    return model


@sampled
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)  # the first is compiled where it can be
@pytest.mark.parametrize(("family", "count"), crossed([(family,) for family in ALL], [2, 3]))
def test_every_reading_is_the_same(family: str, dtype: torch.dtype, count: int) -> None:
    """Rows that are stored, moved, rejected and rewound are so on every device."""
    whole, parts = (from_transformers(tiny(family), dtype, [CPU] * number) for number in (1, count))
    assert parts.devices == (CPU,) * count and parts.device == CPU
    sessions = [model.open(96, 8) for model in (whole, parts)]
    for session in sessions:
        session.reset(8)
    for turn, rows in enumerate([(0, 2, 4), (0,), (0, 1, 3, 5), (0, 1)] * 4):
        one, other = (session.read(*TREE, skip=turn % 3) for session in sessions)
        assert torch.equal(one.logits, other.logits) and torch.equal(one.hidden, other.hidden)
        one, other = (session.read(*TREE, only=[0, 2]) for session in sessions)
        assert torch.equal(one.logits, other.logits) and len(one.logits) == 2
        for session in sessions:
            session.commit(rows)
            if turn % 4 == 3:
                session.rewind(session.length - 3)
        assert sessions[0].length == sessions[1].length > 0


@cache
def engines(family: str, dtype: torch.dtype) -> tuple[Engine, Engine]:
    """Return one on a device, and one whose target is split over two."""
    like = torch.empty(0, dtype=dtype)
    return machine(family, like), machine(family, like, devices=("cpu", "cpu"))


def untimed(steps: tuple[Step, ...]) -> list[Step]:
    return [replace(step, timing=Timing()) for step in steps]


SAMPLINGS = [{}, {"temperature": 0.8, "seed": 3, "repetition_penalty": 1.1}]
SINGLE, DOUBLE = torch.float32, torch.float64
# In this order each sampling meets both dtypes and both families.
KINDS = [("mistral", SINGLE), ("mistral", DOUBLE), ("qwen2-mixed", DOUBLE), ("qwen2-mixed", SINGLE)]


# A method has one sampling in the default tier, and the next one the other.
EACH = [(method, SAMPLINGS[(at + at // 4) % 2]) for at, method in enumerate(METHODS)]


@sampled
@pytest.mark.parametrize(("method", "sampling", "kind"), crossed(EACH, KINDS), ids=str)
def test_every_record_is_the_same(method: str, sampling: Mapping[str, Any], kind: tuple[str, torch.dtype]) -> None:
    """Whatever a method does with a session, it is asked for in both parts: every number of the record agrees."""
    plain, parts = engines(*kind)
    prompt = torch.randint(3, 60, (12,), generator=torch.Generator().manual_seed(2)).tolist()
    options: dict[str, Any] = {"max_new_tokens": 24, "end_tokens": (), "record": "full", "prefill_chunk": 5}
    one, other = (
        engine.generate([*prompt, *prompt[:6]], method, PARAMS.get(method), sampling, **options).trace
        for engine in (plain, parts)
    )
    assert untimed(one.steps) == untimed(other.steps)
    assert other.header.device == "cpu,cpu" and other.header.attention == one.header.attention
    assert parts.rescore(other).violations == 0


def test_a_chat_goes_on_in_all_caches() -> None:
    """A cache that kept less than another would answer from another text."""
    plain, parts = engines("qwen2-mixed", torch.float32)
    told = []
    for engine in (plain, parts):
        chat, text = Chat(), [3, 4, 5, 6, 7]
        for _ in range(3):
            text += engine.generate(text, "lookahead", PARAMS["lookahead"], chat=chat, max_new_tokens=12).ids
            text += [9, 8]
        told.append(text)
    assert told[0] == told[1]


def test_caches_and_rotations_are_a_sections_own() -> None:
    """What two devices shared would have to be copied at every step."""
    session = split("llama", 2).open(16, 8)
    caches = [each.cache.data for each in session._sessions]
    assert [len(data) for data in caches] == [2, 1]
    one, other = (each._tables.cos for each in session._sessions)
    assert torch.equal(one, other) and one.data_ptr() != other.data_ptr()


@pytest.mark.parametrize(
    ("rooms", "expected"),
    [((1, 1), (4, 6)), ((3, 1), (8, 2)), ((1, 1, 1), (3, 4, 3)), ((1, 0.001), (9, 1)), ((0.001, 1), (1, 9))],
)
def test_layers_are_shared_out_by_room(rooms: tuple[float, ...], expected: tuple[int, ...]) -> None:
    """The embedding is on the first device and the head on the last: they count, and no device is without a layer."""
    sizes = Sizes(embedding=20, layer=10, layers=10, norm=0, head=10 if len(rooms) == 2 else 20)
    parts = share_out(sizes, rooms)
    assert tuple(map(len, parts)) == expected
    assert [layer for part in parts for layer in part] == list(range(10))


def test_cuda_without_a_number_is_as_many_devices_as_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that fits on one device is faster there; one that does not is not refused while others are idle."""
    shape = from_transformers(tiny("llama"), torch.float32).shape
    total = Sizes.of(shape, BFLOAT16).total
    free = [total * 2.0, total * 1.0]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(layout, "_free", lambda device: free[device.index or 0])
    cuda = find_devices("cuda")
    assert lay_out(shape, BFLOAT16, cuda).devices == cuda
    free[0] = total * 1.1  # keys and values need room too
    got = lay_out(shape, BFLOAT16, cuda)
    assert [str(device) for device in got.devices] == ["cuda:0", "cuda:1"]
    assert lay_out(shape, BFLOAT16, find_devices("cuda:0")).devices == find_devices("cuda:0")
    first = {str(got.device_of(name)) for name in ("model.embed_tokens.weight", "model.layers.0.mlp.down_proj.weight")}
    last = {str(got.device_of(name)) for name in ("model.norm.weight", "lm_head.weight", "model.layers.2.x")}
    assert (first, last) == ({"cuda:0"}, {"cuda:1"})


def test_a_split_model_is_loaded_by_a_list_of_devices(tmp_path: Path) -> None:
    """What users type."""
    folder = save(tmp_path)
    plain, parts = (load(folder, draft=folder, device=device, dtype="float32") for device in ("cpu", "cpu,cpu"))
    assert isinstance(parts.model, SplitDecoder) and parts.draft is not None
    assert parts.draft.devices == (CPU,), "a drafter is small: it stays on one device"
    assert parts.model.card.hash == plain.model.card.hash
    one, other = (engine.generate([5, 6, 7], "draft_model", max_new_tokens=20) for engine in (plain, parts))
    assert one.ids == other.ids
    assert isinstance(load(folder, draft=folder, draft_device="cpu,cpu", device="cpu").draft, SplitDecoder)


@pytest.mark.parametrize(("device", "reason"), [("cpu,cpu,cpu,cpu", "more than the model's 3 layers"), ("cpu,", "''")])
def test_lists_that_cannot_be_used(device: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=reason):
        load(save(tmp_path), device=device)
    with pytest.raises(ModelError, match="no device 'warp'"):
        load(save(tmp_path), draft=str(tmp_path), device="cpu", draft_device="warp")
