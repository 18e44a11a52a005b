"""N-Grammys against its description: which rows, in which order, in which layout, and what a run writes."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise, takewhile
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from decoding.codec import Codec
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.methods.autoregressive import Autoregressive
from decoding.methods.base import Context
from decoding.methods.ngrammys import NGrammys, NGrammysParams
from decoding.model.table import TableModel
from decoding.parts import Parts
from decoding.parts.tables import NgramTables
from decoding.sampling import Sampler, Sampling
from decoding.tree import check, depths, path_to
from decoding.types import JSON, Draft, Role, Verdict
from tests.toy_tables import make
from tests.toys import counted_text, cycle, hashed, plain, prompt_for, tied, toy

WORDS = 9
TABLES = make(hashed(WORDS, 2, seed=3))
SETTINGS: Sequence[Mapping[str, Any]] = [
    {},
    {"k": 4, "w": 3, "layout": "trie", "q": 2, "tail": "full"},
    {"k": 3, "w": 4, "strategy": "context"},
    {"k": 4, "w": 5, "strategy": "extended", "layout": "trie"},
    {"k": 2, "strategy": "bigram"},
    {"k": 4, "strategy": "unigram", "ranking": "product"},
    {"k": 1, "w": 1, "q": 16},
    {"k": 32, "w": 16, "layout": "trie"},
]


def method(
    text: Sequence[int],
    tables: NgramTables = TABLES,
    *,
    remaining: int = 99,
    largest: int = 4096,
    ends: Iterable[int] = (),
    **params: Any,
) -> NGrammys:
    """The method at a text; its first three tokens are the prompt."""
    prompt = min(3, len(text))
    sampler = Sampler(Sampling(), WORDS, torch.device("cpu"), text)
    budget = len(text) - prompt + remaining
    context = Context(list(text), prompt, budget, sampler, frozenset(ends), largest, parts={"tables": tables})
    return NGrammys(context, NGrammysParams(**params))


def rows_of(draft: Draft) -> list[tuple[int, ...]]:
    """The tokens from the root to every leaf, in the order of the leaves."""
    leaves = [node for node in range(1, len(draft.tokens)) if node not in draft.parents]
    return [tuple(draft.tokens[i] for i in path_to(draft.parents, leaf)[1:]) for leaf in leaves]


def rows(text: Sequence[int], **options: Any) -> list[tuple[int, ...]]:
    """The rows proposed for a text."""
    return rows_of(method(text, **options).propose())


def chain(token: int, count: int) -> list[int]:
    """The bigram's likeliest token, again and again."""
    links = [token]
    for _ in range(count):
        links.append(TABLES.bigrams(links[-1])[0][0])
    return links[1:]


def extended(token: int, w: int) -> list[tuple[int, ...]]:
    """The extended bigram after a token."""
    return [(first, *chain(first, w - 1)) for first, _ in TABLES.bigrams(token)]


def from_context(text: Sequence[int], q: int, w: int, tail: str, ends: Sequence[int] = ()) -> list[tuple[int, ...]]:
    """Every row the context has to offer, by a plain scan: by count, ties to the later occurrence."""
    counts, latest = Counter[tuple[int, ...]](), dict[tuple[int, ...], int]()
    for start in range(len(text) - q):
        if list(text[start : start + q]) == list(text[-q:]):
            copied = list(text[start + q : start + q + w])
            if len(copied) < w:
                if tail == "full":
                    continue
                copied += chain(copied[-1], w - len(copied))
            first = [place for place, token in enumerate(copied, 1) if token in ends][:1]
            row = tuple(copied[: first[0]] if first else copied)
            counts[row] += 1
            latest[row] = start
    return sorted(counts, key=lambda row: (-counts[row], -latest[row]))


def random_texts() -> list[list[int]]:
    """Texts of a few words, so that endings do recur."""
    chance = random.Random(0)
    return [[chance.randrange(chance.choice((2, 4, WORDS))) for _ in range(chance.randint(1, 40))] for _ in range(200)]


