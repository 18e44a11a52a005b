"""What the player reads out of the stream is what Python put in: every patch of every view, every sentence."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from decoding import tree
from tests.browser.conftest import Shown
from tests.tiers import choose, sampled, slow
from tests.toys import correlated, counted_text, engine
from tests.viz.records import METHODS, QUICK, record
from viz import token_text, tree_layout
from viz.methods import screen_of
from viz.palette import LIGHT
from viz.run_state import RunState
from viz.sources import in_words
from viz.stream import encode
from viz.views import VIEWS
from viz.views.mask_words import sentences
from viz.views.pair import of_node

PLAIN = """const plain = (value) => {
  if (ArrayBuffer.isView(value)) value = Array.from(value);
  if (Array.isArray(value)) return value.map(plain);
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, plain(part)]));
  }
  return Number.isNaN(value) ? null : value;
}"""


def expected(story: RunState, k: int, patch: Any) -> Any:
    """A patch resolved by Python, in the form in which JSON brings the player's back."""
    texts = {token: token_text.shown(text) for token, text in story.texts.items()}
    return plain(encode.resolve(patch, texts, [], LIGHT, step=story.steps[k]))


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def close(one: Any, other: Any) -> bool:
    """Equal, with numbers of four bytes taken for what they stand for."""
    if isinstance(one, float) or isinstance(other, float):
        return one is not None and other is not None and math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-7)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(close(part, other[name]) for name, part in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(close, one, other))
    return bool(one == other)


@sampled
@pytest.mark.parametrize("method", choose(METHODS, QUICK))
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


@slow  # some seconds in a browser
@pytest.mark.parametrize("method", ("lookahead", "medusa", "draft_model", "ouroboros"))
def test_a_pinned_node_is_shown_as_python_describes_it(show: Callable[..., Shown], method: str) -> None:
    """Repeated parts of the details are put back: why a node sees what it sees, and the comparison at its position."""
    model = counted_text()
    asked: dict[str, Any] = {"max_new_tokens": 30, "record": "full"}
    trace = engine(model, correlated(model, mix=0.3)).generate([1, 2, 3, 4, 5, 1, 2], method, **asked).trace
    k = max(range(len(trace.steps)), key=lambda k: len(trace.steps[k].tokens))  # with twins, and guesses never tried
    shown, story = show(trace), RunState.of(trace)
    step, nodes = trace.steps[k], range(len(trace.steps[k].tokens))
    shown.do(f"player.record.feed(given); player.seek({k})", shown.play.detail(k))
    code = """given.nodes.map((node) => [player.record.sees(given.k, node), player.record.nodes(given.k).source[node],
      player.record.nodes(given.k).row[node], Specscope.seenNodes(player.record.nodes(given.k), node)])"""
    words, rows = screen_of(trace.header).source_words, tree_layout.rows(step)
    assert shown.run(code, {"k": k, "nodes": [*nodes]}) == [
        [sees, in_words(step.sources[node], words), rows[node], [*tree.path_to(step.parents, node)]]
        for node, sees in enumerate(sentences(story, k))
    ]
    code = f"""(() => {{ {PLAIN}; const view = player.record.view("pair"); return given.map((node) =>
      plain(player.frames.patch(view, {k}, true, "light", {{ step: {k}, node }}))); }})()"""
    for node, patch in zip(nodes, shown.run(code, [*nodes]), strict=True):
        assert close(patch, expected(story, k, of_node(story, k, node))), f"node {node}"
