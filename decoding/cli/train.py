"""`train`: make the embedded family anew."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

from ..errors import ParamError
from .arguments import clean, whole
from .progress import Progress

HELP = "train models: the embedded family, from nothing"
EXAMPLE = "python -m decoding train family --out family"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The command's flags."""
    parser.add_argument("what", choices=["family"], help="family: tokenizer, target, drafter, tasks and their cards")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="where it goes, and where a stopped one resumes")
    parser.add_argument("--plan", default="full", metavar="NAME", help="full, or smoke: seconds, and learns nothing")
    parser.add_argument("--seed", default="1", metavar="N")
    parser.add_argument("--device", help="cpu or cuda (default: cuda where there is one)")
    parser.add_argument("--threads", metavar="N", help="threads of the processor to use")


def main(arguments: argparse.Namespace) -> int:
    """Train, with a bar; stopped and called again, it goes on."""
    import transformers

    from ..training.family import PLANS, train_family

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
            train_family(out, plan, seed, device, progress)
    except KeyboardInterrupt:
        sys.stderr.write("specscope: stopped; the same command goes on from the last checkpoint\n")
        raise
    print(f"The family is in {out}: cards in {out / 'target' / 'README.md'} and {out / 'drafter' / 'README.md'}")
    return 0
