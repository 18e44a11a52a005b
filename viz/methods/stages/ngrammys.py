"""N-Grammys on the stage: rows of guesses on the right, and on the left the source of each.

A source is an n-gram that occurred earlier in the text, after the same token, or a token from the model's bigram
ranking after the last token. Below them is the cost of the pass.
"""

from __future__ import annotations

from collections.abc import Sequence

from decoding.methods.ngrammys import NGrammysParams
from decoding.methods.panels import NGrammysPanel, NGrammysRow
from decoding.types import Header, Step

from ...boards.nodes import NodeIndex, root
from ...palette import Fate
from ...panels import panel_reader
from ...params import params_reader
from ...run_state import RunState
from ...stage.parts import Room, StepScene, position_name, rows_of, text_zone
from ...stage.scene import StagePiece, Zone, ZoneCell, stage
from ...view import Figure, Patch, StagePicture
from ...wording import count, share

SOURCES = "sources"
_DEEPEST, _ROWS = 4, 6  # guesses in a row, and rows, that are seen
_FOOT = 0.7  # rows for words below a zone's cells

params_of = params_reader(NGrammysParams)
panel_of = panel_reader(NGrammysPanel)


def _room(header: Header) -> Room:
    params = params_of(header)
    return Room(min(params.depth, _DEEPEST), min(params.k, _ROWS))


def base(run: RunState) -> Figure:
    """Return the stage without a step."""
    room = _room(run.header)
    sources = Zone(SOURCES, "Where each row comes from", room.root + 0.6, room.rows + _FOOT)
    return stage([[text_zone()]], [[sources], [room.zone("Rows of guesses")._replace(rows=room.rows + _FOOT)]])


def frame(run: RunState, k: int) -> Patch:
    """Return the scene of step k."""
    step, room = run.steps[k], _room(run.header)
    scene = StepScene.begin(base(run), run, k, room)
    scene.draw_text()
    origins = _draw_sources(scene)
    names = scene.draw_guesses(lambda node: origins.get(node, ""))
    seen = rows_of(step, room)
    ends = {row: node for node, row in seen.items()}
    for node, row in seen.items():
        if row != seen.get(step.parents[node]):  # it begins its row
            scene.link(origins.get(ends[row], ""), names[node], "flow", until="verify")
    scene.word(_cost(run, step), ZoneCell(SOURCES, room.root + 0.4, room.rows - 0.1), "left", loud=True)
    return scene.patch()


def _draw_sources(scene: StepScene) -> dict[int, str]:
    """Draw what the rows are made of; returns the pieces that guesses come out of, by node."""
    run, step, room = scene.run, scene.step, scene.room
    rows, seen, origins = panel_of(step).get("rows", []), rows_of(step, room), dict[int, str]()
    merged, lines = params_of(run.header).layout == "trie", set[int]()
    chains = NodeIndex(step).rows((row.get("tokens", []) for row in rows), merged=merged)
    for row, chain in zip(rows, chains, strict=True):
        new = [node for node in chain if node in seen and node not in origins]
        if new and seen[new[-1]] not in lines:
            lines.add(seen[new[-1]])
            place = ZoneCell(SOURCES, room.root - room.depth - 0.4, seen[new[-1]])
            names = _draw_source(scene, row, chain[: room.depth], place)
            origins = dict(zip(chain, names, strict=False)) | origins
    if not rows:
        scene.word(_missed(run, step), ZoneCell(SOURCES, room.root + 0.4, 0), "left", loud=True)
    return origins


def _draw_source(scene: StepScene, row: NGrammysRow, chain: Sequence[int], at: ZoneCell) -> list[str]:
    """Draw where a row comes from, the token before its n-gram, and the n-gram; returns the n-gram's pieces."""
    run, step = scene.run, scene.step
    key, place = f"m{root(step)}", row.get("place", 0)
    copied = row.get("strategy") == "context" and 0 < place < step.start
    scene.word(_label(step, row), at._replace(x=at.x - 0.08), "left")
    if copied:
        scene.frame(at, 1 + len(chain), 1)
        front = scene.add(
            StagePiece(f"s{place}.q", run.ids[place - 1], at, Fate.PROMPT, origin=position_name(place - 1))
        )
        scene.link(position_name(place - 1), front, "match")
    else:
        front = key
        if key not in scene:
            scene.add(StagePiece(key, root(step), at, Fate.ROOT, 0, origin=position_name(step.start - 1)))
    names = list[str]()
    for i, (token, node) in enumerate(zip(row.get("tokens", []), chain, strict=False)):
        name = f"s{place}.{i}" if copied else f"{key}.{row.get('rank', 0)}.{i}"
        origin = position_name(place + i) if copied and place + i < step.start else ""
        p = row.get("p") if i == 0 and not copied else None
        where = at._replace(x=at.x + 1 + i)
        names.append(scene.add(StagePiece(name, token, where, Fate.PROMPT, node, origin=origin, share=p)))
        if i == 0 and not copied:
            scene.link(front, names[0], "tree")
    return names


def _label(step: Step, row: NGrammysRow) -> str:
    """Return where a row comes from."""
    if row.get("strategy") == "context":
        back = f"{count(step.start - row.get('place', 0), 'token')} back"
        return back if row.get("count") == 1 else f"{row.get('count', 0)} times, last {back}"
    likely = f", {share(row['p'])}" if "p" in row else ""
    return f"{row.get('strategy', '')} rank {row.get('rank', 0)}{likely}"


def _missed(run: RunState, step: Step) -> str:
    """Say why there is no row."""
    if run.wants_one(step):
        return "only one more token is needed"
    followed = ""
    if params_of(run.header).tail == "full":
        followed = f" followed by {count(panel_of(step).get('w', 0), 'token')}"
    return f"the last token does not occur earlier in the text{followed}"


def _cost(run: RunState, step: Step) -> str:
    """Say what the pass costs: the tokens that the target reads."""
    lengths = [len(row.get("tokens", [])) for row in panel_of(step).get("rows", [])]
    if not lengths:
        return ""
    wide = f"{count(len(lengths), 'row')} × {count(lengths[0], 'guess', 'guesses')}"
    if len(set(lengths)) > 1:
        wide = f"{count(len(lengths), 'row')}, {count(sum(lengths), 'guess', 'guesses')}"
    less = sum(lengths) + 1 - len(step.tokens)
    what = "merged" if params_of(run.header).layout == "trie" else "left out"
    fewer = f" - {less} {what}" if less > 0 else ""
    return f"{wide}{fewer} + the last token = {count(len(step.tokens), 'token')} in one pass"


STAGE = StagePicture(base, frame)
