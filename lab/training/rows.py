"""Conversations as rows of token ids through the model's own chat template, and rows packed into batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from decoding.codec import Codec
from decoding.errors import ParamError

from ..pocket import batches
from ..pocket.batches import Row
from .conversations import Conversation

IGNORED = -100  # a label that nothing is learnt from
_OPEN = 64  # lines that still take rows while a file is packed


class Writer:
    """Makes rows of conversations. Only what the assistant writes is learnt: its answers, and their end."""

    def __init__(self, codec: Codec, length: int) -> None:
        self._codec, self._tokenizer, self._length = codec, codec.tokenizer, length
        self.has_template = bool(self._tokenizer.chat_template)

    def rows(self, conversation: Conversation) -> list[Row]:
        """The rows of one conversation that teach something, cut at the length."""
        if conversation.text:
            found = self._pieces(self._codec.encode(conversation.text))
        else:
            whole = self._whole(conversation) if self.has_template and self._tokenizer.is_fast else None
            turns = range(len(conversation.answers)) if whole is None else ()
            found = [self._alone(conversation, turn) for turn in turns] if whole is None else [whole]
        cut = [Row(row.ids[: self._length], row.learnt[: self._length]) for row in found]
        return [row for row in cut if any(row.learnt)]

    def prompt(self, conversation: Conversation, turn: int, answers: Sequence[str] | None = None) -> list[int]:
        """What stands in front of the answer of that turn, given earlier answers."""
        if self.has_template:
            return self._codec.encode_chat(conversation.messages(turn, answers))
        if turn > 0 or conversation.system:
            raise ParamError(
                "this model has no chat template: give conversations of one turn without a system message, or texts"
            )
        return self._codec.encode(conversation.prompts[0])

    def _pieces(self, ids: list[int]) -> list[Row]:
        """A text without roles: all of it is learnt but the token that nothing stands in front of."""
        parts = [ids[begin : begin + self._length] for begin in range(0, len(ids), self._length)]
        return [Row(part, [place > 0 for place in range(len(part))]) for part in parts]

    def _whole(self, conversation: Conversation) -> Row | None:
        """One row with all answers; None where the template writes earlier turns anew when later ones come."""
        answers = conversation.answers
        text = self._answered(conversation, len(answers) - 1) if answers else ""
        spans = []
        for turn in range(len(answers)):
            before = self._render(conversation.messages(turn), answer_next=True)
            behind = self._answered(conversation, turn)
            if not (text.startswith(behind) and behind.startswith(before)):
                return None
            spans.append((len(before), len(behind)))
        encoded = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        learnt = [False] * len(encoded["input_ids"])
        for begin, end in spans:
            for place, (first, _) in enumerate(encoded["offset_mapping"]):
                if begin <= first < end and place > 0:
                    learnt[place] = True
                    if encoded["input_ids"][place] in self._codec.end_tokens:
                        break  # generation stops here, whatever the template writes behind it
        return Row(encoded["input_ids"], learnt)

    def _alone(self, conversation: Conversation, turn: int) -> Row:
        """One turn's answer behind its prompt, just as it would be generated."""
        prompt = self.prompt(conversation, turn)
        answer = self._tokenizer.encode(conversation.answers[turn], add_special_tokens=False)
        own = self._tokenizer.eos_token_id
        ends = self._codec.end_tokens
        answer += [own] if own in ends else sorted(ends)[:1]
        first = max(1, len(prompt))  # a row's first token stands behind nothing
        return Row(prompt + answer, [place >= first for place in range(len(prompt) + len(answer))])

    def _answered(self, conversation: Conversation, turn: int) -> str:
        answer = {"role": "assistant", "content": conversation.answers[turn]}
        return self._render([*conversation.messages(turn), answer], answer_next=False)

    def _render(self, chat: list[dict[str, str]], *, answer_next: bool) -> str:
        try:
            text: str = self._tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=answer_next)
        except Exception as error:  # a template is a program of the model's author: it may raise anything
            reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            raise ParamError(f"the model's chat template refuses a conversation: {reason}") from None
        return text


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines of whole rows that do not see each other."""

    ids: Tensor  # (lines, length)
    positions: Tensor  # of the same shape, from 0 again at every row
    learnt: Tensor  # of the same shape: tokens that an answer wrote; never the first of a row

    def to(self, device: torch.device) -> Batch:
        """The batch on that device."""
        return Batch(*(tensor.to(device, non_blocking=True) for tensor in (self.ids, self.positions, self.learnt)))

    def parts(self, lines: int) -> Iterator[Batch]:
        """The batch in pieces of at most that many lines."""
        for begin in range(0, len(self.ids), lines):
            stop = begin + lines
            yield Batch(self.ids[begin:stop], self.positions[begin:stop], self.learnt[begin:stop])

    def labels(self, distances: int) -> tuple[Tensor, Tensor]:  # (N,), (N, distances)
        """The flat places whose next token is learnt, in order, and the tokens 1, 2, ... `distances` behind each.

        A label is IGNORED where the answer has ended before. Answers run without gaps, so the token at distance d
        behind the n-th place is the next token of the (n + d - 1)-th place.
        """
        length = self.ids.shape[1]
        ids, learnt = (functional.pad(tensor, (0, distances)) for tensor in (self.ids, self.learnt))
        inside, columns = torch.ones_like(self.learnt), []
        for distance in range(1, distances + 1):
            inside = inside & learnt[:, distance : distance + length]
            columns.append(ids[:, distance : distance + length].masked_fill(~inside, IGNORED))
        labels = torch.stack(columns, -1).flatten(0, 1)
        places = (labels[:, 0] != IGNORED).nonzero().flatten()
        return places, labels[places]

    def counts(self, distances: int) -> Tensor:  # (distances,)
        """Labels at every distance."""
        return (self.labels(distances)[1] != IGNORED).sum(0)

    def visible(self, window: int = 0) -> Tensor:  # (lines, length, length)
        """Which tokens see which: those of the same row behind them, and no further than a window if there is one."""
        row = (self.positions == 0).cumsum(1)
        apart = self.positions[:, :, None] - self.positions[:, None, :]
        seen = (row[:, :, None] == row[:, None, :]) & (apart >= 0)
        return seen & (apart < window) if window else seen


def smaller(batches: Iterable[Batch], lines: int) -> list[Batch]:
    """The same lines, at most so many of them in a batch."""
    return [part for batch in batches for part in batch.parts(lines)]


def from_generator(batch: batches.Batch) -> Batch:
    """A batch of the embedded family's language."""
    learnt = torch.zeros(batch.ids.numel(), dtype=torch.bool)
    learnt[batch.asked + 1] = True
    return Batch(batch.ids, batch.positions, learnt.view_as(batch.ids))


def pack(rows: Iterable[Row], length: int, pad: int) -> Batch:
    """Rows laid one behind another, each into the first of the open lines that has room for it."""
    lines: list[list[Row]] = []
    rooms: dict[int, int] = {}  # of the open lines
    for row in rows:
        at = next((line for line, room in rooms.items() if room >= len(row.ids)), len(lines))
        if at == len(lines):
            lines.append([])
            rooms[at] = length
        lines[at].append(row)
        rooms[at] -= len(row.ids)
        if rooms[at] == 0 or len(rooms) > _OPEN:
            del rooms[min(rooms, key=lambda line: rooms[line])]
    shape = (len(lines), length)
    ids, positions = torch.full(shape, pad, dtype=torch.int32), torch.zeros(shape, dtype=torch.int32)
    learnt = torch.zeros(shape, dtype=torch.bool)
    for at, line in enumerate(lines):
        begin = 0
        for row in line:
            stop = begin + len(row.ids)
            ids[at, begin:stop] = torch.tensor(row.ids)
            positions[at, begin:stop] = torch.arange(len(row.ids))
            learnt[at, begin:stop] = torch.tensor(row.learnt)
            begin = stop
        positions[at, begin:] = torch.arange(length - begin)
    return Batch(ids, positions, learnt)
