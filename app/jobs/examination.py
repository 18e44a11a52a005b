"""An examination: the doctor looks at the drafter of a model."""

from __future__ import annotations

import logging
import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analysis.doctor import KINDS
from decoding.embedded import PARTS, drafter_of
from decoding.errors import ModelError, ParamError, UnfitError
from decoding.methods import METHODS
from viz.stream import play as player
from viz.stream.lines import line

from ..controls import runnable
from ..models.entry import CatalogEntry
from ..server.limits import LIMITS
from .doctor_chart import figures
from .measured_prompts import SEED, measured_prompts
from .reported import reported
from .runner import StartedJob
from .streaming import Lines, page_line

if TYPE_CHECKING:
    from analysis.doctor.examine import ExaminationReport
    from analysis.doctor.probes import Examined
    from decoding.engine import Engine

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

    def opening(self, started: StartedJob) -> str:
        return page_line(run=started.id, title=f"{METHODS[self.method].label} on {self.entry.name}")

    def lines(self, started: StartedJob) -> Lines:
        """Yield what is tried, then the report."""
        report = yield from _examined(started.engine, self.entry, self.method, started)
        yield player.fault("The examination was stopped.") if report is None else line("done", report=_shown(report))


def _examined(
    engine: Engine, entry: CatalogEntry, method: str, started: StartedJob
) -> Generator[str, None, ExaminationReport | None]:
    """Examine the drafter; returns None if the job was cancelled."""
    from analysis.doctor.examine import examine, refused
    from analysis.doctor.texts import write_texts

    begun = time.perf_counter()
    try:
        examined = _open(engine, entry, method)
    except UnfitError as error:
        return refused(method, entry.name, entry.name, error)
    except ModelError as error:  # its message names folders of the host
        _log.warning("%s cannot be examined: %s", entry.name, error)
        raise ModelError(
            f"the drafter of {entry.name} cannot be examined on this server now: choose another method or model"
        ) from None
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


def _open(engine: Engine, entry: CatalogEntry, method: str) -> Examined:
    """Open the drafter that the model's engine was loaded with."""
    from analysis.doctor.drafters import open_draft, open_drafter

    if method == "draft_model":
        revision = f"@{entry.draft_revision}" if entry.draft_revision else ""
        return open_draft(engine, f"{entry.draft}{revision}" if entry.draft else drafter_of(entry.model) or "")
    part = FLAGS[method]
    folder = entry.part_places.get(part) or str(PARTS[entry.model][part])
    return open_drafter(engine, part, folder, lambda what, share: None, download=False, loaded=entry.model)


def _shown(report: ExaminationReport) -> dict[str, Any]:
    """Write the report as the page shows it: with charts, and without the name of a folder."""
    plain = report.to_json()
    return plain | {"drafter": report.drafter.rpartition(" ")[2], "charts": figures(report)}
