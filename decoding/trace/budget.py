"""Counts the content of an untrusted file while it is read, and refuses the file once a count exceeds its limit.

The number of bytes is not enough: a megabyte of empty lists takes a kilobyte compressed, and 25 MB as objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..types import JSON, Header, Step
from .json_line import show, values_in
from .lines import Limits
from .rules import require


class ReadBudget:
    """The counts of the lines so far."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._values = self._panels = self._nodes = self._characters = 0

    def line(self, values: int, number: int) -> None:
        """Count a line and its `values`, before it is parsed."""
        most, self._values = self._limits.line_values, self._values + values
        require(values <= most, f"line {number} holds {values} values, more than the {most} allowed")
        most = self._limits.total_values
        require(self._values <= most, f"the file holds more than the {most} values allowed, at line {number}")

    def header(self, header: Header, where: str) -> None:
        """Check the lengths of a header's lists: some views draw every token of them."""
        for name in ("prompt", "reference", "end_tokens", "stop"):
            length, most = len(getattr(header, name)), self._limits.prompt
            require(length <= most, f"{where}.{name} has {length} entries, more than the {most} allowed")

    def texts(self, new: Iterable[str], total: int, where: str) -> None:
        """Count new display texts; with them, `total` tokens have one."""
        self._characters += sum(map(len, new))
        most = self._limits.texts
        require(total <= most, f"{where} has texts for more than the {most} tokens allowed")
        most = self._limits.text_characters
        require(self._characters <= most, f"{where} makes more than the {most} characters allowed for all texts")

    def panel(self, panel: JSON, number: int, where: str) -> None:
        """Count the values of a step's panel, and check its names."""
        if isinstance(panel, dict) and self._limits.panels is not None:
            unknown = next((name for name in panel if name not in self._limits.panels), None)
            advice = "take it out of the file, or record the run again"
            holds = f"{where}.panel of step {number} holds {show(unknown)}, which no method writes: {advice}"
            require(unknown is None, holds)
        most, self._panels = self._limits.panel_values, self._panels + values_in(panel)
        require(self._panels <= most, f"{where}.panel makes more than the {most} values allowed for all panels")

    def step(self, step: Step, where: str) -> None:
        """Count the nodes of a step or, if they were not recorded, its emitted tokens."""
        most, self._nodes = self._limits.total_nodes, self._nodes + max(len(step.tokens), len(step.emitted))
        advice = "record fewer tokens, or with smaller settings"
        require(self._nodes <= most, f"{where} makes more than the {most} nodes read of all steps: {advice}")

    def whole(self, steps: Iterable[Step], texts: Mapping[int, str]) -> None:
        """Check the length of the whole text, once all texts are read."""
        most = self._limits.written_characters
        written = sum(len(texts.get(token, "")) for step in steps for token in step.emitted)
        require(written <= most, f"the run's text has {written} characters, more than the {most} allowed")
