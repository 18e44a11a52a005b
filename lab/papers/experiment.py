"""Runs settings over the same questions. Each is run once: claims that need the same numbers share them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from analysis.bench.methods import as_prompt
from analysis.prompts.tasks import Task
from decoding.engine import Engine
from decoding.errors import ParamError
from decoding.run import Run
from decoding.trace.metrics import compression_rate, consistent_acceptance, written
from decoding.types import JSON, Step

from .tables import ResultCell, ResultTable, UnmeasuredError

TOKENS, PASSES, ROWS, SPEED, MEAN = "tokens/step", "target passes", "rows/token", "speed", "mean of kinds"
_WARM_UP = 16  # tokens that a setting writes before it is timed


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt, and what autoregressive decoding answers greedily."""

    kind: str
    ids: tuple[int, ...]
    answer: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """A method with its settings, and where it runs. Make one with `using`."""

    method: str
    params: tuple[tuple[str, JSON], ...]
    temperature: float
    variant: str  # of the experiment's engines; "" for its own
    alone: bool  # on a new engine, which remembers no other run; for methods that need no parts
    order: tuple[int, ...]  # of the questions; () as they come

    @property
    def key(self) -> str:
        """The setting as one line of JSON, under which its tally is kept."""
        return json.dumps(asdict(self))


def using(
    method: str,
    *,
    temperature: float = 0.0,
    variant: str = "",
    alone: bool = False,
    order: Iterable[int] = (),
    **params: JSON,
) -> Setting:
    """Make a setting."""
    return Setting(method, tuple(sorted(params.items())), temperature, variant, alone, tuple(order))


PLAIN = using("autoregressive")


@dataclass(frozen=True, slots=True)
class Variant:
    """An engine that differs from the experiment's own in one part, and how."""

    part: str
    engine: Engine
    facts: Mapping[str, JSON]


@dataclass(slots=True)
class Tally:
    """The counts of a setting over all questions. Rows and seconds exclude the first steps, which read the prompts."""

    written: dict[str, Counter[int]] = field(default_factory=dict)  # by kind of question: steps that wrote n tokens
    drafted: int = 0
    accepted: int = 0
    later: int = 0  # tokens written after the first steps
    rows: int = 0
    seconds: float = 0.0
    answers: int = 0  # that should be autoregressive decoding's
    same: int = 0  # of them, those that are
    violated: int = 0  # of the others, those with a token that is neither the target's choice nor as good as tied

    def add(self, question: Question, steps: Sequence[Step]) -> None:
        """Count a run."""
        self.written.setdefault(question.kind, Counter()).update(written(steps))
        self.drafted += sum(step.drafted for step in steps)
        self.accepted += sum(step.accepted for step in steps)
        for step in steps[1:]:
            self.later += len(step.emitted)
            self.rows += step.fed
            self.seconds += step.timing.total_ms / 1000

    def lengths(self, kinds: Collection[str] = ()) -> Counter[int]:
        """Count the steps that wrote n tokens, on questions of these kinds or on all."""
        return sum((counts for kind, counts in self.written.items() if not kinds or kind in kinds), Counter[int]())

    def per_step(self, *kinds: str) -> float:
        """Return tokens per step: the paper's S, compression rate or tokens per call."""
        return compression_rate(self.lengths(kinds))

    def consistent(self, w: int, *kinds: str) -> float:
        """Return the Kangaroo paper's CTAR(w): the share of steps that wrote more than w tokens."""
        return consistent_acceptance(self.lengths(kinds), w)

    @property
    def steps(self) -> int:
        """Steps, which are passes of the target."""
        return self.lengths().total()

    @property
    def acceptance(self) -> float:
        """The share of guesses that were accepted."""
        return self.accepted / max(1, self.drafted)

    @property
    def speed(self) -> float:
        """Tokens per second."""
        return self.later / self.seconds if self.seconds > 0 else 0.0


