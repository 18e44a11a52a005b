"""Encodes conversations as rows of token ids, with the model's own chat template."""

from __future__ import annotations

from collections.abc import Sequence

from decoding.codec import Codec
from decoding.errors import ParamError

from .batches import TrainingRow
from .conversations import Conversation


class ChatEncoder:
    """Encodes conversations as rows. Only what the assistant writes is learnt: its answers, and their end."""

    def __init__(self, codec: Codec, length: int) -> None:
        self._codec, self._tokenizer, self._length = codec, codec.tokenizer, length
        self.has_template = bool(self._tokenizer.chat_template)

    def rows(self, conversation: Conversation) -> list[TrainingRow]:
        """Return the rows of one conversation that teach something, cut at the length."""
        if conversation.text:
            rows = self._pieces(self._codec.encode(conversation.text))
        else:
            whole = self._whole(conversation) if self.has_template and self._tokenizer.is_fast else None
            turns = range(len(conversation.answers)) if whole is None else ()
            rows = [self._alone(conversation, turn) for turn in turns] if whole is None else [whole]
        cut = [TrainingRow(row.ids[: self._length], row.learnt[: self._length]) for row in rows]
        return [row for row in cut if any(row.learnt)]

    def prompt(self, conversation: Conversation, turn: int, answers: Sequence[str] | None = None) -> list[int]:
        """Return what precedes the answer of that turn, given earlier answers."""
        if self.has_template:
            return self._codec.encode_chat(conversation.messages(turn, answers))
        if turn > 0 or conversation.system:
            raise ParamError(
                "this model has no chat template: give conversations of one turn without a system message, or texts"
            )
        return self._codec.encode(conversation.prompts[0])

    def _pieces(self, ids: list[int]) -> list[TrainingRow]:
        """Encode a text without roles: all of it is learnt but the first token, which has no context."""
        parts = [ids[begin : begin + self._length] for begin in range(0, len(ids), self._length)]
        return [TrainingRow(part, [place > 0 for place in range(len(part))]) for part in parts]

    def _whole(self, conversation: Conversation) -> TrainingRow | None:
        """Make one row with all answers; None if the template rewrites earlier turns when later ones follow."""
        answers = conversation.answers
        text = self._answered(conversation, len(answers) - 1) if answers else ""
        spans = []
        for turn in range(len(answers)):
            before = self._codec.render(conversation.messages(turn))
            answered = self._answered(conversation, turn)
            if not (text.startswith(answered) and answered.startswith(before)):
                return None
            spans.append((len(before), len(answered)))
        encoded = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        learnt = [False] * len(encoded["input_ids"])
        for begin, end in spans:
            for place, (first, _) in enumerate(encoded["offset_mapping"]):
                if begin <= first < end and place > 0:
                    learnt[place] = True
                    if encoded["input_ids"][place] in self._codec.end_tokens:
                        break  # generation stops here, whatever the template writes after it
        return TrainingRow(encoded["input_ids"], learnt)

    def _alone(self, conversation: Conversation, turn: int) -> TrainingRow:
        """Make a row of one turn's answer after its prompt, just as it would be generated."""
        prompt = self.prompt(conversation, turn)
        answer = self._tokenizer.encode(conversation.answers[turn], add_special_tokens=False)
        end = self._tokenizer.eos_token_id
        ends = self._codec.end_tokens
        answer += [end] if end in ends else sorted(ends)[:1]
        first = max(1, len(prompt))  # a row's first token has no context
        return TrainingRow(prompt + answer, [place >= first for place in range(len(prompt) + len(answer))])

    def _answered(self, conversation: Conversation, turn: int) -> str:
        answer = {"role": "assistant", "content": conversation.answers[turn]}
        return self._codec.render([*conversation.messages(turn), answer], answer_next=False)
