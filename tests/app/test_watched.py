"""What watches the server: its health, its metrics and its log, and what they must not tell."""

from __future__ import annotations

import json
import logging
import re
import socket
import sys
from collections.abc import Iterator

import pytest

from app.__main__ import main
from app.server.log import JsonFormatter
from app.server.run_queue import RunQueue
from app.state import AppState
from decoding import __version__
from tools.page import API, Page, serving

from .conftest import lines
from .test_log import record

SECRET = "xylophone zeppelin"  # words of a prompt that nothing else says


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    pytest.importorskip("prometheus_client", reason="prometheus_client is not installed: pip install -e .[metrics]")
    log = tmp_path_factory.mktemp("watched") / "log"
    with serving(log, "--model", "pocket", "--metrics", "--log-json") as running:
        yield running


def scrape(page: Page) -> dict[str, float]:
    """Return the samples by name and labels, as a Prometheus server reads them."""
    from prometheus_client.parser import text_string_to_metric_families

    answer = page.visitor().ask("GET", "/metrics")
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/plain")
    samples = dict[str, float]()
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            samples[" ".join([sample.name, *sample.labels.values()])] = sample.value
    return samples


def summary(stream: str) -> dict[str, int]:
    """Return the numbers of a run from the lines that the page got."""
    [end] = [each["summary"] for each in lines(stream) if each["kind"] == "end"]
    return dict(end)


@pytest.mark.slow  # a server of its own
def test_what_is_scraped_is_what_was_run(page: Page) -> None:
    before = scrape(page)
    runs = {"lookahead": 2, "autoregressive": 1}
    wrote = dict.fromkeys(runs, 0)
    for method, times in runs.items():
        for _ in range(times):
            stream = page.visitor().run(run_method=method, run_length=12, run_prompt=SECRET)
            wrote[method] += summary(stream)["new_tokens"]
    after = scrape(page)

    def more(name: str) -> float:
        return after.get(name, 0) - before.get(name, 0)

    for method, times in runs.items():
        ended = {name: more(name) for name in after if name.startswith(f"specscope_runs_total {method} ")}
        assert sum(ended.values()) == times and set(ended) <= {
            f"specscope_runs_total {method} {outcome}" for outcome in ("length", "end_of_text")
        }
        assert more(f"specscope_tokens_total {method}") == wrote[method] > 0
    steps, accepted, drafted = (
        more(f"specscope_{name}_total lookahead") for name in ("steps", "accepted_tokens", "drafted_tokens")
    )
    assert steps + accepted >= wrote["lookahead"] and 0 <= accepted <= drafted
    assert more("specscope_drafted_tokens_total autoregressive") == 0
    assert more("specscope_steps_total autoregressive") == wrote["autoregressive"]
    assert more("specscope_wait_seconds_count") == 3
    assert after["specscope_waiting"] == after["specscope_running"] == 0
    assert after["specscope_models loaded"] == 1
    assert 100 < after["process_resident_memory_bytes"] / 2**20 < 10 * page.megabytes
    assert not any(name.startswith("specscope_errors") for name in after)


@pytest.mark.slow  # a server of its own
def test_refusals_are_counted_by_reason(page: Page) -> None:
    before, visitor = scrape(page), page.visitor()
    assert visitor.ask("GET", "/nothing").status == 404
    assert visitor.ask("GET", "/", Host="evil.example").status == 421
    assert '"refused"' in visitor.run(run_method="lookahead", run_length=12, run_prompt=" ")
    after = scrape(page)
    for reason in ("404", "421", "settings"):
        assert after[f"specscope_refusals_total {reason}"] == before.get(f"specscope_refusals_total {reason}", 0) + 1


