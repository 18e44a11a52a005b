"""The guardrails that a page's owner can switch on, and their effect on a run."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from analysis.guardrails import ACCEPTABLE, CATEGORIES, LOW_RECALL, UNCLEAR, classify
from decoding import smollm2
from decoding.embedded import TARGET
from viz.stream import play as player

from ..models.entry import CatalogEntry
from ..server.limits import LIMITS
from .streaming import Lines, ModerationError, UnbegunError

if TYPE_CHECKING:
    import threading

    from decoding.engine import Engine

SYSTEM, MODERATE = "system", "moderate"
MODES = (SYSTEM, MODERATE)
# Shares of acceptable prompts for the models that the page ships with, by `python -m decoding guardrails`.
_RECALL = {smollm2.NAME: 0.025, TARGET: 0.025}
_log = logging.getLogger(__name__)


class Guardrails:
    """Which guardrails are on."""

    def __init__(self, modes: Collection[str] = ()) -> None:
        self.system, self.moderates = SYSTEM in modes, MODERATE in modes

    @property
    def sentence(self) -> str:
        """Tell visitors which guardrails are on; empty if none is."""
        parts = ["each prompt begins with a system prompt that asks for careful answers"] if self.system else []
        if self.moderates:
            parts.append("the model itself classifies prompt and answer, and only what it finds acceptable is shown")
            parts.append("traces that you open from a file are not classified")
        return f"Guardrails: {'; '.join(parts)}." if parts else ""

    def doubts(self, entries: Iterable[CatalogEntry]) -> list[str]:
        """Warn the owner of each model that may be a poor moderator."""
        if not self.moderates:
            return []
        sentences = list[str]()
        for entry in entries:
            recall = _RECALL.get(entry.model)
            if recall is None:
                sentences.append(
                    f"how well {entry.name} moderates was not measured: run `python -m decoding guardrails` with it"
                )
            elif recall < LOW_RECALL:
                sentences.append(f"{entry.name} cannot moderate: of acceptable prompts it passes {recall:.1%}")
        return sentences

    def check(self, engine: Engine, what: str, text: str, cancel: threading.Event | None, lane: int | None) -> Lines:
        """Classify a prompt or an answer; raises ModerationError if it is refused, so that none of it is shown."""
        yield player.state("reading", f"The guardrails classify the {what}.", lane=lane)
        category = classify(engine, text, cancel=cancel, seconds=LIMITS.seconds)
        if cancel is not None and cancel.is_set():
            raise UnbegunError  # what was cut off is no verdict
        facts = {"event": "verdict", "what": what, "category": category}
        level = logging.INFO if category == ACCEPTABLE else logging.WARNING
        _log.log(level, "the guardrails found the %s of a run %s", what, category, extra={"facts": facts})
        if category == ACCEPTABLE:
            return
        reason = "the model gave no category" if category == UNCLEAR else f"the model found {CATEGORIES[category]}"
        raise ModerationError(f"the guardrails of this page refused the {what}: {reason}; change the prompt")
