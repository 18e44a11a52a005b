"""From lines of JSON to batches: what is read, what is refused, what is learnt, and what sees what."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

from decoding.codec import Codec
from decoding.errors import ModelError, ParamError
from lab.pocket.batches import Row
from lab.pocket.tokenizer import ASSISTANT, END, USER
from lab.training.backbone import Backbone
from lab.training.conversations import Conversation, read_conversations, split, write_line
from lab.training.rows import IGNORED, Batch, Writer, pack
from lab.training.sources import FileSource, Generated, language_prompts

from .conftest import CHATS, LENGTH, counting

FAMILIES = ["llama", "mistral", "qwen2-mixed", "qwen3", "phi3"]


def quiet(what: str, share: float) -> None:
    """Hears nothing."""


def read(tmp_path: Path, *lines: object) -> list[Conversation]:
    path = tmp_path / "data.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return read_conversations(path, quiet)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ({"prompt": "a"}, Conversation(("a",))),
        ({"prompt": "a", "completion": "b"}, Conversation(("a",), ("b",))),
        ({"prompt": "a", "answer": None, "response": "c"}, Conversation(("a",), ("c",))),
        ({"text": "all of it"}, Conversation(text="all of it")),
        ({"turns": ["a", "b"]}, Conversation(("a", "b"))),
        ({"turns": ["a", "b"], "reference": ["x", "y"]}, Conversation(("a", "b"), ("x", "y"))),
        ({"turns": ["a", "b"], "reference": ["x"]}, Conversation(("a", "b"))),
        (
            {"messages": [{"role": r, "content": r} for r in ("system", "user", "assistant")]},
            Conversation(("user",), ("assistant",), "system"),
        ),
        (
            {"conversations": [{"from": f, "value": f} for f in ("gpt", "human", "gpt", "human")]},
            Conversation(("human", "human"), ("gpt",)),
        ),
        ({"prompt": "\ud800"}, Conversation(("?",))),
    ],
)
def test_every_common_form_is_read(tmp_path: Path, line: object, wanted: Conversation) -> None:
    assert read(tmp_path, "", line, "  ") == [wanted]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON at character"),
        ("[1]", "must be a JSON object"),
        ("[" * 200_000, "not JSON"),
        ("1" * 5000, "not JSON"),
        ({"question": "a"}, "holds none of"),
        ({"prompt": ""}, "a prompt is empty"),
        ({"prompt": ["a"]}, "prompt must be a text"),
        ({"prompt": "a", "answer": 7}, "answer must be a text"),
        ({"prompt": "a", "output": " "}, "an answer is empty"),
        ({"text": ""}, "a text is empty"),
        ({"turns": "a"}, "lists of texts"),
        ({"turns": []}, "holds no prompt"),
        ({"messages": "a"}, "list of messages"),
        ({"messages": []}, "holds no prompt"),
        ({"messages": [{"role": r, "content": "a"} for r in ("user", "user", "assistant")]}, "assistant in turns"),
        ({"messages": [{"role": r, "content": "a"} for r in ("user", "system")]}, "user and assistant in turns"),
        ({"messages": [{"role": "tool", "content": "a"}]}, "user and assistant in turns"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "content of a message .* must be a text"),
        ({"messages": [{"role": "user"}]}, "content of a message .* must be a text"),
    ],
)
def test_a_line_that_is_no_conversation_is_named(tmp_path: Path, line: object, reason: str) -> None:
    with pytest.raises(ParamError, match=rf"data\.jsonl, line 2: .*{reason}.*\(and 1 more such lines\)"):
        read(tmp_path, {"prompt": "fine"}, line, {"prompt": "fine"}, line)


def test_files_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ParamError, match="cannot read"):
        read_conversations(tmp_path / "missing", quiet)
    with pytest.raises(ParamError, match="cannot read"):
        read_conversations(tmp_path / "a\0b", quiet)
    with pytest.raises(ParamError, match="holds no conversations"):
        read(tmp_path, "")
    (tmp_path / "bytes").write_bytes(b'{"prompt": "\xff"}\n')
    with pytest.raises(ParamError, match="UTF-8"):
        read_conversations(tmp_path / "bytes", quiet)


def test_a_line_that_was_written_is_read_again(tmp_path: Path) -> None:
    for chat in (counting(3, turns=2, system="be kind"), counting(1)):
        assert read(tmp_path, write_line(chat, 7)) == [chat]


def test_conversations_that_begin_alike_stay_on_one_side() -> None:
    chats = [Conversation((str(n // 3),), ("x",)) for n in range(300)]
    learnt, measured = split(chats)
    assert len(learnt) + len(measured) == 300 and len(measured) == 15
    assert not {one.prompts for one in learnt} & {one.prompts for one in measured}
    with pytest.raises(ParamError, match="the least to learn from"):
        split(chats[:3])


def decoded(codec: Codec, row: Row) -> str:
    return codec.tokenizer.decode([token for token, wanted in zip(row.ids, row.learnt, strict=True) if wanted])


def test_a_row_is_what_the_template_writes_and_only_answers_and_their_ends_are_learnt(codec: Codec) -> None:
    chat = counting(3, turns=2, system="be kind")
    (row,) = Writer(codec, 500).rows(chat)
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
    (row,) = Writer(with_template(codec, _TRAILING), 500).rows(chat)
    assert decoded(codec, row) == f"{chat.answers[0]}{END}{chat.answers[1]}{END}"
    assert codec.tokenizer.decode(row.ids).endswith(f"{END}\n")


def test_where_a_template_rewrites_earlier_turns_every_answer_gets_a_row_of_its_own(codec: Codec) -> None:
    chat = counting(3, turns=2)
    first, second = Writer(with_template(codec, _FORGETFUL), 500).rows(chat)
    assert codec.tokenizer.decode(first.ids) == f"{USER}count 3{ASSISTANT}{chat.answers[0]}{END}"
    assert decoded(codec, second) == f"{chat.answers[1]}{END}"
    assert codec.tokenizer.decode(second.ids).startswith(f"{USER}count 3{ASSISTANT}{chat.answers[0]}(done){USER}")


def test_a_model_without_a_template_learns_texts_and_single_questions(codec: Codec) -> None:
    writer = Writer(with_template(codec, None), 40)
    chat = counting(3)
    (row,) = writer.rows(chat)
    assert row.ids == codec.tokenizer.encode("count 3") + codec.tokenizer.encode(
        chat.answers[0], add_special_tokens=False
    ) + [2]
    assert decoded(codec, row) == f"{chat.answers[0]}{END}"
    with pytest.raises(ParamError, match="no chat template"):
        writer.rows(counting(3, turns=2))
    pieces = writer.rows(Conversation(text="count " * 60))
    assert len(pieces) > 1 and all(row.learnt == [place > 0 for place in range(len(row.ids))] for row in pieces)
    assert [token for row in pieces for token in row.ids] == codec.encode("count " * 60)


def test_rows_are_cut_and_those_that_teach_nothing_are_left_out(codec: Codec) -> None:
    (row,) = Writer(codec, 500).rows(counting(3))
    begin = row.learnt.index(True)
    (cut,) = Writer(codec, begin + 2).rows(counting(3))
    assert cut.ids == row.ids[: begin + 2] and sum(cut.learnt) == 2
    assert Writer(codec, begin).rows(counting(3)) == []
    assert Writer(codec, 500).rows(Conversation(("only asked",))) == []
    refusing = with_template(codec, "{{ raise_exception('no chats today') }}")
    with pytest.raises(ParamError, match="no chats today"):
        Writer(refusing, 500).rows(counting(3))


def rows_of(batch: Batch) -> list[tuple[list[int], list[bool]]]:
    """The rows of a batch, padding too."""
    found = []
    for ids, positions, learnt in zip(batch.ids, batch.positions, batch.learnt, strict=True):
        begins = [*(positions == 0).nonzero().flatten().tolist(), len(ids)]
        found += [(ids[a:b].tolist(), learnt[a:b].tolist()) for a, b in pairwise(begins)]
    return found


def test_packing_keeps_every_row_whole(codec: Codec) -> None:
    rng = Random(4)
    sizes = [rng.randint(1, 20) for _ in range(200)]
    rows = [Row([n] * size, [place > 0 for place in range(size)]) for n, size in enumerate(sizes, start=1)]
    batch = pack(iter(rows), 32, 0)
    found = [ids for ids, _ in rows_of(batch) if ids[0] != 0]
    assert sorted(found) == sorted(row.ids for row in rows)
    assert len(batch.ids) <= 1.15 * sum(len(row.ids) for row in rows) / 32


def brute_labels(batch: Batch, distances: int, shift: int = 0) -> list[tuple[int, list[int]]]:
    """Written out place by place: flat place, and the tokens behind it as long as the answer goes on."""
    found = []
    for line in range(len(batch.ids)):
        ids, learnt = batch.ids[line].tolist(), batch.learnt[line].tolist()
        for t in range(len(ids)):
            wanted: list[int] = []
            for d in range(1 + shift, distances + 1 + shift):
                going_on = t + d < len(ids) and all(learnt[t + 1 : t + d + 1])
                wanted.append(ids[t + d] if going_on else IGNORED)
            if t + 1 < len(ids) and learnt[t + 1]:
                found.append((line * len(ids) + t, wanted))
    return found


def test_labels_are_the_next_tokens_of_the_same_answer(batch: Batch) -> None:
    places, labels = batch.labels(4)
    found = list(zip(places.tolist(), labels.tolist(), strict=True))
    assert found == brute_labels(batch, 4)
    assert found != brute_labels(batch, 4, shift=1), "the control: a wrong shift is told apart"
    assert any(IGNORED in wanted for _, wanted in found) and any(IGNORED not in wanted for _, wanted in found)
    assert batch.counts(4).tolist() == [sum(w[d] != IGNORED for _, w in found) for d in range(4)]
    for place, wanted in zip(places.tolist(), labels.tolist(), strict=True):
        for ahead in range(1, 4):  # what `labels` says of the places behind
            if wanted[ahead] != IGNORED:
                at = places.tolist().index(place) + ahead
                assert places[at] == place + ahead and labels[at, 0] == wanted[ahead]


def test_parts_of_a_batch_are_the_batch(batch: Batch) -> None:
    parts = list(batch.parts(2))
    assert torch.equal(torch.cat([part.ids for part in parts]), batch.ids)
    assert sum(len(part.labels(3)[0]) for part in parts) == len(batch.labels(3)[0])


@pytest.mark.parametrize("family", FAMILIES)
def test_packed_rows_do_not_see_each_other(backbone: Callable[..., Backbone], batch: Batch, family: str) -> None:
    """The same hidden states, alone and packed, in every family; the mask for adapters says the same."""
    model = backbone(family)
    two = next(batch.parts(2))
    packed = model.read(two).final
    seen = two.visible()
    for line in range(2):
        begins = [*(two.positions[line] == 0).nonzero().flatten().tolist(), LENGTH]
        assert len(begins) > 2
        for begin, end in pairwise(begins):
            size = end - begin
            alone = Batch(two.ids[line : line + 1, begin:end], torch.arange(size)[None], torch.zeros(1, size) > 0)
            assert torch.allclose(packed[line, begin:end], model.read(alone).final[0], atol=1e-4)
            assert torch.equal(seen[line, begin:end, begin:end], torch.ones(size, size).tril() > 0)
            assert not seen[line, begin:end, :begin].any() and not seen[line, begin:end, end:].any()
    assert two.visible(3).sum(-1).max() == 3


def source(codec: Codec, seed: int = 1, lines: int = 2, vocabulary: int = 300) -> FileSource:
    chats = [counting(n % 10, turns=1 + n % 3, system=str(n)) for n in range(40)]
    writer = Writer(codec, LENGTH)
    return FileSource(chats, writer, codec.tokenizer, vocabulary, lines=lines, length=LENGTH, seed=seed, tell=quiet)


def test_an_epoch_shows_every_line_once_in_an_order_of_the_seed(codec: Codec) -> None:
    one, again, other = source(codec), source(codec), source(codec, seed=2)
    steps = one.steps(1.0)
    drawn = [one.draw(step) for step in range(steps)]
    lines = [tuple(line) for batch in drawn for line in batch.ids.tolist()]
    assert len(set(lines)) >= len(lines) - 1, "at most one line of the next epoch fills the last batch"
    assert all(torch.equal(again.draw(step).ids, drawn[step].ids) for step in reversed(range(steps)))
    assert [other.draw(step).ids.tolist() for step in range(steps)] != [batch.ids.tolist() for batch in drawn]
    assert one.about == again.about and drawn[0].ids.dtype == torch.long
    assert {tuple(line) for batch in one.held_out for line in batch.ids.tolist()}.isdisjoint(lines)


def test_data_that_teaches_nothing_and_foreign_tokenizers_are_refused(codec: Codec) -> None:
    asked = [Conversation((f"count {n}",)) for n in range(9)]
    with pytest.raises(ParamError, match="hold no answers.*--self-distill"):
        FileSource(asked, Writer(codec, 40), codec.tokenizer, 300, lines=1, length=40, seed=1, tell=quiet)
    silent = with_template(codec, None)
    twice = [counting(n, turns=2) for n in range(9)]
    with pytest.raises(ParamError, match=r"no chat template.*\(it begins 'count \d'\)"):
        FileSource(twice, Writer(silent, 40), codec.tokenizer, 300, lines=1, length=40, seed=1, tell=quiet)
    with pytest.raises(ModelError, match="do not belong together"):
        source(codec, vocabulary=20)


def test_the_language_is_drawn_by_seed_and_step(codec: Codec) -> None:
    one, again = (Generated(codec.tokenizer, 300, lines=2, length=700, seed=3) for _ in range(2))
    batch = one.draw(5)
    assert torch.equal(batch.ids, again.draw(5).ids) and not torch.equal(batch.ids, one.draw(6).ids)
    assert batch.learnt.any() and not batch.learnt[batch.positions == 0].any()
    assert one.held_out and one.held_out[0].learnt.any()
    assert language_prompts(3, 1) == language_prompts(3, 1) != language_prompts(3, 2)
    foreign: Any = type("Tokenizer", (), {"get_vocab": lambda self: {}})()
    with pytest.raises(ParamError, match="only a model of the embedded family"):
        Generated(foreign, 300, lines=1, length=700, seed=3)


def test_chats_of_the_fixture_fill_several_lines(batch: Batch) -> None:
    """What the other tests rest on."""
    assert len(CHATS) > len(batch.ids) > 2
