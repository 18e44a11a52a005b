"""Files that are wrong, damaged or do not add up: one sentence with the line, and both numbers where two disagree."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.imports import read_any
from decoding.errors import ParamError, SpecscopeError, TraceError
from tests import ROOT

from .samples import changed, sample, whole

Change = Callable[[Any], object]


def spec(row: Any) -> Any:
    return row["metrics"]["speculative_decoding"]


def one_more(holder: Change, name: str) -> Change:
    """Add 1 to a number, or to the first of a list."""

    def change(row: Any) -> None:
        inner: Any = holder(row)
        if isinstance(inner[name], list):
            inner[name][0] += 1
        else:
            inner[name] += 1

    return change


def of(*names: str | int) -> Change:
    def holder(row: Any) -> Any:
        for name in names:
            row = row[name]
        return row

    return holder


VLLM, SGLANG, AIPERF = of("metrics", "speculative_decoding"), of("meta_info"), of("spec_decode_acceptance")
WRONG: list[tuple[str, Change, str]] = [
    ("vllm.jsonl", one_more(VLLM, "num_spec_steps"), "num_spec_steps is"),
    ("vllm.jsonl", one_more(VLLM, "num_accepted_draft_tokens"), "num_accepted_draft_tokens is"),
    ("vllm.jsonl", one_more(VLLM, "num_draft_tokens"), "draft_acceptance_rate is"),
    ("vllm.jsonl", one_more(VLLM, "mean_acceptance_length"), "mean_acceptance_length is"),
    ("vllm.jsonl", one_more(VLLM, "draft_acceptance_rate"), "draft_acceptance_rate is"),
    ("vllm.jsonl", one_more(VLLM, "acceptance_histogram"), "but the counts of acceptance_histogram give"),
    ("vllm.jsonl", one_more(VLLM, "per_step_drafted"), "but the entries of per_step_drafted give"),
    ("vllm.jsonl", lambda row: spec(row)["per_step_drafted"].pop(), "per_step_drafted is"),
    ("vllm.jsonl", lambda row: spec(row).update(num_spec_tokens=1), "but num_spec_tokens is 1"),
    ("vllm.jsonl", lambda row: spec(row)["per_step_accepted"].__setitem__(0, 99), "steps that accepted"),
    ("vllm.jsonl", one_more(of("usage"), "total_tokens"), "usage.total_tokens is"),
    ("vllm.jsonl", lambda row: row["choices"][0]["token_ids"].pop(), "but the token ids give"),
    ("vllm.jsonl", lambda row: row["choices"].append({}), "must hold one object, not 2"),
    ("sglang.jsonl", one_more(SGLANG, "spec_verify_ct"), "spec_"),
    ("sglang.jsonl", one_more(SGLANG, "spec_num_correct_drafts"), "spec_"),
    ("sglang.jsonl", one_more(SGLANG, "spec_accept_rate"), "spec_accept_rate is"),
    ("sglang.jsonl", one_more(SGLANG, "spec_accept_length"), "spec_accept_length is"),
    ("sglang.jsonl", lambda row: row["output_ids"].pop(), "but the token ids give"),
    ("aiperf.jsonl", one_more(AIPERF, "num_spec_steps"), "num_spec_steps is"),
    ("aiperf.jsonl", one_more(AIPERF, "per_step_drafted"), "num_draft_tokens is"),
    ("aiperf.jsonl", lambda row: AIPERF(row).update(completion_tokens=2), "over all steps is"),  # type: ignore[attr-defined]
    ("vllm_vcr.jsonl", one_more(of(), "output_tokens"), "output_tokens is"),
    ("vllm_vcr.jsonl", lambda row: row["itl_ms"].pop(), "itl_tokens is"),
    ("vllm_vcr.jsonl", lambda row: row["itl_tokens"].__setitem__(0, 0), "writes at least one token"),
    ("vllm_vcr.jsonl", lambda row: row["itl_tokens"].__setitem__(0, 500), "the chunks after the first hold"),
    ("specdecode_bench.jsonl", lambda row: row["acc_eagle"]["acc_len"].__setitem__(0, 900), "is 900, but from 1 to"),
    ("specdecode_bench.jsonl", lambda row: row["generated_token_ids"].extend([1] * 9), "but generated_token_ids has"),
    ("spec_bench.jsonl", lambda row: row["choices"][0].update(new_tokens=[3]), "but accept_lengths of the turn make"),
    ("spec_bench.jsonl", lambda row: row["choices"][0]["accept_lengths"].append(0), "writes at least one token"),
    ("spec_bench.jsonl", lambda row: row["choices"][0]["wall_time"].append(1), "wall_time is 2"),
]


@pytest.mark.parametrize(("name", "change", "sentence"), WRONG)
def test_numbers_that_do_not_add_up_are_refused_with_the_line(name: str, change: Change, sentence: str) -> None:
    """An engine that miscounts, or a file that somebody has edited, must not become a chart."""
    try:
        data = changed(name, 2, change)
    except IndexError:
        raise AssertionError("the sample has no second record") from None
    with pytest.raises(TraceError, match="line 2") as refusal:
        read_any(data, name=name)
    text = str(refusal.value)
    assert sentence in text and "\n" not in text and len(text) < 300


def test_numbers_of_a_profile_and_of_a_table_are_checked() -> None:
    for change, sentence in (
        (one_more(of(), "mean_accept_length"), "mean_accept_length is"),
        (one_more(of(), "marginal_accept_rates"), "marginal_accept_rates[0] is"),
        (lambda row: row["conditional_accept_rates"].__setitem__(1, 0.999), "conditional_accept_rates[1] is 0.999"),
        (lambda row: row["marginal_accept_rates"].pop(), "num_speculative_tokens give 4"),
        (lambda row: row["acceptance_length_histogram"].update({"0": 3}), "counts 3 steps of no token"),
        (lambda row: row.update(measured=False), "placeholder"),
    ):
        with pytest.raises(TraceError) as refusal:
            read_any(whole("speculation_profile.json", change))
        assert sentence in str(refusal.value)
    rows = sample("acceptance.csv").decode().splitlines()
    for column, sentence in ((1, "line 2"), (3, "num_accepted_tokens is"), (4, "acceptance_length is"), (5, "line 2")):
        cells = rows[1].split(",")
        cells[column] = str(float(cells[column]) + 1)
        with pytest.raises(TraceError, match="line 2") as refusal:
            read_any("\n".join([rows[0], ",".join(cells), *rows[2:]]).encode())
        assert sentence in str(refusal.value)


def test_of_compressed_files_only_a_trace_may_be_cut_off() -> None:
    """A run that was interrupted opens as far as it was written; the page told its visitors of a flag in Python."""
    trace = (ROOT / "tests" / "golden" / "draft_model.jsonl").read_bytes()
    assert 0 < len(read_any(gzip.compress(trace)[:-200]).steps) < len(read_any(trace).steps)
    with pytest.raises(TraceError, match=r"cut off at line \d+: its numbers would be of a part$"):
        read_any(gzip.compress(sample("vllm.jsonl"))[:-200])
    with pytest.raises(TraceError, match="cut off at line 1$"):
        read_any(gzip.compress(trace)[:20])


def test_an_unknown_file_is_refused_in_a_whole_sentence() -> None:
    """The page shows 300 characters of a reason: the list of formats was cut off in the middle of a word."""
    with pytest.raises(TraceError, match=r"\(trace, .*, speculators\)$") as refusal:
        read_any(b"{}\n", name="x" * 80)
    assert len(str(refusal.value)) <= 300


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "the file is empty"),
        (b"\n \n", "the file is empty"),
        (b"hello", "holds no record"),
        (b"a,b\n1,2\n", "line 2 is no record of a format that is known"),
        (b"a,b\n1\n", "line 2 has 1 cells, and the header has 2 columns"),
        (b"a,a\n1,2\n", "each once"),
        (b'a,"b\n1,2\n', "no row of a table"),
        (b"\x89PNG\r\n\0\0", "neither JSON nor a table|not UTF-8"),
        (b"{}\n", "line 1 is no record of a format"),
        (b"[]", "holds no record"),
        (b"[1]", "entry 1 must be an object, not 1"),
        (b"[\n{},\n{]\n", "line 3 is not JSON at character 2"),
        (b'{"a": 1}\n{"a": \n', "line 1 is no record"),
        (b'{\n "choices": [],\n "metrics": NaN}', "the file holds NaN"),
        (b'{"a": 1, "a": 2}', "line 1 holds the key 'a' twice"),
        (b"[" * 100_000, "deeper than 16"),
        (b'{"choices": ' + b"[" * 5000 + b"]" * 5000 + b"}", "deeper than 16"),
        (b'{"output_tokens": 1' + b"0" * 5000 + b"}", "too many digits"),
        (b"\x1f\x8b\x08\0", "cut off|damaged"),
    ],
)
def test_what_is_no_record_is_one_sentence(data: bytes, sentence: str) -> None:
    with pytest.raises(TraceError, match=sentence) as refusal:
        read_any(data)
    assert "\n" not in str(refusal.value)


def test_a_line_in_the_middle_is_named() -> None:
    lines = sample("vllm.jsonl").splitlines()
    with pytest.raises(TraceError, match="line 3 is not JSON"):
        read_any(b"\n".join([*lines[:2], lines[2][:-9] + b"}", *lines[3:]]))
    with pytest.raises(TraceError, match="line 4 is not UTF-8"):
        read_any(b"\n".join([*lines[:3], lines[3][:-9] + b"\xff}", *lines[4:]]))


def test_every_line_must_be_of_the_format() -> None:
    lines = sample("vllm.jsonl").splitlines()
    with pytest.raises(TraceError, match="line 2 is no record of answers like vLLM's"):
        read_any(b"\n".join([lines[0], sample("aiperf.jsonl").splitlines()[0], *lines[1:]]))


def test_a_file_of_another_format_than_named_is_refused() -> None:
    with pytest.raises(TraceError, match="line 1 is no record of answers like vLLM's, but of AIPerf's export"):
        read_any(sample("aiperf.jsonl"), format="vllm")
    with pytest.raises(ParamError, match="there is no format 'xml': choose one of trace"):
        read_any(sample("aiperf.jsonl"), format="xml")


def test_a_path_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.json", "a\0b"):
        with pytest.raises(ParamError, match="cannot read"):
            read_any(path)


def test_a_histogram_of_billions_is_refused_at_once() -> None:
    """A few bytes must not make gigabytes of rows."""
    billions = {"acceptance_histogram": [10**12], "num_spec_steps": 10**12, "num_accepted_draft_tokens": 0}
    huge = {"choices": [{}], "usage": {"completion_tokens": 10**12}, "metrics": {"speculative_decoding": billions}}
    billions["num_draft_tokens"] = 0
    for data in (huge, {"choices": [{}], "metrics": {"speculative_decoding": billions | {"acceptance_histogram": {}}}}):
        with pytest.raises(TraceError, match="steps"):
            read_any(json.dumps(data).encode())
    many = {"choices": [{}], "usage": {"completion_tokens": 10**12}, "metrics": {"speculative_decoding": None}}
    many["metrics"]["speculative_decoding"] = dict.fromkeys(billions, 0) | {"acceptance_histogram": []}  # type: ignore[index]
    with pytest.raises(TraceError, match="steps"):
        read_any(json.dumps(many).encode())


@pytest.mark.parametrize("cap", ["records._RECORDS", "records._VALUES", "tables._RUNS", "tables._STEPS"])
def test_a_file_of_too_many_is_refused_with_the_line(cap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"analysis.imports.{cap}", 40)
    line = b'{"prompt_tokens": 1, "output_tokens": 1, "ttft_ms": 1}\n'
    with pytest.raises(TraceError, match="that are read: split"):
        read_any(line * 41)


def test_every_refusal_is_ours() -> None:
    assert issubclass(TraceError, SpecscopeError) and issubclass(ParamError, SpecscopeError)
