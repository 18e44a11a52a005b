"""A language model with no network: the next token depends on the last few tokens through a table.

It is exact and instant, so tests can enumerate its joint distribution, and the first start can show real decoding
without a download. `TableModel` takes any rule; `counted` learns one from a text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from ..errors import ModelError
from ..types import ModelCard
from .cached_session import TappedSession, requested
from .queued_tree import on_host
from .session import Reading

if TYPE_CHECKING:
    from .queued_tree import Parents
    from .upload import Tokens

LogitsRule = Callable[[tuple[int, ...]], torch.Tensor]  # the last `order` tokens -> logits (V,)

_CACHED = 8192  # most rows of logits in the cache, so that an endless run does not fill the memory


class TableModel:
    """A model whose logits come from a rule; the latest rows are cached."""

    def __init__(self, rule: LogitsRule, order: int, vocabulary: int, name: str = "table", context: int = 4096) -> None:
        self.card = ModelCard(name, "table", "0" * 64, 0, vocabulary, context)
        self.device, self.dtype, self.attention = torch.device("cpu"), torch.float64, "table"
        self.devices: tuple[torch.device, ...] = (self.device,)
        self.precision = "float64"
        self.window: int | None = None
        self.rolling: int | None = None
        self.step_rows: int | None = None
        self.lacks: Mapping[str, str] = {}
        self.order = order
        self._rule = rule
        self._cached: dict[tuple[int, ...], torch.Tensor] = {}

    def logits(self, text: Sequence[int]) -> torch.Tensor:  # (V,)
        """Return the logits of the token after `text`."""
        key = tuple(text[-self.order :])
        row = self._cached.get(key)
        if row is None:
            if len(self._cached) == _CACHED:
                del self._cached[next(iter(self._cached))]
            row = self._cached[key] = self._rule(key).to(self.dtype)
        return row

    def open(self, capacity: int, largest_step: int) -> TableSession:
        """Open a session; a table needs no memory beyond the text itself."""
        return TableSession(self, capacity, largest_step)


class TableSession(TappedSession):
    """A text under a table model."""

    def __init__(self, model: TableModel, capacity: int, largest_step: int) -> None:
        super().__init__(capacity, largest_step)
        self._model = model
        self._text: list[int] = []
        self._tokens: Sequence[int] = ()
        self._entered: list[int] = []  # after the text, by `enter`

    @property
    def length(self) -> int:
        """Return the number of stored tokens."""
        return len(self._text)

    def read(self, tokens: Tokens, parents: Parents, skip: int = 0, only: Sequence[int] | None = None) -> Reading:
        """Compute each row's logits from the path between the root and that row."""
        if len(tokens) > self.largest_step or self.length + len(tokens) > self.capacity + self.largest_step:
            raise ModelError(f"{len(tokens)} tokens do not fit behind {self.length}; ask for fewer")
        tree = on_host(parents)
        return self.resume(tokens, tree, 0, self._tails(self._text, [*map(int, tokens)], tree), skip, only)

    def resume(
        self,
        tokens: Tokens,
        parents: tuple[int, ...],
        layer: int,
        hidden: torch.Tensor,
        skip: int = 0,
        only: Sequence[int] | None = None,
    ) -> Reading:
        """Compute each row's logits from its hidden state: for a table, the last few tokens."""
        self._tokens = [*map(int, tokens)]
        self._note([hidden] * len(self._tapped))
        rows = requested(hidden, skip, only)
        tails = [[int(token) for token in tail if token >= 0] for tail in rows.tolist()]
        logits = [self._model.logits(tail) for tail in tails]
        return Reading(torch.stack(logits) if logits else torch.empty(0, self._model.card.vocabulary), rows)

    def enter(
        self, tokens: Tokens, layer: int, ahead: int = 0, parents: tuple[int, ...] | None = None
    ) -> torch.Tensor:  # (n, order)
        """Return the hidden states of a chain, or a tree; every layer of a table is the same."""
        self._entered[ahead:] = ids = [*map(int, tokens)]
        return self._tails([*self._text, *self._entered[:ahead]], ids, parents or tuple(range(-1, len(ids) - 1)))

    def _tails(self, text: list[int], tokens: Sequence[int], parents: tuple[int, ...]) -> torch.Tensor:  # (n, order)
        """Return, for every row of a tree after a text, the last `order` tokens up to it, padded with -1."""
        order, tails = self._model.order, list[list[int]]()
        for token, parent in zip(tokens, parents, strict=True):
            before = [-1] * order + text[-order:] if parent < 0 else tails[parent]
            tails.append([*before, token][-order:])
        return torch.tensor(tails, dtype=torch.float64).view(len(tokens), order)

    def commit(self, rows: Sequence[int]) -> None:
        """Keep the tokens of `rows`."""
        self._text.extend(self._tokens[row] for row in rows)
        super().commit(rows)

    def rewind(self, length: int) -> None:
        """Forget the tokens after `length`."""
        assert self.length - self.largest_step <= length <= self.length
        del self._text[length:]

    def keep(self, length: int, prompt_length: int) -> bool:
        """Start a text with the first `length` stored tokens."""
        del self._text[length:]
        self._stored.clear()
        return True

    def reset(self, prompt_length: int) -> None:
        """Start a new text."""
        self._text.clear()
        super().reset(prompt_length)


def counted(text: Sequence[int], order: int, vocabulary: int, name: str) -> TableModel:
    """Count an n-gram model of `text`: counts after the last `order` tokens, backing off to shorter endings."""
    counts: dict[tuple[int, ...], Counter[int]] = {}
    for end, token in enumerate(text):
        for n in range(min(order, end) + 1):
            counts.setdefault(tuple(text[end - n : end]), Counter())[token] += 1

    def rule(key: tuple[int, ...]) -> torch.Tensor:
        scores = torch.full((vocabulary,), 1e-6, dtype=torch.float64)
        for n in range(len(key) + 1):  # a longer ending outweighs a shorter one hundredfold
            for token, count in counts.get(key[len(key) - n :], {}).items():
                scores[token] += count * 100.0**n
        return scores.log()

    return TableModel(rule, order, vocabulary, name)
