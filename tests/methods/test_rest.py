"""REST's drafts against its rule, written out over plain lists."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
import torch

from decoding.codec import Codec
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.methods.base import Context
from decoding.methods.rest import Rest, RestParams
from decoding.model.table import TableModel
from decoding.parts import Parts
from decoding.parts.datastore import Datastore
from decoding.sampling import Sampler, Sampling
from decoding.tree import path_to
from decoding.types import JSON, Draft, Role
from tests.toy_store import make, open_store
from tests.toys import SETTINGS, tied

DOCUMENTS = [[1, 2, 3, 4], [1, 2, 3, 5, 6], [1, 2, 7], [0, 2, 3, 4]]


def context(
    store: Datastore, text: Sequence[int], *, remaining: int = 99, largest_step: int = 256, ends: Iterable[int] = ()
) -> Context:
    sampler = Sampler(Sampling(), 9, torch.device("cpu"), text)
    return Context(
        list(text),
        len(text),
        remaining,
        sampler,
        end_tokens=frozenset(ends),
        largest_step=largest_step,
        parts={"datastore": store},
    )


def proposal(store: Datastore, text: Sequence[int], *, params: dict[str, JSON] | None = None, **options: Any) -> Draft:
    return Rest(context(store, text, **options), RestParams(**(params or {}))).propose()


def kept(draft: Draft) -> list[tuple[tuple[int, ...], int]]:
    """Return the draft's paths in the order of its nodes, and the counts that their sources tell."""
    nodes = range(1, len(draft.tokens))
    paths = [tuple(draft.tokens[i] for i in path_to(draft.parents, node)[1:]) for node in nodes]
    return [
        (path, int(draft.sources[node].removeprefix("datastore:"))) for node, path in zip(nodes, paths, strict=True)
    ]


def engine(model: TableModel) -> Engine:
    """Make an engine with a datastore of the model's own language."""
    return Engine(model, Codec(), parts=Parts({"datastore": lambda progress: make(model)}))


def documents(store_of: Sequence[Sequence[int]] = DOCUMENTS) -> Datastore:
    return open_store([(list(document), True) for document in store_of], 9)


def described(
    store_of: Sequence[Sequence[int]], text: Sequence[int], params: RestParams, depth: int, ends: Sequence[int] = ()
) -> list[tuple[tuple[int, ...], int]]:
    """Return the rule in plain words: the longest end that is found, its continuations, the commonest prefixes."""
    for span in range(min(params.longest, len(text)), params.shortest - 1, -1):
        counts = Counter[tuple[int, ...]]()
        for document in store_of:
            for at in range(len(document) - span):
                if list(document[at : at + span]) == list(text[-span:]):
                    way = document[at + span : at + span + min(params.length, depth)]
                    end = next((i for i, token in enumerate(way) if token in ends), len(way)) + 1
                    counts.update(tuple(way[:n]) for n in range(1, min(end, len(way)) + 1))
        if counts:
            return sorted(counts.items(), key=lambda entry: (-entry[1], len(entry[0]), entry[0]))[: params.c]
    return []


def test_a_worked_example() -> None:
    """[1, 2] is followed by 3 twice and by 7 once; 3 is followed by 4 and by 5; no document runs into the next."""
    draft = proposal(documents(), [8, 1, 2])
    assert draft.tokens == (2, 3, 7, 4, 5, 6)
    assert draft.parents == (-1, 0, 0, 1, 1, 4)
    assert draft.sources == ("root", *(f"datastore:{count}" for count in (2, 1, 1, 1, 1)))
    assert draft.roles == (Role.ROOT, *[Role.VERIFY] * 5)
    assert draft.q is None and draft.entry is None


def test_the_longest_end_wins_and_shorter_ones_are_asked_in_turn() -> None:
    """The longer the end that is found, the better the guess; too short a one guesses at random."""
    store = documents()
    assert proposal(store, [0, 2, 3]).tokens == (3, 4), "[0, 2, 3] stands once; [2, 3] would add 5"
    assert proposal(store, [8, 2, 3]).tokens == (3, 4, 5, 6)
    assert proposal(store, [8, 2]).tokens == (2,), "one token is too short by default"
    assert proposal(store, [8, 2], params={"shortest": 1}).tokens == (2, 3, 4, 7, 5, 6)
    assert proposal(store, [0, 2, 3], params={"longest": 2}).tokens == (3, 4, 5, 6)
    assert proposal(store, [3, 4], params={"shortest": 1}).tokens == (4,), "nothing follows the end of a document"


