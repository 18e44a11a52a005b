"""Medusa: Cai et al., 2024, arXiv 2401.10774."""

from __future__ import annotations

from decoding.types import JSON

from .claims import ROUGH, Claim, Judgement, Paper, Statement, combine, falls, is_more, more, rises
from .experiment import SPEED, TOKENS, Experiment, Setting, compare_speeds, compare_tokens, using
from .tables import ResultTable, UnmeasuredError

USUAL = using("medusa")
CHAIN = using("medusa", tree="given", paths="0;0,0;0,0,0;0,0,0,0;0,0,0,0,0")  # the best guesses only

_GROWN = (16, 63, 128, 255)  # guesses of sparse trees
_DENSE = ("16,15", "6,5,7", "4,3,4,4", "3,3,3,2,2")  # guesses of each head: 256, 246, 256 and 201 together
_SPARSE = "sparse, 63"
_TEMPERATURES = (0.25, 0.5, 0.75, 1.0)
_EPSILONS = (0.01, 0.05, 0.09, 0.15, 0.25)
_USUAL_TEMPERATURE = 0.7
_TYPICAL, _LOSSLESS = "typical", "lossless"


def count_heads(experiment: Experiment) -> int:
    """Count the heads, which is how many of their guesses a step accepts at most; two at least."""
    if missing := experiment.engine.lacks("medusa"):
        raise UnmeasuredError(f"medusa needs {missing}")
    count: int = experiment.engine.part("medusa").count
    if count < 2:
        raise UnmeasuredError("this needs two Medusa heads at least")
    return count


def _trees(experiment: Experiment) -> ResultTable:
    heads = count_heads(experiment)
    fitting = [sizes for sizes in _DENSE if len(sizes.split(",")) <= heads]  # a deeper one would be cut
    dense = {f"dense, {sizes}": using("medusa", tree="cartesian", sizes=sizes) for sizes in fitting}
    return compare_tokens(experiment, "tree", {_SPARSE: USUAL} | dense)


def judge_trees(table: ResultTable) -> Judgement:
    """Judge whether the small sparse tree beats the dense ones' mean, and the best of them."""
    sparse = table.number(_SPARSE, TOKENS)
    dense = {name: table.number(name, TOKENS) for name in table.names if name != _SPARSE}
    best = max(dense, key=lambda name: dense[name])
    return combine(
        more("the sparse tree", sparse, "the dense ones' mean", sum(dense.values()) / len(dense)),
        more("the sparse tree", sparse, f"the best of them, {best}", dense[best]),
    )


def _sizes(experiment: Experiment) -> ResultTable:
    return compare_speeds(experiment, "guesses", {str(size): using("medusa", size=size) for size in _GROWN})


def judge_sizes(table: ResultTable) -> Judgement:
    """Judge whether larger trees save few steps more, and are slower."""
    tokens, speed = table.column(TOKENS), table.column(SPEED)
    steady = Statement(
        f"tokens per step go from {tokens[1]:.3f} with {table.names[1]} guesses to {tokens[-1]:.3f} with "
        f"{table.names[-1]}",
        not is_more(tokens[1], tokens[-1]),
    )
    return combine(steady, falls(f"the speed from {table.names[1]} guesses on", speed[1:], ROUGH))


def _temperatures(experiment: Experiment) -> ResultTable:
    kinds: dict[str, dict[str, JSON]] = {_TYPICAL: {"acceptance": "typical"}, _LOSSLESS: {}}
    settings = [
        using("medusa", temperature=temperature, **params) for temperature in _TEMPERATURES for params in kinds.values()
    ]
    values = iter(tally.per_step() for tally in experiment.tally(*settings))
    rows = tuple((f"{temperature}", next(values), next(values)) for temperature in _TEMPERATURES)
    return ResultTable(("temperature", *kinds), rows)


def judge_temperatures(table: ResultTable) -> Judgement:
    """Judge whether typical acceptance gains with the temperature, and lossless acceptance loses."""
    return combine(
        rises("typical acceptance, the temperature rising,", table.column(_TYPICAL), ROUGH),
        falls("lossless acceptance, the temperature rising,", table.column(_LOSSLESS), ROUGH),
    )


