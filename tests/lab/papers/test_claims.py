"""Every verdict comes from numbers: each claim's rule is given some that bear it out and some that do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from decoding.errors import ModelError
from lab.papers import PAPERS
from lab.papers.claims import (
    Claim,
    ClaimOutcome,
    Statement,
    beats,
    check_claims,
    combine,
    falls,
    faster,
    is_more,
    more,
    rises,
)
from lab.papers.experiment import MEAN, SPEED, TOKENS, Experiment
from lab.papers.tables import ResultTable, UnmeasuredError

CLAIMS = {(name, claim.title): claim for name, paper in PAPERS.items() for claim in paper.claims}
Rows = Mapping[str, float | Sequence[float]]


def table(rows: Rows, heads: Sequence[str] = (TOKENS,), facts: Mapping[str, float] | None = None) -> ResultTable:
    """Rows by name, with one number or several."""
    cells = tuple((name, *(row if isinstance(row, Sequence) else (row,))) for name, row in rows.items())
    return ResultTable(("name", *heads), cells, facts or {})


def grid(S: Mapping[tuple[int, int], float]) -> ResultTable:
    """Figure 4's table."""
    rows = {f"N={gamma + 1}, b={b}": (gamma, b, value, 1.0) for (gamma, b), value in S.items()}
    return table(rows, ("gamma", "b", TOKENS, "equation 7"))


def gammas(measured: Sequence[float], equation: Sequence[float]) -> ResultTable:
    rows = {str(i): (a, b, a, 0.5) for i, (a, b) in enumerate(zip(measured, equation, strict=True), start=1)}
    facts = {"alpha": 0.6, "correlation of neighbours": 0.2}
    return table(rows, (TOKENS, "equation 4", "by own chances", "acceptance"), facts)


def etas(tokens: Sequence[float], **speeds: Sequence[float]) -> ResultTable:
    """Kangaroo's grid; speeds as g3, g6, g9."""
    cells = (0.0, 0.2, 0.4, 0.6, 0.8)
    rows = {
        f"gamma {name[1:]}, eta {eta}": (tokens[i], values[i])
        for name, values in speeds.items()
        for i, eta in enumerate(cells)
    }
    return table(rows, (TOKENS, SPEED))


def kw(tokens: Sequence[Sequence[float]], speeds: Sequence[Sequence[float]]) -> ResultTable:
    """N-Grammys' grid."""
    rows = {
        f"k={k}, w={w}": (tokens[i][j], speeds[i][j])
        for i, k in enumerate((1, 5, 10, 25))
        for j, w in enumerate((2, 6, 10))
    }
    return table(rows, (TOKENS, SPEED))


def ranks(unigram: float, bigram: Sequence[float], two: float, three: float) -> ResultTable:
    """N-Grammys' Figure 2, with k 1, 5 and 25."""
    rows = {}
    for what, last in (("unigram", unigram), ("extended, w=2", two), ("extended, w=3", three)):
        rows |= {f"{what}, k={k}": last for k in (1, 5, 25)}
    return table(rows | {f"bigram, k={k}": value for k, value in zip((1, 5, 25), bigram, strict=True)})


WIN = ("rows/step", "steps won", "accepted when won", "of 1 or 2 tokens", "rank above 3", "kinds with a whole row")
EVEN, WIDE, THIRTY = "(5, 15, 15)", "(5, 30, 1)", "(5, 1, 30)"
PARTS = (
    "drafting alone",
    "inspiration",
    "suffixes",
    "suffixes, inspiration",
    "suffixes, refinement",
    "all three",
)
HELD = {(gamma, b): 1 + gamma * (i + 1) / 20 for gamma in (2, 4, 6) for i, b in enumerate((1, 2, 4, 8, 16, 32))}
FLAT = {(gamma, b): 2 - gamma * (i % 3 + 1) / 20 for gamma in (2, 4, 6) for i, b in enumerate((1, 2, 4, 8, 16, 32))}

