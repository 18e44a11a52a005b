"""N-Grammys: Stewart et al., 2024, arXiv 2411.03786."""

from __future__ import annotations

from collections import Counter
from functools import partial

from decoding.types import JSON, Step

from .claims import ROUGH, Claim, Judgement, Paper, Statement, beats, combine, faster, is_more, more, rises
from .experiment import (
    MEAN,
    SPEED,
    TOKENS,
    Experiment,
    Question,
    compare_rivals,
    compare_speeds,
    compare_tokens,
    using,
)
from .lookahead import BALANCED
from .tables import ResultTable

USUAL = using("ngrammys", k=10, w=10)
_RIVALS = {"N-Grammys (10, 10)": USUAL, "Lookahead (5, 15, 15)": BALANCED, "REST": using("rest")}

_RANKS = (1, 5, 25)
_STRATEGIES: dict[str, dict[str, JSON]] = {
    "unigram": {"strategy": "unigram"},
    "bigram": {"strategy": "bigram"},
    "extended, w=2": {"strategy": "extended", "w": 2},
    "extended, w=3": {"strategy": "extended", "w": 3},
}
_KS, _WS = (1, 5, 10, 25), (2, 6, 10)
_TAIL = 3  # ranks after this one are the tail
_HALF = 0.5
_ROWS, _WON, _LENGTH, _SHORT, _LATE, _WHOLE = (
    "rows/step",
    "steps won",
    "accepted when won",
    "of 1 or 2 tokens",
    f"rank above {_TAIL}",
    "kinds with a whole row",
)


def _name(what: str, k: int) -> str:
    return f"{what}, k={k}"


def _strategies(experiment: Experiment) -> ResultTable:
    settings = {
        _name(what, k): using("ngrammys", k=k, **params) for what, params in _STRATEGIES.items() for k in _RANKS
    }
    return compare_tokens(experiment, "guesses", settings)


def judge_strategies(table: ResultTable) -> Judgement:
    """Judge whether more ranks give more, bigrams beat unigrams, and the second token adds more than the third."""
    value = {what: [table.number(_name(what, k), TOKENS) for k in _RANKS] for what in _STRATEGIES}
    most = {what: values[-1] for what, values in value.items()}
    two, three = most["extended, w=2"] - most["bigram"], most["extended, w=3"] - most["extended, w=2"]
    return combine(
        rises(f"the bigram with k {', '.join(map(str, _RANKS))}", value["bigram"]),
        more(f"the bigram with k={_RANKS[-1]}", most["bigram"], "the unigram", most["unigram"]),
        more("w=2", most["extended, w=2"], "w=1", most["bigram"]),
        Statement(f"the second token adds {two:+.3f} and the third {three:+.3f}", is_more(two, three, ROUGH)),
    )


def _cell(k: int, w: int) -> str:
    return f"k={k}, w={w}"


def _grid(experiment: Experiment) -> ResultTable:
    return compare_speeds(experiment, "setting", {_cell(k, w): using("ngrammys", k=k, w=w) for k in _KS for w in _WS})


def judge_grid(table: ResultTable) -> Judgement:
    """Judge whether both k and w add tokens per step, and the largest setting is not the fastest."""
    tokens = {(k, w): table.number(_cell(k, w), TOKENS) for k in _KS for w in _WS}
    speeds = {name: table.number(name, SPEED) for name in table.names}
    best, largest = max(speeds, key=lambda name: speeds[name]), _cell(_KS[-1], _WS[-1])
    return combine(
        rises(f"w={_WS[-1]} with k {', '.join(map(str, _KS))}", [tokens[k, _WS[-1]] for k in _KS]),
        rises(f"k={_KS[-1]} with w {', '.join(map(str, _WS))}", [tokens[_KS[-1], w] for w in _WS]),
        faster(f"the fastest setting, {best},", speeds[best], f"the largest, {largest},", speeds[largest]),
    )


def _queries(experiment: Experiment) -> ResultTable:
    return compare_tokens(
        experiment, "query", {"q=1": USUAL} | {f"q={q}": using("ngrammys", k=10, w=10, q=q) for q in (2, 3)}
    )


class _Winners:
    """Counts the fates of the rows of each strategy."""

    def __init__(self) -> None:
        self.steps = 0
        self.counts = {strategy: Counter[str]() for strategy in ("context", "bigram")}
        self.whole: dict[str, set[str]] = {"context": set(), "bigram": set()}  # kinds where a whole row was accepted

    def see(self, question: Question, steps: list[Step]) -> None:
        """Count a run."""
        for step in steps:
            rows, winner = step.panel.get("rows", []), step.panel.get("winner")
            self.steps += 1
            for row in rows:
                self.counts[row["strategy"]]["rows"] += 1
            if winner is None:
                continue
            strategy = rows[winner]["strategy"]
            rank = 1 + (winner if strategy == "context" else rows[winner]["rank"])  # among its own kind
            count = self.counts[strategy]
            count.update(won=1, accepted=step.accepted, short=step.accepted <= 2, late=rank > _TAIL)
            if step.accepted == dict(USUAL.params)["w"]:
                self.whole[strategy].add(question.kind)


