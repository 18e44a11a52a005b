"""SuffixDecoding's drafts against its rule written out as scans, and against the authors' own library."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch

from decoding.methods.base import Context
from decoding.methods.suffix import Suffix, SuffixParams
from decoding.sampling import Sampler, Sampling
from decoding.tree import path_to
from decoding.types import Draft, Verdict
from tests import GOLDEN
from tests.toys import counted_text, cycle, engine, plain

SETTINGS: list[dict[str, Any]] = [
    {},
    {"alpha": 3.0, "epsilon": 0.0, "depth": 7},
    {"alpha": 2.0, "c": 3, "epsilon": 0.3, "look_in": "local"},
    {"alpha": 1.5, "look_in": "global", "depth": 5},
    {"alpha": 2.0, "shape": "chain", "count_end": True},
    {"shape": "chain", "epsilon": 0.5, "depth": 3},
]


@dataclass
class Node:
    """A guess of the rule: its path, how often that came next, and D."""

    path: tuple[int, ...]
    count: int
    share: float


@dataclass
class Best:
    """The guesses after one ending."""

    p: int = 0
    nodes: list[Node] = field(default_factory=list)

    @property
    def score(self) -> float:
        return sum(node.share for node in self.nodes)


def context(text: Sequence[int], memory: dict[str, Any], *, remaining: int = 99, ends: Iterable[int] = ()) -> Context:
    sampler, prompt = Sampler(Sampling(), 9, torch.device("cpu"), text), min(3, len(text))
    most = len(text) - prompt + remaining
    return Context(list(text), prompt, most, sampler, end_tokens=frozenset(ends), memory=memory)


def remember(answers: Iterable[Sequence[int]], params: SuffixParams) -> dict[str, Any]:
    """Return a memory in which runs have written these answers."""
    memory = dict[str, Any]()
    for answer in answers:
        method = Suffix(context([1], memory), params)
        draft = method.propose()
        method.observe(draft, Verdict((0,), tuple(answer), (0,)))
    return memory


def behind(texts: Sequence[Sequence[int]], run: Sequence[int]) -> Iterator[int | None]:
    """Yield the token after each occurrence of a run; None at a text's end."""
    n = len(run)
    for text in texts:
        for end in range(n, len(text) + 1):
            if list(text[end - n : end]) == list(run):
                yield text[end] if end < len(text) else None


def latest(texts: Sequence[Sequence[int]], run: Sequence[int]) -> tuple[int, int]:
    """Return the last text and place at which a run ends."""
    ends = ((i, end) for i, text in enumerate(texts) for end in range(len(run), len(text) + 1))
    return max((i, end) for i, end in ends if list(texts[i][end - len(run) : end]) == list(run))


def replayed(came: Iterable[int | None]) -> list[int | None]:
    """Return what followed in the order of the reference code, which moves a token up as little as its count allows.

    Tokens of one count are a group. The first of a group moves to the front of the next one, any other to its end.
    """
    counts, order = Counter[int | None](), list[int | None]()
    for token in came:
        if token is None:
            continue
        if token not in counts:
            order.append(token)
        group = [each for each in order if counts[each] == counts[token]]
        above = [each for each in order if counts[each] == counts[token] + 1]
        counts[token] += 1
        if group[0] == token and above and counts[token] > 1:
            order.remove(token)
            order.insert(order.index(above[0]), token)
        elif group[0] != token and counts[token] > 1:
            order.remove(token)
            order.insert(order.index(group[0]), token)
    return order


def grown(texts: Sequence[Sequence[int]], ending: Sequence[int], most: int, deepest: int, params: SuffixParams) -> Best:
    """Return the rule of L3, each time by looking at all places again."""
    best = Best(len(ending), [Node((), 0, 1.0)])
    open_nodes: list[tuple[float, int, Node]] = []
    number, grow_from = 0, best.nodes[0]
    while True:
        came = Counter(behind(texts, [*ending, *grow_from.path]))
        total = sum(came.values()) - (0 if params.count_end else came[None])
        below = [(token, count) for token, count in came.items() if token is not None]
        if params.count_end:
            order = [token for token in replayed(behind(texts, [*ending, *grow_from.path])) if token is not None]
            below.sort(key=lambda pair: order.index(pair[0]))
        else:
            below.sort(key=lambda pair: (-pair[1], *(-at for at in latest(texts, [*ending, *grow_from.path, pair[0]]))))
        if len(grow_from.path) < deepest:
            for token, count in below[: 1 if params.shape == "chain" else None]:
                share = grow_from.share * count / total
                if share + 1e-9 >= params.epsilon:
                    number += 1
                    open_nodes.append((-share, number, Node((*grow_from.path, token), count, share)))
        if not open_nodes or len(best.nodes) > most:
            break
        open_nodes.sort(key=lambda entry: entry[:2])
        grow_from = open_nodes.pop(0)[2]
        best.nodes.append(grow_from)
    best.nodes = best.nodes[1 : most + 1]
    return best


