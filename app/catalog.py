"""The catalog: the models that visitors can choose. Visitors send names; only the host writes ids and paths into it.

[[model]]
name = "smol"                          # the page and its addresses use this name
model = "org/model"                    # a hub id or a folder
revision = "0123...40 hex digits"      # of a hub id: if the weights changed, recorded runs would not match them
draft = "org/small"                    # and draft_revision; optional, as all that follow
medusa = "path"                        # also kangaroo and datastore
device = "cuda"
dtype = "bfloat16"
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from decoding.embedded import FOLDERS, MEDUSA_2, PARTS, TARGET
from decoding.errors import ModelError, ParamError

if TYPE_CHECKING:
    from decoding.engine import Engine

Report = Callable[[str, float], None]  # takes the phase and the share of it that is done
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,63}")
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_REVISION = re.compile(r"[0-9a-f]{40}")
_FILES = ["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja"]
_LARGEST_FILE = 2**20
_PARTS = ("medusa", "kangaroo", "datastore")
_SHIPPED = {*FOLDERS, "toy"}  # names that stand for models of this repository


@dataclass(frozen=True, slots=True)
class Entry:
    """A model of the catalog."""

    name: str
    model: str
    revision: str | None = None
    draft: str | None = None
    draft_revision: str | None = None
    medusa: str | None = None
    kangaroo: str | None = None
    datastore: str | None = None
    device: str | None = None
    dtype: str | None = None

    @property
    def parts(self) -> frozenset[str]:
        """The parts that methods find beside the target, by the names in their `needs`."""
        named = {part for part in _PARTS if getattr(self, part) is not None}
        embedded = {part for part, path in PARTS.get(self.model, {}).items() if path.exists()}
        drafter = {"draft_model"} if self.draft or self.model in PARTS else set()
        return frozenset({"tables", "hidden", "early_exit"} | named | embedded | drafter)

    def load(self, report: Report) -> Engine:
        """Load the engine; only this method imports torch."""
        import torch
        import transformers

        from decoding.loader import load

        # One core is left to the page: where it shares a core with torch, all of torch's threads wait for that one.
        torch.set_num_threads(max(1, (os.cpu_count() or 1) - 1))

        transformers.logging.set_verbosity_error()  # its advice is not about our way of loading
        draft = None if self.draft is None else _place(self.draft, self.draft_revision, report)
        parts = {part: getattr(self, part) for part in _PARTS}
        where = _place(self.model, self.revision, report)
        engine = load(where, draft=draft, **parts, device=self.device, dtype=self.dtype, progress=report)
        self._name(engine)
        return engine

    def _name(self, engine: Engine) -> None:
        """Replace the names on the models' cards, which are folders of this machine, by public names.

        Visitors see the cards: in every trace, download and footer.
        """
        models = ((engine.model, self.model, self.name), (engine.draft, self.draft, f"{self.name} (draft)"))
        for model, place, name in models:
            if model is not None and place is not None and place not in _SHIPPED:
                model.card = replace(model.card, name=place if _is_hub_id(place) else name)
        for part in _PARTS:
            if getattr(self, part) is not None:
                made = engine.part(part)
                made.about = f"{self.name} {made.about.rpartition(' ')[2]}"  # its hash stays


POCKET = Entry(TARGET, TARGET)
_WITH_HEADS = Entry(MEDUSA_2, MEDUSA_2)
EMBEDDED = {entry.name: entry for entry in (POCKET, _WITH_HEADS) if entry is POCKET or FOLDERS[entry.model].is_dir()}


def read_catalog(path: str | Path) -> dict[str, Entry]:
    """The models of a TOML file, by name."""
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


def choose(catalog: Mapping[str, Entry], name: object) -> Entry:
    """Look up a name that a visitor sent."""
    if not isinstance(name, str) or name not in catalog:
        raise ParamError(f"this page has no such model; choose one of {', '.join(catalog)}")
    return catalog[name]


def _entry(row: object, number: int) -> Entry:
    where = f"model {number} of the catalog"
    known = [field.name for field in fields(Entry)]
    if not isinstance(row, dict) or not all(isinstance(value, str) and value for value in row.values()):
        raise ParamError(f"{where} must be a table of texts")
    if unknown := sorted(set(row) - set(known)):
        raise ParamError(f"{where} has an unknown key {unknown[0][:40]!r}; known ones: {', '.join(known)}")
    if not {"name", "model"} <= set(row):
        raise ParamError(f"{where} needs a name and a model")
    if not _NAME.fullmatch(row["name"]):
        raise ParamError(f"{where}: a name consists of up to 64 letters, digits, dots, dashes and spaces")
    for part, revision in (("model", "revision"), ("draft", "draft_revision")):
        place, given = row.get(part), row.get(revision)
        if place is not None and _is_hub_id(place) and (given is None or not _REVISION.fullmatch(given)):
            raise ParamError(f"{where}: {part} is a hub id, so {revision} must name its commit by 40 hex digits")
    return Entry(**row)


def _is_hub_id(place: str) -> bool:
    return place not in _SHIPPED and not _is_folder(place) and _HUB_ID.fullmatch(place) is not None


def _is_folder(place: str) -> bool:
    try:
        return Path(place).is_dir()
    except OSError:  # a name that no file system takes, or behind a folder that may not be read
        return False


def _place(place: str, revision: str | None, report: Report) -> str:
    """A folder unchanged; for a hub id, the folder of its downloaded files at the given commit."""
    if place in _SHIPPED or _is_folder(place):
        return place
    if revision is None:  # a folder that was deleted since the catalog was read; it must not be searched on the hub
        raise ModelError(
            f"{place[:200]!r} is not a folder that can be read: correct the catalog, or restore the folder"
        )
    from huggingface_hub import snapshot_download

    report(f"fetching {place}", 0.0)
    try:
        return str(snapshot_download(place, revision=revision, allow_patterns=_FILES))
    except Exception as error:  # the hub's client passes on the errors of several network libraries
        reason = " ".join(str(error).split())[:300]
        raise ModelError(f"the model {place!r} could not be fetched ({reason}): try again later") from None
