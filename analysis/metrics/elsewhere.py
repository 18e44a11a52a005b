"""What the recorded steps would gain on other devices: projected by what passes were measured to cost there."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

import numpy as np

from decoding.packed import ASSETS
from decoding.types import JSON
from decoding.user_cache import user_cache

from .columns import Array
from .result import MetricResult, UnknownError, result
from .selection import Selection
from .step_costs import Pair, costs
from .times import LATER, TOTAL, later_steps

_SHIPPED = ASSETS / "costs"


@dataclass(frozen=True, slots=True)
class PassCosts:
    """c(T): what a pass over T rows costs in passes over one row, where it was measured."""

    name: str
    rows: tuple[int, ...]
    costs: tuple[float, ...]

    def at(self, rows: Array) -> Array:
        """Return the cost of passes over these rows, interpolated between measured ones; NaN beyond the last."""
        return np.interp(rows, self.rows, self.costs, right=np.nan)


def expected_elsewhere(selection: Selection) -> MetricResult:
    """Project the speed-up on the devices whose passes were measured."""
    pair = Pair.of(selection)
    there = [(device.name, projected(pair, device)) for device in measured_devices((_SHIPPED, *_own()))]
    there = [(name, speed) for name, speed in there if np.isfinite(speed)]
    if not there:
        raise UnknownError("no device's passes were measured over as many rows as these steps have")
    here = costs(pair).speed
    rows: list[list[JSON]] = [["this record", here, "measured"], *([name, speed, "projected"] for name, speed in there)]
    (worst, least), (best, most) = (choose(there, key=itemgetter(1)) for choose in (min, max))
    sentence = f"Measured: {here:.2f} times as fast as one token at a time. Projected: {most:.2f} times with {best}"
    sentence += f", {least:.2f} with {worst}." if least < most else "."
    columns = ("device", "times", "known by")
    where, slowest = [LATER] * len(rows), [TOTAL] * len(rows)
    return result(
        sentence, value=most, unit="times, projected", columns=columns, rows=rows, where=where, slowest=slowest
    )


def _own() -> list[Path]:
    """Return the folder in which `cost` saves what it measures, where there is one."""
    home = user_cache()
    return [] if home is None else [home / "costs"]


def projected(pair: Pair, device: PassCosts) -> float:
    """Return the speed-up of later steps with a device's passes; NaN where such large ones were not measured.

    Drafting, the time outside passes and a pass over one row have the shares of an autoregressive step that they have
    in the record.
    """
    priced = costs(pair)
    if not priced.split:
        raise UnknownError("this record does not split a step's time into its phases")
    plain = pair.plain
    alone = later_steps(plain)
    single = plain.steps.number("forward_ms")[alone].sum() / plain.steps.number("total_ms")[alone].sum()
    fed = pair.drafting.steps.number("fed")[later_steps(pair.drafting)]
    more = float(np.mean(device.at(fed))) - 1
    return float(priced.free / (1 + priced.draft + priced.outside + single * more))


def measured_devices(folders: Iterable[Path]) -> list[PassCosts]:
    """Read c(T) of every model on every device, after the shortest text that was measured."""
    devices = dict[str, PassCosts]()
    for path in (path for folder in folders for path in sorted(folder.glob("*.json"))):
        with suppress(OSError, ValueError, KeyError):  # another version's
            measured = json.loads(path.read_text(encoding="utf-8"))
            for shape in sorted(measured["shapes"], key=lambda each: -each["context"]):
                name, times = f"{shape['shape']} on {measured['device']}, {measured['dtype']}", shape["milliseconds"]
                devices[name] = PassCosts(name, tuple(shape["rows"]), tuple(time / times[0] for time in times))
    return list(devices.values())
