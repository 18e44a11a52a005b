"""What methods guess from: the figure holds what the panel and the nodes say, no more and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from decoding.drafting.ngram_pool import NgramPool
from decoding.types import Role, Trace
from tests.toys import SETTINGS, counted_text, engine, title
from viz.boards.board import GONE
from viz.cells import SYMBOLS
from viz.fates import node_fates
from viz.methods.ouroboros import inspired, learned_in
from viz.palette import Fate
from viz.run_state import RunState
from viz.views.pool import VIEW

from .drawings import cells, drawn, fates
from .records import METHODS, changed, record

GUESSES, SIGNS, KNOWN, LEARNED, LABELS, OUTCOMES, MARKS, BARS, LINE, RIGHT, SPARK, NOW = range(12)
POOLED = tuple(method for method in METHODS if method not in ("autoregressive", "jacobi"))


def run(method: str, params: dict[str, Any], **options: Any) -> Trace:
    """A run on a text that repeats itself, so that guesses come true."""
    prompt = [1, 2, 3, 4, 5, 1, 2, 3, 4, 2, 3]
    return engine(counted_text()).generate(prompt, method, params=params, max_new_tokens=40, **options).trace


def each(method: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A test for all settings of a method."""
    return pytest.mark.parametrize("params", SETTINGS[method], ids=title)


CASES = [(method, params) for method in POOLED for params in SETTINGS[method]]


@pytest.mark.sampled
@pytest.mark.parametrize(("method", "params"), CASES, ids=title)
def test_guesses_are_nodes_with_their_fates(method: str, params: dict[str, Any]) -> None:
    """A cell that names another node would light up the wrong one in all other views."""
    trace, shown = run(method, params), 0
    for step in trace.steps:
        data = drawn(trace, VIEW, step.index)["data"]
        size = len(data[GUESSES]["x"])
        nodes = data[GUESSES].get("customdata", [])[:size]
        assert [token for *_, token in cells(data[GUESSES])] == [step.tokens[node] for node in nodes]
        assert fates(data[GUESSES])[:size] == [int(node_fates(step)[node]) for node in nodes]
        assert all(step.roles[node] is Role.VERIFY for node in nodes)
        if "merged" not in params.values() and method != "ouroboros":  # there two entries may share their first nodes
            assert len(set(nodes)) == size
        assert list(zip(data[SIGNS]["x"], data[SIGNS]["y"], strict=True)) == [
            (x, y) for x, y, _ in cells(data[GUESSES])
        ]
        held = zip(cells(data[KNOWN]), data[KNOWN].get("customdata", []), strict=False)
        assert all(step.tokens[node] == token for (*_, token), node in held if node >= 0)
        shown += size
        if size and size == step.drafted:
            assert set(step.path[1:]) <= set(nodes)
    assert shown > 0


@each("lookahead")
def test_lookaheads_entries_are_the_keys_newest_first(params: dict[str, Any]) -> None:
    """Age decides what leaves the pool next, so the order must be the pool's own."""
    trace = run("lookahead", params)
    for step in trace.steps:
        data = drawn(trace, VIEW, step.index)["data"]
        listed = [cell for cell in cells(data[GUESSES]) if cell[1] >= 1]
        rows = [
            [token for _, _, token in sorted(c for c in listed if c[1] == y)] for y in sorted({y for _, y, _ in listed})
        ]
        if params.get("layout") != "merged":
            assert rows == step.panel["guesses"][::-1][:9]
        assert cells(data[KNOWN]) == [(0, 0, step.panel["key"])]
        events = step.panel["pool"]["inserted"]
        learned: dict[float, list[int]] = {}
        for _, y, token in cells(data[LEARNED]):
            learned.setdefault(y, []).append(token)
        assert [*learned.values()] == [[key, *ngram] for key, ngram, _ in events[: len(learned)]]
        assert len(learned) == min(len(events), 6, params["W"])
        assert data[SPARK]["y"][-1] == data[NOW]["y"][0] == step.panel["pool"]["entries"]
        places = [data[SPARK]["x0"] + i * data[SPARK]["dx"] for i in range(len(data[SPARK]["y"]))]
        assert data[SPARK]["y"] == [trace.steps[k].panel["pool"]["entries"] for k in places]


def test_what_leaves_the_pool_is_what_the_pool_drops() -> None:
    """The figure replays the insertions of a step; a real pool of the same size is the judge."""
    trace, gone = run("lookahead", {"W": 6, "N": 3, "G": 2}), 0
    for step in trace.steps:
        guesses = step.panel["guesses"]
        pool = NgramPool(2)
        for guess in guesses:
            pool.insert(step.panel["key"], tuple(guess))
        for key, ngram, _ in step.panel["pool"]["inserted"]:
            pool.insert(key, tuple(ngram))
        left = {tuple(guess) for guess in guesses} - set(pool.guesses(step.panel["key"]))
        data = drawn(trace, VIEW, step.index)["data"]
        marks = zip(data[MARKS]["y"], data[MARKS]["marker"].get("symbol", ()), strict=False)
        rows = [row for row, symbol in marks if symbol == SYMBOLS[GONE]]
        assert {tuple(guesses[::-1][int(row) - 1]) for row in rows} == left
        gone += len(left)
    assert gone > 0