@pytest.mark.sampled
@pytest.mark.parametrize("tail", ["bigram", "full"])
@pytest.mark.parametrize(("q", "w"), [(1, 1), (1, 4), (2, 3), (3, 10)])
def test_context_rows_are_those_of_a_plain_scan(q: int, w: int, tail: str) -> None:
    """An occurrence missed, the ending matched with itself, a wrong count, a tie to the earlier one."""
    filled, merged = 0, 0
    for text in random_texts():
        copies = rows(text, strategy="context", k=5, q=q, w=w, tail=tail)
        assert copies == from_context(text, q, w, tail)[:5]
        filled += len(copies) == 5
        for ends in ([0], [1, 3]):
            cut = from_context(text, q, w, tail, ends)
            assert rows(text, strategy="context", k=5, q=q, w=w, tail=tail, ends=ends) == cut[:5]
            merged += len(cut) < len(from_context(text, q, w, tail))
    assert (filled > 3 or q > 1) and (merged > 0 or w in (1, 10))


def test_only_copies_that_meet_an_end_are_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of occurrences must not each be taken apart token by token in every step."""
    grown: list[tuple[int, ...]] = []
    grow = NGrammys._grown
    monkeypatch.setattr(NGrammys, "_grown", lambda self, row, width: grown.append((*row,)) or grow(self, row, width))
    text = [*[1, 2, 2] * 2000, 1, 8, 1]
    one = method(text, strategy="context", k=4, w=5, ends=[8])
    assert rows_of(one.propose()) == from_context(text, 1, 5, "bigram", [8]) and one.panel()["matches"] == 2001
    assert grown == [(2, 2, 1, 8, 1), (8, 1)]


def test_more_frequent_then_later_continuations_come_first() -> None:
    """The ranking of the paper, on a text that one can check by eye."""
    text = (1, 2, 8, 1, 3, 8, 1, 4, 8, 1, 2, 8, 1, 5, 8, 1)
    assert rows(text, strategy="context", w=2, k=9) == [(2, 8), (5, 8), (4, 8), (3, 8)]
    assert rows(text, strategy="context", w=2, k=2) == [(2, 8), (5, 8)]
    assert rows(text, strategy="context", w=1, q=2, k=9) == [(5,), (2,), (4,), (3,)]
    assert rows((1, 2, 1), strategy="context", w=4) == [(2, 1, *chain(1, 2))]
    assert rows((1, 2, 1), strategy="context", w=4, tail="full") == []


def test_mixed_takes_the_context_first_and_the_bigram_for_the_rest() -> None:
    """The paper's allocation; and a bigram row that the context has given already makes room for the next one."""
    doubled = 0
    for text in random_texts():
        for k in (1, 3, 6):
            context = from_context(text, 1, 3, "bigram")[:k]
            model = [row for row in extended(text[-1], 3) if row not in context]
            doubled += len(model) < 4 and k == 6
            assert rows(text, k=k, w=3) == [*context, *model][:k]
    assert doubled > 10


def test_the_models_own_strategies() -> None:
    """Bigram and unigram guess one token whatever w is; the unigram does not look at the text."""
    for token in range(WORDS):
        firsts = [first for first, _ in TABLES.bigrams(token)]
        assert rows((token,), strategy="extended", k=3, w=6) == extended(token, 6)[:3]
        assert rows((1, token, 1, token), strategy="bigram", k=3, w=6) == [(first,) for first in firsts[:3]]
        for ranking in ("distance", "product"):
            ids = TABLES.unigrams(ranking)
            assert rows((token,), strategy="unigram", ranking=ranking, w=6) == [(other,) for other in ids]
    assert TABLES.unigrams("distance") != TABLES.unigrams("product")


