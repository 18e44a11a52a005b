"""A race: lanes write at their recorded pace on one clock, and whether they agree is said loudly."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from decoding.trace.metrics import summarise
from decoding.types import Timing, Trace
from tests.browser.conftest import Shown
from tests.tiers import slow
from tests.viz.records import hostile, record
from viz.stream import play

pytestmark = slow  # it plays at its pace; tests/browser/app races on the page

START = """() => { globalThis.settled = () => new Promise((done) =>
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0))));
  globalThis.player = new Specscope.Race(document.getElementById("player")); }"""
SEEN = """player.list.map((lane) =>
  [...lane.text.querySelectorAll(".ss-token:not([hidden])")].map((span) => span.textContent).join(""))"""


def timed(trace: Trace, ms: float) -> Trace:
    """Return the run as if it were greedy, with steps that take so long: recordings of the toy model have no times."""
    steps = tuple(replace(step, timing=Timing(total_ms=ms)) for step in trace.steps)
    header = replace(trace.header, sampling={**trace.header.sampling, "temperature": 0.0})
    return replace(trace, header=header, steps=steps)


def lines(traces: list[Trace]) -> str:
    """Return the lines of all lanes, in turn."""
    got = [{"kind": "race", "labels": [f"Runner {i}" for i, _ in enumerate(traces)]}]
    for lane, trace in enumerate(traces):
        got += [json.loads(line) | {"lane": lane} for line in play.lines(trace).splitlines()]
    return "".join(json.dumps(line) + "\n" for line in got)


@pytest.fixture
def race(new_page: Callable[..., Any], site: str) -> Callable[..., Shown]:
    """Open a page with a race of some runs."""

    def shown(traces: list[Trace], **options: Any) -> Shown:
        page = new_page(**options)
        page.goto(site)
        page.evaluate(START)
        opened = Shown(page, traces[0], play.Play(traces[0].header))
        opened.do("player.feed(given)", lines(traces))
        return opened

    return shown


def test_two_lanes_of_one_method_are_told_apart_by_their_settings(race: Callable[..., Shown]) -> None:
    """Both were called Lookahead, in their heads and in the results."""
    one = timed(record("lookahead"), 40)
    other = replace(one, header=replace(one.header, params={**one.header.params, "W": 9}))
    shown = race([one, other], width=390)
    shown.run("player.change({ time: player.length })")
    names = [f"Lookahead (W {width})" for width in (one.header.params["W"], 9)]
    assert shown.page.locator(".ss-lane h2").all_inner_texts() == names
    assert all(shown.page.locator(f".ss-table >> text={name}").count() for name in names)


def test_lanes_write_at_their_recorded_pace(race: Callable[..., Shown]) -> None:
    """At any time a lane shows the tokens of the steps that had ended by then; the first to end is told first."""
    fast, slow = timed(record("lookahead"), 40), timed(record("autoregressive"), 50)
    shown = race([fast, slow])
    for time in (0, 39, 40, 245, 5000, 130):
        shown.do(f"player.change({{ time: {time}, playing: false }})")
        for text, trace, ms in zip(shown.run(SEEN), (fast, slow), (40, 50), strict=True):
            done = trace.steps[: time // ms]
            assert text == "".join(trace.texts[token] for step in done for token in step.emitted), time
    shown.page.select_option("select[aria-label=Speed]", "4")
    shown.page.click("button[aria-label='Restart']")
    shown.wait("!player.state.playing && player.state.time > 0")
    assert shown.run("player.state.time") == max(40 * len(fast.steps), 50 * len(slow.steps))
    first, second = sorted((40 * len(fast.steps) / 1000, 50 * len(slow.steps) / 1000))
    places = shown.run('[...document.querySelectorAll(".ss-place")].map((place) => place.textContent).sort()')
    assert places == [f"1st, in {first:.2f} s", f"2nd, in {second:.2f} s"]
    rows = shown.run(
        '[...document.querySelectorAll(".ss-table tbody tr")].slice(-2).map((row) => row.cells[1].textContent)'
    )
    assert rows == ["Lookahead", "Autoregressive"]
    assert "wrote the same 16 tokens" in shown.text(".ss-verdict")


def test_a_lane_that_has_ended_says_that_it_waits_for_the_others(race: Callable[..., Shown]) -> None:
    """It shows no text until all can start together, and must not look as if it had none."""
    first, other = timed(record("lookahead"), 40), timed(record("autoregressive"), 40)
    shown, every = race([first, other]), lines([first, other]).splitlines(keepends=True)
    shown.do("player.reset(); player.feed(given)", "".join(line for line in every if '"lane": 1' not in line))
    words = f"ready: {len(first.ids)} tokens, waiting for the others"
    assert shown.run("player.list.map((lane) => lane.pace.textContent)") == [words, "waiting for its turn"]
    shown.do("player.feed(given)", "".join(line for line in every if '"lane": 1' in line))
    assert shown.run("player.list.map((lane) => lane.pace.textContent)") == ["0 tokens · 0 passes"] * 2


def test_its_clocks_count_passes_or_are_a_gpus(race: Callable[..., Shown]) -> None:
    """Passes of the slow lane take longer here, and are fewer: by passes it wins, and so it does on a GPU."""
    fast, slow = timed(record("autoregressive"), 40), timed(record("lookahead"), 90)
    shown = race([fast, slow])
    places = "player.list.map((lane) => lane.placed.textContent)"
    shown.do("player.change({ time: player.length })")
    assert [place[:3] for place in shown.run(places)] == ["1st", "2nd"]
    shown.page.select_option("select[aria-label=Pace]", "passes")
    assert shown.run(places) == [
        f"{place}, in the time of {len(trace.steps)}.0 passes" for place, trace in (("2nd", fast), ("1st", slow))
    ]
    assert "Every pass of the target counts as one" in shown.text(".ss-assumed")
    assert shown.text(".ss-where") == f"{len(fast.steps)}.0 passes"  # the same place of the race: its end
    shown.page.select_option("select[aria-label=Pace]", "projected")
    assert [place.endswith(", projected") for place in shown.run(places)] == [True, True]
    assert "Projected" in shown.text(".ss-assumed") and "H100 SXM" in shown.text(".ss-assumed")
    assert shown.run("player.length") == pytest.approx(len(fast.steps) * 14e12 / 3.35e12)
    assert shown.run("player.results.querySelector('tbody tr').cells[1].textContent") == "Lookahead"  # by this clock
    assert shown.text(".ss-headline").startswith("Projected for an H100 GPU, Lookahead would finish first, in ")
    shown.page.select_option("select[aria-label=Pace]", "recorded")
    assert shown.run("player.state.time") == shown.run("player.length") == 90 * len(slow.steps)
    assert shown.page.locator(".ss-assumed").is_hidden()


def test_a_short_race_is_slowed_and_says_how_much(race: Callable[..., Shown]) -> None:
    shown = race([timed(record("autoregressive"), 40), timed(record("lookahead"), 40)])
    length = 40 * len(record("autoregressive").steps)
    options = "[...player.speed.options].filter((option) => !option.hidden).map((option) => option.textContent)"
    assert shown.run(options)[0] == f"slowed {round(6000 / length)} times" and "real time" in shown.run(options)
    shown.do("player.reset(); player.feed(given)", lines([timed(record("rest"), 9000)]))
    assert shown.run(options)[0] == "real time" and shown.run(options).count("real time") == 1


def test_the_headline_has_the_numbers_and_a_slow_lane_its_reason(race: Callable[..., Shown]) -> None:
    runs = [timed(record("autoregressive"), 40), timed(record("lookahead"), 90)]
    plain, slow = (replace(run, summary=summarise(run.steps, "length", "")) for run in runs)
    shown = race([plain, slow])
    assert plain.ids == slow.ids
    shown.do("player.change({ time: player.length })")
    words = f"Autoregressive finished first, in {40 * len(plain.steps) / 1000:.2f} s: no method was faster."
    assert shown.text(".ss-headline") == words
    assert shown.text(".ss-times") == (
        f"Lookahead needed the fewest passes: {len(slow.steps)} instead of {len(plain.steps)}."
    )
    reason, _ = shown.run("[...player.results.querySelectorAll('p')].map((words) => words.textContent)")
    speedup = 40 * len(plain.steps) / (90 * len(slow.steps))
    cells = shown.run("[...player.results.querySelectorAll('tbody td:last-child')].map((cell) => cell.textContent)")
    assert cells == ["1.00×", f"{speedup:.2f}×"]
    assert f"Lookahead ran at {speedup:.2f}×" in reason and "as much as 2.25 autoregressive ones" in reason
    assert speedup < 1 and f"wrote {2.25 * speedup:.2f} tokens" in reason


def test_a_speedup_that_is_a_measuring_error_has_its_reason(race: Callable[..., Shown]) -> None:
    """The winner's cell was empty and nothing said why, while the headline gave its time as a finding."""
    plain, fast = timed(record("autoregressive"), 40), timed(record("lookahead"), 20)
    shown = race([plain, fast])
    shown.do("player.change({ time: player.length })")
    speedup, each = 2 * len(plain.steps) / len(fast.steps), len(fast.ids) / len(fast.steps)
    reason = f"{speedup:.2f}× the speed of autoregressive decoding is more than Lookahead can reach with {each:.2f} "
    assert shown.run("player.results.querySelector('tbody td:last-child').textContent") == "–"
    assert reason in shown.run("player.results.querySelector('p').textContent")
    assert reason in shown.text(".ss-headline")


