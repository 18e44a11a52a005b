"""What an engine holds: the models, their tokenizer and parts, and what methods learnt in earlier runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .codec import Codec, Prompt
from .errors import ParamError
from .methods import Method, find_method
from .model.session import Model
from .params import check_count
from .parts import Parts
from .session_pool import SessionPool


class Loaded:
    """A model with its tokenizer, a drafter, parts, and what earlier runs learnt."""

    def __init__(self, model: Model, codec: Codec, draft: Model | None = None, parts: Parts | None = None) -> None:
        self.model, self.codec, self.draft = model, codec, draft
        self.parts = parts or Parts()
        self.memory: dict[str, Any] = {}  # what methods learn for later runs, by method
        self.session_pool = SessionPool()

    def encode(self, prompt: Prompt, name: str = "prompt") -> list[int]:
        """Return the token ids of a text, of a chat by the model's template, or of ids, which are checked."""
        if isinstance(prompt, str):
            ids = self.codec.encode(prompt)
        elif isinstance(prompt, bytes | bytearray) or not isinstance(prompt, Sequence):
            raise ParamError(f"the {name} must be a text, a list of messages or a list of token ids")
        elif prompt and isinstance(prompt[0], Mapping):
            ids = self.codec.encode_chat(prompt)  # type: ignore[arg-type]  # it checks every message
        else:
            ids = list(prompt)  # type: ignore[arg-type]  # every id is checked below
        if not ids:
            raise ParamError(f"the {name} is empty: write at least one character, or give one token id")
        for token in ids:
            check_count(f"each token id of the {name}", token, 0, self.model.card.vocabulary - 1)
        return ids

    def lacks(self, method: str | type[Method]) -> str | None:
        """Return what this engine lacks to run a method, and how to get it; None if it can run it."""
        needs = find_method(method).needs
        cannot = next((why for what, why in sorted(self.model.lacks.items()) if what in needs), None)
        return cannot or self.parts.missing(needs, has_draft=self.draft is not None)
