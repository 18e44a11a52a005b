"""Write the methods, from their classes."""

from __future__ import annotations

import json

from decoding import METHODS, Method, Params

from ..markdown import code, table


def section(title: str) -> str:
    """Write every method: where its guesses come from, what it needs, its parameters and presets."""
    return f"## {title}\n\n" + "".join(map(_entry, METHODS.values()))


def _entry(method: type[Method]) -> str:
    needs = f" Needs: {', '.join(map(code, sorted(method.needs)))}." if method.needs else ""
    reference = " Takes a `reference`." if method.takes_reference else ""
    rows = [(code(name), code(json.dumps(values))) for name, values in method.Params.presets.items()]
    head = f"### `{method.name}`\n\n{method.label}: {method.paper}.{needs}{reference}\n\n"
    return head + (settings(method.Params) or "No parameters.\n\n") + table(("preset", "values"), rows)


def settings(kind: type[Params]) -> str:
    """Write the table of a Params class."""
    return table(
        ("name", "symbol", "type", "default", "range", "help"),
        [
            (
                code(row["name"]),
                row["symbol"] if row["symbol"] != row["name"] else "",
                row["type"],
                code(json.dumps(row["default"])),
                _range(row["min"], row["max"], row["choices"]),
                row["help"],
            )
            for row in kind.describe()
        ],
    )


def _range(low: float | None, high: float | None, choices: list[str]) -> str:
    if choices:
        return ", ".join(map(code, choices))
    if low is None or high is None:
        return "" if low is high else f"at least {low}" if high is None else f"at most {high}"
    return f"{low} to {high}"
