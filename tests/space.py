"""Write the page as a Space, and start what was written as the hub does: the file that its README names.

This needs nothing that requirements.txt does not bring: `.ci/run` runs it in a clean environment, before anything else
is installed, and `demo` then shows that no method needs more. With --all it is every form. A form with other versions
has an environment of its own, with its requirements and nothing else, in the form's Python or in the closest that this
machine has; there the engine's tests run too.
"""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path
from typing import Any

from huggingface_hub import SpaceCard

from app.hosting.forms import FORMS, Form
from app.hosting.space import write_space
from tests import ROOT


def front_matter(folder: Path = ROOT) -> dict[str, Any]:
    """Return what a README tells the hub."""
    found: dict[str, Any] = SpaceCard.load(folder / "README.md").data.to_dict()
    return found


_TOOLS = ("pytest", "pytest-xdist", "hypothesis", "scipy", "playwright", "accelerate")
_ENGINE_TESTS = ("accept", "at_once", "branch", "distribution", "golden", "lossless", "run", "sampling", "tree")


def first_page(folder: Path, python: str = sys.executable, **variables: str) -> str:
    """Start the Space in a folder; returns what its visitors get."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = os.environ | {"GRADIO_SERVER_NAME": "127.0.0.1", "GRADIO_SERVER_PORT": str(port)} | variables
    env.pop("PYTHONPATH", None)  # the folder must do by itself
    command = [python, front_matter(folder)["app_file"]]
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


def _starts(python: str) -> bool:
    """Return whether there is such a Python: a version manager's stand-in may lie in the path without one."""
    path = shutil.which(python)
    return path is not None and subprocess.run([path, "-c", ""], stderr=subprocess.DEVNULL).returncode == 0


def environment(form: Form, folder: Path) -> str:
    """Return the Python of an environment with a Space's requirements: this one, unless the form has its own."""
    if not form.pins:
        return sys.executable
    wanted = f"python{form.python.rpartition('.')[0]}"
    maker = wanted if _starts(wanted) else sys.executable
    made = folder.with_name("environment")
    print(f"{folder.name}: {Path(maker).name}, where the hub has Python {form.python}; installing its requirements")  # noqa: T201
    subprocess.run([maker, "-m", "venv", made], check=True)
    python = str(made / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", folder / "requirements.txt"], check=True)
    return python


def check_engine(python: str) -> None:
    """Run the engine's tests in an environment, with what tests need beside."""
    subprocess.run([python, "-m", "pip", "install", "--quiet", *_TOOLS, "-c", ROOT / "constraints.txt"], check=True)
    files = [f"tests/test_{name}.py" for name in _ENGINE_TESTS]
    options = ["-q", "-n", "2", "-W", "default"]  # another torch may warn of what this one does not
    subprocess.run([python, "-m", "pytest", *options, *files, "tests/methods", "tests/model"], cwd=ROOT, check=True)


def check(name: str) -> None:
    """Write a form and start it."""
    form = FORMS[name]
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent, name)
        write_space(form, folder)
        if form.sdk == "static":
            assert "Specscope" in static_page(folder), name
            return
        python = environment(form, folder)
        assert "Specscope" in first_page(folder, python), name
        if form.pins:
            check_engine(python)


if __name__ == "__main__":
    import gradio

    assert front_matter()["sdk_version"] == gradio.__version__, "README names another gradio than is installed"
    for form in FORMS if "--all" in sys.argv else ["cpu"]:
        check(form)
    subprocess.run([sys.executable, "-m", "decoding", "demo"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
