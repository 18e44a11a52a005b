"""A language model with no network: the next token depends on the last few tokens through a table.

It is exact and instant, so tests can enumerate its joint distribution, and the first start can show real decoding
with nothing to download. `TableModel` takes any rule; `counted` learns one from a text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from ..errors import ModelError
from ..types import ModelCard
from .asked_rows import asked
from .queued_tree import on_host
from .session import Reading
from .taps import Taps

if TYPE_CHECKING:
    from .queued_tree import Parents
    from .upload import Tokens

LogitsRule = Callable[[tuple[int, ...]], torch.Tensor]  # the last `order` tokens -> logits (V,)

_CACHED = 8192  # rows of logits in the cache; a run that never ends must not fill the memory


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
        """What follows `text`."""
        key = tuple(text[-self.order :])
        row = self._cached.get(key)
        if row is None:
            if len(self._cached) == _CACHED:
                del self._cached[next(iter(self._cached))]
            row = self._cached[key] = self._rule(key).to(self.dtype)
        return row

    def open(self, capacity: int, largest_step: int) -> TableSession:
        """A session; a table needs no memory beyond the text itself."""
        return TableSession(self, capacity, largest_step)


class TableSession:
    """A text under a table model."""

    def __init__(self, model: TableModel, capacity: int, largest_step: int) -> None:
        self.capacity, self.largest_step = capacity, largest_step
        self.seam: int | None = None
        self._model = model
        self._text: list[int] = []
        self._tokens: Sequence[int] = ()
        self._entered: list[int] = []  # behind the text, by `enter`
        self._taps = Taps()

    @property
    def length(self) -> int:
        """Tokens stored."""
        return len(self._text)

    def read(self, tokens: Tokens, parents: Parents, skip: int = 0, only: Sequence[int] | None = None) -> Reading:
        """Answer for every row from its own root-to-row path."""
        if len(tokens) > self.largest_step or self.length + len(tokens) > self.capacity + self.largest_step:
            raise ModelError(f"{len(tokens)} tokens do not fit behind {self.length}; ask for fewer")
        known = on_host(parents)
        return self.resume(tokens, known, 0, self._tails(self._text, [*map(int, tokens)], known), skip, only)

    def resume(
        self,
        tokens: Tokens,
        parents: tuple[int, ...],
        layer: int,
        hidden: torch.Tensor,
        skip: int = 0,
        only: Sequence[int] | None = None,
    ) -> Reading:
        """Answer for every row from its hidden state, which is all that a table knows: the last few tokens."""
        self._tokens = [*map(int, tokens)]
        self._taps.note([hidden] * len(self._taps.layers))
        answering = asked(hidden, skip, only)
        tails = [[int(token) for token in tail if token >= 0] for tail in answering.tolist()]
        rows = [self._model.logits(tail) for tail in tails]
        return Reading(torch.stack(rows) if rows else torch.empty(0, self._model.card.vocabulary), answering)

    def enter(
        self, tokens: Tokens, layer: int, ahead: int = 0, parents: tuple[int, ...] | None = None
    ) -> torch.Tensor:  # (n, order)
        """The hidden states of a chain, or a tree; every layer of a table is the same."""
        self._entered[ahead:] = known = [*map(int, tokens)]
        return self._tails([*self._text, *self._entered[:ahead]], known, parents or tuple(range(-1, len(known) - 1)))

    def tap(self, *layers: int) -> None:
        """From now on record the hidden states of stored tokens, once for each of these layers; none: stop."""
        self._taps.choose(layers)

    def tapped(self) -> torch.Tensor:  # (n, layers * order)
        """The hidden states recorded since the last call."""
        return self._taps.take()

    def _tails(self, text: list[int], tokens: Sequence[int], parents: tuple[int, ...]) -> torch.Tensor:  # (n, order)
        """The last few tokens up to every row of a tree behind a text, -1 where there are fewer."""
        order, tails = self._model.order, list[list[int]]()
        for token, parent in zip(tokens, parents, strict=True):
            before = [-1] * order + text[-order:] if parent < 0 else tails[parent]
            tails.append([*before, token][-order:])
        return torch.tensor(tails, dtype=torch.float64).view(len(tokens), order)

    def commit(self, rows: Sequence[int]) -> None:
        """Keep the tokens of `rows`."""
        self._text.extend(self._tokens[row] for row in rows)
        self._taps.store(rows)

    def rewind(self, length: int) -> None:
        """Forget the tokens behind `length`."""
        assert self.length - self.largest_step <= length <= self.length
        del self._text[length:]

    def keep(self, length: int, prompt_length: int) -> bool:
        """A list of tokens forgets its end as easily as one token."""
        del self._text[length:]
        self._taps.clear()
        return True

    def reset(self, prompt_length: int) -> None:
        """Forget the text."""
        self._text.clear()
        self._taps.clear()


def counted(text: Sequence[int], order: int, vocabulary: int, name: str) -> TableModel:
    """An n-gram model of `text`: counts behind the last `order` tokens, backing off to shorter endings."""
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
