"""The page as a whole: its tabs, the events of opening and closing it, and the server that serves it."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gradio as gr
from starlette.routing import BaseRoute

from analysis.tuned import tuned_here
from decoding.errors import ModelError, ParamError, TraceError

from . import presets
from .api.keys import Keys
from .jobs.recorded_race import opening
from .jobs.streaming import as_sentence, page_line
from .models.catalog import OwnerCatalog, default_catalog, read_catalog
from .pages.events import QUICK, event_address, tab_of, tolerant
from .pages.form_values import on_address
from .pages.lessons_ahead import LessonsAhead
from .pages.page_script import once_loaded
from .pages.viewer import viewer as make_viewer
from .server import health, log, malloc, serving, zero_gpu
from .server.middleware.origin import Owner
from .server.middleware.request_filter import Api
from .server.middleware.routes import Kind
from .state import AppState

if TYPE_CHECKING:
    from .models.model_pool import Loading

TITLE = "Specscope"
_DEFAULT_OWNER = Owner()
_LAST_STEP, _LAST_ANSWER = 2.5, 2.0  # seconds for runs and for requests to end
_LOOK = 0.2  # seconds between two looks at a model that loads
_MAX_PROBLEMS = 3  # of an address that are shown: the others mostly follow from the first
_HEAD = """<header class="app-header">
<h1 class="app-name"><a class="app-home" href="?" title="Watch the opening">Specscope</a></h1>
<p class="app-motto">How a language model writes several tokens per step, without changing its text.</p>
<button type="button" class="app-button" id="app-theme" aria-label="Light or dark">◐</button></header>"""


def build(app_state: AppState) -> gr.Blocks:
    """Lay out the page and connect its events."""
    page = gr.Blocks(title=TITLE, analytics_enabled=False, fill_width=True, delete_cache=(3600, 3600))
    with page:
        gr.HTML(
            _HEAD,
            html_template="${value}",
            js_on_load=once_loaded(
                "element.querySelector('#app-theme').addEventListener('click', SpecscopeApp.theme);"
            ),
            apply_default_css=False,
        )
        viewer = make_viewer(app_state)
        if app_state.replay_only:
            _build_replay_page(app_state, page, viewer)
        else:
            _build_full_page(app_state, page, viewer)
    return page


def _build_replay_page(app_state: AppState, page: gr.Blocks, viewer: gr.HTML) -> None:
    """Lay out the page for recorded runs, the recorded race, uploaded traces and run folders."""
    from .pages.viewer import race_viewer

    with gr.Tabs(elem_id="app-tabs") as tabs:
        with gr.Tab("Run", id="run", elem_id="run"):
            gr.Markdown("This page shows recorded runs. Open one of them, or drop a trace file on the page.")
            viewer.render()
        with gr.Tab("Race", id="race", elem_id="race"):
            race_viewer(app_state).render()
        _add_other_tabs(app_state)

    def opened(request: gr.Request) -> dict[Any, Any]:
        query = request.query_params or {}
        # Without a screen in the address the tabs stay as they are: a visitor may have turned already.
        screen = query.get("screen")
        turned = gr.Tabs(selected=screen) if screen in ("race", "debug", "cost", "learn") else gr.skip()
        return {tabs: turned, viewer: _open_run(app_state, query.get("run"), [])}

    page.load(tolerant(opened), None, [tabs, viewer], **QUICK)


def _build_full_page(app_state: AppState, page: gr.Blocks, viewer: gr.HTML) -> None:
    """Lay out the page with live runs and races."""
    from .address import parse
    from .pages import race, run
    from .race_from_run import race_from_run

    with gr.Tabs(elem_id="app-tabs") as tabs:
        with gr.Tab("Run", id="run", elem_id="run"):
            form = run.build(app_state, viewer)
        with gr.Tab("Race", id="race", elem_id="race"):
            race_form = race.build(app_state)
        _add_other_tabs(app_state)

    if form.own_form is not None:
        form.own_form.wire(form.model, race_form.model)
    landing = app_state.recordings.landing

    def opened(request: gr.Request) -> dict[Any, Any]:
        query = {key: value for key, value in (request.query_params or {}).items() if key != "__theme"}
        state = parse(query, app_state.catalog)
        shown: dict[Any, Any] = {tabs: gr.skip()}  # Gradio takes an empty dictionary for one value
        if not query:
            return shown  # the form begins with the best that is ready; the opening race says itself what it is
        if state.screen == "race" and landing:
            shown |= form.fill({"run": landing.id})
        shown |= race_form.show_state(state) if state.screen == "race" else form.fill(query)
        problems = state.problems if state.screen == "run" else []  # each page shows the problems of its own address
        shown |= {tabs: gr.Tabs(selected=state.screen), viewer: _open_run(app_state, state.run, problems)}
        if state.screen == "race" and state.problems:
            shown[race_form.prompt.hint] = gr.update(value=_as_markdown(_sentences(state.problems)), visible=True)
        return shown

    def filled(event: gr.EventData) -> dict[Any, Any]:
        """Put the settings of the run that was opened into the form."""
        return {form.method: gr.skip()} | form.fill(event_address(event))

    def compared(given: dict[Any, Any], query: dict[str, str]) -> dict[Any, Any]:
        """Open the race form with the prompt, model, method and sampling of the run on the screen."""
        state, remarks = race_from_run(app_state, query, race_form.current_race(given))
        shown: dict[Any, Any] = {tabs: gr.Tabs(selected="race")} | race_form.show_state(state)
        if remarks:
            shown[race_form.prompt.hint] = gr.update(value=" ".join(remarks), visible=True)
        return shown

    def closed(request: gr.Request) -> None:
        app_state.jobs.forget(tab_of(request))

    page.load(tolerant(opened), None, [tabs, viewer, *form.outputs, *race_form.outputs], **QUICK)
    on_address(viewer.race, race_form.inputs, compared, [tabs, *race_form.outputs])
    viewer.fill(tolerant(filled), None, form.outputs, **QUICK)
    page.unload(tolerant(closed))


def _add_other_tabs(app_state: AppState) -> None:
    """Add the tabs that are the same with live runs and without."""
    from .pages import cost, debug, learn

    for name, page in {"debug": debug, "cost": cost, "learn": learn}.items():
        with gr.Tab(name.title(), id=name, elem_id=name):
            page.build(app_state).render()


def _open_run(app_state: AppState, run: str | None, problems: list[str]) -> Any:
    """Return the lines of the run that an address names, and its problems. The page loads the landing run by itself."""
    landing, lines = app_state.recordings.landing, ""
    if run is not None and (landing is None or run != landing.id):
        try:
            lines = app_state.calls.open_run(run)["lines"]
        except TraceError as error:
            problems = [*problems, str(error)]
    if problems:
        lines = page_line(notice=_sentences(problems)) + lines
    return lines or gr.skip()


def _sentences(problems: list[str]) -> str:
    return " ".join(as_sentence(problem) for problem in problems[:_MAX_PROBLEMS])


def _as_markdown(text: str) -> str:
    """Escape a text for Markdown: an address may hold links."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text)


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """The owner's options."""

    replay_only: bool = False
    models: str | None = None  # a file that lists them
    model: str | None = None  # that is selected at first
    download: bool = False  # whether visitors may have models fetched from the hub
    own_root: Path | None = None  # from where visitors may bring models
    runs: str | None = None  # run folders that the Debug page lists
    guardrails: tuple[str, ...] = ()  # that are on
    metrics: bool = False  # whether a Prometheus server may scrape
    log_json: bool = False  # whether a line of the log is a JSON object
    api: bool = False  # whether programs may call
    mcp: bool = False  # whether a model's client may call, by MCP
    keys: Keys | None = None  # of the callers; None: everybody may call