@each("ouroboros")
def test_ouroboros_phrases_and_what_they_became(params: dict[str, Any]) -> None:
    """The branches hang off the last draft token; what the answers changed is on the right."""
    trace, learned = run("ouroboros", params), 0
    for step in trace.steps:
        data = drawn(trace, VIEW, step.index)["data"]
        drafted = [node for node, source in enumerate(step.sources) if source.startswith("draft:")]
        assert data[KNOWN]["customdata"][0] == (drafted[-1] if drafted else 0)
        changes = [new for old, new in zip(step.panel["suffixes"], step.panel["refined"], strict=False) if old != new]
        phrases = [[step.tokens[drafted[-1]], *phrase] for phrase in changes]
        phrases += [[key, *phrase] for key, phrase, outcome in step.panel["inspired"] if outcome != "refreshed"]
        rows: dict[float, list[int]] = {}
        for _, y, token in cells(data[LEARNED]):
            rows.setdefault(y, []).append(token)
        assert [*rows.values()] == phrases[:6]
        learned += len(rows)
    assert learned > 0 or params.get("warm_start") == "across"


@each("ngrammys")
def test_rows_are_the_steps_rows(params: dict[str, Any]) -> None:
    """Which strategy filled the row that won is the paper's finding."""
    trace, won = run("ngrammys", params), 0
    for step in trace.steps:
        data = drawn(trace, VIEW, step.index)["data"]
        rows: dict[float, list[int]] = {}
        for _, y, token in cells(data[GUESSES]):
            rows.setdefault(y, []).append(token)
        if params.get("layout") != "trie":
            assert [*rows.values()] == [row["tokens"] for row in step.panel["rows"]][: len(rows)]
            assert len(rows) == len(step.panel["rows"])
        assert sum(map(len, rows.values())) == step.drafted
        words = dict(zip(data[OUTCOMES]["y"], data[OUTCOMES]["text"], strict=True))
        if step.panel["winner"] is not None:
            assert words[step.panel["winner"] + 1] == f"{step.accepted} accepted"
            won += 1
        labels = dict(zip(data[LABELS]["y"], data[LABELS]["text"], strict=True)) if "text" in data[LABELS] else {}
        assert all(labels[y].startswith(step.panel["rows"][int(y) - 1]["strategy"]) for y in rows)
    assert won > 0 or params.get("strategy") == "unigram"


@each("prompt_lookup")
def test_a_copy_stands_over_the_place_it_came_from(params: dict[str, Any]) -> None:
    """Above the text around the match, below the text's end; matched tokens stand over each other."""
    trace, copies = run("prompt_lookup", params), 0
    for step in trace.steps:
        data = drawn(trace, VIEW, step.index)["data"]
        held = {(x, y): token for x, y, token in cells(data[KNOWN])}
        text = [*trace.header.prompt, *(token for before in trace.steps[: step.index] for token in before.emitted)]
        now = [token for (x, y), token in sorted(held.items()) if y > 2]
        assert now == text[-len(now) :]
        if not step.panel:
            continue
        above = {x: token for (x, y), token in held.items() if y == 1}
        place = int(step.panel["copied_from"].split(":")[1])
        n = min(step.panel["n"], 8)
        assert [above[1 - n + i] for i in range(n)] == step.panel["ending"][-n:] == now[-n:]
        assert [above[x] for x in range(1, min(10, step.drafted) + 1)] == [*step.tokens[1:11]]
        assert above[1] == text[place] and f"position {place};" in data[OUTCOMES]["text"][0]
        assert len(data[LINE]["x"]) == 3 * n
        copies += 1
    assert copies > 0


@each("rest")
def test_hits_are_shown_with_their_counts(params: dict[str, Any]) -> None:
    """A branch's number is how often the text up to its first cell was found."""
    trace, got = run("rest", params), 0
    for step in trace.steps:
        data = drawn(trace, VIEW, step.index)["data"]
        nodes = dict(
            zip(((x, y) for x, y, _ in cells(data[GUESSES])), data[GUESSES].get("customdata", []), strict=False)
        )
        labels = zip(data[LABELS]["y"], data[LABELS].get("text", []), strict=False)
        for y, words in labels:
            first = min((place for place in nodes if place[1] == y), default=None)
            if first is not None and words.endswith("×"):
                assert step.sources[nodes[first]] == f"datastore:{words.removesuffix(' ×').replace(',', '')}"
                got += 1
        if step.panel.get("span"):
            assert f"found at {step.panel['hits']:,} position" in data[OUTCOMES]["text"][0]
    assert got > 0


