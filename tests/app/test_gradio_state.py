"""What Gradio keeps of its visitors, in the page as it is served: nothing, however many they are."""

from __future__ import annotations

import contextlib
import gc
import socket
import time
from collections.abc import Callable, Iterator

import gradio
import pytest
from gradio.blocks import BlocksConfig
from gradio.state_holder import SessionState

from app import ui
from app.jobs.live_run import LiveRun
from app.jobs.runner import JobRunner
from app.models.model_pool import ModelPool
from app.server import serving as server
from app.server.gradio_state import poll_less, sweep_once
from app.server.limits import LIMITS
from app.server.middleware.origin import Owner
from app.server.middleware.session_tracker import SessionTracker
from app.state import AppState
from app.store.trace_store import TraceStore
from tests.event_loops import discard_event_loops
from tools.page import API, Visitor

from .conftest import CATALOG, asked

# The server runs in this process, and Gradio's parts warn; it also leaves event loops to the collector.
pytestmark = pytest.mark.filterwarnings("default", "ignore:unclosed event loop:ResourceWarning")


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[server.Running, AppState, int]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    app_state = AppState(CATALOG, "toy")
    assert app_state.jobs.models.request(CATALOG["toy"]).wait(60) is not None
    running = server.Running(ui.build(app_state), server.Site(""), app_state.tracker, Owner()).start("127.0.0.1", port)
    discard_event_loops()
    yield running, app_state, port
    assert app_state.jobs.close(5.0) and running.stop()
    discard_event_loops()


def kept(running: server.Running) -> dict[str, int]:
    """Count everything in Gradio that could grow with visitors."""
    page, queue = running.page, running.page._queue
    sizes = {
        name: len(value) for name, value in {**vars(queue), **vars(page.app), **vars(page)}.items() if sized(value)
    }
    gc.collect()
    kinds = [type(each) for each in gc.get_objects()]
    return sizes | {kind.__name__: kinds.count(kind) for kind in (SessionState, BlocksConfig)}


def sized(value: object) -> bool:
    return isinstance(value, dict | list | set)


def visit(port: int, count: int) -> None:
    """Visit, change a control and run a prompt; every other visitor leaves before the end."""
    config = Visitor(port).read()
    quick = next(each for each in config["dependencies"] if each["api_name"] == "show_model")
    for number in range(count):
        visitor = Visitor(port, config=config)
        assert visitor.post("/run/predict", visitor.event(quick["id"], ["toy", "lookahead"])).status == 200
        if number % 2:
            assert '"kind":"check"' in visitor.run(run_length=8)
        else:
            assert visitor.join(run_length=8).status == 200
            next(visitor.stream())


@pytest.mark.slow
def test_nothing_grows_with_visitors(served: tuple[server.Running, AppState, int]) -> None:
    running, app_state, port = served
    visit(port, 4)
    settle(running, app_state)
    before = kept(running)
    visit(port, 12)
    settle(running, app_state)
    grown = {name: size - before[name] for name, size in kept(running).items() if size > before[name]}
    assert not grown
    assert running.page.app.state_holder.session_data == {}


def settle(running: server.Running, app_state: AppState) -> None:
    """Wait until the last runs are over and what they left is swept."""
    until = time.monotonic() + 20
    while time.monotonic() < until and (app_state.jobs.active or running.page._queue.event_ids_to_events):
        time.sleep(0.02)
    nobody = SessionTracker()
    sweep_once(running.page, nobody)
    assert not running.page._queue.pending_messages_per_session and not running.page._queue.pending_event_ids_session


