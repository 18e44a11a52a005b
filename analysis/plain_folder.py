"""Makes folders for code of other projects, which cannot read packed files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from decoding.packed import SUFFIX, unpack


@contextmanager
def plain_folder(folder: Path) -> Iterator[Path]:
    """Lend a folder without packed files: the given one, or a copy with the files unpacked."""
    if not any(folder.glob(f"*{SUFFIX}")):
        yield folder
        return
    with TemporaryDirectory(prefix="specscope-", ignore_cleanup_errors=True) as copy:
        unpack_folder(folder, Path(copy))
        yield Path(copy)


def unpack_folder(folder: Path, to: Path) -> None:
    """Copy a folder's files, unpacked, into another folder."""
    for path in filter(Path.is_file, folder.iterdir()):
        if path.suffix == SUFFIX:
            (to / path.stem).write_bytes(unpack(path))
        else:
            shutil.copy(path, to)
