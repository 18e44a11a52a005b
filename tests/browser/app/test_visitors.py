"""Several visitors: stopping, leaving, waiting."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from decoding import METHODS
from decoding.trace.file import parse_trace
from tests.browser.conftest import PATIENCE

from .conftest import Served

pytestmark = pytest.mark.filterwarnings("default")  # the server runs in this process, and Gradio's parts warn
NewPage = Callable[..., Any]
PLAYER = "SpecscopeApp.shown.viewer.player"
_STEP = 0.03  # seconds that a step takes here, so that a test can be in the middle of a run


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Autoregressive steps that last, until the event is set."""
    hurry, usual = threading.Event(), METHODS["autoregressive"].propose

    def propose(self: Any) -> Any:
        hurry.wait(_STEP)
        return usual(self)

    monkeypatch.setattr(METHODS["autoregressive"], "propose", propose)
    yield hurry
    hurry.set()


@pytest.fixture
def held(slow: threading.Event, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Such steps of which the twentieth waits until the event is set, however slow the browser is."""
    done, usual = list[Any](), METHODS["autoregressive"].propose

    def propose(self: Any) -> Any:
        done.append(self)
        if len(done) >= 20:
            slow.wait(60)
        return usual(self)

    monkeypatch.setattr(METHODS["autoregressive"], "propose", propose)
    return slow


def begin(page: Any) -> None:
    """Start a long run and see its first steps."""
    page.click("#run-go")
    page.wait_for_function(
        f"!SpecscopeApp.shown.viewer.facts.title && {PLAYER}.record.last >= 2 && {PLAYER}.record.live"
    )


def nobody_is_left(served: Served) -> None:
    """The page hears of the end a moment before the server is done with the run."""
    jobs, patience = served.app_state.jobs, time.monotonic() + 60
    while jobs.active or len(jobs.queue):
        assert time.monotonic() < patience
        time.sleep(0.01)


def end_with_answer(page: Any, held: threading.Event, message: str) -> None:
    """Let the run end, and wait until its answer has come to a form in which this message stands."""

    def is_answer(response: Any) -> bool:
        return "/run/predict" in response.url and response.request.post_data_json["data"] == [message]

    with page.expect_response(is_answer) as came:
        held.set()
        page.wait_for_function(ENDED)
    came.value.finished()
    page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"
    )


QUERY = "?method=autoregressive&length=256&prompt=Monday%3A"


def test_a_live_run_is_followed_and_stopped(new_page: NewPage, served: Served, slow: threading.Event) -> None:
    page = served.open(new_page(), QUERY)
    page.wait_for_function("document.querySelector('#run-length input')?.value === '256'")
    begin(page)
    assert page.evaluate(f"{PLAYER}.state.follow")
    before = page.evaluate(f"{PLAYER}.record.last")
    page.click("#run-stop")
    page.wait_for_function(f"{PLAYER}.record.end?.finish === 'cancelled'")
    page.wait_for_function(f"{PLAYER}.record.check")
    assert page.evaluate(f"{PLAYER}.record.last") < max(120, before + 60)
    nobody_is_left(served)


@pytest.mark.slow  # a matter of pace alone
def test_charts_of_a_run_that_is_followed_come_behind_its_text(
    new_page: NewPage, served: Served, held: threading.Event
) -> None:
    page = served.open(new_page(height=1800), QUERY)
    page.wait_for_function("document.querySelector('#run-length input')?.value === '256'")
    begin(page)
    page.evaluate(f"{PLAYER}.cards.toggle('timeline', true)")
    page.wait_for_function(f"{PLAYER}.cards.cards.get('timeline')?.content.drawn")  # though no more steps come
    at_once, for_nothing_new, in_time, left = page.evaluate(
        f"""() => {{
          const player = {PLAYER}, plot = player.cards.cards.get("timeline").content;
          const drawn = (change) => {{ player.change(change); player.flush(); return plot.drawn !== "before"; }};
          const behind = (waited, steps) => {{
            plot.drawn = "before";
            [player.cards.drew, player.cards.upto] = [performance.now() - waited, player.record.last - steps];
            return drawn({{ size: player.state.size + 1 }});
          }};
          return [behind(0, 1), behind(600, 0), behind(600, 1), behind(0, 1) || drawn({{ follow: false }})];
        }}"""
    )
    assert (at_once, for_nothing_new, in_time, left) == (False, False, True, True)
    held.set()
    page.wait_for_function(f"{PLAYER}.record.check")
    nobody_is_left(served)


@pytest.mark.slow  # some seconds in a browser
def test_the_address_waits_for_the_end_of_a_run_that_is_followed(
    new_page: NewPage, served: Served, held: threading.Event
) -> None:
    """A browser may fetch the page's icon anew with every address, in the middle of the run."""
    page = served.open(new_page(), QUERY)
    page.wait_for_function("document.querySelector('#run-length input')?.value === '256'")
    begin(page)
    page.wait_for_function("SpecscopeApp.shown.viewer.address.moving")
    followed, left = page.evaluate(
        """() => {
          const viewer = SpecscopeApp.shown.viewer, noted = () => {
            viewer.address.note();
            return new URLSearchParams(location.search).get("run") === viewer.facts.run;
          };
          const followed = noted();
          viewer.player.state.follow = false;
          const left = noted();
          history.replaceState(history.state, "", location.pathname);
          viewer.player.follow();
          return [followed, left];
        }"""
    )
    assert (followed, left) == (False, True)
    held.set()
    page.wait_for_function("new URLSearchParams(location.search).get('run') === SpecscopeApp.shown.viewer.facts.run")
    assert page.evaluate(f"{PLAYER}.record.end.finish") == "length"
    nobody_is_left(served)


@pytest.mark.slow  # some seconds in a browser
def test_a_pinned_token_of_a_live_run_says_what_it_sees(
    new_page: NewPage, served: Served, held: threading.Event
) -> None:
    """The server answers for the steps that a run has made so far."""
    page = served.open(new_page(), QUERY)
    page.wait_for_function("document.querySelector('#run-length input')?.value === '256'")
    begin(page)
    page.evaluate(f"{PLAYER}.pin(2, 0)")
    page.wait_for_function(f"{PLAYER}.root.querySelector('.ss-why').textContent.startsWith('Sees ')")
    assert page.evaluate(f"{PLAYER}.record.live")
    held.set()
    nobody_is_left(served)


# Lines that stay away for four seconds are asked for: here they are after four tenths.
HASTE = "const wait = setTimeout; globalThis.setTimeout = (f, ms, ...rest) => wait(f, ms === 4000 ? 400 : ms, ...rest);"


@pytest.mark.slow  # it waits for attempts to fail
def test_a_stream_that_breaks_is_told_of(new_page: NewPage, served: Served, held: threading.Event) -> None:
    """Run and lanes were shown as live for ever; should lines come after all, they are shown."""
    page = new_page(alone=True)
    page.add_init_script(HASTE)
    served.open(page, QUERY)
    page.wait_for_function("document.querySelector('#run-length input')?.value === '256'")
    begin(page)
    page.get_by_role("tab", name="Race").click()
    page.click("#race-go")
    page.wait_for_function("document.querySelector('.ss-pace')?.textContent.includes('1 run is before yours')")
    before = page.evaluate(f"{PLAYER}.record.last")
    served.app_state.store.streaming.clear()
    lost = "The connection was lost: this is what came before. Reload the page to start again."
    page.wait_for_function(
        "(lost) => [...document.querySelectorAll('.ss-pace')].filter((told) => told.textContent === lost).length >= 2",
        arg=lost,
    )
    page.get_by_role("tab", name="Run").click()
    page.wait_for_selector(f".ss-notice:has-text('{lost}')")
    live, last = page.evaluate(f"[{PLAYER}.record.live, {PLAYER}.record.last]")
    assert not live and last >= before  # a burst may have been on its way
    held.set()
    page.wait_for_function(f"{PLAYER}.record.check && !{PLAYER}.record.fault")
    page.wait_for_function(
        "SpecscopeApp.shown.race.ready && SpecscopeApp.shown.race.list.every((lane) => lane.record.end)"
    )
    nobody_is_left(served)


class Cable:
    """A port that leads to the page, until it is cut."""

    def __init__(self, served: Served) -> None:
        self._upstream = ("127.0.0.1", urlsplit(served.address).port)
        self._listener, self._ends = socket.create_server(("127.0.0.1", 0)), list[socket.socket]()
        self.is_cut = False
        threading.Thread(target=self._accept, daemon=True).start()
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}/"

    def cut(self) -> None:
        self.is_cut = True
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.cut()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for end in (self._listener, *self._ends):
            end.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                near, _ = self._listener.accept()
                if self.is_cut:
                    near.close()
                    continue
                far = socket.create_connection(self._upstream)
                self._ends += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)