def _thresholds(experiment: Experiment) -> ResultTable:
    def at(**params: JSON) -> Setting:
        return using("medusa", temperature=_USUAL_TEMPERATURE, **params)

    typical = {
        f"typical, {epsilon}": at(acceptance="typical", epsilon=epsilon, delta=round(epsilon**0.5, 4))
        for epsilon in _EPSILONS
    }
    return compare_tokens(experiment, "epsilon", {_LOSSLESS: at()} | typical)


def judge_thresholds(table: ResultTable) -> Judgement:
    """Judge whether a higher threshold accepts less; the lowest accepts more than sampling does."""
    typical = table.column(TOKENS)[1:]
    return combine(
        falls("typical acceptance, epsilon rising,", typical, ROUGH),
        more("the lowest epsilon", typical[0], "lossless sampling", table.number(_LOSSLESS, TOKENS), ROUGH),
    )


def _joint(experiment: Experiment) -> ResultTable:
    joint = [name for name, variant in experiment.variants.items() if variant.part == "medusa-2"]
    if not joint:
        raise UnmeasuredError("Medusa-2 changes the model too: name what `train medusa` made of both with --medusa-2")
    return compare_tokens(experiment, "heads", {"Medusa-1": USUAL, "Medusa-2": using("medusa", variant=joint[0])})


def judge_joint(table: ResultTable) -> Judgement:
    """Judge whether heads that learnt together with their model guess better."""
    two, one = table.number("Medusa-2", TOKENS), table.number("Medusa-1", TOKENS)
    return combine(more("Medusa-2", two, "Medusa-1", one))


PAPER = Paper(
    "medusa",
    "Medusa",
    "Cai et al. 2024, arXiv 2401.10774",
    (
        Claim(
            place="Figure 6a",
            title="a sparse tree beats a much larger dense one",
            finding="A tree of 64 nodes, grown where the heads are right most often, has a better acceleration rate "
            "than dense trees of 256.",
            measured="The default tree of 63 guesses against full products of 201 to 256, none of more heads than "
            "there are: that many guesses of each head.",
            rule="The sparse tree gives more tokens per step than the dense ones' mean, and than the best of them.",
            take=_trees,
            judge=judge_trees,
        ),
        Claim(
            place="Figure 6b",
            title="larger trees are slower",
            finding="With more nodes the acceleration rate stays about the same, and the speed falls.",
            measured=f"Sparse trees of {', '.join(map(str, _GROWN))} guesses, raced against autoregressive decoding.",
            rule=f"From {_GROWN[1]} guesses on, tokens per step do not fall, and the speed does.",
            take=_sizes,
            judge=judge_sizes,
        ),
        Claim(
            place="Section 3.3.1",
            title="typical acceptance rises with the temperature",
            finding="Rejection sampling accepts less at higher temperatures; typical acceptance accepts more.",
            measured=f"Medusa at temperatures {', '.join(map(str, _TEMPERATURES))}: tokens per step of typical "
            "acceptance, with epsilon 0.09 and delta 0.3, and of lossless acceptance. Both draw a step's last token, "
            "which the paper takes greedily.",
            rule="With the temperature, tokens per step rise under typical acceptance, and fall under lossless "
            "acceptance.",
            take=_temperatures,
            judge=judge_temperatures,
        ),
        Claim(
            place="Figure 7",
            title="a higher epsilon accepts less",
            finding="As epsilon rises from 0.01 to 0.25, quality rises and the acceleration rate falls.",
            measured=f"Medusa at temperature {_USUAL_TEMPERATURE}, delta the root of epsilon. Quality is not judged "
            "here.",
            rule="Tokens per step fall with epsilon, and the lowest epsilon gives more than lossless sampling.",
            take=_thresholds,
            judge=judge_thresholds,
        ),
        Claim(
            place="Figure 4a, Table 2",
            title="training heads and model together guesses better",
            finding="Medusa-2, whose model learns with the heads, is faster than Medusa-1, whose model is frozen.",
            measured="Both on the same questions, each with its own model and its own sparse tree.",
            rule="Medusa-2 gives more tokens per step than Medusa-1.",
            take=_joint,
            judge=judge_joint,
        ),
    ),
)
