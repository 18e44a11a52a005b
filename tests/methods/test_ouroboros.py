"""Ouroboros against its paper: the example of its figure, what it learns, what its parts do, its bookkeeping."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from decoding.codec import Codec
from decoding.drafting import drafter as drafting
from decoding.drafting.drafter import Drafter
from decoding.drafting.ngram_pool import NgramPool
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.methods.ouroboros import Ouroboros, OuroborosParams
from decoding.model.table import TableModel, TableSession
from decoding.sampling import Sampling
from decoding.tree import depths
from decoding.types import Draft, Verdict
from tests import test_distribution as language
from tests.distributions import FALSE_ALARM, Counts, chance, pooled, power
from tests.toys import correlated, counted_text, cycle, engine, hashed, plain, prompt_for, tied, toy

from .loop import Drive, Turn, new_context

PARTS: Sequence[Mapping[str, Any]] = [
    {},
    {"drafting": "phrases"},
    {"drafting": "plain"},
    {"K": 0},
    {"inspire": False},
    {"refine": "never"},
    {"refine": "accepted"},
    {"warm_start": "prompt"},
    {"warm_start": "across"},
    {"drafting": "plain", "K": 0, "inspire": False, "refine": "never"},
    {"gamma": 1, "N": 3, "W": 1, "G": 1, "K": 1, "shortest": 1},
    {"gamma": 64, "N": 16, "W": 2, "G": 2, "K": 9, "shortest": 15},
    {"G": 0},
]


class Duel(Drive):
    """Ouroboros at work on two table models."""

    method: Ouroboros

    def __init__(
        self,
        target: TableModel,
        drafter: TableModel,
        prompt: Sequence[int],
        sampling: Sampling | None = None,
        end_tokens: Iterable[int] = (),
        budget: int = 10_000,
        memory: dict[str, Any] | None = None,
        largest_step: int = 256,
        **params: Any,
    ) -> None:
        settings = OuroborosParams(**params)
        self.context = new_context(
            prompt,
            sampling or Sampling(),
            vocabulary=target.card.vocabulary,
            largest_step=largest_step,
            end_tokens=end_tokens,
        )
        self.context.draft = Drafter(drafter.open(8192, max(256, settings.nodes)), self.context)
        self.context.max_new_tokens = budget
        self.context.memory = {} if memory is None else memory
        self.method = Ouroboros(self.context, settings)
        self.turns: list[Turn] = []
        self._model = target

    @property
    def pool(self) -> NgramPool:
        """Return the phrases."""
        return self.method._pool


def spell(text: str) -> list[int]:
    """Return letters as tokens."""
    return [ord(letter) - ord("A") for letter in text]


def letters(tokens: Iterable[int]) -> str:
    """Return tokens as letters."""
    return "".join(chr(ord("A") + token) for token in tokens)


def alphabet(**odd: str) -> TableModel:
    """Make a language in which each letter is followed by the next one, but for the odd ones."""
    after = [ord(odd.get(chr(ord("A") + i), chr(ord("A") + (i + 1) % 26))) - ord("A") for i in range(26)]
    return TableModel(lambda key: 9.0 * torch.eye(26, dtype=torch.float64)[after[key[-1]]], 1, 26)


def figure(**params: Any) -> Duel:
    """Play Figure 1: the target would go on with the alphabet, and knows what comes after a W, an X and an R; the
    drafter slips from I to W. The pool holds the figure's suffixes, and phrases that let the drafter write EFG, HIWK
    and LMN.
    """
    pool = NgramPool(8)
    for phrase in ("DEFX", "GHIW", "KLMX", "NOXQ", "NRSY"):
        key, *rest = spell(phrase)
        pool.insert(key, tuple(rest))
    settings = {"gamma": 10, "N": 4, "G": 8, "K": 2, "drafting": "phrases", "warm_start": "across", **params}
    memory = {"pool N=4 G=8": pool}
    return Duel(alphabet(W="K", X="Q", R="P"), alphabet(I="W", W="K"), spell("ABCD"), memory=memory, **settings)


def held(run: Duel, letter: str) -> list[str]:
    """Return the phrases of a letter, the oldest first."""
    return [letter + letters(phrase) for phrase in run.pool.guesses(*spell(letter))]


def test_the_papers_example() -> None:
    """Figure 1 whole: three passes, both suffixes, the correction J, two inspirations, two refinements."""
    run = figure(shortest=3)
    turn = run.turn()
    assert letters(turn.draft.tokens) == "D" + "EFGHIWKLMN" + "RSY" + "OXQ"
    assert turn.draft.parents == (-1, *range(10), 10, 11, 12, 10, 14, 15)
    assert turn.panel["passes"] == [3, 4, 3]
    assert letters(turn.verdict.emitted) == "EFGHIJ"
    assert held(run, "K") == ["KLMX", "KLMN"]
    assert held(run, "L") == ["LMNO"]
    assert held(run, "N") == ["NOPQ", "NOPT"]
    assert held(run, "W") == held(run, "M") == []
    assert turn.panel["inspired"] == [[10, spell("LMN"), "added"], [11, spell("MNO"), "added"]]
    assert turn.panel["suffixes"] == [spell("RSY"), spell("OXQ")]
    assert turn.panel["refined"] == [spell("OPT"), spell("OPQ")]
    counts = {"prompt": 0, "window": 0, "inspired": 2, "refined": 2}
    assert turn.panel["counts"] == counts | {"draft_accepted": 5, "suffix_accepted": 0, "passes": 3}
    assert turn.panel["pool"] == {"keys": 5, "entries": 7}


def test_shorter_matches_inspire_where_they_may() -> None:
    """N-1 matching tokens seldom fit into what a rejection leaves; one by one, the bound must bind exactly."""
    learned = {shortest: figure(shortest=shortest).turn().panel["inspired"] for shortest in (1, 2, 3, 15)}
    phrases = [[letters([key, *phrase]) for key, phrase, _ in learned[shortest]] for shortest in (1, 2, 3, 15)]
    assert phrases == [["KLMN", "LMNO", "MNO", "NO"], ["KLMN", "LMNO", "MNO"], ["KLMN", "LMNO"], ["KLMN", "LMNO"]]


@pytest.mark.parametrize("refine", ["accepted", "never"])
def test_without_refinement_a_rejection_leaves_the_suffixes(refine: str) -> None:
    """The reference code refines after full acceptance only: the switch for it must do as much, and no more."""
    run = figure(refine=refine, inspire=False)
    turn = run.turn()
    assert held(run, "N") == ["NOXQ", "NRSY"]
    assert held(run, "K") == ["KLMX"]
    assert turn.panel["refined"] == turn.panel["inspired"] == []
    agreeing = figure(refine=refine, inspire=False, gamma=4, K=2)
    agreeing.pool.insert(7, tuple(spell("IQQ")))  # behind H, where this draft ends
    assert letters(agreeing.turn().verdict.emitted) == "EFGHIJ"
    assert held(agreeing, "H") == (["HIJR"] if refine == "accepted" else ["HIQQ"])


def test_inspired_phrases_help_the_next_draft() -> None:
    """Learning that nothing reads would be in vain: after J the drafter writes KLMN in fewer passes than before."""
    run = figure()
    run.turn()
    second = run.turn()
    assert letters(second.before[-1:]) == "J"
    assert second.panel["passes"][:2] == [1, 4], "K; then K's inspired phrase, whole, and the drafter's next word"
    unlearned = figure(inspire=False)
    unlearned.turn()
    assert unlearned.turn().panel["passes"][:2] == [1, 3]


@pytest.mark.parametrize("drafting_by", ["lookahead", "phrases", "plain"])
def test_a_full_match_writes_gamma_and_n_tokens(drafting_by: str) -> None:
    """All drafted tokens, a whole suffix, and the bonus, which the reference code gives away."""
    prompt, settings = [*range(9)] * 2, {"gamma": 4, "N": 4, "W": 3, "G": 2, "warm_start": "prompt"}
    run = Duel(cycle(9), cycle(9), prompt, K=2, drafting=drafting_by, **settings)
    assert [len(run.turn().verdict.emitted) for _ in range(20)] == [4 + 4] * 20
    assert tuple(run.written) == plain(cycle(9), prompt, 160)
    counts = run.turns[-1].panel["counts"]
    assert (counts["draft_accepted"], counts["suffix_accepted"]) == (20 * 4, 20 * 3)
    assert counts["passes"] == 20 * (4 if drafting_by == "plain" else 1)
    short = Duel(cycle(9), cycle(9), prompt, K=0, drafting=drafting_by, **settings)
    assert [len(short.turn().verdict.emitted) for _ in range(20)] == [4 + 1] * 20


@pytest.mark.sampled
@pytest.mark.parametrize("params", PARTS, ids=str)
def test_no_part_changes_the_text(params: Mapping[str, Any]) -> None:
    """Every switch may cost time and nothing else; the pool, window and drafter are never trusted."""
    for seed in range(6):  # of every kind of toy, and twice of every drafter
        target = toy(seed, seed)
        machine, prompt = engine(target, correlated(target, (0.2, 0.8, 1.0)[seed % 3])), prompt_for(target, seed)
        for budget in (1, 2, 25):
            result = machine.generate(prompt, Ouroboros, params=params, max_new_tokens=budget, record="off")
            assert result.ids == plain(target, prompt, budget), f"seed {seed}"


def test_ties_go_to_the_lowest_id() -> None:
    """A drafter that breaks ties in another way than the target gets less accepted; the text stays."""
    for seed in range(8):
        target = tied(9, seed=seed)
        result = engine(target, target).generate((1, 2, 1), Ouroboros, params={"gamma": 4}, max_new_tokens=30)
        assert result.ids == plain(target, (1, 2, 1), 30)
        assert all(step.accepted >= 4 for step in result.trace.steps[:-1])


class Watched(Ouroboros):
    """Checks drafter, pool and panel after every turn."""

    turns = 0

    def propose(self) -> Draft:
        """Assert that no node is deeper than is useful, and none too many."""
        draft = super().propose()
        context, params = self._context, self._params
        assert len(draft.tokens) <= min(params.nodes, context.largest_step)
        assert max(depths(draft.parents)) <= context.remaining - 1
        return draft

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Assert that the stored text is the committed one, and the pool within its bounds."""
        super().observe(draft, verdict)
        session, text, params = self._drafter.session, self._context.text, self._params
        assert isinstance(session, TableSession)
        assert session._text == text[: session.length], "the drafter's cache holds a rejected token"
        assert len(text) - session.length <= params.N + 1 or len(draft.tokens) == 1
        phrases = [self._pool.guesses(token) for token in range(40)]
        assert all(len(of_token) <= params.G for of_token in phrases)
        assert all(1 <= len(phrase) < params.N for of_token in phrases for phrase in of_token)
        assert sum(map(len, phrases)) == self._pool.entries
        type(self).turns += 1


