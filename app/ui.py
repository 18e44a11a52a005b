"""The whole page: its tabs, what an address opens, and what happens when a tab is closed."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from typing import Any
from urllib.parse import parse_qsl

import gradio as gr

from decoding.errors import ParamError, TraceError

from . import log, malloc, server
from .catalog import EMBEDDED, read_catalog
from .events import QUICK, tolerant
from .hosting import host, spoken
from .middleware.origin import Owner
from .state import House
from .viewer import viewer as make_viewer

TITLE = "Specscope"
_NOBODY = Owner()
_LAST_STEP, _LAST_ANSWER = 2.5, 2.0  # seconds
_MOST_TOLD = 3  # of what is wrong with an address: the rest is most often a consequence
_HEAD = """<header class="app-header"><h1 class="app-name">Specscope</h1>
<p class="app-motto">How a language model writes several tokens per step, and still exactly its own text.</p>
<button type="button" class="app-button" id="app-theme" aria-label="Light or dark">◐</button></header>"""


def build(house: House) -> gr.Blocks:
    """The page on a house."""
    page = gr.Blocks(title=TITLE, analytics_enabled=False, fill_width=True, delete_cache=(3600, 3600))
    with page:
        gr.HTML(
            _HEAD,
            html_template="${value}",
            js_on_load="element.querySelector('#app-theme').addEventListener('click', SpecscopeApp.theme);",
            apply_default_css=False,
        )
        viewer = make_viewer(house)
        if house.replay_only:
            _replays(house, page, viewer)
        else:
            _lives(house, page, viewer)
    return page


def _replays(house: House, page: gr.Blocks, viewer: gr.HTML) -> None:
    """Recorded runs and dropped traces only."""
    gr.Markdown("This copy shows recorded runs. Open one, or drop a trace of your own on the page.")
    viewer.render()

    def opened(request: gr.Request) -> Any:
        return _asked_run(house, (request.query_params or {}).get("run"), [])

    page.load(tolerant(opened), None, viewer, **QUICK)


def _lives(house: House, page: gr.Blocks, viewer: gr.HTML) -> None:
    """The whole page."""
    from .address import parse
    from .live_runs import RACE
    from .pages import race, run
    from .race_from_run import take

    with gr.Tabs(elem_id="app-tabs") as tabs:
        with gr.Tab("Run", id="run", elem_id="run"):
            form = run.build(house, viewer)
        with gr.Tab("Race", id="race", elem_id="race"):
            raced = race.build(house)

    def opened(request: gr.Request) -> dict[Any, Any]:
        query = {key: value for key, value in (request.query_params or {}).items() if key != "__theme"}
        shown: dict[Any, Any] = {tabs: gr.skip()}  # an empty answer would be taken for one value
        if not query:
            return shown
        state = parse(query, house.catalog)
        shown |= raced.show_state(state) if state.screen == "race" else form.show_state(state)
        wrong = state.wrong if state.screen == "run" else []  # each page says what is wrong with its own address
        shown |= {tabs: gr.Tabs(selected=state.screen), viewer: _asked_run(house, state.run, wrong)}
        if state.screen == "race" and state.wrong:
            shown[raced.prompt.hint] = gr.update(value=_told(state.wrong), visible=True)
        return shown

    def compared(event: gr.EventData) -> dict[Any, Any]:
        """The race of what is on the screen: its prompt, model, method and sampling."""
        asked = getattr(event, "address", "")
        state, remarks = take(house, dict(parse_qsl(asked)) if isinstance(asked, str) else {})
        shown: dict[Any, Any] = {tabs: gr.Tabs(selected="race")} | raced.show_state(state)
        if remarks:
            shown[raced.prompt.hint] = gr.update(value=" ".join(remarks), visible=True)
        return shown

    def closed(request: gr.Request) -> None:
        house.runs.forget(str(request.session_hash))
        house.runs.forget(f"{request.session_hash}{RACE}")

    page.load(tolerant(opened), None, [tabs, viewer, *form.outputs, *raced.outputs], **QUICK)
    viewer.race(tolerant(compared), None, [tabs, *raced.outputs], **QUICK)
    page.unload(tolerant(closed))


def _asked_run(house: House, run: str | None, wrong: list[str]) -> Any:
    """The lines of the run that an address names, and what is wrong with it; the landing run is on its way already."""
    landing, lines = house.recordings.landing, ""
    if run is not None and (landing is None or run != landing.id):
        try:
            lines = house.answers.opened(run)["lines"]
        except TraceError as error:
            wrong = [*wrong, str(error)]
    if wrong:
        lines = host(notice=_told(wrong)) + lines
    return lines or gr.skip()


def _told(wrong: list[str]) -> str:
    return " ".join(spoken(sentence) for sentence in wrong[:_MOST_TOLD])


def make_house(replay_only: bool, models: str | None, model: str | None) -> House:
    """What the command line asks for."""
    catalog = dict(EMBEDDED) if models is None else read_catalog(models)
    if model is not None and model not in catalog:
        raise ParamError(f"there is no model {model[:64]!r} in the catalog; choose one of {', '.join(catalog)}")
    return House(catalog, model or next(iter(catalog)), replay_only)


def serve(
    host: str, port: int, *, replay_only: bool, models: str | None, model: str | None, owner: Owner = _NOBODY
) -> None:
    """Serve the page until a signal ends it; the first model is loaded meanwhile."""
    log.configure()
    malloc.limit_arenas()
    server.check_free(host, port)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    house = make_house(replay_only, models, model)
    landing = house.recordings.landing
    site = server.Site(house.answers.recording(landing.id) if landing else "")
    running = server.launch(build(house), site, host, port, house.tracker, owner)
    gc.collect()
    gc.freeze()  # what the server is made of stays: looking through it for garbage took a tenth of a run's time
    server.say(f"Specscope is at http://{host}:{port}")
    if not replay_only:
        house.runs.engines.ask(house.catalog[house.first])
    ended.wait()
    _end(house, running)


def _end(house: House, running: server.Running) -> None:
    """Runs end after the step that goes on, then the server: a thread inside torch must not outlive the interpreter."""
    calm = house.replay_only or house.runs.close(_LAST_STEP)
    if not running.stop(_LAST_ANSWER) or not calm:
        server.say("Not everything could be ended in time.")
    sys.stdout.flush()
    os._exit(0)  # a model may still be loading
