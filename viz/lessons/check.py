"""Checks lesson files: every claim is computed, every screen can be shown, every text is short."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from decoding.errors import SpecscopeError

from ..methods import label_of, screen_of
from ..views import views_of
from .lesson import DEPTHS, FOLDER, Lesson, LessonError, LessonQuestion, LessonScreen, Prose, Show
from .markup import entries_in, facts_in, plain_text, read_glossary
from .page_lesson import LessonWriter, answers
from .reader import read_lesson
from .sources import ASSETS, RunLibrary

MOST_WORDS, MOST_SCREEN_WORDS, MOST_SENTENCE_WORDS = 730, 70, 25
MOST_RECORDED_BYTES = 1_500_000
_DRAWN_AT_ONCE = ("drafted", "matched_tokens", "step_drafter_passes")  # facts of a step that the stage shows from p on
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z0-9\"'({`])")


def check_folder(folder: Path = FOLDER, library: RunLibrary | None = None) -> list[str]:
    """Return every problem of the lessons in a folder, one sentence each."""
    problems, lessons = list[str](), dict[str, Lesson]()
    library = library or RunLibrary()
    for path in sorted(folder.glob("*.md")):
        if path.name == "glossary.md":
            continue
        try:
            lesson = read_lesson(path)
        except LessonError as error:
            problems.append(str(error))
            continue
        if lesson.id in lessons or lesson.id != path.stem:
            problems.append(f"{path.name}:2: the id of a lesson is its file's name, and no other lesson has it")
        lessons[lesson.id] = lesson
    numbers = [lesson.number for lesson in lessons.values()]
    problems.extend(
        str(lesson.error(3, f"another lesson has the number {lesson.number} too"))
        for lesson in lessons.values()
        if numbers.count(lesson.number) > 1
    )
    entries = read_glossary()
    for lesson in lessons.values():
        problems.extend(check_lesson(lesson, library, entries))
    problems.extend(_check_needs(lessons))
    size = sum(path.stat().st_size for path in folder.glob("*.gz"))
    if size > MOST_RECORDED_BYTES:
        problems.append(f"the recordings of lessons have {size:,} bytes; at most {MOST_RECORDED_BYTES:,}")
    return problems


def check_lesson(lesson: Lesson, library: RunLibrary, entries: Mapping[str, object]) -> list[str]:
    """Return every problem of one lesson."""
    problems = list[str]()
    for check in (_check_runs, _check_screens, _check_texts, _check_sliders):
        problems.extend(check(lesson, library))
    for text in texts_of(lesson):
        problems.extend(
            str(lesson.error(text.line, f"the glossary has no entry {name!r}"))
            for name in entries_in(text.words)
            if name not in entries
        )
    if not problems:  # or the same mistake is told twice
        try:
            json.dumps(LessonWriter(lesson, library).lesson_json(), allow_nan=False)
        except SpecscopeError as error:
            problems.append(str(error))
    return problems


def texts_of(lesson: Lesson) -> Iterator[Prose]:
    """Yield every text of a lesson."""
    for screen in lesson.screens:
        yield from (*screen.before, *screen.after, *(screen.dials or {}).values(), *screen.notes)
        if screen.ask:
            yield from _texts_of_ask(screen.ask)


def _texts_of_ask(ask: LessonQuestion) -> Iterator[Prose]:
    yield ask.question
    for choice in ask.choices:
        yield choice.words
        if choice.reply and ask.kind == "choose":
            yield choice.reply
    yield from (ask.replies or {}).values()
    if ask.otherwise:
        yield ask.otherwise


def _check_needs(lessons: Mapping[str, Lesson]) -> Iterator[str]:
    for lesson in lessons.values():
        reached, waiting = set[str](), list(lesson.needs)
        while waiting:
            needed = waiting.pop()
            if needed not in lessons:
                yield str(lesson.error(2, f"it needs the lesson {needed!r}, which there is not"))
            elif needed not in reached:
                reached.add(needed)
                waiting.extend(lessons[needed].needs)
        if lesson.id in reached:
            yield str(lesson.error(2, "it needs itself, through the lessons that it needs"))


def _check_runs(lesson: Lesson, library: RunLibrary) -> Iterator[str]:
    for name, recording in lesson.runs.items():
        try:
            library.trace(recording)
        except SpecscopeError as error:
            yield str(lesson.error(2, f"run {name}: {error}"))


def _check_screens(lesson: Lesson, library: RunLibrary) -> Iterator[str]:
    screens = lesson.screens
    if len({screen.anchor for screen in screens}) < len(screens):
        yield str(lesson.error(screens[0].line, "two screens have the same anchor"))
    if not 6 <= len(screens) <= 9:
        yield str(lesson.error(screens[0].line, f"a lesson has six to nine screens, not {len(screens)}"))
    for screen in (screens[0], screens[-1]):
        if screen.ask is None:
            yield str(lesson.error(screen.line, "the first screen and the last ask something"))
    if len({depth for screen in screens for depth in screen.dials or {}}) < len(DEPTHS):
        yield str(lesson.error(screens[0].line, f"a lesson has an @dial for each of {', '.join(DEPTHS)}"))
    for screen in screens:
        for show in (screen.show, screen.reveal):
            if show:
                yield from _check_show(lesson, library, show)
        if screen.ask and screen.show and screen.show.view == "mask":
            yield str(
                lesson.error(screen.show.line, "the mask is kept back while a question is open: show it in @reveal")
            )
        yield from _check_right(lesson, library, screen)
        if screen.chart and not (ASSETS / "runs" / screen.chart.folder).is_dir():
            yield str(lesson.error(screen.chart.line, f"there is no run folder {screen.chart.folder!r} in assets/runs"))
    yield from _check_told(lesson)


def _check_told(lesson: Lesson) -> Iterator[str]:
    """Check that no text before a question states the fact that it asks for."""
    stated = set[str]()
    for screen in lesson.screens:
        ask = screen.ask
        before = [*screen.before, *([ask.question] if ask else [])]
        stated.update(fact for text in before for fact in _facts_of(text))
        stated.update(_facts_of_slider(screen, after=False))
        if ask:
            asked = [ask.right.fact] if ask.right else []
            asked += [fact for choice in ask.choices if choice.right for fact in _fact_alone(choice.words)]
            if fact_before := next((fact for fact in asked if fact in stated), None):
                yield str(lesson.error(ask.question.line, f"a text in front of the question states {fact_before}"))
        replies = [text for text in _texts_of_ask(ask) if text not in before] if ask else []
        after = [*replies, *screen.after, *(screen.dials or {}).values()]
        stated.update(fact for text in after for fact in _facts_of(text))
        stated.update(_facts_of_slider(screen, after=True))


def _facts_of(text: Prose) -> list[str]:
    """Return the facts that a text states, without their digits."""
    return [fact.partition(" :")[0].strip() for fact in facts_in(text.words)]


def _fact_alone(text: Prose) -> list[str]:
    """Return a text's fact if the text is nothing else: in a sentence the reader may know it already."""
    return _facts_of(text) if plain_text(text.words) == "0" and facts_in(text.words) else []


