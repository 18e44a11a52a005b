"""`train`: make the embedded family anew, or what methods need beside a model."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from ..errors import ParamError
from .arguments import add_json_flag, clean, whole
from .progress import Progress
from .train_parts import (
    EXAMPLE_KANGAROO,
    EXAMPLE_MEDUSA,
    HELP_KANGAROO,
    HELP_MEDUSA,
    add_kangaroo_flags,
    add_medusa_flags,
    train_kangaroo,
    train_medusa,
)

HELP = "train the embedded family from nothing, or Medusa heads or a Kangaroo adapter for any model"
EXAMPLE = "python -m decoding train family --out family"
_FAMILY = "train the embedded family: tokenizer, target, drafter, tasks and their cards"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The commands below this one, and their flags."""
    trained = parser.add_subparsers(title="what to train", metavar="WHAT", required=True)
    for name, help_, example, add, train in (
        ("family", _FAMILY, EXAMPLE, _add_family_flags, _train_family),
        ("medusa", HELP_MEDUSA, EXAMPLE_MEDUSA, add_medusa_flags, train_medusa),
        ("kangaroo", HELP_KANGAROO, EXAMPLE_KANGAROO, add_kangaroo_flags, train_kangaroo),
    ):
        sub = trained.add_parser(
            name,
            help=help_,
            description=help_[0].upper() + help_[1:] + ".",
            epilog=f"example:\n  {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        add(sub)
        sub.set_defaults(train=train)


def main(arguments: argparse.Namespace) -> int:
    """Train what was asked for."""
    train: Callable[[argparse.Namespace], int] = arguments.train
    return train(arguments)


def _add_family_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", required=True, metavar="FOLDER", help="where it goes, and where a stopped one resumes")
    parser.add_argument("--plan", default="full", metavar="NAME", help="full, or smoke: seconds, and learns nothing")
    parser.add_argument("--seed", default="1", metavar="N")
    parser.add_argument("--device", help="cpu or cuda (default: cuda where there is one)")
    parser.add_argument("--threads", metavar="N", help="threads of the processor to use")
    add_json_flag(parser)


def _train_family(arguments: argparse.Namespace) -> int:
    """Train with a progress bar, from the last checkpoint if there is one."""
    import transformers

    from lab.pocket.family import train_family
    from lab.pocket.plans import PLANS

    transformers.logging.disable_progress_bar()  # its bars for single files would tear ours

    plan = PLANS.get(arguments.plan)
    if plan is None:
        raise ParamError(f"--plan must be one of {', '.join(PLANS)}, not {clean(arguments.plan)[:40]!r}")
    if Path(arguments.out).is_file():
        raise ParamError(f"--out must name a folder, not the file {clean(arguments.out)[:200]!r}")
    out, seed = Path(clean(arguments.out)), whole("--seed", arguments.seed, 0, 2**31 - 1)
    if arguments.threads is not None:
        torch.set_num_threads(whole("--threads", arguments.threads, 1, 1024))
    device = clean(arguments.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    try:
        with Progress() as progress:
            found = train_family(out, plan, seed, device, progress)
    except KeyboardInterrupt:
        sys.stderr.write("specscope: stopped; the same command goes on from the last checkpoint\n")
        raise
    if arguments.json:
        print(json.dumps({"out": str(out), **found}))
        return 0
    print(f"The family is in {out}: cards in {out / 'target' / 'README.md'} and {out / 'drafter' / 'README.md'}")
    return 0
