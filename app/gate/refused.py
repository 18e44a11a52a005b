"""Why a request is not answered: a status and one sentence that says what to change."""

from __future__ import annotations

from starlette.responses import JSONResponse, PlainTextResponse, Response


class RefusedError(Exception):
    """Ends the handling of a request."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence

    def response(self, method: str) -> Response:
        """What the visitor gets; the page shows the detail of a refused post. A body may still be on its way: the
        connection ends."""
        headers = {"Connection": "close", "Cache-Control": "no-store"}
        if self.status in (429, 503):
            headers["Retry-After"] = "5"
        if method == "POST":
            return JSONResponse({"detail": self.sentence}, self.status, headers)
        return PlainTextResponse(self.sentence, self.status, headers)


def not_found() -> RefusedError:
    """For every path that the page does not use."""
    return RefusedError(404, "There is no such page.")
