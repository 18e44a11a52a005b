"""Conversations as rows of token ids, of which only the answers are learnt."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .language.sample import Sample
from .tokenizer import ASSISTANT, END, PAD, START, SYSTEM, USER

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

Draw = Callable[[], Sample]


@dataclass(frozen=True, slots=True)
class Row:
    """A conversation's ids, and which of them an answer wrote."""

    ids: list[int]
    learnt: list[bool]


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines of whole conversations: what the model reads, where it is asked, and what it should have said there."""

    ids: Tensor  # (lines, length)
    positions: Tensor  # of the same shape, from 0 again at every conversation: none sees another
    asked: Tensor  # flat places of `ids` whose next token is learnt
    answers: Tensor  # that next token


class Rows:
    """Conversations in the form of the chat template, encoded many at a time."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self._encode = tokenizer.backend_tokenizer.encode_batch
        ids = tokenizer.convert_tokens_to_ids
        self._start, self._end, self.pad = ids(START), ids(END), ids(PAD)
        self._system, self._user, self._assistant = ids(SYSTEM), ids(USER), ids(ASSISTANT)

    def encode(self, samples: Sequence[Sample]) -> list[Row]:
        """A row for every sample."""
        texts = [text for sample in samples for text in _texts(sample)]
        encoded = iter(self._encode(texts, add_special_tokens=False))
        return [self._row(sample, (next(encoded).ids for _ in _texts(sample))) for sample in samples]

    def _row(self, sample: Sample, pieces: Iterator[list[int]]) -> Row:
        row = Row([self._start], [False])
        if sample.system:
            self._add(row, self._system, next(pieces), learnt=False)
        for _ in sample.turns:
            self._add(row, self._user, next(pieces), learnt=False)
            self._add(row, self._assistant, [*next(pieces), self._end], learnt=True)
        return row

    @staticmethod
    def _add(row: Row, role: int, ids: list[int], *, learnt: bool) -> None:
        row.ids.extend((role, *ids))
        row.learnt.extend((False, *(learnt for _ in ids)))


def _texts(sample: Sample) -> list[str]:
    texts = [sample.system] if sample.system else []
    for turn in sample.turns:
        texts.extend((turn.prompt, turn.answer))
    return texts


def pack(rows: Rows, draw: Draw, lines: int, length: int) -> Batch:
    """Drawn conversations laid one behind another into `lines` lines of `length` tokens, the longest first.

    Those for which no line has room any more are passed over; at the end a line is padded.
    """
    drawn: list[Row] = []
    room = lines * length
    while room > 0:
        for row in rows.encode([draw() for _ in range(1 + room // 160)]):
            drawn.append(row)
            room -= len(row.ids)
    packed: list[list[Row]] = [[] for _ in range(lines)]
    rooms = [length] * lines
    for row in sorted(drawn, key=lambda row: -len(row.ids)):
        line = next((line for line in range(lines) if rooms[line] >= len(row.ids)), None)
        if line is not None:
            packed[line].append(row)
            rooms[line] -= len(row.ids)
    if not any(packed):
        raise ValueError(f"no conversation fits into a line of {length} tokens")
    return _batch(packed, length, rows.pad)


def _batch(packed: list[list[Row]], length: int, pad: int) -> Batch:
    ids, positions, learnt = list[list[int]](), list[list[int]](), list[list[bool]]()
    for line in packed:
        gap = length - sum(len(row.ids) for row in line)
        ids.append([token for row in line for token in row.ids] + [pad] * gap)
        learnt.append([answer for row in line for answer in row.learnt] + [False] * gap)
        positions.append([place for row in line for place in range(len(row.ids))] + list(range(gap)))
    tokens = torch.tensor(ids)
    places = torch.tensor(learnt).flatten().nonzero().flatten()  # never the first of a row: that is the start token
    return Batch(tokens, torch.tensor(positions), places - 1, tokens.flatten()[places])