# Of every claim: a table that bears all of it out, and one that bears out nothing of it.
CASES: dict[tuple[str, str], tuple[ResultTable, ResultTable]] = {
    ("jacobi", "it hardly saves steps"): (
        table({"block of 4": 1.02, "block of 8": 1.04, "Lookahead": 1.6}),
        table({"block of 4": 1.3, "block of 8": 1.7, "Lookahead": 1.6}),
    ),
    ("lookahead", "balanced branches beat tiny ones"): (
        table({EVEN: 1.96, WIDE: 1.79, THIRTY: 1.12, "(10, 1, 3) with prompt": 1.45}),
        table({EVEN: 1.4, WIDE: 1.79, THIRTY: 1.42, "(10, 1, 3) with prompt": 1.45}),
    ),
    ("lookahead", "the prompt as reference adds"): (
        table({EVEN: 1.96, f"{EVEN} with prompt": 2.05, THIRTY: 1.12, f"{THIRTY} with prompt": 1.59}),
        table({EVEN: 1.96, f"{EVEN} with prompt": 1.96, THIRTY: 1.6, f"{THIRTY} with prompt": 1.59}),
    ),
    ("lookahead", "prompt lookup uses the prompt better"): (
        table({"prompt lookup": 1.55, "(10, 1, 3) with prompt": 1.45, "(5, 1, 10) with prompt": 1.51}),
        table({"prompt lookup": 1.35, "(10, 1, 3) with prompt": 1.45, "(5, 1, 10) with prompt": 1.51}),
    ),
    ("lookahead", "steps fall with the logarithm of what is spent"): (grid(HELD), grid(FLAT)),
    ("lookahead", "one alpha and one f explain all of it"): (
        table({"N=3, b=1": (2, 1, 1.1, 1.1)}, ("gamma", "b", TOKENS, "x"), {"alpha": 0.4, "f": 3, "explained": 0.97}),
        table({"N=3, b=1": (2, 1, 1.1, 1.1)}, ("gamma", "b", TOKENS, "x"), {"alpha": 0.4, "f": 3, "explained": 0.4}),
    ),
    ("lookahead", "sampling saves fewer steps"): (
        table({"greedy": 1.72, "temperature 1": 1.64}),
        table({"greedy": 0.9, "temperature 1": 1.0}),
    ),
    ("lookahead", "code gains most"): (
        table({EVEN: (1.6, 2.0, 1.5, 1.3)}, (MEAN, "code", "chat", "qa")),
        table({EVEN: (1.6, 1.2, 1.5, 1.3)}, (MEAN, "coding", "chat", "qa")),
    ),
    ("speculative", "the expected tokens of a step"): (
        gammas([1.6, 2.0, 2.2, 2.3, 2.4, 2.5, 2.45, 2.5], [1.65, 2.1, 2.3, 2.4, 2.5, 2.6, 2.6, 2.6]),
        gammas([2.5, 2.4, 2.3, 2.2, 2.1, 2.0, 1.8, 1.6], [1.65, 2.1, 2.3, 2.4, 2.5, 2.6, 2.6, 2.6]),
    ),
    ("speculative", "sampling lowers acceptance"): (
        table({"greedy": (0.75, 3.1, 0.7), "temperature 1": (0.62, 2.5, 0.5)}, ("alpha", TOKENS, "acceptance")),
        table({"greedy": (0.6, 2.5, 0.7), "temperature 1": (0.62, 2.5, 0.5)}, ("alpha", TOKENS, "acceptance")),
    ),
    ("medusa", "a sparse tree beats a much larger dense one"): (
        table({"sparse, 63": 3.2, "dense, 16,15": 2.5, "dense, 6,5,7": 3.0}),
        table({"sparse, 63": 2.6, "dense, 16,15": 2.5, "dense, 6,5,7": 3.0}),
    ),
    ("medusa", "larger trees are slower"): (
        table({"16": (2.0, 1.5), "63": (2.4, 1.6), "128": (2.5, 1.4), "255": (2.5, 1.0)}, (TOKENS, SPEED)),
        table({"16": (2.0, 1.5), "63": (2.4, 1.6), "128": (2.3, 1.7), "255": (2.2, 1.9)}, (TOKENS, SPEED)),
    ),
    ("medusa", "typical acceptance rises with the temperature"): (
        table({"0.25": (2.0, 2.4), "0.5": (2.2, 2.2), "1.0": (2.6, 1.9)}, ("typical", "lossless")),
        table({"0.25": (2.6, 1.4), "0.5": (2.2, 1.5), "1.0": (2.0, 1.9)}, ("typical", "lossless")),
    ),
    ("medusa", "a higher epsilon accepts less"): (
        table({"lossless": 2.0, "typical, 0.01": 3.0, "typical, 0.09": 2.6, "typical, 0.25": 2.5}),
        table({"lossless": 2.0, "typical, 0.01": 1.9, "typical, 0.09": 2.0, "typical, 0.25": 2.5}),
    ),
    ("medusa", "training heads and model together guesses better"): (
        table({"Medusa-1": 2.3, "Medusa-2": 2.9}),
        table({"Medusa-1": 2.3, "Medusa-2": 2.31}),
    ),
    ("kangaroo", "one adapter compresses more than its rivals"): (
        table({"Kangaroo": (1.9, 2.1), "REST": (1.7, 2.2), "Lookahead": (1.5, 1.4)}, (MEAN, "chat")),
        table({"Kangaroo": (1.4, 2.1), "REST": (1.7, 1.2), "Lookahead": (1.5, 1.4)}, (MEAN, "chat")),
    ),
    ("kangaroo", "guesses that know each other stay right for longer"): (
        table({"1": (0.7, 0.6), "2": (0.5, 0.3), "3": (0.3, 0.0)}, ("Kangaroo", "Medusa, best guesses")),
        table({"1": (0.3, 0.6), "2": (0.5, 0.3), "3": (0.7, 0.7)}, ("Kangaroo", "Medusa, best guesses")),
    ),
    ("kangaroo", "stopping when unsure costs tokens per step and gains speed"): (
        etas([2.5, 2.4, 2.3, 2.1, 1.8], g6=[1.2, 1.3, 1.5, 1.4, 1.1]),
        etas([1.8, 2.1, 2.3, 2.4, 2.5], g6=[1.5, 1.3, 1.2, 1.1, 1.0]),
    ),
    ("kangaroo", "one threshold fits every number of steps"): (
        etas([1.0] * 5, g3=[1, 2, 3, 2, 1], g6=[1, 1, 3, 2, 1], g9=[0, 1, 2, 1, 0]),
        etas([1.0] * 5, g3=[4, 2, 3, 2, 1], g6=[1, 1, 3, 2, 1], g9=[0, 1, 2, 1, 5]),
    ),
    ("kangaroo", "a shallow exit is the best bargain"): (
        table({"1": (1.5, 1.4), "2": (1.8, 1.5), "4": (2.2, 1.1)}, (TOKENS, SPEED)),
        table({"1": (2.5, 1.1), "2": (1.8, 1.2), "4": (1.2, 1.4)}, (TOKENS, SPEED)),
    ),
    ("kangaroo", "attention alone, with the target's own head, is enough"): (
        table({"kangaroo": (1.5, 1.5), "transformer": (1.6, 1.37), "mlp_only": (1.2, 1.2)}, (TOKENS, SPEED)),
        table({"kangaroo": (1.5, 1.1), "transformer": (1.6, 1.37), "mlp_only": (1.2, 1.2)}, (TOKENS, SPEED)),
    ),
    ("eagle3", "one drafter on features writes more than its rivals"): (
        table({"EAGLE-3": (3.1, 3.0), "Draft model": (2.7, 3.2), "Medusa": (2.1, 2.0)}, (MEAN, "chat")),
        table({"EAGLE-3": (2.0, 3.0), "Draft model": (2.7, 2.2), "Medusa": (2.1, 2.0)}, (MEAN, "chat")),
    ),
    ("eagle3", "a dynamic tree accepts more than a chain"): (
        table({"chain": 2.5, "tree, 6": 2.4, "tree, 15": 2.8, "tree, 30": 3.0, "tree, 60": 3.1}),
        table({"chain": 3.5, "tree, 6": 3.4, "tree, 15": 2.8, "tree, 30": 3.0, "tree, 60": 3.1}),
    ),
    ("eagle3", "several tapped layers guess better than one"): (
        table({"1": 2.5, "3": 2.9}),
        table({"1": 2.5, "3": 2.4}),
    ),
    ("eagle3", "training-time test makes later guesses right"): (
        table({"1": 1.9, "2": 2.3, "4": 2.5}),
        table({"1": 2.6, "2": 2.3, "4": 2.5}),
    ),
    ("ngrammys", "the model's own n-grams are worth verifying many at once"): (
        ranks(1.2, [1.1, 1.2, 1.3], 1.5, 1.6),
        ranks(1.4, [1.5, 1.2, 1.3], 1.2, 1.5),
    ),
    ("ngrammys", "the largest batch is not the fastest"): (
        kw(
            [[1.2, 1.3, 1.4], [1.5, 1.6, 1.7], [1.8, 1.9, 2.0], [1.9, 2.0, 2.1]],
            [[1.2] * 3, [1.6] * 3, [1.4] * 3, [1.0] * 3],
        ),
        kw(
            [[1.9, 1.9, 1.9], [1.5, 1.6, 1.4], [1.4, 1.3, 1.2], [1.3, 1.2, 1.1]],
            [[1.0] * 3, [1.1] * 3, [1.2] * 3, [1.3] * 3],
        ),
    ),
    ("ngrammys", "context rows reach far, bigram rows are robust"): (
        table({"context": (4.0, 50, 4.2, 0.4, 0.1, 3), "bigram": (6.0, 40, 1.4, 0.9, 0.4, 0)}, WIN, {"kinds": 3}),
        table({"context": (4.0, 50, 1.2, 0.9, 0.4, 1), "bigram": (6.0, 40, 3.4, 0.3, 0.1, 0)}, WIN, {"kinds": 3}),
    ),
    ("ngrammys", "without training, more than Lookahead and REST"): (
        table(
            {"N-Grammys (10, 10)": (2.1, 2.0), "Lookahead (5, 15, 15)": (1.7, 2.2), "REST": (1.9, 1.0)}, (MEAN, "qa")
        ),
        table(
            {"N-Grammys (10, 10)": (1.6, 2.0), "Lookahead (5, 15, 15)": (1.7, 1.2), "REST": (1.9, 1.0)}, (MEAN, "qa")
        ),
    ),
    ("ngrammys", "a query of one token is best"): (
        table({"q=1": 2.1, "q=2": 2.0, "q=3": 1.9}),
        table({"q=1": 1.9, "q=2": 2.0, "q=3": 1.9}),
    ),
    ("ouroboros", "much of a rejected draft is right"): (
        table({"100": (5.0, 12.0)}, ("common prefix", "matching tokens")),
        table({"100": (5.0, 5.0)}, ("common prefix", "matching tokens")),
    ),
    ("ouroboros", "drafting by phrases is faster"): (
        table(
            {
                "speculative decoding": (3.0, 1.2),
                "Lookahead": (1.9, 1.3),
                "Ouroboros": (3.3, 1.5),
                "Ouroboros, warm": (3.4, 1.6),
            },
            (TOKENS, SPEED),
        ),
        table(
            {
                "speculative decoding": (3.0, 1.2),
                "Lookahead": (1.9, 1.3),
                "Ouroboros": (3.0, 0.9),
                "Ouroboros, warm": (3.4, 0.8),
            },
            (TOKENS, SPEED),
        ),
    ),
    ("ouroboros", "suffixes, inspiration and refinement all help"): (
        table(dict(zip(PARTS, (2.0, 2.0, 2.3, 2.4, 2.5, 2.6), strict=True))),
        table(dict(zip(PARTS, (2.5, 2.5, 2.3, 2.3, 2.2, 2.1), strict=True))),
    ),
    ("ouroboros", "there is a best number of suffixes"): (
        table({"K=0": (2.0, 1.1), "K=3": (2.3, 1.3), "K=12": (2.4, 1.0)}, (TOKENS, SPEED)),
        table({"K=0": (2.4, 1.3), "K=3": (2.3, 1.2), "K=12": (2.0, 1.0)}, (TOKENS, SPEED)),
    ),
    ("ouroboros", "a warm start helps, whatever came before"): (
        table({"cold": 2.0, "warm, kind by kind": 2.5, "warm, kinds in turn": 2.4, "warm, shuffled": 2.4}),
        table({"cold": 2.5, "warm, kind by kind": 2.0, "warm, kinds in turn": 2.4, "warm, shuffled": 2.4}),
    ),
    ("rest", "a larger datastore gives more"): (
        table({"a sixteenth": 1.5, "a quarter": 1.8, "all": 2.1}),
        table({"a sixteenth": 1.5, "a quarter": 1.4, "all": 1.3}),
    ),
    ("rest", "a longer suffix helps at first"): (
        table({"1": 1.5, "2": 1.7, "4": 1.9, "8": 2.0, "16": 2.0}),
        table({"1": 1.9, "2": 1.7, "4": 1.5, "8": 2.0, "16": 2.4}),
    ),
    ("rest", "code is retrieved better than chat"): (
        table({"REST": (2.0, 2.3, 1.7)}, (MEAN, "code", "chat")),
        table({"REST": (2.0, 1.3, 1.7)}, (MEAN, "code", "chat")),
    ),
    ("token_recycling", "it guesses where nothing matches"): (
        table(
            {"Token Recycling": (2.2, 2.0, 1.9, 2.5), "prompt lookup": (1.6, 1.3, 2.9, 1.2)},
            (MEAN, "qa", "rag", "chat"),
        ),
        table(
            {"Token Recycling": (1.2, 1.2, 1.9, 1.1), "prompt lookup": (1.6, 1.3, 1.2, 1.2)},
            (MEAN, "qa", "rag", "chat"),
        ),
    ),
    ("token_recycling", "what earlier answers left is of use"): (
        table({"empty for every answer": 1.8, "kept from answer to answer": 2.2}),
        table({"empty for every answer": 2.2, "kept from answer to answer": 2.2}),
    ),
    ("suffix", "it grows with repetition"): (
        table({"1": 1.9, "2": 2.9, "4": 4.1}),
        table({"1": 1.9, "2": 1.8, "4": 1.9}),
    ),
    ("suffix", "both trees together are best"): (
        table({"this text": 1.3, "earlier answers": 1.8, "both": 1.95}),
        table({"this text": 1.3, "earlier answers": 1.95, "both": 1.29}),
    ),
}