def _facts_of_slider(screen: LessonScreen, *, after: bool) -> list[str]:
    slider = screen.slider
    return [slider.fact_of(value, run) for value, run in slider.marks] if slider and slider.after is after else []


def _check_show(lesson: Lesson, library: RunLibrary, show: Show) -> Iterator[str]:
    for name in show.runs:
        try:
            trace = library.trace(lesson.runs[name])
        except SpecscopeError:
            return  # told where the runs are checked
        if show.step >= len(trace.steps):
            yield str(lesson.error(show.line, f"run {name} has {len(trace.steps)} steps, numbered from 0"))
            return
        step = trace.steps[show.step]
        nodes = [int(piece[1:]) for piece in show.focus if piece.startswith("n")] + [show.node or 0]
        if max(nodes) >= len(step.tokens):
            yield str(lesson.error(show.line, f"step {show.step} of {name} has n0 to n{len(step.tokens) - 1}"))
        screen = screen_of(trace.header)
        absent = {view for view, picture in (("pool", screen.pool), ("window", screen.window)) if picture is None}
        if show.view is not None and show.view not in views_of(trace).keys() - absent:
            yield str(lesson.error(show.line, f"{label_of(trace.header)} has no view {show.view!r}"))


def _check_right(lesson: Lesson, library: RunLibrary, screen: LessonScreen) -> Iterator[str]:
    ask = screen.ask
    if ask is None or ask.right is None:
        return
    try:
        computed = answers(LessonWriter(lesson, library).facts.value(ask.right.fact))
    except SpecscopeError as error:
        yield str(lesson.error(ask.right.line, str(error)))
        return
    yield from _check_open(lesson, library, screen)
    if ask.right.value == "measured" and not isinstance(computed, list):
        return  # a time, which differs from recording to recording
    stated = ask.right.value.split() if isinstance(computed, list) else [ask.right.value]
    same = stated == computed if isinstance(computed, list) else _is_number(ask.right.value, computed)
    if not same:
        shown = " ".join(computed) if isinstance(computed, list) else f"{computed:g}"
        yield str(lesson.error(ask.right.line, f"the file says {ask.right.value}, and {ask.right.fact} is {shown}"))


