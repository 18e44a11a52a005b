"""Faults of the machine: after each the next visitor is served, and what was recorded is still there.

Other faults have tests beside what survives them: killed query processes in test_query_workers.py, killed children of
all kinds in tests/test_child_process.py, killed ZeroGPU workers in test_zero_gpu.py, slow readers in
test_connections.py, lost connections and closed tabs in tests/browser/app/test_visitors.py.
"""

from __future__ import annotations

import errno
import gc
import os
import re
import resource
import shutil
import signal
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from app.jobs.live_run import LiveRun
from app.jobs.runner import JobRunner
from app.models.entry import CatalogEntry
from app.models.model_pool import ModelPool
from app.server.limits import LIMITS
from app.store.trace_store import TraceStore
from decoding import METHODS, smollm2
from decoding.trace.file import parse_trace
from tests.test_load import save
from tests.tiers import slow
from tools.page import Page, serving

from .conftest import CATALOG, asked, lines

AUTO: dict[str, Any] = {"method": "autoregressive", "params": {}}


def whole(jobs: JobRunner, **changes: Any) -> list[dict[str, Any]]:
    return lines(deque(jobs.start(LiveRun(asked(**AUTO, **changes), ""), "tab"), maxlen=1).pop())


def is_served(jobs: JobRunner) -> None:
    """The next visitor's run is whole, and every token of it is the target's choice."""
    assert whole(jobs)[-1]["check"]["exact"] == 24
    assert jobs.active == 0 and len(jobs.queue) == 0


