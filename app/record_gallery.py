"""Records the runs of the gallery: `python -m app.record_gallery [--out FOLDER]`.

It records at least one run for every method and preset whose parts the embedded models have. In float32 on the CPU
tokens, trees and panels are reproducible; only the times depend on the machine.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from decoding.embedded import MEDUSA_2, TARGET
from decoding.errors import ParamError, SpecscopeError
from decoding.trace.file import write_trace
from decoding.types import JSON, Step, Trace

from .catalog import POCKET
from .controls import presets, runnable
from .examples import EXAMPLES
from .recordings import FOLDER, INDEX, LANDING, Recording, read_index, write_index

if TYPE_CHECKING:
    from decoding.engine import Engine
    from decoding.methods import Method

_LENGTH, _SHORT = 160, 64  # new tokens with a method's defaults, and with its other presets
_TYPICAL: dict[str, JSON] = {"temperature": 0.7, "seed": 1}  # greedy typical acceptance would be lossless


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to make one recording."""

    id: str
    method: str
    preset: str
    example: str
    title: str
    shows: str
    params: dict[str, JSON]
    length: int
    model: str = TARGET


_BEST = {  # the example that suits a method best; for all others, the sum
    "draft_model": "chat",
    "prompt_lookup": "summary",
    "ouroboros": "chat",
    "rest": "function",
}
_SHOWS = {
    "autoregressive": "Every pass writes one token: all other methods are measured against this.",
    "jacobi": "A block of guesses is read again and again until it settles from the left.",
    "lookahead": "A window of Jacobi lines feeds a pool of n-grams, and the pool guesses.",
    "draft_model": "A small model drafts, and the target keeps what it would have written itself.",
    "prompt_lookup": "What followed the same words in the prompt is guessed again.",
    "ngrammys": "Every pass checks many short rows of guesses, from the text and from the model's own bigrams.",
    "medusa": "Heads on the last hidden state guess several tokens ahead, combined as a tree.",
    "kangaroo": "The target's own first layers draft, and stop where they are unsure.",
    "ouroboros": "A small model drafts phrase by phrase, and rejected drafts become phrases for later steps.",
    "rest": "What followed the same words in other texts is guessed again, as a tree.",
}


def recipes() -> list[Recipe]:
    """All recipes in the order of the gallery: first a small Lookahead, whose views are the easiest to read."""
    from decoding.methods import METHODS

    small: dict[str, JSON] = {"W": 7, "N": 4, "G": 7}
    first = Recipe(
        LANDING, "lookahead", "small window", "sum", "Lookahead on a worked sum", _SHOWS["lookahead"], small, _LENGTH
    )
    found = [first]
    for name in runnable(POCKET):
        found += _of_method(METHODS[name])
    return found


def _of_method(method: type[Method]) -> list[Recipe]:
    """The recipes of a method: its defaults, each preset that differs from them, and a prompt that does not suit it."""
    name, best = method.name, _BEST.get(method.name, "sum")
    plain = method.Params().to_json()
    found = []
    for preset, params in presets(method).items():
        if preset != "defaults" and params == plain:
            continue
        words = "" if preset == "defaults" else f", {preset}"
        title = f"{method.label}{words}: {_label(best)}"
        run = re.sub(r"[^a-z0-9]+", "-", f"{name} {preset}".lower())
        length = _LENGTH if preset == "defaults" else _SHORT
        found.append(Recipe(run, name, preset, best, title, _SHOWS[name], dict(params), length))
    if name in ("lookahead", "draft_model"):
        shows = "Invented names at a high temperature: hardly a guess survives."
        title, run = f"{method.label}: where it loses", f"{name.replace('_', '-')}-names"
        found.append(Recipe(run, name, "defaults", "names", title, shows, plain, _SHORT))
    if name == "medusa":
        shows = "The same, with heads that were trained together with the model."
        found.append(
            Recipe("medusa-2", name, "defaults", best, f"Medusa-2: {_label(best)}", shows, plain, _LENGTH, MEDUSA_2)
        )
    return found


