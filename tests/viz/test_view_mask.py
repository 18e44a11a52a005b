"""The mask that is drawn against the one that the engine builds for its attention, cell by cell."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
import torch

from decoding import tree
from decoding.model.attention import Attention
from decoding.model.cache import Cache
from decoding.model.kernels import choose
from decoding.types import Header, Role, Step
from tests.viz.engines import RUNS, drawn, plain, run_state
from tests.viz.records import HOSTILE
from viz.cache_slots import chunks
from viz.fates import node_fates
from viz.palette import Fate
from viz.run_state import RunState
from viz.stream import encode
from viz.views import mask
from viz.views.mask_words import sentences

Seen = npt.NDArray[np.bool_]


def engine_mask(header: Header, step: Step) -> Seen:
    """List for each row what the engine's builder lets every unread token and every node see: places, then nodes."""
    length, parents = step.start - 1 - step.pending, tree.after_chain(step.pending, step.parents)
    cpu, dtype = torch.device("cpu"), torch.float32
    cache = Cache(1, 1, 2, 4096, len(parents), None, cpu, dtype)
    cache.length = length
    first = 0 if header.window is None else max(0, length - header.window + 1)
    attention = Attention(choose(cpu, dtype, 2), 1, cpu, dtype)
    bias = attention.masked(cache, length, parents, header.window).bias
    shape = (len(parents), length - first + len(parents))
    seen = np.ones(shape, dtype=np.bool_) if bias is None else bias.numpy() == 0
    return np.concatenate((np.zeros((len(parents), first), dtype=np.bool_), seen), axis=1)


def drawn_mask(state: RunState, k: int, header: Header | None = None) -> Seen:
    """Read the same off the figure: a row for every node."""
    header, step = header or state.header, state.steps[k]
    z = np.array(drawn(state, k, mask)[0]["z"])
    left = mask.columns(header, step)
    assert [column.first for column in left[1:]] + [step.start - 1] * bool(left) == [column.stop for column in left]
    cells = np.repeat(np.arange(len(left)), [column.width for column in left])
    seen = np.zeros((len(step.tokens), step.start - 1 + len(step.tokens)), dtype=np.bool_)
    for at, cell in enumerate(cells):
        seen[:, left[cell].first : left[cell].stop] = z[:, at, None] > 0
    gap = len(cells) + bool(left)
    assert not z[:, len(cells) : gap].any() and z.shape[1] == gap + len(step.tokens)
    seen[:, step.start - 1 :] = z[:, gap:] > 0
    return seen


@pytest.mark.parametrize(("family", "method"), RUNS)
def test_the_lit_cells_are_those_of_the_engine(family: str, method: str) -> None:
    state = run_state(family, method)
    assert state.header.window == (16 if family == "mistral" else None)
    for k, step in enumerate(state.steps):
        assert (drawn_mask(state, k) == engine_mask(state.header, step)[step.pending :]).all(), f"step {k}"


def test_a_wrong_mask_differs_from_the_right_one() -> None:
    """A node hung off another parent, or a window that is one place longer: the test above would see it."""
    state = run_state("mistral", "lookahead")
    k = next(k for k, step in enumerate(state.steps) if Role.VERIFY in step.roles and step.index > 3)
    step = state.steps[k]
    assert step.parents[-1] > 0
    bent = replace(step, parents=(*step.parents[:-1], 0))
    assert (engine_mask(state.header, bent) != drawn_mask(state, k)).any()
    longer = replace(state.header, window=17)
    assert (engine_mask(longer, step) != drawn_mask(state, k)).any()


@pytest.mark.parametrize("family", ["mistral", "llama"])
def test_unread_tokens_see_what_the_engine_lets_them_see(family: str) -> None:
    """The rows of a prefill: all of a joined cell, a part of it, or nothing."""
    state = run_state(family, "lookahead")
    step, (_, unread, _) = state.steps[0], drawn(state, 0, mask)
    assert step.pending == 39 and [len(part) for part in chunks(state.header, step)] == [16, 16, 7]
    left, exact = mask.columns(state.header, step), engine_mask(state.header, step)
    wide = [column for column in left for _ in range(column.width)]
    rows, z = [column for column in left if column.first >= 0], np.array(unread["z"])
    assert unread["y0"] == -len(rows) and z.shape == (len(rows), len(wide))
    for row, line in zip(rows, z, strict=True):
        for column, code in zip(wide, line, strict=True):
            part = exact[row.first : row.stop, column.first : column.stop]
            wanted = Fate.PROMPT + 1 if part.all() else mask.READ if part.any() else 0
            assert code == wanted, (row, column)


