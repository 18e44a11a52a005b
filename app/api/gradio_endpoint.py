"""`decode` for `gradio_client`, by the version of Gradio's protocol in which each run has its own stream ("sse").

The client opens the stream, which names an event, and posts the values to it. So a run ends with its stream, and
nothing is stored after it. Gradio itself answers none of this, and its other endpoints stay closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import gradio
from starlette.responses import JSONResponse, Response, StreamingResponse

from ..server.limits import LIMITS
from ..server.middleware.bodies import Json
from ..server.middleware.errors import RequestError, not_found
from ..state import AppState
from ..store.trace_store import new_id
from .answers import decode_answer
from .errors import NO_STORE, STREAM, error_sentence, report
from .keys import Caller
from .requests import METHOD, NEW_TOKENS, decode_call
from .run import ApiRun, pieces

CONFIG = "/config"
_PREFIX = "/v1/gradio"
INFO, STREAMS, VALUES = f"{_PREFIX}/info", f"{_PREFIX}/queue/join", f"{_PREFIX}/queue/data"
READ, POSTED = frozenset({CONFIG, INFO, STREAMS}), frozenset({VALUES})
_PARAMETERS: dict[str, tuple[str, object]] = {  # Python's type, and the default
    "prompt": ("str", None),
    "method": ("str", METHOD),
    "params": ("dict[str, Any]", None),
    "model": ("str", None),
    "max_new_tokens": ("int", NEW_TOKENS),
    "sampling": ("dict[str, Any]", None),
}
_LATE = RequestError(408, "The values did not arrive in time: call again.")


class GradioEndpoint:
    """Answers the requests of the client's `predict` and `submit`."""

    def __init__(self, app_state: AppState) -> None:
        self._state = app_state
        self._asked: dict[str, tuple[str, asyncio.Future[object]]] = {}  # by event: who asks, and the values to come

    def read(self, path: str, caller: Caller) -> Response:
        """Answer the client's GET requests."""
        if path == STREAMS:
            return StreamingResponse(self._messages(caller), headers=STREAM, media_type="text/event-stream")
        return JSONResponse(_config() if path == CONFIG else _info(), headers=NO_STORE)

    def take(self, body: object, caller: Caller) -> Response:
        """Accept the values of an event. Errors in them are reported in its stream, where the client reads."""
        event = body.get("event_id") if isinstance(body, dict) else None
        client, values = self._asked.get(event, ("", None)) if isinstance(event, str) else ("", None)
        if values is None or client != caller.client or values.done():
            raise not_found()
        values.set_result(body["data"] if isinstance(body, dict) and "data" in body else None)
        return JSONResponse({"success": True}, headers=NO_STORE)

    async def _messages(self, caller: Caller) -> AsyncIterator[str]:
        """Yield the messages of a run, from the request for its values to its answer."""
        event, values = new_id(), asyncio.get_running_loop().create_future()
        self._asked[event] = caller.client, values
        try:
            yield _written("send_data", event_id=event)
            run = ApiRun(decode_call(self._state.catalog, self._state.default_model, await _body(values)))
            text = ""
            async with contextlib.aclosing(pieces(self._state.jobs, run, caller.client)) as texts:
                async for more in texts:
                    text += more
                    yield _written("process_generating", output={"data": [{"text": text}]} if more else {"data": []})
            assert run.trace is not None
            output = {"data": [decode_answer(run, run.trace, caller.root)]}
            yield _written("process_generating", output=output)  # whoever iterates gets no other than these
            yield _written("process_completed", success=True, output=output)
        except Exception as error:
            report(error)
            yield _written("process_completed", success=False, output={"error": error_sentence(error)})
        finally:
            del self._asked[event]


async def _body(values: asyncio.Future[object]) -> Json:
    """Return the body of `decode` for the values of the parameters, in their order."""
    try:
        data = await asyncio.wait_for(values, LIMITS.body_seconds)
    except TimeoutError:
        raise _LATE from None
    if not isinstance(data, list) or len(data) > len(_PARAMETERS):
        raise RequestError(400, f"The values are a list of {', '.join(_PARAMETERS)}.")
    return dict(zip(_PARAMETERS, data, strict=False))


def _written(kind: str, **fields: Any) -> str:
    return f"data: {json.dumps({'msg': kind, **fields})}\n\n"


def _config() -> Json:
    """Describe the endpoint like one of Gradio's pages: a component for each parameter, and one for the answer."""
    numbers = [*range(len(_PARAMETERS) + 1)]
    return {
        "version": gradio.__version__,
        "protocol": "sse",
        "api_prefix": _PREFIX,
        "connect_heartbeat": False,
        "components": [{"id": number, "type": "api", "props": {}} for number in numbers],
        "dependencies": [
            {
                "id": 0,
                "api_name": "decode",
                "api_visibility": "public",
                "backend_fn": True,
                "inputs": numbers[:-1],
                "outputs": numbers[-1:],
            }
        ],
    }


def _info() -> Json:
    parameters = [
        {
            "label": name,
            "parameter_name": name,
            "parameter_has_default": name != "prompt",
            "parameter_default": default,
            "type": {},
            "python_type": {"type": kind, "description": ""},
            "component": "Api",
            "example_input": default,
        }
        for name, (kind, default) in _PARAMETERS.items()
    ]
    answer = {
        "label": "answer",
        "type": {},
        "python_type": {"type": "dict[str, Any]", "description": "text, counts, and the address of the record"},
        "component": "Api",
    }
    decode = {"parameters": parameters, "returns": [answer], "api_visibility": "public"}
    return {"named_endpoints": {"/decode": decode}, "unnamed_endpoints": {}}
