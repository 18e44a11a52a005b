"""A draft model that writes ahead of a run's text, token by token or several tokens in a pass.

A token that it writes is the drafter's likeliest one or, when sampling, an exact draw from the drafter's distribution
q after the tokens before it. Where it writes several in a pass, guesses are walked as the target walks a tree: at
every node a token is drawn, and the walk continues if a guess holds that very token. So no guess can change what is
written, only the number of passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from .. import accept
from ..model.captured import PassSpec, filled
from ..model.decoder_session import DecoderSession
from ..model.download import fetch, waits
from ..model.session import JudgingSession
from ..model.tree_reader import TreeReader
from ..model.upload import upload
from ..ranking import checked, likeliest, likeliest_rows
from ..sampling import draw, drawn_rows
from ..tree import Builder, depths
from ..types import Draft
from .chain import Chain
from .node_choices import NodeChoices
from .text_so_far import TextSoFar
from .window import Window, before_end
from .writer import CPU, Reads, Recordable, Writer

if TYPE_CHECKING:
    from ..model.captured import Judged
    from ..model.draft_vocabulary import DraftVocabulary
    from ..model.graphs import Outputs
    from ..model.replays import Replays
    from ..model.session import Reading, TreeSession
    from ..model.upload import Tokens

_LEAD = 4  # most tokens that are read before a recorded chain: more only occur at the beginning of a text
Guesses = Callable[[int], Iterable[tuple[int, ...]]]  # a token -> guesses of the tokens after it


class Drafter(Writer):
    """A draft model on the text of a run.

    While it writes, its session stores the text and the drafted tokens, except the last one.
    """

    kind = "draft"
    session: TreeSession

    def __init__(
        self,
        session: TreeSession,
        context: TextSoFar,
        device: torch.device = CPU,
        vocabulary: DraftVocabulary | None = None,
    ) -> None:
        super().__init__(context, device)
        self.session, self.vocabulary = session, vocabulary
        self._reader = TreeReader(session, session.largest_step)

    @property
    def reads(self) -> Reads:
        """Return `read` alone."""
        return (self.read,)

    def read(self, written: Tokens) -> torch.Tensor | None:
        """Read the tokens that the session lacks, at least the newest; return the next token's logits.

        They are not penalised, (1, n) over the n tokens of its vocabulary; None if interrupted.
        """
        if isinstance(written, torch.Tensor) and len(written):  # the session lacks only the newest
            reading = self.session.read(written[-1:], (-1,))
            self.session.commit([0])
            return reading.logits
        missing, root = self._unread([] if isinstance(written, torch.Tensor) else written)
        tree_reading = self._read(missing, Builder(root).draft(), self.session.largest_step // 2)
        if tree_reading is None:
            return None
        self._reader.commit([0])
        return tree_reading.logits

    @property
    def replays(self) -> Replays | None:
        """Return the recordings of the session, if a decoder opened it."""
        return self.session.replays if isinstance(self.session, DecoderSession) else None

    def recordable(self, count: int) -> Recordable | None:
        """Record: read the few tokens that the session lacks, then each drafted token alone."""
        missing, root = self._unread([])
        lead, session = len(missing) + 1, self.session
        if not isinstance(session, DecoderSession) or lead > _LEAD:
            return None
        if (passes := session.chain(lead + count - 1)) is None:
            return None
        part = PassSpec(0, passes.layers)

        def begin(numbers: torch.Tensor) -> tuple[Reads, Callable[[], Outputs]]:
            first, lacking = numbers.long().tensor_split((1,))

            def read(written: torch.Tensor) -> torch.Tensor:
                rows = (written[-1:], first, lead + len(written) - 1) if len(written) else (lacking, first, 0)
                return passes.run(*rows, part)[-1][-1:]

            return (read,), tuple

        def done(count: int) -> None:
            session.commit(range(lead + count - 1))

        return Recordable((lead, passes.key), (passes.first, *missing, root), (), begin, done)

    def write(
        self, count: int, guesses: Guesses, window: Window | None, harvest: Callable[[Sequence[int]], None]
    ) -> tuple[Chain, list[int]]:
        """Write up to `count` tokens by Lookahead decoding; return them and how many each pass wrote.

        It writes fewer at an end of text or an interruption. `guesses` are verified in the pass that reads the token
        they follow. `harvest` gets the columns of a full window. The window outlives the chain: its guesses are about
        anything that the drafter may write.
        """
        chain, passes = Chain(), list[int]()
        while len(chain) < count and not (chain.tokens and chain.tokens[-1] in self.end_tokens):
            missing, root = self._unread(chain.tokens)
            draft = self._tree(root, window, guesses(root), count - len(chain) - 1)
            unasked = window.unasked(draft) if window else ()
            asked = [node for node in range(len(draft.tokens)) if node not in unasked]
            room = max(0, self.session.largest_step - len(draft.tokens))
            choices = NodeChoices(self, draft, len(missing)) if self._judges and len(missing) <= room else None
            reading = self._read(missing, draft, room, asked, choices)
            if reading is None:
                break
            answers: Sequence[int] | Mapping[int, int]
            if choices is not None and reading.judged is not None:
                answers, choose = self._choices_made(choices, reading.judged, chain)
            else:
                logits = reading.logits
                if not self.sampler.plain:
                    logits = self.sampler.penalise_tree(self.widen(logits), draft, chain.tokens, asked)
                answers, choose = self._choices(draft, asked, logits, window is not None, chain)
            path, written = accept.walk(draft, choose)
            self._reader.commit(path)
            chain.tokens.extend(written)
            if choices is not None:
                self._gather(chain, len(written), count)
            passes.append(len(written))
            if window:
                new = window.answers(answers)
                for column in window.columns(root, new) if window.full else ():
                    harvest(column)
                window.move(new)
        self._shape(chain)
        chain.q = chain.q or [None] * len(chain)
        return chain, passes

    @property
    def _judges(self) -> bool:
        """Return True if a pass need return only its choices."""
        if not self.queues or self.sampler.penalises or self.detailed:
            return False
        return isinstance(self.session, JudgingSession) and self.session.judges

    def forget(self) -> None:
        """Forget rejected tokens: let the session store the text without its last token, and nothing else."""
        self.session.rewind(min(self.session.length, len(self.text) - 1))

    def _read(
        self,
        missing: Sequence[int],
        draft: Draft,
        room: int,
        asked: Sequence[int] | None = None,
        judge: NodeChoices | None = None,
    ) -> Reading | None:
        """Read the tokens that the session lacks, then a tree; None if the run was interrupted."""
        if self.interrupted():
            return None
        return self._reader.read(missing, draft, room, self.interrupted, asked, judge)

    def _unread(self, written: Sequence[int]) -> tuple[list[int], int]:
        """Return the tokens that the session lacks of the text and `written`: all but the last, and the last."""
        stored = self.session.length
        *pending, root = *self.text[stored:], *written[max(0, stored - len(self.text)) :]
        return pending, root

    def _tree(self, root: int, window: Window | None, guesses: Iterable[tuple[int, ...]], room: int) -> Draft:
        """Build the tree of the window, and of guesses of up to `room` tokens."""
        tree = Builder(root)
        if window:
            window.put(tree)
        for ngram in guesses:
            guess = before_end(ngram[:room], self.end_tokens)
            tree.chain(guess, ["pool"] * len(guess), merge=True)
        return tree.draft()

    def _choices(
        self, draft: Draft, asked: Sequence[int], logits: torch.Tensor, windowed: bool, chain: Chain
    ) -> tuple[Mapping[int, int], accept.Choose]:
        """Return the likeliest tokens, which only a window needs, and a function that chooses the token at a node.

        It chooses the likeliest one, or draws from q and adds q to the chain. `logits` are those of the nodes `asked`.
        """
        greedy, draws = self.sampler.sampling.greedy, self.sampler.draws
        if greedy and not self.detailed:
            best = dict(zip(asked, self._likeliest(logits), strict=True))
            return best, accept.greedy(best)
        row = {node: at for at, node in enumerate(asked)}
        drawn, shaped = list[int](), None
        if greedy or not waits(self.device):
            answers = self._likeliest(logits) if greedy or windowed else []
        else:
            shaped = self.sampler.probabilities(logits)
            below = depths(draft.parents)
            uniforms = draws.ahead(max(below) + 1)  # one for each token that a walk may choose
            goals = upload(torch.tensor([uniforms[below[node]] for node in asked], dtype=torch.float64), logits.device)
            tokens, faults, ids, id_faults = fetch(*drawn_rows(shaped, goals), *likeliest_rows(logits))
            drawn, answers = checked(tokens, faults), checked(ids, id_faults)
        best = dict(zip(asked, answers, strict=False))

        def choose(node: int, depth: int, children: Sequence[int]) -> int:
            if greedy:
                chain.q.append(logits[row[node]])
                return best[node]
            q = self.sampler.probabilities(logits[row[node]]) if shaped is None else shaped[row[node]]
            chain.q.append(q)
            uniform = draws.fresh()
            return drawn[row[node]] if drawn else draw(q, uniform)

        return best, choose

    def _choices_made(self, choices: NodeChoices, judged: Judged, chain: Chain) -> tuple[Sequence[int], accept.Choose]:
        """Return what `_choices` returns, for a pass that has chosen at every node."""
        best, drawn = choices.fetch(judged)
        if not drawn:
            best = self._tokens(best)
            return best, accept.greedy(best)
        q = choices.q(judged)

        def choose(node: int, depth: int, children: Sequence[int]) -> int:
            self.sampler.draws.skip(1)
            chain.q.append(q[node])
            return drawn[node]

        return best, choose

    def _gather(self, chain: Chain, fresh: int, longest: int) -> None:
        """Copy the newest tokens' q to the address that q of a chain of `longest` tokens has in every step."""
        rows = [row for row in chain.q[-fresh:] if row is not None]
        if not rows or self.outbox is None:
            return
        room = self.outbox.room("q", rows[0].expand(filled(longest) or longest, -1))
        chain.q[-fresh:] = torch.stack(rows, out=room[len(chain) - fresh : len(chain)]).unbind(0)
        if self.device == self.sampler.device:
            chain.fixed = self.outbox, room.shape, room.dtype

    def _likeliest(self, logits: torch.Tensor) -> list[int]:
        """Return the likeliest tokens; if the sampler is plain, the logits are over the drafter's vocabulary only."""
        return self._tokens(likeliest(logits))

    def _tokens(self, indices: list[int]) -> list[int]:
        if self.vocabulary is None or not self.sampler.plain:
            return indices
        return [self.vocabulary.listed[index] for index in indices]
