"""Compiled code: a row's numbers are the same whatever is beside it, and nothing is lost where it is missing."""

from __future__ import annotations

import os
import random
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from decoding import sampling
from decoding.model.loading import decoder_of
from decoding.native import build, products, summaries
from decoding.outlook import Drafted, Outlook
from decoding.tree import path_to
from tests.families import ALL, needs_compiler, tiny
from tests.model.test_parity import BY_LENGTH
from tests.model.texts import chain, feed, random_tree, text
from tests.tiers import sampled, slow

SUITED = [name for name in ALL if name not in ("llama-wide-heads", *BY_LENGTH)]  # its heads have 24 numbers
DTYPES = [torch.float32, torch.bfloat16]
THREADS = [1, 2, 3]


@pytest.fixture(params=THREADS)
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """Yield how many threads share a step."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@needs_compiler
@pytest.mark.parametrize("name", ALL)
def test_models_whose_sizes_are_whole_vectors_are_run_by_it(name: str) -> None:
    """Were none of them suited, all tests here would be of torch."""
    assert decoder_of(tiny(name)).compiled == (name != "llama-wide-heads")
    assert not decoder_of(tiny(name), torch.float64).compiled


def models() -> Iterator[Any]:
    """Yield every model in both dtypes with every number of threads; by default with one or two, and one with three.

    On fewer processors than threads they wait for each other, and a test of a second takes ten.
    """
    for at, (name, dtype) in enumerate(product(SUITED, DTYPES)):
        for threads in THREADS:
            quick = threads == 3 if name == "qwen2" else threads == 1 + (at + at // 2) % 2
            yield pytest.param(name, dtype, threads, marks=() if quick else slow)


@sampled
@needs_compiler
@pytest.mark.parametrize(("name", "dtype", "threads"), [*models()], indirect=["threads"], ids=str)
def test_a_row_is_the_same_bit_by_bit_however_it_is_fed(
    name: str, dtype: torch.dtype, threads: int, everything: bool
) -> None:
    """One sum in another order, and bfloat16 texts part at near-ties from those of autoregressive decoding."""
    decoder, source = decoder_of(tiny(name), dtype), random.Random(name)
    for case in range(4 if everything or threads < 3 else 2):
        before, nodes = text(source.choice([1, 15, 16, 17, 40, 90]), case), source.choice([2, 5, 13, 14, 15, 29, 60])
        parents, tokens = random_tree(nodes, case), text(nodes, case + 100)
        wide, narrow = decoder.open(200, 90), decoder.open(200, 60)
        prompt = feed(wide, before, len(before))
        assert torch.equal(prompt, feed(narrow, before, 1)), "the prompt"
        reading = wide.read(tokens, parents)
        for node in source.sample(range(nodes), min(nodes, 6)):
            path = list(path_to(parents, node))
            alone = feed(narrow, [tokens[i] for i in path], 1)
            narrow.rewind(len(before))
            assert torch.equal(reading.logits[path], alone), f"row {node} of {nodes} after {len(before)}"
        path = list(path_to(parents, nodes - 1))
        wide.commit(path)
        after = feed(wide, text(3, 7), 3)
        feed(narrow, [tokens[i] for i in path], 1)
        assert torch.equal(after, feed(narrow, text(3, 7), 1)), "what is read after a tree's accepted rows"


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("outputs", "inputs"), [(32, 16), (67, 48), (1, 2), (100, 1600)])
def test_a_product_row_by_row(dtype: torch.dtype, outputs: int, inputs: int, threads: int) -> None:
    """Outputs that fill no block, and every number of rows that has code of its own."""
    torch.manual_seed(0)
    weight, bias = torch.randn(outputs, inputs).to(dtype), torch.randn(outputs).to(dtype)
    product, x = products.NativeProduct(weight, bias), torch.randn(45, inputs).to(dtype)
    alone = torch.cat([product(row[None]) for row in x])
    wanted = torch.nn.functional.linear(x.double(), weight.double(), bias.double())
    torch.testing.assert_close(alone.double(), wanted, rtol=8e-3 if dtype == torch.bfloat16 else 1e-4, atol=2e-2)
    for rows in range(46):
        assert torch.equal(product(x[:rows]), alone[:rows])


@slow
@needs_compiler
def test_a_member_that_comes_late_runs_nothing_that_is_over() -> None:
    """Members look out for work while others are called alone: between two sizes of a team they must see either."""
    torch.manual_seed(0)
    product, x = products.NativeProduct(torch.randn(96, 32), None), torch.randn(2, 32)
    rows, before = torch.randn(1, 1024), torch.get_num_threads()
    wanted, largest = product(x), summaries.largest(rows)
    try:
        torch.set_num_threads(2)
        for _ in range(60_000):
            assert summaries.largest(rows) == largest  # one row is one member's work
            assert torch.equal(product(x), wanted)
    finally:
        torch.set_num_threads(before)


@needs_compiler
def test_texts_of_one_model_side_by_side() -> None:
    """What belongs to a step must not lie in the model: two visitors' steps run at the same time."""
    decoder, tokens = decoder_of(tiny("llama")), [text(60, seed) for seed in range(4)]

    def read(own: list[int]) -> torch.Tensor:
        return torch.cat([feed(decoder.open(64, 4), own, 4) for _ in range(10)])

    alone = [read(own) for own in tokens]
    with ThreadPoolExecutor(4) as pool:
        for got, wanted in zip(pool.map(read, tokens), alone, strict=True):
            assert torch.equal(got, wanted)


