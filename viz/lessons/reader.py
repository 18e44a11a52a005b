"""Reads a lesson file: Markdown with a few directives. CONTRIBUTING.md explains the format.

Every mistake is one sentence with the file and the line. Facts are computed elsewhere: see `run_facts.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from .lesson import (
    DEPTHS,
    AnswerChoice,
    ChartLink,
    Lesson,
    LessonError,
    LessonQuestion,
    LessonScreen,
    Prose,
    Right,
    Show,
    Slider,
)

PHASES_BY_LETTER = {"p": "propose", "v": "verify", "w": "answers", "a": "accept", "c": "commit"}
PIECES = ("guess", "cell", "row", "token")
FRAMES = ("text", "guesses", "window", "pool", "heads", "masks", "target")
_FRONT = ("id", "number", "title", "topic", "needs", "minutes", "object", "runs")
_MOST_BYTES, _MOST_LINES = 64_000, 600
_HEADING = re.compile(r"## (.+?) \{#([a-z][a-z0-9-]{0,31})\}")
_DIRECTIVE = re.compile(r"@([a-z]+:?)(?: +(.*))?")
_STEP = re.compile(r"(\d{1,4})([pvwac])", re.ASCII)
_NODES = re.compile(r"n(\d{1,4})(?:\.\.n(\d{1,4}))?", re.ASCII)
_PLACE = re.compile(r"place:\d{1,6}", re.ASCII)
_CHOICE = re.compile(r"- \[( |x)\] (.+?)(?: :: (.+))?")
_ASK = re.compile(r"(choose|order|press (?:one|all) (\w+)|number (-?[\d.]+)\.\.(-?[\d.]+)): (.+)")
_RIGHT = re.compile(r"(.+?) = (.+)")
_MARK = re.compile(r"(\S+)=(\S+)")
_SLIDER = re.compile(r'(.+?) "([^"]+)": (.+)')
_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_CHART = re.compile(r"([a-z0-9-]{1,40}) ([a-z0-9_]{1,40})", re.ASCII)


class LessonLine(NamedTuple):
    """A line of the file, stripped at its end, with its number from 1."""

    words: str
    number: int


def read_lesson(path: Path) -> Lesson:
    """Read a lesson file; raises LessonError at its first mistake."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LessonError(f"{path.name}: the file cannot be read ({error})") from None
    lines = [LessonLine(words.rstrip(), number) for number, words in enumerate(text.splitlines(), start=1)]
    if len(text) > _MOST_BYTES or len(lines) > _MOST_LINES:
        raise LessonError(f"{path.name}: a lesson has at most {_MOST_LINES} lines")
    return _LessonReader(path, lines).lesson()


