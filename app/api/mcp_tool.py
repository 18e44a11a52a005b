"""`decode` as a tool of the Model Context Protocol, over streamable HTTP. No session is stored between two requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import ValidationError
from starlette.types import Receive, Scope, Send

from decoding import __version__
from decoding.errors import ParamError, SpecscopeError

from ..jobs.streaming import FAILED
from ..server.limits import LIMITS
from ..server.middleware.bodies import Json
from ..server.middleware.errors import not_found
from .errors import report
from .requests import METHOD, NEW_TOKENS

_NAME = "decode"
_ABOUT = (
    "Decode a prompt with a method of speculative decoding, record every step, and return the text with its counts "
    "and a link to the record. `params` are the method's own; without a method, prompt lookup is used."
)


class _Server(MCPServer):  # type: ignore[misc]
    """A server that reports the calls that it refuses itself."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Call the tool."""
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as refused:
            if name != _NAME:
                report(not_found())
            elif isinstance(refused.__cause__, ValidationError):
                report(ParamError("the arguments are not of the tool's types"))
            raise


class McpTool:
    """An ASGI application with one tool, which calls `decode` with the body of a call."""

    def __init__(self, decode: Callable[[Json], Awaitable[Json]]) -> None:
        server = _Server("specscope", version=__version__)

        async def decode_tool(
            prompt: str,
            method: str = METHOD,
            params: dict[str, Any] | None = None,
            model: str | None = None,
            max_new_tokens: int = NEW_TOKENS,
            sampling: dict[str, Any] | None = None,
        ) -> dict[str, Any]:
            asked = {"params": params, "model": model, "sampling": sampling}
            try:
                return await decode({"prompt": prompt, "method": method, "max_new_tokens": max_new_tokens, **asked})
            except Exception as error:
                report(error)
                raise ToolError(str(error) if isinstance(error, SpecscopeError) else FAILED) from None

        server.add_tool(decode_tool, name=_NAME, description=_ABOUT)
        # The request filter has checked the host and the origin, with the owner's names.
        unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        self._app = server.streamable_http_app(
            json_response=True,
            stateless_http=True,
            max_request_body_size=LIMITS.body_bytes,
            transport_security=unchecked,
        )
        self._manager = server.session_manager

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer requests during the block."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request whose body was checked."""
        await self._app(scope, receive, send)
