"""The stream: it holds the record, tells everything before it is used, and stays small."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from decoding.methods import METHODS as KNOWN
from decoding.trace.file import read_trace
from decoding.types import Trace
from tests import families
from tests.tiers import choose, few, sampled, slow
from tests.toys import counted_text, engine
from viz import tree_layout
from viz.fates import node_fates
from viz.methods import SCREENS, inspired_nodes, label_of, screen_of
from viz.palette import Fate
from viz.run_state import RunState
from viz.sources import in_words
from viz.stream import encode, play
from viz.stream.lines import Values, ids_in, numbers, shortest
from viz.stream.play import CAP, MisfitError, Play, lines
from viz.view import Patch, View
from viz.views import VIEWS
from viz.views.mask_words import sentences

from .records import METHODS, changed, expanded, hostile, parsed, record, strings_in


@cache
def sent(method: str) -> str:
    """Write the stream of a recorded run, once for all tests that read it."""
    return lines(record(method))


EVERY = pytest.mark.parametrize("method", METHODS)


def steps(lines: str) -> list[dict[str, Any]]:
    return [line for line in expanded(parsed(lines)) if line["kind"] == "step"]


def known(got: list[dict[str, Any]]) -> list[str]:
    """The table of strings that a stream tells."""
    return [string for line in got if line["kind"] == "strings" for string in line["strings"]]


def named(value: Any, table: list[str]) -> Any:
    """Steps with strings in the place of their numbers."""
    if isinstance(value, list):
        return [named(part, table) for part in value]
    if not isinstance(value, dict):
        return value
    return {
        name: [table[got] if type(got) is int else got for got in (part if isinstance(part, list) else numbers(part))]
        if name in ("strings", "source")
        else named(part, table)
        for name, part in value.items()
    }


@sampled
@EVERY
def test_the_stream_holds_the_record(method: str) -> None:
    """What the player shows as a node's parent, fate or choice must be the engine's."""
    trace = record(method)
    got = parsed(sent(method))
    assert [line["kind"] for line in got][0] == "play"
    assert got[-1]["kind"] == "end"
    strings = [string for line in got if line["kind"] == "strings" for string in line["strings"]]
    for step, line in zip(trace.steps, steps(sent(method)), strict=True):
        nodes = line["nodes"]
        assert numbers(nodes["token"]) == list(step.tokens)
        assert numbers(nodes["parent"]) == list(step.parents)
        assert numbers(nodes["choice"]) == list(step.choices)
        assert numbers(nodes["fate"]["fates"]) == [int(fate) for fate in node_fates(step)]
        words = screen_of(trace.header).source_words
        assert [strings[number] for number in numbers(nodes["source"])] == [in_words(s, words) for s in step.sources]
        rows = numbers(nodes["row"]) if "row" in nodes else [0] * len(step.tokens)
        assert rows == [-1 if row is None else row for row in tree_layout.rows(step)]
        assert line["emitted"] == list(step.emitted)
        assert line["ms"][-1] == pytest.approx(step.timing.total_ms, abs=1e-3)
        p = [] if "p" not in nodes else encode.unpack(nodes["p"]).tolist()
        pairs = [(mine, theirs) for mine, theirs in zip(p, step.p, strict=bool(p)) if theirs is not None]
        assert all(mine == pytest.approx(theirs, abs=1e-6) for mine, theirs in pairs)
    assert got[-1]["summary"]["new_tokens"] == len(trace.ids)


def test_the_stream_says_which_guesses_the_target_helped_to_make() -> None:
    """The text marks them by the very fact by which the tree does."""
    trace = record("ouroboros")
    state = RunState.of(trace)
    assert any(inspired_nodes(state, k) for k in range(len(trace.steps)))
    for k, line in enumerate(steps(lines(trace))):
        assert set(line["nodes"].get("inspired", ())) == inspired_nodes(state, k)
        written = {trace.steps[k].path[1:][place] for place in line.get("inspired", ())}
        assert written == inspired_nodes(state, k) & set(trace.steps[k].path)


@EVERY
def test_a_run_has_its_views_and_no_other(method: str) -> None:
    """A view without anything to show would be an empty box; a missing one a gap."""
    trace = record(method)
    got = parsed(sent(method))
    expected = [name for name, view in VIEWS.items() if view.shows(trace.header)]
    assert [view["name"] for view in got[0]["views"]] == expected
    assert all(set(line["views"]) <= set(expected) for line in steps(sent(method)))
    plots = [view for view in got[0]["views"] if view["kind"] == "plot"]
    assert all({"data", "layout"} <= set(view["base"]) for view in plots)


@EVERY
def test_texts_and_strings_are_sent_before_they_are_used(method: str) -> None:
    """A live player draws a step as soon as its line is there."""
    texts, strings = set[int](), 0
    trace = record(method)
    for line in expanded(parsed(sent(method)))[1:]:
        if line["kind"] == "texts":
            texts |= {int(token) for token in line["texts"]}
        elif line["kind"] == "strings":
            strings += len(line["strings"])
        elif line["kind"] == "step":
            assert ({*line["emitted"], *ids_in(line)} & trace.texts.keys()) <= texts
            assert max(numbers(line["nodes"]["source"])) < strings


@sampled
@EVERY
def test_a_live_run_has_the_lines_of_a_recorded_one(method: str) -> None:
    """Views look at no later step, so watching and replaying show the same."""
    trace = record(method)
    live = Play(trace.header)
    got = live.begin({token: trace.texts[token] for token in trace.header.prompt})
    for step in trace.steps:
        got += live.step(step, {token: trace.texts[token] for token in step.used})
    got += live.end(trace.summary)
    # Only the file knows texts of tokens that come later; a line may tell them earlier.
    assert [line for line in parsed(got) if line["kind"] != "texts"] == [
        line for line in parsed(sent(method)) if line["kind"] != "texts"
    ]


@slow
@pytest.mark.parametrize("method", choose(METHODS, ("lookahead", "draft_model", "medusa", "rest")))
def test_steps_beyond_the_cap_are_thin_and_can_be_asked_for(method: str) -> None:
    """A browser is given a long run at once only as far as it can bear it."""
    trace = record(method)
    whole = steps(lines(trace, cap=None))
    first = Play(trace.header)
    cap = len(first.begin(trace.texts)) + sum(len(first.step(step)) for step in trace.steps[:2])
    capped = Play(trace.header, cap=cap)
    got = expanded(parsed(capped.begin(trace.texts) + "".join(capped.step(step) for step in trace.steps)))
    thin = [line for line in got if line.get("thin")]
    assert 0 < len(thin) <= len(trace.steps) - 2 + 1
    assert all("nodes" not in line and line["emitted"] and line["say"] for line in thin)
    growing = {name for name, view in VIEWS.items() if view.grows and view.kind == "plot"}
    assert all(set(line["views"]) <= growing for line in thin)
    for line in thin:
        k = line["k"]
        assert named(steps(capped.full(k)), known(got)) == named([whole[k]], known(parsed(lines(trace, cap=None))))
        kept = line.keys() - {"thin", "views"}
        assert {name: line[name] for name in kept} == {name: whole[k][name] for name in kept}
    texts = {int(token) for line in parsed(capped.full(thin[-1]["k"])) for token in line.get("texts", ())}
    assert texts >= set(trace.steps[thin[-1]["k"]].tokens) & trace.texts.keys()


def test_details_come_on_demand() -> None:
    """The alternatives of every node would treble the stream."""
    for method, k in (("lookahead", 5), ("draft_model", 2)):
        trace = record(method)
        player, step = Play(trace.header), trace.steps[k]
        got = player.begin(trace.texts) + "".join(player.step(step) for step in trace.steps)
        assert all("top" not in line and "draft_top" not in line for line in parsed(got))
        texts, detail = parsed(player.detail(k))
        assert detail["k"] == k
        assert detail["top"] == [[list(pair) for pair in best] for best in step.top]
        assert [detail["words"][number] for number in detail["sees"]] == sentences(player.run, k)
        assert len(detail["views"]["pair"]) == len(step.tokens) + 1
        assert {int(token) for token in texts["texts"]} == step.alternatives
    for k in (-1, len(trace.steps)):
        with pytest.raises(IndexError, match="is not one of the"):
            player.detail(k)
        with pytest.raises(IndexError, match="is not one of the"):
            player.full(k)


def test_a_greedy_guess_has_no_q_to_test_it_by() -> None:
    """A player that knows p and q of a guess says min(1, p/q), by which no greedy run keeps anything."""
    machine = engine(counted_text())
    for temperature in (0.0, 1.0):
        asked: dict[str, Any] = {"max_new_tokens": 12, "record": "full", "sampling": {"temperature": temperature}}
        trace = machine.generate([1, 2, 3], "draft_model", **asked).trace
        assert any(q is not None for step in trace.steps for q in step.q)
        got = [line["nodes"] for line in expanded(parsed(lines(trace))) if line["kind"] == "step"]
        assert any("p" in nodes for nodes in got) and any("q" in nodes for nodes in got) == bool(temperature)


@EVERY
def test_hostile_texts_stay_data(method: str) -> None:
    """Only texts lines and sentences may hold token texts, and figures no unescaped one."""
    trace = hostile(record(method))
    got = lines(trace)
    assert got.isascii()
    assert all(json.loads(line) for line in got.split("\n")[:-1])
    for line in expanded(parsed(got)):
        if line["kind"] == "texts":
            assert max(map(len, line["texts"].values())) <= 200
            assert max(map(len, line["shown"].values()), default=0) <= 24
            shown = [*line["texts"].values(), *line["shown"].values()]
            assert not any("\ud800" <= char <= "\udfff" for text in shown for char in text)
            assert not any(char in text for text in line["shown"].values() for char in "\u202e\u200b\u2028\x00")
        elif line["kind"] == "step":
            assert "<" not in "".join(strings_in(line["views"])) and "x" * 200 not in line["say"]
            assert "\u202e" not in line["say"]


BROKEN: list[tuple[str, dict[str, Any]]] = [
    ("lookahead", {"panel": {"pool": {"inserted": 5}}}),
    ("lookahead", {"panel": {"pool": {"inserted": [[[], [2], "added"], [1, 2, "added"], [1, [2], []]]}}}),
    ("lookahead", {"panel": {"pool": {"inserted": [[1]]}, "rows": 3}}),
    ("prompt_lookup", {"panel": {"ending": 7}}),
    ("rest", {"panel": {"span": 2, "ending": [1]}}),
    ("ngrammys", {"panel": {"rows": [1, 2]}}),
    ("ouroboros", {"panel": {"passes": 4}}),
    ("kangaroo", {"panel": {"confidence": ["sure"], "stopped": "unsure", "exit_layer": []}}),
]


@pytest.mark.parametrize(("method", "fields"), few(1, BROKEN))
def test_a_panel_that_holds_anything_does_no_harm(method: str, fields: dict[str, Any]) -> None:
    """A trace file's panel is free JSON: it is drawn, or refused in one sentence, and never an accident."""
    trace = record(method)
    for k in range(len(trace.steps)):
        try:
            lines(changed(trace, k, **fields))
        except MisfitError as error:
            assert f"step {k} of this trace does not hold" in str(error)