def _check_open(lesson: Lesson, library: RunLibrary, screen: LessonScreen) -> Iterator[str]:
    """Check that the player does not show the answer beside the question: from phase a on it hides nothing."""
    ask, show = screen.ask, screen.show
    if not ask or not ask.right or not show:
        return
    judged = show.phase in ("accept", "commit") or ask.right.fact.startswith(_DRAWN_AT_ONCE)
    asked = LessonWriter(lesson, library).facts.step_of(ask.right.fact)
    if asked and asked[0] == show.runs[0] and (asked[1] < show.step or (asked[1] == show.step and judged)):
        when = "before" if ask.right.fact.startswith(_DRAWN_AT_ONCE) else "at phase p, v or w of"
        message = f"the stage shows the answer: ask for {ask.right.fact} {when} step {asked[1]}"
        yield str(lesson.error(ask.question.line, message))
    outlined = [piece for piece in show.focus if piece.startswith("n")]
    right = answers(LessonWriter(lesson, library).facts.value(ask.right.fact))
    if ask.kind == "press" and outlined and isinstance(right, list) and {*outlined} <= {*right}:
        yield str(lesson.error(show.line, "the outline gives the answer away: focus= names only what is to be pressed"))
    if judged and show.view == "timeline" and any(ask.right.fact == f"passes({run})" for run in show.runs):
        message = f"the timeline shows all steps: ask for {ask.right.fact} at phase p, v or w"
        yield str(lesson.error(ask.question.line, message))


def _is_number(text: str, value: float) -> bool:
    """Return True if a text is this number, rounded to the text's digits."""
    try:
        half_of_last_digit = 0.5 / 10.0 ** len(text.partition(".")[2])
        return abs(float(text) - value) <= half_of_last_digit + 1e-9
    except ValueError:
        return False


def _check_texts(lesson: Lesson, library: RunLibrary) -> Iterator[str]:
    every = 0
    for screen in lesson.screens:
        asked = [screen.ask.question] if screen.ask else []
        count = sum(_count(text) for text in (*screen.before, *asked, *screen.after))
        if count > MOST_SCREEN_WORDS:
            message = f"the screen has {count} words; {MOST_SCREEN_WORDS} are read in a minute with the stage"
            yield str(lesson.error(screen.line, message))
    for text in texts_of(lesson):
        every += _count(text)
        for sentence in _sentences(text):
            if len(sentence.split()) > MOST_SENTENCE_WORDS:
                message = f"a sentence has at most {MOST_SENTENCE_WORDS} words: {sentence[:60]} ..."
                yield str(lesson.error(text.line, message))
    if every > MOST_WORDS:
        yield str(lesson.error(lesson.screens[0].line, f"the lesson has {every} words; at most {MOST_WORDS}"))


def _count(text: Prose) -> int:
    return len(plain_text(text.words).split())


def _sentences(text: Prose) -> Iterable[str]:
    return _SENTENCE_END.split(plain_text(text.words))


def _check_sliders(lesson: Lesson, library: RunLibrary) -> Iterator[str]:
    """Check that the runs of a slider differ in one setting only, and wrote the same text if they are greedy."""
    for screen in lesson.screens:
        if screen.slider is None:
            continue
        names, line = [name for _, name in screen.slider.marks if name in lesson.runs], screen.slider.line
        try:
            traces = [library.trace(lesson.runs[name]) for name in names]
        except SpecscopeError:
            continue
        if len({(trace.header.model.hash, trace.header.prompt, trace.header.method) for trace in traces}) > 1:
            yield str(lesson.error(line, "the runs of a slider have one model, one prompt and one method"))
            continue
        settings = [{**trace.header.params, **trace.header.sampling} for trace in traces]
        # Settings that are equal in every run, as Lookahead's W and G, count as one.
        columns = {tuple(str(each.get(key)) for each in settings): key for key in (settings or [{}])[0]}
        changed = {values: key for values, key in columns.items() if len({*values}) > 1}
        if len(changed) > 1:
            message = f"the runs of a slider differ in one setting, not in {', '.join(sorted(changed.values()))}"
            yield str(lesson.error(line, message))
        greedy = all(trace.header.sampling.get("temperature") == 0 for trace in traces)
        lengths = {trace.header.max_new_tokens for trace in traces}
        if greedy and len(lengths) == 1 and len({tuple(trace.ids) for trace in traces}) > 1:
            yield str(lesson.error(line, "the runs of a slider wrote different texts"))
