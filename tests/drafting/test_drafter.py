"""Lookahead on a drafter: what it writes, what its session holds, and how few passes it takes."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pytest
import torch

from decoding.drafting import drafter as drafting
from decoding.drafting.drafter import Drafter
from decoding.drafting.ngram_pool import NEW, NgramPool
from decoding.drafting.window import Window, before_end, largest_pass
from decoding.methods.base import Context
from decoding.methods.lookahead import Lookahead
from decoding.model.session import Reading
from decoding.model.table import TableModel, TableSession
from decoding.ranking import likeliest
from decoding.sampling import Sampler, Sampling
from tests.methods.loop import Drive
from tests.toys import cycle, hashed, plain, prompt_for, toy

SHAPES = [(8, 5, 4), (1, 3, 1), (1, 6, 3), (5, 3, 2), (2, 4, 0)]  # W, N, G


class Counting(TableSession):
    """A session that notes the rows of every reading."""

    def __init__(self, model: TableModel, largest_step: int = 256) -> None:
        super().__init__(model, 4096, largest_step)
        self.rows: list[int] = []
        self.asked: list[int] = []  # rows of every reading that it answers for

    def read(
        self, tokens: Sequence[int], parents: tuple[int, ...], skip: int = 0, only: Sequence[int] | None = None
    ) -> Reading:
        """Note the rows, then read."""
        self.rows.append(len(tokens))
        self.asked.append(len(tokens) - skip if only is None else len(only))
        return super().read(tokens, parents, skip, only)


@dataclass(frozen=True)
class Written:
    """What the drafter wrote after a text."""

    tokens: tuple[int, ...] = ()
    distributions: tuple[torch.Tensor | None, ...] = ()
    passes: tuple[int, ...] = ()
    learned: int = 0  # n-grams that the window gave to the pool and that it did not hold


class Bench:
    """A drafter at work on a text that grows as it would in a run."""

    def __init__(
        self,
        model: TableModel,
        prompt: Sequence[int],
        sampling: Sampling | None = None,
        W: int = 6,
        N: int = 4,
        G: int = 4,
        ends: Iterable[int] = (),
        largest_step: int = 256,
        guess: bool = True,
    ) -> None:
        self.session = Counting(model, largest_step)
        sampling = sampling or Sampling()
        self.sampler = Sampler(sampling, model.card.vocabulary, torch.device("cpu"), prompt)
        self.context = Context([*prompt], len(prompt), 999, self.sampler, frozenset(ends))
        self.context.random = random.Random(7)
        self.pool = NgramPool(G)
        self.drafter = Drafter(self.session, self.context)
        self.window = Window(W, N, self.context.from_prompt) if W else None
        self._guess = guess

    def write(self, count: int) -> Written:
        """Draft, and hold the session to what it must then store."""
        written = self.draft(count)
        assert sum(written.passes) == len(written.tokens) == len(written.distributions) <= count
        if written.tokens:
            assert self.session._text == [*self.context.text, *written.tokens[:-1]]
        return written

    def draft(self, count: int) -> Written:
        """Draft with the pool's guesses, which grow by the window's harvest."""
        learned = 0

        def guesses(token: int) -> tuple[tuple[int, ...], ...]:
            return self.pool.guesses(token) if self._guess else ()

        def harvest(column: Sequence[int]) -> None:
            nonlocal learned
            learned += self.pool.insert(column[0], tuple(column[1:])) in NEW

        chain, passes = self.drafter.write(count, guesses, self.window, harvest)
        return Written(tuple(chain.tokens), tuple(chain.q), tuple(passes), learned)

    def accept(self, tokens: Sequence[int]) -> None:
        """Commit what the target said."""
        self.context.text.extend(tokens)
        self.sampler.extend(tokens)
        self.drafter.forget()
        assert self.session._text == self.context.text[: self.session.length]
        assert self.session.length < len(self.context.text)


@pytest.mark.sampled
@pytest.mark.parametrize(("W", "N", "G"), [*SHAPES, (0, 4, 3)])
@pytest.mark.parametrize("guess", [True, False])
def test_a_greedy_draft_is_the_drafters_own_text(W: int, N: int, G: int, guess: bool) -> None:
    """A token lost or doubled where a phrase is cut, a wrong parent, a stale cache: each would write another text."""
    for seed in range(10):
        model = toy(seed, seed)
        bench = Bench(model, prompt_for(model, seed), W=W, N=N, G=G, guess=guess)
        for turn in range(6):
            count = 1 + (seed + 3 * turn) % 9
            written = bench.write(count)
            assert written.tokens == plain(model, bench.context.text, count)
            assert written.distributions == (None,) * count
            kept = (turn * 5 + seed) % (count + 1)
            bench.accept([*written.tokens[:kept], (turn + seed) % model.card.vocabulary])


@pytest.mark.sampled
@pytest.mark.parametrize(("W", "N", "G"), [*SHAPES, (0, 4, 3)])
def test_sampled_drafts_are_the_same_draws_with_and_without_phrases(W: int, N: int, G: int) -> None:
    """Every token must take one number of the fresh stream and its own distribution, wherever the walk found it."""
    saved = 0
    for seed in range(6):
        model, shaped = hashed(6, 1, seed, sharpness=3.0), Sampling(temperature=0.9, top_k=4, seed=seed)
        prompt = (seed, *plain(model, (seed,), 20))
        fast, slow = Bench(model, prompt, shaped, W, N, G), Bench(model, prompt, shaped, 0, N, G, guess=False)
        fast.pool.insert_text(prompt, N)
        for turn in range(5):
            one, two = fast.write(7), slow.write(7)
            assert one.tokens == two.tokens
            for place, (distribution, other) in enumerate(zip(one.distributions, two.distributions, strict=True)):
                row = model.logits([*fast.context.text, *one.tokens[:place]])
                assert distribution is not None and other is not None
                assert torch.equal(distribution, other) and torch.equal(distribution, fast.sampler.probabilities(row))
                assert distribution[one.tokens[place]] > 0
            assert two.passes == (1,) * 7
            saved += 7 - len(one.passes)
            for bench in (fast, slow):
                bench.accept([*one.tokens[: turn + 1], turn])
        assert fast.sampler.draws.fresh() == slow.sampler.draws.fresh()
    assert saved > 10 or G == 0, "phrases must save passes for this test to mean anything"


@pytest.mark.parametrize(("temperature", "W", "asks"), [(0.0, 0, True), (0.9, 5, True), (0.9, 0, False)])
def test_the_likeliest_tokens_are_asked_for_where_they_are_read(
    temperature: float, W: int, asks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over a real vocabulary it is a search through millions of numbers, and on a GPU a wait."""
    asked: list[int] = []
    monkeypatch.setattr(drafting, "likeliest", lambda logits: asked.append(len(logits)) or likeliest(logits))
    bench = Bench(hashed(6, 1, 1), (1, 2), Sampling(temperature=temperature), W=W, N=3)
    assert len(bench.write(5).tokens) == 5
    assert bool(asked) == asks


