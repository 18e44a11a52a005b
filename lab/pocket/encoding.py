"""Encodes conversations of the family's language as rows of token ids, of which only the answers are learnt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..training.batches import TrainingRow
from .language.sample import Sample
from .tokenizer import ASSISTANT, END, PAD, START, SYSTEM, USER

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class SampleEncoder:
    """Encodes conversations in the form of the chat template, many at a time.

    It gives the rows that `ChatEncoder` would, and is fast enough for training on fresh conversations in every step:
    a role is one token of this tokenizer, so that texts are encoded alone and no template is rendered.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self._encode = tokenizer.backend_tokenizer.encode_batch
        ids = tokenizer.convert_tokens_to_ids
        self._start, self._end, self.pad = ids(START), ids(END), ids(PAD)
        self._system, self._user, self._assistant = ids(SYSTEM), ids(USER), ids(ASSISTANT)

    def rows(self, samples: Sequence[Sample]) -> list[TrainingRow]:
        """Make a row of every sample."""
        texts = [text for sample in samples for text in _texts(sample)]
        encoded = iter(self._encode(texts, add_special_tokens=False))
        return [self._row(sample, (next(encoded).ids for _ in _texts(sample))) for sample in samples]

    def _row(self, sample: Sample, pieces: Iterator[list[int]]) -> TrainingRow:
        row = TrainingRow([self._start], [False])
        if sample.system:
            self._add(row, self._system, next(pieces), learnt=False)
        for _ in sample.turns:
            self._add(row, self._user, next(pieces), learnt=False)
            self._add(row, self._assistant, [*next(pieces), self._end], learnt=True)
        return row

    @staticmethod
    def _add(row: TrainingRow, role: int, ids: list[int], *, learnt: bool) -> None:
        row.ids.extend((role, *ids))
        row.learnt.extend((False, *(learnt for _ in ids)))


def _texts(sample: Sample) -> list[str]:
    texts = [sample.system] if sample.system else []
    for turn in sample.turns:
        texts.extend((turn.prompt, turn.answer))
    return texts
