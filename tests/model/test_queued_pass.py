"""Autoregressive decoding on a device that is at the next step's pass before the host knows the token of this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from analysis.cost.passes import WrongTree, measure_passes, step_ms
from decoding.engine import Engine
from decoding.errors import ModelError
from decoding.loop import Loop, QueuedPass
from decoding.methods import Context
from decoding.methods.autoregressive import Autoregressive, AutoregressiveParams
from decoding.model import kernels
from decoding.model.decoder import Decoder
from decoding.model.decoder_session import DecoderSession
from decoding.tree import Builder
from decoding.types import Draft
from tests.families import machine
from tests.model.test_captured import recording, words
from tests.test_at_once import far_away, said

NEW = 40
SAMPLED = {"temperature": 0.8, "top_p": 0.95, "seed": 1}


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Engine]:
    """Make engines whose attention is in two parts, so that a graph serves 256 lengths of the text."""
    monkeypatch.setenv(kernels.VARIABLE, "plain")
    return lambda family: machine(family, torch.empty(0, dtype=torch.float64), max_position_embeddings=512)


@pytest.fixture
def queued(monkeypatch: pytest.MonkeyPatch) -> list[QueuedPass]:
    """List the passes that are queued ahead."""
    passes, queue = list[QueuedPass](), Loop._queue

    def noted(*arguments: Any, **options: Any) -> QueuedPass:
        passes.append(queue(*arguments, **options))
        return passes[-1]

    monkeypatch.setattr(Loop, "_queue", noted)
    return passes


@pytest.mark.parametrize("sampling", [{}, SAMPLED], ids=["greedy", "sampling"])
@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_the_text_is_that_of_one_step_after_the_other(
    family: str,
    sampling: dict[str, Any],
    make: Callable[[str], Engine],
    queued: list[QueuedPass],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Over the edge of a prefix, where a pass is not recorded yet; and in sessions that held another text."""
    plain, ours = make(family), make(family)
    options: dict[str, Any] = {"sampling": sampling, "max_new_tokens": NEW, "end_tokens": ()}
    with far_away(monkeypatch):
        recorder = next(recording(ours))
        for length in (225, 40, 225):
            expected, got = (each.generate(words(length), **options) for each in (plain, ours))
            assert said(got) == said(expected)
            assert {step.fed - step.pending for step in got.trace.steps} == {1}
        assert len(queued) > 3 * NEW - 12
        queued.clear()
        ours.generate(words(40), **{**options, "max_new_tokens": 3})
        assert len(queued) == 1, "the prompt is not read ahead, and nothing behind the last token"
    assert recorder.failed is None and sum(tape.replays for tape in recorder.tapes) > 2.5 * NEW


