"""Writes a lesson for the page: plain JSON with every fact computed, and every text as spans."""

from __future__ import annotations

from dataclasses import asdict

from decoding.errors import SpecscopeError
from decoding.types import JSON

from .fact_reader import FactReader, Value
from .lesson import Lesson, LessonQuestion, LessonScreen, Prose, Show, Slider
from .markup import TextSpan, spans
from .sources import RunLibrary


class LessonWriter:
    """Writes one lesson."""

    def __init__(self, lesson: Lesson, library: RunLibrary) -> None:
        self.lesson, self.library = lesson, library
        self.facts = FactReader(library, lesson.runs)

    def lesson_json(self) -> dict[str, JSON]:
        """Return the whole lesson."""
        lesson = self.lesson
        return {
            "id": lesson.id,
            "title": lesson.title,
            "minutes": lesson.minutes,
            "follow": lesson.follow,
            "runs": dict(lesson.runs),
            "screens": [self.screen(screen) for screen in lesson.screens],
        }

    def screen(self, screen: LessonScreen) -> dict[str, JSON]:
        """Return one screen."""
        return {
            "anchor": screen.anchor,
            "title": screen.title,
            "show": self.show(screen.show),
            "before": [self.block(text) for text in screen.before],
            "ask": self.ask(screen.ask) if screen.ask else None,
            "reveal": self.show(screen.reveal),
            "after": [self.block(text) for text in screen.after],
            "slider": self.slider(screen.slider) if screen.slider else None,
            "dials": {depth: self.spans(text) for depth, text in (screen.dials or {}).items()},
            "cites": [self.cite(text) for text in screen.cites],
            "notes": [self.spans(text) for text in screen.notes],
            "chart": screen.chart.address if screen.chart else None,
        }

    def fact(self, written_fact: str, line: int) -> Value:
        """Compute a fact; a mistake names file and line."""
        try:
            return self.facts.value(written_fact)
        except SpecscopeError as error:
            raise self.lesson.error(line, str(error)) from None

    def spans(self, text: Prose) -> list[TextSpan]:
        """Return a text as spans."""

        def formatted(written_fact: str) -> str:
            try:
                return self.facts.text(written_fact)
            except SpecscopeError as error:
                raise self.lesson.error(text.line, str(error)) from None

        return spans(text.words, formatted)

    def block(self, text: Prose) -> dict[str, JSON]:
        """Return a paragraph, or an item of a list."""
        return {"kind": text.kind, "spans": self.spans(text)}

    def show(self, show: Show | None) -> dict[str, JSON] | None:
        """Return a state of the player, in which runs are names of recordings."""
        if show is None:
            return None
        fields = asdict(show)
        del fields["line"]
        return fields | {"runs": [self.lesson.runs[name] for name in show.runs]}

    def ask(self, ask: LessonQuestion) -> dict[str, JSON]:
        """Return a question with its answers: the page judges a reader's answer, and sends nothing."""
        right = ask.right
        return {
            "kind": ask.kind,
            "question": self.spans(ask.question),
            "choices": [
                {
                    "spans": self.spans(choice.words),
                    "right": choice.right,
                    "reply": self.spans(choice.reply) if choice.reply and ask.kind == "choose" else None,
                    "key": choice.reply.words if choice.reply and ask.kind == "order" else "",
                }
                for choice in ask.choices
            ],
            "what": ask.what,
            "many": ask.many,
            "span": list(ask.span),
            "right": answers(self.fact(right.fact, right.line)) if right else None,
            "replies": [[list(nodes), self.spans(text)] for nodes, text in (ask.replies or {}).items()],
            "otherwise": self.spans(ask.otherwise) if ask.otherwise else None,
        }

    def slider(self, slider: Slider) -> dict[str, JSON]:
        """Return a slider: the run and the fact's value at each of its marks."""
        marks = []
        for value, run in slider.marks:
            number = self.fact(slider.fact_of(value, run), slider.line)
            marks.append({"value": value, "run": self.lesson.runs.get(run), "number": number})
        return {"label": slider.label, "marks": marks, "after": slider.after}

    def cite(self, text: Prose) -> dict[str, JSON]:
        """Return a claim of a paper and its verdict on each model."""
        try:
            return asdict(self.library.claims.row(text.words))
        except SpecscopeError as error:
            raise self.lesson.error(text.line, str(error)) from None


def answers(value: Value) -> list[str] | float:
    """Return a right answer in the form that the page compares: the names of pressed pieces, or a number."""
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    if isinstance(value, int | float):
        return value
    return list(value) if isinstance(value, tuple) else [str(value)]
