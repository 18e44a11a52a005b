"""What writes ahead of a run's text: a drafter token by token, or several tokens in a pass.

A token that it writes is the drafter's likeliest one or, when sampling, an exact draw from the drafter's distribution
q behind the tokens before it. Where it writes several in a pass, guesses are walked as the target walks a tree: at
every node a token is drawn, and the walk goes on where a guess holds that very token. So no guess can change what is
written, only the number of passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import torch

from .. import accept
from ..model.tree_reader import TreeReader
from ..sampling import draw, largest_probability, likeliest
from ..tree import Builder
from ..types import Draft
from .chain import Chain
from .window import Window, before_end

if TYPE_CHECKING:
    from ..methods.base import Context
    from ..model.session import Reading, Session

Guesses = Callable[[int], Iterable[tuple[int, ...]]]  # a token -> what may follow it


class Writer:
    """What a drafter knows of its run, and how it chooses a token."""

    def __init__(self, context: Context) -> None:
        # Not the context itself, which knows the drafter: a ring would keep the caches when the run is dropped.
        self.text, self.sampler, self.end_tokens = context.text, context.sampler, context.end_tokens
        self.interrupted, self.detailed = context.interrupted, context.detailed

    def choose(self, logits: torch.Tensor) -> tuple[int, torch.Tensor | None]:  # (1, V), penalised
        """A draw from q or, when greedy, the likeliest token; and q, where anybody asks for it."""
        greedy = self.sampler.sampling.greedy
        if greedy and not self.detailed:
            return likeliest(logits)[0], None
        q = self.sampler.probabilities(logits[0])
        return likeliest(logits)[0] if greedy else draw(q, self.sampler.draws.fresh()), q


class Drafter(Writer):
    """A draft model at work on the text of a run.

    While it writes, its session holds the text and what was written behind it, but for the last token.
    """

    def __init__(self, session: Session, context: Context) -> None:
        super().__init__(context)
        self.session = session
        self._reader = TreeReader(session, session.largest_step)

    def extend(self, chain: Chain, *, confidence: bool) -> bool:
        """Write one more token; False, with nothing written, if the run was interrupted.

        `confidence` asks for the probability of the likeliest token, before temperature and filters.
        """
        missing, root = self._unread(chain.tokens)
        reading = self._read(missing, Builder(root).draft(), self.session.largest_step // 2)
        if reading is None:
            return False
        self._reader.commit([0])
        logits = self.sampler.penalise(reading.logits, [chain.tokens])
        token, q = self.choose(logits)
        chain.tokens.append(token)
        chain.q.append(q)
        if confidence:
            chain.confidence.append(round(float(largest_probability(logits[0])), 6))
        return True

    def write(
        self,
        count: int,
        guesses: Guesses,
        window: Window | None,
        harvest: Callable[[Sequence[int]], None],
    ) -> tuple[Chain, list[int]]:
        """Up to `count` tokens by Lookahead decoding, and how many of them each pass wrote.

        Fewer if an end of text comes, or an interruption. `guesses` are verified in the pass that reads the token they
        follow. `harvest` gets the columns of a full window: the window outlives the chain, being guesses about
        whatever the drafter may write.
        """
        chain, passes = Chain(), list[int]()
        while len(chain) < count and not (chain.tokens and chain.tokens[-1] in self.end_tokens):
            missing, root = self._unread(chain.tokens)
            draft = self._tree(root, window, guesses(root), count - len(chain) - 1)
            reading = self._read(missing, draft, max(0, self.session.largest_step - len(draft.tokens)))
            if reading is None:
                break
            logits = self.sampler.penalise_tree(reading.logits, draft, chain.tokens)
            # Draws ask for no likeliest token; a window does.
            answers = likeliest(logits) if self.sampler.sampling.greedy or window else []
            path, written = accept.walk(draft, self._choice(logits, answers, chain))
            self._reader.commit(path)
            chain.tokens.extend(written)
            passes.append(len(written))
            if window:
                new = window.answers(answers)
                for column in window.columns(root, new) if window.full else ():
                    harvest(column)
                window.move(new)
        chain.q = chain.q or [None] * len(chain)
        return chain, passes

    def forget(self) -> None:
        """Forget what was rejected: let the session hold nothing but the text, without the last token at most."""
        self.session.rewind(min(self.session.length, len(self.text) - 1))

    def _read(self, missing: Sequence[int], draft: Draft, room: int) -> Reading | None:
        """Read a tree behind what the session lacks; None if the run was interrupted, even in front of the tree."""
        return None if self.interrupted() else self._reader.read(missing, draft, room, self.interrupted)

    def _unread(self, written: list[int]) -> tuple[list[int], int]:
        """What the session lacks of the text and of the tokens written behind it: all but the last of them, and it."""
        stored = self.session.length
        *pending, root = self.text[stored:] + written[max(0, stored - len(self.text)) :]
        return pending, root

    def _tree(self, root: int, window: Window | None, guesses: Iterable[tuple[int, ...]], room: int) -> Draft:
        """The window, and the guesses of up to `room` tokens."""
        tree = Builder(root)
        if window:
            window.put(tree)
        for ngram in guesses:
            guess = before_end(ngram[:room], self.end_tokens)
            tree.chain(guess, ["pool"] * len(guess), merge=True)
        return tree.draft()

    def _choice(self, logits: torch.Tensor, answers: list[int], chain: Chain) -> accept.Choose:
        """The likeliest token at a node, or a draw from the q there, which joins the chain where it is asked for."""
        greedy = self.sampler.sampling.greedy
        if greedy and not self.detailed:
            return accept.greedy(answers)

        def choose(node: int, depth: int, children: Sequence[int]) -> int:
            q = self.sampler.probabilities(logits[node])
            chain.q.append(q)
            return answers[node] if greedy else draw(q, self.sampler.draws.fresh())

        return choose