def test_the_window_is_lookaheads() -> None:
    """Same model, same filling: passes, harvest and pool must be those of the Lookahead method, step by step."""
    for W, N, G in [(6, 4, 4), (1, 3, 2), (3, 5, 3), (2, 6, 5)]:
        model, prompt = hashed(5, 2, W), prompt_for(hashed(5, 2, W), 3, 20)
        run = Drive(Lookahead, model, prompt, W=W, N=N, G=G)
        bench = Bench(model, prompt, W=W, N=N, G=G)
        bench.context.random = random.Random(0)
        bench.window = Window(W, N, bench.context.from_prompt)
        bench.drafter.interrupted = lambda bench=bench: len(bench.session.rows) >= 40  # type: ignore[misc]
        written = bench.write(900)
        turns = [run.turn() for _ in range(40)]
        assert [len(turn.verdict.emitted) for turn in turns] == [*written.passes]
        assert run.written == [*written.tokens]
        expected = NgramPool(G)
        new = 0
        for turn in turns:
            for key, ngram, outcome in turn.panel["pool"]["inserted"]:
                assert expected.insert(key, tuple(ngram)) == outcome
                new += outcome != "refreshed"
        assert new == written.learned > 0
        assert all(expected.guesses(key) == bench.pool.guesses(key) for key in range(5))


def test_only_the_root_and_the_ends_of_columns_are_asked() -> None:
    """Logits after the other cells, three quarters of a window, would be most of a pass of a small drafter."""
    bench = Bench(hashed(9, 2), range(9), W=6, N=5, guess=False)
    bench.write(8)
    assert bench.session.asked[-1] == 1 + 6 and bench.session.rows[-1] == 4 * 6


