"""The trace file: what was written comes back equal, and a hostile file gives one sentence."""

from __future__ import annotations

import gzip
import io
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from decoding.codec import Codec
from decoding.engine import Engine
from decoding.errors import TraceError
from decoding.model.table import counted
from decoding.trace.file import TraceWriter, dump_line, parse_trace, read_trace, write_trace
from decoding.trace.metrics import summarise
from decoding.types import Header, ModelCard, Role, Step, Timing, Trace

torch.set_num_threads(1)

NASTY = ["", " the", "\u2028\u0085\n\r", '"}\x00</script>', "\u202e$$`", "\U0001f600e\u0301"]


def make(seed: int, steps: int, record: str, panel: Any = None, nodes: int = 7) -> Trace:
    """Make a trace as a run could have written it, from a seed."""
    rng = random.Random(seed)
    card = ModelCard("pocket", "table", "0" * 64, 12, 50, 4096)
    prompt = tuple(rng.randrange(50) for _ in range(rng.randint(1, 5)))
    header = Header(
        "lookahead", {"W": 5, "q": 0.1}, {"temperature": 0.0}, prompt, 999, ("\n",), (7,), (1, 2), 512,
        card, None, "cpu", "float32", "table", record, {"python": "3.11"},
    )  # fmt: skip
    made: list[Step] = []
    start, last = len(prompt), prompt[-1]
    for index in range(steps):
        step = a_step(rng, index, start, last, record, panel or {}, nodes, may_cut=index == steps - 1)
        made.append(step)
        start, last = start + len(step.emitted), step.emitted[-1]
    texts = {token: rng.choice(NASTY) for token in range(60)}
    return Trace(header, tuple(made), summarise(made, "length", rng.choice(NASTY)), texts)


def a_step(
    rng: random.Random, index: int, start: int, last: int, record: str, panel: Any, nodes: int, may_cut: bool
) -> Step:
    size = rng.randint(1, nodes)
    parents = (-1, *(rng.randrange(node) for node in range(1, size)))
    tokens = (last, *(rng.randrange(50) for _ in range(size - 1)))
    roles = (Role.ROOT, *(rng.choice([Role.VERIFY, Role.VERIFY, Role.EXPLORE]) for _ in range(size - 1)))
    path = [0]
    while below := [
        n for n in range(size) if parents[n] == path[-1] and roles[n] is Role.VERIFY and rng.random() < 0.7
    ]:
        path.append(rng.choice(below))
    emitted = [tokens[node] for node in path[1:]]
    if not (may_cut and emitted and rng.random() < 0.5):
        emitted.append(rng.randrange(50))

    def share() -> float:
        return round(rng.random(), 6)

    columns: dict[str, Any] = {}
    if record != "off":
        sources = ("root", *(f"pool:{node}" for node in range(1, size)))
        columns = {"tokens": tokens, "parents": parents, "roles": roles, "sources": sources, "path": tuple(path)}
        columns |= {"choices": tuple(rng.randrange(50) for _ in range(size)), "panel": panel}
    if record == "full":
        columns["p"] = (None, *(share() for _ in range(size - 1)))
        columns["q"] = tuple(rng.choice([None, share()]) for _ in range(size))
        columns["top"] = tuple(tuple((rng.randrange(50), share()) for _ in range(5)) for _ in range(size))
        distributions = (range(rng.choice([0, 1, 5])) for _ in range(size))
        columns["draft_top"] = tuple(
            tuple((rng.randrange(50), share(), share()) for _ in distribution) for distribution in distributions
        )
        columns["entropy"] = tuple(20 * share() for _ in range(size))
        columns["overlap"] = tuple(rng.choice([None, share()]) for _ in range(size))
        columns["u"] = tuple(rng.choice([None, share()]) for _ in range(size))
    timing = Timing(share(), rng.random() * 1e-300, 0.0, share(), 1e9)
    pending, drafted = (start - 1 if index == 0 else 0), roles.count(Role.VERIFY)
    return Step(index, start, pending, tuple(emitted), len(path) - 1, drafted, pending + size, timing, **columns)


def dumped(trace: Trace) -> bytes:
    buffer = io.StringIO()
    write_trace(trace, buffer)
    return buffer.getvalue().encode("ascii")


SMALL = make(3, 3, "full")
LINES = [json.loads(line) for line in dumped(SMALL).splitlines()]
NUMBER = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.recursive(
    st.none() | st.booleans() | NUMBER | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
    max_leaves=8,
)


@given(
    st.integers(0, 10**6),
    st.integers(0, 5),
    st.sampled_from(["off", "light", "full"]),
    st.dictionaries(st.text(), PLAIN, max_size=3),
)
@settings(max_examples=50, deadline=None, derandomize=True)
def test_a_trace_comes_back_equal(seed: int, steps: int, record: str, panel: dict[str, Any]) -> None:
    """Any loss on the way would make a replay show something that did not happen."""
    made = make(seed, steps, record, panel)
    data = dumped(made)
    assert parse_trace(data) == parse_trace(data.decode()) == parse_trace(gzip.compress(data)) == made
    assert dumped(parse_trace(data)) == data
    torn = replace(made, summary=None)
    assert parse_trace(dumped(torn)) == torn