@each("medusa")
def test_heads_by_ranks(params: dict[str, Any]) -> None:
    """The ring is around what was written, wherever a head had it."""
    trace, rings = run("medusa", params), 0
    for step in trace.steps:
        data = drawn(trace, VIEW, step.index)["data"]
        for (head, rank, _), node in zip(cells(data[GUESSES]), data[GUESSES].get("customdata", []), strict=False):
            assert step.sources[node] == f"medusa:{int(head)},{int(rank)}"
        where = {(x, y): token for x, y, token in cells(data[GUESSES])}
        for head, rank in zip(data[MARKS]["x"], data[MARKS]["y"], strict=True):
            assert step.panel["hits"][int(head) - 1] == rank
            assert where[head, rank] == step.emitted[int(head) - 1]
            rings += 1
        accepted = {(int(step.sources[n].split(":")[1].split(",")[0])) for n in step.path[1:]}
        judged = {
            x
            for (x, _, _), fate in zip(cells(data[GUESSES]), fates(data[GUESSES]), strict=False)
            if fate == Fate.ACCEPTED
        }
        assert judged == accepted
    assert rings > 0


@pytest.mark.parametrize(
    ("method", "params"), [("kangaroo", {"gamma": 4, "eta": 0.6}), ("draft_model", {"gamma": 4, "threshold": 0.5})]
)
def test_bars_are_the_recorded_confidence(method: str, params: dict[str, Any]) -> None:
    """Where the draft stopped must be seen from the bars and the bound."""
    trace, bars, stopped = run(method, params), 0, 0
    bound = params.get("eta", params.get("threshold"))
    for step in trace.steps:
        data = drawn(trace, VIEW, step.index)["data"]
        assert data[BARS]["y"] == pytest.approx(step.panel["confidence"], abs=1e-6)
        assert data[LINE]["y"] == [bound, bound]
        bars += len(data[BARS]["y"])
        unsure = bool(step.panel["confidence"]) and step.panel["confidence"][-1] < bound
        unsure = unsure and step.panel.get("stopped", "unsure") == "unsure"
        assert (f"is under the limit {bound:g}" in data[OUTCOMES].get("text", [""])[0]) == unsure
        stopped += unsure
    assert bars > stopped > 0


def test_without_a_bound_the_figure_says_why_it_is_empty() -> None:
    """An empty chart without a word looks like an error; a draft with recorded distributions shows its q instead."""
    trace = run("draft_model", {})
    assert "recorded only where a limit is set" in drawn(trace, VIEW, 1)["data"][OUTCOMES]["text"][0]
    for temperature in (0.0, 1.0):
        trace = run("draft_model", {}, record="full", sampling={"temperature": temperature})
        k = next(step.index for step in trace.steps if step.drafted)
        assert drawn(trace, VIEW, k)["data"][BARS]["y"] == pytest.approx(trace.steps[k].q[1:], abs=1e-6)
        assert "drawn" not in said(trace, k)[0]


def said(trace: Trace, k: int) -> list[str]:
    """The words beside the cells of a step."""
    texts: list[str] = drawn(trace, VIEW, k)["data"][OUTCOMES].get("text", [])
    return texts


def test_an_empty_draft_is_shown_with_its_reason() -> None:
    """The last token needs no guess, and a window that is not full asks for none: neither is a search that failed."""
    trace = run("lookahead", {"W": 4, "N": 4, "G": 4})
    assert trace.steps[0].panel["phase"] != "steady"
    assert "not used until the window is full" in said(trace, 0)
    steady = next(s.index for s in trace.steps if s.panel["phase"] == "steady" and not s.panel["guesses"])
    assert "no n-gram for it" in said(trace, steady)
    for method in ("prompt_lookup", "rest", "ngrammys"):
        trace = run(method, {})
        alone = changed(trace, 1, start=len(trace.header.prompt) + 39, panel={}, **ROOT_ALONE)
        assert said(alone, 1) == ["No guess: only one more token is needed"]
    trace = run("prompt_lookup", {"tail": "full", "K": 9})
    k = next(step.index for step in trace.steps[:-1] if not step.drafted)
    assert "No guess: no earlier occurrence of the end of the text is followed by 9 tokens" in said(trace, k)


ROOT_ALONE: dict[str, Any] = {
    "drafted": 0,
    "accepted": 0,
    "tokens": (1,),
    "parents": (-1,),
    "roles": (Role.ROOT,),
    "sources": ("root",),
    "path": (0,),
    "emitted": (2,),
    "choices": (2,),
}


