"""`/healthz`: whether the server is up, for supervisors and load balancers.

It is answered under every host name, so it contains numbers only, which another site may read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from decoding import __version__

if TYPE_CHECKING:
    from ..state import AppState

MODEL_STATES = ("loaded", "loading", "failed")


def route(app_state: AppState) -> Route:
    """Return the route. The event loop answers it, so a busy engine does not delay it."""

    async def answer(request: Request) -> JSONResponse:
        return JSONResponse(health(app_state), headers={"Cache-Control": "no-store"})

    return Route("/healthz", answer)


def health(app_state: AppState) -> dict[str, object]:
    """Describe the server: how many models are in each state, and how many runs are waiting and running."""
    models, waiting, running = dict.fromkeys(MODEL_STATES, 0), 0, 0
    if not app_state.replay_only:
        jobs = app_state.jobs
        models |= jobs.models.states()
        waiting, running = jobs.queue.waiting, int(jobs.queue.serving)
    return {"status": "ok", "version": __version__, "models": models, "waiting": waiting, "running": running}
