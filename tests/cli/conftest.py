"""The command line in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from cli.main import main
from decoding import METHODS

# The toy has no parts from files. It is not asked: this would load it whenever any test is looked for.
ON_THE_TOY = [name for name in METHODS if name not in {"medusa", "kangaroo", "eagle3", "dflash", "rest"}]


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.out.count("\n") == 1
        return json.loads(self.out)


Command = Callable[..., Done]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Command]:
    """Run a command, on the toy unless one is named, since it is fast. The number of threads is put back afterwards."""
    monkeypatch.setattr("cli.bench.DEFAULT_OUT", str(tmp_path / "default.json"))
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def run(*argv: str) -> Done:
        toy = argv[:1] in (("run",), ("bench",)) and "--model" not in argv
        code = main([*argv, "--model", "toy"] if toy else argv)
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    threads = torch.get_num_threads()
    yield run
    torch.set_num_threads(threads)
