"""Write the page as plain files: `python -m app.hosting.static_site [--out FOLDER]`, or `make static`.

The opening race, the gallery, the recorded race, the lessons, the costs of passes, and the cards of the sample run
folders with their steps: the same player and the same addresses, for a Static Space, GitHub Pages or a USB stick.
Features that need a server say so.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import html
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from plotly.offline import get_plotlyjs

from analysis.cost.grid import COUNTED, tokens_per_step
from decoding.errors import SpecscopeError
from decoding.trace.file import parse_trace
from decoding.types import Trace
from viz.lessons.plain_page import plain_lesson
from viz.page import style
from viz.scripts import join
from viz.stream.play import Play
from viz.views import views_of

from ..debug.calls import DebugCalls
from ..debug.cards import CARDS
from ..debug.view import step_facts
from ..jobs.recorded_race import opening, recorded_race
from ..jobs.streaming import page_line
from ..server.limits import LIMITS
from ..server.machine import elsewhere
from ..state import AppState
from ..store.pass_costs import shipped_costs
from ..store.run_costs import OPEN, WINDOWS, RunCosts
from ..store.trace_store import Proof
from .folder import folder_bytes, renew
from .forms import ROOT

SHEETS = ("plain", "page", "debug", "cost", "learn")
MOST_BYTES = 21_000_000
SCREENS = {"run": "Run", "race": "Race", "debug": "Debug", "cost": "Cost", "learn": "Learn"}
_PLACES = {screen: "viewer" if screen == "run" else f"{screen}-viewer" for screen in SCREENS}
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Specscope</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="style.css">
<script src="page.js" data-opening="page/opening" data-landing="page/landing" data-plotly="page/plotly"></script>
</head>
<body>
<div class="gradio-container"><div class="main">
<header class="app-header">
<h1 class="app-name"><a class="app-home" href="?" title="Watch the opening">Specscope</a></h1>
<p class="app-motto">How a language model writes several tokens per step, without changing its text.</p>
<button type="button" class="app-button" id="app-theme" aria-label="Light or dark">◐</button>
</header>
<noscript><p>Without scripts there is no player, but there are the lessons, with what their runs did as tables:</p>
<ol>{lessons}</ol></noscript>
<div class="tabs" id="app-tabs">
<div class="tab-wrapper"><div class="tab-container" role="tablist">{tabs}</div></div>
{panels}
</div>
</div></div>
</body>
</html>
"""


def write_site(out: Path, wanted: Callable[[str], bool] = lambda run: True) -> int:
    """Empty the folder and write these runs to it; returns its size in bytes."""
    app_state = AppState(replay_only=True)
    landing = app_state.recordings.landing
    assert landing is not None, "the checkout has no recordings"
    renew(out)
    lessons = app_state.lessons.contents()
    _write(out / "index.html", _index([(each["id"], each["title"]) for each in lessons]))
    _write(out / "page.js", join(ROOT / "assets" / "page" / "plain.js"))
    sheets = [(ROOT / "assets" / "page" / f"{name}.css").read_text(encoding="utf-8") for name in SHEETS]
    _write(out / "style.css", "\n".join([sheets[0], style(), *sheets[1:]]))
    data = out / "data"
    _give(data, "page/plotly", {"script": get_plotlyjs()})
    _give(data, "page/opening", {"lines": opening(app_state.recordings)})
    _give(data, "page/landing", {"lines": app_state.calls.recording_lines(landing.id)})
    _give(data, "page/race", {"lines": recorded_race(app_state.recordings, live=False)})
    viewer = {"gallery": app_state.recordings.gallery(), "landing": landing.id, "largest": 0}
    learn = {"lessons": lessons, "glossary": dict(app_state.lessons.glossary)}
    listed = dict[str, list[dict[str, Any]]]()  # steps by run folder
    for folder in debug_folders(app_state.debug):
        cards = debug_cards(app_state.debug, folder)
        steps = debug_steps(app_state.debug, cards)
        _give(data, f"debug/{folder}", cards)
        _give(data, f"steps/{folder}", steps)
        listed[folder] = steps["steps"]
        costs_here = app_state.debug.call("costs", folder)
        _give(data, f"costs/folder-{folder}", _playable(costs_here, {step["run"] for step in steps["steps"]}))
    costs = RunCosts(app_state.recordings, app_state.lessons)
    groups = costs.groups()
    written = {method: tokens_per_step(method) for method in COUNTED}
    cost = {"curves": shipped_costs(), "groups": groups, "written": written, "tree_runs": costs.of_trees()}
    for group in (OPEN, WINDOWS, *(each["id"] for each in groups if wanted(each["id"]))):
        _give(data, f"costs/{group}", costs.of(group))
    for each in lessons:
        lesson = app_state.lessons.lesson(each["id"])
        _give(data, f"lessons/{each['id']}", lesson)
        _write(out / "lessons" / f"{each['id']}.html", plain_lesson(lesson, app_state.lessons.trace))
    names = list[str]()
    for name, trace, proof, about in _runs(app_state, listed, wanted):
        _give(data, f"runs/{name}", _whole(name, trace, proof, about))
        names.append(name)
    props = {"viewer": viewer, "cost": cost, "learn": learn, "runs": names, "folders": [*listed]}
    _give(data, "page/props", props)
    return folder_bytes(out)