def test_verdicts_of_the_guardrails_are_counted(app_state: AppState, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("prometheus_client", reason="prometheus_client is not installed: pip install -e .[metrics]")
    from app.server.metrics import Metrics

    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # to which it adds itself
    metrics = Metrics(app_state)
    for category in ("acceptable", "hateful", "acceptable"):
        metrics.emit(record("", facts={"event": "verdict", "what": "answer", "category": category}))
    shown = metrics.text().decode()
    for category, count in (("acceptable", 2), ("hateful", 1)):
        assert f'specscope_guardrail_verdicts_total{{category="{category}",what="answer"}} {count}.0' in shown


@pytest.mark.slow  # a server of its own
def test_neither_metrics_nor_log_tell_a_prompt_or_an_answer(page: Page) -> None:
    visitor = page.visitor()
    visitor.run(run_method="lookahead", run_length=12, run_prompt=SECRET)
    for prompt in (SECRET * 800, f"{SECRET} \ud83d"):  # too long, and with half of a character
        visitor.join(run_prompt=prompt)
    visitor.ask("GET", f"/?prompt={SECRET.replace(' ', '+')}")
    visitor.ask("GET", f"/nothing?prompt={SECRET.replace(' ', '+')}")
    told = page.log.read_text() + page.visitor().ask("GET", "/metrics").text
    assert not [word for word in SECRET.split() if word in told]


@pytest.mark.slow  # a server of its own
def test_every_line_of_the_log_is_an_object_with_its_facts(page: Page) -> None:
    page.visitor().run(run_method="lookahead", run_length=12)
    logged = [json.loads(line) for line in page.log.read_text().splitlines()]
    assert all({"time", "level", "logger", "message"} <= set(line) for line in logged)
    run = [line for line in logged if line.get("event") == "run"][-1]
    assert run["method"] == "lookahead" and run["outcome"] in ("length", "end_of_text") and run["model"] == "pocket"
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", run["time"])


@pytest.mark.slow  # a server of its own
def test_health_is_answered_while_a_run_goes_on(page: Page) -> None:
    runner = page.visitor()
    assert runner.join(run_method="ngrammys", run_length=256).status == 200
    stream = runner.stream()
    next(message for message in stream if '"kind":"step"' in str(message.get("output")))
    told = page.visitor().ask("GET", "/healthz", seconds=2).json()
    assert told["running"] == 1 and told["waiting"] == 0
    list(stream)


@pytest.mark.slow  # a server of its own
@pytest.mark.parametrize("host", ["10.0.0.7:7860", "specscope.internal", "evil.example", "", "a b"])
def test_health_is_told_under_every_host_name(page: Page, host: str) -> None:
    answer = page.visitor().ask("GET", "/healthz", Host=host)
    assert answer.status == 200 and answer.headers["cache-control"] == "no-store"
    told = answer.json()
    assert told["status"] == "ok" and told["version"] == __version__
    assert set(told["models"]) == {"loaded", "loading", "failed"} and type(told["running"]) is int
    assert "/" not in answer.text and "pocket" not in answer.text


@pytest.mark.slow  # a server of its own
def test_only_health_is_told_under_every_host_name(page: Page) -> None:
    """The metrics tell how much a private page is used."""
    for path in ("/metrics", "/", "/healthz/", f"{API}/heartbeat/a"):
        assert page.visitor().ask("GET", path, Host="evil.example").status == 421


@pytest.mark.slow  # a server of its own
def test_health_is_only_read(page: Page) -> None:
    head = page.visitor().ask("HEAD", "/healthz")
    assert head.status == 200 and head.text == ""
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert page.visitor().ask(method, "/healthz", b"{}").status == 405


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    pytest.importorskip("prometheus_client", reason="prometheus_client is not installed: pip install -e .[metrics]")
    log = tmp_path_factory.mktemp("proxied") / "log"
    with serving(log, "--replay-only", "--metrics", "--behind-proxy") as running:
        yield running


@pytest.mark.slow  # a server of its own
def test_what_came_through_the_proxy_cannot_scrape(proxied: Page) -> None:
    """Also a page without a model has its health, and metrics only if they were asked for."""
    visitor = proxied.visitor()
    assert visitor.ask("GET", "/metrics").status == 200
    assert visitor.ask("GET", "/metrics", X_Forwarded_For="1.1.1.1").status == 404
    told = visitor.ask("GET", "/healthz", X_Forwarded_For="1.1.1.1").json()
    assert told["models"] == {"loaded": 0, "loading": 0, "failed": 0}


@pytest.mark.slow  # a server of its own
def test_lines_of_the_log_cannot_be_forged_nor_fill_a_disk(proxied: Page) -> None:
    visitor = proxied.visitor()
    visitor.ask("GET", "/a%0aforged%0d%1b[31mred")
    with socket.create_connection(("127.0.0.1", proxied.port)) as raw:
        raw.sendall(b"nonsense\r\n\r\n")
        raw.recv(1_000)
    for _ in range(300):
        visitor.ask("GET", "/flood" + "x" * 500)
    log = proxied.log.read_text()
    assert "\\nforged\\r\\x1b[31mred" in log and "Traceback" not in log and "\x1b" not in log
    assert "Invalid HTTP request" in log  # other lines are told beside those of refused requests
    assert not any(line.startswith("forged") for line in log.splitlines())
    assert max(map(len, log.splitlines())) < 600 and len(log.splitlines()) < 100


def test_what_nobody_switched_on_is_not_there(replaying: Page) -> None:
    ask = replaying.visitor().ask
    assert ask("GET", "/healthz").status == 200
    assert [ask("GET", path).status for path in ("/metrics", "/v1/models", "/mcp")] == [404] * 3
    assert [ask("POST", path, b"{}").status for path in ("/v1/decode", "/v1/chat/completions", "/mcp")] == [404] * 3


def test_metrics_without_their_package_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    assert main(["--metrics", "--replay-only"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "--metrics needs the Python package prometheus_client" in told
    assert 'pip install -e ".[metrics]"' in told


def test_the_queue_counts_who_waits_apart_from_who_is_served() -> None:
    queue = RunQueue(4)
    assert (queue.waiting, queue.serving) == (0, False)
    first, second = queue.join("a"), queue.join("b")
    assert (queue.waiting, queue.serving) == (1, True)
    first.leave()
    second.leave()
    assert (queue.waiting, queue.serving) == (0, False)


def test_a_line_of_json_is_bounded_too() -> None:
    line = JsonFormatter().format(record("a\nb\u2028" + "x" * 100_000, facts={"event": "run", "tokens": 3}))
    told = json.loads(line)
    assert len(line.splitlines()) == 1 and len(line) < 1_000 and told["tokens"] == 3
