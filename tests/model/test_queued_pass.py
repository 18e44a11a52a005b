"""Autoregressive decoding on a device that is at the next step's pass before the host knows the token of this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from decoding.engine import Engine
from decoding.errors import ModelError
from decoding.loop import Loop, QueuedPass
from decoding.model import kernels
from decoding.model.decoder import Decoder
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

    def noted(*arguments: Any) -> QueuedPass:
        passes.append(queue(*arguments))
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
