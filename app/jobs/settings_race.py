"""A race of a method's settings on the visitor's prompt and some others, to find the fastest on this server."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from analysis.candidates import CANDIDATES
from decoding.errors import ParamError
from decoding.methods import METHODS
from decoding.types import JSON
from viz.params import setting_label
from viz.stream import play as player
from viz.stream.lines import line
from viz.wording import count

from .. import address
from ..controls import Order
from ..models.entry import CatalogEntry
from ..server.limits import LIMITS
from .measured_prompts import measured_prompts
from .reported import reported
from .run_from_order import prompt_of
from .runner import StartedJob
from .streaming import Lines, page_line

_SHOWN = 12  # settings in the table
_SPARE = 0.8  # of the time that a race may take, for which settings are chosen
_LATE = (
    "a race of settings may take {seconds:g} seconds on this page, and this one takes longer: run "
    "`python -m decoding tune` on your machine, or choose a smaller model"
)


@dataclass(slots=True)
class SettingsRace:
    """The race for one order: it decodes the order's prompt with settings of its method."""

    order: Order
    spare = None

    def __post_init__(self) -> None:
        if self.order.method.name not in CANDIDATES:
            raise ParamError(f"{self.order.method.label} has no settings to choose: choose another method")
        if self.order.entry.is_metered:
            raise ParamError(
                "a GPU that is lent for seconds is too short for a race of settings: run `python -m decoding tune` on "
                "your machine"
            )

    @property
    def entry(self) -> CatalogEntry:
        return self.order.entry

    @property
    def seconds(self) -> float:
        return LIMITS.tuning_seconds

    def opening(self, started: StartedJob) -> str:
        return page_line(run=started.id, title=f"{self.order.method.label} on {self.entry.name}")

    def lines(self, started: StartedJob) -> Lines:
        """Yield the raced settings, then the winner."""
        from analysis.bench.methods import as_prompt
        from analysis.tuning import tuning

        engine, method = started.engine, self.order.method.name
        others = measured_prompts(self.entry, LIMITS.tuning_prompts)
        ids = prompt_of(engine, self.order)
        prompts = [ids, *(as_prompt(engine, [("user", each.turns[0])]) for each in others)]
        tokens = max(2, min(LIMITS.tuning_tokens, self.entry.max_new_tokens, engine.model.card.context - len(ids)))
        yield from started.prepare(self.entry, method)
        work = tuning(engine, method, prompts, tokens, _SPARE * self.seconds)
        report = yield from reported(work, started, "tuning", _LATE.format(seconds=LIMITS.tuning_seconds))
        yield player.fault("The race was stopped.") if report is None else line("done", report=self._shown(report))

    def _shown(self, report: dict[str, JSON]) -> dict[str, Any]:
        """Write the report as the page shows it, with the address of the winner's settings."""
        method = self.order.method
        won = method if report["speculate"] else METHODS["autoregressive"]
        best = replace(self.order, method=won, params=won.Params.parse(report["params"] if won is method else {}))
        rows = [(_spelt(self.order, row["params"]), row["answers"], row["tokens_per_second"]) for row in report["rows"]]
        return {
            "verdict": _verdict(self.order, report),
            "speculate": report["speculate"],
            "address": address.write(best),
            "base": report["autoregressive_tokens_per_second"],
            "compared": report["compared"],
            "rows": rows[:_SHOWN],
            "others": len(rows[_SHOWN:]),
        }


def _verdict(order: Order, report: dict[str, JSON]) -> str:
    """Say in sentences what won, by how much, and on what."""
    best, base, label = report["tokens_per_second"], report["autoregressive_tokens_per_second"], order.method.label
    settings, numbers = _spelt(order, report["params"]), f"{best:.1f} tokens per second against {base:.1f}"
    gain = f"{report['speedup_vs_autoregressive']:.2f}× as fast as autoregressive decoding"
    if report["speculate"]:
        won = f"{label} decodes {gain} here: {numbers}, with {settings}."
    else:
        won = f"Do not speculate with {label} here: at its fastest, with {settings}, it decodes {gain}, {numbers}."
    prompts, others = report["compared"], report["disturbed_runs"]
    where = "your prompt" if prompts == 1 else f"your prompt and {count(prompts - 1, 'other')} (the same at each press)"
    faster = f"it was faster on {report['faster_on']} of {prompts}" if prompts > 1 else ""
    close = ", but the difference is too close to call" if report["too_close"] else ""
    unsure = (
        f"Unsure: other work disturbed {count(others, 'run')}; race again when the server is quiet. " if others else ""
    )
    raced, settings = len(report["rows"]), report["candidates"]
    some = f" {raced} of {settings} settings were raced, as many as the time allows." if raced < settings else ""
    on = f"{where}, up to {report['max_new_tokens']} tokens each"
    return f"{unsure}{won} Measured without sampling on {on}{faster and f'; {faster}'}{close}.{some}"


def _spelt(order: Order, params: dict[str, JSON]) -> str:
    """Name the settings that differ from the defaults, with the form's labels."""
    changed = [row for row in order.method.Params.describe() if params[row["name"]] != row["default"]]
    return ", ".join(f"{setting_label(row)} {_shown(params[row['name']])}" for row in changed) or "the defaults"


def _shown(value: JSON) -> str:
    return ("off", "on")[value] if isinstance(value, bool) else str(value)
