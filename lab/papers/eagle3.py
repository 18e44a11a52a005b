"""EAGLE-3: Li et al., 2025, arXiv 2503.01840; its trees are those of EAGLE-2, arXiv 2406.16858."""

from __future__ import annotations

from functools import partial

from .claims import Claim, Judgement, Paper, beats, combine, more, rises
from .experiment import MEAN, TOKENS, Experiment, Setting, Variant, compare_rivals, compare_tokens, using
from .lookahead import BALANCED
from .medusa import USUAL as HEADS
from .tables import ResultTable, UnmeasuredError

USUAL = using("eagle3")
_CHAIN = using("eagle3", form="chain", gamma=6)
_SIZES = (6, 15, 30, 60)  # guesses of trees
_OWN, _SMALL, _HEADS, _WINDOW = "EAGLE-3", "Draft model", "Medusa", "Lookahead"
_RIVALS = {_OWN: USUAL, _SMALL: using("draft_model"), _HEADS: HEADS, _WINDOW: BALANCED}
_TREE, _LINE = "tree", "chain"
_MORE = "name a folder of trained drafters, one folder each, with --eagle-variants"
_TRAINED = "each made by `train eagle3` with the same steps and its own --taps or --test-time-steps"


def _forms(experiment: Experiment) -> ResultTable:
    trees = {f"{_TREE}, {m}": using("eagle3", m=m) for m in _SIZES}
    return compare_tokens(experiment, "form", {_LINE: _CHAIN} | trees)


def judge_forms(table: ResultTable) -> Judgement:
    """Judge whether trees write more with more guesses, and the paper's writes more than a chain as deep."""
    trees = [table.number(f"{_TREE}, {m}", TOKENS) for m in _SIZES]
    return combine(
        rises(f"trees of {_SIZES[0]} to {_SIZES[-1]} guesses", trees),
        more(f"the tree of {_SIZES[-1]}", trees[-1], "the chain", table.number(_LINE, TOKENS)),
    )


def _ablation(experiment: Experiment, fact: str, other: str) -> ResultTable:
    """Return the drafters that differ in one fact alone, where the other is at its highest."""
    settings: dict[int, Setting] = {}
    variants = {name: each for name, each in experiment.variants.items() if each.part == "eagle"}
    highest = max((_number(each, other) for each in variants.values()), default=0)
    for name, variant in variants.items():
        if _number(variant, other) == highest:
            settings.setdefault(_number(variant, fact), using("eagle3", variant=name))
    if len(settings) < 2:
        raise UnmeasuredError(f"this needs drafters with different {fact}: {_MORE}")
    return compare_tokens(experiment, fact, {str(number): settings[number] for number in sorted(settings)})


def _number(variant: Variant, fact: str) -> int:
    return int(variant.facts[fact])


def _judge_ablation(table: ResultTable, what: str) -> Judgement:
    return combine(rises(f"{what} from {table.names[0]} to {table.names[-1]}", table.column(TOKENS)))


def _claims() -> tuple[Claim, ...]:
    grid = "A tree of 60 guesses, 10 after a token, 6 deep"
    return (
        Claim(
            place="Table 1",
            title="one drafter on features writes more than its rivals",
            finding="EAGLE-3 accepts more tokens per step than Medusa, Lookahead and plain speculative sampling.",
            measured=f"{grid}; a draft model with gamma 5; Medusa's sparse tree; Lookahead (5, 15, 15). Tokens per "
            "step by kind of question; a rival whose part is missing is left out.",
            rule="EAGLE-3's mean over the kinds is more than that of each rival.",
            take=partial(compare_rivals, settings=_RIVALS),
            judge=partial(beats, head=MEAN),
        ),
        Claim(
            place="Figure 6 of EAGLE-2",
            title="a dynamic tree accepts more than a chain",
            finding="Trees that grow where the drafter is sure accept more than chains, and more with more guesses.",
            measured=f"Trees of {', '.join(map(str, _SIZES))} guesses, 10 after a token, 6 deep, and a chain of 6.",
            rule=f"Tokens per step rise with the guesses, and the tree of {_SIZES[-1]} writes more than the chain.",
            take=_forms,
            judge=judge_forms,
        ),
        Claim(
            place="Table 2",
            title="several tapped layers guess better than one",
            finding="Features of a low, a middle and a high layer raise the accepted length above that of the top "
            "layer alone.",
            measured=f"Drafters that tap different numbers of layers, {_TRAINED}; {grid.lower()}.",
            rule="Tokens per step rise with the tapped layers.",
            take=partial(_ablation, fact="tapped layers", other="guesses learnt"),
            judge=partial(_judge_ablation, what="tapped layers"),
        ),
        Claim(
            place="Table 2",
            title="training-time test makes later guesses right",
            finding="A drafter that has learnt on its own output accepts more than one that has learnt its first guess "
            "alone.",
            measured=f"Drafters that learnt different numbers of guesses, {_TRAINED}; {grid.lower()}.",
            rule="Tokens per step rise with the guesses learnt.",
            take=partial(_ablation, fact="guesses learnt", other="tapped layers"),
            judge=partial(_judge_ablation, what="guesses learnt"),
        ),
    )


PAPER = Paper("eagle3", "EAGLE-3", "Li et al. 2025, arXiv 2503.01840", _claims())
