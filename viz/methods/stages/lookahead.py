"""Lookahead on the stage: the window gives its diagonals to the pool, the pool gives guesses, the target reads both.

The lines of the window lie one below another, the oldest on top and the target's answers, which become the newest,
at the bottom. A cell is as many columns to the right as its position is after the last token of the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from decoding.methods.lookahead import LookaheadParams
from decoding.methods.panels import LookaheadPanel
from decoding.types import Step

from ...boards.nodes import NodeIndex, root
from ...palette import Fate
from ...panels import panel_reader
from ...params import params_reader
from ...run_state import RunState
from ...stage.parts import Room, StepScene, position_name, text_zone
from ...stage.scene import COLUMNS, Scene, StagePiece, Zone, ZoneCell, stage
from ...view import Figure, Patch, StagePicture
from ...wording import count, quote

WINDOW, POOL = "window", "pool"
_DEEPEST, _ROWS = 4, 3  # guesses in a row, and rows of guesses as of n-grams
_LINES = 7  # of the window
_LEARNED = 2  # n-grams that are learned, of which there is always room for so many
_FOOT = 0.7  # rows for words below a zone's cells

params_of = params_reader(LookaheadParams)
panel_of = panel_reader(LookaheadPanel)


def _room(params: LookaheadParams) -> Room:
    return Room(min(params.N - 1 - params.drop_bonus, _DEEPEST), _ROWS)


def _columns(params: LookaheadParams, room: Room) -> int:
    """Return columns of the window, as far as there is room."""
    return min(params.W + params.N - 1, COLUMNS - room.depth - 2)


def base(run: RunState) -> Figure:
    """Return the stage without a step; where the window is wide, the pool is below the guesses."""
    params = params_of(run.header)
    room = _room(params)
    columns, lines = _columns(params, room), min(params.N, _LINES)
    window = Zone(WINDOW, "Window: imagined ahead", columns, lines + _FOOT, fed=True)
    pool = Zone(POOL, "Pool of n-grams", room.depth + 1, room.rows + _LEARNED + 2 * _FOOT)
    guesses = room.zone("Guesses, read too")
    beside = columns + pool.columns + guesses.columns < COLUMNS
    if beside:
        return stage([[text_zone()]], [[window], [pool], [guesses]], draws=[Fate.EARLY])
    return stage([[text_zone()]], [[window], [guesses._replace(rows=room.rows + _FOOT), pool]], draws=[Fate.EARLY])


def frame(run: RunState, k: int) -> Patch:
    """Return the scene of step k."""
    params, step = params_of(run.header), run.steps[k]
    room = _room(params)
    scene = StepScene.begin(base(run), run, k, room)
    scene.draw_text()
    columns = _draw_window(scene, run, k, room)
    origins = _draw_held(scene, run, k, room)
    names = scene.draw_guesses(lambda node: origins.get(node, ""), shown=[*origins])
    for node, origin in origins.items():
        if node in names and step.parents[node] == 0:
            scene.link(origin, names[node], "flow", until="verify")
    _draw_learned(scene, columns, used=min(room.rows, len(panel_of(step).get("guesses", []))))
    return scene.patch()


# The window


def _draw_window(scene: Scene, run: RunState, k: int, room: Room) -> list[list[str]]:
    """Draw lines and answers; returns the pieces of every column, from the text to the target's answer."""
    params, step, panel = params_of(run.header), run.steps[k], panel_of(run.steps[k])
    lines, new = panel.get("rows", [])[: params.N - 1], panel.get("new", [])
    most, deepest = _columns(params, room), min(params.N, _LINES) - 1
    top = params.N - 1 - len(lines)  # a window that is not full yet is at its lower edge
    columns: list[list[str]] = [[] for _ in range(max([len(new), *map(len, lines)], default=0) + 1)]
    beside, node, early = 0, 0, list[StagePiece]()
    identities = _identities(run, k, [len(line) for line in lines])
    root_place = ZoneCell(WINDOW, 0, max(0, top - (params.N - 1 - deepest)))
    columns[0].append(
        scene.add(StagePiece(f"r{k}", root(step), root_place, Fate.ROOT, 0, origin=position_name(step.start - 1)))
    )
    for r, line in enumerate(lines):
        for i, token in enumerate(line, start=r == 0):
            node += 1
            x, y = r + i, top + r - (params.N - 1 - deepest)
            if x >= most or y < 0:
                beside += 1
                continue
            name, place = f"w{identities[node - 1]}", ZoneCell(WINDOW, x, y)
            cell = StagePiece(name, token, place, Fate.EXPLORED, node, slot=("verify", "commit"))
            columns[i].append(scene.add(cell))
            if token in step.emitted[x - 1 : x]:  # written now, but not from here
                early.append(replace(cell, name=f"{name}!", fate=Fate.EARLY, since="accept", origin=name))
    for i, token in enumerate(new):
        x = len(lines) + i
        if x < most:
            origin = columns[i][-1] if i < len(columns) and columns[i] else ""
            name = f"w{_identity(params, k + 1, k, i)}"
            place = ZoneCell(WINDOW, x, deepest)
            columns[i].append(scene.add(StagePiece(name, token, place, Fate.EXPLORED, since="answers", origin=origin)))
    for cell in early:
        scene.add(cell)
    if early:
        scene.word(f"right, too early: {len(early)}", ZoneCell(WINDOW, 0, deepest + 0.85), since="accept")
    if beside:
        scene.word(f"and {count(beside, 'more cell')}", ZoneCell(WINDOW, most - 1, deepest + 0.85), "left")
    if new:
        scene.word("new line", ZoneCell(WINDOW, max(0, len(lines) - 0.1), deepest), "left", since="answers")
    return columns


