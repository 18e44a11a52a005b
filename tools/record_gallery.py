"""Record the runs of the gallery: `python -m tools.record_gallery [--only TEXT] [--missing] [--threads N]`.

`tools/gallery_recipes.py` lists the recordings. Tokens, trees and panels are reproducible: the embedded family runs in
float32 on one thread, the real model in bfloat16 in compiled code, which sums in one order. Only the times depend on
the machine, whose processor each header names.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.run_speed import median_run
from app.jobs.opening_step import opening_step
from app.models.catalog import POCKET, SMOLLM2
from app.store.recordings import FOLDER, INDEX, MOST_BYTES, RecordedRun, read_index, speedup_over, write_index
from decoding import smollm2
from decoding.errors import ParamError, SpecscopeError
from decoding.trace.file import read_trace, write_trace
from decoding.types import Trace
from tools.gallery_recipes import GalleryRecipe, as_written, recipes

if TYPE_CHECKING:
    from decoding.engine import Engine, Result

_MOST_THREADS = 256
# With several threads, the order of sums could decide a near-tie in float32; compiled code has one order.
_THREADS = {smollm2.NAME: 2}
_ROUNDS = 5


def record(engine: Engine, group: Sequence[GalleryRecipe]) -> list[tuple[RecordedRun, Trace]]:
    """Run the recipes of one prompt and autoregressive decoding in turn, for some rounds, and rescore them.

    The machine's speed varies, so every round runs all of them. The run of median speed of each is kept. Its speedup is
    over the autoregressive run of median speed: the recorded one, if there is one.
    """
    from decoding.methods import METHODS

    plain = next((recipe for recipe in group if recipe.method == "autoregressive"), None)
    rounds = [
        ([_run(engine, each) for each in group], None if plain else _plain(engine, group[0])) for _ in range(_ROUNDS)
    ]
    runs = [_median([results[number] for results, _ in rounds]) for number in range(len(group))]
    base = runs[group.index(plain)] if plain else _median([baseline for _, baseline in rounds if baseline])
    return [
        (
            RecordedRun(
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
                prompt=as_written(recipe.prompt),
                tokens_per_step=round(done.summary.mean_acceptance_length, 2),
                check=asdict(engine.rescore(done.trace)),
                speedup=None if recipe.method == "autoregressive" else speedup_over(done.trace, base.trace),
            ),
            done.trace,
        )
        for recipe, done in zip(group, runs, strict=True)
    ]


def _run(engine: Engine, recipe: GalleryRecipe) -> Result:
    """Run a recipe with a full record. Methods remember no earlier run except the one that the recipe names."""
    memory, settings = dict[str, Any](), (recipe.method, recipe.params, recipe.sampling, recipe.length)
    if recipe.before:
        engine.generate(recipe.before, *settings, record="off", memory=memory)
    return engine.generate(recipe.prompt, *settings, record="full", memory=memory)


def _plain(engine: Engine, recipe: GalleryRecipe) -> Result:
    """Decode the recipe's prompt autoregressively."""
    return engine.generate(recipe.prompt, "autoregressive", None, recipe.sampling, recipe.length, record="off")


def _median(runs: Sequence[Result]) -> Result:
    median = median_run([run.summary for run in runs])
    return next(run for run in runs if run.summary is median)


def main(argv: Sequence[str] | None = None) -> int:
    """Record the runs and write their index."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.record_gallery", description="Record the runs of the gallery."
    )
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


def _chosen(folder: Path, only: str, missing: bool) -> list[GalleryRecipe]:
    chosen = [recipe for recipe in recipes() if only in recipe.id or recipe.model.startswith(only)]
    if not chosen:
        raise ParamError(f"no recording has {only[:40]!r} in its id, and no model of one is called so")
    made = set(_indexed(folder))
    return [recipe for recipe in chosen if not (missing and recipe.id in made and _file(folder, recipe.id).exists())]


def _record_all(folder: Path, chosen: Sequence[GalleryRecipe], threads: int | None) -> None:
    """Record the recipes model by model; write the index after every prompt, so that an interruption loses little."""
    import torch

    from decoding import load

    made = _indexed(folder)
    for model in dict.fromkeys(recipe.model for recipe in chosen):
        torch.set_num_threads(threads or _THREADS.get(model, 1))
        engine = load(model, device="cpu")
        engine.generate("Monday:", max_new_tokens=64)  # the first passes of a process are slower: exclude them
        able = list[GalleryRecipe]()
        for recipe in (recipe for recipe in chosen if recipe.model == model):
            if missing := engine.lacks(recipe.method):
                sys.stdout.write(f"{recipe.id}: left out, it needs {missing}\n")
            else:
                able.append(recipe)
        for group in _by_task(able):
            for recording, trace in record(engine, group):
                write_trace(trace, _file(folder, recording.id))
                made[recording.id] = recording
                sys.stdout.write(
                    f"{recording.id}: {len(trace.steps)} steps, {recording.tokens_per_step} tokens per step\n"
                )
            made |= _compared(folder, made, group[0])
            write_index(folder, [made[each.id] for each in recipes() if each.id in made])
    size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    sys.stdout.write(f"all recordings: {size / 1e6:.2f} MB of at most {MOST_BYTES / 1e6:g} MB\n")


def _by_task(chosen: Iterable[GalleryRecipe]) -> list[list[GalleryRecipe]]:
    """Group the recipes by model, prompt, length and sampling: those of one group are compared."""
    groups = dict[str, list[GalleryRecipe]]()
    for recipe in chosen:
        groups.setdefault(_task(recipe), []).append(recipe)
    return [*groups.values()]


def _task(recipe: GalleryRecipe) -> str:
    return repr((recipe.model, recipe.prompt, recipe.length, recipe.sampling))


def _compared(folder: Path, made: Mapping[str, RecordedRun], recipe: GalleryRecipe) -> dict[str, RecordedRun]:
    """Return the entries of a recipe's prompt with the speedups that a race of their files shows.

    Some files may be older than others, if only some were recorded.
    """
    ids = [each.id for each in recipes() if _task(each) == _task(recipe) and each.id in made]
    plain = next((run for run in ids if made[run].method == "autoregressive"), None)
    if plain is None:
        return {}
    traces = {run: read_trace(_file(folder, run)) for run in ids if _file(folder, run).exists()}
    return {
        run: replace(made[run], speedup=speedup_over(trace, traces[plain]))
        for run, trace in traces.items()
        if plain in traces and run != plain
    }


def _indexed(folder: Path) -> dict[str, RecordedRun]:
    """Read the entries in the folder's index, if it has one."""
    return {each.id: each for each in read_index(folder)} if (folder / INDEX).exists() else {}


def _delete_others(folder: Path) -> None:
    """Delete files that belong to no recipe."""
    for old in set(folder.glob("*.jsonl.gz")) - {_file(folder, recipe.id) for recipe in recipes()}:
        old.unlink()


def _file(folder: Path, run: str) -> Path:
    return folder / f"{run}.jsonl.gz"


if __name__ == "__main__":
    sys.exit(main())
