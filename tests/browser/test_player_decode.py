"""What the player reads out of the stream is what Python put in: every patch of every view, every sentence."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from decoding import tree
from tests.browser.conftest import Shown
from tests.tiers import few
from tests.toys import correlated, counted_text, engine
from tests.viz.records import METHODS, record
from viz import token_text
from viz.methods import screen_of
from viz.palette import LIGHT
from viz.run_state import RunState
from viz.sources import in_words
from viz.stream import encode
from viz.views import VIEWS
from viz.views.mask_words import explain
from viz.views.pair import DRAFT, pair_detail

PLAIN = """const plain = (value) => {
  if (ArrayBuffer.isView(value)) value = Array.from(value);
  if (Array.isArray(value)) return value.map(plain);
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, plain(part)]));
  }
  return Number.isNaN(value) ? null : value;
}"""


def expected(story: RunState, k: int, patch: Any) -> Any:
    """Resolve a patch in Python, in the form in which JSON brings the player's back."""
    texts = {token: token_text.shown(text) for token, text in story.texts.items()}
    return plain(encode.resolve(patch, texts, [], LIGHT, step=story.steps[k]))


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def close(one: Any, other: Any) -> bool:
    """Return whether two values are equal, with numbers of four bytes taken for what they are."""
    if isinstance(one, float) or isinstance(other, float):
        return one is not None and other is not None and math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-7)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(close(part, other[name]) for name, part in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(close, one, other))
    return bool(one == other)


@pytest.mark.parametrize("method", METHODS)
def test_patches_mean_what_python_wrote(show: Callable[..., Shown], method: str) -> None:
    """A decoder that is off by one in a mask or a text would lie in every view."""
    trace = record(method)
    shown, story = show(trace), RunState.of(trace)
    names = [name for name, view in VIEWS.items() if view.kind == "plot" and view.shows(trace.header)]
    assert {"mask", "timeline", "cache"} <= {*names}
    code = f"""(() => {{ {PLAIN}; return given.map((name) => player.record.steps.map((_, k) =>
      plain(player.frames.patch(player.record.view(name), k, true, "light")))); }})()"""
    for name, found in zip(names, shown.run(code, names), strict=True):
        for k, patch in enumerate(found):
            assert close(patch or {}, expected(story, k, VIEWS[name].frame(story, k))), f"{name} of step {k}"


GREEDY = ("draft_model", "kangaroo", "ouroboros")  # whose distributions are known where nothing is drawn from them
PINNED = [(name, False) for name in ("lookahead", "medusa", *GREEDY)] + [(name, True) for name in GREEDY]


@pytest.mark.parametrize(("method", "greedy"), few(1, PINNED))
def test_a_pinned_node_is_told_as_python_tells_it(show: Callable[..., Shown], method: str, greedy: bool) -> None:
    """The player says why a row sees what it sees, where a guess came from, and what it sees, in its own code."""
    trace = record(method)
    if greedy:
        model = counted_text()
        asked: dict[str, Any] = {"max_new_tokens": 30, "record": "full"}
        trace = engine(model, correlated(model, mix=0.3)).generate([1, 2, 3, 4, 5, 1, 2], method, **asked).trace
    k = max(range(len(trace.steps)), key=lambda k: len(trace.steps[k].tokens))  # with twins, and guesses never tried
    shown, story = show(trace), RunState.of(trace)
    step, nodes = trace.steps[k], range(len(trace.steps[k].tokens))
    code = """given.nodes.map((node) => [Specscope.explain(player.record, given.k, node),
      Specscope.sourceWords(player.record, player.record.nodes(given.k).source[node]),
      Specscope.seenNodes(player.record.nodes(given.k), node)])"""
    told = shown.run(code, {"k": k, "nodes": [*nodes]})
    assert told == [
        [
            explain(story, k, node),
            in_words(step.sources[node], screen_of(trace.header).source_words),
            [*tree.path_to(step.parents, node)],
        ]
        for node in nodes
    ]
    shown.do(f"player.record.feed(given); player.seek({k})", shown.play.detail(k))
    code = f"""(() => {{ {PLAIN}; const view = player.record.view("pair");
      return given.map((node) => plain(Specscope.pairPatch(player.record, view.base.detail, {k}, {{ node }}))); }})()"""
    for node, patch in zip(nodes, shown.run(code, [*nodes]), strict=True):
        wanted = expected(story, k, pair_detail(story, k, node))
        assert all({*part} <= {*other} for part, other in zip(wanted["data"], patch["data"], strict=True))
        distribution = step.draft_top[max(0, step.parents[node])] if step.draft_top else ()
        assert bool(wanted["data"][DRAFT]) == bool(patch["data"][DRAFT]["x"]) == bool(distribution)
        for part, other in zip(wanted["data"], patch["data"], strict=True):
            for name, value in part.items():
                if name not in ("x", "customdata"):
                    assert close(value, other[name]), f"{name} at node {node}"
                    continue
                assert [x is None for x in value] == [x is None for x in other[name]], f"{name} at node {node}"
                for one, two in zip(value, other[name], strict=True):  # rounded to four digits in the stream
                    assert one is None or two == pytest.approx(one, abs=6e-5), f"{name} at node {node}"
