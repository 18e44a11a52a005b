"""The attacker: an address with tabs, and the statuses of the answers."""

from __future__ import annotations

import concurrent.futures
import http.client
import json
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tools.page import Page, Visitor

ATTACKER = "127.0.0.2"
FLAGS = ("--model", "pocket", "--api", "--mcp")  # of the server
FORMS = {"cpu": "app", "zerogpu": "tools.pretended_zero_gpu"}  # of a Space: the module that serves as there
KEY = "the-key-of-an-attacker"  # of the server's API, which it may call


@dataclass
class Attack:
    """One attacker, with the statuses of all answers."""

    page: Page
    scale: float  # of the numbers of requests
    statuses: Counter[int] = field(default_factory=Counter)

    def visitor(self, session: str | None = None) -> Visitor:
        """Open a new tab from the attacker's address."""
        tab = Visitor(self.page.port, ATTACKER, config=self._config)
        if session is not None:
            tab.session = session
        return tab

    def export(self, file: str, form: str) -> int:
        """Drop a trace on the page of a new tab and export it; returns the higher status of the two answers."""
        tab = self.visitor()
        dropped = tab.call("open_trace", file)
        run = json.loads(dropped.json().get("lines", "{}").split("\n")[0]).get("run", "")
        return max(dropped.status, tab.call("run_export", [run, form]).status)

    def connect(self) -> socket.socket:
        """Open a raw connection from the attacker's address."""
        return socket.create_connection(("127.0.0.1", self.page.port), 5, (ATTACKER, 0))

    def many(self, count: int, ask: Callable[[int], int], workers: int = 8) -> None:
        """Send `count` requests, several at once; a closed connection counts as status 0."""

        def one(number: int) -> int:
            try:
                return ask(number)
            except (OSError, http.client.HTTPException):
                return 0

        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            self.statuses.update(pool.map(one, range(max(1, round(count * self.scale)))))

    def __post_init__(self) -> None:
        self._config = self.page.visitor().read()
