"""A conversation's caches: the next turn reads only what is new, and writes what it would have written anyway."""

from __future__ import annotations

import gc
import random
import threading
import weakref
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pytest

from decoding import METHODS, Chat
from decoding.engine import Engine
from decoding.model.decoder import Decoder
from decoding.parts.base import TAPPING
from decoding.run import Run

from . import families, toys
from .tiers import few, sampled

Turn = tuple[list[int], int, int]  # new tokens, steps, and prompt tokens that were in the cache already


@cache
def mistral() -> Engine:
    return families.machine("mistral", max_position_embeddings=2048)


def turn(
    engine: Engine, text: Sequence[int], chat: Chat | None, method: str = "autoregressive", **options: Any
) -> Turn:
    options = {"max_new_tokens": 20, "end_tokens": []} | options
    result = engine.generate(text, method, chat=chat, **options)
    first = result.trace.steps[0]
    return list(result.ids), len(result.trace.steps), first.start - 1 - first.pending


def turns(engine: Engine, method: str, params: Mapping[str, Any], chat: Chat | None) -> list[Turn]:
    """Return three turns: on, on, and back to a text that only begins alike."""
    written, text = list[Turn](), [1, 2, 3, 4, 5, 6]
    for number in range(3):
        text = [*text[:9], 4, 4] if number == 2 else [*text, 3, 1, 2] if number else text
        written.append(turn(engine, text, chat, method, params=params))
        text = [*text, *written[-1][0]]
    return written


@sampled
@pytest.mark.parametrize(("method", "params"), few(1, toys.CASES), ids=toys.title)
def test_a_kept_cache_changes_nothing(method: str, params: Mapping[str, Any]) -> None:
    """Neither the text nor, where nothing is remembered across, the steps: a drafter's cache is as right as ours."""
    alone, kept = turns(mistral(), method, params, None), turns(mistral(), method, params, Chat())
    assert [ids for ids, _, _ in kept] == [ids for ids, _, _ in alone]
    if params.get("warm_start") != "across" and method != "suffix":
        assert [steps for _, steps, _ in kept] == [steps for _, steps, _ in alone]
    assert [tokens for _, _, tokens in alone] == [0, 0, 0]
    # All but the last token of the turn before is stored; the third text shares nine tokens with the second.
    expected = [0, 0, 0] if METHODS[method].needs & TAPPING else [0, 25, 9]
    assert [tokens for _, _, tokens in kept] == expected


def test_a_method_takes_over_where_another_stopped() -> None:
    """The cache is the model's, not the method's."""
    chat, engine = Chat(), mistral()
    first, _, _ = turn(engine, [1, 2, 3], chat, "lookahead")
    second, _, kept = turn(engine, [1, 2, 3, *first, 9], chat, "prompt_lookup")
    assert kept == 22
    assert second == turn(engine, [1, 2, 3, *first, 9], None)[0]


def test_a_rolling_cache_goes_on_but_never_far_back() -> None:
    """What the ring has overwritten must be read again."""
    source, chat, engine = random.Random(5), Chat(), mistral()
    text = [source.randrange(3, 67) for _ in range(900)]
    ids, _, _ = turn(engine, text, chat)
    longer = [*text, *ids, 7]
    again, _, kept = turn(engine, longer, chat)
    assert kept == 919
    assert again == turn(engine, longer, None)[0]
    assert turn(engine, text[:500], chat)[0] == turn(engine, text[:500], None)[0]
    _, _, kept = turn(engine, [*text[:480], 8], chat)
    assert kept == 480, "the shorter text is in the cache now"
    chat = Chat()
    turn(engine, text, chat)
    assert turn(engine, [*text[:500], 8], chat)[2] == 0


@pytest.mark.parametrize("kind", ["dynamic", "longrope"])
def test_a_text_that_is_rotated_anew_is_read_anew(kind: str) -> None:
    """With these embeddings a long prompt turns every key, also of the tokens that it shares with a short one."""
    chat, engine = Chat(), families.machine(kind)
    long = [3 + i % 60 for i in range(40)]
    for text in (long, [*long[:10], 3], [*long, 5], long[:20]):
        assert turn(engine, text, chat, max_new_tokens=10) == turn(engine, text, None, max_new_tokens=10)


def test_a_text_that_outgrew_its_rotation_is_kept_as_it_was_read_last() -> None:
    """Its keys are those of a long text, though its prompt was short: right for a longer text, wrong for a shorter."""
    engine = families.machine("longrope")
    for shorter, stored in ((False, 62), (True, 0)):
        chat, text = Chat(), [1, 2, 3]
        ids, _, _ = turn(engine, text, chat, max_new_tokens=60)
        later = [*text, *ids[:10], 4] if shorter else [*text, *ids, 4]
        again, _, kept = turn(engine, later, chat)
        assert (again, kept) == (turn(engine, later, None)[0], stored)


def test_a_run_that_was_cut_off_keeps_nothing() -> None:
    """A drafter stopped in the middle of a guess holds tokens that never were in the text."""
    chat, engine = Chat(), mistral()
    stop = threading.Event()
    run = engine.decode([1, 2, 3], "draft_model", max_new_tokens=40, end_tokens=[], chat=chat, cancel=stop)
    next(run)
    stop.set()
    list(run)
    assert run.finish == "cancelled"
    assert turn(engine, [1, 2, 3], chat, "draft_model")[2] == 0


def test_a_cache_that_became_too_small_goes_before_a_larger_one_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both at once are what a machine has no memory for. No collector may be needed: a device knows of none."""
    chat, engine, living = Chat(), families.machine("llama", max_position_embeddings=2048), list[int]()
    sessions, usual = weakref.WeakSet[Any](), Decoder.open

    def watched(model: Decoder, capacity: int, largest_step: int) -> Any:
        living.append(len(sessions))
        session = usual(model, capacity, largest_step)
        sessions.add(session)
        return session

    monkeypatch.setattr(Decoder, "open", watched)
    gc.disable()
    try:
        ids, _, _ = turn(engine, [1, 2, 3], chat)
        turn(engine, [*[1, 2, 3], *ids] * 50, chat)
    finally:
        gc.enable()
    assert living == [0, 0]


def test_two_runs_of_one_chat_do_not_share_a_cache() -> None:
    """The second starts afresh: both texts stay right."""
    chat, engine = Chat(), mistral()
    turn(engine, [1, 2, 3, 4], chat)
    runs: list[Run] = [
        engine.decode([1, 2, 3, 4, last], max_new_tokens=12, end_tokens=[], chat=chat) for last in (5, 6)
    ]
    for _ in zip(*runs, strict=True):
        pass
    for run, last in zip(runs, (5, 6), strict=True):
        assert list(run.ids) == turn(engine, [1, 2, 3, 4, last], None, max_new_tokens=12)[0]
    assert [run.steps[0].start - 1 - run.steps[0].pending for run in runs] == [4, 0]
