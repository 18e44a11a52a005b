"""Ouroboros on the stage: pool, draft, phrases after it, and what the target's answers put into the pool.

The draft is below the text; the phrases that lengthen it are below the draft, and so does what of a long draft
goes beyond its line. Below each phrase are the words that the target wants instead, and those go back into the pool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from functools import partial
from typing import Any, NamedTuple

from decoding.methods.ouroboros import OuroborosParams
from decoding.methods.panels import OuroborosPanel
from decoding.types import Header

from ...boards.nodes import NodeIndex
from ...cells import StepPhase
from ...palette import Fate
from ...panels import read_panel
from ...params import read_params
from ...run_state import RunState
from ...sources import parse
from ...stage.parts import GUESSES, Room, StepScene, answer_name, text_zone
from ...stage.scene import COLUMNS, StagePiece, Zone, ZoneCell, stage
from ...view import Figure, Patch, StagePicture
from ...wording import count, quote

POOL, BEHIND = "pool", "behind"
_WIDEST = 5  # tokens of a phrase in the pool, with its key
_NEW = 2  # inspired phrases in the pool
_PITCH = 1.75  # rows from one phrase after the draft to the next: the target's words are between them
_ANSWER = 0.85  # rows from a phrase to the target's words
_HIGH = 5.3  # rows after the draft at most
_FOOT = 1.2  # rows for words below a zone's cells
_LOOKED = 64  # drafted tokens in which inspired phrases are looked for
_PASSES = 8  # of the drafter that are counted one by one

Inspired = Callable[[RunState, int], Set[int]]


class _Plan(NamedTuple):
    """How much a stage shows."""

    room: Room
    beyond: bool  # whether a draft can be longer than its line
    wide: int  # tokens of a phrase in the pool, with its key
    length: int  # tokens of a phrase after the draft
    first: int  # rows of the draft above the phrases after it, of a draft that is as long as can be
    phrases: int

    @property
    def rows(self) -> float:
        """Rows of cells after the draft."""
        return self.first + self.phrases * _PITCH

    @classmethod
    def of(cls, header: Header) -> _Plan:
        """Return the plan of a run."""
        params = read_params(OuroborosParams, header)
        wide = min(params.N, _WIDEST)
        depth = min(params.gamma + params.N - 1, COLUMNS - wide - 2)
        length = min(params.N - 1, depth)
        _, first = _start(params.gamma, length, depth)
        phrases = min(max(1, params.K), int((_HIGH - first) / _PITCH))
        return cls(Room(depth, 1), params.gamma > depth, wide, length, first, phrases)


def _start(drafted: int, length: int, depth: int) -> tuple[int, int]:
    """Return column and row of the first phrase: after the draft if there is room, else in the next row."""
    beyond = max(0, min(drafted, 2 * depth) - depth)
    column, row = (beyond, 0) if beyond else (drafted, 0)
    if column + length <= depth:
        return column, row
    return depth - length, row + (beyond > 0)


def base(run: RunState) -> Figure:
    """Return the stage without a step."""
    plan = _Plan.of(run.header)
    pool = Zone(POOL, "Pool of phrases", plan.wide, plan.phrases + _NEW + _FOOT)
    title = "The rest of the draft, lengthened by phrases" if plan.beyond else "Lengthened by phrases"
    behind = Zone(BEHIND, title, plan.room.depth + 1, plan.rows + _FOOT, fed=True)
    return stage([[text_zone()]], [[pool], [plan.room.zone("Draft by the small model"), behind]])


def frame(inspired: Inspired, run: RunState, k: int) -> Patch:
    """Return the scene of step k."""
    scene = StepScene.begin(base(run), run, k, _Plan.of(run.header).room)
    scene.draw_text()
    drawing = _Drawing(scene, inspired(run, k))
    drawing.draft()
    drawing.lengthen()
    scene.draw_hidden()
    scene.draw_answers(drawing.chain[scene.step.accepted :])
    drawing.refine()
    drawing.inspire()
    drawing.say()
    return scene.patch()


def picture(inspired: Inspired) -> StagePicture:
    """Return the stage; `inspired` are the nodes of a step that an earlier answer of the target helped to make."""
    return StagePicture(base, partial(frame, inspired))


def _name(key: int, phrase: Sequence[int], place: int) -> str:
    """Name the piece of a pooled phrase by its tokens, since the pool holds each phrase once."""
    return f"p{key}.{'.'.join(map(str, phrase))}.{place}"


class _Drawing:
    """A step's scene while it is drawn."""

    def __init__(self, scene: StepScene, helped: Set[int]) -> None:
        self._scene, self._run, self._step, self._helped = scene, scene.run, scene.step, helped
        self._plan, self._panel = _Plan.of(self._run.header), read_panel(OuroborosPanel, self._step.panel)
        self.names = scene.names
        self.chain = [node for node, source in enumerate(self._step.sources) if parse(source)[0] == "draft"]
        self._last = self.chain[-1] if self.chain else 0
        self._key = self._step.tokens[self._last]
        self._phrases, refined = self._panel.get("suffixes", []), self._panel.get("refined", [])
        self._refined = refined if len(refined) == len(self._phrases) else self._phrases
        nodes = NodeIndex(self._step)
        self._branches = [nodes.chain(phrase, self._last, entry) for entry, phrase in enumerate(self._phrases)]
        right = [nodes.accepted(branch) for branch in self._branches]
        shown = sorted(range(len(right)), key=lambda entry: (-right[entry], entry))[: self._plan.phrases]
        self._shown = sorted(shown)  # of the phrases, the newest first

    def draft(self) -> None:
        """Draw the drafter's tokens in a line, and in the next one what does not fit."""
        room, copied = self._plan.room, self._copied()
        for i, node in enumerate(self.chain[: 2 * room.depth]):
            place = ZoneCell(GUESSES, i, 0) if i < room.depth else ZoneCell(BEHIND, i - room.depth, 0)
            look: dict[str, Any] = {"origin": self.names.get(self._step.parents[node], ""), "copied": node in copied}
            self._scene.draw_guess(node, place, linked=i != room.depth, **look)

    def lengthen(self) -> None:
        """Draw the phrases in the pool, and after the draft as far as they were read."""
        for row, entry in enumerate(self._shown):
            phrase, branch = self._phrases[entry], self._branches[entry]
            helped = any(node in self._helped for node in branch)
            stays, drawn = self._refined[entry] == phrase, set[int]()
            pieces = self._held(phrase, row, Fate.INSPIRED if helped else Fate.EXPLORED, stays=stays)
            for i, node in enumerate(branch[: self._plan.length]):
                if node in self.names or node < 1:
                    continue
                place, origin = self._behind(row, i), pieces[i + 1] if i + 1 < len(pieces) else ""
                first = branch[0] == node or branch[i - 1] not in drawn
                self._scene.draw_guess(node, place, origin=origin, copied=True)
                drawn.add(node)
                if first:  # one line for all of a phrase
                    self._scene.link(origin, self.names[node], "flow", until="verify")

    def refine(self) -> None:
        """Draw the target's words below a phrase where they differ from it; with them it goes back into the pool."""
        pairs = [(entry, self._phrases[entry], self._refined[entry]) for entry in self._shown]
        unchanged = [before for _, before, after in pairs if before == after]
        for row, (entry, before, after) in enumerate(pairs):
            if before == after:
                continue
            origins = [_name(self._key, before, i) for i in range(len(before) + 1)]
            for i, (old, new) in enumerate(zip(before, after, strict=False)):
                if old != new and i < self._plan.length:
                    name, place = f"c{self._step.index}.{entry}.{i}", self._behind(row, i, _ANSWER)
                    self._scene.add(StagePiece(name, new, place, Fate.INSPIRED, since="accept"))
                    origins[i + 1] = name
            if after not in unchanged:  # the pool holds a phrase once
                unchanged.append(after)
                self._learned(self._key, after, row, origins)

    def inspire(self) -> None:
        """Draw the words of the rejected part of the draft on which the target agrees, and its next one."""
        for row, (key, phrase, first) in enumerate(self._inspired()[:_NEW], start=self._plan.phrases):
            origins = list[str]()
            for i, token in enumerate([key, *phrase], start=first):
                node = self.chain[i] if i < len(self.chain) else -1
                if node in self.names and self._step.tokens[node] == token:
                    origins.append(self.names[node])
                else:
                    origins.append(answer_name(self._step, self.chain[i - 1]) if 0 < i <= len(self.chain) else "")
            self._learned(key, phrase, row, origins)

    def say(self) -> None:
        """Write how the draft was made, what the pool held, and what it learned."""
        if not self.chain:
            self._scene.draw_no_guess()
            return
        plan, rows = self._plan, self._plan.rows - 0.2
        self._scene.word(self._passes(), ZoneCell(BEHIND, 0, rows), until="accept")
        drafted = min(self._step.accepted, len(self.chain))
        words = f"accepted: {drafted} of {count(len(self.chain), 'drafted token')}"
        if behind := self._step.accepted - drafted:
            words = f"accepted: {drafted} drafted, {behind} from a phrase"
        self._scene.word(words, ZoneCell(BEHIND, 0, rows), loud=True, since="accept")
        foot, held = ZoneCell(POOL, 0, plan.phrases + _NEW - 0.1), quote(self._run, [self._key])
        hidden = len(self._phrases) - len(self._shown)
        matches = f"{count(len(self._phrases), 'phrase')} after {held}" if self._phrases else f"no phrase after {held}"
        self._scene.word(matches + (f", {hidden} not shown" if hidden else ""), foot, until="commit")
        for y, words in enumerate(self._learning()):
            self._scene.word(words, foot._replace(y=foot.y + 0.7 * y), loud=y == 0, since="commit")

    def _passes(self) -> str:
        """Say how many tokens each pass of the drafter wrote."""
        passes = self._panel.get("passes", [])
        if sum(passes) != len(self.chain):
            return f"the drafter wrote {count(len(self.chain), 'token')}"
        wrote = " + ".join(map(str, passes[:_PASSES])) + (" + ..." if len(passes) > _PASSES else "")
        few = len(passes) == len(self.chain)
        words = f"{count(len(passes), 'drafter pass', 'drafter passes')} wrote {wrote} tokens"
        return words if few else f"{words}, those in italics from phrases"

    def _learning(self) -> list[str]:
        """Return what the pool learned from the target, and what the words for that mean."""
        refined = sum(before != after for before, after in zip(self._phrases, self._refined, strict=True))
        inspired = len(self._inspired())
        if not refined and not inspired:
            return ["no new phrase from the target"]
        words = [f"refined {count(refined, 'phrase')}"] if refined else []
        words += [f"inspired {count(inspired, 'phrase')}"] if inspired else []
        meanings = ["refined: wrong words replaced"] * bool(refined) + ["inspired: new ones"] * bool(inspired)
        hidden = f", {inspired - _NEW} not shown" if inspired > _NEW else ""
        return [" and ".join(words) + hidden, "; ".join(meanings) + ", by the target"]

    def _copied(self) -> Set[int]:
        """Return the drafted nodes that a pass of the drafter took out of a phrase: all but the last of each pass."""
        copied, done = set[int](), 0
        for wrote in self._panel.get("passes", []):
            copied.update(self.chain[done : max(done, done + wrote - 1)])
            done += wrote
        return copied

    def _behind(self, row: int, i: int, below: float = 0) -> ZoneCell:
        """Return the place of a token of a phrase after the draft."""
        column, first = _start(len(self.chain), self._plan.length, self._plan.room.depth)
        return ZoneCell(BEHIND, column + i, first + row * _PITCH + below)

    def _held(self, phrase: Sequence[int], row: int, fate: Fate, *, stays: bool) -> list[str]:
        """Draw a phrase that the pool held when the step began; returns its pieces, the key first."""
        pieces = list[str]()
        for i, token in enumerate([self._key, *phrase][: self._plan.wide]):
            name, place = _name(self._key, phrase, i), ZoneCell(POOL, i, row)
            until: StepPhase | None = None if stays else "commit"
            pieces.append(self._scene.add(StagePiece(name, token, place, fate if i else Fate.PROMPT, until=until)))
        return pieces

    def _learned(self, key: int, phrase: Sequence[int], row: int, origins: Sequence[str]) -> None:
        """Draw a phrase that the target's answers made."""
        for i, token in enumerate([key, *phrase][: self._plan.wide]):
            name, place, fate = _name(key, phrase, i), ZoneCell(POOL, i, row), Fate.INSPIRED if i else Fate.PROMPT
            self._scene.add(StagePiece(name, token, place, fate, since="commit", origin=origins[i]))

    def _inspired(self) -> list[tuple[int, list[int], int]]:
        """Return new phrases out of the rejected part of the draft, and where in it each begins."""
        phrases, start = list[tuple[int, list[int], int]](), 0
        tokens = [self._step.tokens[node] for node in self.chain[:_LOOKED]]
        for key, phrase, became in self._panel.get("inspired", []):
            places = (i for i in range(start, len(tokens)) if tokens[i] == key and self._answered(i, phrase))
            first = next(places, -1)
            start = first + 1 if first >= 0 else start
            if became != "refreshed":
                phrases.append((key, phrase, first))
        return phrases

    def _answered(self, first: int, phrase: Sequence[int]) -> bool:
        """Return True if a phrase is what the target answers after drafted tokens from a position on."""
        nodes, choices = self.chain[first : first + len(phrase)], self._step.choices
        return (
            bool(choices)
            and len(nodes) == len(phrase)
            and all(choices[node] == token for node, token in zip(nodes, phrase, strict=True))
        )
