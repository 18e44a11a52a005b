"""Kangaroo: Liu et al., 2024, arXiv 2404.18911."""

from __future__ import annotations

from collections import defaultdict
from functools import partial

from .claims import ROUGH, Claim, Judgement, Paper, Statement, beats, combine, falls, faster, is_more, rises
from .experiment import MEAN, SPEED, TOKENS, Experiment, Setting, Variant, compare_rivals, compare_speeds, using
from .lookahead import BALANCED
from .medusa import CHAIN, count_heads
from .tables import ResultTable, UnmeasuredError

USUAL = using("kangaroo", gamma=6, eta=0.6)
MATHS = ("arithmetic", "math_reasoning", "gsm8k", "math")

_GAMMAS, _ETAS = (3, 6, 9), (0.0, 0.2, 0.4, 0.6, 0.8)
_GAMMA = 6  # the paper's
_OWN, _HEADS, _RETRIEVED, _WINDOW = "Kangaroo", "Medusa, best guesses", "REST", "Lookahead"
_RIVALS = {_OWN: USUAL, _HEADS: CHAIN, _RETRIEVED: using("rest"), _WINDOW: BALANCED}
_PAPERS, _TABLE_2 = "kangaroo", {"kangaroo": 1.50, "kangaroo_head": 1.44, "transformer": 1.37, "mlp_only": 1.22}
_TRAINED = "each made by `train kangaroo --exit-layer L --architecture NAME` with its own L or NAME"
_MORE = "name a folder of trained adapters, one folder each, with --kangaroo-variants"


def _consistency(experiment: Experiment) -> ResultTable:
    kind = experiment.find_kind(*MATHS)
    adapter, heads = experiment.tally(using("kangaroo", gamma=_GAMMA, eta=0.0), CHAIN)
    windows = range(
        1, min(_GAMMA, count_heads(experiment)) + 1
    )  # of a longer one heads accept none, whatever they guess
    rows = tuple((f"{w}", adapter.consistent(w, kind), heads.consistent(w, kind)) for w in windows)
    return ResultTable(("w", _OWN, _HEADS), rows)


def judge_consistency(table: ResultTable) -> Judgement:
    """Judge whether the share of accepted windows falls with their length, and is Kangaroo's at every length."""
    adapter, heads = table.column(_OWN), table.column(_HEADS)
    above = [w for w, a, b in zip(table.names, adapter, heads, strict=True) if is_more(a, b)]
    decay = falls("CTAR of Kangaroo over w", adapter)
    ahead = f"Kangaroo's CTAR is above that of Medusa's best guesses at {len(above)} of {len(adapter)} lengths"
    return combine(decay, Statement(ahead, len(above) == len(adapter)))


def _eta_name(gamma: int, eta: float) -> str:
    return f"gamma {gamma}, eta {eta}"


def _etas(experiment: Experiment) -> ResultTable:
    cells = [(gamma, eta) for gamma in _GAMMAS for eta in _ETAS]
    return compare_speeds(
        experiment, "setting", {_eta_name(*cell): using("kangaroo", gamma=cell[0], eta=cell[1]) for cell in cells}
    )


def judge_threshold(table: ResultTable) -> Judgement:
    """Judge whether never stopping early writes most per step, and is not the fastest."""
    names = [_eta_name(_GAMMA, eta) for eta in _ETAS]
    tokens, speeds = ([table.number(name, head) for name in names] for head in (TOKENS, SPEED))
    best = speeds.index(max(speeds[1:]), 1)
    return combine(falls("eta from 0 to 0.8", tokens), faster(f"eta {_ETAS[best]}", speeds[best], "eta 0", speeds[0]))


def judge_steady(table: ResultTable) -> Judgement:
    """Judge whether the fastest eta, or its neighbour, is the same for every gamma; it holds where it is the same."""
    speeds = {gamma: [table.number(_eta_name(gamma, eta), SPEED) for eta in _ETAS] for gamma in _GAMMAS}
    best = {gamma: values.index(max(values)) for gamma, values in speeds.items()}
    fastest = ", ".join(f"eta {_ETAS[i]} for gamma {gamma}" for gamma, i in best.items())
    apart = max(best.values()) - min(best.values())
    return combine(
        Statement(f"the fastest are {fastest}", apart == 0),
        Statement(
            f"the farthest of them are {apart} {'place' if apart == 1 else 'places'} of the grid apart", apart <= 1
        ),
    )


def _adapters(experiment: Experiment) -> dict[str, Variant]:
    return {name: variant for name, variant in experiment.variants.items() if variant.part == "kangaroo"}


def _depths(experiment: Experiment) -> ResultTable:
    by_architecture: defaultdict[str, dict[int, Setting]] = defaultdict(dict)
    by_architecture[_PAPERS] = {}  # the first of equals
    for name, variant in _adapters(experiment).items():
        setting = using("kangaroo", variant=name, gamma=6, eta=0.6)
        by_architecture[variant.facts["architecture"]].setdefault(variant.facts["exit_layer"], setting)
    architecture, layers = max(by_architecture.items(), key=lambda item: len(item[1]))
    if len(layers) < 2:
        raise UnmeasuredError(f"this needs adapters of one architecture after several layers: {_MORE}")
    return compare_speeds(
        experiment, f"{architecture}, exit layer", {str(layer): layers[layer] for layer in sorted(layers)}
    )


