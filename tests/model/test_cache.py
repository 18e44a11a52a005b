"""The cache alone, against a list of rows."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from decoding.errors import ModelError
from decoding.model.cache import Cache

STEP = 4


def make(capacity: int, window: int | None) -> Cache:
    return Cache(2, 2, 3, capacity, STEP, window, torch.device("cpu"), torch.float64)


class CacheMachine(RuleBasedStateMachine):
    """Every row ever written has its own number, so that any mix-up of slots, layers or halves shows."""

    capacity, window = 10, 99

    def __init__(self) -> None:
        super().__init__()
        self.cache = make(self.capacity, self.window if self.window < 99 else None)
        self.text: list[float] = []
        self.step: list[float] = []
        self.longest, self.number = 0, 0.0
        self.mark = torch.arange(24, dtype=torch.float64).view(2, 2, 2, 3) * 1e6  # tells layers, halves, heads apart

    @rule(rows=st.integers(1, STEP + 1))
    def append(self, rows: int) -> None:
        fits = rows <= STEP and len(self.text) + rows <= self.capacity + STEP
        if not fits:
            with pytest.raises(ModelError):
                self.cache.check(rows)
            return
        self.cache.check(rows)
        self.step = []
        for row in range(rows):
            places = self.cache.slots_of(self.cache.length + row, self.cache.length + row + 1)
            self.number += 1
            self.step.append(self.number)
            with torch.inference_mode():
                self.cache.data[:, :, places] = (self.mark + self.number)[:, :, None]

    @precondition(lambda self: self.step)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        rows = sorted(data.draw(st.sets(st.integers(0, len(self.step) - 1))))
        self.cache.commit(rows)
        self.text += [self.step[row] for row in rows]
        self.longest = max(self.longest, len(self.text))
        self.step = []

    @precondition(lambda self: self.text)
    @rule(data=st.data())
    def rewind(self, data: st.DataObject) -> None:
        length = data.draw(st.integers(max(0, self.longest - STEP), len(self.text)))
        self.cache.rewind(length)
        del self.text[length:]
        self.step = []

    @rule()
    def reset(self) -> None:
        self.cache.reset()
        self.text, self.step, self.longest = [], [], 0

    @invariant()
    def visible_rows_are_there(self) -> None:
        assert self.cache.length == len(self.text)
        visible = self.text[-(self.window - 1) :]
        whole = visible + self.step
        start = len(self.text) - len(visible)
        places = self.cache.slots_of(start, start + len(whole))
        wanted = self.mark[:, :, None] + torch.tensor(whole, dtype=torch.float64)[:, None, None]
        for layer in range(2):
            views = self.cache.gather(layer, torch.arange(start, start + len(whole)) % self.cache.slots)
            if isinstance(places, slice):
                views = self.cache.views(places)[2 * layer : 2 * layer + 2]
            for half in range(2):
                got = views[half][0].transpose(0, 1)  # (P, kv_heads, D)
                assert torch.equal(got, wanted[layer, half])


class RollingMachine(CacheMachine):
    capacity, window = 300, 5


class TightMachine(CacheMachine):
    """A window that rolls in barely fewer slots than the whole text would take."""

    capacity, window = 10, 5


PROFILE = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
TestLinear, TestRolling, TestTight = CacheMachine.TestCase, RollingMachine.TestCase, TightMachine.TestCase
TestLinear.settings = TestRolling.settings = TestTight.settings = PROFILE


def test_sizes() -> None:
    """A window as wide as the text must not make the cache larger than a linear one."""
    assert make(100, None).slots == 104
    assert make(100, 5).slots == 5 + 2 * STEP
    assert make(100, 5000).slots == 104


def test_rewinding_past_what_the_ring_holds_is_refused() -> None:
    """Keys that were overwritten cannot come back; going on with them would be silent nonsense."""
    cache = make(100, 5)
    for _ in range(10):
        cache.commit(range(4))
    cache.rewind(38)
    with pytest.raises(AssertionError):
        cache.rewind(35)
    assert cache.length == 38


def test_places_go_round_the_end() -> None:
    """The one turn where a span is no slice is where rolling caches break."""
    cache = make(100, 5)  # 13 slots
    assert cache.slots_of(10, 13) == slice(10, 13)
    assert cache.slots_of(13, 15) == slice(0, 2)
    turned = cache.slots_of(11, 15)
    assert isinstance(turned, torch.Tensor)
    assert turned.tolist() == [11, 12, 0, 1]


def test_more_than_there_is_memory_for() -> None:
    """The user asked for too many tokens, and must read that instead of an allocator's message."""
    with pytest.raises(ModelError, match="no memory for the keys and values of 1000000000004 tokens"):
        make(10**12, None)
