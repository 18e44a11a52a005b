"""Runs a whole training in one call: the model, the data, the learning, and the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from analysis.prompts.tasks import Task, read_tasks
from decoding.codec import Codec
from decoding.embedded import TARGET
from decoding.errors import ParamError
from decoding.loader import load
from decoding.model.session import ProgressCallback
from decoding.parts.draft_vocabulary import VOCABULARY_FILE
from decoding.types import JSON

from ..pocket.quality import measure, total
from ..pocket.sources import LanguageSource, language_prompts
from .backbone import Backbone, load_backbone
from .batches import Batch, limit_lines
from .checkpoint import LOG
from .conversations import read_conversations
from .dflash import DFlashLearner, DFlashSettings
from .distill import Answering, write_answers
from .drafter import DrafterLearner, DrafterSettings, parameters
from .eagle3 import Eagle3Learner, EagleSettings
from .encoding import ChatEncoder
from .kangaroo import AdapterSettings, KangarooLearner, usual_exit
from .loop import TrainingBudget, TrainingLoop
from .measures import agreement, measure_model
from .medusa import HeadSettings, MedusaLearner
from .optimizers import GroupedAdamW
from .report import write_report
from .sources import FileSource, Source
from .vocabulary import check_count, common_tokens, coverage, write_vocabulary

_VOCABULARY_STEPS = 64  # batches of the language in which common tokens are counted
LANGUAGE = "language"  # in place of a file: the embedded family's own, drawn without end


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """The job of a training: its model, its data, its output folder and its budget."""

    model: str
    out: Path
    data: str | None = None  # a file, or LANGUAGE
    self_distill: bool = False
    answering: Answering | None = None  # how, where the model answers the prompts itself
    answers: int = 4096  # prompts of the language to answer
    steps: int | None = None
    epochs: float = 2.0  # of a file, where no steps are given
    lines: int = 8
    at_once: int | None = None
    length: int = 2048
    warm_up: int = 40
    seed: int = 1
    device: str = "cpu"
    dtype: str | None = None
    quantised: bool = False
    draft_vocabulary: int = 0  # tokens that heads or an adapter may draft; 0: all
    tasks: Path | None = None  # questions of the embedded family, to judge a model that learns before and after

    @property
    def work(self) -> Path:
        """The folder of the checkpoint, the log and the model's own answers."""
        return self.out / "training"


def train_medusa(job: TrainingJob, settings: HeadSettings, progress: ProgressCallback) -> dict[str, JSON]:
    """Train heads, and with `settings.joint` the model, saved in the folder `backbone`; return measurements."""
    tasks = () if settings.joint is None or job.tasks is None else read_tasks(job.tasks)
    backbone, codec, source = _open(job, progress)
    learner = MedusaLearner(backbone, settings, job.seed)
    used = _learn(job, learner, source, progress)
    held_out = _held_out(job, source)
    with backbone.original():
        before, old = measure_model(backbone if settings.joint is None else backbone.unquantised(), held_out)
    if settings.joint is not None:
        backbone.merge()
        backbone.save(job.out / "backbone", codec)
    after, new = measure_model(backbone, held_out)
    final = learner.measure(held_out)
    model: dict[str, Any] = {"before": before, "after": after, "agreement": agreement(old, new)}
    learner.save(job.out, "backbone" if settings.joint is not None else job.model, final["accuracies"])
    used = {**used, **_narrow(job, source, _common(job, source, backbone.shape.vocabulary))}
    if tasks:
        model["before"]["questions"] = _questions(backbone, job.model, tasks, progress)
        model["after"]["questions"] = _questions(backbone, str(job.out / "backbone"), tasks, progress)
    write_report(job.out, job.model, used, job.work / LOG, final, backbone.device, model)
    return {**final, "backbone": model}


def train_kangaroo(
    job: TrainingJob, layer: int | None, architecture: str, rate: float, progress: ProgressCallback
) -> dict[str, JSON]:
    """Train an adapter after that layer, or after the one that the paper would choose; return measurements."""
    backbone, codec, source = _open(job, progress)
    settings = AdapterSettings(layer or usual_exit(backbone.shape.layers), architecture, rate)
    ids = _common(job, source, backbone.shape.vocabulary)
    learner = KangarooLearner(backbone, settings, job.seed, ids)
    used = _learn(job, learner, source, progress)
    final = learner.measure(_held_out(job, source))
    learner.save(job.out)
    used = {**used, **_narrow(job, source, ids)}
    write_report(job.out, job.model, used, job.work / LOG, final, backbone.device)
    return {**final}


def train_on_features(
    job: TrainingJob, settings: EagleSettings | DFlashSettings, progress: ProgressCallback
) -> dict[str, JSON]:
    """Train a drafter that reads the model's features, EAGLE-3's or DFlash's; return measurements."""
    backbone, codec, source = _open(job, progress)
    ids = _common(job, source, backbone.shape.vocabulary)
    learner: Eagle3Learner | DFlashLearner
    repeats = isinstance(source, FileSource)
    if isinstance(settings, EagleSettings):
        learner = Eagle3Learner(backbone, settings, ids, job.seed, repeats=repeats)
    else:
        learner = DFlashLearner(backbone, settings, ids, job.seed, repeats=repeats)
    used = _learn(job, learner, source, progress)
    final = learner.measure(_held_out(job, source))
    learner.save(job.out)
    if ids is not None:
        used = {**used, "held-out tokens in its vocabulary": f"{coverage(source.held_out, ids):.1%}"}
    write_report(job.out, job.model, used, job.work / LOG, final, backbone.device)
    return {**final}


