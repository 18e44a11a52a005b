"""Pretend CUDA devices: tensors have shapes, dtypes and devices, and no numbers.

Torch's fake tensors refuse what mixes devices or does not fit in shape. `Pretended` is above them, answers what the
host asks for with numbers of its own, and counts how often it asks: every time, a real host would wait for the device.
Triton's kernels write nothing here, and are counted.
"""

from __future__ import annotations

import ctypes
import importlib
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from decoding.gpu import choice
from decoding.model import download, graphs

_aten = torch.ops.aten
_COPIES = (_aten._to_copy.default, _aten.copy_.default)
_INDEXED = (_aten.index.Tensor, _aten.index_put_.default)
_NO_WORK = (_aten.empty.memory_format, _aten.empty_strided.default, _aten.empty_like.default, _aten.new_empty.default)
_CUDA, _META = 1, 14  # c10::DeviceType


class Pretended(TorchDispatchMode):
    """Counts the host's waits, and answers them; and what it launches: operations, kernels, and whole graphs."""

    def __init__(self) -> None:
        super().__init__()
        self.waits, self._random = 0, random.Random(0)
        self.launches = list[str]()  # by name
        self._replaying = False

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operation on fake tensors."""
        kwargs = kwargs or {}
        if function.namespace == "aten" and function._can_decompose():
            with self:  # inference mode leaves them whole
                return function.decompose(*args, **kwargs)
        if function is _aten._local_scalar_dense.default:
            return self.number(args[0]) if args[0].constant is None else args[0].constant.item()
        if function is _aten._pin_memory.default:
            pinned = args[0].clone()
            pinned.is_in_pinned_memory = True
            return pinned
        if function in _INDEXED:
            at = [index.device for index in args[1] if index is not None]
            self.waits += args[0].device.type == "cuda" and any(each.type == "cpu" for each in at)
        outcome = function(*args, **{**kwargs, "pin_memory": False} if kwargs.get("pin_memory") else kwargs)
        if _launches(function, (args, kwargs, outcome)):
            self._launched(str(function))
        if kwargs.get("pin_memory"):
            outcome.is_in_pinned_memory = True
        self._packed(function, args, outcome)
        if function in _COPIES:
            source = args[1] if function is _aten.copy_.default else args[0]
            self._copied(source, outcome, kwargs.get("non_blocking") or args[2:3] == (True,))
        return outcome

    def _packed(self, function: Any, args: Any, outcome: Any) -> None:
        """Note of what kinds of numbers a tensor in float64 is made."""
        if function in (_aten.cat.default, _aten.stack.default):
            outcome.kinds = [kind for each in args[0] for kind in _kinds(each)]
        elif function in _COPIES:
            outcome.kinds = _kinds(args[function is _aten.copy_.default])
        elif isinstance(outcome, torch.Tensor) and hasattr(args[0], "kinds") and outcome.numel() == args[0].numel():
            outcome.kinds = args[0].kinds  # another shape of the same numbers

    def _copied(self, source: torch.Tensor, target: torch.Tensor, queued: bool) -> None:
        """Count a wait unless a copy between host and device is of pinned memory, and asked to be queued."""
        between = {source.device.type, target.device.type} == {"cpu", "cuda"}
        pinned = any(getattr(each, "is_in_pinned_memory", False) for each in (source, target))
        self.waits += between and not (queued and pinned)
        assert not (between and self._replaying), "a graph would go on copying from memory that is another's by then"

    def launch(self, *inputs: Any, **options: Any) -> None:
        """Stand for a kernel in Triton."""
        self._launched("triton, overlapping" if options.get("launch_pdl") else "triton")
        devices = {each.device for each in inputs if isinstance(each, torch.Tensor)}
        assert len(devices) == 1 and next(iter(devices)).type == "cuda"

    def replay(self, work: Callable[[], None]) -> None:
        """Do work for which the host launches a graph."""
        self._launched("graph")
        self._replaying = True
        try:
            work()
        finally:
            self._replaying = False

    def _launched(self, name: str) -> None:
        if not self._replaying:
            self.launches.append(name)

    def number(self, of: torch.Tensor) -> float | int | bool:
        """Make up what a tensor of one number holds."""
        self.waits += of.device.type == "cuda"
        return self._made(of.dtype)

    def made(self, of: torch.Tensor) -> list[float]:
        """Make up what a tensor holds that has been fetched."""
        return [self._made(dtype) for dtype, count in _kinds(of) for _ in range(count)]

    def numbers(self, of: torch.Tensor) -> Any:
        """Make up what a tensor holds, as lists."""
        self.waits += of.device.type == "cuda"

        def lists(shape: tuple[int, ...]) -> Any:
            return [lists(shape[1:]) for _ in range(shape[0])] if shape else self._made(of.dtype)

        return lists(tuple(of.shape))

    def _made(self, dtype: torch.dtype) -> float | int | bool:
        """Draw few tokens, so that guesses are right now and then; shares that accept and that reject."""
        if dtype.is_floating_point:
            return self._random.choice((0.1, 0.5, 0.9))
        return False if dtype == torch.bool else self._random.randrange(2)


def _kinds(of: Any) -> list[tuple[torch.dtype, int]]:
    """List the kinds of numbers that a tensor is made of, and how many of each."""
    kinds: list[tuple[torch.dtype, int]] = getattr(of, "kinds", [(of.dtype, of.numel())])
    return kinds if of.dtype == torch.float64 else [(of.dtype, of.numel())]


def _launches(function: Any, tensors: Any) -> bool:
    """Return whether an operation has the device do something: making a view, or room for numbers, does not."""
    views = (each.alias_info and not each.alias_info.is_write for each in function._schema.returns)
    if function.namespace == "prim" or function in _NO_WORK or any(views):
        return False
    return any(isinstance(each, torch.Tensor) and each.device.type == "cuda" for each in tree_leaves(tensors))


class _Event:
    """An event that passes at once."""

    device: Pretended | None = None  # whose waits are counted

    def __init__(self, *, enable_timing: bool = False) -> None: ...

    def record(self, stream: Any) -> None:
        """Do nothing."""

    def synchronize(self) -> None:
        """Have the host wait."""
        assert self.device is not None
        self.device.waits += 1

    def elapsed_time(self, end: Any) -> float:
        """Return half a millisecond."""
        return 0.5


class _Again:
    """A pass that is done again where its graph would first be replayed; later replays would show nothing new."""

    def __init__(self, device: Pretended, work: Callable[[], None]) -> None:
        self._device, self._work = device, work
        work()

    def replay(self) -> None:
        """Launch it; a device does not run its Python again either."""
        self._device.replay(self._work)
        self._work = _nothing


def _nothing() -> None: ...


class _Stream:
    """The one that a device works through."""

    def record_event(self) -> _Event:
        """Return an event after everything that was queued."""
        return _Event()


@contextmanager
def pretended(monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int] = (9, 0)) -> Iterator[Pretended]:
    """Pretend devices of that compute capability, as many as are named."""
    monkeypatch.setattr(torch.cuda, "Event", _Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: _Stream())
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.cuda, "device_of", nullcontext)
    monkeypatch.setattr(torch.backends.cuda, "is_flash_attention_available", lambda: True)
    monkeypatch.setattr(choice, "failure", lambda device: None)
    properties = SimpleNamespace(multi_processor_count=132, major=capability[0])
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    with ExitStack() as stack:
        stack.enter_context(_device_guard())
        stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        device = stack.enter_context(Pretended())
        if find_spec("triton") is not None:
            kernels = importlib.import_module("triton.runtime.jit").KernelInterface
            monkeypatch.setattr(kernels, "__getitem__", lambda kernel, grid: device.launch)
        monkeypatch.setattr(graphs.Recorder, "record", lambda recorder, what, work: _Again(device, work))
        monkeypatch.setattr(_Event, "device", device)
        monkeypatch.setattr(download, "_lists", lambda numbers, tensors: [*map(device.made, tensors)])
        monkeypatch.setattr(
            FakeTensor,
            "tolist",
            lambda tensor: device.numbers(tensor) if tensor.constant is None else tensor.constant.tolist(),
        )
        yield device


@contextmanager
def _device_guard() -> Iterator[None]:
    """Let a build of torch without CUDA index such tensors: the guard of meta tensors, which does nothing, is lent."""
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
    guards = (ctypes.c_void_p * (_META + 1)).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")
    cuda_guard = guards[_CUDA]
    guards[_CUDA] = cuda_guard or guards[_META]
    try:
        yield
    finally:
        guards[_CUDA] = cuda_guard