@pytest.mark.parametrize("sampling", [{}, SAMPLED], ids=["greedy", "sampling"])
def test_a_run_ends_where_it_would_have_ended(
    sampling: dict[str, Any], make: Callable[[str], Engine], queued: list[QueuedPass], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a token that ends the text, or early; what was queued behind it is in no later text."""
    plain, ours = make("llama"), make("llama")
    options: dict[str, Any] = {"sampling": sampling, "max_new_tokens": NEW}
    text = plain.generate(words(30), end_tokens=(), **options).ids
    end = next(token for at, token in enumerate(text) if at > 10 and token not in text[:at])
    with far_away(monkeypatch):
        next(recording(ours))
        for end_tokens in ((end,), ()):
            expected, got = (each.generate(words(30), end_tokens=end_tokens, **options) for each in (plain, ours))
            assert said(got) == said(expected)
            assert got.summary.finish == ("end_of_text" if end_tokens else "length")
        run = ours.decode(words(50), end_tokens=(), **options)
        queued.clear()
        for _ in zip(range(20), run, strict=False):
            pass
        run.close()
        assert len(queued) > 10 and said(ours.generate(words(30), end_tokens=(), **options)) == said(expected)


@pytest.mark.parametrize("family", ["longrope", "mistral"])
def test_a_text_that_is_read_otherwise_later(
    family: str, make: Callable[[str], Engine], queued: list[QueuedPass], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is queued in front of a length at which all is read anew; behind a window there is nothing to replay."""
    plain, ours = make(family), make(family)
    with far_away(monkeypatch):
        next(recording(ours))
        got, expected = (each.generate(words(12), max_new_tokens=NEW, end_tokens=()) for each in (ours, plain))
    assert said(got) == said(expected) and 0 < len(queued) < NEW


@pytest.mark.parametrize("sampling", [{}, SAMPLED], ids=["greedy", "sampling"])
def test_what_is_no_number_ends_in_a_sentence(
    sampling: dict[str, Any], make: Callable[[str], Engine], queued: list[QueuedPass], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that read the token drawn from it would fail for good: there is no such row in the embeddings."""
    plain, ours = make("llama"), make("llama")
    options: dict[str, Any] = {"sampling": sampling, "max_new_tokens": NEW, "end_tokens": ()}
    text = plain.generate(words(30), **options).ids
    poison = next(
        token for at, token in enumerate(text) if at > 10 and token not in text[:at] and token not in words(30)
    )
    assert isinstance(ours.model, Decoder)
    with far_away(monkeypatch):
        next(recording(ours))
        with torch.inference_mode():
            ours.model._weights.embedding[poison] = torch.nan
        with pytest.raises(ModelError, match="not a number"):
            ours.generate(words(30), **options)
    assert len(queued) > 5


class Guessing(Autoregressive):
    """Claims to propose no guesses, and proposes one, always or now and then."""

    name = "guessing"
    every = 1

    def __init__(self, context: Context, params: AutoregressiveParams) -> None:
        super().__init__(context, params)
        self._context, self._step = context, 0

    def propose(self) -> Draft:
        """Propose a guess that is mostly wrong."""
        self._step += 1
        if self._step % self.every:
            return super().propose()
        tree = Builder(self._context.text[-1])
        tree.chain([7], ["guess"])
        return tree.draft()


@pytest.mark.parametrize("every", [1, 3])
def test_a_method_cannot_make_the_output_wrong(
    every: int, make: Callable[[str], Engine], queued: list[QueuedPass], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it says of its proposals decides what is queued, not what is read."""
    plain, ours = make("llama"), make("llama")
    monkeypatch.setattr(Guessing, "every", every)
    expected = plain.generate(words(40), max_new_tokens=NEW, end_tokens=())
    with far_away(monkeypatch):
        next(recording(ours))
        got = ours.generate(words(40), Guessing, max_new_tokens=NEW, end_tokens=())
    assert got.ids == expected.ids and any(step.drafted for step in got.trace.steps)
    assert (len(queued) > 5) == (every > 1)


def test_a_pass_over_one_token_is_timed_as_autoregressive_decoding_takes_it(
    make: Callable[[str], Engine], queued: list[QueuedPass], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What passes cost is told in steps of the baseline. Every tree is met several times in succession."""
    ours = make("llama")
    with far_away(monkeypatch):
        next(recording(ours))
        step_ms(ours, words(40), NEW, 1)
        assert len(queued) > NEW - 5
        queued.clear()
        step_ms(ours, words(40), NEW, 3)
        assert not queued
        measure_passes(ours, 60, [WrongTree(1, 0), WrongTree(2, 2), WrongTree(1, 0), WrongTree(1, 4)], 2, 0)
    assert 5 <= len(queued) <= 10


def test_a_queued_pass_is_timed(make: Callable[[str], Engine], monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that only the reading of tokens moves: it is 20 ms, whether the host begins it early or not."""
    ours, now, read = make("llama"), 0.0, DecoderSession.read

    def slow(*arguments: Any, **options: Any) -> Any:
        nonlocal now
        now += 0.02
        return read(*arguments, **options)

    monkeypatch.setattr(DecoderSession, "read", slow)
    monkeypatch.setattr("decoding.clock.time.perf_counter", lambda: now)
    with far_away(monkeypatch):
        next(recording(ours))
        steps = ours.generate(words(40), max_new_tokens=NEW, end_tokens=()).trace.steps
    assert {step.timing.forward_ms for step in steps} == {20.0}
    assert {step.timing.total_ms for step in steps[5:-1]} == {20.0}
