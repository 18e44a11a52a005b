"""The compiled code shares phases out among its threads: whoever comes late or never, each piece is done once."""

from __future__ import annotations

import subprocess
from pathlib import Path

import decoding.native
from decoding.native.build import find_compiler
from tests.families import needs_compiler
from tests.tiers import slow

SOURCE = Path(__file__).with_name("team.cpp")
CALLS = 200_000


@slow
@needs_compiler
def test_every_piece_is_done_once_and_in_its_phase(tmp_path: Path) -> None:
    """On fewer cores than members, some of them come when the others are done."""
    compiler, program = find_compiler(), tmp_path / "team"
    assert compiler is not None
    headers = Path(decoding.native.__file__).parent
    options = ["-O2", "-std=c++17", "-pthread", f"-I{headers}"]
    subprocess.run([*compiler, *options, str(SOURCE), "-o", str(program)], check=True)
    got = subprocess.run([str(program), str(CALLS)], capture_output=True, text=True, timeout=120)
    assert got.stdout == "ok\n", got.stdout + got.stderr
