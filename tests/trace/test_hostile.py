"""Files that no run wrote: each is refused with a sentence that names the place."""

from __future__ import annotations

import gzip
import io
import json
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from decoding.errors import TraceError
from decoding.trace.file import Limits, parse_trace, read_trace
from decoding.types import SCHEMA

MIB = 2**20
TIMING = {"draft_ms": 0.5, "forward_ms": 2.0, "accept_ms": 0.0, "commit_ms": 0.25, "total_ms": 3.0}


def story() -> list[Any]:
    """Return a small valid trace as JSON: prompt 7 8; a step that accepts 3 of the guesses 3 4, and a plain one."""
    card = {"name": "m", "family": "f", "hash": "0", "parameters": 1, "vocabulary": 9, "context": 99}
    header = {
        "kind": "header", "method": "jacobi", "params": {}, "sampling": {}, "prompt": [7, 8], "max_new_tokens": 9,
        "stop": [], "end_tokens": [], "reference": [], "prefill_chunk": 512,
        "model": card, "draft": None, "device": "cpu", "dtype": "float32", "attention": "table",
        "record": "full", "versions": {}, "parts": {}, "window": None, "lossless": True,
        "slots": 0, "schema": SCHEMA,
    }  # fmt: skip
    one = {
        "kind": "step", "index": 0, "start": 2, "pending": 1, "emitted": [3, 5], "accepted": 1, "drafted": 2, "fed": 5,
        "timing": TIMING, "tokens": [8, 3, 4, 6], "parents": [-1, 0, 1, 0], "roles": [0, 1, 1, 2],
        "sources": ["root", "jacobi:0", "jacobi:1", "window:0,0"], "path": [0, 1], "choices": [3, 5, 5, 5],
        "p": [None, 0.5, 1, 0], "q": [None, None, 0.25, None], "top": [[[3, 0.5]], [[5, 1.0]], [], [[0, 0]]],
        "panel": {},
    }  # fmt: skip
    two = {
        "kind": "step", "index": 1, "start": 4, "pending": 0, "emitted": [1], "accepted": 0, "drafted": 0, "fed": 1,
        "timing": TIMING, "tokens": [5], "parents": [-1], "roles": [0], "sources": ["root"], "path": [0],
        "choices": [1], "p": [None], "q": [None], "top": [[]], "panel": {},
    }  # fmt: skip
    summary = {
        "kind": "summary", "finish": "length", "text": "abc", "new_tokens": 3, "steps": 2,
        "mean_acceptance_length": 1.5,
        "draft_acceptance_rate": 0.5, "acceptance_histogram": [1, 1], "fed_per_token": 2.0, "prefill_seconds": 0.003,
        "decode_seconds": 0.003, "tokens_per_second": 333.0, "timing": TIMING,
    }  # fmt: skip
    return [header, {"kind": "texts", "texts": {"7": "a", "8": "b"}}, one, two, summary]


