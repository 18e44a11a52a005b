"""An examination: the doctor checks the drafter of a model."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from analysis.doctor import KINDS
from decoding.embedded import PARTS, drafter_of
from decoding.errors import ModelError, ModelMissingError, ParamError
from decoding.methods import METHODS
from viz.stream import play as player
from viz.stream.lines import line

from ..controls import runnable
from ..models.entry import CatalogEntry
from ..models.model_pool import without_places
from ..server.limits import LIMITS
from .doctor_chart import figures
from .measured_prompts import SEED, measured_prompts
from .reported import reported
from .runner import StartedJob
from .streaming import Lines, page_line

if TYPE_CHECKING:
    from analysis.doctor.examine import ExaminationReport
    from analysis.doctor.probes import Examined

_log = logging.getLogger(__name__)
FLAGS = {method: flag for flag, method in KINDS.items()}


@dataclass(slots=True)
class Examination:
    """The drafter that a method uses beside a model, to be examined."""

    entry: CatalogEntry
    method: str

    def __post_init__(self) -> None:
        if self.method not in FLAGS or self.method not in runnable(self.entry):
            raise ParamError(f"{self.entry.name} has no drafter of that kind: choose another method")

    @property
    def seconds(self) -> float:
        return LIMITS.examination_seconds

    @property
    def spare(self) -> CatalogEntry | None:
        """The target alone, which is loaded if a drafter that its owner named prevents the model from loading."""
        return self.entry.without_drafters() if FLAGS[self.method] in self.entry.drafters else None

    def opening(self, started: StartedJob) -> str:
        return page_line(run=started.id, title=f"{METHODS[self.method].label} on {self.entry.name}")

    def lines(self, started: StartedJob) -> Lines:
        """Yield the progress, then the report."""
        report = yield from _examined(self.entry, self.method, started)
        stopped = player.fault("The examination was stopped.")
        yield stopped if report is None else line("done", report=_shown(self.entry, report))


def _examined(entry: CatalogEntry, method: str, started: StartedJob) -> Generator[str, None, ExaminationReport | None]:
    """Examine the drafter; returns None if the job was cancelled."""
    from analysis.doctor.examine import examine, refused
    from analysis.doctor.names import names_in
    from analysis.doctor.texts import write_texts

    begun, engine = time.perf_counter(), started.engine
    try:
        place, open_drafter = _find(started, entry, method)
    except ModelMissingError:
        raise
    except ModelError as error:  # a drafter that is not there has no fault; the message names folders of the host
        _log.warning("%s cannot be examined: %s", entry.name, error)
        raise ModelError(
            f"the drafter of {entry.name} cannot be examined on this server now: choose another method or model"
        ) from None
    try:
        examined = open_drafter()
    except ModelError as error:
        _log.warning("%s is refused: %s", entry.name, error)
        return refused(method, entry.name, entry.name, error, names_in(FLAGS[method], place))
    chosen = measured_prompts(entry, LIMITS.examination_prompts)
    writing = write_texts(engine, chosen, LIMITS.examination_tokens, examined.layers())
    texts = yield from reported(writing, started, "examining", _late())
    if texts is None:
        return None
    return (yield from reported(examine(examined, texts, entry.name, SEED, begun), started, "examining", _late()))


def _late() -> str:
    return (
        f"an examination may take {LIMITS.examination_seconds:g} seconds on this page, and this one takes longer: "
        "run `python -m decoding doctor` on your machine, or choose a smaller model"
    )


def _find(started: StartedJob, entry: CatalogEntry, method: str) -> tuple[str, Callable[[], Examined]]:
    """Find the drafter of an entry, and return its place and what opens it. Raises ModelError if there is none."""
    from analysis.doctor.drafters import open_draft, open_drafter
    from decoding.parts.named import find_part

    kind, engine = FLAGS[method], started.engine
    opened = partial(open_drafter, engine, progress=_unreported, download=False, loaded=entry.model)
    if kind != "draft":
        place = find_part(kind, entry.drafters.get(kind) or str(PARTS[entry.model][kind]), _unreported, download=False)
        return place, partial(opened, kind, place)
    if started.on_spare and entry.draft:
        place = entry.find_draft(_unreported)
        return place, partial(opened, kind, place)
    revision = f"@{entry.draft_revision}" if entry.draft_revision else ""
    name = f"{entry.draft}{revision}" if entry.draft else drafter_of(entry.model) or ""
    return name, partial(open_draft, engine, name)


def _unreported(what: str, share: float) -> None:
    """Report no progress: what is opened is on this machine."""


def _shown(entry: CatalogEntry, report: ExaminationReport) -> dict[str, Any]:
    """Write the report as the page shows it: with charts, and without the names of the host's folders."""
    plain: dict[str, Any] = _public(entry, report.to_json())
    return plain | {"drafter": report.drafter.rpartition(" ")[2], "charts": figures(report)}


def _public(entry: CatalogEntry, value: Any) -> Any:
    """Take the names of folders out of every text of a report."""
    if isinstance(value, dict):
        return {name: _public(entry, each) for name, each in value.items()}
    if isinstance(value, list):
        return [_public(entry, each) for each in value]
    return without_places(entry, value) if isinstance(value, str) else value
