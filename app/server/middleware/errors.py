"""Error responses: a status and one sentence that says what to change."""

from __future__ import annotations

from starlette.responses import JSONResponse, PlainTextResponse, Response

from decoding.errors import SpecscopeError


class RequestError(SpecscopeError):
    """Stops handling a request."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence

    def response(self, method: str) -> Response:
        """Return the response. The page displays the "detail" of a rejected POST. The connection is closed, because a
        body may still be arriving."""
        headers = {"Connection": "close", "Cache-Control": "no-store"}
        if self.status in (429, 503):
            headers["Retry-After"] = "5"
        if method == "POST":
            return JSONResponse({"detail": self.sentence}, self.status, headers)
        return PlainTextResponse(self.sentence, self.status, headers)


def not_found() -> RequestError:
    """Return the error for every path that is not in the allow-list."""
    return RequestError(404, "There is no such page.")
