"""Traces that are put together from a run folder's tables say what the runs' own traces said."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from analysis.store import folder_traces
from analysis.store.folder import RunFolder, read_folder
from analysis.store.folder_traces import refuse_differences, with_texts
from analysis.store.tables import RunIdentity, joined, tables_of
from app.server.limits import LIMITS
from app.store.run_folders import SHIPPED
from app.store.trace_store import pack_trace, replay
from decoding import load
from decoding.errors import TraceError
from decoding.trace.file import parse_trace, read_trace
from decoding.types import Role, Trace
from viz.run_state import RunState
from viz.stream.encode import unpack
from viz.views import VIEWS, views_of
from viz.views.stage import PLAIN, plain_frame

from .conftest import lines

GOLDEN = Path(__file__).parents[1] / "golden"
METHODS = sorted(file.stem for file in GOLDEN.glob("*.jsonl"))
trace_of = partial(folder_traces.trace_of, most_bytes=LIMITS.upload_bytes, limits=LIMITS.files)


def folder_of(trace: Trace, path: Path = Path("nowhere"), file: str | None = None) -> RunFolder:
    tables = joined([tables_of(trace, RunIdentity(run=3, trace=file))])
    return RunFolder(path, *tables, {"source": "specscope", "name": "x", "finished": True, "missing": {}})


@pytest.mark.parametrize("method", METHODS)
def test_a_run_is_put_together_from_the_tables(method: str) -> None:
    """Every node, what became of it and what the target chose at each parent are the run's own."""
    golden = read_trace(GOLDEN / f"{method}.jsonl")
    made, is_own = trace_of(folder_of(golden), 3)
    assert not is_own and len(made.steps) == len(golden.steps) and made.ids == golden.ids
    for a, b in zip(made.steps, golden.steps, strict=True):
        for name in ("start", "emitted", "accepted", "drafted", "fed", "tokens", "parents", "roles", "sources", "path"):
            assert getattr(a, name) == getattr(b, name), (a.index, name)
        written = dict(zip(b.path, b.emitted, strict=False))  # which the sampled choices were
        for node in {parent for parent in b.parents if parent >= 0} | written.keys():
            assert a.choices[node] == written.get(node, b.choices[node]), (a.index, node)
    assert parse_trace(pack_trace(made)).steps == made.steps  # it obeys the rules of all traces


def test_a_mixtures_counters_know_its_experts() -> None:
    """They stand in the tables, and what a step costs depends on them."""
    golden = read_trace(GOLDEN / "lookahead.jsonl")
    steps = tuple(replace(step, experts=2.5 + step.index) for step in golden.steps)
    mixture = replace(golden, header=replace(golden.header, model=replace(golden.header.model, experts=8)), steps=steps)
    made, _ = trace_of(folder_of(mixture), 3)
    assert [step.experts for step in made.steps] == [step.experts for step in steps]
    assert made.header.model.experts == 8
    assert parse_trace(pack_trace(made)).steps == made.steps


@pytest.mark.parametrize("method", METHODS)
def test_guesses_are_seen_where_the_methods_own_view_is_not_known(method: str) -> None:
    """The stage of EAGLE-3 drew empty boxes and none of the guesses, and that of Lookahead an empty window."""
    golden = read_trace(GOLDEN / f"{method}.jsonl")
    made, _ = trace_of(folder_of(golden), 3)
    assert views_of(golden) is VIEWS
    if method == "autoregressive":
        assert views_of(made) is VIEWS
        return
    assert views_of(made)["stage"] is PLAIN and not {"window", "pool"} & views_of(made).keys()
    sent = lines(replay(made, "x")[1])
    assert sum(line["kind"] == "step" for line in sent) == len(golden.steps)
    k = next(step.index for step in golden.steps if Role.VERIFY in step.roles)
    nodes = plain_frame(RunState.of(made), k)["pieces"]["nodes"]
    shown = set(unpack(nodes).tolist() if isinstance(nodes, dict) else nodes)
    assert made.steps[k].roles.index(Role.VERIFY) in shown


def test_a_prompt_is_read_in_the_words_of_other_runs_of_its_model() -> None:
    """The tables hold texts of guesses alone: a prompt that its own run does not repeat was a row of numbers."""
    trace, _ = trace_of(read_folder(SHIPPED / "pocket"), 1)
    assert set(trace.header.prompt) <= trace.texts.keys()


