"""Conversations from lines of JSON: what is read, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from decoding.errors import ParamError
from lab.training.conversations import Conversation, read_conversations, split, write_line

from .conftest import counting


def quiet(what: str, share: float) -> None:
    """Ignore all progress."""


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