@pytest.mark.slow  # it waits for attempts to fail
def test_a_run_whose_connection_is_lost_stays_and_can_be_saved(
    chromium: Any, served: Served, held: threading.Event
) -> None:
    cable, context = Cable(served), chromium.new_context()
    try:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.add_init_script(HASTE)
        Served(cable.address, served.app_state).open(page, QUERY)
        page.wait_for_function("document.querySelector('#run-length input')?.value === '256'")
        begin(page)
        shown = page.evaluate(f"{PLAYER}.record.last")
        cable.cut()
        page.wait_for_selector(".ss-notice:has-text('The connection was lost')")
        assert page.evaluate(f"{PLAYER}.record.last") >= shown and not page.evaluate(f"{PLAYER}.record.live")
        held.set()
        nobody_is_left(served)
        cable.is_cut = False
        with page.expect_download() as download:
            page.evaluate("SpecscopeApp.shown.viewer.files.download('trace')")
        trace = parse_trace(Path(download.value.path()).read_bytes())
        assert len(trace.steps) > shown >= 2 and trace.header.method == "autoregressive"
        assert page.evaluate(f"{PLAYER}.record.last") >= shown
    finally:
        context.close()
        cable.close()


@pytest.mark.slow  # some seconds in a browser
def test_a_closed_tab_frees_the_engine_within_a_second(
    new_page: NewPage,
    served: Served,
    slow: threading.Event,
) -> None:
    page = served.open(new_page(), QUERY)
    page.wait_for_function("document.querySelector('#run-length input')?.value === '256'")
    begin(page)
    jobs = served.app_state.jobs
    assert jobs.active == 1 and len(jobs.queue) == 1
    ticket = jobs.queue.join()  # whoever comes next gets the engine
    page.close()
    try:
        assert ticket.wait(1.0) == 0
    finally:
        ticket.leave()
    nobody_is_left(served)