def train_drafter(job: TrainingJob, settings: DrafterSettings, progress: ProgressCallback) -> dict[str, JSON]:
    """Train a small model that drafts for the job's; return measurements."""
    backbone, codec, source = _open(job, progress)
    learner = DrafterLearner(backbone, settings, job.seed)
    used = _learn(job, learner, source, progress)
    final = learner.measure(_held_out(job, source))
    learner.save(job.out, codec)
    used = {**used, "parameters": parameters(learner.model)}
    used = {**used, **_narrow(job, source, _common(job, source, backbone.shape.vocabulary))}
    write_report(job.out, job.model, used, job.work / LOG, final, backbone.device)
    return {**final}


def _open(job: TrainingJob, progress: ProgressCallback) -> tuple[Backbone, Codec, Source]:
    """Load the model that learns or teaches, and find what is learnt from."""
    job.work.mkdir(parents=True, exist_ok=True)
    backbone, codec = load_backbone(
        job.model, device=job.device, dtype=job.dtype, length=job.length, quantised=job.quantised, progress=progress
    )
    check_count(job.draft_vocabulary, backbone.shape.vocabulary)
    return backbone, codec, _source(job, backbone, codec, progress)


def _source(job: TrainingJob, backbone: Backbone, codec: Codec, progress: ProgressCallback) -> Source:
    """Return where the job's batches come from; the model may have to answer first."""
    data = job.data or (LANGUAGE if job.model == TARGET else None)
    if data is None:
        raise ParamError("name the conversations to learn from with --data FILE, one JSON object a line")
    if data == LANGUAGE and not job.self_distill:
        vocabulary = backbone.shape.vocabulary
        return LanguageSource(codec.tokenizer, vocabulary, lines=job.lines, length=job.length, seed=job.seed)
    path = Path(data)
    if job.self_distill:
        prompts = language_prompts(job.answers, job.seed) if data == LANGUAGE else read_conversations(path, progress)
        path = job.work / "answers.jsonl"
        write_answers(backbone, codec, prompts, path, job.answering or Answering(length=job.length), progress)
    return FileSource(
        read_conversations(path, progress),
        ChatEncoder(codec, job.length),
        codec.tokenizer,
        backbone.shape.vocabulary,
        lines=job.lines,
        length=job.length,
        seed=job.seed,
        progress=progress,
    )


def _learn(
    job: TrainingJob,
    learner: MedusaLearner | KangarooLearner | Eagle3Learner | DFlashLearner | DrafterLearner,
    source: Source,
    progress: ProgressCallback,
) -> Mapping[str, JSON]:
    """Train to the end; return every setting that had a part in it."""
    steps = job.steps or (source.steps(job.epochs) if isinstance(source, FileSource) else 800)
    budget, optimizer = TrainingBudget(steps, job.lines, job.length), GroupedAdamW(learner.groups, job.warm_up)
    loop = TrainingLoop(
        budget, learner, optimizer, source, job.work, job.seed, at_once=job.at_once, measure=learner.measure
    )
    loop.run(progress)
    progress("measuring", 1.0)
    return {**learner.about, **source.about, **asdict(budget), **optimizer.about, "seed": job.seed}


def _narrow(job: TrainingJob, source: Source, ids: Tensor | None) -> Mapping[str, JSON]:
    """Write the tokens that may be drafted, if not all may; return the card's lines on them."""
    for path in job.out.glob(f"{VOCABULARY_FILE}*"):  # of an earlier training
        path.unlink()
    if ids is None:
        return {}
    write_vocabulary(job.out, ids.tolist())
    return {"draft vocabulary": len(ids), "held-out tokens in it": f"{coverage(source.held_out, ids):.1%}"}


def _common(job: TrainingJob, source: Source, vocabulary: int) -> Tensor | None:
    """Return the tokens that may be drafted; None: all."""
    if not job.draft_vocabulary:
        return None
    steps = source.steps(1.0) if isinstance(source, FileSource) else _VOCABULARY_STEPS
    return common_tokens((source.draw(step) for step in range(steps)), job.draft_vocabulary, vocabulary)


def _held_out(job: TrainingJob, source: Source) -> list[Batch]:
    """Return the held-out batches, with no more in memory at a time than in training."""
    return limit_lines(source.held_out, job.at_once or job.lines)


def _questions(
    backbone: Backbone, model: str, tasks: Sequence[Task], progress: ProgressCallback
) -> Mapping[str, float]:
    """Return the share of right answers to the embedded family's questions, by kind; computed as it was learnt."""
    dtype = str(backbone.dtype).removeprefix("torch.")  # named, or a name and a folder would be given different ones
    quality = measure(load(model, device=str(backbone.device), dtype=dtype), tasks, progress)
    return {**{kind: quality.share for kind, quality in quality.items()}, "all": total(quality).share}
