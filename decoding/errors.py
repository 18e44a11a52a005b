"""Every error that a user can meet, as one tree. Each carries one sentence that says what to change.

SpecscopeError (a ValueError)
├── ParamError            a method parameter, sampling setting, prompt or flag cannot be used
│   ├── OptionError       a keyword that `decode`, `generate` or `load` do not have (a TypeError too)
│   └── ModerationError   the guardrails of a page refused a prompt or answer  app/jobs/streaming.py
├── ModelError            a model folder, id or pair of models cannot be used
│   ├── ModelMissingError a model that this machine neither holds nor may fetch
│   └── UnfitError        a drafter's files do not fit its model or each other
├── TraceError            a trace file is damaged, of another version, or hostile
│   ├── NotJsonError      a line of it is not JSON                           decoding/trace/json_line.py
│   ├── CutOffError       it ends in the middle of a line                    decoding/trace/lines.py
│   ├── MisfitError       its content is not what the views read             viz
│   └── TooLongError      it makes a larger HTML page than allowed           viz
├── ExtraError            a package is missing that an extra of the installation brings (an ImportError too)
├── RankError             another process of a run cannot be reached, or has diverged
├── UnknownError          a record lacks what a metric needs               analysis/metrics/result.py
├── UnmeasuredError       a paper's finding cannot be measured here          lab/papers/tables.py
├── ExerciseError         a task of the lab is not solved yet               lab/exercise/checks.py
├── LessonError           a lesson file is wrong, with file and line         viz/lessons/lesson.py
│   ├── FactError         a fact that it states cannot be computed           viz/lessons/fact_types.py
│   └── SourceError       a recording, cost or claim that it names is absent viz/lessons/sources.py
├── UnbegunError          a job was over before it began                   app/jobs/streaming.py
├── ClosingError          the server ends, so no job starts                app/jobs/runner.py
├── FullError             too many runs wait for the engine already          app/server/run_queue.py
└── RequestError          the server refuses an HTTP request, with a status  app/server/middleware/errors.py
"""


class SpecscopeError(ValueError):
    """Base of all errors whose message is meant for the user."""


class ParamError(SpecscopeError):
    """A value chosen by the user cannot be used."""


class OptionError(ParamError, TypeError):
    """An unknown keyword, for which Python itself would raise a TypeError."""


class ModelError(SpecscopeError):
    """A model, or a pair of models, cannot be used."""


class ModelMissingError(ModelError):
    """A model is not on this machine. The message names no folder, so that visitors of a page may read it."""


class UnfitError(ModelError):
    """A drafter's configuration does not fit its model or its weights; `flag` names the entry."""

    def __init__(self, flag: str, sentence: str) -> None:
        super().__init__(sentence)
        self.flag = flag


class ExtraError(SpecscopeError, ImportError):
    """A package that only an extra installs is missing."""


class RankError(SpecscopeError):
    """Another process of the same run has ended, cannot be reached, or has diverged."""


class TraceError(SpecscopeError):
    """A trace cannot be read or shown."""
