"""Lookahead against its description: the step's shape, what the target is asked, and what a run writes."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest

from decoding.codec import Codec
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.methods.lookahead import Lookahead, LookaheadParams
from decoding.sampling import Sampling
from decoding.tree import closure, depths
from decoding.types import JSON, Role, Verdict
from tests.tiers import choose, sampled

from .loop import Drive, Rows, Turn, hashed, new_context, random_prompt

VOCABULARY = 5
PROMPT = random_prompt(40, VOCABULARY, 0)
SAMPLED = Sampling(temperature=0.6, seed=3)
QUIRKS = {"drop_bonus": True, "repeat_history": True, "replace_end": True}


def drive(
    seed: int = 0, order: int = 2, sampling: Sampling | None = None, prompt: Sequence[int] = PROMPT, **params: JSON
) -> Drive:
    """Make a Lookahead run on a noisy model that soon falls into loops, so that guesses come true."""
    params = {"W": 6, "N": 4, "G": 5, **params}
    return Drive(Lookahead, hashed(order, VOCABULARY, seed), prompt, sampling, end_tokens=[1], **params)


def described(rows: Rows, guesses: Rows) -> tuple[list[int], list[list[int]]]:
    """Build offsets from c and visible indices from the words: block 0 is causal; cell i of a later row sees block 0
    up to its position i and its own column so far; a guess sees c and itself.
    """
    offsets, sees = [0], [[0]]
    for j in range(len(rows[0])):
        offsets.append(1 + j)
        sees.append(list(range(j + 2)))
    starts = [0]  # of each row; that of block 0 is c itself
    for level, row in enumerate(rows[1:], start=1):
        starts.append(len(offsets))
        for i in range(len(row)):
            offsets.append(level + i)
            column = [starts[lower] + i for lower in range(1, level + 1)]
            sees.append([*range(i + 1), *column])
    for guess in guesses:
        start = len(offsets)
        for i in range(len(guess)):
            offsets.append(1 + i)
            sees.append([0, *range(start, start + i + 1)])
    return offsets, sees


def check_shape(method: Lookahead, root: int) -> tuple[int, int]:
    """Propose once and hold the draft to the description: its size and its number of guesses."""
    draft, panel = method.propose(), method.panel()
    rows, guesses = panel["rows"], panel["guesses"]
    cells, hoped = sum(map(len, rows)), sum(map(len, guesses))
    assert list(draft.tokens) == [root, *sum(rows, []), *sum(guesses, [])]
    assert draft.roles == (Role.ROOT, *[Role.EXPLORE] * cells, *[Role.VERIFY] * hoped)
    offsets, sees = described(rows, guesses)
    mask = np.zeros((len(offsets), len(offsets)), dtype=np.bool_)
    for row, visible in enumerate(sees):
        mask[row, visible] = True
    assert list(depths(draft.parents)) == offsets
    assert np.array_equal(closure(draft.parents), mask)
    answers = tuple((7 * node + root) % VOCABULARY for node in range(len(draft.tokens)))
    method.observe(draft, Verdict((0,), answers[:1], answers))
    return len(draft.tokens), len(guesses)


@sampled
@pytest.mark.parametrize("G", choose(range(21), (0, 1, 2, 7, 20)))  # between them, all are alike
@pytest.mark.parametrize("N", range(3, 8))
def test_every_step_has_the_described_shape(N: int, G: int) -> None:
    """A cell on the wrong parent would sit at another position and see another text than its column's."""
    prompt, full = random_prompt(400, VOCABULARY, N), 0
    for W in range(1, 21):
        params = LookaheadParams(W=W, N=N, G=G, prompt_as_reference=True)
        context = new_context(prompt, Sampling(), vocabulary=VOCABULARY)
        method, largest = Lookahead(context, params), 0
        for step in range(N):
            size, guesses = check_shape(method, context.text[-1])
            context.text.append(step % VOCABULARY)
            largest = max(largest, size)
            full += guesses == G > 0
            assert guesses == 0 or step >= N - 2
            if step >= N - 2:
                assert size == (N - 1) * (W + guesses)
        assert largest <= params.nodes
    assert full or G == 0, "some step must hold as many guesses as G allows"


def test_the_largest_step_is_reached() -> None:
    """A window that is narrower than tall has its largest step while it fills: a bound for the full one is too low."""
    for W, N, G in [(1, 5, 0), (2, 16, 0), (3, 7, 0), (1, 3, 0), (15, 5, 0)]:
        run = Drive(Lookahead, hashed(1, 3, 0), PROMPT, W=W, N=N, G=G)
        largest = max(len(run.turn().draft.tokens) for _ in range(N))
        assert largest == LookaheadParams(W=W, N=N, G=G).nodes
    assert LookaheadParams().nodes == 120
    assert LookaheadParams(drop_bonus=True).nodes == 105
    assert LookaheadParams(W=60, N=8, G=60).nodes == 840


def test_a_window_beyond_all_bounds_is_refused_before_the_run() -> None:
    """Settings that are fine one by one can ask for gigabytes together."""
    machine = Engine(hashed(1, 3, 0), Codec())
    assert machine.generate((1, 2), "lookahead", params={"W": 60, "N": 8, "G": 60}, max_new_tokens=12).ids
    with pytest.raises(ParamError, match="put 7680 tokens into a step of lookahead, above 4096: lower them"):
        machine.decode((1, 2), "lookahead", params={"W": 256, "N": 16, "G": 256})


