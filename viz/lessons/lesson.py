"""The parts of a lesson: screens with a text, a state of the player, a question and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from decoding.errors import SpecscopeError

FOLDER = Path(__file__).parents[2] / "assets" / "lessons"
DEPTHS = ("idea", "mechanism", "paper")


class LessonError(SpecscopeError):
    """A mistake in a lesson file; the message begins with file and line, if they are known."""


@dataclass(frozen=True, slots=True)
class Prose:
    """A piece of prose and the line that it begins at; facts in it are still written as {{name(run step)}}."""

    words: str
    line: int
    kind: str = "p"  # or "li" for an item of a list


@dataclass(frozen=True, slots=True)
class Show:
    """The state of the player: one run at one step, or several side by side at the same step of the first."""

    runs: tuple[str, ...]  # names from the lesson's front matter
    step: int
    phase: str
    line: int
    view: str | None = None
    node: int | None = None
    focus: tuple[str, ...] = ()  # nodes ("n3") and positions ("place:56")
    zoom: tuple[str, ...] = ()  # frames of the stage


@dataclass(frozen=True, slots=True)
class AnswerChoice:
    """A choice, and the reply to a reader who makes it; in an order, the fact's name for it."""

    words: Prose
    reply: Prose | None
    right: bool


@dataclass(frozen=True, slots=True)
class Right:
    """The author's answer, and the fact that computes it."""

    value: str
    fact: str
    line: int


@dataclass(frozen=True, slots=True)
class LessonQuestion:
    """A question: it asks for a choice, a press on the player's pieces, a number, or an order of choices."""

    kind: str  # choose, press, number, order
    question: Prose
    choices: tuple[AnswerChoice, ...] = ()
    what: str = ""  # to press: guess, cell, row or token
    many: bool = False  # whether all that apply are to be pressed
    span: tuple[float, float] = (0, 0)  # of a number
    right: Right | None = None
    replies: Mapping[tuple[str, ...], Prose] | None = None  # to presses
    otherwise: Prose | None = None


@dataclass(frozen=True, slots=True)
class Slider:
    """One setting over recorded runs, with a fact of each."""

    fact: str
    label: str
    marks: tuple[tuple[str, str], ...]  # value and run
    line: int
    after: bool  # whether it comes after the answer

    def fact_of(self, value: str, run: str) -> str:
        """Return the fact at a mark."""
        fact = self.fact if "(" in self.fact else f"{self.fact}({run})"
        return fact.replace("RUN", run).replace("VALUE", value)


@dataclass(frozen=True, slots=True)
class ChartLink:
    """A link to a chart of the Debug tab: a shipped run folder, and the metric's key."""

    folder: str
    key: str
    line: int

    @property
    def address(self) -> str:
        """Return the query that opens it."""
        return f"screen=debug&folder={self.folder}&chart={self.key}"


@dataclass(frozen=True, slots=True)
class LessonScreen:
    """A heading with its text, its question, and what follows the answer."""

    anchor: str
    title: str
    line: int
    show: Show | None = None
    before: tuple[Prose, ...] = ()
    ask: LessonQuestion | None = None
    reveal: Show | None = None
    after: tuple[Prose, ...] = ()
    slider: Slider | None = None
    dials: Mapping[str, Prose] | None = None
    cites: tuple[Prose, ...] = ()
    notes: tuple[Prose, ...] = ()
    chart: ChartLink | None = None


@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson file, as it was written."""

    path: Path
    id: str
    number: int  # in the order in which lessons are taught
    title: str  # a question
    topic: str  # the method, or what the lesson is about, by its name
    minutes: int
    follow: str  # what the reader keeps an eye on throughout
    needs: tuple[str, ...]
    runs: Mapping[str, str]  # recordings by the names that the lesson has for them
    screens: tuple[LessonScreen, ...]

    def error(self, line: int, message: str) -> LessonError:
        """Return an error at a line of the file."""
        return LessonError(f"{self.path.name}:{line}: {message}")
