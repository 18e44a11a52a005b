"""The catalog: the models that visitors can choose. Visitors send names; only the host writes ids and paths into it.

memory_gb = 12                         # of weights in memory at once; optional, else what the machine's memory holds
[[model]]
name = "smol"                          # the page and its addresses use this name
model = "org/model"                    # a hub id, a folder, a GGUF file, or "smollm2"
revision = "0123...40 hex digits"      # of a hub id: if the weights changed, recorded runs would not match them
draft = "org/small@0123..."            # an id with its revision, or use draft_revision; this and all below are optional
medusa = "path"                        # or any part of `NAMED_PARTS`: a folder, a file, or a hub id with @commit
device = "cuda"                        # or several, "cuda:0,cuda:1"; and draft_device
dtype = "bfloat16"
max_prompt_tokens = 1024               # and max_new_tokens: less than the page allows
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from decoding import smollm2
from decoding.default_model import best_model
from decoding.embedded import FOLDERS, MEDUSA_2, TARGET
from decoding.errors import ParamError
from decoding.hub import HubId, fetched
from decoding.packed import ASSETS
from decoding.params import check_count, shown
from decoding.parts import NAMED_PARTS

from ..server.machine import machine_memory
from .entry import MOST_TOKENS, CatalogEntry, hub_id_of

if TYPE_CHECKING:
    from decoding.types import Header

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,63}")
_LARGEST_FILE = 2**20
_MOST_GIGABYTES = 100_000
# The names in NAMED_PARTS are keys as well.
_KEYS = tuple(field.name for field in fields(CatalogEntry) if field.name not in ("part_places", "download", "brought"))

POCKET = CatalogEntry(TARGET, TARGET)
_WITH_HEADS = CatalogEntry(MEDUSA_2, MEDUSA_2)
_SLOW = ASSETS / "samples" / "slow-drafter"  # for the lesson on debugging: the doctor finds what is wrong with it
_WITH_SLOW_DRAFTER = CatalogEntry("pocket-slow-drafter", TARGET, part_places={"eagle": str(_SLOW)})
_SHIPPED = ((POCKET, True), (_WITH_HEADS, FOLDERS[MEDUSA_2].is_dir()), (_WITH_SLOW_DRAFTER, _SLOW.is_dir()))
EMBEDDED = {entry.name: entry for entry, is_here in _SHIPPED if is_here}
SMOLLM2 = CatalogEntry("SmolLM2 135M", smollm2.NAME)
# For machines that can hold them; their drafters speak the same tokens.
_LARGE = (  # each with the bytes of its weights in bfloat16, the drafter's included
    (
        3.4e9,
        CatalogEntry(
            "SmolLM2 1.7B",
            "HuggingFaceTB/SmolLM2-1.7B-Instruct",
            "31b70e2e869a7173562077fd711b654946d38674",
            draft=smollm2.NAME,
        ),
    ),
    (
        14.5e9,
        CatalogEntry("Mistral 7B", "mistralai/Mistral-7B-Instruct-v0.1", "73068f3702d050a2fd5aa2ca1e612e5036429398"),
    ),
    (
        18e9,
        CatalogEntry(
            "Qwen3 8B",
            "Qwen/Qwen3-8B",
            "b968826d9c46dd6066d109eabc6255188de91218",
            draft="Qwen/Qwen3-0.6B",
            draft_revision="c1899de289a04d12100db370d81485cdf75e47ca",
        ),
    ),
)
ROOM = 1.3  # memory needed, as a multiple of the weights: buffers for reading them, the cache and the page


class OwnerCatalog(NamedTuple):
    """The contents of a file of models."""

    models: dict[str, CatalogEntry]
    memory: int | None = None  # bytes of weights that may be in memory at once


def default_catalog(download: bool = False) -> dict[str, CatalogEntry]:
    """Return the models of a page whose owner lists none: those that ship, SmolLM2, and what this machine can hold.

    The page starts with the first: SmolLM2 if it and its parts are on this machine, else pocket. Without `download` a
    large model is offered only if its files have been fetched already, so that no visitor's click makes the machine
    fetch any.
    """
    held = [entry for size, entry in _LARGE if ROOM * size <= machine_memory()]
    held = [entry for entry in held if download or fetched(entry.model, revision=entry.revision) is not None]
    smol, *large = (replace(entry, download=download) for entry in (SMOLLM2, *held))
    shipped = list(EMBEDDED.values())
    offered = [smol, *shipped, *large] if best_model() == smol.model else [*shipped, smol, *large]
    return {entry.name: entry for entry in offered}


def read_catalog(path: str | Path) -> OwnerCatalog:
    """Read the models of a TOML file, by name, and the memory that they may take."""
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
    except (ValueError, RecursionError) as error:  # no TOML, no text, a number of thousands of digits, nested too deep
        raise ParamError(f"the catalog {str(path)[:200]!r} is not valid TOML: {error}") from None
    rows = table.get("model")
    if not isinstance(rows, list) or not rows:
        raise ParamError("a catalog holds one or more [[model]] tables")
    if unknown := sorted(set(table) - {"model", "memory_gb"}):
        raise ParamError(
            f"the catalog has an unknown key {unknown[0][:40]!r}; known ones: memory_gb, and [[model]] tables"
        )
    catalog = dict[str, CatalogEntry]()
    for number, row in enumerate(rows, start=1):
        entry = _entry(row, number)
        if entry.name in catalog:
            raise ParamError(f"two models of the catalog are called {entry.name!r}: give each its own name")
        catalog[entry.name] = entry
    return OwnerCatalog(catalog, _memory_of(table))


def _memory_of(table: Mapping[str, object]) -> int | None:
    gigabytes = table.get("memory_gb")
    if gigabytes is None:
        return None
    # NaN is within no bounds.
    if isinstance(gigabytes, bool) or not isinstance(gigabytes, int | float) or not 0 < gigabytes <= _MOST_GIGABYTES:
        raise ParamError(
            f"memory_gb of the catalog must be a number above 0 and at most {_MOST_GIGABYTES:,}, not {shown(gigabytes)}"
        )
    return int(gigabytes * 1e9)


def choose(catalog: Mapping[str, CatalogEntry], name: object) -> CatalogEntry:
    """Look up a name that a visitor sent."""
    if not isinstance(name, str) or name not in catalog:
        raise ParamError(f"this page has no such model; choose one of {', '.join(catalog)}")
    return catalog[name]


def _entry(row: object, number: int) -> CatalogEntry:
    where = f"model {number} of the catalog"
    if not isinstance(row, dict):
        raise ParamError(f"{where} must be a table")
    if isinstance(name := row.get("name"), str):
        where += f" ({name[:64]!r})"
    for key, value in row.items():
        if key not in _KEYS and key not in NAMED_PARTS:
            raise ParamError(
                f"{where} has an unknown key {key[:40]!r}; known ones: {', '.join((*_KEYS, *NAMED_PARTS))}"
            )
        if (most := MOST_TOKENS.get(key)) is not None:
            check_count(f"{where}: {key}", value, 1, most)
        elif not isinstance(value, str) or not value:
            raise ParamError(f"{where}: {key} must be a text, not {shown(value)}")
    if not {"name", "model"} <= set(row):
        raise ParamError(f"{where} needs a name and a model")
    if not _NAME.fullmatch(row["name"]):
        raise ParamError(f"{where}: a name consists of up to 64 letters, digits, dots, dashes and spaces")
    return CatalogEntry(**_pinned(row, where))


def _pinned(row: dict[str, Any], where: str) -> dict[str, Any]:
    """Return an entry's fields, with the commits of its models apart; ParamError if a hub id names none."""
    pinned: dict[str, Any] = dict(row)
    for part, revision in (("model", "revision"), ("draft", "draft_revision")):
        hub_id = hub_id_of(row.get(part))
        if hub_id is None:
            continue
        if hub_id.revision is not None and revision in row:
            raise ParamError(f"{where}: {part} and {revision} both name a commit: leave one out")
        one = HubId(hub_id.name, hub_id.revision or row.get(revision))
        if not one.pinned:
            raise ParamError(f"{where}: {part} is a hub id, so {revision} must name its commit by 40 hex digits")
        pinned |= {part: one.name, revision: str(one.revision)}
    places = {part: pinned.pop(part) for part in NAMED_PARTS if part in row}
    for part, place in places.items():
        hub_id = hub_id_of(place)
        if hub_id is not None and not hub_id.pinned:
            raise ParamError(
                f"{where}: {part} is nothing on this machine, and as a hub id it must name its commit after an @, "
                "by 40 hex digits"
            )
    return pinned | {"part_places": places}


def entry_of(catalog: Mapping[str, CatalogEntry], header: Header) -> CatalogEntry | None:
    """Return the entry for the model that a trace names."""
    name = header.model.name
    return next((entry for entry in catalog.values() if name in (entry.name, entry.model)), None)
