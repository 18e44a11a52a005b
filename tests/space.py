"""Write the page as a Space, and start what was written as the hub does: the file that its README names.

This needs nothing that requirements.txt does not bring: `.ci/run` runs it in a clean environment, before anything else
is installed, and `demo` then shows that no method needs more. With --all it is every form, as far as this machine can.
"""

from __future__ import annotations

import functools
import http.server
import os
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path
from typing import Any

from huggingface_hub import SpaceCard

from app.hosting.forms import FORMS
from app.hosting.space import write_space
from tests import ROOT


def front_matter(folder: Path = ROOT) -> dict[str, Any]:
    """Return what a README tells the hub."""
    found: dict[str, Any] = SpaceCard.load(folder / "README.md").data.to_dict()
    return found


def first_page(folder: Path, **variables: str) -> str:
    """Start the Space in a folder; returns what its visitors get."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = os.environ | {"GRADIO_SERVER_NAME": "127.0.0.1", "GRADIO_SERVER_PORT": str(port)} | variables
    env.pop("PYTHONPATH", None)  # the folder must do by itself
    command = [sys.executable, front_matter(folder)["app_file"]]
    with subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            assert str(port) in server.stdout.readline(), "the page did not start"
            return fetch(f"http://127.0.0.1:{port}/")
        finally:
            server.terminate()


def static_page(folder: Path) -> str:
    """Serve a folder as the hub serves a Static Space; returns the file that its README names."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            return fetch(f"http://127.0.0.1:{server.server_port}/{front_matter(folder)['app_file']}")
        finally:
            server.shutdown()


def fetch(address: str) -> str:
    """Return a page."""
    with urllib.request.urlopen(address, timeout=60) as answer:
        return str(answer.read().decode())


def check(name: str) -> None:
    """Write a form and start it."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent, name)
        write_space(FORMS[name], folder)
        page = static_page(folder) if FORMS[name].sdk == "static" else first_page(folder)
        assert "Specscope" in page, name


if __name__ == "__main__":
    import gradio

    assert front_matter()["sdk_version"] == gradio.__version__, "README names another gradio than is installed"
    for form in FORMS if "--all" in sys.argv else ["cpu"]:
        check(form)
    subprocess.run([sys.executable, "-m", "decoding", "demo"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
