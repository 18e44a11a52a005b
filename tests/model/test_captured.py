"""Passes that are replayed, with a recorder in the place of CUDA graphs.

It notes every operation with its tensors, and does them again on the same memory. What a step has put into an operation
as a number of the host, a replay repeats: there it must differ from the eager pass, as it would on a device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from decoding.engine import Engine
from decoding.model import captured, graphs, kernels
from decoding.model.captured import StepBuffer, filled
from decoding.model.decoder import Decoder
from decoding.model.replays import Replays
from tests.families import machine
from tests.test_at_once import far_away, said
from tests.tiers import crossed, few, of_methods, sampled, slow
from tests.toys import CASES, title

FAMILIES = ("llama", "mistral", "qwen2-mixed", "qwen3")
WINDOWS = {"mistral": 300, "qwen2-mixed": 280}  # they begin to hide something while the text is written
OPTIONS: dict[str, Any] = {"max_new_tokens": 40, "end_tokens": ()}


class Tape(TorchDispatchMode):
    """The operations that were done under it."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[tuple[Any, Any, Any, list[torch.Tensor | None]]] = []
        self.replays = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Do an operation, and note it."""
        result = function(*args, **(kwargs or {}))
        given = {each.untyped_storage().data_ptr() for each in tensors((args, kwargs))}
        # None for a view, or what was written to: doing it again does all.
        results = [None if each.untyped_storage().data_ptr() in given else each for each in tensors(result)]
        self.done.append((function, args, kwargs or {}, results))
        return result

    def replay(self) -> None:
        """Do all of them again."""
        self.replays += 1
        for function, args, kwargs, results in self.done:
            fresh = function(*args, **kwargs)
            for old, new in zip(results, tensors(fresh), strict=True):
                if old is not None:
                    old.copy_(new)


class Recorder(graphs.Recorder):
    """Notes operations where there is no device that could."""

    def __init__(self) -> None:
        super().__init__(torch.device("cpu"))
        self.tapes: list[Tape] = []

    def _record(self, work: Callable[[], None]) -> Tape:
        with Tape() as tape:
            work()
        self.tapes.append(tape)
        return tape


def tensors(of: Any) -> list[torch.Tensor]:
    if isinstance(of, torch.Tensor):
        return [of]
    return [leaf for leaf in tree_leaves(of) if isinstance(leaf, torch.Tensor)]


def recording(ours: Engine) -> Iterator[Recorder]:
    for model in (ours.model, ours.draft):
        assert isinstance(model, Decoder)
        recorder = Recorder()
        model.recorder = recorder  # type: ignore[assignment]
        yield recorder


@pytest.fixture(scope="module")
def made() -> Iterator[Callable[[str], Engine]]:
    """Make engines whose attention is in two parts, as it is on a device."""
    patch = pytest.MonkeyPatch()
    patch.setenv(kernels.VARIABLE, "plain")

    def make(family: str) -> Engine:
        changes = {"sliding_window": WINDOWS[family]} if family in WINDOWS else {}
        like = torch.empty(0, dtype=torch.float64)
        return machine(family, like, noise=0.01, max_position_embeddings=512, **changes)

    yield make
    patch.undo()


@pytest.fixture(scope="module")
def plain(made: Callable[[str], Engine]) -> Callable[[str], Engine]:
    """Make such an engine without a recorder, one a family."""
    return cache(made)


@pytest.fixture
def own(made: Callable[[str], Engine], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Engine]:
    """Make engines with our own kernel's way through attention. A tape records torch's operations alone."""
    pytest.importorskip("triton")
    from benchmarks.kernel_cases.attention import reference

    monkeypatch.delenv(kernels.VARIABLE)
    monkeypatch.setattr(kernels, "_tree", lambda *sizes: reference)
    return made


def words(length: int) -> list[int]:
    ids = torch.randint(3, 67, (length,), generator=torch.Generator().manual_seed(length)).tolist()
    return ids[: length - length // 3] + ids[: length // 3]


# Those whose steps are recorded in parts of their own, and one tree.
KINDS = {"lookahead", "draft_model", "medusa", "kangaroo", "eagle3", "ouroboros"}
QUICK = {"draft_model", "medusa", "eagle3"}


@pytest.mark.parametrize(("method", "params", "family"), of_methods(QUICK, few(1, crossed(CASES, FAMILIES))), ids=title)
def test_what_is_replayed_is_what_was_written(
    method: str, params: Any, family: str, made: Callable[[str], Engine], plain: Callable[[str], Engine]
) -> None:
    """Over the edge of a prefix, with rows that only fill up, early exits, heads and drafters."""
    ours = made(family)
    recorders = [*recording(ours)]
    for length, sampling in ((225, {}), (40, {"temperature": 0.8, "seed": 1})):
        options = {**OPTIONS, "params": params, "sampling": sampling}
        expected = plain(family).generate(words(length), method, memory={}, **options)
        got = ours.generate(words(length), method, memory={}, **options)
        assert got.ids == expected.ids
        assert [step.path for step in got.trace.steps] == [step.path for step in expected.trace.steps]
    tapes = recorders[0].tapes
    assert tapes and sum(tape.replays for tape in tapes) >= len(tapes), "or nothing here is of replays"
    assert recorders[1].tapes or method not in ("draft_model", "ouroboros")


DEVICE_CASES = [  # not of those whose chains are too long for a tape
    ("eagle3", {"m": 9, "k": 3, "depth": 3}),
    ("eagle3", {"m": 12, "k": 4, "depth": 2, "threshold": 0.02, "expand": 0.1}),
    ("dflash", {"gamma": 4}),
    ("dflash", {"form": "drawn", "gamma": 3, "threshold": 0.1}),
    ("dflash", {"form": "tree", "m": 9, "k": 3, "gamma": 3}),
    *CASES,
    ("medusa", {"acceptance": "typical", "epsilon": 0.05}),
]
REPLAYED = {
    "eagle3": 8,
    "draft_model": 8,
    "kangaroo": 8,
    "dflash": 8,
}  # work of drafters that is replayed at least so often


@slow
@pytest.mark.parametrize(
    ("method", "params", "family"), few(1, crossed(DEVICE_CASES, ["llama", "qwen3"]), more=0), ids=title
)
def test_what_a_device_replays_is_what_it_would_have_done(
    method: str,
    params: Any,
    family: str,
    made: Callable[[str], Engine],
    plain: Callable[[str], Engine],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Drafts that a device writes, and choices that come with a pass, after texts that grow and begin anew."""
    ours, replays = made(family), Counter[str]()
    run = Replays.run

    def count(work: Replays, key: Any, *arguments: Any) -> Any:
        result = run(work, key, *arguments)
        replays[key[0]] += result is not None
        return result

    monkeypatch.setattr(Replays, "run", count)
    with far_away(monkeypatch):
        recorders = [*recording(ours)]
        for length, sampling in (
            (225, {}),
            (40, {"temperature": 0.8, "seed": 1}),
            (40, {"temperature": 0.9, "seed": 2}),
        ):
            options = {**OPTIONS, "params": params, "sampling": sampling}
            expected = plain(family).generate(words(length), method, memory={}, **options)
            got = ours.generate(words(length), method, memory={}, **options)
            assert said(got) == said(expected)
    tapes = recorders[0].tapes
    assert tapes and sum(tape.replays for tape in tapes) >= len(tapes), "or nothing here is of replays"
    assert sum(replays.values()) >= REPLAYED.get(method, 0) and all(replays.values()), replays
    assert all(recorder.failed is None for recorder in recorders)