def _playable(costs: dict[str, Any], runs: set[int]) -> dict[str, Any]:
    """Leave out the position of a step, unless its run is among these."""
    ours = [each | {"at": [at if at[0] in runs else None for at in each["at"]]} for each in costs["runs"]]
    return costs | {"runs": ours}


def debug_folders(calls: DebugCalls) -> list[str]:
    """Return the run folders that ship."""
    return [each["id"] for each in calls.call("open", "")["folders"]]


def debug_cards(calls: DebugCalls, folder: str) -> dict[str, Any]:
    """Compute what the Debug page shows of a run folder."""
    shown = calls.call("open", f"screen=debug&folder={folder}")
    address = shown.get("address", "")
    return {"open": shown, "charts": {key: calls.call("chart", [address, key]) for key in CARDS}}


def debug_steps(calls: DebugCalls, cards: dict[str, Any]) -> dict[str, Any]:
    """List all steps that some row of a card counts, and for each row the positions of its steps in this list."""
    view = calls.view(cards["open"]["address"])
    rows = [(key, row) for key, chart in cards["charts"].items() for row in range(len(chart["results"][0]["rows"]))]
    counted = {f"{key}:{row}": view.behind(key, row) for key, row in [("", -1), *rows]}
    listed = np.unique(np.concatenate([each.places for each in counted.values()]))
    return {
        "steps": [step_facts(view.folder, int(at)) for at in listed],
        "behind": {
            name: {"at": np.searchsorted(listed, each.places).tolist(), **each.order()}
            for name, each in counted.items()
        },
        "listed": LIMITS.listed_steps,
    }


def _runs(
    app_state: AppState, listed: dict[str, list[dict[str, Any]]], wanted: Callable[[str], bool]
) -> Iterator[tuple[str, Trace, Proof, dict[str, Any]]]:
    """Yield the recordings of gallery, lessons and run folders' listed steps, with what the page says of each."""
    abouts: dict[str, dict[str, Any]] = {
        each.id: {"title": each.title, "shows": each.shows, "step": each.step} for each in app_state.recordings
    }
    abouts |= {name: {"title": app_state.lessons.title_of(name)} for name in app_state.lessons.recordings()}
    for name in filter(wanted, abouts):
        packed = app_state.recordings.packed(name) or app_state.lessons.packed(name)
        if packed is not None:
            yield name, parse_trace(packed.data), packed.proof, abouts[name]
    for folder, steps in listed.items():
        for run in sorted({step["run"] for step in steps}):
            if wanted(f"debug-{folder}-{run}"):
                trace, about = app_state.debug.recorded(folder, run)
                yield f"debug-{folder}-{run}", trace, Proof(), about


def _whole(name: str, trace: Trace, proof: Proof, about: dict[str, Any]) -> dict[str, Any]:
    """Return all lines of a run, with the details that a server would make when a step is opened."""
    play = Play(trace.header, name, None, views_of(trace))
    lines = [page_line(run=name, address=f"run={name}", machine=elsewhere(trace.header), **about)]
    lines += [play.begin(trace.texts), *(play.step(step) for step in trace.steps)]
    lines.append(play.end(trace.summary, proof.check, proof.speedup))
    steps = range(len(trace.steps))
    detail, rows = ([_read(part(step)) for step in steps] for part in (play.detail, play.rows))
    return {"lines": _read("".join(lines)), "detail": detail, "rows": rows}


def _read(lines: str) -> list[Any]:
    """Parse JSON lines: as strings within JSON, with their quotes escaped, they would take more bytes."""
    return [json.loads(line) for line in lines.split("\n") if line]


def _give(folder: Path, name: str, value: Any) -> None:
    """Write JSON as a script that calls `SpecscopeData` with it, since a page opened from a file cannot fetch."""
    text = json.dumps(value, separators=(",", ":"))
    packed = base64.b85encode(gzip.compress(text.encode("ascii"), 9, mtime=0)).decode()
    _write(folder / f"{name}.js", f'SpecscopeData("{name}", "{packed}");\n')


def _index(lessons: list[tuple[str, str]]) -> str:
    tabs = "".join(
        f'<button type="button" role="tab" id="tab-{screen}" aria-controls="{screen}">{label}</button>'
        for screen, label in SCREENS.items()
    )
    panels = "\n".join(
        f'<div class="tabitem" id="{screen}" role="tabpanel" aria-labelledby="tab-{screen}" hidden>'
        f'<div id="{place}"></div></div>'
        for screen, place in _PLACES.items()
    )
    links = "".join(f'<li><a href="lessons/{name}.html">{html.escape(title)}</a></li>' for name, title in lessons)
    return _PAGE.format(lessons=links, tabs=tabs, panels=panels)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main() -> int:
    """Write the site."""
    parser = argparse.ArgumentParser(prog="python -m app.hosting.static_site", description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "static", metavar="FOLDER")
    out = parser.parse_args().out
    try:
        size = write_site(out)
    except SpecscopeError as error:
        sys.stderr.write(f"specscope: {error}\n")
        return 2
    sys.stdout.write(f"{out}: {size / 1e6:.1f} MB, begin with index.html\n")
    if size > MOST_BYTES:
        sys.stderr.write(f"specscope: that is more than {MOST_BYTES / 1e6:g} MB\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