def test_every_preset_fits_a_session() -> None:
    """A preset with a misspelt name, or too large for the engine's smallest session, would fail on first use."""
    for values in LookaheadParams.presets.values():
        assert LookaheadParams.parse(values).nodes <= 256


def test_the_first_rows_fill_as_described() -> None:
    """Dropping one cell too many or too few while filling shifts every column against its text."""
    run = drive(W=15, N=5, G=15)
    lengths = [list(map(len, run.turn().panel["rows"])) for _ in range(5)]
    assert lengths == [[17], [16, 17], [15, 16, 16], [14, 15, 15, 15], [14, 15, 15, 15]]
    assert [turn.panel["phase"] for turn in run.turns] == ["prefill", "fill", "fill", "steady", "steady"]
    assert set(run.turns[0].panel["rows"][0]) <= set(PROMPT)
    for one, two in zip(run.turns[:3], run.turns[1:], strict=False):
        assert not one.panel["guesses"]
        assert not one.panel["pool"]["inserted"]
        assert two.panel["rows"] == [*(row[1:] for row in one.panel["rows"]), one.panel["new"][1:]]


@pytest.mark.parametrize("N", range(3, 9))
def test_verification_starts_at_forward_n_minus_1(N: int) -> None:
    """With a pool that is ready from the start, a guess before the window is full, or later, is off the paper."""
    run = Drive(Lookahead, hashed(1, 2, 0), [0, 1] * 30, W=3, N=N, G=4, prompt_as_reference=True)
    verified = [bool(run.turn().panel["guesses"]) for _ in range(N)]
    assert verified == [False] * (N - 2) + [True] * 2


@pytest.mark.parametrize(("W", "N"), [(1, 3), (5, 3), (6, 5), (3, 7)])
def test_a_column_is_a_sentence(W: int, N: int) -> None:
    """The target, given each column as a text of its own, must say what it said in the step."""
    model = hashed(W + N + 2, VOCABULARY, N)
    run = Drive(Lookahead, model, PROMPT, W=W, N=N, G=2)
    for turn in (run.turn() for _ in range(N + 6)):
        (row0, *cells), new = turn.panel["rows"], turn.panel["new"]
        for i, answer in enumerate(new):
            sentence = [*turn.before, *row0[:i], *(row[i] for row in cells)]
            assert int(model.logits(sentence).argmax()) == answer
        assert len(new) == len(cells[-1] if cells else row0) + (not cells)


def sources_of(turn: Turn, role: Role) -> dict[str, int]:
    """Return token by source."""
    draft = turn.draft
    return {s: t for s, t, r in zip(draft.sources, draft.tokens, draft.roles, strict=True) if r is role}


def test_sources_name_cells_and_guesses() -> None:
    """The screen finds a node's cell by its source: a row or column off by one would colour the wrong cell."""
    for turn in drive().until(40).turns:
        row0, *cells = turn.panel["rows"]
        grid = {f"window:0,{i}": token for i, token in enumerate(row0, start=1)}
        grid |= {f"window:{r},{i}": token for r, row in enumerate(cells, start=1) for i, token in enumerate(row)}
        guesses = enumerate(turn.panel["guesses"])
        assert sources_of(turn, Role.EXPLORE) == grid
        assert sources_of(turn, Role.VERIFY) == {f"pool:{e},{i}": t for e, g in guesses for i, t in enumerate(g)}


def test_the_panel_is_plain_json_that_stays_as_it_was() -> None:
    """A panel that shares its lists with the method would change in the record as the run goes on."""
    run, kept = drive(prompt_as_reference=True), []
    for _ in range(12):
        kept.append(json.dumps(run.turn().panel))
    assert [json.dumps(turn.panel) for turn in run.turns] == kept
    assert all(json.loads(text) == turn.panel for text, turn in zip(kept, run.turns, strict=True))
    run.method.propose()  # nothing observed yet: no answer of the step before may stand in the panel
    assert run.method.panel()["new"] == run.method.panel()["pool"]["inserted"] == []


def test_the_same_seed_gives_the_same_run() -> None:
    """Random picks from anywhere but the run's own generator could not be replayed."""
    one, two, other = (drive(sampling=Sampling(seed=seed)).until(30) for seed in (1, 1, 2))
    assert one.turns == two.turns
    assert one.turns[0].draft != other.turns[0].draft


def test_a_merged_layout_verifies_the_same_with_less() -> None:
    """Merging may drop doubled prefixes and nothing else."""
    apart, merged = (
        drive(prompt_as_reference=True).until(80),
        drive(prompt_as_reference=True, layout="merged").until(80),
    )
    saved = 0
    for one, two in zip(apart.turns, merged.turns, strict=True):
        assert one.panel == two.panel
        assert one.verdict.emitted == two.verdict.emitted
        nodes = zip(two.draft.roles, two.draft.parents, two.draft.tokens, strict=True)
        places = [(parent, token) for role, parent, token in nodes if role is Role.VERIFY]
        assert len(places) == len(set(places)), "siblings of a trie differ"
        saved += len(one.draft.tokens) - len(two.draft.tokens)
    assert saved > 0


def test_without_a_pool_every_step_writes_one_token() -> None:
    """G = 0 leaves the window and nothing to verify."""
    run = drive(G=0, prompt_as_reference=True).until(20)
    assert all(Role.VERIFY not in turn.draft.roles and len(turn.verdict.emitted) == 1 for turn in run.turns)
    assert run.turns[-1].panel["pool"] == {"inserted": [], "keys": 0, "entries": 0}
