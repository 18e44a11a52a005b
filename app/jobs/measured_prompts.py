"""The prompts on which the page measures a drafter or a method's settings."""

from __future__ import annotations

from analysis.prompts.tasks import ENGLISH, Task, read_tasks, sample, suite
from decoding.embedded import FOLDERS, TARGET

from ..models.entry import CatalogEntry

SEED = 0  # of the choice, as on the command line: what is measured again is measured on the same prompts


def measured_prompts(entry: CatalogEntry, count: int) -> tuple[Task, ...]:
    """Choose questions that a model understands, the same at each call."""
    return sample(read_tasks(suite(TARGET if entry.model in FOLDERS else ENGLISH)), count, SEED)