@pytest.mark.slow  # two live runs in turn; queues are tested without a browser
def test_two_visitors_take_turns_and_see_their_place(
    new_page: NewPage,
    served: Served,
    held: threading.Event,
) -> None:
    first, second = (served.open(new_page(), QUERY) for _ in range(2))
    for page in (first, second):
        page.wait_for_function("document.querySelector('#run-length input')?.value === '256'")
    begin(first)
    second.click("#run-go")
    second.wait_for_function(
        "document.querySelector('#run-form .app-said').textContent.includes('1 run is before yours')"
    )
    assert first.evaluate(f"{PLAYER}.record.live")
    held.set()
    for page in (first, second):
        page.wait_for_function(f"{PLAYER}.record.check?.checked > 0")
    nobody_is_left(served)


def test_a_conversation_goes_on(new_page: NewPage, served: Served) -> None:
    page = served.open(new_page(), "?method=lookahead&length=24")
    page.wait_for_function("document.querySelector('#run-length input')?.value === '24'")
    page.get_by_label("Chat", exact=True).check()
    for turn, words in enumerate(("On which days is the sea rough?", "And on Friday?"), start=1):
        page.fill("#run-message textarea", words)
        page.click("#run-go")
        page.wait_for_function(
            f"document.querySelectorAll('#run-history .app-turn-assistant p:not(:empty)').length === {turn}"
        )
        assert page.input_value("#run-message textarea") == ""
    names = page.locator("#run-history .app-turn strong").all_inner_texts()
    assert names == ["User", "Assistant"] * 2
    assert page.locator("#run-history .app-turn p").all_inner_texts()[::2] == [
        "On which days is the sea rough?",
        "And on Friday?",
    ]
    step = page.evaluate(f"{PLAYER}.record.steps[0]")
    assert step["pending"] < step["start"] - 1  # the second turn reads only what is new
    page.click("#run-fresh")
    page.wait_for_selector("#run-history .app-turn", state="detached")


TALK = "?method=autoregressive&length=256&chat=" + quote(
    '[{"role":"user","content":"On which days is the sea rough?"}]'
)
SAID = "[...document.querySelectorAll('#run-history .app-turn')].map((turn) => turn.querySelector('p').textContent)"
ENDED = f"{PLAYER}.record.check"


