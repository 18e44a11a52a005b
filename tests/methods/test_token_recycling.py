"""Token Recycling against its rule written out over a plain dictionary, step by step."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch

from decoding.errors import ParamError
from decoding.methods.token_recycling import TokenRecycling, TokenRecyclingParams
from decoding.model.table import TableModel
from decoding.sampling import Sampling
from decoding.tree import path_to
from tests.methods.loop import Drive, hashed, random_prompt
from tests.toys import counted_text, engine

SETTINGS: list[dict[str, Any]] = [
    {},
    {"k": 4, "tree": "grown", "size": 9},
    {"k": 3, "tree": "given", "paths": "0;1;2;0,0;0,1;1,0;0,0,0"},
    {"k": 1, "tree": "given", "paths": "0;0,0;0,0,0;1"},
    {"k": 3, "tree": "grown", "size": 9, "prompt_as_reference": True},
]
# The paper's tree (its figure): guesses at each depth, and some of its paths.
AT_DEPTH = {1: 8, 2: 21, 3: 25, 4: 15, 5: 8, 6: 3}
HELD = [
    "7",
    "0,7",
    "3,1",
    "7,0",
    "0,7,0",
    "1,0,1",
    "5,0,0",
    "0,0,0,4",
    "0,0,1,1",
    "3,0,0,0",
    "0,0,0,2,0",
    "0,0,0,1,0,0",
]
NOT_HELD = ["8", "4,1", "6,0,0", "1,2,0", "0,1,0,1", "0,2,0,0,0", "0,0,0,0,0,2"]

Table = dict[int, list[int]]


def likeliest(model: TableModel, text: list[int], k: int) -> list[int]:
    """Return the k likeliest tokens after a text, the lowest id first where they are equal."""
    row = model.logits(text).float().tolist()
    return sorted(range(len(row)), key=lambda token: (-row[token], token))[:k]


def filled(table: Table, root: int, paths: list[tuple[int, ...]], depth: int, ends: frozenset[int]) -> list[list[int]]:
    """Return the tokens of every path of ranks that the table can fill."""
    rows = list[list[int]]()
    for path in paths:
        tokens, above = list[int](), root
        for rank in path:
            row = [] if above in ends else table.get(above, [])
            if rank >= len(row):
                break
            above = row[rank]
            tokens.append(above)
        if len(tokens) == len(path) <= depth:
            rows.append(tokens)
    return rows


def pairs(prompt: list[int], k: int) -> Table:
    """Return what follows every token of a prompt, the last one first."""
    table = Table()
    for at in reversed(range(len(prompt) - 1)):
        row = table.setdefault(prompt[at], [])
        if prompt[at + 1] not in row:
            row.append(prompt[at + 1])
    return {token: row[:k] for token, row in table.items()}


@pytest.mark.parametrize("params", SETTINGS, ids=str)
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_every_step_is_the_rule(params: dict[str, Any], temperature: float) -> None:
    """A row of the wrong node, a tree filled by the wrong ranks, a rejected node that teaches nothing."""
    accepted = changed = behind_rejected = 0
    for seed in range(6):
        model = hashed(1, 14, seed)
        setting = TokenRecyclingParams(**params)
        sampling = Sampling(temperature=temperature, seed=seed)
        drive = Drive(TokenRecycling, model, random_prompt(5, 14, seed), sampling, end_tokens=[13], **params)
        table, paths = Table(), setting.shape.paths
        if setting.prompt_as_reference:
            table = pairs(random_prompt(5, 14, seed), setting.k)
        for _ in range(25):
            room = drive.context.room
            turn = drive.turn()
            draft, path = turn.draft, set(turn.verdict.path)
            ways = [[draft.tokens[i] for i in path_to(draft.parents, node)] for node in range(len(draft.tokens))]
            expected = filled(table, turn.before[-1], paths, room, frozenset([13]))
            assert sorted(way[1:] for way in ways[1:]) == sorted(expected)
            before, taught = {**table}, dict[int, bool]()
            for node in sorted(range(len(ways)), key=lambda node: (node in path, node)):
                token = draft.tokens[node]
                if node not in path and token in taught:
                    continue  # of rejected nodes with one token the first one counts
                table[token] = likeliest(model, [*turn.before[:-1], *ways[node]], setting.k)
                taught[token] = node in path
            told = {token: (old, new, behind) for token, old, new, behind in turn.panel["changed"]}
            assert told == {
                token: (before.get(token, []), table[token], "accepted" if taught[token] else "rejected")
                for token in taught
                if before.get(token) != table[token]
            }
            assert turn.panel["known"] == len(table)
            accepted += len(path) - 1
            changed += len(told)
            behind_rejected += sum(not right for right in taught.values())
    assert accepted > 20 and changed > 20
    assert behind_rejected > 20 or setting.k == 1


def test_the_papers_tree() -> None:
    """80 guesses, as many at each depth as in the paper's figure."""
    shape = TokenRecyclingParams().shape
    assert Counter(shape.depths) == {0: 1, **AT_DEPTH}
    paths = {",".join(map(str, path)) for path in shape.paths}
    assert paths.issuperset(HELD) and paths.isdisjoint(NOT_HELD)
    assert TokenRecyclingParams().nodes == 81


