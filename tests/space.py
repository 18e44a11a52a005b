"""Start the page as a Space does: the file that README's front matter names, run from the repository's root.

It needs nothing that requirements.txt does not bring: `.ci/run` runs it in a clean environment, before anything else
is installed, and `demo` then shows that no method needs more.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.request

from tests import ROOT


def front_matter() -> dict[str, str]:
    """Return what the README tells a Space."""
    head = (ROOT / "README.md").read_text(encoding="utf-8").split("---\n")[1]
    return {name: value.strip().strip('"') for name, value in (line.split(":", 1) for line in head.splitlines())}


def first_page() -> str:
    """Return what a visitor of the Space gets."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = os.environ | {"GRADIO_SERVER_NAME": "127.0.0.1", "GRADIO_SERVER_PORT": str(port)}
    command = [sys.executable, front_matter()["app_file"]]
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            assert str(port) in server.stdout.readline(), "the page did not start"
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as answer:
                return str(answer.read().decode())
        finally:
            server.terminate()


if __name__ == "__main__":
    import gradio

    assert front_matter()["sdk_version"] == gradio.__version__, "README names another gradio than is installed"
    assert "Specscope" in first_page()
    subprocess.run([sys.executable, "-m", "decoding", "demo"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
