"""A drafter that writes several tokens a pass: Lookahead decoding on a session, with a pool that others can share.

A token that it writes is the drafter's likeliest one or, when sampling, an exact draw from the drafter's law q behind
the tokens before it: at every node a token is drawn, and the walk goes on where a guess holds that very token. So
neither the window nor the pool can change what is written, only the number of passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from .. import accept
from ..model.session import catch_up
from ..sampling import draw, likeliest
from ..tree import Builder, after_chain, paths
from ..types import Draft, Role
from .ngram_pool import NEW, NgramPool
from .window import before_end

if TYPE_CHECKING:
    from ..methods.base import Context


@dataclass(frozen=True, slots=True)
class Written:
    """What the drafter wrote behind a text."""

    tokens: tuple[int, ...] = ()
    laws: tuple[torch.Tensor | None, ...] = ()  # the drafter's, of every token; None where nobody asks for it
    passes: tuple[int, ...] = ()  # tokens that each pass of the drafter wrote
    learned: int = 0  # n-grams that the window gave to the pool and that it did not hold


def next_token(context: Context, logits: torch.Tensor) -> tuple[int, torch.Tensor | None]:  # (1, V), penalised
    """What a drafter writes behind a text: a draw from its law or, when greedy, the likeliest token; and that law."""
    sampler = context.sampler
    greedy = sampler.sampling.greedy
    if greedy and not context.detailed:
        return likeliest(logits)[0], None
    law = sampler.probabilities(logits[0])
    return likeliest(logits)[0] if greedy else draw(law, sampler.draws.fresh()), law


class LookaheadDrafter:
    """Writes ahead of a run's text with a window of `W` columns (0: none) and, with `guess`, with the pool's n-grams.

    The window's rows outlive the step, as the pool does: they are guesses about whatever the drafter may write.
    """

    def __init__(self, context: Context, pool: NgramPool, W: int, N: int, *, guess: bool = True) -> None:
        assert context.draft is not None
        self._context, self._session, self._sampler = context, context.draft, context.sampler
        self._pool, self._N, self._guess = pool, N, guess
        places = [context.random.randrange(context.prompt_length) for _ in range(W + N - 3 if W else 0)]
        self._rows = [[context.text[place] for place in places]] if W else []

    def write(self, count: int) -> Written:
        """Up to `count` tokens behind the text; fewer if an end of text comes, or an interruption.

        The session then holds the text and what was written behind it, but for the last token.
        """
        session, context = self._session, self._context
        tokens, passes, laws, learned = list[int](), list[int](), list[torch.Tensor](), 0
        while len(tokens) < count and not (tokens and tokens[-1] in context.end_tokens):
            root = (tokens or context.text)[-1]
            draft, columns = self._tree(root, count - len(tokens) - 1)
            room = max(0, session.largest_step - len(draft.tokens))
            catch_up(session, self._unread(tokens)[:-1], room, session.largest_step, context.interrupted)
            if context.interrupted():
                break
            pending = self._unread(tokens)[:-1]
            parents = after_chain(len(pending), draft.parents)
            logits = session.read([*pending, *draft.tokens], parents, skip=len(pending)).logits
            if self._sampler.sampling.repetition_penalty != 1.0:
                logits = self._sampler.penalise(logits, paths(draft.parents, draft.tokens, tokens))
            # Draws ask for no likeliest token; a window does.
            answers = likeliest(logits) if self._sampler.sampling.greedy or self._rows else []
            path, emitted = accept.walk(draft, self._choice(logits, answers, laws))
            session.commit([*range(len(pending)), *(len(pending) + node for node in path)])
            tokens.extend(emitted)
            passes.append(len(emitted))
            learned += self._move(root, [answers[end] for end in columns]) if self._rows else 0
        return Written(tuple(tokens), tuple(laws) or (None,) * len(tokens), tuple(passes), learned)

    def forget(self) -> None:
        """Drop what the session holds beyond the text's last token but one, which is all that is sure to agree."""
        self._session.rewind(min(self._session.length, len(self._context.text) - 1))

    def _unread(self, tokens: list[int]) -> list[int]:
        """What the session lacks of the text and of the tokens written behind it."""
        text, stored = self._context.text, self._session.length
        return text[stored:] + tokens[max(0, stored - len(text)) :]

    def _tree(self, root: int, room: int) -> tuple[Draft, list[int]]:
        """The window and the guesses of up to `room` tokens, and the node at the end of every column."""
        tree, columns = Builder(root), [0]
        for token in self._rows[0] if self._rows else ():
            columns.append(tree.add(token, columns[-1], "window", Role.EXPLORE))
        for row in self._rows[1:]:
            cells = zip(row, columns, strict=True)
            columns = [tree.add(token, above, "window", Role.EXPLORE) for token, above in cells]
        for ngram in self._pool.guesses(root) if self._guess else ():
            guess = before_end(ngram[:room], self._context.end_tokens)
            tree.chain(guess, ["pool"] * len(guess), merge=True)
        return tree.draft(), columns

    def _choice(self, logits: torch.Tensor, answers: list[int], laws: list[torch.Tensor]) -> accept.Choose:
        """The likeliest token at a node, or a draw from the node's law, which goes to `laws` where it is asked for."""
        sampler = self._sampler
        greedy = sampler.sampling.greedy
        if greedy and not self._context.detailed:
            return accept.greedy(answers)

        def chosen(node: int, depth: int, children: Sequence[int]) -> int:
            laws.append(sampler.probabilities(logits[node]))
            return answers[node] if greedy else draw(laws[-1], sampler.draws.fresh())

        return chosen

    def _move(self, root: int, new: list[int]) -> int:
        """Harvest the columns, move the window by a row, and tell how many n-grams the pool did not hold."""
        rows = self._rows
        if len(rows) < self._N - 1:
            self._rows = [*(row[1:] for row in rows), new[1:]]
            return 0
        self._rows = [rows[1][1:], *rows[2:], new]
        columns = zip([root, *rows[0]], *rows[1:], new, strict=True)
        return sum(self._pool.insert(key, tuple(ngram)) in NEW for key, *ngram in columns)
