"""`train medusa`, `kangaroo`, `eagle3`, `drafter`: what methods need beside a model, for any of the Llama family."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from decoding.embedded import TARGET, TASKS
from decoding.errors import ParamError
from decoding.types import JSON

from .arguments import add_json_flag, clean, whole
from .progress import ProgressBar

if TYPE_CHECKING:
    from lab.training.runs import TrainingJob

HELP_MEDUSA = "train Medusa heads, on a frozen model or together with it"
HELP_KANGAROO = "train a Kangaroo adapter on the first layers of a frozen model"
HELP_EAGLE3 = "train an EAGLE-3 drafter for a frozen model, and write it in the format of speculators"
HELP_DRAFTER = "train a small model to draft for a large one, by distillation"
EXAMPLE_MEDUSA = "python -m decoding train medusa --model org/model --data chats.jsonl --out heads"
EXAMPLE_KANGAROO = "python -m decoding train kangaroo --model org/model --data chats.jsonl --out adapter"
EXAMPLE_EAGLE3 = "python -m decoding train eagle3 --model org/model --data chats.jsonl --out eagle"
EXAMPLE_DRAFTER = "python -m decoding train drafter --model org/model --data chats.jsonl --out drafter"

_NORMS = "norms: residual, fc or states, output; or none (default: residual)"
_FORMS = 'JSON lines with "messages", "conversations", "turns", "prompt" (and "answer" or "output") or "text"'
# Where the embedded family's language is learnt, its short rows and small layers ask for other numbers.
_USUAL = {
    "lines": "8",
    "length": "2048",
    "rate-medusa": "1e-3",
    "rate-kangaroo": "3e-4",
    "rate-eagle3": "1e-3",
    "rate-drafter": "2e-3",
}
_FOR_LANGUAGE = {
    "lines": "16",
    "length": "256",
    "rate-medusa": "5e-3",
    "rate-kangaroo": "3e-3",
    "rate-eagle3": "3e-3",
    "rate-drafter": "5e-3",
}


def add_medusa_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `train medusa`."""
    _add_common_flags(parser)
    group = parser.add_argument_group("heads")
    group.add_argument("--heads", default="5", metavar="K", help="number of heads (default: 5)")
    group.add_argument("--layers", default="1", metavar="N", help="residual blocks per head (default: 1)")
    group.add_argument("--own-output", action="store_true", help="give each head its own output layer, as in the paper")
    _add_vocabulary_flag(group)
    group = parser.add_argument_group("training the model too (Medusa-2), with LoRA")
    group.add_argument("--joint", action="store_true", help="train the model together with the heads")
    group.add_argument(
        "--schedule", default="two-stage", metavar="NAME", help="two-stage, sine or constant (default: two-stage)"
    )
    group.add_argument(
        "--first-stage", default="0.4", metavar="SHARE", help="share of the training for the heads alone (default: 0.4)"
    )
    group.add_argument("--lambda0", metavar="X", help="weight of the heads' loss (default: 0.2; distilled: 0.01)")
    group.add_argument("--model-rate", metavar="X", help="learning rate of the model (default: a quarter of --rate)")
    group.add_argument("--model-loss", metavar="NAME", help="tokens, or distilled (the default with --self-distill)")
    group.add_argument("--rank", default="32", metavar="R", help="LoRA rank (default: 32)")
    group.add_argument("--alpha", default="16", metavar="X", help="LoRA alpha (default: 16)")
    group.add_argument("--tasks", metavar="FILE", help="questions of the embedded family to answer before and after")