@pytest.mark.parametrize("record", ["off", "light", "full"])
@pytest.mark.parametrize("method", ["autoregressive", "prompt_lookup"])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_what_the_engine_writes_is_read(record: str, method: str, temperature: float) -> None:
    """A reader stricter than the engine refuses real runs, cut ones included."""
    text = [1, 2, 3, 4, 2, 3, 5, 1, 2, 3, 4] * 3
    engine = Engine(counted(text, 2, 8, "table"), Codec())
    for budget in (1, 2, 9):
        trace = engine.generate(
            text[:20],
            method,
            record=record,
            max_new_tokens=budget,
            sampling={"temperature": temperature, "seed": budget},
        ).trace
        assert parse_trace(dumped(trace)) == trace


def test_lines_come_in_order_and_are_plain_ascii() -> None:
    """A reader that goes line by line must know a token's text before it has to draw it; hostile texts end no line."""
    data = dumped(SMALL)
    assert data.isascii() and data.count(b"\n") == len(data.splitlines()) == len(data.decode().splitlines())
    seen: set[int] = set()
    assert LINES[0]["kind"] == "header" and LINES[-1]["kind"] == "summary"
    for line in LINES[1:-1]:
        if line["kind"] == "texts":
            assert not seen & set(map(int, line["texts"])), "a text is written once"
            seen |= set(map(int, line["texts"]))
        else:
            best = [token for row in line["top"] + line["draft_top"] for token, *_ in row]
            assert line["kind"] == "step" and {*line["tokens"], *line["emitted"], *line["choices"], *best} <= seen


def test_a_trace_from_before_the_drafters_distributions_is_still_read() -> None:
    """Recordings outlive the columns that later ones have."""
    later = ("draft_top", "entropy", "overlap", "u")
    older = [{name: value for name, value in line.items() if name not in later} for line in LINES]
    got = parse_trace(b"".join(json.dumps(line).encode() + b"\n" for line in older))
    assert (
        got.steps
        == tuple(replace(step, draft_top=(), entropy=(), overlap=(), u=()) for step in SMALL.steps)
        != SMALL.steps
    )


def test_paths_are_packed_by_name_and_unpacked_by_content(tmp_path: Path) -> None:
    """A packed file that was renamed must open, and equal traces must make equal files, or they cannot be compared."""
    for name in ("a.jsonl", "a.jsonl.gz"):
        write_trace(SMALL, tmp_path / name)
        first = (tmp_path / name).read_bytes()
        assert read_trace(tmp_path / name) == read_trace(str(tmp_path / name)) == SMALL
        write_trace(SMALL, tmp_path / name)
        assert (tmp_path / name).read_bytes() == first
    packed = tmp_path / "a.jsonl.gz"
    assert packed.read_bytes()[:2] == b"\x1f\x8b" and packed.read_bytes()[4:8] == bytes(4), "no time of writing inside"
    assert packed.stat().st_size < (tmp_path / "a.jsonl").stat().st_size / 2
    assert read_trace(packed.rename(tmp_path / "b.jsonl")) == SMALL


@pytest.mark.parametrize("name", ["live.jsonl", "live.jsonl.gz"])
def test_a_run_that_crashes_leaves_what_it_wrote(tmp_path: Path, name: str) -> None:
    """A writer that keeps lines back loses the very steps that led to the crash."""
    writer = TraceWriter(tmp_path / name)
    writer.header(SMALL.header)
    writer.texts(SMALL.texts)
    for count, step in enumerate(SMALL.steps, start=1):
        writer.step(step)
        got = read_trace(tmp_path / name, allow_partial=True)
        assert got == Trace(SMALL.header, SMALL.steps[:count], None, SMALL.texts)
    writer.close()
    assert read_trace(tmp_path / name).summary is None


def test_the_writer_keeps_the_order_of_lines() -> None:
    """A caller's mistake must show at once, not as a file that cannot be read later."""
    assert SMALL.summary is not None
    writer = TraceWriter(io.StringIO())
    with pytest.raises(AssertionError):
        writer.step(SMALL.steps[0])
    writer.header(SMALL.header)
    with pytest.raises(AssertionError):
        writer.header(SMALL.header)
    writer.summary(summarise([], "time", ""))
    with pytest.raises(AssertionError):
        writer.step(SMALL.steps[0])