def test_a_misfit_is_named() -> None:
    """The control of the test above: something that cannot be drawn is refused."""
    with pytest.raises(MisfitError, match="the step 3 of this trace does not hold what narration shows"):
        lines(changed(record("lookahead"), 3, sources=()))


def test_a_hostile_header_stays_small() -> None:
    """Parameters and versions of a dropped file are free JSON, too."""
    header = record("jacobi").header
    params = {"n": 8, "deep": [[[1]]], "long": "x" * 10**6, **{f"name {i}": i for i in range(1000)}}
    got = parsed(Play(replace(header, params=params, method="<b>" * 99, device="\u202e")).begin())[0]
    assert len(got["header"]["params"]) <= 64
    assert "deep" not in got["header"]["params"]
    assert max(len(text) for text in strings_in(got["header"])) <= 200


def test_an_unrecorded_step_has_no_nodes_but_is_not_thin() -> None:
    """A run with record="off" can still be played as text and numbers."""
    bare: dict[str, Any] = {"tokens": (), "parents": (), "roles": (), "sources": (), "path": (), "choices": ()}
    trace = record("draft_model")
    off = tuple(replace(step, **bare, p=(), q=(), top=(), panel={}) for step in trace.steps)
    got = steps(lines(replace(trace, steps=off)))
    assert len(got) == len(off)
    assert not any("nodes" in line or "thin" in line for line in got)
    assert [line["emitted"] for line in got] == [list(step.emitted) for step in trace.steps]


