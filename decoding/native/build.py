"""Compiles the C++ beside this file for this processor, once, into the user's cache."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from ..user_cache import user_cache

_HERE = Path(__file__).parent
_FLAGS = ["-O3", "-march=native", "-std=c++17", "-fPIC", "-shared", "-pthread", "-ffp-contract=off", "-w"]
_LONGEST = 300.0  # seconds for the compiler
SWITCH = "SPECSCOPE_NATIVE"  # 0 in the environment: do without


@cache
def library() -> ctypes.CDLL | None:
    """Load the compiled code; None if it is switched off, or if there is no compiler or no processor for it."""
    compiler = find_compiler()
    path = _path(compiler)
    if compiler is None or path is None:
        return None
    try:
        if not path.is_file():
            _compile(compiler, path)
        return ctypes.CDLL(str(path))
    except (OSError, subprocess.SubprocessError):
        return None


def must_compile() -> bool:
    """Return True if the first call of `library` will take some seconds."""
    path = _path(find_compiler())
    return path is not None and not library.cache_info().currsize and not path.is_file()


def find_compiler() -> list[str] | None:
    """Return the command of the C++ compiler: $CXX, else g++ or clang++; None if there is none."""
    named = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    return shlex.split(named) if named else None


def _path(compiler: list[str] | None) -> Path | None:
    """Return the file of the compiled code, which may not exist yet; None if it cannot be made."""
    home = user_cache()
    excluded = os.environ.get(SWITCH) == "0" or platform.machine() not in ("x86_64", "AMD64")
    if excluded or home is None or compiler is None:
        return None
    return home / "native" / f"{_fingerprint(compiler)}.so"


def _fingerprint(compiler: list[str]) -> str:
    """Hash all that the compiled code depends on: its source, the compiler, and the processor's features."""
    sha = hashlib.sha256(" ".join([*compiler, *_FLAGS]).encode())
    for path in sorted(_HERE.glob("*.cpp")) + sorted(_HERE.glob("*.h")):
        sha.update(path.read_bytes())
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        sha.update(next((line for line in lines if line.startswith("flags")), "").encode())
    return sha.hexdigest()[:32]


def _compile(compiler: list[str], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent) as fresh:
        made = Path(fresh) / path.name
        command = [*compiler, *_FLAGS, str(_HERE / "decoder.cpp"), "-o", str(made)]
        subprocess.run(command, check=True, capture_output=True, timeout=_LONGEST)
        made.replace(path)
