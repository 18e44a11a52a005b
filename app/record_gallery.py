"""Records the runs of the gallery: `python -m app.record_gallery [--only TEXT] [--missing] [--threads N]`.

`app/gallery_recipes.py` says what is recorded. Tokens, trees and panels are reproducible: the embedded family runs in
float32 on one thread, the real model in bfloat16 through compiled code, which adds up in one order. Only the times
depend on the machine, whose processor each header names.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decoding import smollm2
from decoding.errors import ParamError, SpecscopeError
from decoding.trace.file import write_trace
from decoding.types import Trace

from .catalog import POCKET, SMOLLM2
from .gallery_recipes import Recipe, recipes
from .opening_step import opening_step
from .recordings import FOLDER, INDEX, MOST_BYTES, Recording, read_index, write_index

if TYPE_CHECKING:
    from decoding.engine import Engine, Result

_MOST_THREADS = 256
# With several threads, the order of sums could decide a near-tie in float32; compiled code has one order.
_THREADS = {smollm2.NAME: 2}
_ROUNDS = {smollm2.NAME: 3}  # the recording is the one of median speed: its times race against those of others


def record(engine: Engine, recipe: Recipe) -> tuple[Recording, Trace]:
    """Run a recipe, rescore it, and measure its speedup over autoregressive decoding in turn with it."""
    from decoding.methods import METHODS

    rounds = _ROUNDS.get(recipe.model, 1)
    pairs = [(_run(engine, recipe, recipe.method), _run(engine, recipe)) for _ in range(rounds)]
    done, plain = (sorted(runs, key=_speed)[rounds // 2] for runs in zip(*pairs, strict=True))
    ours, theirs = _speed(done), _speed(plain)
    recording = Recording(
        id=recipe.id,
        title=recipe.title,
        shows=recipe.shows,
        family=(SMOLLM2 if recipe.model == smollm2.NAME else POCKET).name,
        group=recipe.group,
        about=recipe.about,
        method=recipe.method,
        label=METHODS[recipe.method].label,
        preset=recipe.preset,
        step=opening_step(done.trace),
        tokens_per_step=round(done.summary.mean_acceptance_length, 2),
        check=asdict(engine.rescore(done.trace)),
        speedup=round(ours / theirs, 3) if ours and theirs and recipe.method != "autoregressive" else None,
    )
    return recording, done.trace


def _run(engine: Engine, recipe: Recipe, method: str = "") -> Result:
    """The recipe's run with a full record, or the plain one to compare it with.

    Of earlier runs nothing is known but the one that the recipe names.
    """
    named, params, record = (method, recipe.params, "full") if method else ("autoregressive", None, "off")
    memory, settings = dict[str, Any](), (recipe.sampling, recipe.length)
    if method and recipe.before:
        engine.generate(recipe.before, named, params, *settings, record="off", memory=memory)
    return engine.generate(recipe.prompt, named, params, *settings, record=record, memory=memory)


def _speed(result: Result) -> float:
    return result.summary.tokens_per_second or 0.0


def main(argv: Sequence[str] | None = None) -> int:
    """Record the runs and write their index."""
    parser = argparse.ArgumentParser(prog="python -m app.record_gallery", description="Record the runs of the gallery.")
    parser.add_argument(
        "--out", default=str(FOLDER), metavar="FOLDER", help="the folder to write to (default: assets/traces)"
    )
    parser.add_argument(
        "--only",
        default="",
        metavar="TEXT",
        help='record only runs with TEXT in their id, or on the model TEXT, as "smollm2" or "pocket"; others stay',
    )
    parser.add_argument("--missing", action="store_true", help="record only runs that the folder lacks; others stay")
    parser.add_argument("--threads", type=int, metavar="N", help="threads of torch (default: 2 for smollm2, else 1)")
    arguments = parser.parse_args(argv)
    try:
        if arguments.threads is not None and not 1 <= arguments.threads <= _MOST_THREADS:
            raise ParamError(f"--threads must be from 1 to {_MOST_THREADS}, not {arguments.threads}")
        folder = Path(arguments.out)
        folder.mkdir(parents=True, exist_ok=True)
        _record_all(folder, _chosen(folder, arguments.only, arguments.missing), arguments.threads)
        if not arguments.only:
            _delete_others(folder)
    except SpecscopeError as error:
        sys.stderr.write(f"specscope: {error}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"specscope: {arguments.out[:200]}: {error.strerror}\n")
        return 2
    return 0


def _chosen(folder: Path, only: str, missing: bool) -> list[Recipe]:
    chosen = [recipe for recipe in recipes() if only in recipe.id or recipe.model.startswith(only)]
    if not chosen:
        raise ParamError(f"no recording has {only[:40]!r} in its id, and no model of one is called so")
    made = set(_indexed(folder))
    return [recipe for recipe in chosen if not (missing and recipe.id in made and _file(folder, recipe.id).exists())]


def _record_all(folder: Path, chosen: Sequence[Recipe], threads: int | None) -> None:
    """Record the recipes model by model; the index is written after every run, so what is made is there to stay."""
    import torch

    from decoding import load

    made = _indexed(folder)
    for model in dict.fromkeys(recipe.model for recipe in chosen):
        torch.set_num_threads(threads or _THREADS.get(model, 1))
        engine = load(model, device="cpu")
        engine.generate("Monday:", max_new_tokens=64)  # the first passes of a process are slower: nobody's speedup
        for recipe in (recipe for recipe in chosen if recipe.model == model):
            if missing := engine.lacks(recipe.method):
                sys.stdout.write(f"{recipe.id}: left out, it needs {missing}\n")
                continue
            recording, trace = record(engine, recipe)
            write_trace(trace, _file(folder, recipe.id))
            made[recipe.id] = recording
            write_index(folder, [made[each.id] for each in recipes() if each.id in made])
            sys.stdout.write(f"{recipe.id}: {len(trace.steps)} steps, {recording.tokens_per_step} tokens a step\n")
    size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    sys.stdout.write(f"all recordings: {size / 1e6:.2f} MB of at most {MOST_BYTES / 1e6:g} MB\n")


def _indexed(folder: Path) -> dict[str, Recording]:
    """The entries that the folder's index has already."""
    return {each.id: each for each in read_index(folder)} if (folder / INDEX).exists() else {}


def _delete_others(folder: Path) -> None:
    """Delete the files of recipes that are gone."""
    for old in set(folder.glob("*.jsonl.gz")) - {_file(folder, recipe.id) for recipe in recipes()}:
        old.unlink()


def _file(folder: Path, run: str) -> Path:
    return folder / f"{run}.jsonl.gz"


if __name__ == "__main__":
    sys.exit(main())
