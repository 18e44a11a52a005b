"""What a page's scripts may ask the server for, with anything as the argument."""

from __future__ import annotations

import base64
import gzip
import io
import json
import zipfile
from collections import deque
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from analysis.imports import read_any
from app.jobs.live_run import LiveRun
from app.pages.server_calls import ServerFunction
from app.server.limits import LIMITS
from app.state import AppState
from app.store.recordings import LANDINGS
from decoding.errors import TraceError
from decoding.trace.file import parse_trace, read_trace
from tests import GOLDEN, ROOT
from tests.recheck.test_tampered import OURS, Change, tampered
from tests.tiers import crossed, sampled, slow

from .conftest import asked, kinds, lines
from .test_controls import ANYTHING


@pytest.fixture
def functions(app_state: AppState) -> dict[str, ServerFunction]:
    return {function.__name__: function for function in app_state.calls.functions()}


@pytest.fixture
def run(app_state: AppState) -> str:
    return str(lines(deque(app_state.jobs.start(LiveRun(asked(), "x=1"), "tab"), maxlen=1).pop())[0]["run"])


def spell(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_a_step_its_details_and_tables_come_when_asked_for(functions: dict[str, ServerFunction], run: str) -> None:
    step = lines(functions["run_step"]([run, 2])["lines"])[-1]
    assert step["kind"] == "step" and step["k"] == 2 and step["nodes"]
    detail = lines(functions["run_detail"]([run, 2])["lines"])[-1]
    assert detail["kind"] == "detail" and detail["k"] == 2 and detail["top"][0]
    (rows,) = lines(functions["run_rows"]([run, 2])["lines"])
    assert rows["kind"] == "rows" and rows["k"] == 2 and rows["views"]["cache"]["rows"]


def test_a_run_that_goes_on_is_answered_for_the_steps_so_far(
    app_state: AppState, functions: dict[str, ServerFunction], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a node sees is made when it is asked for: before, only from the run's end on."""
    monkeypatch.setattr("app.jobs.live_run.LIMITS", replace(LIMITS, live_gap=0.0))
    going = app_state.jobs.start(LiveRun(asked(), ""), "tab")
    text = next(text for text in going if "step" in kinds(text))
    run, made = lines(text)[0]["run"], kinds(text).count("step")
    names = ("run_step", "run_detail", "run_rows")
    now = [functions[name]([run, made - 1])["lines"] for name in names]
    detail = lines(now[1])[-1]
    assert len(detail["sees"]) == len(detail["top"]) and detail["words"][0].startswith("Sees ")
    for name in names:
        assert f"this run has {made} steps" in functions[name]([run, made])["fault"].lower()
    deque(going, maxlen=0)
    assert [functions[name]([run, made - 1])["lines"] for name in names] == now
    assert "lines" in functions["run_detail"]([run, made])


def test_a_run_that_was_left_can_still_be_read(app_state: AppState, functions: dict[str, ServerFunction]) -> None:
    """The server cannot tell a closed tab from a lost connection, after which the page still shows the run."""
    going = app_state.jobs.start(LiveRun(asked(), ""), "tab")
    run = lines(next(text for text in going if "step" in kinds(text)))[0]["run"]
    going.close()  # type: ignore[attr-defined]
    assert "lines" in functions["run_detail"]([run, 0]) and "bytes" in functions["run_export"]([run, "trace"])


@pytest.mark.parametrize("name", ["run_step", "run_detail", "run_rows", "run_export", "open_recording", "open_trace"])
@given(argument=ANYTHING)
def test_anything_is_answered_with_a_sentence(app_state: AppState, name: str, argument: object) -> None:
    answer = {function.__name__: function for function in app_state.calls.functions()}[name](argument)
    assert answer.keys() == {"fault"} and "Traceback" not in answer["fault"] and len(answer["fault"]) <= 500


@sampled
@pytest.mark.parametrize("k", [-1, 10_000, True, 1.0, "1", None, 2**70, [1]])
def test_only_steps_of_the_run_are_answered(functions: dict[str, ServerFunction], run: str, k: object) -> None:
    assert functions["run_step"]([run, k]).keys() == {"fault"}


def test_another_visitors_run_needs_its_id(functions: dict[str, ServerFunction], run: str) -> None:
    for guess in (run[:-1], run.lower() + "x", "", "lookahead.jsonl", "../lookahead"):
        assert "no longer stores" in functions["run_step"]([guess, 0])["fault"]


@sampled
@pytest.mark.parametrize(
    ("form", "recorded"), crossed([(form,) for form in ("trace", "html", "perfetto", "csv", "vllm")], [False, True])
)
def test_every_export_is_what_its_name_says(
    functions: dict[str, ServerFunction], app_state: AppState, run: str, form: str, recorded: bool
) -> None:
    run = LANDINGS[1] if recorded else run
    answer = functions["run_export"]([run, form])
    kept = app_state.store.get(run)
    assert kept is not None and answer["name"].startswith("specscope-lookahead-")
    if form == "trace":
        assert parse_trace(base64.b64decode(answer["bytes"])) == kept.trace
    elif form == "csv":
        assert answer["text"].count("\n") == len(kept.trace.steps) + 1
    elif form == "html":
        assert answer["text"].startswith("<!doctype html>") and answer["type"] == "text/html"
    else:
        assert isinstance(json.loads(answer["text"]), dict)
    assert "fault" in functions["run_export"]([run, "exe"])


def proof_in(lines_of: str) -> dict[str, Any]:
    return next(json.loads(line) for line in lines_of.splitlines() if line.startswith('{"kind":"end"'))


def test_a_live_runs_proof_and_speedup_are_kept_with_it(
    functions: dict[str, ServerFunction], app_state: AppState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.jobs.run_from_order.speedup", lambda ours, plain: 1.0)  # a busy machine measures none
    got = lines(deque(app_state.jobs.start(LiveRun(asked(compare=True), ""), "tab"), maxlen=1).pop())
    run, last = got[0]["run"], got[-1]
    assert last["kind"] == "check" and last["speedup"] == 1.0
    page = functions["run_export"]([run, "html"])["text"].replace(r"\u003c", "<")
    for found in (
        proof_in(functions["open_recording"](run)["lines"]),
        proof_in(page[page.index('id="lines">') + 11 :]),
    ):
        assert (found["check"], found["speedup"]) == (last["check"], last["speedup"])


def test_one_record_is_read_at_a_time(
    functions: dict[str, ServerFunction], app_state: AppState, run: str, monkeypatch: Any
) -> None:
    monkeypatch.setattr("app.store.trace_store._READ_TIMEOUT", 0.01)
    data = spell((GOLDEN / "lookahead.jsonl").read_bytes())
    calls = [("open_recording", run), ("run_export", [run, "html"]), ("open_trace", data)]
    with app_state.store.reading():
        for name, argument in calls:
            assert "try again in a moment" in functions[name](argument)["fault"]
        assert "lines" in functions["run_step"]([run, 0])  # what is at hand waits for nobody
    assert all("fault" not in functions[name](argument) for name, argument in calls)


def test_a_dropped_trace_is_shown_and_kept(functions: dict[str, ServerFunction], app_state: AppState) -> None:
    data = (GOLDEN / "lookahead.jsonl").read_bytes()
    for sent in (data, gzip.compress(data)):
        got = lines(functions["open_trace"](spell(sent))["lines"])
        assert got[0]["kind"] == "host" and got[-1]["kind"] == "end"
        kept = app_state.store.get(got[0]["run"])
        assert kept is not None and kept.trace == read_trace(GOLDEN / "lookahead.jsonl")
    torn = lines(functions["open_trace"](spell(data[: len(data) // 2]))["lines"])
    assert torn[-1]["finish"] == "torn"


def nodes(step: dict[str, Any], count: int) -> dict[str, Any]:
    """Return a step with a chain of so many nodes, of which nothing was accepted."""
    columns = {"tokens": [step["tokens"][0], *[9] * (count - 1)], "parents": [*range(-1, count - 1)]}
    columns |= {"roles": [0, *[1] * (count - 1)], "sources": ["root", *["draft:1"] * (count - 1)], "path": [0]}
    outcome = {"emitted": [step["tokens"][0]], "accepted": 0, "drafted": count - 1, "fed": count, "pending": 0}
    details = dict.fromkeys(("choices", "p", "q", "top", "draft_top", "entropy", "overlap"), [])
    return step | columns | outcome | details | {"panel": {}}


def packed(header: dict[str, Any], steps: list[dict[str, Any]]) -> str:
    """Return a dropped file of a header and some steps, each of which writes one token."""
    first = len(header["prompt"])
    got = [step | {"index": k, "start": first + k} for k, step in enumerate(steps)]
    return spell(gzip.compress("".join(json.dumps(line) + "\n" for line in (header, *got)).encode(), 1))


def bombs() -> dict[str, str]:
    """Return small files that would take most of a machine."""
    golden = [json.loads(line) for line in (GOLDEN / "lookahead.jsonl").read_text().splitlines()]
    header, step = golden[0], next(line for line in golden if line["kind"] == "step")
    small = nodes({**step, "tokens": [header["prompt"][-1]]}, 2)
    return {
        "values, more than the 262144 allowed": packed(header, [small | {"panel": {"rows": [[]] * 400_000}}]),
        "more than the 2228224 values allowed, at line": packed(
            header, [small | {"top": [[[1, 0.5]] * 40_000, []]}] * 20
        ),
        "panel of step 1 holds 'wormhole', which no method writes: take it out": packed(
            header, [small, small | {"panel": {"wormhole": [1]}}]
        ),
        "more than the 300000 values allowed for all panels": packed(
            header, [small | {"panel": {"rows": [1] * 10**5}}] * 6
        ),
        "more than the 65536 nodes read of all steps: record fewer": packed(header, [nodes(small, 700)] * 94),
    }


def hostile() -> dict[str, str]:
    """Return files that are no trace, or a wrong one, by what is wrong with them."""
    golden = (GOLDEN / "lookahead.jsonl").read_text().splitlines()
    header, step = json.loads(golden[0]), json.loads(golden[6])
    return {
        "nothing": "",
        "no base64": "<script>",
        "a picture": spell(b"\x89PNG\r\n\x1a\n" + bytes(64)),
        "a bomb": spell(gzip.compress(bytes(64 * 2**20))),
        "damaged gzip": spell(b"\x1f\x8b\x08" + bytes(64)),
        "deep": spell(b"[" * 100_000),
        "no steps": spell((golden[0] + "\n").encode()),
        "another kind": spell(json.dumps({**header, "kind": "exec"}).encode() + b"\n"),
        "a cycle": spell("\n".join([*golden[:6], json.dumps({**step, "parents": [0] * 12}), ""]).encode()),
        "a huge id": spell("\n".join([*golden[:6], json.dumps({**step, "emitted": [2**80]}), ""]).encode()),
        "another version": spell(json.dumps({**header, "schema": 999}).encode() + b"\n"),
    }  # fmt: skip


def for_debug() -> dict[str, bytes]:
    """Return files that the Debug tab shows, by the name of each in the sentence that refuses it here."""
    samples, folder = ROOT / "assets" / "samples", io.BytesIO()
    with zipfile.ZipFile(folder, "w") as archive:
        archive.writestr("runs.parquet", "PAR1")
    return {
        "answers like vLLM's": gzip.compress((samples / "vllm.jsonl").read_bytes()),
        "AIPerf's export": (samples / "aiperf.jsonl").read_bytes(),
        "a run folder": folder.getvalue(),
        "a table of a run folder": b"PAR1",
    }


@pytest.mark.parametrize("title", for_debug())
def test_a_file_of_the_debug_tab_is_sent_there(functions: dict[str, ServerFunction], title: str) -> None:
    """Another engine's record was refused without a word on where it can be opened."""
    answer = functions["open_trace"](spell(for_debug()[title]))
    sentence = f"The file holds {title}, not a trace of one run: open it on the Debug tab."
    assert answer == {"fault": sentence, "debug": True}


@pytest.mark.slow
def test_a_bomb_is_refused_at_once(functions: dict[str, ServerFunction], app_state: AppState) -> None:
    """A few kilobytes that took hundreds of megabytes, or the reading queue for twenty seconds."""
    for sentence, sent in bombs().items():
        answer = functions["open_trace"](sent)
        assert sentence in answer["fault"] and len(answer["fault"]) <= 500
        assert len(app_state.store) == 0


@slow  # it makes the largest run there can be
def test_the_largest_run_of_the_page_itself_can_be_dropped(
    functions: dict[str, ServerFunction], app_state: AppState
) -> None:
    """As many steps as it writes tokens, each as large as it may be and with all that a full record holds."""
    golden = [json.loads(line) for line in (GOLDEN / "lookahead.jsonl").read_text().splitlines()]
    header, first = golden[0], next(line for line in golden if line["kind"] == "step")
    header |= {"max_new_tokens": LIMITS.new_tokens}
    count, shares = LIMITS.nodes, [0.123456] * (LIMITS.nodes - 1)
    step = nodes({**first, "tokens": [header["prompt"][-1]]}, count)
    best = [[token, 0.123456] for token in range(5)]
    step |= {"choices": [9] * count, "p": [None, *shares], "q": [None, *shares], "top": [best] * count}
    step |= {"draft_top": [[[*row, 0.123456] for row in best]] * 64 + [[]] * (count - 64)}
    step |= {"entropy": [2.123456] * count, "overlap": [0.723456] * count}
    sent = packed(header, [step] * LIMITS.new_tokens)
    got = functions["open_trace"](sent)["lines"]
    assert len(got) < 2 * LIMITS.stream_bytes
    assert (
        "nodes read of all steps" in functions["open_trace"](packed(header, [step] * (LIMITS.new_tokens + 1)))["fault"]
    )


@slow
def test_a_recording_waits_for_no_visitors_file(
    functions: dict[str, ServerFunction], app_state: AppState, monkeypatch: Any
) -> None:
    """Also one that nobody has opened before: what comes with the page is small, and known to be harmless."""
    monkeypatch.setattr("app.store.trace_store._READ_TIMEOUT", 0.01)
    with app_state.store.reading():
        for run in (LANDINGS[1], "jacobi-defaults"):
            assert "lines" in functions["open_recording"](run)
            assert "lines" in functions["run_step"]([run, 0]) and "lines" in functions["run_detail"]([run, 0])


def test_a_dropped_file_that_is_too_long_for_one_page_says_so(
    functions: dict[str, ServerFunction], monkeypatch: Any
) -> None:
    run = lines(functions["open_trace"](spell((GOLDEN / "lookahead.jsonl").read_bytes()))["lines"])[0]["run"]
    assert "text" in functions["run_export"]([run, "html"])
    monkeypatch.setattr("app.pages.server_calls.LIMITS", replace(LIMITS, page_characters=20_000))
    assert "too long for one page: download its trace" in functions["run_export"]([run, "html"])["fault"]


def test_a_hostile_file_is_one_sentence(functions: dict[str, ServerFunction], app_state: AppState) -> None:
    for name, sent in hostile().items():
        answer = functions["open_trace"](sent)
        assert answer.keys() == {"fault"}, name
        assert 10 < len(answer["fault"]) <= 500 and "\n" not in answer["fault"], name
        assert len(app_state.store) == 0, name


def test_a_panel_changed_by_hand_is_one_sentence(functions: dict[str, ServerFunction]) -> None:
    """A method's panel is free JSON: the reader lets it through, and the views must not."""
    golden = [json.loads(line) for line in (GOLDEN / "lookahead.jsonl").read_text().splitlines()]
    for panel in ({"rows": "x", "pool": [[[]]]}, {"rows": [[None]], "guesses": {"a": 1}, "phase": []}):
        got = [{**line, "panel": panel} if line["kind"] == "step" else line for line in golden]
        answer = functions["open_trace"](spell("".join(json.dumps(line) + "\n" for line in got).encode()))
        assert "fault" not in answer or "Traceback" not in answer["fault"]
        assert not answer.get("fault", "").startswith("The server could not")


@pytest.mark.parametrize(
    ("run", "change"), [case[1:3] for case in OURS if case[3] == "import"], ids=[c[0] for c in OURS if c[3] == "import"]
)
def test_a_record_that_contradicts_itself_is_refused_as_import_refuses_it(
    functions: dict[str, ServerFunction], app_state: AppState, run: str, change: Change
) -> None:
    data = tampered(run, change)
    with pytest.raises(TraceError) as refused:
        read_any(data, name="record")
    reason = str(refused.value).removeprefix("'record': ")
    fault = functions["open_trace"](spell(data))["fault"]
    assert "the trace contradicts itself: " in fault and reason[:300] in fault and "\n" not in fault
    assert len(app_state.store) == 0


def test_a_record_that_is_merely_cut_off_opens(functions: dict[str, ServerFunction]) -> None:
    *some, _ = (GOLDEN / "lookahead.jsonl").read_bytes().splitlines(keepends=True)
    for data in (b"".join(some), b"".join(some[:-2]) + some[-2][:40]):
        assert "step" in kinds(functions["open_trace"](spell(data))["lines"])


def test_a_file_larger_than_allowed_is_not_even_read(functions: dict[str, ServerFunction]) -> None:
    assert "larger than 4 MB" in functions["open_trace"]("A" * (LIMITS.upload_bytes * 2))["fault"]


def test_hostile_texts_leave_as_data(functions: dict[str, ServerFunction]) -> None:
    """What a token says reaches the page inside JSON strings of plain ASCII, and no file name."""
    evil = "<img src=x onerror=alert(1)>`${alert(2)}`</script>\u202e\u200b=cmd()"
    golden = [json.loads(line) for line in (GOLDEN / "lookahead.jsonl").read_text().splitlines()]
    for line in golden:
        if line["kind"] == "texts":
            line["texts"] = {token: f"{evil}{token}" for token in line["texts"]}
        if line["kind"] == "header":
            line["method"] = line["model"]["name"] = f"../{evil}"
    ids = [token for line in golden if line["kind"] == "step" for token in line["emitted"]]
    golden[-1]["text"] = "".join(f"{evil}{token}" for token in ids)
    opened: Any = functions["open_trace"](spell("".join(json.dumps(line) + "\n" for line in golden).encode()))
    assert opened["lines"].isascii()
    run = lines(opened["lines"])[0]["run"]
    for form in ("csv", "perfetto", "vllm", "html"):
        answer = functions["run_export"]([run, form])
        assert all(letter.isalnum() or letter in "-._" for letter in answer["name"])
        if form != "html":
            assert answer["text"].isascii()
        else:
            assert "<img src=x onerror" not in answer["text"]


def broken(value: Any) -> Any:
    """Return the same JSON, with half a character after every text."""
    if isinstance(value, str):
        return f"{value}\ud800"
    if isinstance(value, list):
        return [broken(each) for each in value]
    return {name: broken(each) for name, each in value.items()} if isinstance(value, dict) else value


def test_half_characters_in_a_trace_reach_no_answer(functions: dict[str, ServerFunction]) -> None:
    """UTF-8 cannot hold them: a server that sends one fails."""
    written = [json.loads(line) for line in (GOLDEN / "lookahead.jsonl").read_text().splitlines()]
    kept = ("kind", "finish", "record")  # words of ours, which are checked
    file = "\n".join(json.dumps(broken(each) | {name: each[name] for name in kept if name in each}) for each in written)
    answers = [functions["open_trace"](spell(file.encode()))]
    run = lines(answers[0]["lines"])[0]["run"]
    answers += [functions["run_export"]([run, form]) for form in ("trace", "html", "perfetto", "csv", "vllm")]
    answers += [functions[name]([run, 1]) for name in ("run_step", "run_detail", "run_rows")]
    for answer in answers:
        assert "fault" not in answer
        json.dumps(answer, ensure_ascii=False).encode()
    assert "lookahead\ufffd" in answers[2]["text"]
