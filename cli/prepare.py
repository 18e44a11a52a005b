"""`prepare`: fetches, converts and computes in advance all that a model's first run would wait for."""

from __future__ import annotations

import argparse

from decoding import smollm2
from decoding.methods import METHODS
from decoding.model.files import TensorFiles, find_folder

from .arguments import add_model_flags, clean, load_engine
from .paint import one_line
from .progress import ProgressBar

HELP = "fetch or convert a model and build what its methods need, so that the first run starts at once"
EXAMPLE = "python -m decoding prepare --model smollm2"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add_model_flags(parser, smollm2.NAME)


def main(arguments: argparse.Namespace) -> int:
    """Prepare every method that the engine can run."""
    engine = load_engine(arguments)
    ready = [name for name in METHODS if engine.lacks(name) is None]
    with ProgressBar() as progress:
        for name in ready:
            engine.prepare(name, progress)
    card = engine.model.card
    print(one_line(f"{card.name} is ready: {card.parameters / 1e6:.0f} million parameters, {', '.join(ready)}"))
    if card.name != "toy":
        folder = find_folder(clean(arguments.model), lambda what, share: None, engine.model.dtype)
        with TensorFiles(folder) as files:
            size = files.bytes()
        print(one_line(f"weights: {folder}, {size / 1e6:.0f} MB"))
    return 0