@pytest.mark.slow  # some seconds in a browser
def test_what_is_typed_while_an_answer_comes_stays(
    new_page: NewPage,
    served: Served,
    held: threading.Event,
) -> None:
    page = served.open(new_page(), TALK)
    page.wait_for_function("document.querySelector('#run-length input')?.value === '256'")
    begin(page)
    page.fill("#run-message textarea", "And on Friday?")
    page.click("#run-mode input[value=Raw]")
    end_with_answer(page, held, "And on Friday?")  # it finds the form as a raw text
    page.click("#run-mode input[value=Chat]")
    page.wait_for_function(f"{SAID}.length === 2")
    assert page.input_value("#run-message textarea") == "And on Friday?"
    assert page.evaluate(SAID)[0] == "On which days is the sea rough?"


@pytest.mark.slow  # some seconds in a browser
def test_a_new_conversation_stays_new_while_the_old_one_is_answered(
    new_page: NewPage,
    served: Served,
    held: threading.Event,
) -> None:
    page = served.open(new_page(), TALK)
    page.wait_for_function("document.querySelector('#run-length input')?.value === '256'")
    begin(page)
    page.click("#run-fresh")
    page.wait_for_function("document.querySelector('#run-message textarea').value === ''")
    end_with_answer(page, held, "")
    assert page.evaluate(SAID) == []


@pytest.mark.slow  # some seconds in a browser
def test_a_link_that_lacks_the_conversation_says_so_and_offers_the_trace(new_page: NewPage, served: Served) -> None:
    turn = {"role": "user", "content": "On which days is the sea rough? " * 40}
    chat = [turn, {"role": "assistant", "content": "On Monday. " * 90}, turn]
    page = served.open(new_page(), f"?method=lookahead&length=8&chat={quote(json.dumps(chat))}")
    page.wait_for_function(f"{SAID}.length === 2")
    page.click("#run-go")
    page.wait_for_function(f"SpecscopeApp.shown.viewer.live.run && {ENDED} && {SAID}.length === 4")
    page.evaluate(f"{PLAYER}.copyLink()")
    page.wait_for_selector(".ss-dialog[open]:has-text('The conversation is too long for a link')")
    assert "chat=" not in page.input_value(".ss-dialog[open] input")
    with page.expect_download() as download:
        page.click("text=Download the trace")
    assert download.value.suggested_filename.endswith("trace.jsonl.gz")


def test_hostile_turns_are_shown_as_text_and_long_ones_fold(new_page: NewPage, served: Served) -> None:
    evil = "<img src=x onerror=alert(1)>${alert(2)}{{3}} "
    chat = [{"role": "user", "content": evil * 20}, {"role": "assistant", "content": evil}]
    page = served.open(new_page(), f"?method=lookahead&chat={quote(json.dumps([*chat, chat[0]]))}")
    page.wait_for_function(f"{SAID}.length === 2")
    assert page.evaluate(SAID) == [evil * 20, evil] and page.locator("#run-history img").count() == 0
    long = page.locator("#run-history .app-turn-user")
    height = long.bounding_box()["height"]
    long.get_by_role("button", name="Show all").click()
    assert long.bounding_box()["height"] > height
    assert page.locator("#run-history .app-turn-assistant button").count() == 0


@pytest.mark.slow  # some seconds in a browser
def test_a_recording_that_is_opened_during_a_run_stays(
    new_page: NewPage,
    served: Served,
    held: threading.Event,
) -> None:
    page = served.open(new_page(), QUERY)
    page.wait_for_function("document.querySelector('#run-length input')?.value === '256'")
    begin(page)
    page.click(".app-recorded")
    page.click('.app-card[data-run="prompt-lookup-defaults"]')
    page.wait_for_function("SpecscopeApp.shown.viewer.facts.run === 'prompt-lookup-defaults'")
    held.set()
    page.wait_for_function("/.kind.:.check./.test(SpecscopeApp.shown.viewer.props.value)")
    assert page.evaluate("SpecscopeApp.shown.viewer.facts.run") == "prompt-lookup-defaults"
    assert page.evaluate(f"{PLAYER}.record.play.header.method") == "prompt_lookup"
    page.click(".app-back")
    page.wait_for_function(f"{ENDED}?.checked > 0 && {PLAYER}.record.play.header.method === 'autoregressive'")
    assert page.locator(".app-back").is_hidden()