@pytest.mark.sampled
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("mix", [0.0, 0.7, 1.0])
def test_drafter_and_pool_hold_what_they_may(mix: float, temperature: float) -> None:
    """After a rejection everything after it must go; after full acceptance a whole suffix is still unread."""
    Watched.turns = 0
    for seed, params in enumerate(({}, {"gamma": 5, "N": 3, "W": 2, "G": 2}, {"gamma": 3, "N": 7, "W": 1, "K": 6})):
        target = counted_text() if seed % 2 else hashed(9, 1, seed, sharpness=4.0)
        machine = engine(target, correlated(target, mix))
        for chunk in (1, 3, 512):
            sampling = {"temperature": temperature, "seed": seed}
            run = machine.decode((1, 2, 3, 4, 5), Watched, params, sampling, 30, prefill_chunk=chunk)
            assert sum(len(step.emitted) for step in run) == 30
    assert Watched.turns > 30


def test_nothing_is_drafted_behind_an_end_of_text() -> None:
    """What is after an end is never written; the end in a suffix comes for free as the bonus."""
    prompt, settings = [*range(9)] * 2, {"N": 4, "G": 2, "warm_start": "prompt"}
    turn = Duel(cycle(9), cycle(9), prompt, end_tokens=[3], gamma=8, **settings).turn()
    assert turn.draft.tokens == (8, 0, 1, 2, 3)
    turn = Duel(cycle(9), cycle(9), prompt, end_tokens=[3], gamma=2, **settings).turn()
    assert turn.draft.tokens == (8, 0, 1, 2)
    assert turn.verdict.emitted == (0, 1, 2, 3)
    assert turn.panel["suffixes"] == turn.panel["refined"] == [[2, 3, 4]], "what was not fed stays as it was"