@pytest.mark.parametrize(
    "error",
    [torch.OutOfMemoryError("CUDA out of memory"), MemoryError(), OSError(errno.ENOSPC, "No space left on device")],
    ids=lambda error: type(error).__name__,
)
def test_a_run_that_fails_keeps_the_steps_that_it_made(
    jobs: JobRunner, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its steps were on the screen, but nobody could save them."""
    made, usual = list[object](), METHODS["autoregressive"].propose

    def propose(method: Any) -> Any:
        made.append(method)
        if len(made) > 8:
            raise error
        return usual(method)

    with monkeypatch.context() as patch:
        patch.setattr(METHODS["autoregressive"], "propose", propose)
        got = whole(jobs)
    assert got[-1]["kind"] == "fault" and "failed on this machine" in got[-1]["sentence"]
    stored = jobs.store.find(got[0]["run"])
    assert stored.trace.summary is not None and stored.trace.summary.finish == "error"
    assert len(stored.trace.steps) == sum(line["kind"] == "step" for line in got) == 8
    packed = jobs.store._packed.get(got[0]["run"])
    assert packed is not None and len(parse_trace(packed.data).steps) == 8
    is_served(jobs)


def test_a_model_whose_folder_is_removed_decodes_on(models: ModelPool, tmp_path: Path) -> None:
    """Its weights are in memory; loaded anew it is a sentence, and the other models are served."""
    folder = save(tmp_path / "model")
    entry = CatalogEntry("here", folder, dtype="float32", device="cpu")
    order = {"prompt": "w3 w4", "raw": True}
    jobs = JobRunner(ModelPool(CATALOG | {"here": entry}), TraceStore())
    here = LiveRun(replace(asked(**AUTO, **order), entry=entry), "")
    first = lines(deque(jobs.start(here, "tab"), maxlen=1).pop())
    shutil.rmtree(folder)
    again = lines(deque(jobs.start(here, "tab"), maxlen=1).pop())
    assert first[-1]["check"]["checked"] == again[-1]["check"]["checked"] == 24
    assert jobs.store.find(first[0]["run"]).trace.ids == jobs.store.find(again[0]["run"]).trace.ids
    jobs = JobRunner(ModelPool(CATALOG | {"here": entry}), TraceStore())
    gone = lines(deque(jobs.start(here, "tab"), maxlen=1).pop())[-1]
    assert gone["kind"] == "fault" and "choose another model" in gone["sentence"] and str(tmp_path) not in str(gone)
    jobs.models = models
    is_served(jobs)


@pytest.mark.long
@slow
def test_a_thousand_cancelled_runs_leave_nothing(jobs: JobRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither turns nor threads nor sessions; of their records as many stay as a visitor may store."""
    for module in ("runner", "live_run"):
        monkeypatch.setattr(f"app.jobs.{module}.LIMITS", replace(LIMITS, live_gap=0.0))
    threads = 0
    for number in range(1000):
        texts = jobs.start(LiveRun(asked(**AUTO, max_new_tokens=200), ""), "tab", "visitor")
        for text in texts:
            if '"kind":"step"' in text or number % 3 == 0:  # some are cancelled before they begin
                jobs.stop("tab", LiveRun)
                if number % 2:
                    break  # nobody reads on, as if the tab had been closed
        texts.close()
        if number == 100:
            gc.collect()
            threads = threading.active_count()
    assert threading.active_count() <= threads
    assert jobs.active == 0 and len(jobs.queue) == 0 and len(jobs.store) <= LIMITS.stored_runs_each
    assert not jobs.store.streaming
    is_served(jobs)


@contextmanager
def limited(page: Page, kind: int, most: int) -> Iterator[None]:
    """Limit what a page may use while the block lasts."""
    before = resource.prlimit(page.process.pid, kind)
    resource.prlimit(page.process.pid, kind, (most, before[1]))
    try:
        yield
    finally:
        resource.prlimit(page.process.pid, kind, before)


def address_space(page: Page) -> int:
    status = Path(f"/proc/{page.process.pid}/status").read_text()
    return int(re.findall(r"VmSize:\s+(\d+) kB", status)[0]) << 10


def run(page: Page, **changes: Any) -> list[dict[str, Any]]:
    text = page.visitor().run(120, run_method="autoregressive", run_length=24, **changes)
    return lines(text)


@pytest.mark.long
@slow
def test_a_full_memory_and_a_full_disk_cost_one_model(tmp_path: Path) -> None:
    """SmolLM2 is converted into a cache at its first use: where neither has room, the others are served."""
    if smollm2.here() is None:
        pytest.skip("SmolLM2 is not installed: make real")
    with serving(tmp_path / "log", "--model", "pocket", XDG_CACHE_HOME=str(tmp_path / "cache")) as page:
        assert run(page)[-1]["kind"] == "check"
        for kind, most in ((resource.RLIMIT_AS, address_space(page) + (150 << 20)), (resource.RLIMIT_FSIZE, 0)):
            with limited(page, kind, most):
                refused = run(page, run_model="SmolLM2 135M")[-1]
                assert refused["kind"] == "fault" and "cannot be loaded on this server now" in refused["sentence"], kind
                assert run(page)[-1]["kind"] == "check", kind
        assert run(page, run_model="SmolLM2 135M")[-1]["kind"] == "check"
        assert "Traceback" not in page.log.read_text()


@pytest.mark.long
@slow
def test_a_server_that_slept_goes_on(tmp_path: Path) -> None:
    """For longer than an unread run is kept: its clocks jump, as those of a laptop that is opened again."""
    with serving(tmp_path / "log", "--model", "pocket") as page:
        first, second = page.visitor(), page.visitor()
        assert first.join(run_method="autoregressive", run_length=200).status == 200
        stream = first.stream()
        next(message for message in stream if '"kind":"step"' in str(message.get("output")))
        os.kill(page.process.pid, signal.SIGSTOP)
        try:
            threading.Event().wait(LIMITS.unread_seconds + 2)
        finally:
            os.kill(page.process.pid, signal.SIGCONT)
        assert [message for message in stream if message["msg"] == "process_completed"][0]["success"]
        assert '"kind":"check"' in second.run(run_method="autoregressive", run_length=24)
        assert page.visitor().ask("GET", "/healthz").json()["running"] == 0
        assert " error " not in page.log.read_text()


@slow
def test_a_browser_that_is_gone_leaves_its_turn(tmp_path: Path) -> None:
    with serving(tmp_path / "log", "--model", "pocket") as page:
        gone = page.visitor()
        assert gone.join(run_method="ngrammys", run_length=128).status == 200
        stream = gone.stream()
        next(message for message in stream if '"kind":"step"' in str(message.get("output")))
        stream.close()  # type: ignore[attr-defined]
        assert '"kind":"check"' in page.visitor().run(run_method="autoregressive", run_length=24)
