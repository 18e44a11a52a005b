"""Attacks by files: run folders whose numbers contradict each other, lone surrogates, slow tokenizers."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from analysis.store.folder import as_table
from analysis.store.schema import NODES, RUNS, STEPS
from decoding.parts import NAMED_PARTS

from .bombs import GOLDEN

if TYPE_CHECKING:
    from .attack import Attack

_HALF = "\ud800"
_TOKENS = 300_000  # that a tokenizer adds: some ten seconds to load
_EXPRESSION = {"Regex": "(a+)+$"}  # twice as long for each letter
_NAMES = ("slow", "linked", "many", "../models/slow")


def make_models(root: Path) -> Path:
    """Write an attacker's model folders, for `--bring-your-own`."""
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False) | {"special": True}
    tokens = [{"id": 200 + number, "content": f"<{number}>", **flags} for number in range(_TOKENS)]
    split = {"type": "Split", "pattern": _EXPRESSION, "behavior": "Isolated", "invert": False}
    vocabulary = {"<unk>": 0} | {chr(code): code for code in range(32, 127)}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"}
    plain = {"version": "1.0", "model": model, "added_tokens": []}
    for name, more in (("many", {"added_tokens": tokens}), ("slow", {"pre_tokenizer": split}), ("linked", {})):
        (root / name).mkdir(parents=True)
        (root / name / "tokenizer.json").write_text(json.dumps(plain | more))
        (root / name / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    (root / "linked" / "config.json").symlink_to("/etc/passwd")
    return root


def brought_models(attack: Attack) -> None:
    """Load models whose tokenizers take many seconds, or whose files link outside the owner's folder."""

    def load(number: int) -> int:
        tab = attack.visitor()
        button = tab.component("own-go")
        event = next(each for each in tab.read()["dependencies"] if [button, "click"] in each["targets"])
        joined = tab.post(
            "/queue/join", tab.event(event["id"], [_NAMES[number % len(_NAMES)], "", *[""] * len(NAMED_PARTS)])
        )
        for _ in tab.stream(120):
            pass
        return joined.status

    attack.many(20, load, 4)


def contradicting_folders(attack: Attack) -> None:
    """Open run folders of twenty steps that accept a million guesses, and files named by a lone surrogate."""
    files = [[*_folder()], [_HALF, _trace()]]
    attack.many(50, lambda n: attack.visitor().call("debug_bring", files[n % 2], "debug-viewer").status, 4)


def half_characters(attack: Attack) -> None:
    """Export traces whose names and texts contain a lone surrogate, in every form."""
    file = _trace()
    attack.many(50, lambda n: attack.export(file, ("html", "csv", "vllm", "perfetto")[n % 4]), 4)


def _trace() -> str:
    """Make an honest trace, except for a lone surrogate as the name of its method and its model."""
    header, *steps = GOLDEN.read_text().splitlines()
    about = json.loads(header)
    about["method"] = about["model"]["name"] = _HALF
    return base64.b64encode("\n".join((json.dumps(about), *steps, "")).encode()).decode()


def _folder() -> Iterator[str]:
    """Yield the files of a run folder, names and contents in turn."""
    texts = dict.fromkeys(("question", "category", "method", "setting", "engine"), "x")
    steps = [{"run": 0, "step": step, "drafted": 3, "accepted": 10**6, "written": 10**6 + 1} for step in range(20)]
    for name, rows in ((RUNS, [{"run": 0, "turn": 1, "reconstructed": False, **texts}]), (STEPS, steps), (NODES, [])):
        file = io.BytesIO()
        pq.write_table(as_table(rows, name), file)
        yield from (f"{name}.parquet", base64.b64encode(file.getvalue()).decode())