def make_state(launch: LaunchOptions) -> AppState:
    """Create the application state for the arguments of the command line."""
    model = launch.model
    catalog, memory = (
        OwnerCatalog(default_catalog(launch.download)) if launch.models is None else read_catalog(launch.models)
    )
    if zero_gpu.is_active() and not launch.replay_only:
        zero_gpu.place(catalog)
    if model is not None and model not in catalog:
        raise ParamError(f"there is no model {model[:64]!r} in the catalog; choose one of {', '.join(catalog)}")
    folder = Path(launch.runs) if launch.runs else None
    chosen = model or next(iter(catalog))
    app_state = AppState(catalog, chosen, launch.replay_only, launch.own_root, folder)
    app_state.memory, app_state.guardrails = memory, launch.guardrails
    if folder:
        _ = app_state.debug  # a folder that cannot be read is the owner's mistake, to be reported at once
    return app_state


def offers(app_state: AppState, launch: LaunchOptions) -> serving.Offers:
    """Return what is served besides the page."""
    offered: dict[Kind, Sequence[BaseRoute]] = {Kind.HEALTH: [health.route(app_state)]}
    if launch.metrics:
        from .server.metrics import Metrics

        offered[Kind.METRICS] = [Metrics(app_state).route()]
    return offered


def api_of(app_state: AppState, launch: LaunchOptions) -> Api | None:
    """Return the API for programs, if the owner wants it; raises ParamError if no model can run."""
    if not (launch.api or launch.mcp):
        return None
    if launch.replay_only:
        raise ParamError("--api and --mcp run models, and --replay-only loads none: leave one of them out")
    from .api.service import ApiService

    return ApiService(app_state, launch.keys or Keys(), http=launch.api, mcp=launch.mcp)