RESULT = """[player.headline, player.times, player.verdict, player.results, player.together,
  ...player.list.map((lane) => lane.placed)].filter((node) => node.checkVisibility()).map((node) => node.textContent)
  .join(" ")"""


def test_nothing_of_the_result_is_seen_before_the_end(race: Callable[..., Shown]) -> None:
    """Headline, table, places, verdict and speeds told how a race ends before it was played."""
    runs = [timed(record("autoregressive"), 40), timed(record("lookahead"), 40)]
    shown = race([replace(run, summary=summarise(run.steps, "length", "")) for run in runs])
    for time in (0, 40 * len(record("lookahead").steps), 40 * len(record("autoregressive").steps) - 1):
        shown.do(f"player.change({{ time: {time}, playing: false }})")
        seen = shown.run(RESULT)
        assert not any(word in seen for word in ("Lookahead", "instead", "lossless", "1st", "×", "0 s")), seen
    shown.page.click("button[aria-label='Show the result']")
    assert "Lookahead finished first, in " in shown.run(RESULT)
    assert "tokens/s" not in shown.run("player.lanes.innerText")  # it leaves out the first step, unlike the time
    shown.page.click("button[aria-label='Restart']")
    shown.do("player.change({ playing: false, time: 1 })")
    assert "Lookahead" not in shown.run(RESULT)
    shown.page.click("text=Align by token")  # all outputs are asked for
    assert shown.run("player.ended") and shown.page.locator(".ss-aligned").is_visible()


