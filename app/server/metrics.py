"""`/metrics`: counts for a Prometheus server, from the log's records and the queue's present state.

No label names a prompt, an answer, a visitor or an address.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from decoding import __version__

from .health import MODEL_STATES, health
from .log import facts_of

if TYPE_CHECKING:
    from ..state import AppState

_WAITS = (0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)  # seconds


class Metrics(logging.Handler):
    """Counts records before the log's rate limit."""

    def __init__(self, app_state: AppState) -> None:
        super().__init__(logging.INFO)
        self._app_state = app_state
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)  # resident memory, processor time, open files
        Info("specscope", "The version that runs.", registry=registry).info({"version": __version__})
        self._runs = Counter("specscope_runs", "Runs that ended.", ("method", "outcome"), registry=registry)
        self._sums = {
            "tokens": Counter("specscope_tokens", "New tokens.", ("method",), registry=registry),
            "steps": Counter("specscope_steps", "Forward passes of the target.", ("method",), registry=registry),
            "drafted": Counter("specscope_drafted_tokens", "Guesses.", ("method",), registry=registry),
            "accepted": Counter("specscope_accepted_tokens", "Accepted guesses.", ("method",), registry=registry),
            "seconds": Counter("specscope_engine_seconds", "Time in steps.", ("method",), registry=registry),
        }
        self._waited = Histogram(
            "specscope_wait_seconds", "Time in the queue before a job's turn.", buckets=_WAITS, registry=registry
        )
        self._refusals = Counter(
            "specscope_refusals", "Requests by status, and refused jobs.", ("reason",), registry=registry
        )
        self._verdicts = Counter(
            "specscope_guardrail_verdicts", "Prompts and answers by category.", ("what", "category"), registry=registry
        )
        self._errors = Counter("specscope_errors", "Errors that were logged.", ("logger",), registry=registry)
        self._now = {
            "waiting": Gauge("specscope_waiting", "Jobs in the queue.", registry=registry),
            "running": Gauge("specscope_running", "Jobs that have the engine.", registry=registry),
        }
        self._models = Gauge("specscope_models", "Models in memory, by state.", ("state",), registry=registry)
        logging.getLogger().addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Count a record."""
        facts = facts_of(record)
        event = facts.get("event")
        if event == "run":
            self._runs.labels(facts["method"], facts["outcome"]).inc()
            for name, counter in self._sums.items():
                counter.labels(facts["method"]).inc(facts[name])
        elif event == "turn":
            self._waited.observe(facts["waited"])
        elif event == "refusal":
            self._refusals.labels(facts["reason"]).inc()
        elif event == "verdict":
            self._verdicts.labels(facts["what"], facts["category"]).inc()
        if record.levelno >= logging.ERROR:
            self._errors.labels(record.name).inc()

    def route(self) -> Route:
        """Return the route."""

        async def answer(request: Request) -> Response:
            return Response(self.text(), media_type=CONTENT_TYPE_LATEST)

        return Route("/metrics", answer)

    def text(self) -> bytes:
        """Write the counts in Prometheus's text format."""
        now: dict[str, Any] = health(self._app_state)
        for name, gauge in self._now.items():
            gauge.set(now[name])
        for state in MODEL_STATES:
            self._models.labels(state).set(now["models"][state])
        written: bytes = generate_latest(self._registry)
        return written
