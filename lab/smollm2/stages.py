"""Makes the parts of SmolLM2 in one call: a corpus in the model's own words, then all parts that learn from it."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

from decoding import smollm2
from decoding.codec import Codec
from decoding.loader import load
from decoding.model.loading import decoder_of
from decoding.model.session import ProgressCallback
from decoding.packed import stored, unpack
from decoding.parts.makers import head_of
from decoding.parts.shipped_tables import write_tables
from decoding.parts.tables import build_tables
from decoding.types import JSON

from ..training.backbone import Backbone, load_backbone
from ..training.conversations import read_conversations
from ..training.datastore import build_store
from ..training.dflash import DFlashSettings
from ..training.distill import Answering, write_answers
from ..training.drafter import DrafterSettings
from ..training.eagle3 import EagleSettings
from ..training.medusa import HeadSettings
from ..training.own_prompts import write_prompts
from ..training.runs import TrainingJob, train_drafter, train_kangaroo, train_medusa, train_on_features
from .exits import best_exit
from .plans import PartsPlan

_AT_ONCE = 64  # answers
_DTYPE = "bfloat16"
_TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja")
_SIZES: dict[str, int] = {"hidden": 96, "layers": 4, "heads": 3, "intermediate": 256}  # of the drafter
_RATE = 1e-3  # of the adapter
_EAGLE_RATE = 1.5e-3
_DFLASH: dict[str, Any] = {"blocks": 64, "decay": 2.0, "rate": 3e-3}  # a weak drafter lives by its first guesses
_ARCHITECTURE = "transformer"  # learns more from few texts than attention alone


def make_parts(out: Path, plan: PartsPlan, seed: int, device: str, progress: ProgressCallback) -> dict[str, JSON]:
    """Make everything in `out`; return the facts of each stage."""
    return Stages(out, plan, seed, device, progress).run()


class Stages:
    """The stages, each from where an earlier call stopped; finished ones are not repeated."""

    def __init__(
        self, out: Path, plan: PartsPlan, seed: int, device: str, progress: ProgressCallback, model: str = smollm2.NAME
    ) -> None:
        self._out, self._plan, self._seed, self._device, self._progress = out, plan, seed, device, progress
        self._model, self._work = model, out / "training"
        self._done = out / "stages.json"  # also the log of what was made

    def run(self) -> dict[str, JSON]:
        """Make everything; return the facts of each stage."""
        self._work.mkdir(parents=True, exist_ok=True)
        stages: dict[str, Callable[[], JSON]] = {
            "corpus": self._corpus,
            "datastore": self._datastore,
            "tables": self._tables,
            "drafter": self._drafter,
            "exit": self._exit,
            "adapter": self._adapter,
            "heads": self._heads,
            "eagle": self._eagle,
            "dflash": self._dflash,
        }
        results: dict[str, JSON] = json.loads(self._done.read_text()) if self._done.is_file() else {}
        for name, make in stages.items():
            if name not in results:
                results[name] = make()
                fresh = self._done.with_suffix(".new")
                fresh.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
                fresh.replace(self._done)
        return results

    @property
    def _conversations(self) -> Path:
        path = self._out / "conversations.jsonl"
        if (packed := stored(path)) != path:
            path.write_bytes(unpack(packed))
        return path

    def _corpus(self) -> JSON:
        """Write prompts and answers, both by the model."""
        plan, prompts, answers = self._plan, self._work / "prompts.jsonl", self._work / "answers.jsonl"
        backbone, codec = self._open()
        write_prompts(decoder_of(backbone.model), codec, plan.prompts, prompts, self._seed, self._progress)
        asked = read_conversations(prompts, self._progress)
        answering = Answering(at_once=_AT_ONCE, length=plan.length, seed=self._seed)
        write_answers(backbone, codec, asked, answers, answering, self._progress)
        shutil.copyfile(answers, self._conversations)
        return {"prompts": len(asked), "answered": len(read_conversations(self._conversations, self._progress))}

    def _datastore(self) -> JSON:
        """Build REST's datastore from all conversations."""
        from decoding.loader import find_codec

        codec, out = find_codec(self._model, self._progress), self._out / "datastore.safetensors"
        built = build_store([self._conversations], codec, out, progress=self._progress)
        return {"documents": built.documents, "tokens": built.tokens, "bytes": built.size}

    def _tables(self) -> JSON:
        """Build n-gram tables, which N-Grammys would make at its first run."""
        begin, out = time.monotonic(), self._out / "tables.safetensors"
        engine = load(self._model, device=self._device, dtype=_DTYPE, progress=self._progress)
        tables = build_tables(engine.model, self._progress, head=head_of(engine.codec, engine.model.card.vocabulary))
        write_tables(out, tables)
        return {"bytes": out.stat().st_size, "seconds": round(time.monotonic() - begin, 1)}

    def _heads(self) -> JSON:
        """Train Medusa-1 heads on the model's own output layer."""
        job = self._drafting(self._job("medusa", epochs=self._plan.heads_epochs))
        return train_medusa(job, HeadSettings(heads=self._plan.heads), self._progress)["heads"]

    def _exit(self) -> JSON:
        """Choose the layer that the adapter follows: each candidate is trained a little."""
        agreements = dict[int, float]()
        shape = self._open()[0].shape
        for layer in self._plan.exits:
            job = replace(self._drafting(self._job("", steps=self._plan.exit_steps)), out=self._work / f"exit-{layer}")
            measured: Any = train_kangaroo(job, layer, _ARCHITECTURE, _RATE, self._progress)
            agreements[layer] = measured["heads"][0]["top"][0]
        chosen = best_exit(agreements, shape, self._plan.draft_vocabulary)
        return {"layer": chosen, "agreement": {str(layer): share for layer, share in agreements.items()}}

    def _adapter(self) -> JSON:
        """Train a Kangaroo adapter after that layer."""
        results: Any = json.loads(self._done.read_text())
        job = self._drafting(self._job("kangaroo", epochs=self._plan.adapter_epochs))
        made = train_kangaroo(job, results["exit"]["layer"], _ARCHITECTURE, _RATE, self._progress)
        # The hub's weights and those of the packaged file differ in their last digits: the adapter serves both.
        config = job.out / "config.json"
        settings = json.loads(config.read_text(encoding="utf-8")) | {"base_hash": ""}
        config.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        return made["heads"]

    def _eagle(self) -> JSON:
        """Train an EAGLE-3 drafter, small enough to be cloned with the repository."""
        settings = EagleSettings(intermediate=self._plan.eagle_width, rate=_EAGLE_RATE)
        return train_on_features(self._on_features("eagle", self._plan.eagle_epochs), settings, self._progress)["heads"]

    def _dflash(self) -> JSON:
        """Train a DFlash drafter, small too: its output layer is the model's, and is not stored again."""
        plan = self._plan
        settings = DFlashSettings(layers=plan.dflash_layers, intermediate=plan.dflash_width, **_DFLASH)
        job = self._on_features("dflash", plan.dflash_epochs)
        made = train_on_features(job, settings, self._progress)
        file = job.out / "model.safetensors"
        weights = load_file(file)
        del weights["lm_head.weight"]
        save_file(weights, file, {"format": "pt"})
        return made["heads"]

    def _drafter(self) -> JSON:
        """Train a model of five million parameters; it has the tokens of the model, whose tokenizer serves both."""
        job = self._drafting(self._job("drafter", epochs=self._plan.drafter_epochs))
        made = train_drafter(job, DrafterSettings(**_SIZES), self._progress)
        for name in _TOKENIZER:
            (job.out / name).unlink(missing_ok=True)
        return made["heads"]

    def _open(self) -> tuple[Backbone, Codec]:
        return load_backbone(
            self._model,
            device=self._device,
            dtype=_DTYPE,
            length=self._plan.length,
            quantised=False,
            progress=self._progress,
        )

    def _drafting(self, job: TrainingJob) -> TrainingJob:
        """Limit the tokens to draft: the output layer is a fifth of this model and would cost more than it gains."""
        return replace(job, draft_vocabulary=self._plan.draft_vocabulary)

    def _on_features(self, name: str, epochs: float) -> TrainingJob:
        return replace(self._job(name, epochs=epochs), draft_vocabulary=self._plan.feature_vocabulary)

    def _job(self, name: str, steps: int | None = None, epochs: float = 1.0) -> TrainingJob:
        plan = self._plan
        return TrainingJob(
            model=self._model,
            out=self._out / name,
            data=str(self._conversations),
            steps=steps,
            epochs=epochs,
            lines=plan.lines,
            length=plan.length,
            seed=self._seed,
            device=self._device,
            dtype=_DTYPE,
        )
