"""REST on the stage: the end of the text, the passages of the datastore that contain it, and the tree of guesses.

A passage is in the row of the branch that comes out of it: the end of the text, and what follows it there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from decoding.methods.panels import RestPanel
from decoding.methods.rest import RestParams
from decoding.tree import path_to
from decoding.types import Header, Step

from ...palette import Fate
from ...panels import panel_reader
from ...params import read_params
from ...run_state import RunState
from ...sources import parse
from ...stage.parts import TEXT, Room, StepScene, position_name, text_zone
from ...stage.scene import COLUMNS, Scene, StagePiece, Zone, ZoneCell, stage
from ...view import Figure, Patch, StagePicture
from ...wording import count, quote

STORE = "store"
_DEEPEST, _ROWS = 5, 5  # guesses in a row, and rows of them as of passages
_COUNT = 0.9  # columns for how often a passage occurs in the datastore
_FOOT = 1.2  # rows for words below the passages
_ENDING = 2  # tokens of the text's end before a passage


class _Plan(NamedTuple):
    """How much a stage shows."""

    room: Room
    ending: int

    @classmethod
    def of(cls, header: Header) -> _Plan:
        """Return the plan of a run."""
        params = read_params(RestParams, header)
        depth = min(params.length, params.c, _DEEPEST)
        return cls(Room(depth, min(params.c, _ROWS)), max(1, min(_ENDING, int(COLUMNS - 2 * depth - 1 - _COUNT))))

    @property
    def columns(self) -> float:
        """Columns of the passages."""
        return _COUNT + self.ending + self.room.depth


panel_of = panel_reader(RestPanel)


def base(run: RunState) -> Figure:
    """Return the stage without a step."""
    plan = _Plan.of(run.header)
    store = Zone(STORE, "Datastore: passages with the same words", plan.columns, plan.room.rows + _FOOT)
    return stage([[text_zone()]], [[store], [plan.room.zone()._replace(rows=plan.room.rows + 0.7)]])


def frame(run: RunState, k: int) -> Patch:
    """Return the scene of step k."""
    step, plan = run.steps[k], _Plan.of(run.header)
    scene = StepScene.begin(base(run), run, k, plan.room)
    scene.draw_text()
    hits, read = _hits(step), panel_of(step).get("read", 0)
    share = {node: min(1.0, hit_count / read) for node, hit_count in hits.items()} if read else None
    names = scene.draw_guesses(lambda node: f"s{k}.{node}", share=share)
    _draw_ending(scene, run, step, plan)
    _draw_passages(scene, step, plan, names, hits)
    if len(names) == 1:
        scene.draw_no_guess()
    return scene.patch()


def _hits(step: Step) -> dict[int, int]:
    """Return the number of positions at which the datastore holds the text up to each guess."""
    sources = {node: parse(source) for node, source in enumerate(step.sources)}
    return {node: numbers[0] for node, (kind, numbers) in sources.items() if kind == "datastore" and numbers}


def _draw_ending(scene: Scene, run: RunState, step: Step, plan: _Plan) -> None:
    """Draw the end of the text that was found, or the shortest one that was looked for."""
    params, panel = read_params(RestParams, run.header), panel_of(step)
    foot = ZoneCell(STORE, 0, plan.room.rows + 0.1)
    if "span" not in panel:
        return
    matched = panel["span"] > 0
    span = panel["span"] or params.shortest
    seen = min(span, plan.room.root + 1, step.start)
    scene.frame(ZoneCell(TEXT, plan.room.root - seen + 1, 0), seen, 1, loud=matched, until="commit")
    beside = ZoneCell(TEXT, plan.room.root + 0.9, 1)
    if not matched:
        looked = quote(run, run.ids[max(0, step.start - span) : step.start])
        scene.word(f"{looked} is not in the datastore", beside, "left", loud=True, until="accept")
        scene.word(f"looked for the last {count(params.longest, 'token')},", ZoneCell(STORE, 0, 0))
        scene.word(f"then for fewer, down to {params.shortest}: nothing found", ZoneCell(STORE, 0, 0.8))
        return
    scene.word(f"the last {count(span, 'token')}" if span > 1 else "the last token", beside, "left", until="accept")
    hits, read = panel.get("hits", 0), panel.get("read", 0)
    places = f"found at {hits:,} {'position' if hits == 1 else 'positions'}"
    scene.word(places if read == hits else f"{places}, {read:,} of them read", foot, loud=True)


def _draw_passages(scene: Scene, step: Step, plan: _Plan, names: Mapping[int, str], hits: Mapping[int, int]) -> None:
    """Draw a passage for every branch that is seen: its count, the end of the text, and what follows."""
    ending = panel_of(step).get("ending", [])[-plan.ending :]
    parents = {step.parents[node] for node in names if node}
    drawn = set[int]()
    for row, leaf in enumerate(node for node in names if node and node not in parents):
        scene.word(f"{hits.get(leaf, 0):,} ×", ZoneCell(STORE, _COUNT - 0.1, row), "left")
        for i, token in enumerate(ending, start=1 - len(ending)):
            name, origin = f"s{step.index}.{row}.{i}", position_name(step.start - 1 + i)
            place = ZoneCell(STORE, _COUNT + plan.ending - 1 + i, row)
            scene.add(StagePiece(name, token, place, Fate.PROMPT if i else Fate.ROOT, origin=origin))
            if not row and not i:
                scene.link(origin, name, "match", until="verify")
        path = path_to(step.parents, leaf)[1:]
        for i, node in enumerate(path):
            name = f"s{step.index}.{node}" + (f".{leaf}" if node in drawn else "")
            place = ZoneCell(STORE, _COUNT + plan.ending + i, row)
            scene.add(StagePiece(name, step.tokens[node], place, Fate.EXPLORED, node, faint=node in drawn))
        if fresh := [node for node in path if node not in drawn]:
            scene.link(f"s{step.index}.{path[-1]}", names[fresh[0]], "flow", until="verify")
        drawn.update(path)


STAGE = StagePicture(base, frame)