def test_lanes_that_take_the_same_time_as_far_as_it_is_shown_share_their_place(race: Callable[..., Shown]) -> None:
    """One of them finished first in 0.18 s instead of 0.18 s."""
    shown = race([timed(record("autoregressive"), 40), timed(record("autoregressive"), 40.1)])
    shown.do("player.change({ time: player.length })")
    assert shown.run("player.list.map((lane) => lane.placed.textContent)") == ["1st, in 0.64 s"] * 2
    assert shown.text(".ss-headline") == "Autoregressive and Autoregressive finished first, in 0.64 s each."


def test_a_speedup_that_cannot_be_is_left_out(race: Callable[..., Shown]) -> None:
    """Steps that take less time than autoregressive ones were measured wrongly, or on another machine."""
    quick, plain = timed(record("lookahead"), 30), timed(record("autoregressive"), 40)
    other = replace(timed(record("rest"), 60), header=replace(record("rest").header, threads=64))
    shown = race([quick, plain, other])
    shown.do("player.change({ time: player.length })")
    cells = shown.run("[...player.results.querySelectorAll('tbody td:last-child')].map((cell) => cell.textContent)")
    assert sorted(cells) == ["1.00×", "–", "–"]


def test_outputs_that_differ_are_told_loudly(race: Callable[..., Shown]) -> None:
    """Lossless greedy runs must agree: where they part is named, in words and in the aligned picture."""
    good, bad = record("rest"), record("jacobi")
    last = bad.steps[-1]
    other = (last.emitted[0] + 1) % 60
    wrong = replace(bad, steps=(*bad.steps[:-1], replace(last, emitted=(other, *last.emitted[1:]))))
    shown = race([timed(good, 10), timed(wrong, 10)])
    at = sum(len(step.emitted) for step in bad.steps[:-1])
    shown.do("player.change({ time: player.length })")
    shown.wait("document.querySelector('.ss-verdict').dataset.tone === 'broken'")
    assert f"REST and Jacobi diverge at token {at}," in shown.text(".ss-verdict")
    shown.page.click("text=Align by token")
    shown.wait("!player.together.hidden")
    assert shown.run('document.querySelectorAll(".ss-differs").length') == 2
    tie = {"checked": 16, "exact": 15, "near_ties": 1, "violations": 0, "noise": 0.1, "say": "", "tone": "near",
           "places": [{"position": at, "token": 1, "choice": 2, "margin": 0.003}]}  # fmt: skip
    shown.do("player.feed(given)", json.dumps({"kind": "check", "lane": 1, "check": tie, "speedup": None}) + "\n")
    shown.wait("document.querySelector('.ss-verdict').dataset.tone === 'near'")
    assert "margin 0.0030" in shown.text(".ss-verdict")
    wrong_check = tie | {"near_ties": 0, "violations": 1, "places": []}
    shown.do("player.feed(given)", json.dumps({"kind": "check", "lane": 0, "check": wrong_check}) + "\n")
    shown.wait("document.querySelector('.ss-verdict').dataset.tone === 'broken'")