def test_every_method_has_a_screen_and_its_own_label() -> None:
    """In the order of the page; a run of a method that is none of ours goes by its name."""
    assert [*SCREENS] == [*KNOWN]
    header = record("jacobi").header
    for name, kind in KNOWN.items():
        assert label_of(replace(header, method=name)) == kind.label
    assert label_of(replace(header, method="mine")) == "mine"


def test_a_run_that_ends_badly_or_late_says_so() -> None:
    """A torn file has no summary; a check may be done long after the end."""
    trace = record("jacobi")
    torn = parsed(lines(replace(trace, summary=None)))[-1]
    assert (torn["finish"], torn["summary"]) == ("torn", {})
    result = {"checked": 16, "exact": 16, "near_ties": 0, "violations": 0, "noise": 1e-5, "places": ()}
    late = json.loads(Play(trace.header).late(result))
    assert (late["kind"], late["check"]["tone"], late["speedup"]) == ("check", "exact", None)
    assert json.loads(play.state("queued", "Two runs are before yours.")) == {
        "kind": "state",
        "what": "queued",
        "sentence": "Two runs are before yours.",
        "share": None,
    }
    assert json.loads(play.fault("Ask for fewer tokens."))["sentence"] == "Ask for fewer tokens."


@pytest.mark.parametrize(("speedup", "shown"), [(0.4, 0.4), (16 / 15, 16 / 15), (1.08, None), (1.5, None)])
def test_a_speedup_above_the_tokens_per_step_is_not_sent(speedup: float, shown: float | None) -> None:
    """No step is cheaper than an autoregressive one, so it was measured wrongly: 16 tokens took 15 steps."""
    trace = record("jacobi")
    play = Play(trace.header)
    for step in trace.steps:
        play.step(step)
    for made in (play.late(None, speedup), play.end(trace.summary, None, speedup)):
        assert json.loads(made)["speedup"] == shown


