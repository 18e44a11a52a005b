"""Prompt lookup on the stage: the end of the text below the text, where it occurred before; what followed it is copied.

The earlier passage is in the columns of the text's end: the same words are below one another, and what followed
them lies above the guesses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from decoding.methods.panels import PromptLookupPanel
from decoding.methods.prompt_lookup import PromptLookupParams
from decoding.types import Header, Role, Step

from ...palette import Fate
from ...panels import read_panel
from ...params import params_reader
from ...run_state import RunState
from ...sources import parse
from ...stage.parts import TEXT, Room, StepScene, position_name, text_zone
from ...stage.scene import COLUMNS, Scene, StagePiece, Zone, ZoneCell, stage
from ...view import Figure, Patch, StagePicture
from ...wording import count, quote

PASSAGE, MATCH = "passage", "match"
_DEEPEST = 6  # guesses that are seen
_LINES = 3  # of words
_FOOT = 1  # row below the guesses, for the number of those that are not seen
_ENDINGS = 3  # that are named

params_of = params_reader(PromptLookupParams)


def _room(header: Header) -> Room:
    return Room(min(params_of(header).K, _DEEPEST), 1)


def base(run: RunState) -> Figure:
    """Return the stage without a step."""
    room = _room(run.header)
    passage = Zone(PASSAGE, "The same words earlier, and what followed", COLUMNS, 1)
    match = Zone(MATCH, "What was looked for", room.root, _LINES)
    return stage([[text_zone()]], [[passage]], [[match], [room.zone("Guesses: copies")._replace(rows=1 + _FOOT)]])


def frame(run: RunState, k: int) -> Patch:
    """Return the scene of step k."""
    step, room = run.steps[k], _room(run.header)
    scene = StepScene.begin(base(run), run, k, room)
    scene.draw_text(answers="")
    copy = _copy(run, step)
    if copy is not None:
        _draw_passage(scene, step, copy, room)
    for y, line in enumerate(_missed(run, step) if copy is None else _where(step, copy)):
        scene.word(line, ZoneCell(MATCH, 0, y), loud=y == 0)
    origins = {} if copy is None else dict(enumerate(map(copy.name, copy.places), start=1))
    names = scene.draw_guesses(lambda node: origins.get(node, ""))
    for node, name in names.items():
        scene.link(origins.get(node, ""), name, "flow", until="verify")
    return scene.patch()


class _Copy(NamedTuple):
    """A passage that the guesses are copied from."""

    kind: str  # "prompt", "output" or "reference"
    source: Sequence[int]  # the tokens of the text, or of the reference
    end: int  # how many of them there were to copy
    n: int  # tokens that are the same there as at the text's end
    start: int  # the position after these
    places: Sequence[int]  # of the copied tokens

    def name(self, place: int) -> str:
        """Name the piece of a position."""
        return f"{'d' if self.kind == 'reference' else 's'}{place}"


def _copy(run: RunState, step: Step) -> _Copy | None:
    """Return the passage of a step; None if the text's ending was not found."""
    panel = read_panel(PromptLookupPanel, step.panel)
    kind, numbers = parse(panel.get("copied_from", ""))
    if not panel.get("n") or kind not in ("prompt", "output", "reference") or len(numbers) != 1:
        return None
    reference = run.header.reference
    source, end = (reference, len(reference)) if kind == "reference" else (run.ids, step.start)
    guesses = zip(step.tokens, step.roles, step.sources, strict=True)
    positions = (parse(name)[1][:1] for _, role, name in guesses if role is Role.VERIFY)
    places = [place[0] if place else end for place in positions]
    return _Copy(kind, source, end, min(panel["n"], step.start), numbers[0], places)


def _draw_passage(scene: Scene, step: Step, copy: _Copy, room: Room) -> None:
    """Draw the passage, tied to the text's end."""
    left = copy.start - room.root - 1  # the place in the first column
    nodes = {place: node for node, place in reversed([*enumerate(copy.places, start=1)])}
    for place in range(max(0, left), min(left + room.root + room.depth + 1, copy.end)):
        origin = "" if copy.kind == "reference" else position_name(place)
        at, node = ZoneCell(PASSAGE, place - left, 0), nodes.get(place, -1)
        scene.add(StagePiece(copy.name(place), copy.source[place], at, Fate.PROMPT, node, origin=origin))
    n = min(copy.n, room.root + 1)
    for zone in (TEXT, PASSAGE):
        scene.frame(ZoneCell(zone, room.root + 1 - n, 0), n, 1, loud=True)
    for back in range(1, n + 1):
        scene.link(position_name(step.start - back), copy.name(copy.start - back), "match")
    copied = {place for place in copy.places if 0 <= place - copy.start < room.depth}
    if copied:
        scene.frame(ZoneCell(PASSAGE, room.root + 1, 0), len(copied), 1)


def _where(step: Step, copy: _Copy) -> list[str]:
    """Say where the passage is, and what is copied of it."""
    ending = "the last token occurs" if copy.n == 1 else f"the last {copy.n} tokens occur"
    if copy.kind == "reference":
        where = f"in the reference, up to its token {copy.start}"
    else:
        text = "the prompt" if copy.kind == "prompt" else "the new text"
        where = f"{count(step.start - copy.start, 'token')} back, in {text}"
    followed = f"what followed is copied: {count(len(copy.places), 'token')}"
    if not copy.places:
        followed = "an end of text followed: nothing is copied"
    elif len(set(copy.places)) < len(copy.places):
        followed += ", some of them again"
    return [f"{ending} earlier:", where, followed]


def _missed(run: RunState, step: Step) -> list[str]:
    """Return why nothing is copied."""
    if run.wants_one(step):
        return ["nothing: only one more token is needed"]
    params = params_of(run.header)
    lengths = range(min(params.max_ngram, step.start), params.min_ngram - 1, -1)
    endings = [quote(run, run.ids[step.start - n : step.start]) for n in lengths]
    if len(endings) > _ENDINGS:
        endings = [endings[0], "shorter endings", endings[-1]]
    where = ", nor in the reference" if run.header.reference else ""
    followed = f" followed by {count(params.K, 'token')}" if params.tail == "full" else ""
    return [f"not found earlier{followed}{where}:", " and ".join(endings[:2]), *endings[2:]]


STAGE = StagePicture(base, frame)
