"""A model that visitors can choose: where it and its parts are, and how its engine is loaded."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from decoding import smollm2
from decoding.embedded import DTYPE, FOLDERS, PARTS, drafter_of
from decoding.errors import ModelError, ModelMissingError
from decoding.hub import HubId, fetch, fetched, parse_id
from decoding.parts import CAPABILITIES

from ..server.limits import LIMITS

if TYPE_CHECKING:
    from decoding.codec import Codec
    from decoding.engine import Engine
    from decoding.model.session import ProgressCallback

_TRYING = threading.Lock()  # one at a time: each takes a core
MOST_TOKENS = {"max_prompt_tokens": LIMITS.prompt_tokens, "max_new_tokens": LIMITS.new_tokens}  # for any model
_SHIPPED = {*FOLDERS, smollm2.NAME, "toy"}  # names that the engine knows itself


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A model of the catalog."""

    name: str
    model: str
    revision: str | None = None
    draft: str | None = None
    draft_revision: str | None = None
    part_places: Mapping[str, str] = field(default_factory=dict)  # folders, files and hub ids, by the parts' names
    device: str | None = None
    draft_device: str | None = None
    dtype: str | None = None
    max_prompt_tokens: int = LIMITS.prompt_tokens
    max_new_tokens: int = LIMITS.new_tokens
    download: bool = True  # whether the hub may be asked; a file's entries always may
    brought: bool = False  # whether a visitor brought it, who sees why it cannot be loaded

    @property
    def parts(self) -> frozenset[str]:
        """The parts that methods find beside the target, by the names in their `needs`."""
        embedded = {part for part, path in PARTS.get(self.model, {}).items() if path.exists()}
        drafter = {"draft_model"} if self.draft or drafter_of(self.model) else set()
        return frozenset({"tables"} | CAPABILITIES | {*self.part_places} | embedded | drafter)

    @property
    def is_metered(self) -> bool:
        """Whether seconds of its device are counted, so that no run is repeated to measure its speedup."""
        return False

    @property
    def at_hand(self) -> bool:
        """Whether its weights are on this machine, or may be fetched."""
        return self.download or self.model != smollm2.NAME or smollm2.here() is not None

    def check(self, report: ProgressCallback) -> int:
        """Return the bytes that the weights will take in memory, without reading any. Raises ModelError.

        Refuses configurations that bring code, weights that are neither safetensors nor GGUF, and a drafter whose
        tokens differ from the target's. A model that is not on this machine has only its small files fetched.
        """
        if self.model == "toy":
            return 0
        from decoding.loader import check_tokens, load_codec

        from .weight_bytes import weight_bytes

        report(f"checking {self.name}", 0.0)
        dtype = self.dtype or (DTYPE if self.model in FOLDERS else None)
        target, here = self._small_files(self.model, self.revision, report)
        _refuse_code(target)
        size = weight_bytes(target, self.device, dtype, here=here) + sum(map(_part_bytes, self.part_places.values()))
        if (named := self.draft or drafter_of(self.model)) is None:
            return size
        draft, here = self._small_files(named, self.draft_revision, report)
        _refuse_code(draft)
        size += weight_bytes(draft, self.draft_device or self.device, dtype, here=here)
        if self.draft and not self.brought:  # a visitor's tokenizer is tried in a process of its own
            codec, draft_codec = load_codec(target), load_codec(draft)
            if codec.tokenizer is not None and draft_codec.tokenizer is not None:
                check_tokens(f"{named[:200]} cannot draft for {self.name}", codec, draft_codec)
        return size

    def load(self, report: ProgressCallback) -> Engine:
        """Load the engine."""
        import torch
        import transformers

        from decoding.loader import load

        # One core is left to the page: where it shares a core with torch, all of torch's threads wait for that one.
        torch.set_num_threads(max(1, (os.cpu_count() or 1) - 1))

        transformers.logging.set_verbosity_error()  # its advice is not about our way of loading
        draft = None if self.draft is None else self._place(self.draft, self.draft_revision, report)
        where = self._place(self.model, self.revision, report)
        self._try_tokenizers(report, where, draft)
        engine = load(
            where,
            draft=draft,
            device=self.device,
            draft_device=self.draft_device,
            dtype=self.dtype,
            download=self.download,
            progress=report,
            **self.part_places,
        )
        self._name(engine)
        return engine

    @property
    def drafters(self) -> Mapping[str, str]:
        """The places that its owner named for drafters and other parts, by "draft" and the parts' names."""
        return {**self.part_places, **({} if self.draft is None else {"draft": self.draft})}

    def without_drafters(self) -> CatalogEntry:
        """Return the target alone, under another name, since both may be in memory."""
        name = f"{self.name} without drafters"
        return replace(self, name=name, draft=None, draft_revision=None, part_places={})

    def find_draft(self, report: ProgressCallback) -> str:
        """Return the folder or file of the draft model that the entry names. Raises ModelError if it is not there."""
        assert self.draft is not None
        return self._place(self.draft, self.draft_revision, report)

    def codec(self) -> Codec:
        """Load the tokenizer alone. Raises ModelError unless its files are on this machine."""
        from decoding.loader import find_codec

        def report(what: str, share: float) -> None:
            pass

        where = replace(self, download=False)._place(self.model, self.revision, report)
        self._try_tokenizers(report, where)
        return find_codec(where, report, download=False)

    def _small_files(self, place: str, revision: str | None, report: ProgressCallback) -> tuple[Path, bool]:
        """Return the folder or file of a model, and whether its weights have been fetched."""
        if place in FOLDERS:
            return FOLDERS[place], False  # packed: opening these would unpack them
        if place == smollm2.NAME and not _is_local(place):
            return smollm2.find(report, download=self.download), True
        folder = fetched(place, revision=revision) if revision is not None else None
        here = folder is not None or _is_local(place)
        return folder or Path(self._place(place, revision, report, weights=False)), here

    def _place(self, place: str, revision: str | None, report: ProgressCallback, *, weights: bool = True) -> str:
        """Return a folder or file unchanged; for a hub id, the folder of its downloaded files at the given commit."""
        if place in _SHIPPED or _is_local(place):
            return place
        if revision is None:  # a folder that was deleted since the catalog was read; it must not be searched on the hub
            raise ModelError(
                f"{place[:200]!r} is not a folder that can be read: correct the catalog, or restore the folder"
            )
        if self.download:
            return str(fetch(place, report, revision=revision, weights=weights))
        folder = fetched(place, revision=revision)
        if folder is None:
            raise ModelMissingError(
                f"{self.name} is not on this machine, and the hub does not send {place!r} now: try again later"
            )
        return str(folder)

    def _try_tokenizers(self, report: ProgressCallback, *places: str | None) -> None:
        """Try the tokenizers that a visitor brought in a separate process. Raises ModelError."""
        if not self.brought:
            return
        from .tokenizer_apart import try_tokenizer

        for place in places:
            if place is not None and place not in _SHIPPED:
                report("trying the tokenizer", 0.0)
                limits = LIMITS.tokenizer_seconds, LIMITS.tokenizer_memory, LIMITS.prompt_characters
                with _TRYING:
                    try_tokenizer(Path(place), *limits)

    def _name(self, engine: Engine) -> None:
        """Replace the names on the models' cards, which are folders of this machine, by public names.

        Visitors see the cards: in every trace, download and footer.
        """
        models = ((engine.model, self.model, self.name), (engine.draft, self.draft, f"{self.name} (draft)"))
        for model, place, name in models:
            if model is not None and place is not None and place not in _SHIPPED:
                model.card = replace(model.card, name=place if hub_id_of(place) else name)
        for part in self.part_places:
            made = engine.part(part)
            made.about = f"{self.name} {made.about.rpartition(' ')[2]}"  # its hash stays


def hub_id_of(place: str | None) -> HubId | None:
    """Return what a place means on the hub; None if it is on this machine."""
    if place is None or place in _SHIPPED or _is_local(place):
        return None
    return parse_id(place, owned=True)


def _is_local(place: str) -> bool:
    """Return True if it is a folder or a file, as of a GGUF model or a datastore."""
    try:
        return Path(place).exists()
    except OSError:  # a name that no file system takes, or in a folder that may not be read
        return False


def _refuse_code(place: Path) -> None:
    """Raise ModelError if a model's folder asks for Python code to be run."""
    from decoding.model.files import read_json

    for name in ("config.json", "tokenizer_config.json"):
        if (place / name).is_file() and "auto_map" in read_json(place / name):
            raise ModelError(
                f"{name} in {str(place)!r} names Python code of its own (auto_map), which this page does not run: "
                "name a model that transformers runs without it"
            )


def _part_bytes(place: str) -> int:
    """Return the bytes of a part's files; 0 where they are not on this machine yet."""
    path = Path(place)
    files = path.glob("*.safetensors*") if path.is_dir() else [path] if _is_local(place) else []
    return sum(file.stat().st_size for file in files)
