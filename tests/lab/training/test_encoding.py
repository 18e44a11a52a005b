"""Conversations as rows of ids: what is learnt of them."""

from __future__ import annotations

from typing import Any

import pytest

from decoding.codec import Codec
from decoding.errors import ParamError
from lab.pocket.tokenizer import ASSISTANT, END, USER
from lab.training.batches import TrainingRow
from lab.training.conversations import Conversation
from lab.training.encoding import ChatEncoder

from .conftest import counting


def decoded(codec: Codec, row: TrainingRow) -> str:
    return codec.tokenizer.decode([token for token, wanted in zip(row.ids, row.learnt, strict=True) if wanted])


def test_a_row_is_what_the_template_writes_and_only_answers_and_their_ends_are_learnt(codec: Codec) -> None:
    chat = counting(3, turns=2, system="be kind")
    (row,) = ChatEncoder(codec, 500).rows(chat)
    messages = [*chat.messages(1), {"role": "assistant", "content": chat.answers[1]}]
    assert row.ids == codec.tokenizer.apply_chat_template(messages, return_dict=False)
    assert decoded(codec, row) == f"{chat.answers[0]}{END}{chat.answers[1]}{END}"


def with_template(codec: Codec, template: str | None) -> Codec:
    from copy import deepcopy

    tokenizer: Any = deepcopy(codec.tokenizer)
    tokenizer.chat_template = template
    return Codec(tokenizer, codec.end_tokens)


_MARKED = "{% for m in messages %}{{ '<|user|>' if m.role == 'user' else '<|assistant|>' }}{{ m.content }}"
_TRAILING = _MARKED + "{{ '</s>\n' if m.role != 'user' }}{% endfor %}{{ '<|assistant|>' if add_generation_prompt }}"
_FORGETFUL = (
    _MARKED + "{{ '' if m.role == 'user' else '</s>' if loop.last else '(done)' }}{% endfor %}"
    "{{ '<|assistant|>' if add_generation_prompt }}"
)


def test_what_a_template_writes_behind_the_end_is_not_learnt(codec: Codec) -> None:
    chat = counting(3, turns=2)
    (row,) = ChatEncoder(with_template(codec, _TRAILING), 500).rows(chat)
    assert decoded(codec, row) == f"{chat.answers[0]}{END}{chat.answers[1]}{END}"
    assert codec.tokenizer.decode(row.ids).endswith(f"{END}\n")


def test_where_a_template_rewrites_earlier_turns_every_answer_gets_a_row_of_its_own(codec: Codec) -> None:
    chat = counting(3, turns=2)
    first, second = ChatEncoder(with_template(codec, _FORGETFUL), 500).rows(chat)
    assert codec.tokenizer.decode(first.ids) == f"{USER}count 3{ASSISTANT}{chat.answers[0]}{END}"
    assert decoded(codec, second) == f"{chat.answers[1]}{END}"
    assert codec.tokenizer.decode(second.ids).startswith(f"{USER}count 3{ASSISTANT}{chat.answers[0]}(done){USER}")


def test_a_model_without_a_template_learns_texts_and_single_questions(codec: Codec) -> None:
    encoder = ChatEncoder(with_template(codec, None), 40)
    chat = counting(3)
    (row,) = encoder.rows(chat)
    assert row.ids == codec.tokenizer.encode("count 3") + codec.tokenizer.encode(
        chat.answers[0], add_special_tokens=False
    ) + [2]
    assert decoded(codec, row) == f"{chat.answers[0]}{END}"
    with pytest.raises(ParamError, match="no chat template"):
        encoder.rows(counting(3, turns=2))
    pieces = encoder.rows(Conversation(text="count " * 60))
    assert len(pieces) > 1 and all(row.learnt == [place > 0 for place in range(len(row.ids))] for row in pieces)
    assert [token for row in pieces for token in row.ids] == codec.encode("count " * 60)


def test_rows_are_cut_and_those_that_teach_nothing_are_left_out(codec: Codec) -> None:
    (row,) = ChatEncoder(codec, 500).rows(counting(3))
    begin = row.learnt.index(True)
    (cut,) = ChatEncoder(codec, begin + 2).rows(counting(3))
    assert cut.ids == row.ids[: begin + 2] and sum(cut.learnt) == 2
    assert ChatEncoder(codec, begin).rows(counting(3)) == []
    assert ChatEncoder(codec, 500).rows(Conversation(("only asked",))) == []
    refusing = with_template(codec, "{{ raise_exception('no chats today') }}")
    with pytest.raises(ParamError, match="no chats today"):
        ChatEncoder(refusing, 500).rows(counting(3))