def speculated(texts: Sequence[Sequence[int]], text: Sequence[int], params: SuffixParams, room: int) -> Best:
    """Return the best tree over all endings; of equals the one of the longest."""
    best = Best()
    for p in range(1, min(params.depth, len(text)) + 1):
        ending = text[len(text) - p :]
        if not [*behind(texts, ending)]:
            break
        most = min(int(params.alpha * p + 1e-6), params.c)
        tree = grown(texts, ending, most, min(params.depth - p, room), params)
        if tree.nodes and tree.score >= best.score - 1e-9:
            best = tree
    return best


def paths(draft: Draft) -> list[tuple[tuple[int, ...], int]]:
    """Return the draft's paths in the order of its nodes, and the counts that their sources tell."""
    listed = list[tuple[tuple[int, ...], int]]()
    for node in range(1, len(draft.tokens)):
        path = tuple(draft.tokens[i] for i in path_to(draft.parents, node)[1:])
        listed.append((path, int(draft.sources[node].split(":")[1])))
    return listed


def texts_of(seed: int) -> tuple[list[list[int]], list[int]]:
    """Return earlier answers, and a text, of a few words."""
    chance = random.Random(seed)
    words = range(chance.choice((2, 3, 5)))
    answers = [chance.choices(words, k=chance.randint(1, 25)) for _ in range(chance.randint(0, 4))]
    text = chance.choices(words, k=chance.randint(1, 25))
    if answers and seed % 3 == 0:  # what follows is known from an answer, and not from the text
        text += answers[0][: len(answers[0]) // 2 + 1]
    return answers, text


@pytest.mark.sampled
@pytest.mark.parametrize("params", SETTINGS, ids=str)
def test_the_draft_is_the_one_that_scans_find(params: dict[str, Any]) -> None:
    """Wrong counts or shares, the wrong ending, the wrong tree of the two, or a limit missed by one."""
    setting, chosen = SuffixParams(**params), Counter[str]()
    for seed in range(150):
        answers, text = texts_of(seed)
        method = Suffix(context(text, remember(answers, setting), remaining=1 + seed % 12), setting)
        draft, panel = method.propose(), method.panel()
        room = seed % 12
        sides = {
            "local": speculated([text], text, setting, room),
            "global": speculated(answers, text, setting, room),
        }
        if setting.look_in != "both":
            sides = {setting.look_in: sides[setting.look_in]}
        name = max(sides, key=lambda side: (round(sides[side].score, 9), side == "local"))
        best = sides[name]
        assert sorted(paths(draft)) == sorted((node.path, node.count) for node in best.nodes), (seed, text, answers)
        assert {source.split(":")[0] for source in draft.sources[1:]} <= {name}
        for side, key in (("local", "local"), ("global", "earlier")):
            if side in sides:
                told = panel[key]  # type: ignore[literal-required]
                assert told["score"] == pytest.approx(sides[side].score, abs=1e-4)
                assert (told["p"], told["guesses"]) == (sides[side].p * bool(sides[side].nodes), len(sides[side].nodes))
        if best.nodes:
            assert panel["ending"] == text[len(text) - best.p :] and panel["chosen"] == name
        chosen[name if best.nodes else "none"] += 1
    assert min(chosen[side] for side in ("local", "global") if setting.look_in in ("both", side)) > 20


def test_the_panel_names_places_where_the_ending_stands() -> None:
    """First one for each token that came next, the latest of them; then the others."""
    setting = SuffixParams(alpha=4.0)
    text = [1, 2, 3, 1, 2, 4, 1, 2, 3, 9, 1, 2]
    method = Suffix(context(text, {}), setting)
    method.propose()
    panel = method.panel()
    assert panel["ending"] == [1, 2] and panel["local"]["count"] == 3
    assert [place["place"] for place in panel["places"]] == [8, 5, 2]
    assert [place["follows"][0] for place in panel["places"]] == [3, 4, 3]
    answers = [[5, 6, 7, 8], [5, 6, 7, 9]]
    method = Suffix(context([1, 5, 6], remember(answers, setting)), setting)
    method.propose()
    panel = method.panel()
    assert panel["chosen"] == "global" and panel["answers"] == 2
    assert panel["places"] == [
        {"answer": 1, "place": 2, "follows": [7, 9]},
        {"answer": 2, "place": 2, "follows": [7, 8]},
    ]


def test_nothing_is_guessed_behind_an_end_of_text() -> None:
    text = [1, 2, 8, 3, 4, 1]
    draft = Suffix(context(text, {}, ends=[8]), SuffixParams(alpha=8.0)).propose()
    assert draft.tokens == (1, 2, 8)


def test_an_answer_helps_the_next_run_and_nobody_elses() -> None:
    """The same question again is written in a few long steps; a memory of its own knows nothing."""
    model = counted_text()
    machine, mine, others = engine(model), dict[str, Any](), dict[str, Any]()
    options: dict[str, Any] = {"params": {"alpha": 4.0}, "max_new_tokens": 60}
    first = machine.generate((1, 2, 3), "suffix", memory=mine, **options)
    again = machine.generate((1, 2, 3), "suffix", memory=mine, **options)
    strange = machine.generate((1, 2, 3), "suffix", memory=others, **options)
    assert first.ids == again.ids == strange.ids == plain(model, (1, 2, 3), 60)
    assert again.summary.steps < first.summary.steps == strange.summary.steps
    assert any(source.startswith("global") for step in again.trace.steps for source in step.sources)


def test_a_loop_is_drafted_ever_deeper() -> None:
    """The longer the ending that is found, the more is guessed."""
    result = engine(cycle()).generate((0, 1, 2), "suffix", params={"alpha": 2.0}, max_new_tokens=300)
    lengths = [len(step.emitted) for step in result.trace.steps]
    assert result.summary.mean_acceptance_length > 10 and max(lengths) > 30


ARCTIC: list[dict[str, Any]] = [
    {"shape": "chain"},
    {"shape": "tree"},
    {"shape": "chain", "alpha": 2.5, "epsilon": 0.3},
    {"shape": "tree", "alpha": 2.0, "epsilon": 0.05, "depth": 6},
]


def speculated_by(peer: Any, answers: Sequence[Sequence[int]], text: Sequence[int], setting: SuffixParams) -> Any:
    """Return the library's draft."""
    cache = peer.SuffixDecodingCache(max_tree_depth=setting.depth)
    for number, answer in enumerate(answers):
        cache.start_request(number, [])
        cache.add_active_response(number, answer)
        cache.stop_request(number)
    cache.start_request("now", text)
    return cache.speculate(
        "now",
        text,
        max_spec_tokens=setting.c,
        max_spec_factor=setting.alpha,
        min_token_prob=setting.epsilon,
        use_tree_spec=setting.shape == "tree",
    )


# Drafts of arctic-inference 0.1.1, which takes minutes to compile, so that no requirement names it.
CHAINS = [json.loads(line) for line in (GOLDEN / "arctic" / "suffix_chains.jsonl").read_text().splitlines()]


def as_in_the_reference_code(alpha: float) -> SuffixParams:
    return SuffixParams(**{**SuffixParams.presets["As in the reference code"], "alpha": alpha})  # type: ignore[arg-type]


def test_the_preset_of_the_reference_code_drafts_what_the_library_drafted() -> None:
    """For 32 of the 50, counting the text's end as the paper does drafts something else."""
    others = 0
    for case in CHAINS:
        setting = as_in_the_reference_code(case["alpha"])
        method = Suffix(context(case["text"], remember(case["answers"], setting), remaining=1000), setting)
        draft, panel = method.propose(), method.panel()
        assert list(draft.tokens[1:]) == case["draft"], case
        assert max(panel["local"]["score"], panel["earlier"]["score"]) == pytest.approx(case["score"], abs=1e-3)
        paper = replace(setting, count_end=False)
        method = Suffix(context(case["text"], remember(case["answers"], paper), remaining=1000), paper)
        others += list(method.propose().tokens[1:]) != case["draft"]
    assert len(CHAINS) == 50 and others == 32


def test_the_recorded_drafts_are_the_librarys() -> None:
    peer = pytest.importorskip("arctic_inference.suffix_decoding")
    for case in CHAINS:
        theirs = speculated_by(peer, case["answers"], case["text"], as_in_the_reference_code(case["alpha"]))
        assert (theirs.token_ids, round(theirs.score, 4)) == (case["draft"], case["score"])


@pytest.mark.parametrize("params", ARCTIC, ids=str)
def test_scores_are_those_of_arctic_inference(params: dict[str, Any]) -> None:
    """The authors' library, where it is installed. A tree's order of equal guesses is that of its heap."""
    peer = pytest.importorskip("arctic_inference.suffix_decoding")
    setting, same, guessed, others = SuffixParams(**params, count_end=True, c=255), 0, 0, 0
    for seed in range(200):
        answers, text = texts_of(seed)
        text = [8, *text]  # the library never looks for a whole text
        method = Suffix(context(text, remember(answers, setting), remaining=1000), setting)
        draft, panel = method.propose(), method.panel()
        theirs = speculated_by(peer, answers, text, setting)
        ours = max(panel["local"]["score"], panel["earlier"]["score"])
        assert ours == pytest.approx(theirs.score, abs=1e-3), (seed, text, answers)
        others += setting.shape == "chain" and list(draft.tokens[1:]) != theirs.token_ids
        same += ours == pytest.approx(theirs.score, abs=1e-3) and sorted(draft.tokens[1:]) == sorted(theirs.token_ids)
        guessed += bool(theirs.token_ids)
    assert guessed > 100 and same > 140
    assert others <= 1, "only where the library's sums of two endings differ by the rounding of single precision"