@slow  # it plays in real time
def test_a_race_waits_for_its_lanes_and_fits_a_phone(race: Callable[..., Shown]) -> None:
    """Nothing starts before all announced lanes are in; six hostile lanes stay inert and inside 390 pixels."""
    shown = race([timed(record("rest"), 10)], width=390, height=844)
    shown.do("player.reset(); player.feed(given)", json.dumps({"kind": "race", "labels": [*"abcdef"]}) + "\n")
    names = ("rest", "jacobi", "medusa", "kangaroo", "ngrammys", "lookahead")
    got = lines([timed(hostile(record(name)), 10) for name in names]).splitlines(keepends=True)[1:]
    shown.do("player.feed(given)", "".join(line for line in got if json.loads(line)["lane"] < 5))
    assert shown.run("player.ready") is False and shown.page.is_disabled("button[aria-label^='Play']")
    shown.do("player.feed(given)", "".join(line for line in got if json.loads(line)["lane"] == 5))
    shown.do("player.change({ speed: 20 }); player.play()")  # a short race is slowed to some seconds
    shown.wait("!player.state.playing && player.state.time > 0")
    assert shown.run("document.documentElement.scrollWidth") <= 390
    assert shown.page.title() == "player" and shown.run("document.querySelectorAll('img, iframe').length") == 0


def test_a_race_begins_anew_while_the_former_one_plays(race: Callable[..., Shown]) -> None:
    """Once the pending frame was cancelled for good: nothing of the new race was ever drawn, and 4× ran at 1×."""
    shown = race([timed(record("rest"), 5000)])
    shown.page.select_option("select[aria-label=Speed]", "4")
    shown.page.click("button[aria-label^='Play']")
    shown.wait("player.state.time > 0")
    shown.do("player.reset(); player.feed(given)", lines([timed(record("jacobi"), 10), timed(record("medusa"), 10)]))
    shown.wait(
        "[...document.querySelectorAll('.ss-lane h2')].map((node) => node.textContent).join() === 'Jacobi,Medusa'"
    )
    assert shown.run("player.root.dataset.at") == "0" and not shown.run("player.state.playing")
    assert shown.run("[player.state.speed, player.speed.value]") == [4, "4"]