def test_nothing_is_drafted_behind_the_budget() -> None:
    """Guesses that can never be emitted cost rows; with one token to go the drafter need not even wake up."""
    prompt, settings = [*range(9)] * 2, {"gamma": 4, "N": 4, "G": 2, "warm_start": "prompt"}
    for budget in range(1, 10):
        run = Duel(cycle(9), cycle(9), prompt, budget=budget, **settings)
        turn = run.turn()
        assert max(depths(turn.draft.parents)) == min(budget - 1, 4 + 3)
        assert len(turn.verdict.emitted) == min(budget, 4 + 4)
        assert run.context.draft is not None and (run.context.draft.session.length > 0) == (budget > 1)


def test_a_small_step_is_respected() -> None:
    """A draft that does not fit would end the run in an error."""
    for largest in range(1, 16):
        run = Duel(cycle(9), cycle(9), [*range(9)] * 2, gamma=5, N=4, K=2, warm_start="prompt", largest_step=largest)
        assert len(run.turn().draft.tokens) == (largest if largest <= 6 else 6 + 3 * (largest >= 9))


def test_a_cancelled_run_stops_drafting() -> None:
    """The drafter asks between two passes; what it has written until then is a draft like any other."""
    run = Duel(cycle(9), cycle(9), range(9), gamma=40, drafting="plain")
    asked = iter(range(100))
    assert run.context.draft is not None
    run.context.draft.interrupted = lambda: next(asked) >= 7
    assert run.turn().draft.tokens == (8, *plain(cycle(9), range(9), 7))
    cancel = threading.Event()
    steps = engine(cycle(9)).decode(tuple(range(9)), Ouroboros, max_new_tokens=900, cancel=cancel)
    next(steps)
    cancel.set()
    assert [*steps] == [] and steps.finish == "cancelled"


