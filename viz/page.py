"""Writes a run as one file that replays in any browser, without a server or a network."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from os import PathLike
from pathlib import Path

from plotly.offline import get_plotlyjs

from decoding.errors import TraceError
from decoding.installation import assets
from decoding.types import Trace

from .methods import label_of
from .palette import DARK, LIGHT
from .scripts import join
from .stream.play import Play
from .views import views_of
from .views.check import Rescored

_BODY = f"""
body {{ margin: 0; padding: 12px; background: {LIGHT["paper"]}; }}
body.dark {{ background: {DARK["paper"]}; color-scheme: dark; }}
"""
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main id="specscope" class="specscope"></main>
<script type="application/json" id="asked">{asked}</script>
<script type="application/json" id="lines">{lines}</script>
<script type="text/plain" id="answers">{answers}</script>
{scripts}
</body>
</html>
"""


class TooLongError(TraceError):
    """A run whose page would be larger than allowed."""


def write_html(
    trace: Trace,
    path: str | PathLike[str],
    *,
    check: Rescored | None = None,
    speedup: float | None = None,
    step: int | None = None,
) -> None:
    """Write a replay of a run; `step` is the one that it opens at, `check` a rescore's outcome as a dictionary."""
    Path(path).write_text(page(trace, check=check, speedup=speedup, step=step), encoding="utf-8")


def page(
    trace: Trace,
    *,
    check: Rescored | None = None,
    speedup: float | None = None,
    step: int | None = None,
    most: int | None = None,
) -> str:
    """Return the replay as a text. Raises TooLongError if the run takes more than `most` characters."""
    play = Play(trace.header, cap=None, views=views_of(trace))
    lines = [play.begin(trace.texts)]
    size = len(lines[0])
    for each in trace.steps:
        lines.append(play.step(each))
        size += len(lines[-1])
        if most is not None and size > most:
            raise TooLongError("this run is too long for one page: download its trace instead")
    lines.append(play.end(trace.summary, check, speedup))
    steps = range(len(trace.steps))
    answers = json.dumps({"detail": [*map(play.detail, steps)], "rows": [*map(play.rows, steps)]})
    scripts = [get_plotlyjs(), join(assets() / "player" / "offline.js")]
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    return _PAGE.format(
        # Nothing but these very scripts runs, and nothing is loaded from anywhere; plotly writes styles of its own.
        policy=f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'",
        title=html.escape(f"{label_of(trace.header)} on {trace.header.model.name} - Specscope"[:120]),
        style=_BODY + style(),
        asked=inert(json.dumps({"step": step})),
        lines=inert("".join(lines)),
        answers=base64.b64encode(gzip.compress(answers.encode("ascii"), mtime=0)).decode(),  # they repeat themselves
        scripts="\n".join(f"<script>{_whole(script)}</script>" for script in scripts),
    )


def style() -> str:
    """Return the page's style sheets, joined in the order of their names."""
    return "\n".join(file.read_text(encoding="utf-8") for file in sorted(assets().glob("style/*.css")))


def inert(text: str) -> str:
    """Escape JSON so that it cannot end the element around it."""
    return text.replace("<", r"\u003c")


def _whole(script: str) -> str:
    """Return a script that holds no end tag, which would end the element too early."""
    assert "</script" not in script.lower(), "a script that is written into a page must not hold an end tag"
    return script
