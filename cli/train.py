"""`train`: trains the embedded family, or the parts that methods need beside a model."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from decoding.errors import ParamError
from decoding.types import JSON

from .arguments import add_json_flag, choice, clean, device_of, set_threads, whole
from .progress import ProgressBar, resumable
from .train_parts import CHECKPOINT, TRAININGS

_Plan = TypeVar("_Plan")
HELP = "train the embedded family from scratch, or heads, an adapter or a drafter for any model"
EXAMPLE = "python -m decoding train family --out family"
_FAMILY = "train the embedded family: tokenizer, target, drafter, tasks and their cards"
_SMOLLM2 = "make SmolLM2's parts from its own answers: corpus, datastore, Medusa heads, Kangaroo adapter"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the commands below this one, and their flags."""
    trained = parser.add_subparsers(title="what to train", metavar="WHAT", required=True)
    for name, help_, example, add, train in (
        ("family", _FAMILY, "--out family", _add_family_flags, _train_family),
        ("smollm2", _SMOLLM2, "--out assets/smollm2 --threads 2", _add_smollm2_flags, _train_smollm2),
        *TRAININGS,
    ):
        sub = trained.add_parser(
            name,
            help=help_,
            description=help_[0].upper() + help_[1:] + ".",
            epilog=f"example:\n  python -m decoding train {name} {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        add(sub)
        sub.set_defaults(train=train)


def main(arguments: argparse.Namespace) -> int:
    """Train what the flags select."""
    train: Callable[[argparse.Namespace], int] = arguments.train
    return train(arguments)


def _add_family_flags(parser: argparse.ArgumentParser) -> None:
    _add_flags(parser, "full, or smoke: seconds, and learns nothing")


def _add_smollm2_flags(parser: argparse.ArgumentParser) -> None:
    _add_flags(parser, "full, some hours on two cores, or smoke: a minute, and learns nothing")


def _add_flags(parser: argparse.ArgumentParser, plans: str) -> None:
    parser.add_argument("--out", required=True, metavar="FOLDER", help="folder to write, or to resume from")
    parser.add_argument("--plan", default="full", metavar="NAME", help=plans)
    parser.add_argument("--seed", default="1", metavar="N")
    parser.add_argument("--device", help="cpu or cuda (default: cuda if available)")
    parser.add_argument("--threads", metavar="N", help="CPU threads")
    add_json_flag(parser)


def _train_family(arguments: argparse.Namespace) -> int:
    """Train with a progress bar, from the last checkpoint if there is one."""
    from lab.pocket.family import train_family
    from lab.pocket.plans import PLANS

    out = _train(arguments, PLANS, train_family)
    if not arguments.json:
        print(f"The family is in {out}: cards in {out / 'target' / 'README.md'} and {out / 'drafter' / 'README.md'}")
    return 0


def _train_smollm2(arguments: argparse.Namespace) -> int:
    """Make the parts with a progress bar, from where an earlier call stopped."""
    from lab.smollm2.plans import PLANS
    from lab.smollm2.stages import make_parts

    out = _train(arguments, PLANS, make_parts)
    if not arguments.json:
        print(f"The parts are in {out}: cards in {out / 'medusa' / 'README.md'} and {out / 'kangaroo' / 'README.md'}")
    return 0


def _train(
    arguments: argparse.Namespace,
    plans: Mapping[str, _Plan],
    train: Callable[[Path, _Plan, int, str, ProgressBar], Mapping[str, JSON]],
) -> Path:
    """Check the flags and train; return the folder."""
    import transformers

    transformers.logging.disable_progress_bar()  # its bars for single files would break ours

    plan = plans[choice("--plan", arguments.plan, plans)]
    if Path(arguments.out).is_file():
        raise ParamError(f"--out must name a folder, not the file {clean(arguments.out)[:200]!r}")
    out, seed = Path(clean(arguments.out)), whole("--seed", arguments.seed, 0, 2**31 - 1)
    set_threads(arguments.threads)
    with resumable(CHECKPOINT) as progress:
        measured = train(out, plan, seed, device_of(arguments), progress)
    if arguments.json:
        print(json.dumps({"out": str(out), **measured}))
    return out