def test_a_trie_holds_the_same_rows_with_fewer_nodes() -> None:
    """Merging may drop doubled beginnings and nothing else."""
    saved = 0
    for text in random_texts():
        apart, merged = (method(text, k=6, w=4, layout=layout) for layout in ("rows", "trie"))
        one, two = apart.propose(), merged.propose()
        places = list(zip(two.parents, two.tokens, strict=True))
        assert len(places) == len(set(places)), "siblings of a trie differ"
        assert set(rows_of(one)) == set(rows_of(two))
        ours, theirs = dict(apart.panel()), dict(merged.panel())
        assert (ours.pop("nodes"), theirs.pop("nodes")) == (len(one.tokens), len(two.tokens))
        assert ours == theirs and ours["unmerged"] == len(one.tokens)
        saved += len(one.tokens) - len(two.tokens)
    assert saved > 100


def test_sources_say_where_every_token_came_from() -> None:
    """The screen marks the copied places by them."""
    text = (1, 2, 3, 4, 1, 5, 1)
    draft = method(text, k=4, w=3).propose()
    first, second = ("output:5", "output:6", "chain:1"), ("prompt:1", "prompt:2", "output:3")
    third, fourth = (("bigram:" + str(rank), "chain:1", "chain:2") for rank in (0, 1))
    assert draft.sources == ("root", *first, *second, *third, *fourth)
    for token, source in zip(draft.tokens, draft.sources, strict=True):
        kind, _, place = source.partition(":")
        assert kind not in ("prompt", "output") or text[int(place)] == token
    assert method(text, strategy="unigram", k=2).propose().sources == ("root", "unigram:0", "unigram:1")
    assert draft.roles == (Role.ROOT, *[Role.VERIFY] * 12) and draft.q is None


def test_nothing_is_drafted_behind_an_end_of_text() -> None:
    """Rows that become equal by being cut are one, and their occurrences are counted together."""
    text = (1, 7, 2, 1, 7, 3, 1, 4, 4, 1)
    assert rows(text, strategy="context", w=3, ends=[7]) == [(7,), (4, 4, 1)]
    for ends in ([], [2], range(WORDS)):
        for row in rows(text, k=9, w=6, ends=ends):
            assert not set(row[:-1]) & set(ends)
    assert method(text, strategy="context", w=3, ends=[7]).propose().sources == (
        "root",
        "output:4",
        *(f"output:{place}" for place in (7, 8, 9)),
    )


@pytest.mark.parametrize("layout", ["rows", "trie"])
def test_budgets_bound_the_draft(layout: str) -> None:
    """Guesses after the budget can never be emitted; nodes beyond the step's room cannot be read."""
    text = (1, 2, 3, 1, 2, 4, 1)
    assert method(text, layout=layout, remaining=1).propose().tokens == (1,)
    assert method(text, layout=layout, largest=1).propose().tokens == (1,)
    for remaining in range(2, 8):
        assert max(depths(method(text, layout=layout, remaining=remaining, w=5).propose().parents)) == min(
            5, remaining - 1
        )
    for largest in range(1, 30):
        draft = method(text, layout=layout, largest=largest, k=5, w=5).propose()
        assert len(draft.tokens) <= largest and (len(draft.tokens) == largest or layout == "trie" or largest > 26)


def test_the_largest_step_is_what_the_settings_say() -> None:
    """A session opened for fewer nodes than a step can have would refuse it."""
    text = [token for first in range(WORDS) for token in (0, first, first)] + [0]
    params = NGrammysParams(k=8, w=3)
    assert len(method(text, k=8, w=3).propose().tokens) == params.nodes == 25
    assert NGrammysParams(strategy="bigram").nodes == NGrammysParams(strategy="unigram").nodes == 11
    assert NGrammysParams().nodes == 101 and NGrammysParams(k=32, w=16).nodes == 513
    for values in NGrammysParams.presets.values():
        assert NGrammysParams.parse(values).nodes <= 513


