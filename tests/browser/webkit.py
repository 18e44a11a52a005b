"""Drives Safari's engine, as Debian has it in WebKitGTK, by WebDriver: playwright only knows a build of its own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

NEEDED = ("WebKitWebDriver", "Xvfb")
_PATIENCE = 60  # seconds
_LISTEN = """globalThis.wrong ??= [];
addEventListener("error", ({ message }) => wrong.push(message));
addEventListener("unhandledrejection", ({ reason }) => wrong.push(String(reason)));"""

_CLICK = """const [selector, text] = arguments;
const fits = (each) => each.checkVisibility() && each.innerText.trim().startsWith(text);
const first = [...document.querySelectorAll(selector)].find(fits);
first?.click();
return Boolean(first);"""


def missing() -> list[str]:
    """List the programs that this machine lacks."""
    return [name for name in NEEDED if not shutil.which(name)]


@dataclass
class WebKit:
    """A window with one page."""

    session: str  # the address of the WebDriver's session

    def visit(self, address: str, until: str) -> None:
        """Open an address, and wait until an expression holds."""
        _ask("POST", f"{self.session}/url", {"url": address})
        self.run(_LISTEN)
        self.wait(until)

    def run(self, code: str, *given: Any) -> Any:
        """Run a function's body on the page, and return its value."""
        return _ask("POST", f"{self.session}/execute/sync", {"script": code, "args": list(given)})

    def wait(self, condition: str) -> None:
        """Wait until an expression holds."""
        end = time.monotonic() + _PATIENCE
        while not self.run(f"return Boolean({condition});"):
            assert time.monotonic() < end, f"not within {_PATIENCE} s: {condition}"
            time.sleep(0.1)

    def click(self, selector: str, text: str = "") -> None:
        """Click the first visible element that a selector finds and whose text begins so."""
        clicked = self.run(_CLICK, selector, text)
        assert clicked, f"no {selector} {text}"

    def errors(self) -> list[str]:
        """Return the errors of the page's scripts since it was opened."""
        return list(self.run("return wrong;"))


@contextlib.contextmanager
def webkit() -> Iterator[WebKit]:
    """Start the engine on a screen of its own."""
    with contextlib.ExitStack() as stack:
        read, write = os.pipe()  # on which the screen's server tells the number that it took
        _start(
            stack,
            ["Xvfb", "-displayfd", str(write), "-screen", "0", "1400x900x24", "-nolisten", "tcp"],
            pass_fds=[write],
        )
        os.close(write)
        with os.fdopen(read) as told:
            display = told.readline().strip()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        _start(stack, ["WebKitWebDriver", f"--port={port}"], env={**os.environ, "DISPLAY": f":{display}"})
        address = f"http://127.0.0.1:{port}/session"
        made = _ask("POST", address, {"capabilities": {"alwaysMatch": {}}})
        session = f"{address}/{made['sessionId']}"
        stack.callback(_ask, "DELETE", session)
        _ask("POST", f"{session}/window/rect", {"width": 1280, "height": 800})
        yield WebKit(session)


def _start(stack: contextlib.ExitStack, command: list[str], **how: Any) -> None:
    """Start a program that ends with the stack."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **how)
    stack.callback(process.wait)
    stack.callback(process.kill)


def _ask(method: str, address: str, body: Any = None) -> Any:
    """Send the driver a command and return its value; a driver that does not listen yet is asked again."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Content-Type": "application/json"}, method=method)
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from None
        except urllib.error.URLError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