def _label(example: str) -> str:
    """An example's label in the middle of a title."""
    return EXAMPLES[example].label.lower()


def record(engine: Engine, recipe: Recipe) -> tuple[Recording, Trace]:
    """Run a recipe, rescore it, and measure its speedup over autoregressive decoding."""
    from decoding.methods import METHODS

    example = EXAMPLES[recipe.example]
    prompt = example.prompt or list(example.messages)
    warm = _TYPICAL if recipe.params.get("acceptance") == "typical" else {}
    sampling = {**example.sampling, **warm}
    done = engine.generate(prompt, recipe.method, recipe.params, sampling, recipe.length, record="full")
    plain = engine.generate(prompt, "autoregressive", None, sampling, recipe.length, record="off")
    ours, theirs = done.summary.tokens_per_second, plain.summary.tokens_per_second
    recording = Recording(
        id=recipe.id,
        title=recipe.title,
        shows=recipe.shows,
        method=recipe.method,
        label=METHODS[recipe.method].label,
        preset=recipe.preset,
        step=instructive(done.trace.steps),
        tokens_per_step=round(done.summary.mean_acceptance_length, 2),
        check=asdict(engine.rescore(done.trace)),
        speedup=round(ours / theirs, 3) if ours and theirs and recipe.method != "autoregressive" else None,
    )
    return recording, done.trace


def instructive(steps: Sequence[Step]) -> int:
    """The step to open a recording at: an early one of which some guesses were accepted and some rejected."""

    def worth(step: Step) -> tuple[bool, int, int]:
        mixed = 0 < step.accepted < step.drafted
        return mixed, min(step.accepted, 3), -step.index

    return max(steps[2:40] or steps[-1:], key=worth).index


def main(argv: Sequence[str] | None = None) -> int:
    """Record the runs and write their index."""
    parser = argparse.ArgumentParser(prog="python -m app.record_gallery", description="Record the runs of the gallery.")
    parser.add_argument(
        "--out", default=str(FOLDER), metavar="FOLDER", help="the folder to write to (default: assets/traces)"
    )
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="record only runs with TEXT in their id; the others stay as they are"
    )
    arguments = parser.parse_args(argv)
    try:
        folder = Path(arguments.out)
        folder.mkdir(parents=True, exist_ok=True)
        _record_all(folder, arguments.only)
    except SpecscopeError as error:
        sys.stderr.write(f"specscope: {error}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"specscope: {arguments.out[:200]}: {error.strerror}\n")
        return 2
    return 0


def _record_all(folder: Path, only: str) -> None:
    import torch

    from decoding import load

    torch.set_num_threads(1)  # with several threads, the order of sums could decide a near-tie
    engines = {name: load(name, device="cpu") for name in (TARGET, MEDUSA_2)}
    chosen = [recipe for recipe in recipes() if only in recipe.id]
    if not chosen:
        raise ParamError(f"no recording has {only[:40]!r} in its id")
    for engine in engines.values():
        engine.generate("Monday:", max_new_tokens=64)  # the first passes of a process are slower: nobody's speedup
    kept = read_index(folder) if only and (folder / INDEX).exists() else []
    made = {recording.id: recording for recording in kept}
    for recipe in chosen:
        recording, trace = record(engines[recipe.model], recipe)
        write_trace(trace, folder / f"{recipe.id}.jsonl.gz")
        made[recipe.id] = recording
        sys.stdout.write(f"{recipe.id}: {len(trace.steps)} steps, {recording.tokens_per_step} tokens a step\n")
    if not only:
        for old in set(folder.glob("*.jsonl.gz")) - {folder / f"{recipe.id}.jsonl.gz" for recipe in chosen}:
            old.unlink()
    write_index(folder, [made[recipe.id] for recipe in recipes() if recipe.id in made])


if __name__ == "__main__":
    sys.exit(main())