def test_a_search_is_mentioned_only_where_there_was_one() -> None:
    """Rows of bigrams alone ask the text nothing."""
    words = said(run("ngrammys", {"k": 1, "strategy": "bigram"}), 1)[0]
    assert words == "1 row"
    trace = run("ngrammys", {"k": 3})
    for step in trace.steps[:-1]:
        times = step.panel["matches"]
        ending = f"occurred {times} time{'s' * (times != 1)} before" if times else "did not occur before"
        assert said(trace, step.index)[0] == f"3 rows; the end of the text {ending}"


def test_a_phrase_is_starred_where_the_target_made_it() -> None:
    """One that a step refined into itself, or inspired again, is no new one; the tree and the pool agree on it."""
    seen = set[str]()
    for params in SETTINGS["ouroboros"]:
        trace = run("ouroboros", params)
        state = RunState.of(trace)
        for k, step in enumerate(trace.steps):
            data = drawn(trace, VIEW, k)["data"]
            labels = data[LABELS].get("text", [])
            key = step.tokens[step.sources.count("root") + sum(s[:6] == "draft:" for s in step.sources) - 1]
            shown = [learned_in(state, k, (key, *phrase)) for phrase in step.panel["suffixes"][: len(labels)]]
            assert [label if label[:1] == "☆" else None for label in labels] == [
                None if step is None else f"☆ step {step}" for step in shown
            ]
            seen |= {label[:1] for label in labels}
            sparks = inspired(state, k)
            assert bool(sparks) <= any(label[:1] == "☆" for label in labels)
        same = trace.steps[1]
        suffixes = [[7, 8]]
        unchanged = changed(trace, 1, panel={**same.panel, "suffixes": suffixes, "refined": suffixes, "inspired": []})
        key = same.tokens[max(i for i, source in enumerate(same.sources) if source[:6] == "draft:")]
        assert learned_in(RunState.of(unchanged), 2, (key, 7, 8)) is None
        repeated = changed(trace, 1, panel={**same.panel, "inspired": [[key, [7, 8], "refreshed"]]})
        assert learned_in(RunState.of(repeated), 2, (key, 7, 8)) is None
        fresh = changed(trace, 1, panel={**same.panel, "inspired": [[key, [7, 8], "added"]]})
        assert learned_in(RunState.of(fresh), 2, (key, 7, 8)) == 1
    assert "☆" in seen


def test_a_changed_record_gives_another_figure() -> None:
    """The negative control of the tests above."""
    trace = record("lookahead")
    k = next(step.index for step in trace.steps if step.panel["guesses"])
    panel = trace.steps[k].panel
    pool = {**panel["pool"], "entries": panel["pool"]["entries"] + 1}
    other = changed(trace, k, panel={**panel, "pool": pool})
    assert drawn(trace, VIEW, k)["data"][NOW] != drawn(other, VIEW, k)["data"][NOW]
    other = changed(trace, k, panel={**panel, "guesses": panel["guesses"][::-1][:-1]})
    assert drawn(trace, VIEW, k)["data"][OUTCOMES] != drawn(other, VIEW, k)["data"][OUTCOMES]


def test_only_methods_that_guess_from_something_show_it() -> None:
    """Autoregressive decoding and Jacobi's block remember nothing."""
    assert tuple(method for method in METHODS if VIEW.shows(record(method).header)) == POOLED
    assert not VIEW.shows(replace(record("rest").header, record="off"))


def test_rows_that_are_left_out_are_counted() -> None:
    """Six rows stood below "learned 7", and nothing said where the seventh was."""
    trace = run("lookahead", {"W": 8, "N": 4, "G": 4})
    steady = [step for step in trace.steps if step.panel["phase"] == "steady"]
    assert steady
    for step in steady:
        learned = len(step.panel["pool"]["inserted"])
        assert f"learned {learned}," in " ".join(said(trace, step.index))
        assert (f"6 of {learned} shown" in said(trace, step.index)) == (learned > 6)
    trace = run("lookahead", {"W": 4, "N": 4, "G": 4})
    assert not any("shown" in words for step in trace.steps for words in said(trace, step.index))


@pytest.mark.parametrize(("params", "ranks"), [({}, 10), ({"size": 4}, 4), ({"tree": "cartesian", "sizes": "2,3"}, 3)])
def test_heads_name_no_rank_that_no_guess_has(params: dict[str, Any], ranks: int) -> None:
    """Rows "rank 10" to "rank 13" stood there empty in every step."""
    trace = run("medusa", params)
    for step in trace.steps:
        figure = drawn(trace, VIEW, step.index)["layout"]["yaxis"]
        used = [int(source.split(",")[1]) for source in step.sources if source.startswith("medusa")]
        expected = ["written", *(f"rank {rank}" for rank in range(max(used, default=-1) + 1))]
        assert figure["ticktext"] == expected
        assert figure["range"][0] < ranks + 1
