"""Converts between text and token ids. The engine uses ids only; without a tokenizer, ids are shown as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .errors import ParamError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Message = Mapping[str, str]  # {"role": "system" | "user" | "assistant", "content": "..."}
Prompt = str | Sequence[int] | Sequence[Message]


class Codec:
    """A tokenizer with the operations that the engine needs."""

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase | None = None, end_tokens: Iterable[int] | None = None
    ) -> None:
        self.tokenizer: Any = tokenizer
        self._end_tokens = None if end_tokens is None else frozenset(end_tokens)
        self._pieces = dict[int, str]()  # display texts of tokens, cached since transformers is slow
        self._bytes_of = _byte_letters() if tokenizer is not None and _is_byte_level(tokenizer) else None

    def encode(self, prompt: str) -> list[int]:
        """Return a text's ids, with the special tokens that the model expects around a prompt."""
        if self.tokenizer is None:
            raise ParamError("this model has no tokenizer: give the prompt as token ids")
        return self._ids(prompt)

    def encode_part(self, text: str) -> list[int]:
        """Return the ids of a part of a text, without special tokens around it."""
        if self.tokenizer is None:
            raise ParamError("this model has no tokenizer: give the token's id")
        return self._ids(text, add_special_tokens=False)

    def encode_chat(self, messages: Sequence[Message]) -> list[int]:
        """Return a conversation's ids by the model's template, up to where the assistant's answer begins."""
        if not self.has_chat_template:
            raise ParamError("this model has no chat template: give the prompt as plain text")
        for message in messages:
            fields = [message.get(name) for name in ("role", "content")] if isinstance(message, Mapping) else [None]
            if not all(isinstance(field, str) for field in fields):
                raise ParamError('every message of a chat needs a "role" and a "content", both texts')
        text = self.render([{"role": m["role"], "content": _writable(m["content"])} for m in messages])
        return self._ids(text, add_special_tokens=False)

    def render(self, messages: list[dict[str, str]], *, answer_next: bool = True) -> str:
        """Return a conversation's text by the model's template, up to where the assistant's next answer begins."""
        try:
            text: str = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=answer_next)
        except Exception as error:  # a template is a program of the model's author: it may raise anything
            reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            raise ParamError(f"the model's chat template refuses this conversation: {reason}") from None
        return text

    def _ids(self, text: str, **options: bool) -> list[int]:
        try:
            ids: list[int] = self.tokenizer.encode(_writable(text), **options)
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # raised by compiled code, and not an Exception
                raise
            reason = " ".join(str(error).split())[:100]
            raise ParamError(f"the model's tokenizer fails on this text ({reason})") from None
        return ids

    @property
    def has_chat_template(self) -> bool:
        """Return True if the model has a template for conversations."""
        return self.tokenizer is not None and bool(self.tokenizer.chat_template)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of some tokens, without special ones."""
        if self.tokenizer is None:
            return " ".join(map(str, ids))
        text: str = self.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text

    def continuation(self, before: Sequence[int], ids: Sequence[int]) -> str:
        """Return the text of `ids` after the tokens `before`: decoded alone, `ids` may lose a leading space."""
        if self.tokenizer is None:
            return self.decode(ids)
        head = list(before[-8:])
        lead, whole = self.decode(head), self.decode([*head, *ids])
        return whole[len(lead) :] if whole.startswith(lead) else self.decode(ids)

    def piece(self, token: int) -> str:
        """Return a token's display text: its characters, or its bytes as <0xE2> if they are not whole characters."""
        if self.tokenizer is None:
            return f" {token}"
        if token not in self._pieces:
            raw = self.tokenizer.convert_ids_to_tokens(token)
            if raw is None:
                return f"<{token}>"
            self._pieces[token] = self._spelled(token, raw)
        return self._pieces[token]

    def _spelled(self, token: int, raw: str) -> str:
        if self._bytes_of is None or token in self.tokenizer.all_special_ids or set(raw) - self._bytes_of.keys():
            return str(raw).replace("\N{LOWER ONE EIGHTH BLOCK}", " ")  # SentencePiece's sign for a space
        spelled = bytes(self._bytes_of[letter] for letter in raw)
        try:
            return spelled.decode()
        except UnicodeDecodeError:
            return "".join(f"<0x{byte:02X}>" for byte in spelled)

    @property
    def end_tokens(self) -> frozenset[int]:
        """Return the ids that end a text: the ones passed in, else the tokenizer's."""
        if self._end_tokens is not None:
            return self._end_tokens
        end = getattr(self.tokenizer, "eos_token_id", None)
        return frozenset() if end is None else frozenset((int(end),))


def _writable(text: str) -> str:
    """Make a text valid in UTF-8: lone surrogates, which a browser or a shell may send, become question marks."""
    return text.encode(errors="replace").decode()


def _is_byte_level(tokenizer: Any) -> bool:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    return backend is not None and "ByteLevel" in repr(backend.decoder)


@lru_cache(maxsize=1)
def _byte_letters() -> dict[str, int]:
    """Return the byte of every letter of byte-level tokenizers: Latin-1 if printable, else a letter from 256 up."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {chr(byte): byte for byte in printable}
    return letters | {chr(256 + rank): byte for rank, byte in enumerate(others)}
