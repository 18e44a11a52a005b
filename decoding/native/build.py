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
    """Load the compiled code; None where it is switched off, or where there is no compiler or no processor for it."""
    compiler = find_compiler()
    place = _place(compiler)
    if compiler is None or place is None:
        return None
    try:
        if not place.is_file():
            _compile(compiler, place)
        return ctypes.CDLL(str(place))
    except (OSError, subprocess.SubprocessError):
        return None


def must_compile() -> bool:
    """Return whether the first call of `library` takes some seconds."""
    place = _place(find_compiler())
    return place is not None and not library.cache_info().currsize and not place.is_file()


def find_compiler() -> list[str] | None:
    """Return the command of the C++ compiler: $CXX, else g++ or clang++; None where there is none."""
    named = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    return shlex.split(named) if named else None


def _place(compiler: list[str] | None) -> Path | None:
    """Return the file of the compiled code, which may not be there yet; None where there will be none."""
    home = user_cache()
    unwanted = os.environ.get(SWITCH) == "0" or platform.machine() not in ("x86_64", "AMD64")
    if unwanted or home is None or compiler is None:
        return None
    return home / "native" / f"{_fingerprint(compiler)}.so"


def _fingerprint(compiler: list[str]) -> str:
    """Hash all that the compiled code depends on: its source, the compiler, and what the processor can do."""
    sha = hashlib.sha256(" ".join([*compiler, *_FLAGS]).encode())
    for path in sorted(_HERE.glob("*.cpp")) + sorted(_HERE.glob("*.h")):
        sha.update(path.read_bytes())
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        sha.update(next((line for line in lines if line.startswith("flags")), "").encode())
    return sha.hexdigest()[:32]


def _compile(compiler: list[str], place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=place.parent) as fresh:
        made = Path(fresh) / place.name
        command = [*compiler, *_FLAGS, str(_HERE / "decoder.cpp"), "-o", str(made)]
        subprocess.run(command, check=True, capture_output=True, timeout=_LONGEST)
        made.replace(place)
