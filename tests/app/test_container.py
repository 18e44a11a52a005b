"""The Dockerfile, followed without Docker: its copied files alone, on a read-only root, without a privilege."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiers import slow
from tools import ROOT
from tools.page import Visitor

STEPS = [
    (name, rest)
    for name, rest in (
        line.split(" ", 1) for line in (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines() if line
    )
    if name != "#"
]


def of(name: str) -> list[str]:
    """Return what follows an instruction, each time it is there."""
    return [rest for each, rest in STEPS if each == name]


def command(name: str) -> list[str]:
    """Return the command in JSON after an instruction that is there once."""
    [rest] = of(name)
    return [str(word) for word in json.loads(rest[rest.index("[") :])]


def environment() -> dict[str, str]:
    return dict(pair.split("=", 1) for rest in of("ENV") for pair in shlex.split(rest))


def test_a_container_runs_as_no_root_and_looks_after_its_health() -> None:
    [user] = of("USER")
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user)  # a number, which Kubernetes can tell from root
    assert "/healthz" in command("HEALTHCHECK")[-1]
    assert of("EXPOSE") == [environment()["GRADIO_SERVER_PORT"]]


def test_a_container_installs_what_is_pinned() -> None:
    [install] = [rest for rest in of("RUN") if "-r requirements.txt" in rest]
    assert "-c requirements.txt -c constraints.txt" in install
    real = re.findall(r"^REAL := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert install.split()[-1:] == real


# / is read-only, and so is /mnt, which has the container's files; a folder in memory is /tmp.
MOUNTS = """
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /mnt && cp -r "$TREE"/. /mnt && chmod -R a+rX /mnt && mount -o remount,ro /mnt
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -o remount,bind,ro /
touch /mnt/written 2>/dev/null && exit 71
touch /usr/written 2>/dev/null && exit 72
cd /mnt && exec "$@"
"""


def isolated() -> list[str]:
    """Return the command that gives another one mounts of its own; skip where the system allows nobody that."""
    unshare = ["unshare", "--mount"] + (["--map-root-user"] if os.getuid() else [])
    if shutil.which("unshare") is None or subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("this system lets nobody have mounts of their own, so no root can be read-only")
    return unshare


def unprivileged() -> list[str]:
    """Return the command that gives all privileges up: those of root, and root itself if others may run this Python."""
    [user] = of("USER")
    uid, gid = user.split(":")
    drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
    other = [*drop, f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
    able = subprocess.run([*other, sys.executable, "-c", ""], capture_output=True, cwd="/").returncode == 0
    return other if able else drop


def copied(folder: Path) -> Path:
    """Copy what the Dockerfile copies, and nothing else."""
    for rest in of("COPY"):
        *sources, target = rest.split()
        for source in sources:
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, folder / target)
            else:
                shutil.copy(ROOT / source, folder / source)
    return folder


@pytest.mark.long
@slow  # it starts a server, and loads a model anew
def test_it_serves_and_decodes_on_a_read_only_root(tmp_path: Path) -> None:
    if Path(sys.prefix).is_relative_to("/tmp"):
        pytest.skip("this Python is in /tmp, which the container's own /tmp hides")
    tree = tmp_path / "tree"
    tree.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ} | environment()
    env |= {"GRADIO_SERVER_PORT": str(port), "TREE": str(copied(tree))}
    python, *entry = [*command("ENTRYPOINT"), *command("CMD")]
    assert python == "python"
    inside = ["sh", "-c", MOUNTS, "sh", *unprivileged(), sys.executable, *entry, "--model", "pocket"]
    log = tmp_path / "log"
    with log.open("w") as stderr, contextlib.ExitStack() as stack:
        server = subprocess.Popen(
            [*isolated(), *inside], env=env, stdout=subprocess.PIPE, stderr=stderr, text=True, cwd=ROOT
        )
        stack.enter_context(server)
        stack.callback(server.terminate)
        assert server.stdout is not None
        assert f"Specscope is at http://0.0.0.0:{port}" in server.stdout.readline(), log.read_text()
        assert '"new_tokens":8' in Visitor(port).run(run_method="lookahead", run_length=8)
        _, *check = command("HEALTHCHECK")
        subprocess.run([sys.executable, *check], env=env, check=True, timeout=10)
        status = Path(f"/proc/{server.pid}/status").read_text()
        assert re.findall(r"Cap(?:Prm|Eff|Bnd):\t(\w+)", status) == ["0" * 16] * 3
        server.terminate()
        assert server.wait(10) == 0
    gone = subprocess.run([sys.executable, *check], env=env, capture_output=True, timeout=10)
    assert gone.returncode != 0  # the check notices that nobody answers
    logged = [json.loads(line) for line in log.read_text().splitlines()]
    assert not [line for line in logged if line["level"] in ("warning", "error")], logged