class _LessonReader:
    """Reads the lines of one file."""

    def __init__(self, path: Path, lines: list[LessonLine]) -> None:
        self.path, self.lines = path, lines
        self.runs: dict[str, str] = {}

    def error(self, line: LessonLine | int, message: str) -> LessonError:
        number = line.number if isinstance(line, LessonLine) else line
        return LessonError(f"{self.path.name}:{number}: {message}")

    def lesson(self) -> Lesson:
        """Read front matter and screens."""
        fields, rest = self._front_matter()
        self.runs = self._runs(fields["runs"])
        number, minutes = (self._number(fields[name], name) for name in ("number", "minutes"))
        screens = tuple(_ScreenReader(self, block).screen() for block in self._blocks(rest))
        if not screens:
            raise self.error(len(self.lines), "the lesson has no screen: begin one with ## Title {#anchor}")
        return Lesson(
            self.path,
            fields["id"].words,
            number,
            fields["title"].words,
            fields["topic"].words,
            minutes,
            fields["object"].words,
            tuple(fields["needs"].words.split()),
            self.runs,
            screens,
        )

    def _number(self, line: LessonLine, name: str) -> int:
        if not line.words.isdecimal():
            raise self.error(line, f"{name} is a whole number")
        return int(line.words)

    def _front_matter(self) -> tuple[dict[str, LessonLine], list[LessonLine]]:
        if not self.lines or self.lines[0].words != "---":
            raise self.error(1, "the file begins with ---, its front matter and another ---")
        fields: dict[str, LessonLine] = {}
        for at, line in enumerate(self.lines[1:], start=2):
            if line.words == "---":
                missing = [name for name in _FRONT if name not in fields]
                if missing:
                    raise self.error(line, f"the front matter lacks {', '.join(missing)}")
                return fields, self.lines[at:]
            name, colon, value = line.words.partition(":")
            if not colon or name not in _FRONT or name in fields:
                raise self.error(line, f"the front matter has one line each of {', '.join(_FRONT)}, as name: value")
            fields[name] = LessonLine(value.strip(), line.number)
        raise self.error(1, "the front matter does not end: close it with ---")

    def _runs(self, line: LessonLine) -> dict[str, str]:
        """Read {name: recording, ...}."""
        inside = re.fullmatch(r"\{(.*)\}", line.words)
        if not inside:
            raise self.error(line, "runs is written as {name: recording, name: recording}")
        runs: dict[str, str] = {}
        for pair in inside[1].split(","):
            name, colon, recording = (part.strip() for part in pair.partition(":"))
            if not colon or not _NAME.fullmatch(name) or not recording or name in runs:
                raise self.error(line, f"each run has a name of its own and a recording, unlike {pair.strip()!r}")
            runs[name] = recording
        return runs

    def _blocks(self, lines: list[LessonLine]) -> Iterator[list[LessonLine]]:
        """Yield the lines of each screen, its heading first."""
        block: list[LessonLine] = []
        for line in lines:
            if line.words.startswith("#"):
                if block:
                    yield block
                block = []
            elif not block and line.words:
                raise self.error(line, "text comes after the heading of a screen, as ## Title {#anchor}")
            if block or line.words:
                block.append(line)
        if block:
            yield block


