"""Files that visitors drop on the Debug page: run folders and records are shown, damaged ones cost one sentence."""

from __future__ import annotations

import base64
import gzip
import io
import json
import random
import time
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.export import vllm
from analysis.metrics import METRICS, Selection, measure
from analysis.store.folder import RunFolder, read_folder
from app.server.limits import LIMITS
from app.store import brought_files
from app.store.brought_files import read_files
from decoding.errors import TraceError
from decoding.trace.file import read_trace
from tests import GOLDEN
from tests.evaluate.made_tables import made_tables

SUMMARY = {"version": 1, "source": "other", "name": "x", "created": "", "finished": True, "missing": {}}


def sent(files: Mapping[str, bytes]) -> list[str]:
    """Return the fields as the page sends them."""
    return [part for name, data in files.items() for part in (name, base64.b64encode(data).decode())]


def folder_files(tables: Mapping[str, pa.Table], compression: str = "zstd") -> dict[str, bytes]:
    files = {}
    for name, table in tables.items():
        file = io.BytesIO()
        pq.write_table(table, file, compression=compression)
        files[f"{name}.parquet"] = file.getvalue()
    return files


def zipped(files: Mapping[str, bytes], folder: str = "") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(folder + name, data)
    return file.getvalue()


FILES = folder_files(made_tables(4, 5, 3))
TRACE = (GOLDEN / "lookahead.jsonl").read_bytes()


def refused(files: Mapping[str, bytes]) -> str:
    with pytest.raises(TraceError) as caught:
        read_files(sent(files))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_compressed_trace_that_is_cut_off_opens_as_far_as_it_goes() -> None:
    """As on the Run tab; the sentence that refused it told visitors of a flag in Python."""
    steps = len(read_files(sent({"run.jsonl": TRACE}))[1].steps)
    cut = gzip.compress(TRACE)[:-200]
    assert 0 < len(read_files(sent({"run.jsonl.gz": cut}))[1].steps) < steps
    assert "cut off at line 1)" in refused({"run.jsonl.gz": cut[:20]})


@pytest.mark.slow
@pytest.mark.parametrize(
    "files",
    [
        {"runs.zip": zipped(FILES | {"summary.json": json.dumps(SUMMARY).encode()})},
        {"runs.zip": zipped(FILES, "some/folder/") + b""},
        FILES | {"summary.json": json.dumps(SUMMARY).encode()},
        FILES,
    ],
)
def test_a_run_folder_is_read(files: Mapping[str, bytes]) -> None:
    """As a zip file or as its files, with or without a summary."""
    _, folder = read_files(sent(files))
    assert [len(folder.runs), len(folder.steps), len(folder.nodes)] == [4, 20, 80]


@pytest.mark.parametrize("data", [TRACE, gzip.compress(TRACE)])
def test_a_trace_is_read(data: bytes) -> None:
    name, folder = read_files(sent({"run.jsonl": data}))
    trace = read_trace(GOLDEN / "lookahead.jsonl")
    assert name == "run.jsonl" and len(folder.steps) == len(trace.steps) and len(folder.nodes) > 0


def test_names_and_summaries_are_whole_characters() -> None:
    """Half a character is in no answer that a server can send."""
    about = json.dumps(SUMMARY | {"name": "\ud800", "source": "a\udfff", "missing": {"\ud800": "\ud800"}}).encode()
    for name, files in (
        ("\ud800.zip", {"\ud800.zip": zipped(FILES | {"summary.json": about})}),
        ("\udfff", {"\udfff": TRACE.replace(b'"lookahead"', b'"look\\ud800"')}),
    ):
        shown, folder = read_files(sent(files))
        assert shown == name.translate({0xD800: 0xFFFD, 0xDFFF: 0xFFFD})
        json.dumps([dict(folder.summary), folder.runs.to_pylist()], ensure_ascii=False).encode()


def test_several_records_become_one_folder() -> None:
    _, folder = read_files(sent({"a.jsonl": TRACE, "b.jsonl": (GOLDEN / "medusa.jsonl").read_bytes()}))
    assert folder.runs["method"].to_pylist() == ["lookahead", "medusa"]
    assert Selection.from_folder(folder).methods


