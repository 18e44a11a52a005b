"""SuffixDecoding on the stage: the end of the text, where else it occurs, what followed there, and both scores.

The ending is looked up in this text and in earlier answers. The tree of guesses has what followed it there, by
frequency. It comes from the suffix tree that expects more accepted tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from decoding.methods.panels import SuffixPanel, SuffixPlace, SuffixSide
from decoding.methods.suffix import SuffixParams
from decoding.types import Header, Step

from ...palette import Fate
from ...panels import panel_reader
from ...params import read_params
from ...run_state import RunState
from ...sources import parse
from ...stage.parts import TEXT, Room, StepScene, position_name, text_zone
from ...stage.scene import COLUMNS, Gauge, Scene, StagePiece, Zone, ZoneCell, stage
from ...view import Figure, Patch, StagePicture
from ...wording import count, quote

PLACES, SCORES = "places", "scores"
_DEEPEST, _ROWS = 4, 4  # guesses in a row, and rows of them as of passages
_ENDING = 2  # tokens of the ending before a passage
_LABEL = 1.9  # columns for where a passage is
_BAR = 3.0  # columns of the longer bar of the scores


class _Plan(NamedTuple):
    """How much a stage shows."""

    room: Room
    columns: float  # of the passages

    @classmethod
    def of(cls, header: Header) -> _Plan:
        """Return the plan of a run."""
        params = read_params(SuffixParams, header)
        room = Room(min(params.c, params.depth - 1, _DEEPEST), _ROWS)
        return cls(room, COLUMNS - room.depth - 1.2)

    @property
    def follows(self) -> int:
        """Tokens of a passage after the ending."""
        return int(self.columns - _LABEL - _ENDING)


panel_of = panel_reader(SuffixPanel)


def offer(side: SuffixSide) -> str:
    """Say what a suffix tree offers, in words."""
    if not side.get("guesses"):
        return "nothing"
    words = f"{count(side['p'], 'token')} found {side['count']} ×"
    return f"{words}, {count(side['guesses'], 'guess', 'guesses')}, score {side['score']:.2f}"


def base(run: RunState) -> Figure:
    """Return the stage without a step."""
    plan = _Plan.of(run.header)
    places = Zone(PLACES, "Where the end of the text occurs as well", plan.columns, _ROWS)
    scores = Zone(SCORES, "Accepted tokens that each suffix tree predicts", plan.columns, 2)
    return stage([[text_zone()]], [[places, scores], [plan.room.zone()._replace(rows=_ROWS + 0.5)]])


def frame(run: RunState, k: int) -> Patch:
    """Return the scene of step k."""
    step, plan = run.steps[k], _Plan.of(run.header)
    scene = StepScene.begin(base(run), run, k, plan.room)
    panel = panel_of(step)
    scene.draw_text()
    origins = _draw_places(scene, step, panel, plan)
    names = scene.draw_guesses(lambda node: origins.get(node, ""), share=_shares(step))
    for node, name in names.items():
        if step.parents[node] == 0:
            scene.link(origins.get(node, ""), name, "flow", until="verify")
    _draw_scores(scene, run, panel)
    if len(names) == 1:
        scene.draw_no_guess()
        _draw_missed(scene, run, step, panel)
    else:
        _draw_ending(scene, step, panel, plan)
    return scene.patch()


def _draw_places(scene: Scene, step: Step, panel: SuffixPanel, plan: _Plan) -> dict[int, str]:
    """Draw a row for every passage; returns the pieces that guesses come out of, by node."""
    ending, origins = panel.get("ending", [])[-_ENDING:], dict[int, str]()
    left = _LABEL + _ENDING - len(ending)
    for row, passage in enumerate(panel.get("places", [])[:_ROWS]):
        if not {"answer", "place", "follows"} <= passage.keys():
            continue
        answer, place = passage["answer"], passage["place"]
        scene.word(_where(step, passage), ZoneCell(PLACES, _LABEL - 0.1, row), "left")
        follows = passage["follows"][: plan.follows]
        nodes = _nodes(step, follows)
        for i, token in enumerate([*ending, *follows], start=place - len(ending)):
            behind = i - place
            at, back = ZoneCell(PLACES, left + len(ending) + behind, row), place - 1 - i
            fate = Fate.EXPLORED if behind >= 0 else Fate.PROMPT
            origin = position_name(i) if not answer else position_name(step.start - 1 - back) if behind < 0 else ""
            node = nodes[behind] if behind >= 0 else -1
            name = scene.add(StagePiece(f"s{answer}.{i}", token, at, fate, node, origin=origin))
            if behind == -1:
                scene.link(position_name(step.start - 1), name, "match", until="verify")
            if node > 0:
                origins.setdefault(node, name)
        scene.frame(ZoneCell(PLACES, left, row), len(ending), 1)
    return origins


def _nodes(step: Step, follows: Sequence[int]) -> list[int]:
    """Return the nodes of a passage, as far as it is guessed; -1 for what is not."""
    above, nodes = 0, list[int]()
    for token in follows:
        below = (node for node in range(1, len(step.tokens)) if step.parents[node] == above)
        above = next((node for node in below if step.tokens[node] == token), -1) if above >= 0 else -1
        nodes.append(above)
    return nodes


def _where(step: Step, passage: SuffixPlace) -> str:
    """Say where a passage is."""
    if passage["answer"]:
        return "last answer" if passage["answer"] == 1 else f"{passage['answer']} answers ago"
    return f"{count(max(0, step.start - passage['place']), 'token')} back"


def _shares(step: Step) -> Mapping[int, float]:
    """Return how often a guess came next, of all occurrences of the ending there."""
    panel = panel_of(step)
    side = panel.get("local") if panel.get("chosen") == "local" else panel.get("earlier")
    times = side.get("count", 0) if side else 0
    numbers = {node: parse(source)[1][:1] for node, source in enumerate(step.sources) if node}
    return {node: min(1.0, hits[0] / times) for node, hits in numbers.items() if hits and times}


def _draw_ending(scene: Scene, step: Step, panel: SuffixPanel, plan: _Plan) -> None:
    """Draw the ending that was found, framed in the text."""
    p = len(panel.get("ending", []))
    seen = min(p, plan.room.root + 1, step.start)
    if seen:
        scene.frame(ZoneCell(TEXT, plan.room.root - seen + 1, 0), seen, 1, loud=True, until="commit")
        words = f"the last {count(p, 'token')}" if p > 1 else "the last token"
        scene.word(words, ZoneCell(TEXT, plan.room.root + 0.9, 1), "left", until="accept")


def _draw_scores(scene: Scene, run: RunState, panel: SuffixPanel) -> None:
    """Draw what both suffix trees expect, as bars and in words."""
    look_in = read_params(SuffixParams, run.header).look_in
    answers = panel.get("answers", 0)
    sides = {
        "local": ("this text", panel.get("local")),
        "global": (count(answers, "earlier answer"), panel.get("earlier")),
    }
    most = max((side.get("score", 0.0) for _, side in sides.values() if side), default=0.0)
    for row, (tree, (where, side)) in enumerate(sides.items()):
        chosen = panel.get("chosen") == tree
        scene.word(where, ZoneCell(SCORES, _LABEL - 0.1, row), "left", loud=chosen)
        if side is None:
            scene.word("not asked" if look_in not in ("both", tree) else "nothing", ZoneCell(SCORES, _LABEL, row))
            continue
        wide = _BAR * side.get("score", 0.0) / most if most else 0.0
        if wide >= 0.1:
            scene.frame(ZoneCell(SCORES, _LABEL, row + 0.25), wide, 0.5, gauge=Gauge(1.0), loud=chosen)
        scene.word(_expects(side), ZoneCell(SCORES, _LABEL + (wide + 0.1 if wide >= 0.1 else 0), row), loud=chosen)


def _expects(side: SuffixSide) -> str:
    """Return a score and what it is made of."""
    if not side.get("guesses"):
        return "nothing"
    return f"{side['score']:.2f} of {count(side['guesses'], 'guess', 'guesses')}"


def _draw_missed(scene: Scene, run: RunState, step: Step, panel: SuffixPanel) -> None:
    """Draw an ending that was not found."""
    if "local" not in panel and "earlier" not in panel:
        return
    ending = quote(run, run.ids[step.start - 1 : step.start])
    scene.word(f"no guess after {ending}:", ZoneCell(PLACES, 0, 0), loud=True)
    scene.word("it occurs nowhere else, or too many tokens followed", ZoneCell(PLACES, 0, 0.8))


STAGE = StagePicture(base, frame)