def test_sampled_chains_carry_distributions_and_suffixes_do_not() -> None:
    """A suffix with a distribution would be tested by chance, and a chain without one would be accepted less often."""
    target = hashed(9, 1, 3, sharpness=3.0)
    prompt = (1, *plain(target, (1,), 20))
    run = Duel(target, target, prompt, Sampling(temperature=0.8, seed=1), gamma=4, N=3, warm_start="prompt").until(60)
    both = 0
    for turn in run.turns:
        assert turn.draft.q is not None
        kinds = [source.partition(":")[0] for source in turn.draft.sources]
        assert [distribution is not None for distribution in turn.draft.q] == [kind == "draft" for kind in kinds]
        assert len(turn.verdict.emitted) > 4, "what is drawn from the target's own distribution is always accepted"
        both += "pool" in kinds
    assert both > 3
    greedy = Duel(target, target, prompt, gamma=4).turn()
    assert greedy.draft.q == (None,) * len(greedy.draft.tokens)


def test_sampled_text_does_not_depend_on_how_it_was_drafted() -> None:
    """Window and phrases may save passes; a number of the random stream more or less would change the text."""
    for seed in range(6):
        machine = engine(hashed(6, 1, seed, sharpness=4.0))
        texts, passes = set(), []
        for drafting_by in ("lookahead", "phrases", "plain"):
            params = {"drafting": drafting_by, "K": 0, "warm_start": "prompt", "N": 3}
            sampling = {"temperature": 0.9, "seed": seed}
            options = {"params": params, "sampling": sampling, "max_new_tokens": 60}
            result = machine.generate((0, 1, 2, 3, 4, 5) * 3, Ouroboros, **options)
            texts.add(result.ids)
            passes.append(result.trace.steps[-1].panel["counts"]["passes"])
        assert len(texts) == 1
        assert passes[0] < passes[2] and passes[1] <= passes[2]