def test_a_cell_has_the_colour_of_what_its_row_is() -> None:
    state = run_state("llama", "ngrammys")
    for k, step in enumerate(state.steps):
        z, fates = np.array(drawn(state, k, mask)[0]["z"]), node_fates(step)
        right = z[:, -len(step.tokens) :]
        for node, fate in enumerate(fates):
            assert set(right[node][right[node] > 0].tolist()) == {fate + 1}
            assert set(z[node][: -len(step.tokens)].tolist()) <= {0, mask.READ}


def test_the_reason_names_the_cells_that_are_lit() -> None:
    """Of a window's cell: row 0 up to its column, then its own column."""
    state = run_state("llama", "lookahead")
    k = next(k for k, step in enumerate(state.steps) if "window:2,4" in step.sources and step.pending == 0)
    step = state.steps[k]
    node = step.sources.index("window:2,4")
    lit = tree.path_to(step.parents, node)
    level = [step.tokens[n] for n in lit if step.sources[n].startswith("window:0,")]
    above = [step.tokens[n] for n in lit if step.sources[n].startswith("window:1,")]
    assert len(level) == 4 and len(above) == 1
    sentence = sentences(state, k)[node]
    words = [" ".join(state.text(token).strip() for token in part) for part in (level, above)]
    assert f"up to column 4 ({words[0]})" in sentence.replace("·", "")
    assert f"own column ({words[1]})" in sentence.replace("·", "")
    assert sentence.startswith(f"Sees the text from position 0 to {step.start - 1}, ")


@pytest.mark.parametrize(("family", "method"), RUNS)
def test_every_row_has_a_sentence(family: str, method: str) -> None:
    state = run_state(family, method)
    for k in range(len(state.steps)):
        for sentence in sentences(state, k):
            assert sentence.startswith("Sees ") and sentence.endswith(".")
    if (family, method) == ("mistral", "kangaroo"):
        step = state.steps[2]
        assert len(step.tokens) > 17
        assert "none of the text, which lies beyond this model's window of 16" in sentences(state, 2)[17]


def test_hostile_texts_stay_texts() -> None:
    """Labels are escaped where they are decoded, and a token of ten thousand letters is cut."""
    state = run_state("llama", "medusa")
    for text in HOSTILE:
        hostile = RunState(state.header, dict.fromkeys(state.texts, text), list(state.steps), list(state.ids))
        for k in (0, 2):
            patch = json.dumps(plain(mask.frame(hostile, k), hostile, hostile.steps[k]))
            assert "<" not in patch and len(patch) < 60_000


def test_a_step_of_any_size_is_drawn_in_bounds() -> None:
    """A file from elsewhere may hold thousands of nodes; a run recorded without nodes holds none."""
    state = run_state("llama", "jacobi")
    step, size = state.steps[1], 4096
    many = replace(
        step,
        tokens=(1,) * size,
        parents=tuple(range(-1, size - 1)),
        roles=(Role.ROOT, *(Role.VERIFY,) * (size - 1)),
        sources=("root", *("jacobi:0",) * (size - 1)),
        choices=(1,) * size,
        path=(0,),
    )
    story_of = RunState(state.header, dict(state.texts), [state.steps[0], many], list(state.ids))
    patch = mask.frame(story_of, 1)
    assert len(encode.matrix(patch["data"][0]["z"]["closure"], many)) == mask.MOST
    assert len(json.dumps(patch)) < 5_000
    none = replace(step, tokens=(), parents=(), roles=(), sources=(), choices=(), path=())
    assert mask.frame(RunState(state.header, {}, [none], list(state.ids)), 0) == {}