def test_a_prompt_that_no_run_repeats_is_read_in_the_words_of_the_tokenizer() -> None:
    """Unless the tokenizer at hand is another one: its words would be wrong."""
    engine = load("pocket")
    made, _ = trace_of(folder_of(engine.generate(engine.as_turn("I have a black dog."), max_new_tokens=2).trace), 3)
    assert not set(made.header.prompt) <= made.texts.keys()
    whole = with_texts(made, lambda header: engine.codec)
    assert "".join(whole.texts[token] for token in made.header.prompt) == "<s><|user|>I have a black dog.<|assistant|>"
    assert with_texts(made, lambda header: load("toy").codec) == with_texts(made, lambda header: None) == made


def test_a_trace_of_its_own_is_played_as_it_is(tmp_path: Path) -> None:
    golden = read_trace(GOLDEN / "medusa.jsonl")
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "a.jsonl.gz").write_bytes(pack_trace(golden))
    made, is_own = trace_of(folder_of(golden, tmp_path, "traces/a.jsonl.gz"), 3)
    assert is_own and made == golden


@pytest.mark.parametrize(
    ("table", "column", "value", "sentence"),
    [
        ("runs", "device", "a pocket calculator", "device is 'cpu' in the trace and 'a pocket calculator' in runs"),
        ("steps", "text", "other", "step 0, text is "),
        ("nodes", "wanted", 1, "in the trace and 1 in nodes"),
        ("nodes", "text", "other", "step 0, node 0, text is "),
    ],
)
def test_a_trace_that_is_not_of_its_tables_is_refused(table: str, column: str, value: object, sentence: str) -> None:
    """The sentence names the first difference."""
    golden = read_trace(GOLDEN / "medusa.jsonl")
    folder = folder_of(golden)
    rows = getattr(folder, table)
    place = rows.schema.get_field_index(column)
    values = [None if old is None else value for old in rows[column].to_pylist()]
    changed = rows.set_column(place, rows.schema.field(place), pa.array(values, rows.schema.field(place).type))
    with pytest.raises(TraceError, match="the run's trace and the folder's tables disagree") as refused:
        refuse_differences(golden, replace(folder, **{table: changed}), 3)
    refuse_differences(golden, folder, 3)
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    "name", ["../secret.jsonl", "/etc/passwd", "traces/../../x.jsonl", "traces/link.jsonl", "traces"]
)
def test_a_folder_names_no_file_elsewhere(tmp_path: Path, name: str) -> None:
    """The name is in a table that a stranger may have written."""
    golden = read_trace(GOLDEN / "medusa.jsonl")
    (tmp_path / "runs" / "traces").mkdir(parents=True)
    (tmp_path / "secret.jsonl").write_bytes((GOLDEN / "jacobi.jsonl").read_bytes())
    (tmp_path / "runs" / "traces" / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    made, is_own = trace_of(folder_of(golden, tmp_path / "runs", name), 3)
    assert not is_own and made.header.method == "medusa"


def test_tables_without_tokens_make_no_trace() -> None:
    golden = read_trace(GOLDEN / "medusa.jsonl")
    whole = folder_of(golden)
    for name in ("ids", "prompt_ids"):
        place, field = whole.runs.schema.get_field_index(name), whole.runs.schema.field(name)
        runs = whole.runs.set_column(place, field, pa.nulls(1, field.type))
        with pytest.raises(TraceError, match="--traces"):
            trace_of(RunFolder(whole.path, runs, whole.steps, whole.nodes, whole.summary), 3)
    with pytest.raises(TraceError, match="--traces"):
        trace_of(RunFolder(whole.path, whole.runs, whole.steps, whole.nodes.slice(0, 0), whole.summary), 3)
    with pytest.raises(TraceError, match="no such run"):
        trace_of(whole, 4)


@pytest.mark.parametrize(
    ("ids", "way"),
    [(True, "its guesses one by one: import the record with --restore"), (False, "new tokens, nor did the record")],
)
def test_another_engines_run_is_not_evaluated_again(ids: bool, way: str) -> None:
    """Whoever dropped a record of vLLM here has no evaluation that could write traces."""
    whole = folder_of(read_trace(GOLDEN / "medusa.jsonl"))
    rows = whole.runs.to_pylist()
    other = {"engine": "vllm"} | ({} if ids else {"ids": None})
    runs = pa.Table.from_pylist([row | other for row in rows], whole.runs.schema)
    with pytest.raises(TraceError, match=way):
        trace_of(RunFolder(whole.path, runs, whole.steps, whole.nodes.slice(0, 0), whole.summary), 3)