class Experiment:
    """An engine, questions, and the runs made so far. `keep` is given each tally that was counted."""

    def __init__(
        self,
        engine: Engine,
        questions: Sequence[Question],
        budget: int,
        variants: Mapping[str, Variant] | None = None,
        tallies: Mapping[str, Tally] | None = None,
        keep: Callable[[str, Tally], None] = lambda key, tally: None,
    ) -> None:
        self.engine, self.questions, self.budget, self.variants = engine, tuple(questions), budget, dict(variants or {})
        self.progress: Callable[[float], None] = lambda share: None
        self._tallies, self._keep = dict(tallies or {}), keep  # by the settings' keys
        self._races: dict[tuple[Setting, ...], list[Tally]] = {}

    @property
    def kinds(self) -> list[str]:
        """The kinds of the questions."""
        return list(dict.fromkeys(question.kind for question in self.questions))

    @property
    def identical(self) -> tuple[int, int, int]:
        """Count greedy answers of guessing methods on the experiment's model.

        Those equal to autoregressive decoding's, all of them, and those of the others that plain passes find wrong.
        """
        tallies = self._tallies.values()
        same, answers = sum(tally.same for tally in tallies), sum(tally.answers for tally in tallies)
        return same, answers, sum(tally.violated for tally in tallies)

    def find_kind(self, *names: str) -> str:
        """Return the first of these kinds that has questions."""
        for name in names:
            if name in self.kinds:
                return name
        raise UnmeasuredError(f"there are no questions of the kind {names[0]!r}")

    def tally(self, *settings: Setting) -> list[Tally]:
        """Count the tokens that settings wrote and read. Times are not used: the runs may be from different times."""
        missing = tuple(setting for setting in dict.fromkeys(settings) if setting.key not in self._tallies)
        self._run(missing)
        return [self._tallies[setting.key] for setting in settings]

    def race(self, *settings: Setting) -> list[Tally]:
        """Compare the times of settings, in turn question by question, so that all have the same drift."""
        if settings not in self._races:
            engines = {setting: self._checked(setting) for setting in settings}
            for setting in settings:
                if not setting.alone:  # its memory must stay empty
                    self._decode(engines[setting], setting, 0, min(_WARM_UP, self.budget))
            self._races[settings] = self._run(settings)
        return self._races[settings]

    def watch(self, setting: Setting, see: Callable[[Question, list[Step]], None]) -> Tally:
        """Run a setting and show every run's steps with their record, which is then dropped."""
        return self._run((setting,), "light", see)[0]

    def _run(
        self,
        settings: Sequence[Setting],
        record: str = "off",
        see: Callable[[Question, list[Step]], None] = lambda question, steps: None,
    ) -> list[Tally]:
        engines, tallies = [self._checked(setting) for setting in settings], [Tally() for _ in settings]
        for turn in range(len(self.questions)):
            for index, (setting, engine, tally) in enumerate(zip(settings, engines, tallies, strict=True)):
                self.progress((turn + index / len(settings)) / len(self.questions))
                number = setting.order[turn] if setting.order else turn
                question = self.questions[number]
                run = self._decode(engine, setting, number, self.budget, record)
                tally.add(question, run.steps)
                see(question, run.steps)
                if self._writes_the_same(setting):
                    tally.answers += 1
                    tally.same += run.ids == question.answer
                    tally.violated += run.ids != question.answer and self.engine.rescore(run.trace).violations > 0
        for setting, tally in zip(settings, tallies, strict=True):
            self._tallies[setting.key] = tally
            self._keep(setting.key, tally)
        return tallies

    def _decode(self, engine: Engine, setting: Setting, number: int, budget: int, record: str = "off") -> Run:
        """Decode one question to the end; when sampling, its number is the seed."""
        sampling = {"temperature": setting.temperature, "seed": number}
        ids = self.questions[number].ids
        run = engine.decode(ids, setting.method, dict(setting.params), sampling, budget, record=record)
        for _ in run:
            pass
        return run

    def _writes_the_same(self, setting: Setting) -> bool:
        """Return whether answers should equal autoregressive decoding's: greedy, guessed, and of the model itself."""
        return setting.temperature == 0.0 and setting != PLAIN and self._engine(setting).model is self.engine.model

    def _checked(self, setting: Setting) -> Engine:
        engine = self._engine(setting)
        if missing := engine.lacks(setting.method):
            raise UnmeasuredError(f"{setting.method} needs {missing}")
        return engine

    def _engine(self, setting: Setting) -> Engine:
        if setting.alone:
            return Engine(self.engine.model, self.engine.codec, self.engine.draft)
        return self.variants[setting.variant].engine if setting.variant else self.engine


def answer_questions(
    engine: Engine, tasks: Sequence[Task], budget: int, progress: Callable[[float], None]
) -> list[Question]:
    """Answer every turn of every task greedily; later turns' prompts hold the answers. Too long ones are left out."""
    questions: list[Question] = []
    for number, task in enumerate(tasks):
        chat: list[tuple[str, str]] = []
        for turn in task.turns:
            progress(number / len(tasks))
            chat.append(("user", turn))
            ids = tuple(engine.encode(as_prompt(engine, chat)))
            if len(ids) + budget > engine.model.card.context:
                break
            answer = engine.generate(ids, max_new_tokens=budget, record="off").ids
            chat.append(("assistant", engine.codec.continuation(ids, answer)))
            questions.append(Question(task.category, ids, answer))
    if not questions:
        raise ParamError(f"no question leaves room for {budget} new tokens: lower --max-new-tokens")
    return questions


def tally_table(what: str, tallies: Mapping[str, Tally], base: Tally | None = None) -> ResultTable:
    """Make a row of every tally; with the `base` that it raced against, its speed in multiples of that one's."""
    rows: list[tuple[ResultCell, ...]] = []
    for name, tally in tallies.items():
        row = (name, tally.per_step(), tally.steps, tally.rows / max(1, tally.later))
        rows.append(row if base is None else (*row, tally.speed / base.speed if base.speed else 0.0))
    return ResultTable((what, TOKENS, PASSES, ROWS, *([] if base is None else [SPEED])), tuple(rows))


def compare_tokens(experiment: Experiment, what: str, settings: Mapping[str, Setting]) -> ResultTable:
    """Compare settings by the tokens that they wrote and read."""
    return tally_table(what, dict(zip(settings, experiment.tally(*settings.values()), strict=True)))


def compare_speeds(experiment: Experiment, what: str, settings: Mapping[str, Setting]) -> ResultTable:
    """Compare settings by time as well, beside autoregressive decoding."""
    base, *tallies = experiment.race(PLAIN, *settings.values())
    return tally_table(what, dict(zip(settings, tallies, strict=True)), base)


def compare_by_kind(experiment: Experiment, what: str, settings: Mapping[str, Setting]) -> ResultTable:
    """Compare tokens per step on every kind of question, and their mean."""
    rows: list[tuple[ResultCell, ...]] = []
    for name, tally in zip(settings, experiment.tally(*settings.values()), strict=True):
        values = [tally.per_step(kind) for kind in experiment.kinds]
        rows.append((name, sum(values) / len(values), *values))
    return ResultTable((what, MEAN, *experiment.kinds), tuple(rows))


def compare_rivals(experiment: Experiment, settings: Mapping[str, Setting]) -> ResultTable:
    """Compare a method, the first of the settings, by kind with those of its rivals whose parts are there."""
    first, *others = settings
    runnable = [first, *(name for name in others if experiment.engine.lacks(settings[name].method) is None)]
    return compare_by_kind(experiment, "method", {name: settings[name] for name in runnable})