@settings(max_examples=60)
@given(
    text=st.lists(st.integers(0, WORDS - 1), min_size=1, max_size=30),
    k=st.integers(1, 32),
    w=st.integers(1, 16),
    q=st.integers(1, 16),
    strategy=st.sampled_from(("mixed", "context", "extended", "bigram", "unigram")),
    layout=st.sampled_from(("rows", "trie")),
    tail=st.sampled_from(("bigram", "full")),
    remaining=st.integers(1, 20),
    largest=st.integers(1, 600),
    ends=st.sets(st.integers(0, WORDS - 1), max_size=3),
)
def test_any_settings_give_a_sound_tree(text: list[int], remaining: int, largest: int, **options: Any) -> None:
    """A tree with a stray parent, too deep or too large would stop the run."""
    one = method(text, remaining=remaining, largest=largest, **options)
    draft = one.propose()
    check(draft.parents)
    assert draft.tokens[0] == text[-1] and len(draft.sources) == len(draft.tokens)
    params = NGrammysParams(**{name: value for name, value in options.items() if name != "ends"})
    assert len(draft.tokens) <= min(largest, params.nodes) and max(depths(draft.parents)) < remaining
    tokens = [tuple(row["tokens"]) for row in one.panel()["rows"]]
    assert len(tokens) == len(set(tokens)) <= params.k


# Runs ---------------------------------------------------------------------------------------------------------------


@cache
def tables_of(kind: int) -> tuple[TableModel, NgramTables]:
    """A toy and its tables."""
    model = toy(kind, kind) if kind < 5 else counted_text()
    return model, make(model)


def machine(model: TableModel, tables: NgramTables | None = None) -> Engine:
    """An engine that has tables."""
    return Engine(model, Codec(), None, Parts({"tables": lambda progress: tables or make(model)}))


class Fresh(NGrammys):
    """Holds every draft to that of a method which has just begun with the same text."""

    steps, accepted = 0, Counter[int]()

    def propose(self) -> Draft:
        """The same, whatever was accepted before."""
        draft, panel = super().propose(), dict(self.panel())
        anew = NGrammys(self._context, self._params)
        assert anew.propose() == draft and anew.panel() == panel
        return draft

    def observe(self, draft: Draft, verdict: Verdict) -> None:
        """Count what was accepted."""
        super().observe(draft, verdict)
        type(self).accepted[len(verdict.path) - 1] += 1


@pytest.mark.sampled
@pytest.mark.parametrize("params", SETTINGS, ids=str)
def test_the_text_is_the_targets_own_and_the_method_keeps_up(params: Mapping[str, Any]) -> None:
    """Greedy text is the plain one, and the index of places follows the text after every kind of acceptance."""
    Fresh.accepted.clear()
    for kind in range(6):
        model, tables = tables_of(kind)
        for seed in range(3):
            prompt, end = prompt_for(model, seed), seed % 3
            text = plain(model, prompt, 30)
            run = machine(model, tables).generate(prompt, Fresh, params=params, max_new_tokens=30, end_tokens=())
            assert run.ids == text
            run = machine(model, tables).generate(prompt, Fresh, params=params, max_new_tokens=30, end_tokens=[end])
            assert run.ids == (text[: text.index(end) + 1] if end in text else text)
    assert {0, 1} <= set(Fresh.accepted)


@pytest.mark.sampled
@pytest.mark.parametrize("params", SETTINGS, ids=str)
def test_sampled_text_is_that_of_one_token_at_a_time(params: Mapping[str, Any]) -> None:
    """Rows are no samples: with the same seed the very same tokens must come out, with or without them."""
    for kind in range(6):
        model, tables = tables_of(kind)
        for seed, temperature in enumerate((0.7, 1.3)):
            options: dict[str, Any] = {"sampling": {"temperature": temperature, "seed": seed}, "max_new_tokens": 24}
            wanted = machine(model, tables).generate((1, 2, 1), Autoregressive, **options)
            assert machine(model, tables).generate((1, 2, 1), NGrammys, params=params, **options).ids == wanted.ids


@pytest.mark.parametrize("strategy", ["mixed", "context", "extended"])
def test_a_language_without_surprises_is_written_in_full_rows(strategy: str) -> None:
    """Full acceptance: w tokens and the bonus in every step."""
    params = {"k": 3, "w": 4, "strategy": strategy}
    run = machine(cycle(7)).generate(tuple(range(7)) * 2, NGrammys, params=params, max_new_tokens=25)
    assert run.ids == plain(cycle(7), (6,), 25)
    assert [len(step.emitted) for step in run.trace.steps] == [5] * 5
    assert all(step.panel["winner"] == 0 for step in run.trace.steps)