def spelled(lines: list[Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def test_the_story_itself_is_read() -> None:
    """Were it refused, every test of a damaged copy below would pass for nothing."""
    trace = parse_trace(spelled(story()))
    assert trace.ids == (3, 5, 1) and len(trace.steps) == 2 and trace.texts == {7: "a", 8: "b"}
    assert [node.accepted for node in trace.steps[0].nodes] == [True, True, False, False]


def put(line: int, key: str, value: Any) -> Callable[[list[Any]], None]:
    return lambda lines: lines[line].__setitem__(key, value)


def both(*changes: Callable[[list[Any]], None]) -> Callable[[list[Any]], None]:
    return lambda lines: [change(lines) for change in changes] and None


def put_timing(line: int, value: float) -> Callable[[list[Any]], None]:
    return put(line, "timing", {**TIMING, "accept_ms": value})


DAMAGE: list[tuple[Callable[[list[Any]], None], str]] = [
    (put(0, "schema", 2), r"line 1: header .*version 2; this reader supports 1"),
    (put(0, "schema", "1"), r"line 1: header\.schema must be a whole number, not '1'"),
    (lambda lines: lines[0].pop("schema"), r"line 1: header\.schema is missing"),
    (put(0, "prompt", []), r"line 1: header\.prompt must hold at least one token"),
    (put(0, "prompt", [7, -8]), r"line 1: header\.prompt must not hold negative token ids"),
    (put(0, "max_new_tokens", -1), r"line 1: header\.max_new_tokens must not be negative"),
    (put(0, "kind", "footer"), r"line 1 must be of kind header, texts, step or summary, not 'footer'"),
    (put(1, "kind", ["step"]), r"line 2 must be of kind .*, not a list"),
    (put(1, "kind", None), r"line 2 must be of kind .*, not null"),
    (lambda lines: lines.pop(0), r"line 1: texts precedes the header"),
    (lambda lines: lines.insert(1, lines[0]), r"line 2: header is a second one"),
    (lambda lines: lines.append(lines[1]), r"line 6 follows the summary"),
    (lambda lines: lines.append(lines[4]), r"line 6 follows the summary"),
    (lambda lines: lines.insert(2, {"kind": "texts", "texts": {"8": "c"}}), r"line 3: texts.texts gives token 8 a"),
    (put(1, "texts", {"-1": "x"}), r"line 2: texts\.texts must not hold negative token ids"),
    (lambda lines: lines.pop(2), r"line 3: step\.index must be 0, not 1"),
    (put(3, "index", 0), r"line 4: step\.index must be 1, not 0"),
    (put(2, "start", 3), r"line 3: step\.start must be 2, not 3"),
    (put(3, "start", 3), r"line 4: step\.start must be 4, not 3"),
    (put(2, "pending", 2), r"line 3: step\.pending must be less than start"),
    (put(2, "pending", -1), r"line 3: step\.pending must not be negative"),
    (put(2, "fed", 1), r"line 3: step\.fed must count the root"),
    (put(2, "emitted", []), r"line 3: step\.emitted must hold the 1 accepted"),
    (put(3, "emitted", []), r"line 4: step\.emitted must hold the 0 accepted"),
    (put(2, "emitted", [3, 5, 5]), r"line 3: step\.emitted must hold the 1 accepted"),
    (put(2, "emitted", [4, 5]), r"line 3: step\.emitted must begin with the tokens of the accepted path"),
    (put(2, "emitted", [3, -5]), r"line 3: step\.emitted must not hold negative token ids"),
    (put(2, "accepted", 2), r"line 3: step\.accepted must be 1 by its path, not 2"),
    (put(2, "drafted", 0), r"line 3: step\.accepted must not exceed the 0 drafted"),
    (put(2, "drafted", 3), r"line 3: step\.drafted must be 2"),
    (put(2, "tokens", [7, 3, 4, 6]), r"line 3: step\.tokens\[0\] must be 8, the last committed token"),
    (put(3, "tokens", [8]), r"line 4: step\.tokens\[0\] must be 5, the last committed token"),
    (put(2, "tokens", [8, 3, 4, -6]), r"line 3: step\.tokens must not hold negative token ids"),
    (put(2, "tokens", [8, 3, 4]), r"line 3: step\.parents has 4 entries for 3 nodes"),
    (put(2, "tokens", []), r"line 3: step\.parents has 4 entries for 0 nodes"),
    (put(2, "parents", []), r"line 3: step\.parents has 0 entries for 4 nodes"),
    (put(2, "sources", ["root"]), r"line 3: step\.sources has 1 entries for 4 nodes"),
    (put(2, "choices", [3]), r"line 3: step\.choices has 1 entries for 4 nodes"),
    (put(2, "choices", [3, 5, 5, -5]), r"line 3: step\.choices must not hold negative"),
    (put(2, "parents", [0, 0, 1, 0]), r"line 3: step\.parents is no tree: .* root"),
    (put(2, "parents", [-1, 0, 2, 0]), r"line 3: step\.parents is no tree: node 2"),
    (put(2, "parents", [-1, -1, 1, 0]), r"line 3: step\.parents is no tree: node 1"),
    (put(2, "roles", [1, 1, 1, 2]), r"line 3: step\.roles must give node 0"),
    (put(2, "roles", [1, 0, 1, 2]), r"line 3: step\.roles must give node 0"),
    (put(2, "roles", [0, 1, 1, 0]), r"line 3: step\.roles must give node 0"),
    (put(2, "roles", [0, 1, 1, 3]), r"line 3: step\.roles\[3\] must be one of 0, 1, 2, not 3"),
    (put(2, "roles", [0, 2, 1, 1]), r"line 3: step\.path holds node 1, which is no guess"),
    (put(2, "path", []), r"line 3: step\.path must begin at node 0"),
    (put(2, "path", [1]), r"line 3: step\.path must begin at node 0"),
    (put(2, "path", [0, 2]), r"line 3: step\.path must go from node to child"),
    (put(2, "path", [0, 1, 3]), r"line 3: step\.path must go from node to child, but 3 is none of 1"),
    (put(2, "path", [0, 4]), r"line 3: step\.path names node 4"),
    (put(2, "path", [0, -3]), r"line 3: step\.path names node -3"),
    (put(2, "path", [0]), r"line 3: step\.accepted must be 0 by its path"),
    (put(2, "p", [None, 0.5, 1.0001, 0]), r"line 3: step\.p must hold probabilities"),
    (put(2, "q", [None, None, -0.1, None]), r"line 3: step\.q must hold probabilities"),
    (put(2, "top", [[[3, 1.5]], [], [], []]), r"line 3: step\.top must hold probabilities"),
    (put(2, "top", [[[-3, 0.5]], [], [], []]), r"line 3: step\.top must not hold negative token ids"),
    (put(2, "top", [[[3, 0.5]], [], []]), r"line 3: step\.top has 3 entries for 4 nodes"),
    (put(2, "draft_top", [[[3, 1.5, 0.1]], [], [], []]), r"line 3: step\.draft_top must hold probabilities"),
    (put(2, "draft_top", [[[3, 0.5, -0.1]], [], [], []]), r"line 3: step\.draft_top must hold probabilities"),
    (put(2, "draft_top", [[[-3, 0.5, 0.1]], [], [], []]), r"line 3: step\.draft_top must not hold negative token ids"),
    (put(2, "draft_top", [[[3, 0.5, 0.1]], [], []]), r"line 3: step\.draft_top has 3 entries for 4 nodes"),
    (put(2, "draft_top", [[[3, 0.5]], [], [], []]), r"line 3: step\.draft_top\[0\]\[0\] must be a list of 3 values"),
    (put(2, "entropy", [0.5, -0.1, 0.0, 0.0]), r"line 3: step\.entropy must hold numbers from 0 to 64"),
    (put(2, "entropy", [0.5, 65.0, 0.0, 0.0]), r"line 3: step\.entropy must hold numbers from 0 to 64"),
    (put(2, "overlap", [0.5, None, 1.1, None]), r"line 3: step\.overlap must hold probabilities"),
    (put(2, "u", [0.5, None, 1.1, None]), r"line 3: step\.u must hold probabilities"),
    (put(2, "overlap", [0.5]), r"line 3: step\.overlap has 1 entries for 4 nodes"),
    (put(2, "draft_top", None), r"line 3: step\.draft_top must be a list"),
    (put(2, "ranks", [[0], [0], [0]]), r"line 3: step\.ranks has 3 entries for 4 nodes"),
    (put(2, "ranks", [[0], [0], [0], []]), r"line 3: step\.ranks\[3\] must hold different ranks below 1"),
    (put(2, "ranks", [[0], [0], [0, 0], [0]]), r"line 3: step\.ranks\[2\] must hold different ranks below 1"),
    (put(2, "ranks", [[0], [0], [0], [1]]), r"line 3: step\.ranks\[3\] must hold different ranks below 1"),
    (put(2, "ranks", [[-1], [0], [0], [0]]), r"line 3: step\.ranks\[0\] must hold different ranks below 1"),
    (both(put(0, "ranks", 2), put(2, "ranks", [[0], [0], [0, 1], [0]])), r"step\.ranks\[2\] must be among the ranks"),
    (put(0, "ranks", 0), r"line 1: header\.ranks must be from 1 to 1024, not 0"),
    (put(0, "ranks", 5000), r"line 1: header\.ranks must be from 1 to 1024, not 5000"),
    (put(2, "exchanged", -1), r"line 3: step\.exchanged must not be negative"),
    (put_timing(2, -0.1), r"line 3: step\.timing\.accept_ms must not be negative"),
    (put_timing(4, -0.1), r"line 5: summary\.timing\.accept_ms must not be negative"),
    (put(4, "steps", 3), r"line 5: summary\.steps must be 2, not 3"),
    (put(4, "new_tokens", 4), r"line 5: summary\.new_tokens must be 3, not 4"),
    (put(4, "draft_acceptance_rate", 1.5), r"line 5: summary\.draft_acceptance_rate must hold probabilities"),
    (put(4, "acceptance_histogram", [-1]), r"line 5: summary\.acceptance_histogram must not hold negative"),
    (put(4, "decode_seconds", -1), r"line 5: summary\.decode_seconds must not be negative"),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "sentence"), DAMAGE, ids=range(len(DAMAGE)))
def test_what_no_run_could_have_written(damage: Callable[[list[Any]], None], sentence: str) -> None:
    """A screen that trusts these would draw nodes that do not exist, or tell a run that never was."""
    lines = story()
    damage(lines)
    with pytest.raises(TraceError, match=sentence) as caught:
        parse_trace(spelled(lines))
    assert len(str(caught.value)) < 200 and str(caught.value).isprintable()


def test_only_the_last_step_may_be_cut() -> None:
    """A bonus token lost in the middle of a run would shift every later position by one."""
    lines = story()
    lines[2]["emitted"] = [3]
    with pytest.raises(TraceError, match=r"line 4: step follows a step whose tokens were cut"):
        parse_trace(spelled([*lines[:3], {**lines[3], "start": 3, "tokens": [3]}]))
    assert parse_trace(spelled(lines[:3])).ids == (3,)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "the file holds no whole line of a trace"),
        (b"\n", "line 1 is not JSON"),
        (b"\x00\x01\xfe\xff" * 99, "line 1 is not UTF-8 at byte 3"),
        (b"\x89PNG\r\n\x1a\n", "line 1 is not UTF-8 at byte 1"),
        (b"\x1f\x8b", "cut off at line 1"),
        (b"\x1f\x8b\x08\x00" + b"\xff" * 99, "damaged part of the gzip file"),
        (b"\x1f\x8b\x07" + b"\x00" * 99, "damaged part of the gzip file"),
        (gzip.compress(spelled(story())) + b"more", "damaged part of the gzip file"),
        (b"[]\n", "line 1 must be a JSON object, not a list"),
        (b"{}\n", "line 1 must be of kind header, texts, step or summary, not null"),
        (spelled(story()) + b"\n", "line 6 is not JSON"),
        (spelled(story()).replace(b'"W"', b'"\xff"').replace(b'"jacobi"', b'"\xc3("'), "line 1 is not UTF-8 at byte"),
        (spelled(story()).replace(b"333.0", b"NaN"), "line 5 holds NaN"),
        (spelled(story()).replace(b"333.0", b"1e999"), r"line 5: summary\.tokens_per_second must be a finite number"),
        (spelled(story()).replace(b"333.0", b"3" * 9000), "line 5 holds a number with too many digits"),
        (spelled(story()).replace(b'"index": 1', b'"index": 1, "index": 1'), "line 4 holds the key 'index' twice"),
        (spelled(story()).replace(b'"panel": {}', b'"panel": ' + b"[" * 100_000), "line 3 nests .* deeper than 32"),
        (
            spelled(story()).replace(b'"panel": {}', b'"panel": []'),
            r"line 3: step\.panel must be an object, not a list",
        ),
    ],
    ids=range(18),
)
def test_bytes_that_are_no_trace(data: bytes, sentence: str) -> None:
    """Junk of every kind must give the same kind of error, quickly."""
    with pytest.raises(TraceError, match=sentence) as caught:
        parse_trace(data)
    assert len(str(caught.value)) < 200 and str(caught.value).isprintable()