def test_the_writer_refuses_what_is_no_json() -> None:
    """NaN from a broken model would be written as a word that no JSON reader takes."""
    step = replace(SMALL.steps[0], timing=Timing(float("nan")))
    with pytest.raises(TraceError, match=r"Step\.timing\.draft_ms must be a finite number, not nan"):
        dump_line("step", step)


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    """A typing error in --trace must not end in a traceback."""
    for path in (tmp_path, tmp_path / "none" / "a.gz", tmp_path / "a\0b"):
        with pytest.raises(TraceError, match="cannot be written: .*; choose another place"):
            TraceWriter(path)


class Full(io.StringIO):
    """A disk with no room left."""

    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


def test_a_full_disk_is_one_sentence() -> None:
    """A run of an hour that fails to write must say why."""
    with pytest.raises(TraceError, match="the trace cannot be written: No space left on device"):
        TraceWriter(Full()).header(SMALL.header)


def test_reading_a_path_that_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of the operating system must reach the user as one sentence that names the path."""
    with pytest.raises(TraceError, match="cannot be read: Is a directory"):
        read_trace(tmp_path)
    with pytest.raises(TraceError, match=r"none\.jsonl cannot be read: No such file or directory"):
        read_trace(tmp_path / "none.jsonl")
    with pytest.raises(TraceError, match=r"'a\\x00b' cannot be read"):
        read_trace("a\0b")
    (tmp_path / "bad.jsonl").write_text("{}\n")
    with pytest.raises(TraceError, match=r"bad\.jsonl: line 1 must be of kind"):
        read_trace(tmp_path / "bad.jsonl")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)  # the owner of a test machine may read everything
    with pytest.raises(TraceError, match="cannot be read: Permission denied"):
        read_trace(tmp_path / "bad.jsonl")


def test_a_text_file_object_is_refused() -> None:
    """A file opened in the wrong mode must not end in a TypeError from deep inside."""
    with pytest.raises(TraceError, match="binary mode"):
        read_trace(io.StringIO("{}"))  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_file_cut_at_any_byte() -> None:
    """A torn file must never pass for a shorter run, and what is before the tear must not be lost."""
    whole = replace(make(5, 2, "light", nodes=2), texts={6: "\u2028"})
    data = dumped(whole)
    ends = [end for end, byte in enumerate(data, start=1) if byte == 10]
    for end in range(len(data)):
        cut, before = data[:end], sum(e <= end for e in ends)
        complete = end == 0 or end in ends or end + 1 in ends  # a line without its line end is whole
        if end == 0:
            with pytest.raises(TraceError, match="no whole line"):
                parse_trace(cut)
        elif complete:
            got = parse_trace(cut)
            assert got.steps == whole.steps[: len(got.steps)]
            assert (got.summary is None) == (end < len(data) - 1)
        else:
            with pytest.raises(TraceError, match=f"cut off at line {before + 1}; .*remove that line .*allow_partial"):
                parse_trace(cut)
            if before:
                partial = parse_trace(cut, allow_partial=True)
                assert partial == parse_trace(data[: ends[before - 1]]) and partial.summary is None
            else:
                with pytest.raises(TraceError, match="no whole line"):
                    parse_trace(cut, allow_partial=True)


def test_a_packed_file_cut_at_any_byte() -> None:
    """The packing has its own end mark: missing it is a cut too, and no error of the zlib kind may escape."""
    data = gzip.compress(dumped(replace(SMALL, texts={})), mtime=0)
    for end in range(2, len(data)):
        with pytest.raises(TraceError, match="cut off at line"):
            parse_trace(data[:end])
    assert parse_trace(data[:-1], allow_partial=True).steps == SMALL.steps


def test_partial_reading_forgives_the_cut_only() -> None:
    """A flag for torn files must not let damaged ones through."""
    data = dumped(SMALL)
    for bad in (data.replace(b'"index":1', b'"index":7'), data[:-2] + b"\n", b"junk"):
        with pytest.raises(TraceError):
            parse_trace(bad, allow_partial=True)


def test_mutated_files_give_a_trace_or_one_sentence() -> None:
    """Whatever a disk or an attacker does to the bytes, no other exception may reach the caller."""
    rng = random.Random(0)
    plain, packed = dumped(make(1, 2, "full", nodes=4)), gzip.compress(dumped(SMALL), mtime=0)
    refused = 0
    for turn in range(600):
        data = bytearray(plain if turn % 6 else packed)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data))
            edit = rng.randrange(4)
            if edit == 0:
                data[at] = rng.randrange(256)
            elif edit == 1:
                del data[at : at + rng.randint(1, 9)]
            elif edit == 2:
                data[at:at] = rng.choice(
                    [b"[", b"}", b'"', b"-", b"9" * 30, b"\n", b"null", b"\xff", b"1e999", b"\\ud800"]
                )
            else:
                data[at] ^= 1 << rng.randrange(8)
        for partial in (False, True):
            try:
                assert isinstance(parse_trace(bytes(data), allow_partial=partial), Trace)
            except TraceError as error:
                refused += 1
                assert len(str(error)) < 300 and str(error).isprintable()
    assert refused > 600