def judge_depths(table: ResultTable) -> Judgement:
    """Judge whether a deeper exit guesses better, while the deepest is not the fastest."""
    speeds = table.column(SPEED)
    best = speeds.index(max(speeds))
    speeds_in_words = (
        f"the fastest exit, after layer {table.names[best]}, runs at {speeds[best]:.2f} times the autoregressive "
        f"speed, the deepest, after {table.names[-1]}, at {speeds[-1]:.2f}"
    )
    return combine(
        rises("the exit moved deeper", table.column(TOKENS)),
        Statement(speeds_in_words, is_more(speeds[best], speeds[-1], ROUGH)),
    )


def _architectures(experiment: Experiment) -> ResultTable:
    by_layer: defaultdict[int, dict[str, Setting]] = defaultdict(dict)
    for name, variant in _adapters(experiment).items():
        setting = using("kangaroo", variant=name, gamma=6, eta=0.6)
        by_layer[variant.facts["exit_layer"]].setdefault(variant.facts["architecture"], setting)
    fitting = [settings for settings in by_layer.values() if len(settings) > 1 and _PAPERS in settings]
    if not fitting:
        raise UnmeasuredError(f"this needs adapters of several architectures after one layer: {_MORE}")
    most = max(fitting, key=len)
    table = compare_speeds(experiment, "architecture", {_PAPERS: most.pop(_PAPERS)} | most)
    return table.beside("speed in the paper", _TABLE_2)


_GRID = (
    f"gamma {', '.join(map(str, _GAMMAS))} and eta {', '.join(map(str, _ETAS))}, raced against autoregressive decoding"
)

PAPER = Paper(
    "kangaroo",
    "Kangaroo",
    "Liu et al. 2024, arXiv 2404.18911",
    (
        Claim(
            place="Table 1",
            title="one adapter compresses more than its rivals",
            finding="Verifying a single sequence, Kangaroo compresses more than Medusa, REST and Lookahead, averaged "
            "over the kinds of Spec-Bench.",
            measured="Kangaroo with gamma 6 and eta 0.6; Medusa's best guess of every head; REST; Lookahead (5, 15, "
            "15). Tokens per step by kind of question; a rival whose part is missing is left out.",
            rule="Kangaroo's mean over the kinds is more than that of each rival.",
            take=partial(compare_rivals, settings=_RIVALS),
            judge=partial(beats, head=MEAN),
        ),
        Claim(
            place="Figure 1a",
            title="guesses that know each other stay right for longer",
            finding="On mathematical questions CTAR(w), the chance that w guesses in a row are accepted, falls with w, "
            "and Kangaroo's stays above that of Medusa's independent heads.",
            measured="Kangaroo with gamma 6 and eta 0, and Medusa's best guesses, on arithmetic: the share of steps "
            "that wrote more than w tokens, for w up to the number of Medusa's heads, which can accept no more.",
            rule="Kangaroo's CTAR falls with w, and is above Medusa's at every w.",
            take=_consistency,
            judge=judge_consistency,
        ),
        Claim(
            place="Figure 3b",
            title="stopping when unsure costs tokens per step and gains speed",
            finding="Fixed steps, eta 0, reach the highest compression rate, but a threshold is faster.",
            measured=f"Kangaroo with {_GRID}; judged at gamma {_GAMMA}.",
            rule="Tokens per step fall as eta rises, and some eta above 0 is faster than eta 0.",
            take=_etas,
            judge=judge_threshold,
        ),
        Claim(
            place="Figure 3b",
            title="one threshold fits every number of steps",
            finding="The best eta is the same for different maximum numbers of drafting steps.",
            measured=f"Kangaroo with {_GRID}.",
            rule="The fastest eta is the same for every gamma; in part, where they are neighbours on the grid.",
            take=_etas,
            judge=judge_steady,
        ),
        Claim(
            place="Figure 3a",
            title="a shallow exit is the best bargain",
            finding="A deeper exit guesses better but drafts more slowly, so a shallow one is the fastest.",
            measured=f"An adapter after each of several layers, {_TRAINED}, raced against autoregressive decoding.",
            rule="Tokens per step rise with the exit's depth, and the deepest exit is not the fastest.",
            take=_depths,
            judge=judge_depths,
        ),
        Claim(
            place="Table 2",
            title="attention alone, with the target's own head, is enough",
            finding="The adapter of one attention and two norms is faster than one with a head of its own, than a "
            "whole layer, and than an MLP.",
            measured=f"Adapters of several architectures after one layer, {_TRAINED}, raced against autoregressive "
            "decoding.",
            rule="The paper's adapter is faster than each of the others.",
            take=_architectures,
            judge=partial(beats, head=SPEED, margin=ROUGH),
        ),
    ),
)