class _ScreenReader:
    """Reads one screen, line by line."""

    def __init__(self, file: _LessonReader, lines: list[LessonLine]) -> None:
        self.file, self.lines = file, lines
        self.show: Show | None = None
        self.reveal: Show | None = None
        self.revealed = False
        self.prose: dict[bool, list[Prose]] = {False: [], True: []}  # before the answer, and after it
        self.ask: LessonQuestion | None = None
        self.choices: list[AnswerChoice] = []
        self.replies: dict[tuple[str, ...], Prose] = {}
        self.otherwise: Prose | None = None
        self.right: Right | None = None
        self.slider: Slider | None = None
        self.dials: dict[str, Prose] = {}
        self.cites: list[Prose] = []
        self.notes: list[Prose] = []
        self.chart: ChartLink | None = None
        self.paragraph: list[LessonLine] = []

    def screen(self) -> LessonScreen:
        """Read the screen."""
        head = self.lines[0]
        named = _HEADING.fullmatch(head.words)
        if not named:
            raise self.file.error(head, "a screen begins with ## Title {#anchor}, the anchor in lower-case letters")
        for line in self.lines[1:]:
            self._take(line)
        self._end_paragraph()
        return LessonScreen(
            named[2],
            named[1],
            head.number,
            self.show,
            tuple(self.prose[False]),
            self._finished_ask(),
            self.reveal,
            tuple(self.prose[True]),
            self.slider,
            self.dials,
            tuple(self.cites),
            tuple(self.notes),
            self.chart,
        )

    def _take(self, line: LessonLine) -> None:
        if not line.words:
            self._end_paragraph()
        elif line.words.startswith("@"):
            self._end_paragraph()
            self._directive(line)
        elif choice := _CHOICE.fullmatch(line.words):
            self._end_paragraph()
            if self.ask is None or self.ask.kind not in ("choose", "order"):
                raise self.file.error(line, "choices come after @ask choose: or @ask order:")
            reply = Prose(choice[3], line.number) if choice[3] else None
            self.choices.append(AnswerChoice(Prose(choice[2], line.number), reply, choice[1] == "x"))
        elif line.words.startswith("- "):
            self._end_paragraph()
            self.prose[self.revealed].append(Prose(line.words[2:], line.number, "li"))
        elif line.words.startswith(("<", "![", "```", "|", ">")):
            raise self.file.error(line, "a lesson has paragraphs, lists, `code` and **bold**, and nothing else")
        else:
            self.paragraph.append(line)

    def _end_paragraph(self) -> None:
        if self.paragraph:
            words = " ".join(line.words for line in self.paragraph)
            self.prose[self.revealed].append(Prose(words, self.paragraph[0].number))
            self.paragraph = []

    def _directive(self, line: LessonLine) -> None:
        directive = _DIRECTIVE.fullmatch(line.words)
        readers: dict[str, Callable[[str, LessonLine], None]] = {
            "show": self._read_show,
            "ask": self._read_ask,
            "right": self._read_right,
            "if": self._read_reply,
            "reveal": self._read_reveal,
            "slider": self._read_slider,
            "dial": self._read_dial,
            "cite": lambda rest, at: self.cites.append(Prose(rest, at.number)),
            "chart": self._read_chart,
            "note": lambda rest, at: self.notes.append(Prose(rest, at.number)),
            "else:": self._read_otherwise,
        }
        if not directive or directive[1] not in readers:
            raise self.file.error(line, f"a directive is one of {', '.join(f'@{name}' for name in readers)}")
        return readers[directive[1]](directive[2] or "", line)

    def _read_show(self, rest: str, line: LessonLine) -> None:
        if self.show or self.revealed:
            raise self.file.error(line, "a screen has one @show, before its @reveal")
        self.show = self._place(rest, line)

    def _read_reveal(self, rest: str, line: LessonLine) -> None:
        if self.ask is None or self.revealed:
            raise self.file.error(line, "a screen has one @reveal, after its @ask")
        self.revealed = True
        self.reveal = self._place(rest, line) if rest else None

    def _place(self, rest: str, line: LessonLine) -> Show:
        runs, options, step, phase = list[str](), dict[str, str](), -1, ""
        for word in rest.split():
            if at := _STEP.fullmatch(word):
                step, phase = int(at[1]), PHASES_BY_LETTER[at[2]]
            elif "=" in word:
                name, _, value = word.partition("=")
                options[name] = value
            elif word in self.file.runs:
                runs.append(word)
            else:
                raise self.file.error(line, f"{word!r} is no run of this lesson, and no step as 4a")
        if not runs or step < 0 or len(runs) > 6:
            raise self.file.error(line, "show one to six runs and a step with its phase, as pl 4a")
        if unknown := set(options) - {"view", "node", "focus", "zoom"}:
            raise self.file.error(line, f"{min(unknown)}= is none of view=, node=, focus= and zoom=")
        node = self._nodes(options["node"], line) if "node" in options else ()
        zoom = tuple(options["zoom"].split(",")) if "zoom" in options else ()
        if wrong := next((frame for frame in zoom if frame not in FRAMES), None):
            raise self.file.error(line, f"zoom={wrong} is none of {', '.join(FRAMES)}")
        return Show(
            tuple(runs),
            step,
            phase,
            line.number,
            options.get("view"),
            int(node[0][1:]) if node else None,
            self._nodes(options["focus"], line) if "focus" in options else (),
            zoom,
        )

    def _nodes(self, text: str, line: LessonLine) -> tuple[str, ...]:
        """Read n1,n3..n5,place:56."""
        names: list[str] = []
        for part in text.split(","):
            if nodes := _NODES.fullmatch(part):
                first, last = int(nodes[1]), int(nodes[2] or nodes[1])
                names.extend(f"n{node}" for node in range(first, last + 1))
            elif _PLACE.fullmatch(part):
                names.append(part)
            else:
                raise self.file.error(line, f"{part!r} is no node as n3, no nodes as n1..n5, and no place:56")
        return tuple(names)

    def _read_ask(self, rest: str, line: LessonLine) -> None:
        asked = _ASK.fullmatch(rest)
        if not asked or self.ask:
            forms = "choose:, order:, press one|all guess|cell|row|token:, number 0..100:"
            raise self.file.error(line, f"a screen has one @ask, with one of {forms} and the question")
        kind, question = asked[1].split()[0], Prose(asked[5], line.number)
        if kind == "press" and asked[2] not in PIECES:
            raise self.file.error(line, f"what is pressed is one of {', '.join(PIECES)}")
        try:
            span = (float(asked[3]), float(asked[4])) if kind == "number" else (0.0, 0.0)
        except ValueError:
            raise self.file.error(line, "a number is asked for between two numbers, as 0..100") from None
        self.ask = LessonQuestion(kind, question, what=asked[2] or "", many="all" in asked[1].split()[1:2], span=span)

    def _read_right(self, rest: str, line: LessonLine) -> None:
        right = _RIGHT.fullmatch(rest)
        if not right or self.ask is None or self.right:
            raise self.file.error(line, "@right comes once after @ask, as VALUE = FACT")
        self.right = Right(right[1], right[2], line.number)

    def _read_reply(self, rest: str, line: LessonLine) -> None:
        nodes, colon, words = rest.partition(": ")
        if not colon or self.ask is None:
            raise self.file.error(line, "@if comes after @ask, as @if n1 n2: the reply to a press on one of them")
        self.replies[self._nodes(",".join(nodes.split()), line)] = Prose(words, line.number)

    def _read_otherwise(self, rest: str, line: LessonLine) -> None:
        if not rest or self.ask is None or self.otherwise:
            raise self.file.error(line, "@else: comes once after @ask, with what is said to all other answers")
        self.otherwise = Prose(rest, line.number)

    def _read_slider(self, rest: str, line: LessonLine) -> None:
        slider = _SLIDER.fullmatch(rest)
        marks = [_MARK.fullmatch(word) for word in slider[3].split()] if slider else []
        if not slider or self.slider or len(marks) < 2 or not all(marks):
            raise self.file.error(line, '@slider is written as FACT "label": VALUE=RUN VALUE=RUN ...')
        self.slider = Slider(
            slider[1], slider[2], tuple((mark[1], mark[2]) for mark in marks if mark), line.number, self.revealed
        )

    def _read_dial(self, rest: str, line: LessonLine) -> None:
        depth, colon, words = rest.partition(": ")
        if not colon or depth not in DEPTHS or depth in self.dials:
            raise self.file.error(line, f"@dial is written as one of {', '.join(DEPTHS)}, a colon and one line")
        self.dials[depth] = Prose(words, line.number)

    def _read_chart(self, rest: str, line: LessonLine) -> None:
        chart = _CHART.fullmatch(rest)
        if not chart or self.chart:
            raise self.file.error(
                line, "a screen has one @chart, written as a run folder that ships and a metric's key"
            )
        self.chart = ChartLink(chart[1], chart[2], line.number)

    def _finished_ask(self) -> LessonQuestion | None:
        ask = self.ask
        if ask is None:
            return None
        head = self.lines[0]
        if not self.revealed:
            raise self.file.error(ask.question.line, "a question needs an @reveal, after which the answer is given")
        if ask.kind == "choose" and (len(self.choices) < 2 or sum(choice.right for choice in self.choices) != 1):
            raise self.file.error(ask.question.line, "two to five choices as - [ ] text :: reply, one of them - [x]")
        if ask.kind == "choose":
            for choice in self.choices:
                if not choice.right and choice.reply is None:
                    raise self.file.error(choice.words.line, "a wrong choice needs a reply, after ::")
        elif self.right is None:
            raise self.file.error(ask.question.line, f"@ask {ask.kind} needs @right VALUE = FACT")
        elif self.otherwise is None:
            raise self.file.error(ask.question.line, f"@ask {ask.kind} needs @else: with a reply to wrong answers")
        if len(self.choices) > 6:
            raise self.file.error(head, "a question has at most six choices")
        return LessonQuestion(
            ask.kind,
            ask.question,
            tuple(self.choices),
            ask.what,
            ask.many,
            ask.span,
            self.right,
            self.replies,
            self.otherwise,
        )