def serve(host: str, port: int, launch: LaunchOptions, owner: Owner = _DEFAULT_OWNER) -> None:
    """Serve the page until a signal arrives; the default model is loaded in the background."""
    log.configure(launch.log_json)
    malloc.limit_arenas()
    serving.check_free(host, port)
    ended = threading.Event()
    for number in _end_signals():
        signal.signal(number, lambda *_: ended.set())
    app_state = make_state(launch)
    presets.offer(tuned_here())
    landing = app_state.recordings.landing
    lines = app_state.calls.recording_lines(landing.id) if landing else ""
    site = serving.Site(lines, opening(app_state.recordings))
    more, api = offers(app_state, launch), api_of(app_state, launch)
    page, ahead = build(app_state), LessonsAhead(app_state)
    running = serving.Running(page, site, app_state.tracker, owner, more, api, ahead.begin).start(host, port)
    if zero_gpu.is_active():
        zero_gpu.show_server(running.page, running.server)
    gc.collect()
    gc.freeze()  # the server's objects live for ever: searching them for garbage took a tenth of a run's time
    serving.say(f"Specscope is at http://{host}:{port}")
    if not launch.replay_only:
        loading = app_state.jobs.models.request(app_state.catalog[app_state.default_model])
        for sentence in app_state.jobs.guardrails.doubts(app_state.catalog.values()):
            serving.say(as_sentence(sentence))
        threading.Thread(target=_announce, args=(loading, app_state.default_model), daemon=True).start()
    ended.wait()
    _end(app_state, running)


def _end_signals() -> set[signal.Signals]:
    """Return the signals of Ctrl-C, of kill, and of a terminal that is closed (unless nohup is used)."""
    signals = {signal.SIGINT, signal.SIGTERM}
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # not on Windows
        signals.add(signal.SIGHUP)
    return signals


def _announce(loading: Loading, name: str) -> None:
    """Print the progress of the first model, and when it is ready: converting one takes some seconds."""
    phase = ""
    try:
        while loading.wait(_LOOK) is None:
            if loading.phase != phase:
                phase = loading.phase
                serving.say(f"{phase[:1].upper()}{phase[1:]} ...")
        serving.say(f"{name} is ready.")
    except ModelError as error:
        serving.say(as_sentence(str(error)))


def _end(app_state: AppState, running: serving.Running) -> None:
    """End the runs after their current step, then the server: no thread inside torch may outlive the interpreter."""
    ended = app_state.replay_only or app_state.jobs.close(_LAST_STEP)
    with contextlib.suppress(OSError):  # of a terminal that is gone
        if not running.stop(_LAST_ANSWER) or not ended:
            serving.say("Some runs or requests did not end in time.")
        sys.stdout.flush()
    zero_gpu.end()
    os._exit(0)  # a model may still be loading
