"""The views as ordinary Plotly figures: valid, true to the record, and inert."""

from __future__ import annotations

import json
from typing import Any

import pytest

from decoding.errors import ParamError
from tests.tiers import of_methods, sampled
from viz import VIEWS, animate, figure
from viz.fates import emitted_fates
from viz.methods import screen_of
from viz.palette import FATE_COUNT, MEANINGS, THEMES, Fate
from viz.run_state import RunState
from viz.sources import in_words
from viz.stream import encode
from viz.token_text import escaped, shown
from viz.views.mask_words import sentences
from viz.views.pair import NAMES, SAY, of_node

from .records import METHODS, changed, hostile, record, strings_in

SHOWN = [(method, name) for method in METHODS for name, view in VIEWS.items() if view.shows(record(method).header)]
# Every view at least once; what the others draw, the first test has checked.
QUICK = of_methods({"lookahead", "draft_model", "medusa", "ngrammys"}, [pytest.param(*pair) for pair in SHOWN])
# What our own figures may say between angle brackets.
MARKUP = ("<extra></extra>", "<br>", "<i>word</i>")


def plain(made: Any) -> dict[str, Any]:
    """A figure as the JSON that plotly.js gets."""
    data: dict[str, Any] = json.loads(made.to_json())
    return data


@sampled
@pytest.mark.parametrize(("method", "name"), SHOWN)
def test_every_view_of_every_method_is_a_plotly_figure(method: str, name: str) -> None:
    """Plotly refuses attributes that do not exist; in the page they would be ignored in silence."""
    trace = record(method)
    for k in (0, len(trace.steps) // 2, len(trace.steps) - 1):
        made = plain(figure(trace, name, k, theme="dark"))
        assert f"step {k}" in made["layout"]["title"]["text"]
        assert made["layout"]["paper_bgcolor"] == THEMES["dark"]["paper"]
        assert not [text for text in strings_in(made) if text.startswith("$")]  # every colour was put in


@sampled
@pytest.mark.parametrize(("method", "name"), QUICK)
def test_no_text_of_a_token_is_markup(method: str, name: str) -> None:
    """Plotly reads tags in texts, links among them."""
    trace = hostile(record(method))
    for k in (1, len(trace.steps) - 1):
        for text in strings_in(plain(figure(trace, name, k))):
            for ours in MARKUP:
                text = text.replace(ours, "")
            assert "<" not in text


@sampled
@pytest.mark.parametrize("name", VIEWS)
def test_an_animation_holds_every_step(name: str) -> None:
    """Play button and slider work in plain plotly: frames by name, and each equal to the figure of its step."""
    trace = record("lookahead")
    made = plain(animate(trace, name))
    assert [frame["name"] for frame in made["frames"]] == [str(k) for k in range(len(trace.steps))]
    assert [step["args"][0] for step in made["layout"]["sliders"][0]["steps"]] == [
        [frame["name"]] for frame in made["frames"]
    ]
    assert [button["label"] for button in made["layout"]["updatemenus"][0]["buttons"]] == ["Play", "Pause"]
    for k in (0, 6):
        assert made["frames"][k]["data"] == plain(figure(trace, name, k))["data"]
    assert made["frames"][0]["data"] != made["frames"][6]["data"] or name == "check"


@pytest.mark.parametrize(("method", "name"), QUICK)
def test_colours_are_explained_beside_the_figure(method: str, name: str) -> None:
    """On the page the legend is a line of its own; a figure in a notebook stands alone."""
    made = plain(figure(record(method), name))
    listed = {part["name"] for part in made["data"] if part.get("showlegend")}
    if name in ("mask", "window", "pool", "tree", "cache", "stage"):
        assert MEANINGS[Fate.ROOT].label in listed and made["layout"]["showlegend"]
        assert made["layout"]["margin"]["t"] > 44 + 19
    if name == "mask":
        assert "text that the row sees" in listed


def test_an_animation_waits_and_leaves_nothing_of_a_step_behind() -> None:
    """Plotly would start it with sliding tokens, and keep a longer step's shapes below a shorter one's."""
    made = animate(record("lookahead"), "stage")
    assert "Plotly.animate(" not in made.to_html(include_plotlyjs="cdn") and "Plotly.animate(" in made.to_html(
        include_plotlyjs="cdn", auto_play=True
    )
    for name in ("shapes", "annotations"):
        assert len({len(frame["layout"][name]) for frame in plain(made)["frames"]}) == 1


def test_the_text_is_the_texts() -> None:
    """Tokens in order, each with the mark of its fate."""
    trace = record("draft_model")
    made = plain(figure(trace, "text", 2))
    state = RunState.of(trace)
    ids = [*trace.header.prompt, *(token for step in trace.steps[:3] for token in step.emitted)]
    fates = [Fate.PROMPT] * len(trace.header.prompt)
    fates += [fate for step in trace.steps[:3] for fate in emitted_fates(step)]
    assert made["data"][0]["text"] == [shown(state.text(token)) for token in ids]
    colours = made["data"][1]["marker"]["color"]
    colours = encode.unpack(colours).tolist() if "bdata" in colours else colours
    assert colours == [int(fate) for fate in fates]
    assert made["data"][1]["marker"]["symbol"] == [MEANINGS[fate].symbol for fate in fates]
    assert made["data"][1]["marker"]["cmax"] == FATE_COUNT - 0.5


def test_the_text_shows_where_its_tokens_came_from() -> None:
    """Accepted guesses name their source, as they do on the page; what a file made up is no tag."""
    trace = record("prompt_lookup")
    step = next(step for step in trace.steps if step.accepted)
    first = sum(len(before.emitted) for before in trace.steps[: step.index]) + len(trace.header.prompt)
    got = plain(figure(trace, "text"))["data"][1]["customdata"]
    assert got[: len(trace.header.prompt)] == ["Prompt"] * len(trace.header.prompt)
    assert len(got) == len(trace.header.prompt) + len(trace.ids)
    words = screen_of(trace.header).source_words
    for place, node in enumerate(step.path[1:], start=first):
        assert got[place] == f"Accepted: {in_words(step.sources[node], words)}" and "copied from position" in got[place]
    if len(step.emitted) > step.accepted:
        assert got[first + step.accepted] in {MEANINGS[fate].label for fate in (Fate.CORRECTION, Fate.BONUS, Fate.OWN)}
    odd = changed(trace, step.index, sources=("<b>\u202e",) * len(step.tokens))
    assert plain(figure(odd, "text"))["data"][1]["customdata"][first] == "Accepted: '&lt;b&gt;⟨U+202E⟩'"


@sampled
@pytest.mark.parametrize(("method", "name"), QUICK)
def test_a_figure_shows_nothing_that_is_not_known_in_its_phase(method: str, name: str) -> None:
    """A stage in a notebook was always one whose guesses were judged."""
    trace = record(method)
    k = next((step.index for step in trace.steps if step.accepted and step.index), 1)
    verdicts = {int(fate) for fate in (Fate.ACCEPTED, Fate.REJECTED, Fate.MATCHED, Fate.TWIN)}
    for phase in ("propose", "verify", "answers"):
        made = plain(figure(trace, name, k, phase=phase))
        assert f"step {k}, {phase}" in made["layout"]["title"]["text"]
        if name in ("timeline", "text", "window"):
            continue  # what they show of earlier steps was judged long ago
        seen = [part for part in made["data"] if part.get("visible", True) and not part.get("showlegend")]
        colours = [
            part["marker"]["color"] for part in seen if isinstance(part.get("marker", {}).get("color"), list | dict)
        ]
        assert not verdicts & {int(code) for each in colours for code in numbers(each)}
        labels = " ".join(str(part.get("text")) for part in seen)
        assert not any(f": {MEANINGS[fate].label}" in labels for fate in verdicts)
    assert plain(figure(trace, name, k, phase="commit"))["data"]


def numbers(column: Any) -> list[float]:
    """A column's values."""
    return list(encode.unpack(column).tolist()) if isinstance(column, dict) else list(column)


def test_a_stage_goes_through_its_phases() -> None:
    """The target's word comes before the verdict, and the accepted guess goes into the text at last."""
    trace = record("draft_model")
    k = next(step.index for step in trace.steps if step.accepted and step.index)
    words = {
        phase: [
            (note["text"], note["y"]) for note in plain(figure(trace, "stage", k, phase=phase))["layout"]["annotations"]
        ]
        for phase in ("verify", "answers", "accept", "commit")
    }
    assert len(words["answers"]) > len(words["verify"])
    assert words["accept"] != words["commit"]
    assert plain(figure(trace, "stage", k)) | {"layout": None} == plain(figure(trace, "stage", k, phase="accept")) | {
        "layout": None
    }
    with pytest.raises(ParamError, match="no phase 'later': choose one of propose, verify"):
        figure(trace, "stage", k, phase="later")  # type: ignore[arg-type]


def test_a_measured_speedup_is_shown_in_a_notebook() -> None:
    """Nothing in a record tells it."""
    trace = record("jacobi")
    credible, unknown = (plain(figure(trace, "counters", speedup=speedup)) for speedup in (1.05, 1.25))
    assert "1.05×" in str(credible) and "1.25×" not in str(unknown)  # above its tokens per step


def test_a_node_can_be_asked_for() -> None:
    """A notebook has no pin: the node is named."""
    trace = record("draft_model")
    k = next(step.index for step in trace.steps if step.drafted > 2)
    state, token = RunState.of(trace), trace.steps[k].tokens
    for node in (1, 2):
        made = plain(figure(trace, "pair", k, node=node))
        assert f"step {k}, node {node}" in made["layout"]["title"]["text"]
        assert trace.texts[token[node]].strip() in "".join(made["data"][NAMES]["text"])
        assert made["data"][SAY]["text"][0] == of_node(state, k, node)["data"][SAY]["text"]["strings"][0]
        mask = plain(figure(trace, "mask", k, node=node))["layout"]
        assert mask["title"]["subtitle"]["text"].replace("<br>", " ") == escaped(sentences(state, k)[node])
        assert mask["height"] > plain(figure(trace, "mask", k))["layout"]["height"]


def test_a_check_is_shown_in_a_notebook() -> None:
    """Before and after."""
    trace = record("jacobi")
    result = {"checked": 16, "exact": 16, "near_ties": 0, "violations": 0, "noise": 1e-5, "places": ()}
    assert "Not checked yet." in str(plain(figure(trace, "check")))
    assert "16 of 16 tokens are" in str(plain(figure(trace, "check", check=result)))


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"name": "maks"}, "there is no view 'maks': choose one of mask"),
        ({"name": "text", "theme": "pink"}, "there is no theme 'pink': choose one of light, dark"),
        ({"name": "text", "step": 99}, "step must be between 0 and 14, the last one of this trace, not 99"),
        ({"name": "text", "step": -1}, "step must be between 0 and 14"),
        ({"name": "pair", "node": 99}, "node must be between 0 and 8, the last one of step 14, not 99"),
        ({"name": "tree", "node": 1}, 'tree shows no single node: choose "pair" or "mask"'),
    ],
)
def test_a_mistake_is_explained(asked: dict[str, Any], sentence: str) -> None:
    """In a notebook the error is the help."""
    with pytest.raises(ValueError, match=sentence):
        figure(record("jacobi"), **asked)


def test_a_view_that_a_run_does_not_have_is_refused() -> None:
    """Autoregressive decoding has no pool."""
    with pytest.raises(ValueError, match="nothing to show here: choose another than pool"):
        figure(record("autoregressive"), "pool")