def test_a_full_match_writes_an_n_gram_a_pass() -> None:
    """N - 1 guesses and the drafter's next word: dropping the bonus would write one fewer."""
    bench = Bench(cycle(9), range(9), W=0, N=4)
    bench.pool.insert_text([*range(9)] * 2, 4)
    assert bench.write(12).passes == (4, 4, 4)
    again = Bench(cycle(9), range(9), W=0, N=4, guess=False)
    again.pool.insert_text([*range(9)] * 2, 4)
    assert again.write(12).passes == (1,) * 12


def test_a_pass_writes_no_more_than_is_asked_for() -> None:
    """A surplus would have to be paid for, cut, and forgotten in the cache."""
    for count in range(1, 14):
        bench = Bench(cycle(9), range(9), W=0, N=6)
        bench.pool.insert_text([*range(9)] * 2, 6)
        assert bench.write(count).tokens == plain(cycle(9), range(9), count)
        assert sum(bench.session.rows) == 9 + count - 1, "only rows that become text may be fed"


def test_nothing_is_written_or_guessed_behind_an_end_of_text() -> None:
    """A phrase that holds an end is fed in front of it only; the end itself comes as the next word."""
    bench = Bench(cycle(9), range(9), W=0, N=6, ends=[3])
    bench.pool.insert_text([*range(9)] * 2, 6)
    assert bench.write(8).tokens == (0, 1, 2, 3)
    assert bench.session.rows == [9 + 3], "0, 1 and 2 are fed behind the prompt, 3 never is"
    assert before_end((4, 3, 5, 3), {3}) == (4,)
    assert before_end((3,), {3}) == ()
    assert before_end((4, 5), ()) == (4, 5)


@pytest.mark.parametrize("penalty", [1.4, 0.7])
def test_the_repetition_penalty_counts_what_is_written_on_the_way(penalty: float) -> None:
    """A node's penalty that forgets its own path, or the draft in front of it, writes other tokens."""
    saved = 0
    for seed in range(8):
        model = hashed(9, 1, seed, sharpness=2.0)
        bench = Bench(model, (seed, 1), Sampling(repetition_penalty=penalty), W=5, N=4, G=4)
        for _ in range(4):
            written = bench.write(9)
            assert written.tokens == plain(model, bench.context.text, 9, penalty)
            bench.accept(written.tokens)
            saved += 9 - len(written.passes)
    assert saved > 10


@pytest.mark.parametrize(("W", "N", "G"), SHAPES)
def test_a_session_of_the_largest_pass_is_enough(W: int, N: int, G: int) -> None:
    """A bound that forgets the filling window, or what a full match leaves unread, fails in the middle of a run."""
    bound = largest_pass(W, N, G)
    bench = Bench(hashed(4, 1, W), [i % 4 for i in range(3 * bound)], W=W, N=N, G=G, largest_step=bound)
    for turn in range(10):
        before = len(bench.session.rows)
        written = bench.write(6)
        assert turn == 0 or len(bench.session.rows) - before == len(written.passes), "no pass for unread tokens alone"
        bench.accept([*written.tokens, *[turn % 4] * N])
    assert max(bench.session.rows) <= bound
    assert max(bench.session.rows[3:]) >= bound - N - G * (N - 1)


def test_an_interruption_keeps_what_was_written() -> None:
    """A drafter that goes on after a cancellation keeps its visitor waiting."""
    for limit in range(1, 8):
        bench = Bench(hashed(9, 2, 1), range(40), W=0, guess=False, largest_step=16)
        reads = bench.session.rows
        bench.drafter.interrupted = lambda reads=reads, limit=limit: len(reads) >= limit  # type: ignore[misc]
        written = bench.draft(9)
        assert len(reads) == limit
        assert len(written.tokens) == len(written.distributions) == max(0, limit - 2), "the prompt takes two readings"


def test_a_prompt_of_one_token_is_enough() -> None:
    """Nothing to choose the window from but that token, and nothing stored yet."""
    for N in (3, 16):
        bench = Bench(cycle(3), (0,), W=3, N=N, G=2)
        assert bench.write(9).tokens == plain(cycle(3), (0,), 9)
        assert bench.write(0) == Written()