@pytest.fixture(scope="module")
def long_run() -> Trace:
    options: dict[str, Any] = {"params": {"W": 15, "N": 5, "G": 15}, "record": "full", "end_tokens": []}
    engine = families.machine("mistral", max_position_embeddings=1024)
    return engine.generate([5, 6, 7, 8, 9, 10] * 8, "lookahead", max_new_tokens=150, **options).trace


@slow
def test_a_run_of_the_usual_length_is_sent_whole(long_run: Trace) -> None:
    """The browser holds the stream as one string, and is sent all of it again after a reconnection; what is beyond the
    cap is fetched. The largest steps that the page offers, 128 of them, stay below it.
    """
    whole, half = (lines(replace(long_run, steps=long_run.steps[:count]), cap=None) for count in (60, 30))
    assert len(long_run.steps) >= 60
    assert (len(whole) - len(half)) / 30 * 98 + len(half) <= CAP  # at the price of the later ones


def test_the_cap_holds(long_run: Trace) -> None:
    """Whatever a run records, the stream stays small."""
    got = lines(long_run, cap=200_000)
    assert 150_000 < len(got) < 250_000
    assert [bool(line.get("thin")) for line in steps(got)] == sorted(bool(line.get("thin")) for line in steps(got))


def test_what_repeats_is_sent_once() -> None:
    """A table of repeated parts, from which every step can be put together again."""
    steps = [
        {"kind": "step", "views": {"a": {"x": [1, 2, 3] * 9, "k": k}, "b": [{"y": "z" * 30}, {}]}} for k in range(5)
    ]
    values, got = Values(), list[dict[str, Any]]()
    for step in steps:
        short = values.replace(step)
        got += [*parsed(values.line()), short]
    assert expanded(got) == [*steps[:1], got[1], *steps[1:]]
    assert len([line for line in got if line["kind"] == "values"]) == 1
    assert len(json.dumps(got)) < len(json.dumps(steps)) * 0.8


