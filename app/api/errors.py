"""Errors for programs: a status, and the object that OpenAI's clients expect."""

from __future__ import annotations

import logging

from starlette.responses import JSONResponse

from decoding.errors import ModelError, SpecscopeError

from ..jobs.runner import ClosingError
from ..jobs.streaming import FAILED, UnbegunError, report_refusal
from ..server.middleware.bodies import Json
from ..server.middleware.errors import RequestError
from ..server.run_queue import FullError

_log = logging.getLogger(__name__)
NO_STORE = {"Cache-Control": "no-store"}
STREAM = {**NO_STORE, "X-Accel-Buffering": "no"}  # nginx would collect the events
_RETRY = "30"  # seconds, for Retry-After
_TYPES = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}


def report(error: Exception) -> None:
    """Count a refusal; log an error that is neither a caller's mistake nor the server's load."""
    if isinstance(error, RequestError):
        status = status_of(error)
        _log.info("a call was refused (%d)", status, extra={"facts": {"event": "refusal", "reason": str(status)}})
    elif isinstance(error, SpecscopeError):
        report_refusal(error)
    else:
        _log.error("a run failed", exc_info=error)


def status_of(error: Exception) -> int:
    """Return the HTTP status for an error."""
    if isinstance(error, RequestError):
        return 400 if error.status == 422 else error.status
    if isinstance(error, FullError):
        return 429
    if isinstance(error, ModelError | UnbegunError | ClosingError):
        return 503
    return 400 if isinstance(error, SpecscopeError) else 500


def error_object(error: Exception, status: int) -> Json:
    """Return OpenAI's error object."""
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": error_sentence(error), "type": kind, "param": None, "code": status}}


def error_sentence(error: Exception) -> str:
    """Return the sentence for a caller; the text of an unexpected error is not shown."""
    shown = error if isinstance(error, SpecscopeError) else FAILED
    return f"{str(shown).rstrip('.')}."  # no capital letter: it may begin with a field's name


def error_response(error: Exception) -> JSONResponse:
    """Report an error, and return its response. The connection is closed, because a body may still be arriving."""
    report(error)
    status = status_of(error)
    headers = {**NO_STORE, "Connection": "close"}
    if status in (429, 503):
        headers["Retry-After"] = _RETRY
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(error_object(error, status), status, headers)