@pytest.mark.parametrize("key", CLAIMS, ids=": ".join)
def test_a_verdict_follows_the_numbers(key: tuple[str, str]) -> None:
    good, bad = CASES[key]
    assert CLAIMS[key].judge(good).verdict is ClaimOutcome.HOLDS
    assert CLAIMS[key].judge(bad).verdict is ClaimOutcome.FAILS


def test_no_case_is_of_a_claim_that_is_gone() -> None:
    assert set(CASES) == set(CLAIMS)


@pytest.mark.parametrize("key", CLAIMS, ids=": ".join)
def test_a_sentence_tells_the_numbers(key: tuple[str, str]) -> None:
    """A verdict without its numbers must be taken on trust."""
    for case in CASES[key]:
        says = CLAIMS[key].judge(case).says
        assert says.endswith(".") and any(letter.isdigit() for letter in says)


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=[title for _, title in CLAIMS])
def test_a_claim_is_told_in_whole_sentences(claim: Claim) -> None:
    for text in (claim.finding, claim.measured, claim.rule):
        assert text.endswith(".") and text[0] == text[0].upper()
        assert "  " not in text and "!" not in text


def test_neighbouring_thresholds_count_in_part() -> None:
    claim = CLAIMS["kangaroo", "one threshold fits every number of steps"]
    judgement = claim.judge(etas([1.0] * 5, g3=[1, 2, 3, 2, 1], g6=[1, 1, 2, 3, 1], g9=[0, 1, 2, 1, 0]))
    assert judgement.verdict is ClaimOutcome.PARTLY and "eta 0.6 for gamma 6" in judgement.says


