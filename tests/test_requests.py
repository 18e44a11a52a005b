"""What callers ask for: refused with a sentence before anything starts, or done as asked and noted in the record."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from decoding.chat import Chat
from decoding.codec import Codec
from decoding.engine import Engine
from decoding.errors import ModelError, ParamError
from decoding.methods import METHODS, Method
from decoding.methods.autoregressive import Autoregressive
from decoding.model.loading import decoder_of
from decoding.model.table import TableModel
from decoding.outlook import Outlook
from decoding.ranking import likeliest
from decoding.trace.columns import detail
from decoding.tree import Builder
from decoding.types import Verdict
from tests.families import tiny
from tests.toys import engine, hashed, parts_of

MACHINE = engine(hashed())


@pytest.mark.parametrize("prompt", [b"abc", None, 5, {"role": "user"}, np.array([1, 2]), torch.tensor([1])])
def test_a_prompt_of_another_type_is_no_empty_prompt(prompt: Any) -> None:
    """ "The prompt is empty" sends somebody who passed an array looking for the wrong thing."""
    with pytest.raises(ParamError, match="must be a text, a list of messages or a list of token ids"):
        MACHINE.decode(prompt)


@pytest.mark.parametrize("prompt", ["", [], ()])
def test_an_empty_prompt_is_refused(prompt: Any) -> None:
    """There is no last token to start from; without a tokenizer the sentence is about that."""
    with pytest.raises(ParamError, match="the prompt is empty|no tokenizer"):
        MACHINE.decode(prompt)


@pytest.mark.parametrize("name", ["params", "sampling"])
@pytest.mark.parametrize("value", [0, [], "", False])
def test_falsy_settings_are_not_defaults(name: str, value: Any) -> None:
    """`x or {}` lets every mistake that happens to be falsy pass."""
    with pytest.raises(ParamError, match="must be an object of names and values"):
        MACHINE.decode([1], **{name: value})


@pytest.mark.parametrize(
    "wrong",
    [
        {"cancel": "now"},
        {"method": Method},
        {"reference": [1, 2], "method": "jacobi"},
        {"memory": []},
        {"memory": {"autoregressive": 5}},
    ],
)
def test_what_could_not_work_is_refused(wrong: dict[str, Any]) -> None:
    """An attribute error in the middle of a run tells nobody what to change; a reference must not be ignored."""
    with pytest.raises(ParamError):
        MACHINE.decode([1], **wrong)


@pytest.mark.parametrize("trace", [None, "run.jsonl", {}])
def test_only_traces_are_rescored(trace: Any) -> None:
    """A file's name is the likeliest mistake."""
    with pytest.raises(ParamError, match="give a trace"):
        MACHINE.rescore(trace)


def test_the_header_holds_all_that_a_second_run_needs() -> None:
    """A record that forgets what ended the text, or what was copied from, cannot be run again."""
    options = {"end_tokens": (3, 1), "prefill_chunk": 2, "stop": ["9 9"], "max_new_tokens": 9}
    header = MACHINE.generate([1, 2, 4], "prompt_lookup", reference=[5, 6, 7], **options).trace.header
    assert (header.end_tokens, header.reference, header.prefill_chunk) == ((1, 3), (5, 6, 7), 2)
    assert (header.prompt, header.stop, header.max_new_tokens) == ((1, 2, 4), ("9 9",), 9)


def test_a_short_prompt_needs_no_room_for_a_large_chunk() -> None:
    """A chunk of 4,096 would reserve as many slots beside a prompt of one token."""
    assert MACHINE.decode([1], prefill_chunk=4096).request.largest_step == 256


def test_a_chunk_is_no_larger_than_a_step_may_be() -> None:
    """A mask has the square of its rows: one of 65,536 tokens would take gigabytes."""
    assert MACHINE.decode([1] * 4000, max_new_tokens=2, prefill_chunk=4096).request.largest_step == 4000
    with pytest.raises(ParamError, match="prefill_chunk must be a whole number from 1 to 4096, not 4097"):
        MACHINE.decode([1], prefill_chunk=4097)


def test_what_a_method_learns_stays_where_the_caller_wants_it() -> None:
    """On a server, one user's phrases must not be guessed for another."""
    machine = engine(hashed())

    def entries(**options: Any) -> int:
        params = {"warm_start": "across", "G": 4}
        steps = machine.generate([1, 2, 4], "ouroboros", params=params, max_new_tokens=24, **options).trace.steps
        count: int = steps[0].panel["pool"]["entries"]
        return count

    one, other, chat = dict[str, Any](), dict[str, Any](), Chat()
    alone = entries(memory=one)
    assert entries(memory=other) == entries(chat=chat) == entries() == alone, "nobody else's runs came before"
    assert min(entries(memory=one), entries(chat=chat), entries()) > alone
    assert entries(memory={}, chat=chat) == alone


class Failing(Autoregressive):
    """Breaks."""

    def propose(self) -> Any:
        """Return nothing."""
        raise RuntimeError("broken")


def test_a_run_that_broke_does_not_say_that_it_was_cancelled() -> None:
    """Nobody pressed stop."""
    run = MACHINE.decode([1], Failing)
    with pytest.raises(RuntimeError, match="broken"):
        next(run)
    assert run.finish == "error"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sampling", [{}, {"temperature": 1.0}])
def test_a_model_that_writes_no_numbers_is_stopped(method: str, sampling: dict[str, Any]) -> None:
    """The likeliest of NaNs is token 0: float16 that overflowed would write it for ever, and pass every check."""
    broken = TableModel(lambda key: torch.full((5,), torch.nan), 1, 5)
    machine = Engine(broken, Codec(), broken, parts_of(hashed(5)))
    with pytest.raises(ModelError, match="is not a number here; try dtype float32"):
        machine.generate([1, 2], method, sampling=sampling)


@pytest.mark.parametrize("size", [10, 70_000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_one_spoilt_row_is_enough(size: int, dtype: torch.dtype) -> None:
    """Small and large logits are searched by different libraries; both must notice."""
    logits = torch.zeros(3, size, dtype=dtype)
    assert likeliest(logits) == [0, 0, 0]
    logits[1, size // 2] = torch.nan
    with pytest.raises(ModelError):
        likeliest(logits)


def test_alternatives_at_a_tie_are_the_lowest_ids() -> None:
    """`topk` picks among equals as it likes: the record would contradict the choice that was made."""
    row = torch.full((1, 1000), 0.0005)
    row[0, 700] = 0.5
    top = detail(Builder(0).draft(), Verdict((0,), (700,), (700,)), Outlook(row.log()))["top"][0]
    assert [token for token, _ in top] == [700, 0, 1, 2, 3]


def test_a_text_that_outgrows_its_rotation_is_read_anew_once() -> None:
    """A cache with keys of two rotations belongs to no text; `generate` of transformers reads anew as well."""
    machine = Engine(decoder_of(tiny("longrope")), Codec())
    steps = list(machine.decode([5] * 28, "jacobi", max_new_tokens=20, end_tokens=()))
    again = [step for step in steps[1:] if step.pending]
    assert len(again) == 1 and again[0].start == 33 and again[0].pending == 32