class Endless:
    """A file with no end that counts what is asked of it."""

    def __init__(self, chunk: bytes) -> None:
        self.chunk, self.given = chunk, 0

    def read(self, size: int, /) -> bytes:
        self.given += size
        return (self.chunk * (size // len(self.chunk) + 1))[:size]


def test_a_line_without_end_is_refused_at_the_limit(tmp_path: Path) -> None:
    """Reading a 2 GB line to find out that it is too long would take the machine down first."""
    sparse = tmp_path / "sparse"
    with sparse.open("wb") as file:
        file.truncate(2 * 1024 * MIB)
    begin = time.process_time()
    tracemalloc.start()
    with pytest.raises(TraceError, match="line 1 is longer than the 8388608 bytes allowed"):
        read_trace(sparse)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * MIB and time.process_time() - begin < 3
    endless = Endless(b"[")
    with pytest.raises(TraceError, match="line 1 is longer"):
        read_trace(endless)
    assert endless.given < 9 * MIB


@pytest.mark.slow
@pytest.mark.parametrize("line", [b"0", b'{"kind":"texts","texts":{}}\n'])
def test_a_gzip_bomb_is_refused_at_the_limit(line: bytes) -> None:
    """A few kilobytes that unpack to gigabytes, as one line or as many good ones."""
    head = spelled(story()[:1])
    bomb = gzip.compress(head + line * (32 * MIB // len(line)), compresslevel=1)
    limits = Limits(line_bytes=MIB // 8, total_bytes=MIB // 4)
    assert len(bomb) < MIB
    tracemalloc.start()
    with pytest.raises(TraceError, match="line 2 is longer than|more than the 262144 bytes allowed"):
        parse_trace(bomb, limits=limits)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * MIB


def test_the_longest_line_that_is_brackets_is_refused_quickly() -> None:
    """The guard of the parser's stack must itself not be slow on what it guards against."""
    begin = time.process_time()
    for bare in (b"[" * 8 * MIB, b"[]" * 4 * MIB, b'{"a":' * MIB, b'"\\' * 4 * MIB):
        with pytest.raises(TraceError):
            parse_trace(bare[: 8 * MIB - 1] + b"\n")
    assert time.process_time() - begin < 5


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        (Limits(steps=1), "line 4: step is one more than the 1 steps that are read"),
        (Limits(nodes=3), "line 3: step has 4 nodes, more than the 3 allowed"),
        (Limits(line_bytes=100), "line 1 is longer than the 100 bytes allowed"),
        (Limits(total_bytes=600), "the file holds more than the 600 bytes allowed, at line 3"),
        (Limits(depth=1), "line 3 nests lists or objects deeper than 1 levels"),
    ],
)
def test_limits_are_kept(limits: Limits, sentence: str) -> None:
    """A limit that nothing enforces is a promise to whoever hosts the page."""
    with pytest.raises(TraceError, match=sentence):
        parse_trace(spelled(story()), limits=limits)
    exact = Limits(steps=2, nodes=4, depth=2, line_bytes=700, total_bytes=len(spelled(story())))
    assert len(parse_trace(spelled(story()), limits=exact).steps) == 2


def test_windows_line_ends_are_fine() -> None:
    """An editor or a version control system may have changed them."""
    assert parse_trace(spelled(story()).replace(b"\n", b"\r\n")) == parse_trace(spelled(story()))


def test_file_objects_are_read_without_seeking() -> None:
    """A pipe or an upload cannot be rewound after a look at its first bytes."""

    class Pipe(io.RawIOBase):
        def __init__(self, data: bytes) -> None:
            self.rest = io.BytesIO(data)

        def readable(self) -> bool:
            return True

        def read(self, size: int = -1) -> bytes:
            return self.rest.read(min(size, 7))

    for data in (spelled(story()), gzip.compress(spelled(story()))):
        assert read_trace(Pipe(data)) == parse_trace(spelled(story()))