def _ablation(experiment: Experiment) -> ResultTable:
    winners = _Winners()
    experiment.watch(USUAL, winners.see)
    rows = []
    for strategy, count in winners.counts.items():
        won = max(1, count["won"])
        shares = (count["accepted"] / won, count["short"] / won, count["late"] / won)
        rows.append((strategy, count["rows"] / winners.steps, count["won"], *shares, len(winners.whole[strategy])))
    return ResultTable(
        ("rows from", _ROWS, _WON, _LENGTH, _SHORT, _LATE, _WHOLE), tuple(rows), {"kinds": len(experiment.kinds)}
    )


def judge_ablation(table: ResultTable) -> Judgement:
    """Judge whether context rows reach further, bigram rows are short and ranked lower, and whole rows occur
    everywhere.
    """
    deep, flat = (table.number(row, _LATE) for row in ("bigram", "context"))
    short, whole, kinds = table.number("bigram", _SHORT), table.number("context", _WHOLE), table.facts["kinds"]
    return combine(
        more("a won context row", table.number("context", _LENGTH), "a bigram row", table.number("bigram", _LENGTH)),
        Statement(f"{short:.0%} of the won bigram rows are of one or two tokens", short >= _HALF),
        Statement(f"{deep:.0%} of them and {flat:.0%} of the context's ranked below {_TAIL}", is_more(deep, flat)),
        Statement(f"whole context rows were accepted on {whole:.0f} of {kinds:.0f} kinds of questions", whole == kinds),
    )


PAPER = Paper(
    "ngrammys",
    "N-Grammys",
    "Stewart et al. 2024, arXiv 2411.03786",
    (
        Claim(
            place="Figure 2",
            title="the model's own n-grams are worth verifying many at once",
            finding="Tokens per call grow with the ranks k that are tried; the bigram beats the unigram; a second "
            "token along the bigram adds to it, a third little more.",
            measured="Unigram, bigram, and the bigram extended to 2 and 3 tokens, with k "
            f"{', '.join(map(str, _RANKS))}.",
            rule=f"The bigram rises with k; at k={_RANKS[-1]} it beats the unigram, w=2 beats it, and the third token "
            "adds less than the second.",
            take=_strategies,
            judge=judge_strategies,
        ),
        Claim(
            place="Figures 3 and 5",
            title="the largest batch is not the fastest",
            finding="Tokens per call grow with k and with w, but so does the cost of a call: the fastest setting lies "
            "between.",
            measured=f"The mixed strategy with k {', '.join(map(str, _KS))} and w {', '.join(map(str, _WS))}, raced "
            "against autoregressive decoding.",
            rule=f"Tokens per step rise with k at w={_WS[-1]} and with w at k={_KS[-1]}, and another setting is faster "
            "than the largest.",
            take=_grid,
            judge=judge_grid,
        ),
        Claim(
            place="Figure 4",
            title="context rows reach far, bigram rows are robust",
            finding="Bigram rows bring one or two tokens, from ranks far down as well; context rows reach further, "
            "whole rows of ten tokens on every task.",
            measured="The mixed strategy with (k, w) = (10, 10): the longest accepted row of every step, the source it "
            "came from, and its rank among the rows of that source.",
            rule="Won context rows are longer; at least half of the won bigram rows are of 1 or 2 tokens; more of them "
            f"than of the context's ranked below {_TAIL}; whole context rows are accepted on every kind of question.",
            take=_ablation,
            judge=judge_ablation,
        ),
        Claim(
            place="Table 1",
            title="without training, more than Lookahead and REST",
            finding="With (k, w) = (10, 10) a 7B model runs faster than with Lookahead and REST on chat and "
            "mathematics, and a little slower on code.",
            measured="Tokens per step of N-Grammys, Lookahead and REST by kind of question; REST is left out where "
            "there is no datastore.",
            rule="N-Grammys' mean over the kinds is more than that of each rival.",
            take=partial(compare_rivals, settings=_RIVALS),
            judge=partial(beats, head=MEAN),
        ),
        Claim(
            place="Footnote 2",
            title="a query of one token is best",
            finding="Queries of two and three tokens give fewer tokens per call for all models.",
            measured="The mixed strategy with (k, w) = (10, 10) and queries of 1, 2 and 3 tokens.",
            rule="One token gives more tokens per step than two and than three.",
            take=_queries,
            judge=partial(beats, head=TOKENS),
        ),
    ),
)