def test_a_scale_on_which_nothing_is_saved_has_no_slope() -> None:
    claim = CLAIMS["lookahead", "one alpha and one f explain all of it"]
    assert claim.judge(grid(dict.fromkeys(HELD, 1.0))).verdict is ClaimOutcome.FAILS


@pytest.mark.parametrize("chats", ["chat", "mt_bench", "conversation"])
def test_rest_s_chats_have_the_name_of_their_suite(chats: str) -> None:
    """pocket's, Spec-Bench's and our English tasks call them differently; a name left out is a claim unmeasured."""
    claim = CLAIMS["rest", "code is retrieved better than chat"]
    assert claim.judge(table({"REST": (2.0, 2.3, 1.7)}, (MEAN, "code", chats))).verdict is ClaimOutcome.HOLDS


def test_parts_make_a_verdict() -> None:
    right, wrong = Statement("up it goes", True), Statement("down it comes", False)
    assert combine(right, right).verdict is ClaimOutcome.HOLDS
    assert combine(wrong).verdict is ClaimOutcome.FAILS
    both = combine(right, wrong, remark="that is all")
    assert both.verdict is ClaimOutcome.PARTLY
    assert both.says == "As in the paper, up it goes; unlike it, down it comes; that is all."
    assert combine(Statement("k=5 is best", True)).says == "k=5 is best."