@slow  # a process of its own
@needs_compiler
def test_a_forked_process_has_threads_of_its_own() -> None:
    """A child that waits for its parent's threads waits for ever."""
    script = (
        "import os, torch, sys\n"
        "from decoding.native.products import NativeProduct\n"
        "torch.set_num_threads(2)\n"
        "product, x = NativeProduct(torch.ones(64, 16), None), torch.ones(3, 16)\n"
        "wanted = product(x)\n"
        "child = os.fork()\n"
        "if child == 0: os._exit(0 if product(x).tolist() == wanted.tolist() else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.fixture
def made_before() -> str:
    """Return the file of the compiled code that all tests run."""
    code = build.library()
    assert code is not None
    return code._name


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield an empty cache of compiled code."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    build.library.cache_clear()
    yield tmp_path
    build.library.cache_clear()


def compiler(path: Path, script: str) -> str:
    """Return a program that is called as the compiler."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return str(path)


@needs_compiler
def test_it_is_compiled_once(made_before: str, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every start after the first takes the file; another compiler makes another one."""
    # Calls take seconds: so the compiler is one that hands out what the real one has made before.
    script = f'echo called >> {fresh}/calls; for last; do :; done; cp {made_before} "$last"'
    monkeypatch.setenv("CXX", compiler(fresh / "c++", script))
    for _ in range(2):
        assert build.library() is not None
        build.library.cache_clear()
    assert (fresh / "calls").read_text().count("called") == 1
    assert len([*(fresh / "specscope" / "native").iterdir()]) == 1


@pytest.mark.parametrize(
    "script",
    ["exit 1", "kill -9 $$", 'for last; do :; done; echo nonsense > "$last"', "true"],
    ids=["refuses", "dies", "makes no library", "makes nothing"],
)
def test_a_compiler_that_fails_leaves_torch(fresh: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A machine without a working compiler runs all there is, a little slower."""
    monkeypatch.setenv("CXX", compiler(fresh / "c++", script))
    assert build.library() is None
    decoder = decoder_of(tiny("llama"))
    assert not decoder.compiled
    assert decoder.open(64, 32).read(text(20), chain(20)).logits.isfinite().all()


@pytest.mark.parametrize("name", ["SPECSCOPE_NATIVE", "CXX", "XDG_CACHE_HOME"])
def test_it_can_be_done_without(fresh: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Switched off by the user; no compiler of that name; nowhere to put what was compiled."""
    values = {"SPECSCOPE_NATIVE": "0", "CXX": "no-such-compiler", "XDG_CACHE_HOME": os.devnull}
    monkeypatch.setenv(name, values[name])
    assert build.library() is None


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("size", "count"), [(1024, 37), (1031, 1), (5000, 5)])
def test_the_largest_numbers_of_rows_are_in_order_and_ties_by_id(
    dtype: torch.dtype, size: int, count: int, threads: int
) -> None:
    """Few different numbers, so that most of them are tied, at the very end of a row too."""
    torch.manual_seed(size)
    for spread in (3, 400, 100_000):
        rows = (torch.randint(spread, (7, size)) / spread * 20 - 10).to(dtype)
        rows[1, -3:], rows[2] = 30.0, -torch.inf
        rows[3, size // 2 :] = -torch.inf
        got = summaries.summarize(rows, count, 0.7)
        assert got is not None
        ids, values, totals, moments = got
        order = rows.double().argsort(dim=-1, descending=True, stable=True)[:, :count]
        assert torch.equal(ids, order)
        assert torch.equal(values.double(), rows.double().gather(-1, order))
        usual = [0, 1, 3, 4, 5, 6]
        wide = rows[usual].double()
        distances = ((wide - wide.amax(-1, keepdim=True)) * 0.7).clamp(min=-200.0)
        wanted = distances.exp().sum(-1)
        torch.testing.assert_close(totals[usual].double(), wanted, rtol=2e-6, atol=0)
        wanted = (distances.exp() * distances).sum(-1)
        torch.testing.assert_close(moments[usual].double(), wanted, rtol=4e-6, atol=1e-6)
        few = summaries.largest(rows[usual], count, shares=True)
        assert few is not None and few[0] == order[usual].flatten().tolist()
        assert few[1] == pytest.approx(wide.softmax(-1).gather(-1, order[usual]).flatten().tolist(), rel=4e-6)
        assert summaries.largest(rows) == (order[:, 0].tolist(), [])


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("place", [0, 4, 5, 500, 1023, 1030])
def test_a_row_that_holds_no_number_is_found(dtype: torch.dtype, place: int) -> None:
    """It would be compared as smaller than everything, and the run would go on."""
    rows = torch.zeros(3, 1031, dtype=dtype)
    rows[2, place] = torch.nan
    assert summaries.summarize(rows, 5) is None and summaries.largest(rows, shares=True) is None
    assert summaries.summarize(rows[:2], 5) is not None


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [1024, 1031])
def test_the_softmax_of_rows_is_that_of_torch(dtype: torch.dtype, size: int, threads: int) -> None:
    """A drafter's distributions in a record would be others where the compiled code runs."""
    torch.manual_seed(size)
    rows = (torch.randn(5, size) * 6).to(dtype)
    rows[1, size // 2 :], rows[2, -1] = -torch.inf, 60.0
    got = summaries.softmax(rows)
    assert got is not None
    torch.testing.assert_close(got.double(), torch.softmax(rows.double(), -1), rtol=2e-6, atol=1e-12)
    rows[3, -1] = torch.nan
    assert summaries.softmax(rows) is None


def recorded(rows: torch.Tensor, temperature: float, q: list[torch.Tensor]) -> tuple[list[list[float]], Drafted]:
    """Return all that a record asks of six nodes and of a drafter's distributions after three of them."""
    outlook = Outlook(rows, temperature)
    return (
        [outlook.best.flatten().tolist(), *outlook.listed((0, 0, 1, 2, 4), (7, 1023, 512, 3, 1000))],
        outlook.beside(q, [0, 1, 4], [0, 0, 1, 2], [7, 1023, 512, 1000]),
    )


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [1024, 1031])
def test_a_record_has_the_same_numbers_without_compiled_code(
    dtype: torch.dtype, size: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of rows that do not lie side by side too, of filtered ones, and of a q without a number, which torch is left."""
    torch.manual_seed(size)
    wide = (torch.randn(6, 2 * size) * 4).to(dtype)
    wide[2, size // 3 :], wide[3, 5 : size - 5] = -torch.inf, -torch.inf
    q = [*torch.softmax(torch.randn(3, size) * 3, -1)]
    q[1] = torch.zeros(size).index_fill(0, torch.tensor([512, size - 1]), 0.5)
    for temperature, drafted in ((1.0, q), (0.4, q), (1.0, [row.double() for row in q])):
        compiled = recorded(wide[:, :size], temperature, drafted)
        with monkeypatch.context() as patch:
            patch.setattr(sampling, "summarizes", lambda rows: False)
            plain = recorded(wide[:, :size], temperature, drafted)
        for ours, theirs in zip((*compiled[0], *compiled[1]), (*plain[0], *plain[1]), strict=True):
            assert ours == pytest.approx(theirs, abs=2e-6)
            assert all(round(number, 6) == number for number in ours)
    q[2][9] = torch.nan
    assert Outlook(wide[:, :size]).beside(q, [0, 1, 4], [0], [7]).shares == [round(float(q[0][7]), 6)]
