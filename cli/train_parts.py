"""`train medusa`, `kangaroo`, `eagle3`, `dflash`, `drafter`: parts of methods, for any model of the Llama family."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from decoding.embedded import TARGET, TASKS
from decoding.errors import ParamError
from decoding.types import JSON

from .arguments import choice, clean, device_of, real, set_threads, whole
from .progress import ProgressBar, resumable
from .train_flags import add_dflash_flags, add_drafter_flags, add_eagle3_flags, add_kangaroo_flags, add_medusa_flags

if TYPE_CHECKING:
    from lab.training.runs import TrainingJob

CHECKPOINT = "from the last checkpoint"
# The embedded family's language has short rows and its models small layers, which train best with other numbers.
_USUAL = {
    "lines": "8",
    "length": "2048",
    "rate-medusa": "1e-3",
    "rate-kangaroo": "3e-4",
    "rate-eagle3": "1e-3",
    "rate-dflash": "1e-3",
    "rate-drafter": "2e-3",
}
_FOR_LANGUAGE = {
    "lines": "16",
    "length": "256",
    "rate-medusa": "5e-3",
    "rate-kangaroo": "3e-3",
    "rate-eagle3": "3e-3",
    "rate-dflash": "3e-3",
    "rate-drafter": "5e-3",
}


def train_medusa(arguments: argparse.Namespace) -> int:
    """Train heads with a progress bar, from the last checkpoint if there is one."""
    from lab.training import runs
    from lab.training.backbone import Lora
    from lab.training.medusa import SCHEDULES, HeadSettings, Joint

    rate = _rate(arguments, "medusa")
    joint = None
    if arguments.joint:
        loss = arguments.model_loss or ("distilled" if arguments.self_distill else "tokens")
        distilled = choice("--model-loss", loss, ("tokens", "distilled")) == "distilled"
        lambda0 = arguments.lambda0 or ("0.01" if distilled else "0.2")
        joint = Joint(
            lora=Lora(whole("--rank", arguments.rank, 1, 4096), whole("--alpha", arguments.alpha, 1, 65_536)),
            rate=rate / 4 if arguments.model_rate is None else real("--model-rate", arguments.model_rate, 0.0, 1.0),
            weight=real("--lambda0", lambda0, 0.0, 100.0),
            schedule=choice("--schedule", arguments.schedule, SCHEDULES),
            first_stage=real("--first-stage", arguments.first_stage, 0.0, 1.0),
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

    architecture = choice("--architecture", arguments.architecture, tuple(ARCHITECTURES))
    layer = None if arguments.exit_layer is None else whole("--exit-layer", arguments.exit_layer, 1, 4096)
    job, rate = _job(arguments), _rate(arguments, "kangaroo")
    return _run(arguments, lambda progress: runs.train_kangaroo(job, layer, architecture, rate, progress))


def train_eagle3(arguments: argparse.Namespace) -> int:
    """Train a drafter with a progress bar, from the last checkpoint if there is one."""
    from lab.training import runs
    from lab.training.eagle3 import EagleSettings

    norms = [name for name in clean(arguments.norms).split(",") if name not in ("", "none")]
    for name in norms:
        choice("--norms", name, ("none", "residual", "fc", "states", "output"))
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
    return _run(arguments, lambda progress: runs.train_on_features(job, settings, progress))


def train_dflash(arguments: argparse.Namespace) -> int:
    """Train a drafter with a progress bar, from the last checkpoint if there is one."""
    from decoding.parts.dflash_config import MOST_BLOCK
    from lab.training import runs
    from lab.training.dflash import DFlashSettings

    width, mask = arguments.intermediate, arguments.mask_token
    settings = DFlashSettings(
        taps=None if arguments.taps is None else _layers(arguments.taps),
        layers=whole("--layers", arguments.layers, 1, 64),
        block=whole("--block", arguments.block, 2, MOST_BLOCK),
        mask=None if mask is None else whole("--mask-token", mask, 0, 2**31 - 1),
        intermediate=None if width is None else whole("--intermediate", width, 1, 2**20),
        blocks=whole("--blocks", arguments.blocks, 1, 4096),
        decay=real("--decay", arguments.decay, 0.0, 1e6),
        rate=_rate(arguments, "dflash"),
    )
    job = _job(arguments)
    return _run(arguments, lambda progress: runs.train_on_features(job, settings, progress))


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


def _job(arguments: argparse.Namespace) -> TrainingJob:
    """Return the settings shared by all trainings."""
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
            real("--temperature", arguments.temperature, 0.0, 100.0),
            whole("--answers-at-once", arguments.answers_at_once, 1, 4096),
            length,
            seed,
        ),
        answers=whole("--answers", arguments.answers, 2, 10_000_000),
        steps=None if arguments.steps is None else whole("--steps", arguments.steps, 1, 10_000_000),
        epochs=real("--epochs", arguments.epochs, 0.0, 1000.0),
        lines=lines,
        at_once=None if arguments.at_once is None else whole("--at-once", arguments.at_once, 1, lines),
        length=length,
        warm_up=whole("--warm-up", arguments.warm_up, 0, 10_000_000),
        seed=seed,
        device=device_of(arguments),
        dtype=arguments.dtype,
        quantised=arguments.quantise,
        draft_vocabulary=whole("--draft-vocabulary", getattr(arguments, "draft_vocabulary", "0"), 0, 2**31 - 1),
        tasks=Path(clean(tasks)) if tasks is not None else TASKS if model == TARGET and TASKS.is_file() else None,
    )


def _run(arguments: argparse.Namespace, train: Callable[[ProgressBar], dict[str, JSON]]) -> int:
    """Train with a bar, and print the results."""
    import transformers

    from lab.training.memory import memory_advice

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()  # its bars for single files would break ours
    set_threads(arguments.threads)
    with resumable(CHECKPOINT) as progress, memory_advice("for this training"):
        measured = train(progress)
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
    """Return a flag's value, or the usual one for the data."""
    given: str | None = getattr(arguments, name.split("-")[0])
    language = arguments.data == "language" or (arguments.data is None and arguments.model == TARGET)
    return given or (_FOR_LANGUAGE if language else _USUAL)[name]


def _rate(arguments: argparse.Namespace, what: str) -> float:
    return real("--rate", _usual(arguments, f"rate-{what}"), 0.0, 1.0)


# The parts that `train` makes: name, help, the flags of an example, the function of its flags, and its training.
TRAININGS = (
    (
        "medusa",
        "train Medusa heads, on a frozen model or together with it",
        "--model org/model --data chats.jsonl --out heads",
        add_medusa_flags,
        train_medusa,
    ),
    (
        "kangaroo",
        "train a Kangaroo adapter on the first layers of a frozen model",
        "--model org/model --data chats.jsonl --out adapter",
        add_kangaroo_flags,
        train_kangaroo,
    ),
    (
        "eagle3",
        "train an EAGLE-3 drafter for a frozen model, and write it in the format of speculators",
        "--model org/model --data chats.jsonl --out eagle",
        add_eagle3_flags,
        train_eagle3,
    ),
    (
        "dflash",
        "train a DFlash drafter for a frozen model, and write it in the format of speculators",
        "--model org/model --data chats.jsonl --out dflash",
        add_dflash_flags,
        train_dflash,
    ),
    (
        "drafter",
        "train a small model to draft for a large one, by distillation",
        "--model org/model --data chats.jsonl --out drafter",
        add_drafter_flags,
        train_drafter,
    ),
)