def block_counts(samples: int) -> tuple[Counts, int]:
    """Return how often each block of the language of `test_distribution` was written, and accepted suffix tokens."""
    machine, counts, suffixes = engine(language.TARGET, language.CLOSE), 0, 0
    for seed in range(samples // language.BLOCKS):
        params = {"gamma": 2, "N": 3, "W": 2, "G": 3, "K": 3, "warm_start": "prompt"}
        sampling = {**language.WARM, "seed": seed}
        run = machine.decode(language.PROMPT, Ouroboros, params, sampling, 4 * language.BLOCKS)
        suffixes += [step.panel["counts"]["suffix_accepted"] for step in run][-1]
        blocks = torch.tensor(run.ids).view(-1, 4)[:, :3].numpy()
        counts = counts + np.bincount(blocks @ [25, 5, 1], minlength=125)
    return counts, suffixes


@pytest.mark.slow
def test_sampling_follows_the_targets_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a drafter whose tokens are not drawn from the distribution they carry is found out by the same test.

    Power: of 1,500 blocks it rejects, with a probability of at least 0.99, every distribution at a total variation
    distance of 0.14 from the right one, over the cells that are left when the rarest, a fifteenth of the mass, are
    pooled. The seeds are fixed.
    """
    counts, suffixes = block_counts(1500)
    assert suffixes > 50, "the branches must take part"
    distribution = language.joint(language.WARM)
    assert chance(counts, distribution) > FALSE_ALARM
    assert power(len(pooled(distribution * 1500, distribution * 1500)) - 1, 1500, 0.14) >= 0.99
    monkeypatch.setattr(drafting, "draw", lambda q, uniform: int(q.argmax()))
    assert chance(block_counts(500)[0], distribution) < FALSE_ALARM


def test_warm_starts() -> None:
    """Across runs the pool must be the one of the run before; otherwise nothing of it may show."""
    memory: dict[str, Any] = {}
    first = Duel(cycle(9), cycle(9), (0, 1), memory=memory, warm_start="across").until(60)
    assert first.turns[0].panel["passes"] == [1] * 8
    second = Duel(cycle(9), cycle(9), (3,), memory=memory, warm_start="across")
    assert second.turn().panel["passes"] == [5, 3]
    assert second.pool is first.pool
    assert second.turns[0].panel["counts"]["window"] == 0
    for warm in ("off", "prompt"):
        run = Duel(cycle(9), cycle(9), (3,), memory=memory, warm_start=warm)
        assert run.turn().panel["passes"] == [1] * 8
        assert run.pool is not first.pool
    other = Duel(cycle(9), cycle(9), (3,), memory=memory, warm_start="across", G=3)
    assert other.pool.entries == 0 and len(memory) == 1
    read = Duel(cycle(9), cycle(9), range(9), warm_start="prompt", N=4)
    assert read.method.panel()["counts"]["prompt"] == read.pool.entries == 6


def test_every_part_is_alive_by_default() -> None:
    """Settings under which a part never fires, as in the reference code, would make its switch a lie."""
    target, totals = counted_text(), dict.fromkeys(("window", "inspired", "refined", "suffix_accepted"), 0)
    machine = engine(target, correlated(target, 0.9))
    for seed in range(4):
        result = machine.generate(prompt_for(target, seed), Ouroboros, max_new_tokens=60)
        counts = result.trace.steps[-1].panel["counts"]
        totals = {name: total + counts[name] for name, total in totals.items()}
    assert min(totals.values()) > 5, totals


def test_the_panel_is_plain_json_that_stays_as_it_was() -> None:
    """A panel that shares its lists with the method would change in the record as the run goes on."""
    target = counted_text()
    run, kept = Duel(target, correlated(target, 0.8), prompt_for(target, 1)), []
    for _ in range(12):
        kept.append(json.dumps(run.turn().panel))
        assert len(kept[-1]) < 4000
    assert [json.dumps(turn.panel) for turn in run.turns] == kept
    assert all(json.loads(text) == turn.panel for text, turn in zip(kept, run.turns, strict=True))
    run.method.propose()  # nothing observed yet: no answer of the step before may stand in the panel
    assert run.method.panel()["refined"] == run.method.panel()["inspired"] == []


def test_settings_at_their_bounds() -> None:
    """Three tokens of vocabulary, one of prompt, and everything as small or as large as it goes."""
    model = tied(3, 1, 2)
    machine = engine(model, correlated(model, 0.5))
    for params in (
        {"gamma": 64, "N": 16, "W": 1, "G": 0, "K": 64, "shortest": 15},
        {"gamma": 64, "N": 3, "W": 256, "G": 256, "K": 64, "shortest": 1},
        {"gamma": 1, "N": 16, "W": 16, "G": 1, "K": 0, "warm_start": "prompt"},
    ):
        result = machine.generate((2,), Ouroboros, params=params, max_new_tokens=12)
        assert result.ids == plain(model, (2,), 12)
    with pytest.raises(ParamError, match="tokens into a step of ouroboros, above 4096: lower them"):
        machine.decode((2,), Ouroboros, params={"W": 256, "N": 16, "G": 256})
    assert all(OuroborosParams.parse(preset).nodes <= 256 for preset in OuroborosParams.presets.values())


def test_it_needs_a_drafter() -> None:
    """Without one the run must be refused in words, before it starts."""
    with pytest.raises(ParamError, match="ouroboros needs a drafter: load the engine with draft="):
        Engine(cycle(9), Codec()).decode((1,), Ouroboros)
