"""The catalog: the models that visitors can choose. Visitors send names; only the host writes ids and paths into it.

[[model]]
name = "smol"                          # the page and its addresses use this name
model = "org/model"                    # a hub id, a folder, a GGUF file, or "smollm2"
revision = "0123...40 hex digits"      # of a hub id: if the weights changed, recorded runs would not match them
draft = "org/small@0123..."            # the same in one; or draft_revision; optional, as all that follow
medusa = "path"                        # also kangaroo, eagle and datastore: folders, files, and hub ids with @commit
device = "cuda"                        # or several, "cuda:0,cuda:1"; and draft_device
dtype = "bfloat16"
"""

from __future__ import annotations

import os
import re
import threading
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decoding import smollm2
from decoding.default_model import best_model
from decoding.embedded import FOLDERS, MEDUSA_2, PARTS, TARGET, drafter_of
from decoding.errors import ModelError, ModelMissingError, ParamError
from decoding.hub import HubId, fetch, fetched, parse_id
from decoding.parts import CAPABILITIES

from ..server.limits import LIMITS

if TYPE_CHECKING:
    from decoding.codec import Codec
    from decoding.engine import Engine
    from decoding.model.session import ProgressCallback
    from decoding.types import Header

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,63}")
_QUOTED_PATH = re.compile(r"(['\"])~?/(?:[^'\"]*/)?([^'\"/]*)/?\1")
_PATH = re.compile(r"(^|[\s(=:,])~?/(?:[^\s/'\"]+/)*([^\s/'\",;:)]*)")
_LARGEST_FILE = 2**20
_TRYING = threading.Lock()  # one at a time: each takes a core
_PARTS = ("medusa", "kangaroo", "eagle", "datastore")
_SHIPPED = {*FOLDERS, smollm2.NAME, "toy"}  # names that the engine knows itself


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A model of the catalog."""

    name: str
    model: str
    revision: str | None = None
    draft: str | None = None
    draft_revision: str | None = None
    medusa: str | None = None
    kangaroo: str | None = None
    eagle: str | None = None
    datastore: str | None = None
    device: str | None = None
    draft_device: str | None = None
    dtype: str | None = None
    download: bool = True  # whether the hub may be asked; a file's entries always may
    own: bool = False  # whether a visitor brought it, who sees why it cannot be loaded

    @property
    def parts(self) -> frozenset[str]:
        """The parts that methods find beside the target, by the names in their `needs`."""
        named = {part for part in _PARTS if getattr(self, part) is not None}
        embedded = {part for part, path in PARTS.get(self.model, {}).items() if path.exists()}
        drafter = {"draft_model"} if self.draft or drafter_of(self.model) else set()
        return frozenset({"tables"} | CAPABILITIES | named | embedded | drafter)

    @property
    def at_hand(self) -> bool:
        """Whether its weights are on this machine, or may be fetched."""
        return self.download or self.model != smollm2.NAME or smollm2.here() is not None

    def load(self, report: ProgressCallback) -> Engine:
        """Load the engine; only this method imports torch."""
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
            medusa=self.medusa,
            kangaroo=self.kangaroo,
            eagle=self.eagle,
            datastore=self.datastore,
            device=self.device,
            draft_device=self.draft_device,
            dtype=self.dtype,
            download=self.download,
            progress=report,
        )
        self._name(engine)
        return engine

    def codec(self) -> Codec:
        """Load the tokenizer alone. Raises ModelError unless its files are on this machine."""
        from decoding.loader import find_codec

        def report(what: str, share: float) -> None:
            pass

        where = replace(self, download=False)._place(self.model, self.revision, report)
        self._try_tokenizers(report, where)
        return find_codec(where, report, download=False)

    def _place(self, place: str, revision: str | None, report: ProgressCallback) -> str:
        """Return a folder or file unchanged; for a hub id, the folder of its downloaded files at the given commit."""
        if place in _SHIPPED or _is_local(place):
            return place
        if revision is None:  # a folder that was deleted since the catalog was read; it must not be searched on the hub
            raise ModelError(
                f"{place[:200]!r} is not a folder that can be read: correct the catalog, or restore the folder"
            )
        if self.download:
            return str(fetch(place, report, revision=revision))
        folder = fetched(place, revision=revision)
        if folder is None:
            raise ModelMissingError(
                f"{self.name} is not on this machine, and the hub does not send {place!r} now: try again later"
            )
        return str(folder)

    def _try_tokenizers(self, report: ProgressCallback, *places: str | None) -> None:
        """Try the tokenizers that a visitor brought where they can hold nobody else. Raises ModelError."""
        if not self.own:
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
                model.card = replace(model.card, name=place if _hub_id(place) else name)
        for part in _PARTS:
            if getattr(self, part) is not None:
                made = engine.part(part)
                made.about = f"{self.name} {made.about.rpartition(' ')[2]}"  # its hash stays


POCKET = CatalogEntry(TARGET, TARGET)
_WITH_HEADS = CatalogEntry(MEDUSA_2, MEDUSA_2)
EMBEDDED = {entry.name: entry for entry in (POCKET, _WITH_HEADS) if entry is POCKET or FOLDERS[entry.model].is_dir()}
SMOLLM2 = CatalogEntry("SmolLM2 135M", smollm2.NAME)
# For machines that can hold them; their drafters speak the same tokens.
_LARGE = {
    CatalogEntry(
        "SmolLM2 1.7B",
        "HuggingFaceTB/SmolLM2-1.7B-Instruct",
        "31b70e2e869a7173562077fd711b654946d38674",
        draft=smollm2.NAME,
    ): 3.4e9,
    CatalogEntry(
        "Mistral 7B", "mistralai/Mistral-7B-Instruct-v0.1", "73068f3702d050a2fd5aa2ca1e612e5036429398"
    ): 14.5e9,
    CatalogEntry(
        "Qwen3 8B",
        "Qwen/Qwen3-8B",
        "b968826d9c46dd6066d109eabc6255188de91218",
        draft="Qwen/Qwen3-0.6B",
        draft_revision="c1899de289a04d12100db370d81485cdf75e47ca",
    ): 18e9,
}  # bytes of weights in bfloat16, the drafter's included
_ROOM = 1.3  # times the weights: what they are read through, the cache, and the page


def default_catalog(download: bool = False) -> dict[str, CatalogEntry]:
    """Return the models of a page whose owner lists none: those that ship, SmolLM2, and what this machine can hold.

    The page begins with the first: SmolLM2 where it and its parts are on this machine, else pocket. Without `download`
    a large model is offered only where its files have been fetched already, and no visitor's click makes the machine
    fetch any.
    """
    held = [entry for entry, size in _LARGE.items() if _ROOM * size <= _memory()]
    held = [entry for entry in held if download or fetched(entry.model, revision=entry.revision) is not None]
    smol, *large = (replace(entry, download=download) for entry in (SMOLLM2, *held))
    shipped = list(EMBEDDED.values())
    offered = [smol, *shipped, *large] if best_model() == smol.model else [*shipped, smol, *large]
    return {entry.name: entry for entry in offered}


def _memory() -> float:
    """Return the bytes of this machine's memory; 0 where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return 0.0