def add_kangaroo_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `train kangaroo`."""
    _add_common_flags(parser)
    group = parser.add_argument_group("adapter")
    group.add_argument("--exit-layer", metavar="L", help="layers before the exit (default: one in fourteen)")
    group.add_argument("--architecture", default="kangaroo", metavar="NAME", help="architecture of the paper's Table 2")
    _add_vocabulary_flag(group)


def add_eagle3_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `train eagle3`."""
    _add_common_flags(parser)
    group = parser.add_argument_group("drafter")
    group.add_argument(
        "--taps",
        metavar="L,M,H",
        help="layers whose inputs the drafter reads (default: a low, a middle and a high one)",
    )
    group.add_argument(
        "--test-time-steps", default="3", metavar="N", help="guesses per position in training (default: 3)"
    )
    group.add_argument("--intermediate", metavar="N", help="feed-forward width (default: the model's)")
    group.add_argument("--norms", default="residual", metavar="A,B", help=_NORMS)
    _add_vocabulary_flag(group)


def add_drafter_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `train drafter`."""
    _add_common_flags(parser)
    group = parser.add_argument_group("drafter")
    group.add_argument("--hidden", default="96", metavar="N", help="hidden size (default: 96)")
    group.add_argument("--layers", default="4", metavar="N", help="number of layers (default: 4)")
    group.add_argument("--heads", default="3", metavar="N", help="attention heads (default: 3)")
    group.add_argument("--intermediate", default="256", metavar="N", help="feed-forward width (default: 256)")
    _add_vocabulary_flag(group)


def _add_vocabulary_flag(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--draft-vocabulary", default="0", metavar="N", help="draft only the N most frequent tokens (default: 0, all)"
    )


def train_medusa(arguments: argparse.Namespace) -> int:
    """Train heads with a progress bar, from the last checkpoint if there is one."""
    from lab.training import runs
    from lab.training.backbone import Lora
    from lab.training.medusa import SCHEDULES, HeadSettings, Joint

    rate = _rate(arguments, "medusa")
    joint = None
    if arguments.joint:
        loss = arguments.model_loss or ("distilled" if arguments.self_distill else "tokens")
        distilled = _choice("--model-loss", loss, ("tokens", "distilled")) == "distilled"
        lambda0 = arguments.lambda0 or ("0.01" if distilled else "0.2")
        joint = Joint(
            lora=Lora(whole("--rank", arguments.rank, 1, 4096), whole("--alpha", arguments.alpha, 1, 65_536)),
            rate=rate / 4 if arguments.model_rate is None else _real("--model-rate", arguments.model_rate, 0.0, 1.0),
            weight=_real("--lambda0", lambda0, 0.0, 100.0),
            schedule=_choice("--schedule", arguments.schedule, SCHEDULES),
            first_stage=_real("--first-stage", arguments.first_stage, 0.0, 1.0),
            distilled=distilled,
        )
    heads, layers = whole("--heads", arguments.heads, 1, 16), whole("--layers", arguments.layers, 1, 8)
    settings = HeadSettings(heads, layers, arguments.own_output, rate, joint=joint)
    job = _job(arguments)
    return _run(arguments, lambda progress: runs.train_medusa(job, settings, progress))


def train_kangaroo(arguments: argparse.Namespace) -> int:
    """Train an adapter with a progress bar, from the last checkpoint if there is one."""
    from decoding.parts.adapter_config import ARCHITECTURES
    from lab.training import runs

    architecture = _choice("--architecture", arguments.architecture, tuple(ARCHITECTURES))
    layer = None if arguments.exit_layer is None else whole("--exit-layer", arguments.exit_layer, 1, 4096)
    job, rate = _job(arguments), _rate(arguments, "kangaroo")
    return _run(arguments, lambda progress: runs.train_kangaroo(job, layer, architecture, rate, progress))


def train_eagle3(arguments: argparse.Namespace) -> int:
    """Train a drafter with a progress bar, from the last checkpoint if there is one."""
    from lab.training import runs
    from lab.training.eagle3 import EagleSettings

    norms = [name for name in clean(arguments.norms).split(",") if name not in ("", "none")]
    for name in norms:
        _choice("--norms", name, ("none", "residual", "fc", "states", "output"))
    if {"fc", "states"} <= set(norms):
        raise ParamError("--norms takes fc, one norm over all tapped states, or states, one for each: not both")
    width = arguments.intermediate
    settings = EagleSettings(
        taps=None if arguments.taps is None else _layers(arguments.taps),
        guesses=whole("--test-time-steps", arguments.test_time_steps, 1, 16),
        intermediate=None if width is None else whole("--intermediate", width, 1, 2**20),
        norm_before_residual="residual" in norms,
        norm_before_fc="fc" in norms,
        fc_norm="states" in norms,
        norm_output="output" in norms,
        rate=_rate(arguments, "eagle3"),
    )
    job = _job(arguments)
    return _run(arguments, lambda progress: runs.train_eagle3(job, settings, progress))


def _layers(text: str) -> tuple[int, ...]:
    return tuple(whole("--taps", part, 0, 4096) for part in clean(text).split(","))


def train_drafter(arguments: argparse.Namespace) -> int:
    """Train a drafter with a progress bar, from the last checkpoint if there is one."""
    from lab.training import runs
    from lab.training.drafter import DrafterSettings

    settings = DrafterSettings(
        hidden=whole("--hidden", arguments.hidden, 2, 65_536),
        layers=whole("--layers", arguments.layers, 1, 256),
        heads=whole("--heads", arguments.heads, 1, 1024),
        intermediate=whole("--intermediate", arguments.intermediate, 1, 2**20),
        rate=_rate(arguments, "drafter"),
    )
    settings.check()
    job = _job(arguments)
    return _run(arguments, lambda progress: runs.train_drafter(job, settings, progress))


def _add_common_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default=TARGET, metavar="NAME", help='"pocket", a folder or a hub id')
    parser.add_argument("--out", required=True, metavar="FOLDER", help="folder to write, or to resume from")
    group = parser.add_argument_group("data")
    group.add_argument("--data", metavar="FILE", help=f'{_FORMS}; or "language", pocket\'s own (its default)')
    group.add_argument("--self-distill", action="store_true", help="train on the model's own answers to the prompts")
    group.add_argument(
        "--answers", default="4096", metavar="N", help="prompts of the language to answer (default: 4096)"
    )
    group.add_argument("--temperature", default="0.3", metavar="T", help="temperature of these answers (default: 0.3)")
    group.add_argument("--answers-at-once", default="32", metavar="N", help="answers in memory at a time (default: 32)")
    group.add_argument("--length", metavar="N", help="tokens per line (default: 2048; for the language 256)")
    group = parser.add_argument_group("training")
    group.add_argument("--steps", metavar="N", help="training steps (default: two epochs; for the language 800)")
    group.add_argument(
        "--epochs", default="2", metavar="X", help="passes over a file, if --steps is not given (default: 2)"
    )
    group.add_argument("--lines", metavar="N", help="lines per step (default: 8; for the language 16)")
    group.add_argument("--at-once", metavar="N", help="lines in memory at a time (default: all of a step)")
    group.add_argument("--rate", metavar="X", help="learning rate")
    group.add_argument("--warm-up", default="40", metavar="N", help="steps until the full rate (default: 40)")
    group.add_argument("--seed", default="1", metavar="N")
    group = parser.add_argument_group("machine")
    group.add_argument("--device", help="cpu or cuda (default: cuda if available)")
    group.add_argument("--dtype", help="the model's dtype: float32 or bfloat16 (default: depends on the device)")
    group.add_argument("--quantise", action="store_true", help="hold the model in 4 bits (needs CUDA and bitsandbytes)")
    group.add_argument("--threads", metavar="N", help="CPU threads")
    add_json_flag(parser)


def _job(arguments: argparse.Namespace) -> TrainingJob:
    """Return the settings that all trainings have."""
    from lab.training.distill import Answering
    from lab.training.runs import TrainingJob

    model, out = clean(arguments.model), Path(clean(arguments.out))
    if model == "toy":
        raise ParamError("the toy is a table, which nothing can be trained for: name a model folder with --model")
    if out.is_file():
        raise ParamError(f"--out must name a folder, not the file {str(out)[:200]!r}")
    tasks = getattr(arguments, "tasks", None)
    seed, length = (
        whole("--seed", arguments.seed, 0, 2**31 - 1),
        whole("--length", _usual(arguments, "length"), 8, 2**20),
    )
    lines = whole("--lines", _usual(arguments, "lines"), 1, 65_536)
    return TrainingJob(
        model=model,
        out=out,
        data=None if arguments.data is None else clean(arguments.data),
        self_distill=arguments.self_distill,
        answering=Answering(
            _real("--temperature", arguments.temperature, 0.0, 100.0),
            whole("--answers-at-once", arguments.answers_at_once, 1, 4096),
            length,
            seed,
        ),
        answers=whole("--answers", arguments.answers, 2, 10_000_000),
        steps=None if arguments.steps is None else whole("--steps", arguments.steps, 1, 10_000_000),
        epochs=_real("--epochs", arguments.epochs, 0.0, 1000.0),
        lines=lines,
        at_once=None if arguments.at_once is None else whole("--at-once", arguments.at_once, 1, lines),
        length=length,
        warm_up=whole("--warm-up", arguments.warm_up, 0, 10_000_000),
        seed=seed,
        device=clean(arguments.device or ("cuda" if torch.cuda.is_available() else "cpu")),
        dtype=arguments.dtype,
        quantised=arguments.quantise,
        draft_vocabulary=whole("--draft-vocabulary", getattr(arguments, "draft_vocabulary", "0"), 0, 2**31 - 1),
        tasks=Path(clean(tasks)) if tasks is not None else TASKS if model == TARGET and TASKS.is_file() else None,
    )


def _run(arguments: argparse.Namespace, train: Callable[[ProgressBar], dict[str, JSON]]) -> int:
    """Train with a bar, and print what came of it."""
    import transformers

    from lab.training.memory import memory_advice

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()  # its bars for single files would tear ours
    if arguments.threads is not None:
        torch.set_num_threads(whole("--threads", arguments.threads, 1, 1024))
    try:
        with ProgressBar() as progress, memory_advice("for this training"):
            measured = train(progress)
    except KeyboardInterrupt:
        sys.stderr.write("specscope: stopped; the same command resumes from the last checkpoint\n")
        raise
    out = Path(clean(arguments.out))
    if arguments.json:
        print(json.dumps({"out": str(out), **measured}))
        return 0
    for number, head in enumerate(measured["heads"], start=1):
        top = ", ".join(f"top-{n} {share:.1%}" for n, share in enumerate(head["top"], start=1))
        print(f"guess {number}: {top}, expected acceptance {head['acceptance']:.1%}")
    print(f"The result is in {out}: its card is {out / 'README.md'}, its curves are {out / 'curves.svg'}")
    return 0


def _usual(arguments: argparse.Namespace, name: str) -> str:
    """Return a flag's value, or what is usual for the data."""
    given: str | None = getattr(arguments, name.split("-")[0])
    language = arguments.data == "language" or (arguments.data is None and arguments.model == TARGET)
    return given or (_FOR_LANGUAGE if language else _USUAL)[name]


def _rate(arguments: argparse.Namespace, what: str) -> float:
    return _real("--rate", _usual(arguments, f"rate-{what}"), 0.0, 1.0)


def _choice(flag: str, text: str, choices: tuple[str, ...]) -> str:
    if text not in choices:
        raise ParamError(f"{flag} must be one of {', '.join(choices)}, not {clean(text)[:40]!r}")
    return text


def _real(flag: str, text: str, low: float, high: float) -> float:
    """Parse a flag's number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not low <= number <= high:
        raise ParamError(f"{flag} must be a number from {low:g} to {high:g}, not {clean(text)[:40]!r}")
    return number
