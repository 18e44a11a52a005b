"""Token Recycling on the stage: rows of the table give the guesses, and the target's answers replace rows.

A row holds the tokens that the target found likely after a token when it last read it. Tokens that it did not choose
then, and those in a row from a rejected guess, are recycled: a remark shows where such a token is accepted later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from decoding.methods.panels import RecycledRow, TokenRecyclingPanel
from decoding.methods.token_recycling import TokenRecyclingParams
from decoding.types import Header, Step

from ...palette import Fate
from ...panels import panel_reader
from ...params import read_params
from ...run_state import RunState
from ...sources import parse
from ...stage.parts import Room, StepScene, position_name, text_zone
from ...stage.scene import Scene, StagePiece, Zone, ZoneCell, stage
from ...view import Figure, Patch, StagePicture
from ...wording import count, quote

TABLE = "table"
_DEEPEST, _ROWS = 4, 6  # guesses in a row, and rows of them as of the table
_ENTRIES = 4  # of a row that are seen
_KEY = 1.2  # columns of a row's token and the gap after it
_COLUMNS = _KEY + _ENTRIES + 1.9  # with words on where a row comes from
_FOOT = 1.6  # rows for words below the table
_PAID = 1  # tokens that paid off that are named

Changed = tuple[int, Sequence[int], Sequence[int], Literal["accepted", "rejected"]]

panel_of = panel_reader(TokenRecyclingPanel)


def _room(header: Header) -> Room:
    shape = read_params(TokenRecyclingParams, header).shape
    return Room(min(max(shape.depths), _DEEPEST), min(max(2, len(shape.parents) - 1), _ROWS))


def rows_read(step: Step) -> list[tuple[RecycledRow, int]]:
    """Return the rows that guesses were read from, each with the first node of its token that has guesses below it."""
    complete = [row for row in panel_of(step).get("rows", []) if {*RecycledRow.__annotations__} <= row.keys()]
    above = {step.tokens[parent]: parent for parent in reversed(step.parents) if 0 <= parent < len(step.tokens)}
    return [(row, above[row["token"]]) for row in complete if row["token"] in above]


def entry_nodes(step: Step, row: RecycledRow) -> dict[int, int]:
    """Return the guesses that were read from a row, by their tokens; of several the accepted one, else the first."""
    nodes = dict[int, int]()
    for node, parent in enumerate(step.parents):
        if node and step.tokens[parent] == row["token"] and (step.tokens[node] not in nodes or node in step.path):
            nodes[step.tokens[node]] = node
    return nodes


def since(row: RecycledRow) -> str:
    """Say when a row was written, and by what kind of node."""
    if row["behind"] == "prompt":
        return "from a prompt"
    if not row["ago"]:
        return "earlier run"
    mark = ", rejected" if row["behind"] == "rejected" else ""
    return f"{count(row['ago'], 'step')} ago{mark}"


def paid_off(run: RunState, step: Step) -> list[str]:
    """Comment on accepted tokens that the target had ranked below another, or named after a rejected guess."""
    rows, comments = {row["token"]: row for row, _ in rows_read(step)}, list[str]()
    for node in step.path[1:]:
        row, rank = rows.get(step.tokens[step.parents[node]]), parse(step.sources[node])[1][:1]
        if row is None or not rank or row["behind"] == "prompt":
            continue
        token, when = quote(run, [step.tokens[node]]), "in an earlier run"
        if row["ago"]:
            when = f"{count(row['ago'], 'step')} ago"
        if rank[0] and row["entries"]:
            comments.append(f"{token} paid off: {when} {quote(run, row['entries'][:1])} was likelier")
        elif row["behind"] == "rejected":
            comments.append(f"{token} paid off: it followed a rejected guess {when}")
    return comments


def base(run: RunState) -> Figure:
    """Return the stage without a step."""
    room = _room(run.header)
    table = Zone(TABLE, "Table: the likeliest tokens after each token", _COLUMNS, _ROWS + _FOOT)
    return stage([[text_zone()]], [[table], [room.zone()._replace(rows=_ROWS + _FOOT)]])


def frame(run: RunState, k: int) -> Patch:
    """Return the scene of step k."""
    step, room = run.steps[k], _room(run.header)
    scene = StepScene.begin(base(run), run, k, room)
    scene.draw_text()
    changed: Mapping[int, Changed] = {entry[0]: entry for entry in panel_of(step).get("changed", [])}
    shown = _chosen(step)
    origins = dict[int, str]()
    for y, (row, above) in enumerate(shown):
        origins |= _draw_row(scene, y, row, above, changed.get(row["token"]))
    names = scene.draw_guesses(lambda node: origins.get(node, ""))
    for node, name in names.items():
        if node and (step.parents[node] == 0 or node in step.path):
            scene.link(origins.get(node, ""), name, "flow", until="verify")
    if len(names) == 1:
        scene.draw_no_guess("the last token has no row yet")
    seen = {row["token"] for row, _ in shown}
    fresh = [entry for token, entry in changed.items() if token not in seen]
    fresh.sort(key=lambda entry: entry[3] == "rejected")
    for y, entry in enumerate(fresh[: _ROWS - len(shown)], start=len(shown)):
        _draw_new(scene, step, names, y, entry)
    _draw_foot(scene, run, step, len(changed))
    return scene.patch()


def _chosen(step: Step) -> list[tuple[RecycledRow, int]]:
    """Return the rows that are seen: the last token's, those that gave accepted guesses, then the first ones."""
    rows = rows_read(step)
    order = sorted(range(len(rows)), key=lambda i: (rows[i][1] not in step.path, i))
    return [rows[i] for i in sorted(order[: _ROWS - 2])]


