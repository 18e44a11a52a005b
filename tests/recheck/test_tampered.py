"""Sixty changed records, of ours and of other engines: each is caught, or the list says why nothing could catch it."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from analysis.imports import read_any
from analysis.recheck.derived import contradictions
from analysis.recheck.record import recheck
from analysis.restoring.restore import restore
from decoding import load
from decoding.engine import Engine
from decoding.errors import TraceError
from decoding.trace import parse_trace
from decoding.trace.metrics import summarise
from decoding.trace.schema import to_json
from decoding.types import Step, Timing, Trace
from tests.imports.samples import changed

Lines = dict[str, Any]  # "header", "steps", "summary", "texts"
Change = Callable[[Lines], object]
PROMPT = "What is the dish of Ablow?"
RUNS: dict[str, tuple[str, dict[str, Any], str]] = {
    "greedy": ("draft_model", {"temperature": 0}, "full"),
    "light": ("draft_model", {"temperature": 0}, "light"),
    "sampled": ("draft_model", {"temperature": 1.5}, "full"),
    "hot": ("draft_model", {"temperature": 2.5, "seed": 6}, "full"),
    "copied": ("prompt_lookup", {"temperature": 1.0, "seed": 3}, "full"),
}


@cache
def machine() -> Engine:
    return load("pocket")


@cache
def recorded(name: str) -> Trace:
    method, sampling, record = RUNS[name]
    return machine().generate(PROMPT, method, {}, sampling, 24, record=record, memory={}).trace


def tampered(name: str, change: Change) -> bytes:
    """Write a record of ours with a change."""
    trace = recorded(name)
    lines: Lines = {"header": to_json(trace.header), "steps": [to_json(step) for step in trace.steps]}
    lines |= {"summary": to_json(trace.summary), "texts": {str(token): text for token, text in trace.texts.items()}}
    before = deepcopy(lines)
    change(lines)
    assert lines != before, "the change changes nothing"
    rows = [lines["header"] | {"kind": "header"}, {"kind": "texts", "texts": lines["texts"]}]
    rows += [*(step | {"kind": "step"} for step in lines["steps"]), lines["summary"] | {"kind": "summary"}]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def put(*path: str | int, value: Any) -> Change:
    """Put a value, or what a function makes of the old one, at a path."""

    def change(lines: Lines) -> None:
        holder: Any = lines
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = value(holder[path[-1]]) if callable(value) else value

    return change


def at(kind: str, change: Callable[[dict[str, Any], int], object]) -> Change:
    """Change the first step with such a node there; "rejected" is a guess after the path, "off" a deeper one."""

    def found(step: dict[str, Any]) -> int | None:
        guesses = [node for node in range(1, len(step["tokens"])) if node not in step["path"]]
        nodes = {
            "accepted": step["path"][1:2],
            "rejected": [node for node in guesses if step["parents"][node] in step["path"]],
            "off": [node for node in guesses if step["parents"][node] not in step["path"]],
            "root": [0] if len(step["tokens"]) > 1 else [],
            "tested": [
                node for node in guesses if step["u"] and step["u"][node] is not None and step["p"][node] > 0.001
            ],
            "lucky": [node for node in step["path"][1:] if step["u"] and step["q"][node] > step["p"][node] + 0.001],
            "drawn": [node for node in guesses if step["q"] and step["q"][node] not in (None, 1.0)],
        }[kind]
        return nodes[0] if nodes else None

    def change_one(lines: Lines) -> None:
        for step in lines["steps"]:
            node = found(step)
            if node is not None:
                change(step, node)
                return
        raise AssertionError(f"no step has a node that is {kind}")

    return change_one


def other(share: float) -> float:
    return round(share * 0.5 if share > 0.1 else share + 0.3, 6)


def other_share(step: dict[str, Any], node: int, column: str, place: int) -> None:
    """Lower the last share of a list, so that it stays in order."""
    step[column][node][-1][place] *= 0.9


def untested(step: dict[str, Any], node: int) -> None:
    """Record a number at a guess after a node of the path."""
    step["u"] = [0.5 if parent == node else None for parent in step["parents"]]


def bonus(lines: Lines) -> None:
    """Write another token after an accepted path, and go on from it as if it had been written."""
    here, there = lines["steps"][1], lines["steps"][2]
    token = (here["emitted"][-1] + 1) % 500
    here["emitted"][-1] = there["tokens"][0] = token
    here["choices"][here["path"][-1]] = token


def explored(lines: Lines) -> None:
    """Make a rejected guess a window cell."""
    trace, changed_step = recorded("greedy"), list[Step]()
    at("off", lambda step, node: step.update(drafted=step["drafted"] - 1) or put("roles", node, value=2)(step))(lines)
    for step, line in zip(trace.steps, lines["steps"], strict=True):
        changed_step.append(replace(step, drafted=line["drafted"]))
    lines["summary"] = to_json(summarise(changed_step, lines["summary"]["finish"], lines["summary"]["text"]))


def faster(lines: Lines) -> None:
    """Halve all times, and what is made of them."""
    trace, steps = recorded("greedy"), list[Step]()
    for step, line in zip(trace.steps, lines["steps"], strict=True):
        timing = Timing(*(ms / 2 for ms in line["timing"].values()))
        steps.append(replace(step, timing=timing))
        line["timing"] = to_json(timing)
    lines["summary"] = to_json(summarise(steps, lines["summary"]["finish"], lines["summary"]["text"]))


def shortened(lines: Lines) -> None:
    """Leave the last steps out, as if the run had been cancelled before them."""
    trace = recorded("greedy")
    text = machine().codec.continuation(trace.header.prompt, [t for step in trace.steps[:3] for t in step.emitted])
    lines["steps"], lines["summary"] = lines["steps"][:3], to_json(summarise(trace.steps[:3], "cancelled", text))


# Base, change, and what finds it: reading the file, importing it, rescoring it, or running it again.
OURS: list[tuple[str, str, Change, str]] = [
    ("mean acceptance length", "greedy", put("summary", "mean_acceptance_length", value=9.0), "import"),
    ("tokens per second", "greedy", put("summary", "tokens_per_second", value=99_999.0), "import"),
    ("text", "greedy", put("summary", "text", value="Something else was written."), "import"),
    ("text with more behind it", "greedy", put("summary", "text", value=lambda text: text + " and on"), "import"),
    ("acceptance rate", "greedy", put("summary", "draft_acceptance_rate", value=0.99), "import"),
    ("histogram", "greedy", put("summary", "acceptance_histogram", 0, value=lambda count: count + 1), "import"),
    ("compute", "greedy", put("summary", "fed_per_token", value=1.0), "import"),
    ("prefill", "greedy", put("summary", "prefill_seconds", value=1e-6), "import"),
    ("decode time", "greedy", put("summary", "decode_seconds", value=1e-6), "import"),
    ("phase sum", "greedy", put("summary", "timing", "forward_ms", value=0.0), "import"),
    ("steps", "greedy", put("summary", "steps", value=3), "read"),
    ("finish", "greedy", put("summary", "finish", value="end_of_text"), "import"),
    ("finish of a whole run", "greedy", put("summary", "finish", value="time"), "import"),
    ("finish that is no word of ours", "greedy", put("summary", "finish", value="done"), "import"),
    ("level of the record", "greedy", put("header", "record", value="light"), "import"),
    ("no record", "light", put("header", "record", value="off"), "import"),
    ("level that the steps do not have", "light", put("header", "record", value="full"), "import"),
    ("columns left out", "greedy", put("steps", 1, "p", value=[]), "import"),
    ("temperature as a text", "sampled", put("header", "sampling", "temperature", value="0"), "import"),
    ("temperature left out", "sampled", put("header", "sampling", value={}), "import"),
    ("end token that the model lacks", "greedy", put("header", "end_tokens", value=[2, 4096]), "import"),
    ("chunk of no token", "greedy", put("header", "prefill_chunk", value=0), "import"),
    ("ranks of a full record", "greedy", put("header", "ranks", value=9), "import"),
    ("window", "greedy", put("header", "window", value=64), "rescore"),
    ("window that is missing", "greedy", put("header", "window", value=None), "rescore"),
    ("slots", "greedy", put("header", "slots", value=400), "rescore"),
    ("slots without a window", "greedy", put("header", value=lambda h: h | {"window": None, "slots": 9}), "import"),
    ("parameters", "greedy", put("header", "model", "parameters", value=7_000_000_000), "rescore"),
    ("context", "greedy", put("header", "model", "context", value=2048), "rescore"),
    ("family", "greedy", put("header", "model", "family", value="llama"), "rescore"),
    ("bytes of the weights", "greedy", put("header", "model", "weight_bytes", value=1000), "rescore"),
    ("parameters of the drafter", "greedy", put("header", "draft", "parameters", value=1), "rescore"),
    ("budget", "greedy", put("header", "max_new_tokens", value=80), "import"),
    ("smaller budget", "greedy", put("header", "max_new_tokens", value=8), "import"),
    ("method, another drafter's", "greedy", put("header", "method", value="prompt_lookup"), "import"),
    ("method, without guesses", "copied", put("header", "method", value="autoregressive"), "import"),
    ("method of the same needs", "copied", put("header", "method", value="jacobi"), "import"),
    ("setting", "greedy", put("header", "params", "gamma", value=1), "again"),
    ("setting that is none", "greedy", put("header", "params", value={"W": 9}), "import"),
    ("lossless", "greedy", put("header", "lossless", value=False), "import"),
    ("vocabulary", "greedy", put("header", "model", "vocabulary", value=7), "import"),
    ("prompt", "greedy", put("header", "prompt", 0, value=lambda token: token + 1), "rescore"),
    ("stop string that occurs", "greedy", put("header", "stop", value=["e"]), "rescore"),
    ("temperature", "copied", put("header", "sampling", "temperature", value=0.0), "import"),
    ("seed of point masses", "copied", put("header", "sampling", "seed", value=4), "rescore"),
    ("seed of sampled drafts", "sampled", put("header", "sampling", "seed", value=4), "again"),
    ("p of an accepted guess", "greedy", at("accepted", lambda s, n: put("p", n, value=other)(s)), "import"),
    ("p of a rejected guess", "sampled", at("rejected", lambda s, n: put("p", n, value=lambda p: p / 2)(s)), "rescore"),
    ("p off the path", "greedy", at("off", lambda s, n: put("p", n, value=other)(s)), "import"),
    ("q", "sampled", at("drawn", lambda s, n: put("q", n, value=other)(s)), "import"),
    ("u that accepts a rejected guess", "sampled", at("tested", lambda s, n: put("u", n, value=0.0)(s)), "import"),
    ("u that rejects an accepted one", "hot", at("lucky", lambda s, n: put("u", n, value=1.0)(s)), "import"),
    ("u that is missing", "sampled", at("tested", lambda s, n: put("u", n, value=None)(s)), "import"),
    ("u of a guess that nobody sampled", "copied", at("root", untested), "import"),
    ("u of a greedy run", "greedy", at("root", untested), "import"),
    ("share of a likely token", "copied", put("steps", 0, "top", 0, 4, 1, value=lambda p: p * 0.9), "rescore"),
    ("likely token", "greedy", at("root", lambda s, n: put("top", n, -1, 0, value=3)(s)), "rescore"),
    ("choice on the path", "greedy", at("root", lambda s, n: put("choices", n, value=3)(s)), "import"),
    ("choice on a sampled path", "sampled", at("root", lambda s, n: put("choices", n, value=3)(s)), "import"),
    ("choice off the path", "light", at("off", lambda s, n: put("choices", n, value=3)(s)), "again"),
    ("entropy", "greedy", at("root", lambda s, n: put("entropy", n, value=lambda h: h + 0.01)(s)), "rescore"),
    ("overlap", "sampled", at("root", lambda s, n: put("overlap", n, value=other)(s)), "import"),
    ("drafter's list", "sampled", at("root", lambda s, n: other_share(s, n, "draft_top", 1)), "again"),
    ("p in the drafter's list", "sampled", at("root", lambda s, n: other_share(s, n, "draft_top", 2)), "import"),
    ("phase of a step", "greedy", put("steps", 1, "timing", "forward_ms", value=1e6), "import"),
    ("time of a step", "greedy", put("steps", 1, "timing", "total_ms", value=1e6), "import"),
    ("token after the path", "light", bonus, "rescore"),
    ("rows fed", "greedy", put("steps", 1, "fed", value=lambda fed: fed + 3), "import"),
    ("rejected guess", "light", at("rejected", lambda s, n: put("tokens", n, value=lambda t: t + 1)(s)), "again"),
    ("source", "greedy", at("accepted", lambda s, n: put("sources", n, value="draft:7")(s)), "again"),
    ("role", "greedy", explored, "again"),
    ("panel", "greedy", put("steps", 1, "panel", value={"confidence": [0.5], "threshold": 0.1}), "again"),
    ("display text", "greedy", put("texts", value=lambda texts: {**texts, "0": "zero"}), "rescore"),
]
# Of these nothing in the record, in the model or in another run says anything: the words with which that is said.
BEYOND: list[tuple[str, str, Change, str]] = [
    ("seed of a greedy run: it draws nothing", "greedy", put("header", "sampling", "seed", value=4), "the seed"),
    ("all times halved: another machine may be as fast", "greedy", faster, "times, beyond their sums"),
    ("processor", "greedy", put("header", "processor", value="Another CPU"), "processor"),
    ("last steps left out: a run can be cancelled anywhere", "greedy", shortened, "why the run ended early"),
    ("device", "greedy", put("header", "device", value="cuda:0"), "its device"),
    ("attention", "greedy", put("header", "attention", value="another kernel"), "attention"),
    ("dtype, where the caller chooses the model's", "greedy", put("header", "dtype", value="bfloat16"), "its dtype"),
    ("size of the prompt's chunks", "greedy", put("header", "prefill_chunk", value=7), "prefill_chunk"),
    ("an end token that is never written", "greedy", put("header", "end_tokens", value=[2, 4000]), "end tokens"),
    ("a stop string that never occurs", "greedy", put("header", "stop", value=["never"]), "stop strings"),
    ("bandwidth", "greedy", put("header", "bandwidth", value=1e9), "bandwidth"),
    ("bandwidth after the run", "greedy", put("summary", "bandwidth", value=1e9), "bandwidth"),
    ("libraries", "greedy", put("header", "versions", "torch", value="9.9"), "versions"),
    (
        "hash of the model, where the caller chooses it",
        "greedy",
        put("header", "model", "hash", value="0" * 64),
        "hash",
    ),
]


def spec(row: Any) -> Any:
    return row["metrics"]["speculative_decoding"]


THEIRS: list[tuple[str, str, Callable[[Any], object], str]] = [
    ("mean of vLLM", "vllm.jsonl", lambda row: spec(row).update(mean_acceptance_length=9.0), "import"),
    ("rate of SGLang", "sglang.jsonl", lambda row: row["meta_info"].update(spec_accept_rate=0.99), "import"),
    ("time of vLLM", "vllm.jsonl", lambda row: row["metrics"].update(generation_time_ms=1.0), "import"),
    ("accepted of llama.cpp", "llama_cpp.jsonl", lambda row: row["timings"].update(draft_n_accepted=999), "import"),
    ("a step of Spec-Bench", "spec_bench.jsonl", lambda row: row["choices"][0]["accept_lengths"].append(5), "import"),
    ("a token of vLLM", "vllm.jsonl", lambda row: row["choices"][0]["token_ids"].__setitem__(5, 3), "restore"),
]


def caught(data: bytes) -> tuple[str, list[str]]:
    """Return what finds a change first, and the sentences."""
    try:
        trace = parse_trace(data)
    except TraceError as refusal:
        return "read", [str(refusal)]
    try:
        read_any(data)
    except TraceError as refusal:
        return "import", [str(refusal)]
    assert contradictions(trace) == []
    for again in (False, True):
        checked = recheck(machine(), trace, again=again)
        sentences = [each.sentence for each in checked.contradictions]
        sentences += [f"new token {place.position} is not the target's" for place in checked.tokens.places]
        if sentences:
            return "again" if again else "rescore", sentences
    return "nothing", []


def test_the_list_has_sixty() -> None:
    assert len(OURS) + len(BEYOND) + len(THEIRS) >= 60


@pytest.mark.parametrize(("title", "run", "change", "by"), OURS, ids=[title for title, *_ in OURS])
def test_a_changed_record_of_ours_is_caught(title: str, run: str, change: Change, by: str) -> None:
    found, sentences = caught(tampered(run, change))
    assert found == by, sentences
    assert sentences and all(sentence.isprintable() and len(sentence) < 300 for sentence in sentences)


@pytest.mark.parametrize(("title", "run", "change", "words"), BEYOND, ids=[title for title, *_ in BEYOND])
def test_what_is_beyond_checking_is_listed_as_such(title: str, run: str, change: Change, words: str) -> None:
    data = tampered(run, change)
    assert caught(data) == ("nothing", [])
    assert any(words in each for each in recheck(machine(), parse_trace(data)).unchecked)


@pytest.mark.parametrize(("title", "name", "change", "by"), THEIRS, ids=[title for title, *_ in THEIRS])
def test_a_changed_record_of_another_engine_is_caught(title: str, name: str, change: Any, by: str) -> None:
    data = changed(name, 2, change)
    if by == "import":
        with pytest.raises(TraceError, match="line 2"):
            read_any(data)
        return
    line = data.splitlines()[1]
    found = restore(read_any(line), machine(), "eagle3", {"form": "chain", "gamma": 4, "threshold": 0.0})
    assert found.summary["restored"]["other_choices"] > 0


def test_unchanged_records_pass() -> None:
    """The control: a check that always complains catches everything."""
    for run in RUNS:
        assert caught(tampered(run, lambda lines: lines.update(more=1))) == ("nothing", [])


@pytest.mark.parametrize("column", ["choices", "top"])
def test_a_token_that_the_model_lacks_is_a_contradiction_in_the_plain_pass_too(column: str) -> None:
    """`rescore` looked its probability up, and ended with a stack trace."""
    trace = recorded("greedy")
    step, unknown = trace.steps[1], trace.header.model.vocabulary + 5
    columns: dict[str, Any] = {
        "choices": (unknown, *step.choices[1:]),
        "top": (((unknown, 0.5), *step.top[0][1:]), *step.top[1:]),
    }
    changed_trace = replace(trace, steps=(trace.steps[0], replace(step, **{column: columns[column]}), *trace.steps[2:]))
    sentences = [each.sentence for each in recheck(machine(), changed_trace).contradictions]
    assert any(f"hold token {unknown}" in sentence for sentence in sentences)
    assert any("plain pass" in sentence for sentence in sentences)
