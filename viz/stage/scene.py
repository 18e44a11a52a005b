"""What a stage is made of, and how it is written down for the page's player.

A stage has zones, which do not move: grids of cells, side by side on a wide screen and one below another on a narrow
one. A step is a scene: pieces (tokens in boxes), links between pieces, words, and frames around cells. Each has a
first phase and may have a last one. A piece has a name that is its own from step to step. The player moves a piece
that is known to where it is now; a new one comes out of the piece that is named as its origin, or it fades in.

A scene is a dictionary of columns, in the encodings of `stream/encode.py`:

"pieces"  "id", a number of the piece's name; "text", empty if there is no token; "x", "y"; "when"; "fate", a code
          that is judged from the phase "accept" on; "nodes" of the step that they show, -1 for none; and where any has
          one, "origin", a piece's number in this scene and one, 0 for none
"some"    what few pieces have, each as their numbers and its values: "share" of a bar above the word
          from 0 to 1, "note", which is small after it, "faint", "copied", and "slot": the phases in which its key
          and value are in the cache, as in "when"; "judged", the fate of a token that an earlier step judged;
          "turn", how many others come before it, of new pieces that come one by one; "answer", the target's token for
          the position of a guess, seen in the phase "answers"; "spare", of a row for which there is no room, which
          takes the place of another if it is in focus
"moves"   for each time that a piece changes its place within the step: piece, phase, zone, x, y
"links"   "from" and "to", numbers of pieces; "when", with the place in `LINKS` instead of a zone
"words"   "text"; "x", "y"; "when"; "side" of the place, a place in `SIDES`; "loud"
"frames"  "text" in its upper edge; "x", "y"; "when"; "wide", "high"; "loud"; where any is a gauge, "filled", its
          share from 0 to 1, -1 for none, and "limit", the share at which it has a line, 0 for none

"when" holds in one number what all of them have: 30 times the zone, 6 times the first phase, and the first phase in
which it is gone.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal, NamedTuple, get_args

from ..cells import STEP_PHASES, StepPhase, packed
from ..palette import Fate
from ..stream import encode
from ..view import Figure, Patch

Link = Literal["tree", "match", "flow", "diagonal", "against"]
WordSide = Literal["right", "left", "middle"]
Slot = tuple[
    StepPhase, StepPhase | None
]  # the first phase in which a key is in the cache, and the first in which it no longer is
_SINCE = len(STEP_PHASES) + 1  # in "when"
_ZONE = len(STEP_PHASES) * _SINCE
LINKS: tuple[Link, ...] = get_args(Link)
SIDES: tuple[WordSide, ...] = get_args(WordSide)

COLUMNS = 13  # of a wide stage: on 1280 pixels its words are 20 pixels high
NARROW = 8  # columns of a narrow one: of wider zones the right end is seen
_TITLE = 0.9  # rows for a zone's title


_USUAL: dict[str, Any] = {"share": None, "note": "", "turn": 0, "answer": -1}  # of a piece
_ENCODED: Mapping[str, Callable[[Any], Any]] = {"note": lambda words: {"strings": words}, "answer": encode.tokens}
Spot = tuple[float, float]  # columns from the left and rows from the top


class Zone(NamedTuple):
    """A grid of cells with a title."""

    name: str
    title: str
    columns: float
    rows: float
    fed: bool = False  # whether the target reads the nodes in it


class ZoneCell(NamedTuple):
    """A cell of a zone; halves of cells are places too."""

    zone: str
    x: float
    y: float


def stage(*rows: Sequence[Sequence[Zone]], **more: Any) -> Figure:
    """Return a stage without a step: rows of stacks of zones, spread over its width.

    The zones of the last stack of a row end at its right edge, on a narrow stage too: so guesses stay below the text.
    """
    zones, wide, narrow = list[Zone](), list[Spot](), list[Spot]()
    top = below = 0.0
    for row in rows:
        left, deepest = 0.0, 0.0
        gap = (COLUMNS - sum(map(_columns, row))) / max(1, len(row) - 1)
        assert gap >= 0, "the zones are wider than the stage"
        for stack in row:
            height = 0.0
            for zone in stack:
                zones.append(zone)
                wide.append((COLUMNS - zone.columns if stack is row[-1] else left, top + height))
                height += zone.rows + _TITLE
            left += _columns(stack) + gap
            deepest = max(deepest, height)
        top += deepest
        last_first = row is rows[-1] and all(len(whole) == 1 for whole in rows[:-1])
        above, below = _one_below_another(row, below, last_first=last_first)
        narrow += above
    return {
        "zones": [zone._asdict() for zone in zones],
        "title": _TITLE,
        "wide": {"columns": COLUMNS, "rows": top, "places": wide},
        "narrow": {"columns": NARROW, "rows": below, "places": narrow},
        **more,
    }


def _one_below_another(row: Sequence[Sequence[Zone]], top: float, *, last_first: bool) -> tuple[list[Spot], float]:
    """Return places of a row's zones on a narrow stage, and where the next row begins.

    Where all rows above the last one are single stacks, as the text is, its guesses, which are last, are next to them:
    no line to a guess crosses words.
    """
    places, order = dict[int, list[Spot]](), [*range(len(row))]
    for number in [order[-1], *order[:-1]] if last_first else order:
        for zone in row[number]:
            left = NARROW - zone.columns if number == len(row) - 1 or zone.columns > NARROW else 0.0
            places.setdefault(number, []).append((left, top))
            top += zone.rows + _TITLE
    return [spot for number in range(len(row)) for spot in places[number]], top


def _columns(stack: Sequence[Zone]) -> float:
    return max(zone.columns for zone in stack)


@dataclass(frozen=True, slots=True)
class StagePiece:
    """A token in a box. Its name is its own from step to step."""

    name: str
    token: int
    place: ZoneCell
    fate: Fate
    node: int = -1
    _: KW_ONLY
    since: StepPhase = "propose"
    until: StepPhase | None = None  # the first phase in which it is gone
    origin: str = ""
    share: float | None = None
    note: str = ""
    faint: bool = False
    copied: bool = False  # not written by a model, but taken from where it occurred before
    slot: Slot | None = None
    judged: bool = False  # whether its fate is known in all phases
    turn: float = 0  # new pieces appear one by one, in this order
    answer: int = -1  # the target's token for the position of a guess
    spare: bool = False  # whether it is seen only where it is in focus

    @property
    def when(self) -> int:
        """The phases in which it is seen."""
        return _when(self.since, self.until)

    @property
    def rare(self) -> dict[str, Any]:
        """What few pieces have."""
        rare = {name: value for name, usual in _USUAL.items() if (value := getattr(self, name)) != usual}
        rare |= {name: True for name in ("faint", "copied", "spare") if getattr(self, name)}
        rare |= {"slot": _when(*self.slot)} if self.slot else {}
        return rare | ({"judged": self.fate} if self.judged else {})


class Gauge(NamedTuple):
    """How full a frame is, from 0 to 1, and the level at which it has a line; 0 for none."""

    filled: float
    limit: float = 0


class _Move(NamedTuple):
    piece: int
    phase: int
    zone: int
    x: float
    y: float


class _Link(NamedTuple):
    first: int
    second: int
    when: int


class _Words(NamedTuple):
    text: str
    place: ZoneCell
    when: int
    side: int
    loud: bool


class _Frame(NamedTuple):
    text: str
    place: ZoneCell
    when: int
    wide: float
    high: float
    loud: bool
    gauge: Gauge | None


@dataclass(slots=True)
class Scene:
    """The scene of one step, piece by piece."""

    zones: Sequence[str]
    _pieces: list[StagePiece] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)
    _moves: list[_Move] = field(default_factory=list)
    _landed: dict[int, int] = field(default_factory=dict)  # the copy that a piece leaves behind, by its number
    _links: list[_Link] = field(default_factory=list)
    _words: list[_Words] = field(default_factory=list)
    _frames: list[_Frame] = field(default_factory=list)

    def add(self, piece: StagePiece) -> str:
        """Put a token on the stage; returns its name."""
        name = piece.name
        while name in self._numbers:  # in a record from elsewhere: what has no name of its own is new in every step
            name += "'"
        self._numbers[name] = len(self._pieces)
        self._pieces.append(piece if name == piece.name else replace(piece, name=name))
        return name

    def __contains__(self, name: str) -> bool:
        return name in self._numbers

    def move(self, name: str, phase: StepPhase, place: ZoneCell) -> None:
        """Move a piece to another place in a phase."""
        zone, x, y = place
        self._moves.append(_Move(self._numbers[name], STEP_PHASES.index(phase), self.zones.index(zone), x, y))

    def land(self, name: str, place: ZoneCell) -> None:
        """Move a piece into the text with the commit; a faint copy stays where it was, until the step ends."""
        number = self._numbers[name]
        self.move(name, "commit", place)
        self._landed[number] = len(self._pieces)
        rest = replace(self._pieces[number], name=f"{name}~", origin=name, since="commit", until=None)
        self._pieces.append(replace(rest, faint=True, slot=None, turn=0, answer=-1))

    def link(
        self, first: str, second: str, kind: Link = "tree", since: StepPhase = "propose", until: StepPhase | None = None
    ) -> None:
        """Draw a line from one piece to another, if both are on the stage."""
        if first in self._numbers and second in self._numbers:
            ends = self._numbers[first], self._numbers[second]
            self._links.append(_Link(*ends, _ZONE * LINKS.index(kind) + _when(since, until)))

    def word(
        self,
        text: str,
        place: ZoneCell,
        side: WordSide = "right",
        *,
        loud: bool = False,
        since: StepPhase = "propose",
        until: StepPhase | None = None,
    ) -> None:
        """Write words that begin at a place, end there, or have it in their middle."""
        if text:
            self._words.append(_Words(text, place, _when(since, until), SIDES.index(side), loud))

    def frame(
        self,
        place: ZoneCell,
        wide: float,
        high: float,
        text: str = "",
        *,
        loud: bool = False,
        since: StepPhase = "propose",
        until: StepPhase | None = None,
        gauge: Gauge | None = None,
    ) -> None:
        """Draw a frame around some cells, the first of them at `place`."""
        self._frames.append(_Frame(text, place, _when(since, until), wide, high, loud, gauge))

    def patch(self) -> Patch:
        """Write the scene down."""
        scene: Patch = {"pieces": self._columns()}
        if some := self._some():
            scene["some"] = some
        if self._moves:
            scene["moves"] = [packed(column) for column in zip(*self._moves, strict=True)]
        if links := [*self._links_and_copies()]:
            scene["links"] = dict(zip(("from", "to", "when"), map(packed, zip(*links, strict=True)), strict=True))
        if self._words:
            text, places, when, side, loud = zip(*self._words, strict=True)
            scene["words"] = {"text": {"strings": [*text]}, **self._at(places, when), "side": packed(side)}
            scene["words"] |= {"loud": packed(loud)}
        if self._frames:
            text, places, when, wide, high, loud, gauges = zip(*self._frames, strict=True)
            scene["frames"] = {"text": {"strings": [*text]}, **self._at(places, when), "wide": packed(wide)}
            scene["frames"] |= {"high": packed(high), "loud": packed(loud)}
            if any(gauges):
                filled, limit = zip(*(gauge or Gauge(-1) for gauge in gauges), strict=True)
                scene["frames"] |= {"filled": packed(filled), "limit": packed(limit)}
        return scene

    def _links_and_copies(self) -> Iterator[tuple[int, int, int]]:
        """Yield the links; from the commit on, those of a piece that has moved into the text are its copy's."""
        commit, end = STEP_PHASES.index("commit"), len(STEP_PHASES)
        for first, second, when in self._links:
            ends = self._landed.get(first, first), self._landed.get(second, second)
            kind, phases = divmod(when, _ZONE)
            since, until = divmod(phases, _SINCE)
            if ends == (first, second) or until < end:
                yield first, second, when
                continue
            if since < commit:
                yield first, second, _ZONE * kind + _SINCE * since + commit
            yield *ends, _ZONE * kind + _SINCE * commit + end

    def _columns(self) -> dict[str, Any]:
        pieces = self._pieces
        columns: dict[str, Any] = {
            "id": encode.pack([_number(piece.name) for piece in pieces], "i4"),
            "text": encode.tokens([piece.token for piece in pieces]),
            **self._at([piece.place for piece in pieces], [piece.when for piece in pieces]),
            "fate": encode.fates([piece.fate for piece in pieces]),
            "nodes": packed([piece.node for piece in pieces]),
        }
        origins = [self._numbers.get(piece.origin, -1) + 1 for piece in pieces]
        return columns | ({"origin": packed(origins)} if any(origins) else {})

    def _some(self) -> dict[str, Any]:
        some = dict[str, tuple[list[int], list[Any]]]()
        for number, piece in enumerate(self._pieces):
            for name, value in piece.rare.items():
                numbers, values = some.setdefault(name, ([], []))
                numbers.append(number)
                values.append(value)
        return {name: [packed(numbers), _ENCODED.get(name, packed)(values)] for name, (numbers, values) in some.items()}

    def _at(self, places: Sequence[ZoneCell], when: Sequence[int]) -> dict[str, Any]:
        zones = [_ZONE * self.zones.index(place.zone) for place in places]
        return {
            "x": packed([place.x for place in places]),
            "y": packed([place.y for place in places]),
            "when": packed([zone + phases for zone, phases in zip(zones, when, strict=True)]),
        }


def seen_at(when: int, phase: StepPhase) -> bool:
    """Return True if what has this "when" is seen in a phase."""
    first, gone = divmod(when % _ZONE, _SINCE)
    return first <= STEP_PHASES.index(phase) < gone


def zone_of(when: int) -> int:
    """Return the zone, by its number, or the kind of a link."""
    return when // _ZONE


def _when(since: StepPhase, until: StepPhase | None) -> int:
    return _SINCE * STEP_PHASES.index(since) + (len(STEP_PHASES) if until is None else STEP_PHASES.index(until))


def _number(name: str) -> int:
    """Return the number of a name: the same in every step, whatever else is on the stage."""
    return zlib.crc32(name.encode()) - 2**31