def test_what_cannot_be_a_run_folder_is_refused() -> None:
    assert "nodes.parquet" in refused({"runs.parquet": FILES["runs.parquet"], "steps.parquet": FILES["steps.parquet"]})
    assert "zip" in refused({"x.zip": b"PK\x03\x04" + bytes(100)})
    assert refused({"x.jsonl": b"\xff\xfe\x00"}) and refused({"x.csv": b"a,b\n1,2\n"}) and refused({"x": b""})
    assert "several" in refused(
        {"x.zip": zipped({f"{place}/{name}": data for place in "ab" for name, data in FILES.items()})}
    )


@pytest.mark.parametrize(
    "asked", [None, [], ["a"], ["a", 3], ["a", "no base64!"], [["a", "b"]], "text", ["a", ""] * 40]
)
def test_requests_of_another_form_are_refused(asked: object) -> None:
    with pytest.raises(TraceError):
        read_files(asked)


def test_files_that_unpack_to_much_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros pack a thousandfold: what a file says of its size is not believed, and what it unpacks to is counted."""
    monkeypatch.setattr(brought_files, "LIMITS", replace(LIMITS, brought_bytes=2**20))
    assert "unpacks to more" in refused({"x.zip": zipped({"nodes.parquet": bytes(2**22)})})
    assert refused({"x.gz": gzip.compress(b'{"a": "' + b"x" * 2**25 + b'"}')})


def test_a_path_in_a_zip_file_leads_nowhere(tmp_path: Path) -> None:
    """Members are read by their last names alone, and written under ours."""
    names = {f"../../../{tmp_path.name}/{name}": data for name, data in FILES.items()}
    _, folder = read_files(sent({"x.zip": zipped(names)}))
    assert len(folder.runs) == 4 and not list(tmp_path.iterdir())


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Change, cut, double and move bytes."""
    damaged = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5, 20))):
        at, kind = chance.randrange(max(1, len(damaged))), chance.randrange(6)
        if kind == 0 and damaged:
            damaged[at % len(damaged)] = chance.randrange(256)
        elif kind == 1:
            del damaged[at : at + chance.randrange(1, 64)]
        elif kind == 2:
            damaged[at:at] = damaged[at : at + chance.randrange(1, 64)]
        elif kind == 3:
            damaged[at : at + 4] = chance.choice(
                (b"\xff\xff\xff\x7f", bytes(4), b"\xff" * 4, b"1e99", b'"\\ud', b"[[[[")
            )
        elif kind == 4:
            damaged = damaged[:at] if chance.random() < 0.3 else damaged
        else:
            damaged[-min(len(damaged), 40) :] = bytes(chance.randrange(256) for _ in range(chance.randrange(40)))
    return bytes(damaged)


@pytest.mark.slow
def test_five_hundred_damaged_files_cost_a_sentence_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """No traceback, no wait, no memory; what is read all the same can be measured.

    Run folders are read here and not in a child each, which takes longer to start than to read them: what ends its
    reader is in tests/evaluate/test_apart.py.
    """
    monkeypatch.setattr(brought_files, "read_folder_apart", lambda folder, limits, *_: read_folder(folder, limits))
    chance = random.Random(24)
    record = json.dumps(vllm(read_trace(GOLDEN / "medusa.jsonl"))).encode()
    plain = folder_files(made_tables(4, 5, 3), "none")
    kinds: list[dict[str, bytes]] = [plain, FILES, {"x.zip": zipped(FILES)}, {"x.jsonl": TRACE}, {"x.json": record},
                                     {"x.gz": gzip.compress(TRACE)}]  # fmt: skip
    refusals, read = 0, list[RunFolder]()
    for number in range(500):
        files = dict(kinds[number % len(kinds)])
        name = chance.choice(sorted(files))
        files[name] = mutated(files[name], chance)
        began = time.process_time()
        try:
            read.append(read_files(sent(files))[1])
        except TraceError as error:
            refusals += 1
            assert "\n" not in str(error) and 10 < len(str(error)) < 500
        assert time.process_time() - began < 5.0
    assert refusals > 200
    for folder in read[:40]:
        try:
            selection = Selection.from_folder(folder)
        except TraceError:
            continue
        assert all(measure(key, selection) for key in METRICS)
