"""Reads conversations to learn from, from a file of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from analysis.prompts.conversations import FORMS, read_line
from decoding.errors import ParamError
from decoding.model.session import ProgressCallback

_LONGEST_LINE = 8 * 2**20  # bytes
_MOST_BYTES = 8 * 2**30


@dataclass(frozen=True, slots=True)
class Conversation:
    """A user's turns, and the answers if there are any; or a plain text, which is learnt whole."""

    prompts: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    system: str = ""
    text: str = ""

    def messages(self, turn: int, answers: Sequence[str] | None = None) -> list[dict[str, str]]:
        """Return the chat up to the prompt of that turn, which is to be answered next; `answers` replace its own."""
        given = self.answers if answers is None else answers
        chat = [{"role": "system", "content": self.system}] if self.system else []
        for index, prompt in enumerate(self.prompts[: turn + 1]):
            chat.append({"role": "user", "content": prompt})
            if index < turn:
                chat.append({"role": "assistant", "content": given[index]})
        return chat


def read_conversations(path: str | Path, progress: ProgressCallback) -> list[Conversation]:
    """Read all conversations of a file of JSON lines; ParamError names the first line that is none, and counts the
    rest.
    """
    conversations: list[Conversation] = []
    bad: list[str] = []
    for number, line, share in _lines(Path(path)):
        if number % 500 == 1:
            progress("reading conversations", share)
        if line.strip():
            try:
                conversations.append(_conversation(line))
            except ParamError as error:
                bad.append(f"line {number}: {error}")
    if bad:
        others = f" (and {len(bad) - 1} more such lines)" if len(bad) > 1 else ""
        raise ParamError(f"{path}, {bad[0]}{others}")
    if not conversations:
        raise ParamError(f"{path} holds no conversations: write one JSON object a line, with {FORMS}")
    return conversations


def split(conversations: Sequence[Conversation]) -> tuple[list[Conversation], list[Conversation]]:
    """Split off about a twentieth, at most 200, to measure with.

    A checksum of the first words decides, so that conversations which begin alike stay on one side.
    """
    begins = [crc32((one.text or one.prompts[0]).encode()) for one in conversations]
    order = sorted(set(begins))
    if len(order) < 2:
        raise ParamError("two conversations with different first prompts are the least to learn from: add some")
    held_out = set(order[: min(200, max(1, len(order) // 20))])
    learnt = [one for one, begin in zip(conversations, begins, strict=True) if begin not in held_out]
    return learnt, [one for one, begin in zip(conversations, begins, strict=True) if begin in held_out]


def write_line(conversation: Conversation, index: int) -> str:
    """Write a line that `read_conversations` reads; `index` is the number of the conversation in the source."""
    messages = conversation.messages(len(conversation.answers) - 1)
    messages.append({"role": "assistant", "content": conversation.answers[-1]})
    return json.dumps({"index": index, "messages": messages}) + "\n"


def _lines(path: Path) -> Iterator[tuple[int, bytes, float]]:
    """Yield the lines with their numbers, and the share of the file that is read with each."""
    try:
        size = path.stat().st_size
        if size > _MOST_BYTES:
            raise ParamError(f"{path} is larger than {_MOST_BYTES // 2**30} GB: split the file")
        with path.open("rb") as file:
            number, read = 0, 0
            while line := file.readline(_LONGEST_LINE + 1):
                number, read = number + 1, read + len(line)
                if len(line) > _LONGEST_LINE:
                    raise ParamError(f"{path}, line {number}: is longer than {_LONGEST_LINE // 2**20} MB: split it")
                yield number, line, read / max(1, size)
    except (OSError, ValueError) as error:
        if isinstance(error, ParamError):
            raise
        reason = error.strerror if isinstance(error, OSError) else error
        raise ParamError(f"cannot read {path}: {reason}") from None


def _conversation(line: bytes) -> Conversation:
    """Read one line, stricter than `read_line`: an answer is learnt as the assistant's to what the user asked."""
    conversation = read_line(line)
    if isinstance(conversation, str):
        return Conversation(text=_filled("a text", conversation))
    system = conversation.pop(0)["content"] if conversation and conversation[0]["role"] == "system" else ""
    if (
        conversation and conversation[0]["role"] == "assistant"
    ):  # some collections cut long conversations, not all at a question
        del conversation[0]
    roles = [message["role"] for message in conversation]
    prompts_alone = set(roles) == {"user"}  # whose answers are still to come
    if not prompts_alone and any(role != ("user", "assistant")[place % 2] for place, role in enumerate(roles)):
        raise ParamError("the messages must be an optional system message, then user and assistant in turns")
    if not roles:
        raise ParamError("holds no prompt of a user")
    return Conversation(
        tuple(_filled("a prompt", message["content"]) for message in conversation if message["role"] == "user"),
        tuple(_filled("an answer", message["content"]) for message in conversation if message["role"] == "assistant"),
        system,
    )


def _filled(what: str, text: str) -> str:
    if not text.strip():
        raise ParamError(f"{what} is empty: leave its line out")
    return text