def test_a_race_that_was_stopped_tells_what_its_ended_lanes_came_to(race: Callable[..., Shown]) -> None:
    """Lanes that never began must not keep the others from playing, nor may a cut one win or count as agreeing."""
    whole, other, cut = (timed(record(name), 10) for name in ("rest", "jacobi", "medusa"))
    assert cut.summary is not None
    cut = replace(cut, steps=cut.steps[:2], summary=replace(cut.summary, finish="cancelled"))
    shown = race([whole, other, cut])
    got = [{"kind": "race", "labels": [*"abcde"]}]
    got += [{"kind": "fault", "lane": lane, "sentence": "Stopped before its first step."} for lane in (3, 4)]
    shown.do("player.feed(given)", json.dumps(got[0]) + "\n")
    assert shown.run("player.ready") is False
    shown.do("player.feed(given)", "".join(json.dumps(line) + "\n" for line in got))
    assert shown.run("player.ready") and not shown.page.is_disabled("button[aria-label^='Play']")
    shown.do("player.change({ time: player.length })")
    verdict = shown.text(".ss-verdict")
    assert verdict == "2 lossless runs wrote the same 16 tokens. Not compared: 1 run cut short."
    rows = shown.run(
        '[...player.results.querySelectorAll("tbody tr")].map((row) => [...row.cells].map((c) => c.textContent))'
    )
    assert rows[-1][:2] == ["–", "Medusa"] and "–" not in [row[0] for row in rows[:-1]]
    places = shown.run("player.list.map((lane) => lane.node.querySelector('.ss-place').textContent)")
    assert sorted(place[:3] for place in places[:2]) == sorted(row[0] for row in rows[:-1])
    assert places[2:] == ["stopped before its end", "", ""]
    assert "Stopped before its first step." in shown.text("[data-lane='4']")


def test_the_table_tells_the_memory_of_every_lane(race: Callable[..., Shown]) -> None:
    """Two megabytes of weights, and a tenth of one for each cached token; without sizes nothing is guessed at."""
    trace = timed(record("rest"), 10)
    card = replace(trace.header.model, weight_bytes=2_000_000, token_bytes=100_000)
    shown = race([replace(trace, header=replace(trace.header, model=card)), trace])
    shown.do("player.change({ time: player.length })")
    cached = max(step.start - 1 - step.pending + step.fed for step in trace.steps)
    headings, *rows = shown.run(
        '[...document.querySelectorAll(".ss-table")].at(-1).innerText.split("\\n").map((row) => row.split("\\t"))'
    )
    column = headings.index("Memory")
    assert sorted(row[column] for row in rows if len(row) > column) == [f"{2 + cached / 10:.1f} MB", "–"]


def test_a_race_that_breaks_off_keeps_what_it_has(race: Callable[..., Shown]) -> None:
    """A lane that has ended stays as it is; the others say why no more comes, those that never began as well."""
    fast, slow = timed(record("lookahead"), 40), timed(record("autoregressive"), 50)
    got = [line for line in lines([fast, slow]).splitlines() if '"kind": "end"' not in line or '"lane": 0' in line]
    shown = race([fast])
    shown.do("player.reset(); player.feed(given)", "\n".join(got).replace('"Runner 1"', '"Runner 1", "Third"') + "\n")
    assert shown.run("[player.ready, player.list.length]") == [False, 3]
    assert shown.text("[data-lane='2'] h2") == "Third"
    shown.do("player.lose('It broke.')")
    assert shown.run("[player.ready, player.list.map((lane) => lane.record.fault)]") == [
        True,
        [None, "It broke.", "It broke."],
    ]
    shown.do("player.change({ time: player.length, playing: false })")
    assert shown.run(SEEN)[1] == "".join(slow.texts[token] for token in slow.ids)
    assert [shown.text(f"[data-lane='{lane}'] .ss-pace") for lane in (1, 2)] == ["It broke."] * 2