@pytest.mark.parametrize("params", SETTINGS["rest"], ids=str)
def test_drafts_follow_the_rule(params: dict[str, JSON]) -> None:
    """A wrong span, count, tie, depth or end; where all places are read, the rule leaves no freedom."""
    chance, setting, deep = random.Random(3), RestParams(**{**params, "matches": 5000}), 0
    for seed in range(6):
        texts = [[chance.randrange(4) for _ in range(chance.randint(1, 40))] for _ in range(6)]
        store = documents(texts)
        for _ in range(25):
            text = [chance.randrange(5) for _ in range(chance.randint(1, 8))]
            remaining, ends = chance.choice((1, 2, 3, 99)), [seed % 4] * (seed % 2)
            method = Rest(context(store, text, remaining=remaining, ends=ends), setting)
            draft = method.propose()
            assert kept(draft) == described(texts, text, setting, remaining - 1, ends)
            assert proposal(store, text, params=setting.to_json(), remaining=remaining, ends=ends) == draft
            deep += len(draft.tokens) > 4
    assert deep > 20


@pytest.mark.parametrize(("remaining", "deepest"), [(1, 0), (2, 1), (3, 2), (99, 3)])
def test_no_guess_is_made_behind_the_budget(remaining: int, deepest: int) -> None:
    """Rows that can never be emitted cost time."""
    draft = proposal(documents(), [1, 2], remaining=remaining)
    assert max(len(path_to(draft.parents, node)) - 1 for node in range(len(draft.tokens))) == deepest


@pytest.mark.parametrize("largest_step", [1, 2, 4, 256])
def test_a_draft_fits_into_a_step(largest_step: int) -> None:
    """The commonest prefixes are kept, whatever the room."""
    full = proposal(documents(), [1, 2])
    assert proposal(documents(), [1, 2], largest_step=largest_step).tokens == full.tokens[:largest_step]


def test_nothing_is_guessed_behind_an_end() -> None:
    """Tokens after an end of text are never emitted."""
    assert proposal(documents(), [1, 2], ends=[3]).tokens == (2, 3, 7)
    assert proposal(documents(), [1, 2], ends=[5, 7]).tokens == (2, 3, 7, 4, 5)


def test_the_panel_tells_what_was_found() -> None:
    """A panel left over from the step before explains the wrong guess."""
    method = Rest(known := context(documents(), [8, 1, 2]), RestParams(c=3, matches=2))
    method.propose()
    assert method.panel() == {
        "span": 2,
        "ending": [1, 2],
        "hits": 3,
        "read": 2,
        "nodes": 3,
        "top": [[[3], 2], [[3, 4], 1], [[3, 5], 1]],
    }
    assert json.loads(json.dumps(method.panel())) == method.panel()
    known.text.append(8)
    assert method.propose().tokens == (8,)
    assert method.panel() == {"span": 0, "ending": [], "hits": 0, "read": 0, "nodes": 0, "top": []}


def test_the_panel_stays_small() -> None:
    """A record of thousands of steps must not hold thousands of guesses each."""
    method = Rest(context(documents([[1, 2, token, token] for token in range(9)]), [1, 2]), RestParams())
    assert len(method.propose().tokens) == 19
    assert len(method.panel()["top"]) == 8


def test_an_engine_without_a_datastore_says_how_to_get_one() -> None:
    model = tied(9)
    with pytest.raises(ParamError, match="rest needs a datastore"):
        Engine(model, Codec()).decode((1, 2), Rest)


@pytest.mark.parametrize("params", [{"shortest": 5, "longest": 4}, {"c": 256}, {"matches": 0}, {"length": 65}])
def test_settings_out_of_bounds_are_refused(params: dict[str, JSON]) -> None:
    """Settings that can never match look like a method that does not work; others would fill the memory."""
    with pytest.raises(ParamError):
        RestParams(**params)
