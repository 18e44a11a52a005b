"""Output folders: each is emptied before it is written, unless it holds other files."""

from __future__ import annotations

import shutil
from pathlib import Path

from decoding.errors import ParamError

MARK = ".specscope"  # the name of the file by which a folder is recognised


def renew(out: Path) -> None:
    """Empty a folder that was written before, or create it. Raises ParamError if it holds anything else."""
    if out.exists() and not out.is_dir():
        raise ParamError(f"{out} is no folder: name another one")
    if out.is_dir() and any(out.iterdir()) and (not (out / MARK).is_file() or (out / ".git").exists()):
        raise ParamError(f"{out} holds other files: name another folder")
    try:
        if out.exists():
            shutil.rmtree(out)
        out.mkdir(parents=True)
        (out / MARK).write_text("This folder is written anew each time.\n", encoding="utf-8")
    except OSError as error:
        raise ParamError(f"{out} cannot be written ({error.strerror}): name another folder") from None


def folder_bytes(out: Path) -> int:
    """Return the size of all files in a folder."""
    return sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