@pytest.mark.parametrize(
    ("values", "kind", "plain"),
    [
        ([1, 2, 3], "u1", [1, 2, 3]),
        ([1.34, -0.5, 2.0], "f4", [1.34, -0.5, 2]),
        ([float("nan"), 1.0], "f4", None),
        (range(100), "u1", None),
        ([10**6] * 30, "i4", None),
    ],
)
def test_an_array_is_written_as_short_as_it_can_be(values: Any, kind: str, plain: list[float] | None) -> None:
    """Short ones are numbers, long ones packed; either way they are what they were."""
    packed = encode.pack(list(values), kind)
    assert shortest(packed) == (packed if plain is None else plain)
    if plain is not None:
        assert encode.pack(plain, kind) == packed


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u2", "i4"])
@pytest.mark.parametrize(
    "values", [[], [0, 1, 127], [True, False, True], [Fate.ACCEPTED, Fate.REJECTED], [*range(100)]]
)
def test_whole_numbers_are_packed_as_numpy_does(kind: str, values: list[int]) -> None:
    """Lists take another way than arrays, which is faster with a few numbers."""
    packed = encode.pack(values, kind)
    assert (
        packed == encode.pack(np.array(values, dtype=np.int64), kind) == encode.pack([float(v) for v in values], kind)
    )
    assert encode.size(packed) == len(values) and encode.unpack(packed).tolist() == [int(value) for value in values]
    for least in (-1, 2**31) if kind[0] == "u" else (-(2**31) - 1, 2**31):
        with pytest.raises(OverflowError):
            encode.pack([0, least], kind)


def test_the_state_of_a_whole_trace_is_the_growing_one() -> None:
    """Figures for notebooks and for the page are made from the same state."""
    trace = record("lookahead")
    player = Play(trace.header)
    player.begin(trace.texts)
    for step in trace.steps:
        player.step(step)
    assert player.run == RunState.of(trace)


def counted(player: Play) -> list[str]:
    """The names of the views that are drawn from now on, a name for every patch."""
    drawn = list[str]()

    def watched(view: View) -> View:
        def frame(state: RunState, k: int) -> Patch:
            drawn.append(view.name)
            return view.frame(state, k)

        return replace(view, frame=frame)

    player._views = [watched(view) for view in player._views]
    player._growing = [watched(view) for view in player._growing]
    return drawn


TRACES = Path(__file__).parents[2] / "assets" / "traces"
RECORDINGS = [path.name.split(".")[0] for path in sorted(TRACES.glob("*-defaults.jsonl.gz"))]


@slow
@pytest.mark.parametrize("run", choose(RECORDINGS, {"lookahead-defaults", "medusa-defaults", "ouroboros-defaults"}))
def test_a_thin_step_costs_no_more_than_it_says(run: str) -> None:
    """Once a run is thin, no view is drawn to be thrown away, and every line is the whole one without its nodes."""
    trace = read_trace(TRACES / f"{run}.jsonl.gz")
    every = lines(trace, cap=None)
    whole, names = steps(every), known(parsed(every))
    player = Play(trace.header, cap=10_000)
    got, drawn = known(parsed(player.begin(trace.texts))), counted(player)
    growing = {name for name, view in VIEWS.items() if view.grows and view.kind == "plot"}
    thin = 0
    for step, full in zip(trace.steps, whole, strict=True):
        drawn.clear()
        piece = parsed(player.step(step))
        got, line = got + known(piece), piece[-1]
        if "thin" not in line:
            continue
        thin += 1
        kept = {name: part for name, part in full.items() if name not in ("nodes", "views")}
        views = {name: patch for name, patch in full["views"].items() if name in growing}
        assert named(line, got) == named(kept | {"thin": True, "views": views}, names)
        assert [*line] == [*kept, "thin", "views"]
        if thin > 1:
            assert set(drawn) == growing and not known(piece)
    assert thin > len(trace.steps) // 2


def test_a_step_asked_for_brings_the_strings_that_were_never_sent() -> None:
    """Answers come in any order and to several visitors, so no answer may count on another one."""
    trace = record("lookahead")
    first, second = (Play(trace.header, cap=5_000) for _ in range(2))
    for player in (first, second):
        got = known(parsed(player.begin(trace.texts) + "".join(player.step(step) for step in trace.steps)))
    last = len(trace.steps) - 1
    second.full(last - 1)
    assert first.full(last) == second.full(last) == first.full(last)
    names = steps(first.full(last))[0]["nodes"]["source"]
    words = screen_of(trace.header).source_words
    assert named({"source": names}, got)["source"] == [in_words(source, words) for source in trace.steps[last].sources]