@pytest.mark.parametrize("has_cookie", [True, False])
def test_a_known_session_cannot_be_read_started_or_stopped_from_elsewhere(
    served: tuple[server.Running, AppState, int], has_cookie: bool
) -> None:
    _, app_state, port = served
    owner = Visitor(port)
    owner.cookie = owner.ask("GET", "/").headers["set-cookie"].split(";")[0] if has_cookie else ""
    stranger = Visitor(port, "127.0.0.2", owner.session, owner.read())
    ahead = app_state.jobs.queue.join("another")  # so that the run is still waiting when the stranger comes
    assert owner.join(run_length=8).status == 200
    wait_until(lambda: app_state.jobs.active == 1)
    assert stranger.ask("GET", f"{API}/queue/data?session_hash={owner.session}").status == 404
    beat = stranger.connect()
    with contextlib.closing(beat):
        beat.request("GET", f"{API}/heartbeat/{owner.session}")
        beat.getresponse().read(8)
    for each in owner.config["dependencies"]:
        if each["api_name"] in ("end", "end_conversation"):
            assert stranger.post("/run/predict", stranger.event(each["id"], [])).status == 200
    assert stranger.join(run_length=8).status == 200
    wait_until(lambda: app_state.jobs.active == 2)
    ahead.leave()
    elsewhere = Visitor(port, "127.0.0.3" if has_cookie else owner.source, owner.session, cookie=owner.cookie)
    assert '"kind":"check"' in str(list(elsewhere.stream()))
    assert '"kind":"check"' in str(list(stranger.stream()))


def wait_until(happens: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not happens():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_the_queue_is_calmed_by_names_that_it_has() -> None:
    page = gradio.Blocks(analytics_enabled=False).queue()
    before = {**vars(page._queue)}
    poll_less(page)
    names = ["ANALYTICS_MAX_EVENTS", "ANAYLTICS_CACHE_FREQUENCY", "progress_update_sleep_when_free", "sleep_when_free"]
    assert sorted(name for name, value in vars(page._queue).items() if value != before[name]) == names
    discard_event_loops()


def test_what_is_waited_for_is_not_swept(served: tuple[server.Running, AppState, int]) -> None:
    running, _, _ = served
    now = 0.0
    tracker, queue = SessionTracker(lambda: now), running.page._queue
    queue.pending_event_ids_session["tab"] = {"an event"}
    tracker.expect("tab", "client")
    sweep_once(running.page, tracker)
    assert "tab" in queue.pending_event_ids_session
    with tracker.reading("tab"):
        now = 100.0
        sweep_once(running.page, tracker)
        assert "tab" in queue.pending_event_ids_session
    now += LIMITS.unread_seconds + 1
    sweep_once(running.page, tracker)
    assert "tab" not in queue.pending_event_ids_session


def test_a_run_that_nobody_reads_ends(models: ModelPool) -> None:
    """It would hold the engine, and everybody in the line, for nobody."""
    now = 0.0
    tracker = SessionTracker(lambda: now)
    jobs = JobRunner(models, TraceStore(), tracker=tracker)
    ahead = jobs.queue.join("another")
    tracker.expect("tab", "client")
    going = jobs.start(LiveRun(asked(), ""), "tab")
    with tracker.reading("tab"):
        next(going)
        now = 100.0
        next(going)
    now += LIMITS.unread_seconds - 1
    assert "fault" not in next(going)
    now += 2
    *_, last = going
    assert "Stopped before it began." in last and jobs.active == 0
    ahead.leave()
    assert len(jobs.queue) == 0


def test_a_server_that_is_being_stopped_begins_nothing(models: ModelPool) -> None:
    jobs = JobRunner(models, TraceStore())
    assert jobs.close(1.0)
    *_, last = jobs.start(LiveRun(asked(), ""), "tab")
    assert "The server is being stopped: try again in a minute." in last and jobs.active == 0


def test_clients_stand_in_the_line_by_their_address(models: ModelPool) -> None:
    tracker = SessionTracker()
    jobs, held = JobRunner(models, TraceStore(), tracker=tracker), []
    for number in range(LIMITS.waiting_each + 2):
        tracker.expect(f"tab{number}", "loud")
        going = jobs.start(LiveRun(asked(max_new_tokens=200), ""), f"tab{number}")
        held.append((going, next(going)))
    assert "Too many runs from your address are waiting" in held[-1][1]
    assert not any("Too many" in first for _, first in held[:-1])
    for going, _ in held:
        going.close()  # type: ignore[attr-defined]
    assert len(jobs.queue) == 0
