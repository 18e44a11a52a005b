"""Serve runs as on ZeroGPU, with a device API of our own: started by test_zero_gpu.py in a process of its own.

The process with the GPU is forked as on such a Space, and has a processor.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import sys
import threading
from typing import Any

from tools.pretended_zero_gpu import DeviceAPI, pretend

pretend()
DeviceAPI.idle = False  # each run is forked anew, with what this process has changed

import gradio as gr  # noqa: E402
from gradio.context import LocalContext  # noqa: E402

from app.jobs.examination import Examination  # noqa: E402
from app.jobs.live_run import LiveRun  # noqa: E402
from app.jobs.race import Race  # noqa: E402
from app.jobs.runner import Job  # noqa: E402
from app.models.entry import CatalogEntry  # noqa: E402
from app.server import gpu_time, serving, zero_gpu  # noqa: E402
from app.server.middleware.origin import Owner  # noqa: E402
from app.state import AppState  # noqa: E402
from app.ui import build  # noqa: E402
from decoding import METHODS  # noqa: E402
from tests.app import conftest  # noqa: E402
from tools.page import free_port  # noqa: E402

HEADERS = type("Headers", (dict,), {})({"x-ip-token": "e30.e30.e30"})  # a dictionary with a __dict__

catalog = {"toy": CatalogEntry("toy", "toy", draft="toy"), "gone": CatalogEntry("gone", "/no/such/folder")}
zero_gpu.place(catalog)
conftest.CATALOG = catalog
app_state = AppState(catalog, "toy")
port = free_port()
page = build(app_state)
running = serving.Running(page, serving.Site(""), app_state.tracker, Owner()).start("127.0.0.1", port)
zero_gpu.show_server(page, running.server)


def played(job: Job) -> list[dict[str, Any]]:
    """Run a job as a visitor's event does; returns its lines."""
    DeviceAPI.asked.clear()
    request = gr.Request()
    request.headers = HEADERS
    LocalContext.request.set(request)
    LocalContext.blocks.set(page)
    text = ""
    for text in app_state.jobs.start(job, "tab"):  # noqa: B007
        pass
    return [json.loads(line) for line in text.splitlines()]


def values(name: str) -> list[str]:
    """Return one argument of all calls of the device API."""
    return [call[name] for call in list(DeviceAPI.asked) if name in call]


def killed() -> dict[str, Any]:
    """Kill the process with the GPU in the middle of a run; returns what its visitor has of the run."""
    usual, steps = METHODS["autoregressive"].propose, list[object]()

    def propose(method: Any) -> Any:
        steps.append(method)
        if len(steps) > 8:
            os.kill(os.getpid(), signal.SIGKILL)
        return usual(method)

    METHODS["autoregressive"].propose = propose  # type: ignore[method-assign]
    lines = played(LiveRun(conftest.asked(method="autoregressive", params={}), ""))
    METHODS["autoregressive"].propose = usual  # type: ignore[method-assign]
    stored = app_state.store.get(lines[0]["run"])
    shown = sum(line["kind"] == "step" for line in lines)
    return {"killed": lines[-1]["sentence"], "shown": shown, "stored": len(stored.trace.steps) if stored else 0}


def report(**facts: Any) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")


if __name__ == "__main__":
    visitor = socket.create_connection(("127.0.0.1", port))
    visitor.sendall(b"GET / HTTP/1.1\r\n")  # stays open while the other process is forked
    lines = played(LiveRun(conftest.asked(compare=True), ""))
    run = app_state.store.get(lines[0]["run"])
    assert run is not None
    plain = zero_gpu._engines["toy"].generate(
        "Monday: high tide at six", "lookahead", {"W": 4, "N": 4, "G": 4}, max_new_tokens=24
    )
    report(
        models=[*catalog],
        same=run.trace.ids == plain.trace.ids and len(run.trace.steps) == len(plain.trace.steps),
        check=lines[-1]["check"]["exact"],
        forked=values("pid") != [str(os.getpid())],
        durations=values("durationSeconds"),
        tokens=values("token"),
        paths=values("path"),
    )
    where = {"node": None, "token": " x", "keep": None, "name": "run", "time_budget": 9.0, "cancel": threading.Event()}
    there = zero_gpu.PlacedEngine("toy", zero_gpu._engines["toy"]).branch(run.trace, 2, **where)
    there_ids = [token for step in there for token in step.emitted]
    here = zero_gpu._engines["toy"].branch(run.trace, 2, token=" x")
    report(branched=there_ids == [token for step in here for token in step.emitted])
    raced = played(Race([conftest.asked(method=name, params={}) for name in ("lookahead", "autoregressive")], ""))
    report(raced=len(raced[-1]["runs"]), durations=values("durationSeconds"))
    report(examined=played(Examination(catalog["toy"], "draft_model"))[-1], calls=values("path"))
    gpu_time._paces.clear()
    DeviceAPI.left = 12
    played(LiveRun(conftest.asked(max_new_tokens=200), ""))
    report(shorter=values("durationSeconds"))
    DeviceAPI.left, DeviceAPI.longest = 10**6, 25
    gpu_time.note_pace("toy", "lookahead", 1.0)
    report(check=played(LiveRun(conftest.asked(), ""))[-1]["check"]["exact"], illegal=values("durationSeconds"))
    DeviceAPI.longest = 10**6
    DeviceAPI.left = 1
    report(refused=played(LiveRun(conftest.asked(), ""))[-1])
    DeviceAPI.left = 10**6
    report(**killed())
    report(after=played(LiveRun(conftest.asked(), ""))[-1]["check"]["exact"])
    ended = running.stop()
    visitor.settimeout(5)
    report(ended=ended, closed=visitor.recv(1 << 16)[-1:] == b"" or visitor.recv(1 << 16) == b"")
    for child in multiprocessing.active_children():
        child.kill()
    sys.stdout.flush()
    os._exit(0)