def read_catalog(path: str | Path) -> dict[str, CatalogEntry]:
    """Return the models of a TOML file, by name."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        raise ParamError(
            f"the catalog {str(path)[:200]!r} cannot be read: {getattr(error, 'strerror', error)}"
        ) from None
    if len(data) > _LARGEST_FILE:
        raise ParamError(f"the catalog {str(path)[:200]!r} is larger than 1 MB: list fewer models")
    try:
        table = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParamError(f"the catalog {str(path)[:200]!r} is not valid TOML: {error}") from None
    rows = table.get("model")
    if not isinstance(rows, list) or not rows or set(table) != {"model"}:
        raise ParamError("a catalog holds one or more [[model]] tables and nothing else")
    entries = [_entry(row, number) for number, row in enumerate(rows, start=1)]
    catalog = {entry.name: entry for entry in entries}
    if len(catalog) < len(entries):
        raise ParamError("two models of the catalog have the same name: give each its own")
    return catalog


def choose(catalog: Mapping[str, CatalogEntry], name: object) -> CatalogEntry:
    """Look up a name that a visitor sent."""
    if not isinstance(name, str) or name not in catalog:
        raise ParamError(f"this page has no such model; choose one of {', '.join(catalog)}")
    return catalog[name]


def without_paths(sentence: str) -> str:
    """Return a sentence with nothing of this machine's folders: of a path only the last part stays."""
    return _PATH.sub(r"\1\2", _QUOTED_PATH.sub(r"\1\2\1", sentence))


def _entry(row: object, number: int) -> CatalogEntry:
    where = f"model {number} of the catalog"
    keys = [field.name for field in fields(CatalogEntry) if field.name not in ("download", "own")]
    if not isinstance(row, dict) or not all(isinstance(value, str) and value for value in row.values()):
        raise ParamError(f"{where} must be a table of texts")
    if unknown := sorted(set(row) - set(keys)):
        raise ParamError(f"{where} has an unknown key {unknown[0][:40]!r}; known ones: {', '.join(keys)}")
    if not {"name", "model"} <= set(row):
        raise ParamError(f"{where} needs a name and a model")
    if not _NAME.fullmatch(row["name"]):
        raise ParamError(f"{where}: a name consists of up to 64 letters, digits, dots, dashes and spaces")
    return CatalogEntry(**_pinned(row, where))


def _pinned(row: dict[str, str], where: str) -> dict[str, Any]:
    """Return the row with the commits of its models apart; ParamError where a hub id names none."""
    pinned: dict[str, Any] = dict(row)
    for part, revision in (("model", "revision"), ("draft", "draft_revision")):
        hub_id = _hub_id(row.get(part))
        if hub_id is None:
            continue
        if hub_id.revision is not None and revision in row:
            raise ParamError(f"{where}: {part} and {revision} both name a commit: leave one out")
        one = HubId(hub_id.name, hub_id.revision or row.get(revision))
        if not one.pinned:
            raise ParamError(f"{where}: {part} is a hub id, so {revision} must name its commit by 40 hex digits")
        pinned |= {part: one.name, revision: str(one.revision)}
    for part in _PARTS:
        hub_id = _hub_id(row.get(part))
        if hub_id is not None and not hub_id.pinned:
            raise ParamError(
                f"{where}: {part} is nothing on this machine, and as a hub id it must name its commit after an @, "
                "by 40 hex digits"
            )
    return pinned


def _hub_id(place: str | None) -> HubId | None:
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


def entry_of(catalog: Mapping[str, CatalogEntry], header: Header) -> CatalogEntry | None:
    """Return the entry for the model that a trace names."""
    name = header.model.name
    return next((entry for entry in catalog.values() if name in (entry.name, entry.model)), None)