def _identities(run: RunState, k: int, sizes: Sequence[int]) -> list[int]:
    """Return a number for the token of every cell, the same for as long as the token is in the window."""
    params, identities = params_of(run.header), list[int]()
    hits = params.shift == "hits"
    for r, size in enumerate(sizes):
        born = max(-1, k - len(sizes) + r)  # the step whose answers the line was
        moved = 0  # columns that the line has moved to the left since then
        for step in run.steps[max(0, born) : k]:
            moved += 1 if step.index < params.N - 2 else hits * (len(step.emitted) - 1)
        identities += [_identity(params, k, born, i + (r == 0) + moved) for i in range(size)]
    return identities


def _identity(params: LookaheadParams, k: int, born: int, column: int) -> int:
    """Return the number of a token by the step whose answer it was, and by its column then."""
    span = params.W + params.N + params.N * params.N * (params.shift == "hits")
    return (born + 1) * span + min(span - 1, column)


# The pool


def _name(key: int, ngram: Sequence[int], place: int) -> str:
    """Name the piece of a pooled n-gram by its tokens, since the pool holds each n-gram once."""
    return f"p{key}.{'.'.join(map(str, ngram))}.{place}"


def _draw_held(scene: Scene, run: RunState, k: int, room: Room) -> dict[int, str]:
    """Draw the n-grams after the last token that are guessed; returns the pieces that guesses come out of, by node."""
    step, length = run.steps[k], room.depth
    nodes, guesses = NodeIndex(step), panel_of(step).get("guesses", [])
    chains = [nodes.chain(guess, 0, entry) for entry, guess in enumerate(guesses)]
    newest = [*range(len(guesses))][::-1]
    best = max(newest, key=lambda entry: nodes.accepted(chains[entry]), default=-1)
    shown = sorted(newest, key=lambda entry: (entry != best or not nodes.accepted(chains[entry]), -entry))[: room.rows]
    origins: dict[int, str] = {}
    for row, entry in enumerate(sorted(shown, reverse=True)):
        ngram = guesses[entry][:length]
        place = ZoneCell(POOL, 0, row)
        scene.add(StagePiece(_name(root(step), ngram, 0), root(step), place, Fate.ROOT, 0))
        for i, (token, node) in enumerate(zip(ngram, chains[entry], strict=False), start=1):
            name = _name(root(step), ngram, i)
            name = scene.add(StagePiece(name, token, place._replace(x=i), Fate.EXPLORED, node))
            if node > 0:
                origins.setdefault(node, name)
    scene.word(_asked(run, step, len(guesses) - len(shown)), ZoneCell(POOL, 0, len(shown) - 0.1))
    return origins


def _asked(run: RunState, step: Step, hidden: int) -> str:
    """Say how many n-grams the pool holds after the last token."""
    if held := len(panel_of(step).get("guesses", [])):
        shown = f"{held - hidden} of " if hidden else ""
        return f"{shown}{count(held, 'n-gram')} after {quote(run, [root(step)])}"
    if panel_of(step).get("phase") == "steady":
        return f"no n-gram after {quote(run, [root(step)])}"
    return "not used until the window is full"


def _draw_learned(scene: StepScene, columns: Sequence[Sequence[str]], *, used: int) -> None:
    """Draw the n-grams that the pool takes from the window's columns, below those in use; new ones first."""
    run, step, room = scene.run, scene.step, scene.room
    params, panel = params_of(run.header), panel_of(step)
    inserted = panel.get("pool", {}).get("inserted", [])
    harvested = _harvested(panel, root(step), params.N)
    taken = [
        (column, key, ngram, became) for key, ngram, became in inserted for column in harvested.get((key, *ngram), ())
    ]
    whole = [each for each in taken if len(columns[each[0]]) == params.N]
    whole = [each for each in whole if each[3] != "refreshed"] or whole
    first, most = used + 2 * _FOOT, room.rows + _LEARNED - used
    for row, (column, key, ngram, _) in enumerate([*sorted(whole[:most]), *whole[most:]]):
        pieces, shown = columns[column], ngram[: room.depth]
        for i, token in enumerate([key, *shown]):
            fate = Fate.EXPLORED if i else Fate.PROMPT
            place, name = ZoneCell(POOL, i, first + row), _name(key, shown, i)
            scene.add(StagePiece(name, token, place, fate, since="commit", origin=pieces[i], spare=row >= most))
        for one, other in zip(pieces, pieces[1:], strict=False) if row < most else ():
            scene.link(one, other, "diagonal", since="accept")
    if inserted:
        new = sum(became != "refreshed" for _, _, became in inserted)
        seen = min(len(whole), most)
        shown_of = f", {seen} shown" if len(inserted) > seen else ""
        words = f"learned {count(len(inserted), 'n-gram')}, {new} new{shown_of}"
        scene.word(words, ZoneCell(POOL, 0, first - _FOOT - 0.1), since="commit")


def _harvested(panel: LookaheadPanel, first: int, N: int) -> dict[tuple[int, ...], list[int]]:
    """Return the columns of every n-gram in the window, from its key to the target's answer."""
    lines, new = panel.get("rows", []), panel.get("new", [])
    if len(lines) != N - 1:
        return {}
    chain, harvested = [first, *lines[0]], dict[tuple[int, ...], list[int]]()
    for i, answer in enumerate(new):
        column = [line[i] for line in lines[1:] if i < len(line)]
        if i < len(chain) and len(column) == N - 2:
            harvested.setdefault((chain[i], *column, answer), []).append(i)
    return harvested


STAGE = StagePicture(base, frame)
