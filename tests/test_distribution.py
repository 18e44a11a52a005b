"""Tier 3: the engine's output follows the target's exact distribution, and the same test rejects classic mistakes.

The language is made of blocks: a separator, then three tokens that depend on the block so far alone, so a block has a
joint distribution of 125 cells that can be enumerated. A method writes one block in each of 1,500 runs (`--nightly`:
5,000). And since a lossless engine writes independent blocks, longer runs give as many samples with methods in every
state of their windows, pools and caches.

In the default tier this tests the methods that sample their guesses, autoregressive decoding, a chain and a tree of
guesses that are none; of how a run starts, autoregressive decoding and two methods that sample. All others write the
very tokens of autoregressive sampling with the same seed, which `tests/test_lossless.py` holds them to: so their
distribution is that one's. `--all` has all of them, with more settings.

Power: a test rejects, with a probability of at least 0.99, every sampler of independent blocks whose distribution is a
total variation distance of 0.14 away from the right one (1,500 samples; 5,000: 0.081), whatever the bias. Only the
hardest bias needs that much: most are seen far earlier. The distance is over the cells of the test, which pools the
rarest; together they hold less than 0.07 (5,000 samples: 0.02). False alarms: two in a million tests of a right sampler
(chi-square says one; simulated samples, a million of them, said one to three). The seeds are fixed, so a test that
passes once passes always; and new seeds for all of these tests would give a false alarm once in 15,000 times.
`test_the_power_is_as_stated` computes these numbers. The controls, which are known mistakes, must be rejected with as
many samples as their method has by default: 1,500, but 2,500 for a draft model and the tree of guesses that are none (a
distance of 0.11, and 0.05 in the rarest cells), where a biased residual is subtle.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from decoding import accept, sampling
from decoding.drafting import drafter as drafting
from decoding.drafting import writer
from decoding.methods import METHODS
from decoding.methods.autoregressive import Autoregressive
from decoding.model.table import TableModel
from decoding.sampling import Draws, Sampler, draw
from decoding.tree import Builder
from decoding.types import Draft, Role
from tests.distributions import FALSE_ALARM, Counts, Distribution, chance, distance_of, pooled, power
from tests.noise import noise
from tests.tiers import choose, nightly, slow
from tests.toys import correlated, engine, hashed

Params = Mapping[str, Any]

WORDS, END = 5, 5  # tokens 0 to 4, and the separator
BLOCKS = 50  # in a long run
SAMPLES, ALL_SAMPLES = 1_500, 5_000  # blocks of all long runs, and short runs of one block each
MORE_SAMPLES = 2_500  # where a biased residual would be missed
# samples: the distance that 0.99 of tests see, and the share that their rarest cells hold together, at most
DETECTED = {
    SAMPLES: (0.14, 0.07),
    MORE_SAMPLES: (0.11, 0.05),
    ALL_SAMPLES: (0.081, 0.02),
}
PROMPT = (END, 0, 1, 2, END, 3, 4, 0, END, 2, 2, 1, END)
WARM: Params = {"temperature": 0.9}
FILTERED: Params = {"temperature": 1.1, "top_k": 4, "top_p": 0.9}


def block_logits(key: tuple[int, ...]) -> torch.Tensor:
    """Return logits after the current block; a separator can only come after three tokens."""
    block = key[len(key) - key[::-1].index(END) :] if END in key else key
    row = torch.full((WORDS + 1,), -torch.inf, dtype=torch.float64)
    if len(block) == 3:
        row[END] = 0.0
    else:
        row[:WORDS] = 1.3 * noise(7, block, WORDS)
    return row


TARGET = TableModel(block_logits, 3, WORDS + 1)
CLOSE = correlated(TARGET, mix=0.7, order=3)
SHORT_SIGHTED = hashed(WORDS + 1, order=1, seed=4)  # it also guesses separators, and never knows when one is due


def next_token(logits: torch.Tensor, setting: Params) -> Distribution:
    """Compute one token's distribution in numpy: temperature, then the k likeliest, then a mass of top_p."""
    row = np.exp(logits.numpy() / setting["temperature"])
    best = np.argsort(-row)
    row[best[setting.get("top_k", len(row)) :]] = 0.0
    row /= row.sum()
    mass = np.cumsum(row[best])
    row[best[1:][mass[:-1] >= setting.get("top_p", 1.0)]] = 0.0
    return np.asarray(row / row.sum(), dtype=np.float64)