def test_a_grown_tree_takes_no_rank_that_rows_do_not_have() -> None:
    for k in (1, 2, 8):
        setting = TokenRecyclingParams(k=k, tree="grown", size=30)
        assert max(setting.shape.ranks) < k and setting.nodes <= 31
    with pytest.raises(ParamError):
        TokenRecyclingParams(paths="0,0")


def test_a_cold_table_guesses_nothing_and_a_warm_one_at_once() -> None:
    """What an earlier run has learnt is of use from the first step on, for its owner alone."""
    machine, mine = engine(counted_text()), dict[str, Any]()
    options: dict[str, Any] = {"params": {"warm_start": "across"}, "max_new_tokens": 40}
    cold = machine.generate((1, 2, 3), "token_recycling", memory=mine, **options)
    warm = machine.generate((1, 2, 3), "token_recycling", memory=mine, **options)
    stranger = machine.generate((1, 2, 3), "token_recycling", memory={}, **options)
    assert cold.ids == warm.ids == stranger.ids
    assert not cold.trace.steps[0].drafted and not stranger.trace.steps[0].drafted and warm.trace.steps[0].drafted
    assert warm.summary.steps < cold.summary.steps == stranger.summary.steps
    assert {row["ago"] for row in warm.trace.steps[0].panel["rows"]} == {0}
    again = machine.generate((1, 2, 3), "token_recycling", params={}, max_new_tokens=40, memory=mine)
    assert not again.trace.steps[0].drafted  # its setting asks for a cold start


def test_the_prompts_pairs_are_guessed_from_the_first_step_on() -> None:
    """After 3 came 1, then 4; what an earlier run knows of 3 comes last."""
    mine = dict[str, Any]()
    params = {"tree": "given", "paths": "0;1;2;3;0,0", "warm_start": "across", "prompt_as_reference": True}
    options: dict[str, Any] = {"params": params, "memory": mine}
    first = engine(counted_text()).generate((7, 3, 9, 3), "token_recycling", **options)
    assert first.trace.steps[0].tokens[1] == 9
    step = engine(counted_text()).generate((3, 1, 3, 4, 3), "token_recycling", **options).trace.steps[0]
    [row] = [row for row in step.panel["rows"] if row["token"] == 3]
    assert row["entries"][:2] == [4, 1] and len(row["entries"]) > 2
    assert (row["ago"], row["behind"]) == (0, "prompt")


def test_a_passed_over_token_is_guessed_when_its_row_comes_again() -> None:
    """The idea: after 1 comes 2 at first and 3 later; 3 was the second likeliest, and is found by that."""
    rows = {(0, 1): [0, 0, 9.0, 8.0, 0, 0], (5, 1): [0, 0, 8.0, 9.0, 0, 0]}

    def rule(key: tuple[int, ...]) -> torch.Tensor:
        usual = torch.zeros(6, dtype=torch.float64)
        usual[{2: 5, 5: 1, 3: 0, 0: 1}.get(key[-1], 0)] = 9.0
        return torch.tensor(rows[key[-2:]], dtype=torch.float64) if key[-2:] in rows else usual

    drive = Drive(TokenRecycling, TableModel(rule, 2, 6), [0, 1], tree="given", paths="0;1", k=2)
    drive.until(4)
    assert drive.written[:4] == [2, 5, 1, 3]
    turn = next(turn for turn in drive.turns if turn.before[-1] == 1 and turn.before[-2] == 5)
    assert turn.draft.tokens == (1, 2, 3) and turn.verdict.path == (0, 2)
    assert turn.draft.sources[2] == "recycled:1"
    assert [row for row in turn.panel["rows"] if row["token"] == 1][0]["ago"] == 3
