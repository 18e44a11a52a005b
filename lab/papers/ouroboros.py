"""Ouroboros: Zhao et al., 2024, arXiv 2402.13720."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from decoding.types import JSON, Step

from .claims import ROUGH, Claim, Judgement, Paper, Statement, combine, faster, is_more, more, rises
from .experiment import SPEED, TOKENS, Experiment, Question, compare_speeds, compare_tokens, using
from .lookahead import BALANCED
from .tables import ResultTable, UnmeasuredError

_SIZES: dict[str, JSON] = {"gamma": 8, "N": 5, "W": 8, "G": 8}
_BARE, _INSPIRED, _SUFFIXES, _BOTH, _REFINED, _WHOLE = (
    "drafting alone",
    "inspiration",
    "suffixes",
    "suffixes, inspiration",
    "suffixes, refinement",
    "all three",
)
_ABLATION: dict[str, dict[str, JSON]] = {
    _BARE: {"K": 0, "inspire": False, "refine": "never"},
    _INSPIRED: {"K": 0, "inspire": True, "refine": "never"},
    _SUFFIXES: {"K": 3, "inspire": False, "refine": "never"},
    _BOTH: {"K": 3, "inspire": True, "refine": "never"},
    _REFINED: {"K": 3, "inspire": False, "refine": "always"},
    _WHOLE: {"K": 3, "inspire": True, "refine": "always"},
}
_KS = (0, 1, 3, 6, 12)
_LONG = 20  # gamma of the paper's Table 1
_MATCHES, _PREFIX = "matching tokens", "common prefix"
_COLD, _GROUPED, _TURNS, _SHUFFLED = "cold", "warm, kind by kind", "warm, kinds in turn", "warm, shuffled"
_SPECULATIVE, _LOOKAHEAD, _OUROBOROS, _WARM = "speculative decoding", "Lookahead", "Ouroboros", "Ouroboros, warm"
_THEIRS = "tokens/s in the paper"
_FOUND_3 = dict(zip(_ABLATION, (49.90, 48.90, 55.92, 56.97, 57.23, 58.18), strict=True))
_FOUND_4 = {_COLD: 32.68, _GROUPED: 36.00, _TURNS: 35.36, _SHUFFLED: 35.39}


def _agreement(experiment: Experiment) -> ResultTable:
    matches, prefixes, drafts = 0, 0, 0

    def see(question: Question, steps: list[Step]) -> None:
        nonlocal matches, prefixes, drafts
        for step in steps:
            if step.drafted == _LONG:
                drafts += 1
                prefixes += step.accepted
                matches += sum(token == choice for token, choice in zip(step.tokens[1:], step.choices, strict=False))

    experiment.watch(using("draft_model", gamma=_LONG), see)
    if drafts == 0:
        raise UnmeasuredError(f"no answer was long enough for a draft of {_LONG} tokens")
    return ResultTable(("drafts", _PREFIX, _MATCHES), ((f"{drafts:,}", prefixes / drafts, matches / drafts),))


def judge_agreement(table: ResultTable) -> Judgement:
    """Judge whether target and drafter agree at more positions than before the first mistake."""
    [matches], [prefix] = table.column(_MATCHES), table.column(_PREFIX)
    return combine(more(f"of {_LONG} drafted tokens the number that match", matches, "the common prefix", prefix))


def _overall(experiment: Experiment) -> ResultTable:
    settings = {
        _SPECULATIVE: using("draft_model", gamma=_SIZES["gamma"]),
        _LOOKAHEAD: BALANCED,
        _OUROBOROS: using("ouroboros", **_SIZES, **_ABLATION[_WHOLE]),
        _WARM: using("ouroboros", alone=True, warm_start="across", **_SIZES, **_ABLATION[_WHOLE]),
    }
    return compare_speeds(experiment, "method", settings)


def judge_overall(table: ResultTable) -> Judgement:
    """Judge whether Ouroboros is faster than its parts alone, and still faster with a warm start."""
    speed = {name: table.number(name, SPEED) for name in table.names}
    tokens, fewer = table.number(_OUROBOROS, TOKENS), table.number(_SPECULATIVE, TOKENS)
    return combine(
        more("a step of Ouroboros", tokens, "speculative decoding with the same gamma", fewer),
        *(faster(_OUROBOROS, speed[_OUROBOROS], name, speed[name]) for name in (_SPECULATIVE, _LOOKAHEAD)),
        faster(_OUROBOROS, speed[_OUROBOROS], "autoregressive decoding", 1.0),
        faster("a warm start", speed[_WARM], "a cold one", speed[_OUROBOROS]),
    )


def _ablation(experiment: Experiment) -> ResultTable:
    settings = {name: using("ouroboros", **_SIZES, **params) for name, params in _ABLATION.items()}
    return compare_speeds(experiment, "parts", settings).beside(_THEIRS, _FOUND_3)


def judge_ablation(table: ResultTable) -> Judgement:
    """Judge whether suffixes add, and with them inspiration and refinement do."""
    pairs = ((_SUFFIXES, _BARE), (_BOTH, _SUFFIXES), (_WHOLE, _REFINED), (_REFINED, _SUFFIXES), (_WHOLE, _BOTH))
    value = {name: table.number(name, TOKENS) for name in table.names}
    return combine(*(more(f'"{rich}"', value[rich], f'"{poor}"', value[poor]) for rich, poor in pairs))


def _suffixes(experiment: Experiment) -> ResultTable:
    return compare_speeds(experiment, "setting", {f"K={K}": using("ouroboros", K=K, **_SIZES) for K in _KS})


def judge_suffixes(table: ResultTable) -> Judgement:
    """Judge whether more suffixes save steps, and neither none nor the most are the fastest."""
    speeds = table.column(SPEED)
    best = speeds.index(max(speeds))
    speeds_in_words = (
        f"the fastest, {table.names[best]}, runs at {speeds[best]:.2f} times the autoregressive speed, "
        + " and ".join(f"{table.names[end]} at {speeds[end]:.2f}" for end in (0, -1))
    )
    return combine(
        rises(f"K {', '.join(map(str, _KS))}", table.column(TOKENS)),
        Statement(speeds_in_words, all(is_more(speeds[best], speeds[end], ROUGH) for end in (0, -1))),
    )


def _orders(kinds: Sequence[str]) -> dict[str, list[int]]:
    """Make orders of questions of these kinds: kind by kind, one of each in turn, and shuffled."""
    places = list(dict.fromkeys(kinds))
    seen = [kinds[:number].count(kind) for number, kind in enumerate(kinds)]
    numbers = range(len(kinds))
    return {
        _GROUPED: sorted(numbers, key=lambda number: places.index(kinds[number])),
        _TURNS: sorted(numbers, key=lambda number: (seen[number], places.index(kinds[number]))),
        _SHUFFLED: Random(0).sample(numbers, len(kinds)),
    }


def _locality(experiment: Experiment) -> ResultTable:
    whole = {**_SIZES, **_ABLATION[_WHOLE]}
    settings = {_COLD: using("ouroboros", **whole)}
    for name, order in _orders([question.kind for question in experiment.questions]).items():
        settings[name] = using("ouroboros", alone=True, order=order, warm_start="across", **whole)
    return compare_tokens(experiment, "start", settings).beside(_THEIRS, _FOUND_4)


def judge_locality(table: ResultTable) -> Judgement:
    """Judge whether a warm start helps in any order, and the order matters less."""
    cold, grouped, shuffled = (table.number(name, TOKENS) for name in (_COLD, _GROUPED, _SHUFFLED))
    order, warmth = abs(grouped - shuffled), shuffled - cold
    return combine(
        more("warm and kind by kind, a step", grouped, "a cold start", cold),
        more("warm and shuffled, a step", shuffled, "a cold start", cold),
        more("kind by kind, a step", grouped, "shuffled kinds", shuffled),
        Statement(
            f"the order changes a step by {order:.3f}, the warm start by {warmth:.3f}", is_more(warmth, order, ROUGH)
        ),
    )


PAPER = Paper(
    "ouroboros",
    "Ouroboros",
    "Zhao et al. 2024, arXiv 2402.13720",
    (
        Claim(
            place="Table 1",
            title="much of a rejected draft is right",
            finding="The target agrees with a draft at many more positions than in the common prefix alone.",
            measured=f"Draft model with gamma {_LONG}: means over all full drafts. Behind a mistake the target goes on "
            "from the draft, not from its own text.",
            rule="More tokens match than the common prefix holds.",
            take=_agreement,
            judge=judge_agreement,
        ),
        Claim(
            place="Table 2, Figure 4",
            title="drafting by phrases is faster",
            finding=(
                "Ouroboros is faster than speculative and Lookahead decoding, and a warm start makes it faster still."
            ),
            measured=f"Ouroboros with gamma {_SIZES['gamma']}, N=5, W=G=8 and K=3, cold and warm; speculative decoding "
            "with the same gamma; Lookahead (5, 15, 15); raced against autoregressive decoding.",
            rule="Ouroboros gives more tokens per step than speculative decoding; it is faster than that, than "
            "Lookahead and than autoregressive decoding; and faster warm than cold.",
            take=_overall,
            judge=judge_overall,
        ),
        Claim(
            place="Table 3",
            title="suffixes, inspiration and refinement all help",
            finding="Each part speeds decoding up: suffixes most, inspiration and refinement where there are suffixes.",
            measured="Ouroboros without a warm start, its parts switched on one by one. Judged by tokens per step, "
            "which no clock blurs; without suffixes inspiration can save passes of the drafter only.",
            rule="Suffixes give more tokens per step than drafting alone; inspiration and refinement add to suffixes, "
            "each with and without the other.",
            take=_ablation,
            judge=judge_ablation,
        ),
        Claim(
            place="Figure 5",
            title="there is a best number of suffixes",
            finding="Fewer or more suffixes than the best number are slower.",
            measured=f"Ouroboros with K {', '.join(map(str, _KS))}, raced against autoregressive decoding.",
            rule="Tokens per step rise with K, and the fastest K is neither the smallest nor the largest.",
            take=_suffixes,
            judge=judge_suffixes,
        ),
        Claim(
            place="Table 4",
            title="a warm start helps, whatever came before",
            finding="Phrases of earlier texts speed decoding up, most where questions of one kind follow each other, "
            "but the order matters less than the warm start itself.",
            measured="Ouroboros cold, and warm over the same questions in three orders, each from an empty pool.",
            rule="Warm gives more tokens per step than cold in both orders, kind by kind more than shuffled, and the "
            "order changes less than the warm start does.",
            take=_locality,
            judge=judge_locality,
        ),
    ),
)