def joint(setting: Params) -> Distribution:  # (125,)
    """Return the exact distribution of a block."""
    distribution = np.ones((WORDS,) * 3)
    for a, b, c in itertools.product(range(WORDS), repeat=3):
        for before, token in (((), a), ((a,), b), ((a, b), c)):
            distribution[a, b, c] *= next_token(TARGET.logits((END, *before)), setting)[token]
    return distribution.ravel()


def count(method: str, params: Params, setting: Params, drafter: TableModel, samples: int) -> tuple[Counts, int]:
    """Return how often each block was written, over runs with different seeds, and how many guesses were accepted."""
    machine, counts, accepted = engine(TARGET, drafter), np.zeros(WORDS**3, dtype=np.int64), 0
    for seed in range(samples // BLOCKS):
        options: dict[str, Any] = {"sampling": {**setting, "seed": seed}, "max_new_tokens": 4 * BLOCKS}
        run = machine.decode(PROMPT, method, params, record="off", **options)
        accepted += sum(step.accepted for step in run)
        blocks = np.array(run.ids).reshape(BLOCKS, 4)
        assert (blocks[:, 3] == END).all() and (blocks[:, :3] < END).all(), f"seed {seed} wrote an impossible token"
        counts += np.bincount(blocks[:, :3] @ [WORDS**2, WORDS, 1], minlength=WORDS**3)
    return counts, accepted


def count_runs(method: str, params: Params, setting: Params, runs: int) -> tuple[Counts, int]:
    """Return how often each block was written by runs of three tokens, and how many guesses were accepted."""
    machine, written, accepted = engine(TARGET, CLOSE), np.empty((runs, 3), dtype=np.int64), 0
    for seed in range(runs):
        run = machine.decode(PROMPT, method, params, {**setting, "seed": seed}, 3, record="off")
        accepted += sum(step.accepted for step in run)
        written[seed] = run.ids
    assert written.max() < WORDS, "an impossible token was written"
    return np.bincount(written @ [WORDS**2, WORDS, 1], minlength=WORDS**3), accepted


def samples_of(method: str) -> int:
    """Return how many blocks a method writes by default."""
    return MORE_SAMPLES if method in ("random_tree", "draft_model") else SAMPLES


def misfit(counts: Counts, distribution: Distribution) -> str:
    """Return what a failure says."""
    samples = counts.sum()
    fit, distance = chance(counts, distribution), distance_of(counts, distribution)
    return f"p = {fit:.2g}, total variation distance {distance:.4f} of {samples} blocks"


class RandomTree(Autoregressive):
    """Trees with siblings sampled from two distributions, duplicates, point masses and explore nodes, all mixed."""

    def propose(self) -> Draft:
        """Propose a new tree every time."""
        context, dice = self._context, self._context.random
        tree, paths, distributions = Builder(context.text[-1]), [tuple(context.text[-3:])], [None]
        for _ in range(dice.randint(2, 6)):
            parent = dice.choice((0, dice.randrange(len(paths))))
            distribution, kind = None, dice.randrange(5)
            token = dice.randrange(WORDS + 1)
            if kind < 3:
                model = (CLOSE, CLOSE, SHORT_SIGHTED)[kind]
                distribution = context.sampler.probabilities(model.logits(paths[parent]))
                token = draw(distribution, dice.random())
            tree.add(token, parent, "toy", Role.EXPLORE if kind == 4 else Role.VERIFY)
            paths.append((*paths[parent], token))
            distributions.append(distribution)
        return tree.draft(q=tuple(distributions))


POOL: Params = {"W": 2, "N": 3, "G": 3, "prompt_as_reference": True}
PHRASES: Params = {"gamma": 3, "N": 3, "W": 2, "G": 2, "K": 2}
CONFIGURATIONS: Sequence[tuple[str, Params, Params, TableModel, float]] = [
    # method, parameters, sampling, drafter, accepted guesses a block: at least (the test's power comes from them)
    ("autoregressive", {}, FILTERED, CLOSE, 0.0),
    ("prompt_lookup", {"K": 3}, WARM, CLOSE, 0.5),
    ("draft_model", {"gamma": 2}, FILTERED, CLOSE, 1.0),
    ("kangaroo", {"gamma": 3}, WARM, CLOSE, 0.5),
    ("eagle3", {"form": "chain", "gamma": 3}, FILTERED, CLOSE, 0.5),
    ("dflash", {"form": "drawn", "gamma": 3}, WARM, CLOSE, 0.5),
    ("ouroboros", PHRASES, WARM, CLOSE, 1.0),
    ("random_tree", {}, {"temperature": 1.1, "top_k": 4}, CLOSE, 0.5),
]
WITH_ALL: Sequence[tuple[str, Params, Params, TableModel, float]] = [
    # tokens of autoregressive sampling, or another setting of a method above
    ("draft_model", {"gamma": 4, "threshold": 0.5}, WARM, CLOSE, 1.0),
    ("lookahead", POOL, WARM, CLOSE, 0.5),
    ("draft_model", {"gamma": 1}, {"temperature": 1.0, "top_k": 3}, SHORT_SIGHTED, 0.3),
    ("kangaroo", {"gamma": 2, "eta": 0.0}, FILTERED, CLOSE, 0.5),
    ("eagle3", {"form": "chain", "gamma": 3, "threshold": 0.3}, WARM, CLOSE, 0.5),
    ("ouroboros", {**PHRASES, "drafting": "phrases", "warm_start": "across"}, FILTERED, CLOSE, 1.0),
    ("suffix", {"alpha": 2.0, "c": 6, "depth": 12}, WARM, CLOSE, 1.0),
    ("suffix", {"alpha": 3.0, "c": 3, "shape": "chain", "look_in": "local"}, FILTERED, CLOSE, 0.5),
    ("token_recycling", {"k": 3, "tree": "grown", "size": 6}, WARM, CLOSE, 0.5),
    ("token_recycling", {"k": 2, "tree": "given", "paths": "0;1;0,0", "warm_start": "across"}, FILTERED, CLOSE, 0.5),
    ("jacobi", {"n": 2}, FILTERED, CLOSE, 0.5),
    ("lookahead", {**POOL, "N": 4, "layout": "merged", "shift": "hits"}, WARM, CLOSE, 0.5),
    ("draft_model", {"gamma": 1}, WARM, CLOSE, 1.0),
    ("draft_model", {"gamma": 3}, WARM, CLOSE, 1.0),
    ("draft_model", {"gamma": 4}, {"temperature": 0.7}, CLOSE, 1.0),
    ("ngrammys", {"k": 4, "w": 3}, WARM, CLOSE, 0.5),
    ("ngrammys", {"k": 3, "w": 2, "layout": "trie"}, FILTERED, CLOSE, 0.5),
    ("medusa", {"tree": "cartesian", "sizes": "2,2"}, WARM, CLOSE, 0.5),
    ("medusa", {"tree": "given", "paths": "0;1;0,0;1,0;0,0,0"}, FILTERED, CLOSE, 0.5),
    ("eagle3", {"m": 9, "k": 3, "depth": 3}, WARM, CLOSE, 0.5),
    ("dflash", {"gamma": 3}, FILTERED, CLOSE, 0.5),
    ("dflash", {"form": "tree", "m": 9, "k": 3, "gamma": 3}, WARM, CLOSE, 0.5),
    ("dflash", {"form": "drawn", "threshold": 0.3}, FILTERED, CLOSE, 0.5),
    ("rest", {"c": 12, "longest": 3, "shortest": 1, "length": 3}, WARM, CLOSE, 1.0),
]


BEGINNINGS = ("autoregressive", "lookahead", "draft_model", "kangaroo")  # a window, and both ways to draft by chance


def name_of(configuration: tuple[str, Params, Params, TableModel, float]) -> str:
    method, params, setting, drafter, _ = configuration
    sight = "-short_sighted" if drafter is SHORT_SIGHTED else ""
    return "-".join([method, *(f"{key}={value}" for key, value in {**params, **setting}.items())]) + sight


@pytest.fixture(autouse=True)
def toy_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the toy method; and shape each of the toys' few rows once instead of a million times."""
    monkeypatch.setitem(METHODS, "random_tree", RandomTree)
    shape, shaped = Sampler.probabilities, dict[tuple[float, int, float, bytes], torch.Tensor]()

    def remembered(self: Sampler, logits: torch.Tensor) -> torch.Tensor:
        setting = self.sampling
        key = (setting.temperature, setting.top_k, setting.top_p, logits.numpy().tobytes())
        if key not in shaped:
            shaped[key] = shape(self, logits)
        return shaped[key]

    monkeypatch.setattr(Sampler, "probabilities", remembered)


SHORT_RUNS: Mapping[str, tuple[Params, Params]] = {
    "autoregressive": ({}, FILTERED),
    "jacobi": ({"n": 2}, WARM),
    "lookahead": (POOL, FILTERED),
    "draft_model": ({"gamma": 2}, WARM),
    "prompt_lookup": ({"K": 3}, WARM),
    "kangaroo": ({"gamma": 2}, WARM),
}


@pytest.mark.parametrize(
    "samples",
    [
        pytest.param(SAMPLES, marks=slow),  # whole blocks are tested always
        pytest.param(ALL_SAMPLES, marks=nightly),
    ],
)
@pytest.mark.parametrize(
    "method", [pytest.param(each, marks=() if each in ("lookahead", "kangaroo") else nightly) for each in BEGINNINGS]
)
def test_three_tokens_of_many_runs_follow_the_exact_distribution(method: str, samples: int) -> None:
    """Any bias in how a run starts: its prefill, its first window, its first draft, its seed."""
    params, setting = SHORT_RUNS[method]
    counts, accepted = count_runs(method, params, setting, samples)
    assert accepted > samples // 10 or method == "autoregressive", "too few were accepted for this to count"
    assert chance(counts, joint(setting)) > FALSE_ALARM, misfit(counts, joint(setting))


@pytest.mark.sampled
@pytest.mark.parametrize(
    "configuration",
    [*CONFIGURATIONS, *(pytest.param(each, marks=nightly if at % 3 else slow) for at, each in enumerate(WITH_ALL))],
    ids=name_of,
)
def test_blocks_follow_the_exact_distribution(
    configuration: tuple[str, Params, Params, TableModel, float],
) -> None:
    """Any loss of the output distribution: a biased acceptance, a residual forgotten, randomness used twice."""
    method, params, setting, drafter, floor = configuration
    samples = samples_of(method)
    counts, accepted = count(method, params, setting, drafter, samples)
    assert accepted >= floor * samples, "too few guesses were accepted for this test to mean anything"
    assert chance(counts, joint(setting)) > FALSE_ALARM, misfit(counts, joint(setting))


def test_every_method_is_tested_here() -> None:
    """A method without a configuration has no proof of its distribution."""
    assert set(METHODS) <= {configuration[0] for configuration in (*CONFIGURATIONS, *WITH_ALL)}


Chooser = Callable[..., accept.Choose]


def unchecked_first(right: Chooser) -> Chooser:
    """Take the first guess unseen."""

    def sampled(draft: Draft, *rest: Any) -> accept.Choose:
        choose = right(draft, *rest)
        return lambda node, depth, below: draft.tokens[below[0]] if below and not depth else choose(node, depth, below)

    return sampled


def discarded_misses(draft: Draft, answers: accept.OneByOne, draws: Draws, *rest: Any) -> accept.Choose:
    """Draw for every branch, and discard what misses: a guess gets a chance p, and another one."""

    def choose(node: int, depth: int, below: Sequence[int]) -> int:
        p = answers.probabilities(node)
        for child in below:
            if draw(p, draws.fresh()) == draft.tokens[child]:
                return draft.tokens[child]
        return answers.at(node, depth).draw()

    return choose


def lenient(draft: Draft, answers: accept.TargetAnswers, draws: Draws, *rest: Any) -> accept.Choose:
    """Apply Leviathan's test with <= instead of <."""

    def choose(node: int, depth: int, below: Sequence[int]) -> int:
        remainder = answers.at(node, depth)
        for child in below:
            p, q = remainder.odds(child)
            if draws.fresh() * q <= p:
                return draft.tokens[child]
            remainder.reject(child)
        return remainder.draw()

    return choose


def two_likeliest(q: torch.Tensor, uniform: float) -> int:
    """Draw from q cut down to its two likeliest tokens."""
    return draw(torch.where(q >= q.topk(2).values[-1], q, 0.0), uniform)


CONTROLS: Mapping[str, tuple[str, Any, str, Any]] = {
    # name: method, module, attribute, wrong piece
    "argmax_draft_with_softmax_q": ("draft_model", writer, "draw", lambda q, uniform: int(q.argmax())),
    "draft_filtered_but_not_its_q": ("draft_model", writer, "draw", two_likeliest),
    "unchecked_first_token": ("prompt_lookup", accept, "sampled", unchecked_first(accept.sampled)),
    "argmax_draft_by_phrases_with_softmax_q": ("ouroboros", drafting, "draw", lambda q, uniform: int(q.argmax())),
    "biased_residual": ("draft_model", accept, "residual", lambda p, q: p),
    "biased_residual_on_trees": ("random_tree", accept, "residual", lambda p, q: p),
    "discarded_misses": ("prompt_lookup", accept, "sampled", discarded_misses),
    "discarded_misses_on_trees": ("random_tree", accept, "sampled", discarded_misses),
}


# A draft, a residual and a tree; what the others do wrong is of these kinds.
SEEN = ("argmax_draft_with_softmax_q", "biased_residual_on_trees", "discarded_misses")


@slow
@pytest.mark.parametrize("control", choose(CONTROLS, SEEN))
def test_the_test_rejects(control: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test of the distribution that lets a known mistake pass has no power."""
    method, module, attribute, wrong = CONTROLS[control]
    monkeypatch.setattr(module, attribute, wrong)
    try:
        counts, _ = count(method, {}, WARM, CLOSE, samples_of(method))
    except AssertionError as error:
        assert control == "unchecked_first_token" and "impossible token" in str(error)
        return
    assert chance(counts, joint(WARM)) < FALSE_ALARM, misfit(counts, joint(WARM))


class FewSeeds(sampling.Draws):
    """The numbers of every tenth seed, ten times."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed // 10)


SHORT_CONTROLS: Mapping[str, tuple[str, Any, str, Any]] = {
    "argmax_draft_with_softmax_q": ("draft_model", writer, "draw", lambda q, uniform: int(q.argmax())),
    "biased_residual": ("kangaroo", accept, "residual", lambda p, q: p),
    "discarded_misses": ("prompt_lookup", accept, "sampled", discarded_misses),
    "every_tenth_seed_ten_times": ("jacobi", sampling, "Draws", FewSeeds),
}


@pytest.mark.parametrize("control", choose(SHORT_CONTROLS, {"every_tenth_seed_ten_times"}))  # only short runs show it
def test_the_test_of_short_runs_rejects(control: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mistakes that a run's first three tokens show, and one that only many runs together show."""
    method, module, attribute, wrong = SHORT_CONTROLS[control]
    monkeypatch.setattr(module, attribute, wrong)
    params, setting = SHORT_RUNS[method]
    counts, _ = count_runs(method, params, setting, SAMPLES)
    assert chance(counts, joint(setting)) < FALSE_ALARM, misfit(counts, joint(setting))


SETTINGS = [WARM, FILTERED, {"temperature": 0.7}, {"temperature": 1.0, "top_k": 3}, {"temperature": 1.1, "top_k": 4}]


@pytest.mark.parametrize("samples", DETECTED)
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_the_power_is_as_stated(setting: Params, samples: int) -> None:
    """The bias that is always seen, for every distribution of this file, and what is pooled away before."""
    expected, (distance, rarest) = joint(setting) * samples, DETECTED[samples]
    cells = pooled(expected, expected)
    assert cells[0] / samples < rarest and cells.min() >= 5.0
    assert power(len(cells) - 1, samples, distance) >= 0.99


def test_the_hardest_bias_is_seen_and_the_right_distribution_is_not_rejected() -> None:
    """Power and false alarms, simulated: independent samples of the distribution, and of one at the stated distance."""
    distribution, source, times = joint(WARM), np.random.default_rng(1), 1000
    order = np.argsort(distribution)
    signs = np.empty_like(distribution)
    for cell in order[::-1]:  # as much mass up as down
        signs[cell] = (
            -1.0 if (distribution * np.nan_to_num(signs))[distribution > distribution[cell]].sum() > 0 else 1.0
        )
    distance, _ = DETECTED[ALL_SAMPLES]
    biased = distribution * (1 + 2 * distance * signs)
    biased /= biased.sum()
    assert abs(biased - distribution).sum() / 2 == pytest.approx(distance, rel=0.02)
    seen = sum(chance(source.multinomial(ALL_SAMPLES, biased), distribution) < FALSE_ALARM for _ in range(times))
    assert seen >= 0.985 * times
    assert all(chance(source.multinomial(ALL_SAMPLES, distribution), distribution) > FALSE_ALARM for _ in range(times))


@pytest.mark.parametrize("rule", [accept.sampled, lenient], ids=["strict", "lenient"])
def test_a_uniform_of_zero_accepts_nothing_impossible(rule: Chooser, monkeypatch: pytest.MonkeyPatch) -> None:
    """`u * q <= p` accepts a token of probability zero when u is zero; zeros are made frequent here to show it."""
    fresh, asked = sampling.Draws.fresh, itertools.count()
    monkeypatch.setattr(sampling.Draws, "fresh", lambda self: 0.0 if next(asked) % 7 == 0 else fresh(self))
    monkeypatch.setattr(accept, "sampled", rule)
    setting = {"temperature": 1.0, "top_k": 3}
    try:
        counts, _ = count("draft_model", {"gamma": 2}, setting, SHORT_SIGHTED, SAMPLES // 3)
        impossible = bool(counts[joint(setting) == 0.0].any())
    except AssertionError:
        impossible = True
    assert impossible == (rule is lenient)
