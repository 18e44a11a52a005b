"""A drafter that reads the target's features and writes on by its own: a chain, or a tree of its likeliest guesses.

It has read the features of the stored text, each with the token behind it; the last of these tokens is the root. What
it drafts it reads with features that it makes itself. All of those are forgotten after the step: the text is read on
with the target's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch.nn.functional import cosine_similarity

from ..model.download import fetch
from ..sampling import surest
from .unread import Unread
from .writer import CPU, Writer

if TYPE_CHECKING:
    from ..methods.base import Context
    from ..model.session import TapSession, Tokens
    from ..parts.eagle import Eagle, EagleSession

_CHUNK = 256  # rows that are read at once of a long prompt


class Guess(NamedTuple):
    """A guess in a tree."""

    token: int
    parent: int  # an earlier guess; -1: the root
    depth: int  # from 1
    rank: int  # among the guesses behind its parent, from 0
    chance: float  # the drafter's probability of it behind its parent
    product: float  # of the chances on the way to it


class FeatureDrafter(Writer):
    """Writes ahead of a text that the target has read; `attach` says with which drafter."""

    kind = "eagle"
    drafter: EagleSession
    layers: tuple[int, ...]  # of the target, whose inputs are read
    known: frozenset[int] | None  # tokens that can be drafted; None: all

    def __init__(self, session: TapSession, context: Context, device: torch.device = CPU) -> None:
        super().__init__(context, device)
        self.session = session
        self._unread = Unread()
        self._final = self._feature = torch.empty(0)  # (1, H): behind the text, for `logits` and for the next row
        self._made: dict[int, torch.Tensor] = {}  # features (1, H) of the drafter's own, by guess; -1: behind the root
        self._rows: dict[int, int] = {-1: -1}  # rows of the drafter's tree, by guess

    def attach(self, eagle: Eagle, capacity: int, rows: int) -> None:
        """Draft with it on a text of up to `capacity` tokens, reading at most so many rows of a step's guesses."""
        self.drafter, self.layers = eagle.open(capacity, max(rows, _CHUNK)), eagle.layers
        self.vocabulary = eagle.vocabulary
        self.known = None if eagle.vocabulary is None else eagle.vocabulary.known
        self.session.tap(*self.layers)

    @property
    def ready(self) -> bool:
        """Whether the target has read all of the text but the root, and the drafter its features."""
        return 0 < self.session.length == len(self.text) - 1 and not len(self._unread)

    def catch_up(self) -> None:
        """Read the target's features of the text, unless the run is interrupted."""
        while len(self._unread) and not self.interrupted():
            first = self.drafter.length + 1
            states = self._unread.take(_CHUNK)
            final, feature = self.drafter.read(self.text[first : first + len(states)], states)
            self._final, self._feature = final[-1:], feature[-1:]

    def begin(self) -> None:
        """Forget what was drafted before."""
        self.drafter.forget()
        self._made, self._rows = {-1: self._feature}, {-1: -1}

    def next_logits(self, written: Tokens) -> torch.Tensor | None:
        """What follows the newest token, which is read with the drafter's feature of the one in front of it."""
        if self.interrupted():
            return None
        final = self._final
        if newest := len(written):
            final = self._read([newest - 1], written[-1:], [newest - 2])
        return self.drafter.logits(final)

    def grow(
        self, k: int, depth: int, least: float = 0.0, expand: float = 0.0
    ) -> tuple[list[Guess], list[torch.Tensor]]:
        """All guesses of a tree that is expanded level by level: the `k` likeliest behind each of the `k` best.

        The best of a level are those with the largest products. Nothing is guessed behind an end of text, nor behind a
        product below `expand`, nor below `least`, as products fall along a path. For a detailed record also the logits
        (draft vocabulary,) that each guess is one of.
        """
        guesses, logits = list[Guess](), list[torch.Tensor]()
        parents, final, least = [-1], self._final, max(least, expand)
        for level in range(1, depth + 1):
            said = self.drafter.logits(final)
            first = len(guesses)
            for row, (tokens, chances) in enumerate(self._likeliest(said, k)):
                product = guesses[parents[row]].product if parents[row] >= 0 else 1.0
                for rank, (token, chance) in enumerate(zip(tokens, chances, strict=True)):
                    guesses.append(Guess(token, parents[row], level, rank, chance, product * chance))
                logits += [said[row]] * len(tokens) if self.detailed else []
            ends = self.end_tokens
            parents = [
                first + place
                for place, guess in enumerate(guesses[first:])
                if guess.product >= least and guess.token not in ends
            ]
            parents = sorted(sorted(parents, key=lambda each: -guesses[each].product)[:k])
            if level == depth or not parents or self.interrupted():
                break
            final = self._read(
                parents, [guesses[each].token for each in parents], [guesses[each].parent for each in parents]
            )
        return guesses, logits

    def q(self, logits: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:  # (draft vocabulary,) -> (V,) each
        """Distributions of the drafter over the target's vocabulary, for the record."""
        return self.sampler.probabilities(self.widen(torch.stack([*logits]))).unbind()

    def forget(self) -> None:
        """Make the drafter's text the stored one, and note what of it is to be read."""
        self._unread.follow(self.session, self.drafter)

    def agreement(self, path: Sequence[int]) -> list[float]:
        """How close the drafter's own features came to the target's, as cosines; to be asked behind `forget`.

        The first is that of the root, then those of the accepted guesses on `path`, as far as it has read them.
        """
        own = [self._made[guess] for guess in (-1, *path) if guess in self._made]
        states = self._unread.states[: len(own)]
        if not len(states) or self.drafter.length + len(self._unread) != self.session.length:
            return []
        theirs = self.drafter.features(states)
        [cosines] = fetch(cosine_similarity(torch.cat(own[: len(states)]).float(), theirs.float()))
        return [round(each, 4) for each in cosines]

    def _read(self, guesses: Sequence[int], tokens: Tokens, parents: Sequence[int]) -> torch.Tensor:
        """Read some guesses with the features behind their parents; what `logits` takes, and keep their own."""
        above = [self._made[parent] for parent in parents]
        entering = torch.cat(above) if len(above) > 1 else above[0]
        final, feature = self.drafter.grow(tokens, entering, [self._rows[parent] for parent in parents])
        first = len(self._rows) - 1
        for row, (guess, own) in enumerate(zip(guesses, torch.split(feature, 1), strict=True)):
            self._rows[guess], self._made[guess] = first + row, own
        return final

    def _likeliest(self, logits: torch.Tensor, k: int) -> list[tuple[list[int], list[float]]]:
        """The k likeliest tokens of every row and their chances, with one wait for the device."""
        best, chances = surest(logits, min(k, logits.shape[1]))
        ids, width = best if self.vocabulary is None else self.vocabulary.ids[best.long()], best.shape[1]
        tokens, shares = fetch(ids, chances.double().clamp(max=1.0))
        parts = (slice(row * width, (row + 1) * width) for row in range(len(logits)))
        return [([int(token) for token in tokens[part]], shares[part]) for part in parts]