def _draw_row(scene: StepScene, y: int, row: RecycledRow, above: int, changed: Changed | None) -> dict[int, str]:
    """Draw a row that guesses were read from, and how the step changes it; returns the pieces of its guesses."""
    step = scene.step
    key, below, origins = row["token"], entry_nodes(step, row), dict[int, str]()
    origin = position_name(step.start - 1) if above == 0 else ""
    scene.add(
        StagePiece(f"k{key}", key, ZoneCell(TABLE, 0, y), Fate.PROMPT if above else Fate.ROOT, above, origin=origin)
    )
    now = list(changed[2][:_ENTRIES]) if changed else None
    for rank, token in enumerate(row["entries"][:_ENTRIES]):
        leaves = now is not None and token not in now
        name = scene.add(
            StagePiece(f"m{key}.{token}", token, _entry(rank, y), Fate.EXPLORED, until="commit" if leaves else None)
        )
        if now is not None and token in now and now.index(token) != rank:
            scene.move(name, "commit", _entry(now.index(token), y))
        if token in below:
            origins[below[token]] = name
    for rank, token in enumerate(now or ()):
        if token not in row["entries"][:_ENTRIES]:
            scene.add(
                StagePiece(f"m{key}.{token}", token, _entry(rank, y), Fate.EXPLORED, since="commit", origin=f"k{key}")
            )
    word = ZoneCell(TABLE, _KEY + _ENTRIES + 0.1, y)
    scene.word(since(row), word, since="verify", until="commit")  # before, lines go over that place
    scene.word(_given(changed) if changed else "", word, loud=True, since="commit")
    return origins


def _draw_new(scene: Scene, step: Step, names: Mapping[int, str], y: int, changed: Changed) -> None:
    """Draw a row that no guess was read from, as the step leaves it."""
    key, _, after, _ = changed
    nodes = [node for node, token in enumerate(step.tokens) if token == key]
    node = next((node for node in nodes if node in step.path), nodes[0] if nodes else -1)
    place = ZoneCell(TABLE, 0, y)
    scene.add(StagePiece(f"k{key}", key, place, Fate.PROMPT, since="commit", origin=names.get(node, "")))
    for rank, token in enumerate(after[:_ENTRIES]):
        scene.add(
            StagePiece(f"m{key}.{token}", token, _entry(rank, y), Fate.EXPLORED, since="commit", origin=f"k{key}")
        )
    scene.word(_given(changed), ZoneCell(TABLE, _KEY + _ENTRIES + 0.1, y), loud=True, since="commit")


def _given(changed: Changed) -> str:
    """Say that a row is new, and from what kind of node."""
    return "now, rejected" if changed[3] == "rejected" else "now"


def _entry(rank: int, y: int) -> ZoneCell:
    return ZoneCell(TABLE, _KEY + rank, y)


def _draw_foot(scene: Scene, run: RunState, step: Step, changed: int) -> None:
    """Write which recycled tokens paid off, and how the table grew."""
    for words in paid_off(run, step)[:_PAID]:
        scene.word(words, ZoneCell(TABLE, 0, _ROWS + 0.1), loud=True, since="accept")
    rows = count(panel_of(step).get("known", 0), "row")
    scene.word(f"{count(changed, 'row')} updated; {rows} in all", ZoneCell(TABLE, 0, _ROWS + 0.85), since="commit")


STAGE = StagePicture(base, frame)