def test_what_is_compared_with_others_is_no_disagreement_of_its_own() -> None:
    judgement = beats(table({"N-Grammys": 2.1, "Lookahead": 1.7, "REST": 2.2}), TOKENS)
    assert judgement.says == (
        "N-Grammys reaches 2.100; as in the paper, Lookahead reaches 1.700; unlike it, REST reaches 2.200."
    )


def test_differences_within_the_margin_bear_nothing_out() -> None:
    close = table({"cold": 2.0, "warm, kind by kind": 2.401, "warm, kinds in turn": 2.2, "warm, shuffled": 2.2005})
    says = CLAIMS["ouroboros", "a warm start helps, whatever came before"].judge(close).says
    assert "unlike it, the order changes a step by 0.200, the warm start by 0.200" in says
    says = (
        CLAIMS["ngrammys", "the model's own n-grams are worth verifying many at once"]
        .judge(ranks(1.2, [1.1, 1.2, 1.3], 1.5, 1.6995))
        .says
    )
    assert "unlike it, the second token adds +0.200 and the third +0.200" in says
    fast = table({"1": (1.5, 1.41), "2": (1.8, 1.40), "4": (2.2, 1.40)}, (TOKENS, SPEED))
    assert CLAIMS["kangaroo", "a shallow exit is the best bargain"].judge(fast).verdict is ClaimOutcome.PARTLY
    near = table({"K=0": (2.0, 1.0), "K=3": (2.3, 1.31), "K=12": (2.4, 1.3)}, (TOKENS, SPEED))
    assert CLAIMS["ouroboros", "there is a best number of suffixes"].judge(near).verdict is ClaimOutcome.PARTLY