@slow
@pytest.mark.parametrize("method", ["eagle3", "dflash", "kangaroo", "draft_model"])
def test_a_drafter_that_cannot_be_recorded_drafts_as_usual(
    method: str, made: Callable[[str], Engine], plain: Callable[[str], Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the target's passes are replayed all the same."""
    ours, attempts, record = made("llama"), Counter[Any](), graphs.Recorder.record

    def fail(recorder: Recorder, what: Any, work: Callable[[], None]) -> Any:
        if isinstance(what[-1], captured.PassSpec):
            return record(recorder, what, work)

        def refuse() -> None:
            attempts[what] += 1
            raise RuntimeError("operation not permitted when stream is capturing")

        return record(recorder, what, refuse)

    monkeypatch.setattr(graphs.Recorder, "record", fail)
    with far_away(monkeypatch):
        recorder, _ = recording(ours)
        expected, got = (each.generate(words(40), method, memory={}, **OPTIONS) for each in (plain("llama"), ours))
    assert said(got) == said(expected)
    assert max(attempts.values()) == graphs.ATTEMPTS, "each takes as long as drafting does"
    assert sum(tape.replays for tape in recorder.tapes) > len(recorder.tapes)


@sampled
@pytest.mark.parametrize("maker", ["made", "own"])
@pytest.mark.parametrize("family", ["llama", "qwen3", "phi3-partial"])
def test_rows_that_fill_up_change_nothing(
    family: str, maker: str, made: Callable[[str], Engine], request: pytest.FixtureRequest
) -> None:
    """They see nothing of the step, no row sees them, and their keys are where the next step writes."""
    plain, ours = made(family).model, request.getfixturevalue(maker)(family).model
    assert isinstance(ours, Decoder)
    ours.recorder = recorder = Recorder()  # type: ignore[assignment]
    one, other = plain.open(512, 64), ours.open(512, 64)
    for session in (one, other):
        session.reset(1)
        for start in range(0, 240, 60):
            session.read(words(240)[start : start + 60], tuple(range(-1, 59)))
            session.commit(range(60))
    trees = [(-1, 0, 0, 1, 2), (-1, 0, 1, 2, 3, 4, 4), (-1, 0, 0, 0, 0, 0), (-1, 0, 1, 1, 3)] * 4
    for turn, parents in enumerate(trees):
        tokens = words(len(parents) + 10 * turn)[-len(parents) :]
        expected, got = one.read(tokens, parents), other.read(tokens, parents)
        torch.testing.assert_close(got.logits, expected.logits, atol=1e-9, rtol=0)
        torch.testing.assert_close(got.hidden, expected.hidden, atol=1e-9, rtol=0)
        for session in (one, other):
            session.commit([0, 1, 3] if parents[3] == 1 else [0, 1])
    assert one.length > 256, "the prefix has grown"
    assert [tape.replays for tape in recorder.tapes] and sum(tape.replays for tape in recorder.tapes) >= 10


def test_a_number_of_the_host_would_be_seen(made: Callable[[str], Engine], monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: a buffer that is not written again makes every replay repeat the first step."""
    plain, ours = made("llama"), made("llama")
    fill, met = StepBuffer.fill, set[int]()

    def once(buffer: StepBuffer, *arguments: Any) -> None:
        if id(buffer) not in met:
            met.add(id(buffer))
            fill(buffer, *arguments)

    monkeypatch.setattr(StepBuffer, "fill", once)
    assert len([*recording(ours)]) == 2
    assert ours.generate(words(40), **OPTIONS).ids != plain.generate(words(40), **OPTIONS).ids


def test_a_session_has_few_graphs(made: Callable[[str], Engine], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each holds its intermediate results; and shapes that come once are not worth one."""
    monkeypatch.setattr(graphs, "_MOST", 8)
    ours = made("llama").model
    assert isinstance(ours, Decoder)
    ours.recorder = recorder = Recorder()  # type: ignore[assignment]
    session = ours.open(512, 128)
    session.reset(1)
    sizes = [rows for rows in captured.ROWS for _ in range(3)]
    for rows in sizes:
        session.read([5] * rows, tuple(range(-1, rows - 1)))
    assert len(recorder.tapes) == len(captured.ROWS)
    assert all(tape.replays == 2 for tape in recorder.tapes), "the first of three was read as usual"
    session.read([5] * captured.ROWS[-1], tuple(range(-1, captured.ROWS[-1] - 1)))
    assert len(recorder.tapes) == len(captured.ROWS), "the last ones are known"
    session.read([5], (-1,))
    assert len(recorder.tapes) == len(captured.ROWS) + 1, "the first ones were dropped"


def test_where_nothing_can_be_recorded_passes_are_run(made: Callable[[str], Engine]) -> None:
    """Out of memory, or a kernel that no graph may hold: the text is written all the same."""
    plain, ours = made("llama"), made("llama")
    recorder = next(recording(ours))

    attempts = []

    def fail(work: Callable[[], None]) -> Tape:
        attempts.append(work)
        raise RuntimeError("operation not permitted when stream is capturing")

    recorder._record = fail  # type: ignore[method-assign]
    assert ours.generate(words(40), **OPTIONS).ids == plain.generate(words(40), **OPTIONS).ids
    assert recorder.failed is not None and "not permitted" in recorder.failed
    header = ours.generate(words(5), max_new_tokens=1).trace.header
    assert "some steps not captured in CUDA graphs (operation not permitted" in header.attention
    assert len(attempts) < 3 * graphs.ATTEMPTS, "or every step pays for an attempt"


def test_one_failure_to_record_is_made_good(made: Callable[[str], Engine]) -> None:
    """Another thread may have been in the way."""
    plain, ours = made("llama"), made("llama")
    recorder, failures = next(recording(ours)), [RuntimeError("capture was invalidated")]
    record = recorder._record

    def fail_once(work: Callable[[], None]) -> Tape:
        if failures:
            raise failures.pop()
        return record(work)

    recorder._record = fail_once  # type: ignore[method-assign]
    assert ours.generate(words(40), **OPTIONS).ids == plain.generate(words(40), **OPTIONS).ids
    assert recorder.failed is None and recorder.tapes


def test_one_graph_serves_every_length(plain: Callable[[str], Engine], own: Callable[[str], Engine]) -> None:
    """With the attention kernel of our own: the length of the text is in the step's buffer, and in no recording."""
    ours = own("llama")
    assert ours.model.attention.startswith("split tree attention in Triton up to 128 rows")
    recorder = next(recording(ours))
    for length in (225, 40):
        result = [each.generate(words(length), **OPTIONS) for each in (ours, plain("llama"))]
        assert result[0].ids == result[1].ids
    assert len(recorder.tapes) == 1 and recorder.tapes[0].replays > 2 * OPTIONS["max_new_tokens"] - 6


def test_rows_are_filled_up_to_the_next_number() -> None:
    assert [filled(rows) for rows in (1, 2, 3, 5, 9, 33, 121, 128, 129)] == [1, 2, 4, 8, 16, 48, 128, 128, 0]