def test_a_budget_of_one_is_a_plain_step() -> None:
    """Nothing can be gained, so nothing is guessed."""
    run = machine(cycle(7)).generate((1,), NGrammys, max_new_tokens=1)
    assert run.ids == (2,) and run.trace.steps[0].drafted == 0


def test_a_cancelled_run_ends_with_what_it_has() -> None:
    """Cancelling must take effect at the next step."""
    cancel, written = threading.Event(), list[int]()
    run = machine(cycle(7)).decode((1,), NGrammys, {"w": 2}, max_new_tokens=50, cancel=cancel)
    for step in run:
        written += step.emitted
        cancel.set()
    assert run.summary.finish == "cancelled" and tuple(written) == run.ids == (2, 3, 4)


def test_an_engine_without_tables_says_so() -> None:
    """The run must be refused in words, before it starts."""
    with pytest.raises(ParamError, match="ngrammys needs n-gram tables"):
        Engine(cycle(7), Codec()).decode((1,), NGrammys)


@pytest.mark.parametrize("params", [{"k": 0}, {"k": 33}, {"w": 0}, {"w": 17}, {"q": 0}, {"strategy": "trigram"}])
def test_settings_out_of_bounds_are_refused(params: dict[str, JSON]) -> None:
    """Values that no table or step can serve."""
    with pytest.raises(ParamError):
        NGrammysParams.parse(params)


def test_the_panel_tells_the_papers_ablation() -> None:
    """Allocation, accepted length and rank of the accepted row, of every step, and nothing that changes later."""
    model, tables = tables_of(5)
    run = machine(model, tables).generate(prompt_for(model, 1), NGrammys, params={"k": 4, "w": 3}, max_new_tokens=60)
    winners = Counter[str]()
    for before, step in pairwise((None, *run.trace.steps)):
        panel = step.panel
        assert json.loads(json.dumps(panel)) == panel
        assert before is None or before.panel["rows"] is not panel["rows"]
        assert panel["k"] == 4 and panel["nodes"] == len(step.tokens) and len(panel["rows"]) <= 4
        assert step.drafted + 1 == panel["unmerged"] == 1 + sum(len(row["tokens"]) for row in panel["rows"])
        hits = [
            len(list(takewhile(lambda pair: pair[0] == pair[1], zip(row["tokens"], step.emitted, strict=False))))
            for row in panel["rows"]
        ]
        if step.accepted:
            assert panel["winner"] == hits.index(max(hits)) and max(hits) >= step.accepted
            winners[panel["rows"][panel["winner"]]["strategy"]] += 1
        else:
            assert panel["winner"] is None
        for row in panel["rows"]:
            kind = {"strategy", "tokens", *(("count", "place") if row["strategy"] == "context" else ("rank", "p"))}
            assert set(row) == kind
    assert set(winners) == {"context", "bigram"}


def test_the_panel_stays_small_however_often_the_query_occurs() -> None:
    """A record must not grow with the square of the text."""
    one = method([1] * 6000, k=4, w=3)
    one.propose()
    panel = one.panel()
    assert panel["matches"] == 5999 and panel["places"] == list(range(5968, 6000))
    assert panel["rows"][0] == {"strategy": "context", "count": 4094, "place": 5997, "tokens": [1, 1, 1]}
    assert len(json.dumps(panel)) < 2000


def test_ties_of_the_tables_are_the_targets() -> None:
    """Where two tokens are equally likely after one, the bigram's first must be the one that greedy text takes."""
    for seed in range(8):
        model = tied(13, 1, seed)
        tables = make(model)
        for token in range(13):
            assert method((token,), tables, strategy="extended", k=1, w=6).propose().tokens[1:] == plain(
                model, (token,), 6
            )