def test_more_means_clearly_more() -> None:
    assert is_more(1.01, 1.0) and not is_more(1.009, 1.0) and not is_more(0.0, 0.0) and is_more(0.1, 0.0)
    assert more("a", 2.0, "b", 1.0).holds and not more("a", 1.0, "b", 2.0).holds
    assert faster("a", 2.0, "b", 1.0).holds and not faster("a", 1.0, "b", 1.0).holds


def test_runs_of_numbers() -> None:
    """A plateau is no turn, a drop between is one, and a run that ends where it began goes nowhere."""
    assert rises("x", [1.0, 1.2, 1.195, 1.3]).holds
    assert not rises("x", [1.0, 1.3, 1.2, 1.4]).holds
    assert not rises("x", [1.0, 1.001, 1.002]).holds
    assert falls("x", [0.5, 0.2, 0.0, 0.0]).holds and not falls("x", [0.0, 0.0]).holds
    assert falls("x", [3.0, 2.0]).says == "x reaches 3.000, 2.000"


def test_what_cannot_be_measured_stops_nothing(experiment: Experiment) -> None:
    def missing(experiment: Experiment) -> ResultTable:
        raise UnmeasuredError("there is no ruler")

    def broken(experiment: Experiment) -> ResultTable:
        raise ModelError("the heads are damaged: fetch them again")

    got: list[tuple[str, float]] = []
    paper, claim = PAPERS["jacobi"], PAPERS["jacobi"].claims[0]
    claims = [
        Claim(claim.place, claim.title, claim.finding, claim.measured, claim.rule, take, claim.judge)
        for take in (missing, broken, lambda experiment: CASES["jacobi", claim.title][0])
    ]
    findings = check_claims(
        experiment,
        [type(paper)(paper.name, paper.title, paper.citation, tuple(claims))],
        lambda what, share: got.append((what, share)),
    )
    assert [finding.judgement.verdict for finding in findings] == [
        ClaimOutcome.UNMEASURED,
        ClaimOutcome.UNMEASURED,
        ClaimOutcome.HOLDS,
    ]
    assert [finding.table is None for finding in findings] == [True, True, False]
    assert findings[0].judgement.says == "There is no ruler."
    assert "damaged" in findings[1].judgement.says
    assert [share for _, share in got] == [0.0, 1 / 3, 2 / 3] and claim.title in got[0][0]
