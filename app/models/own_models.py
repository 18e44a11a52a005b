"""Models that visitors bring, if the owner starts the page with --bring-your-own: from the folder that the owner names
or from the hub at a fixed commit. A visitor's input is untrusted, and no answer reveals where a folder is.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping, MutableMapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from decoding.errors import ParamError
from decoding.hub import parse_id
from decoding.parts import NAMED_PARTS

from ..server.limits import LIMITS
from .entry import CatalogEntry

LONGEST = 200  # characters of a place
_MOST_FILES = 10_000  # of a model's folder


def labels() -> dict[str, str]:
    """Return the keys of what visitors may name, each with its label on the page."""
    return {"model": "Target", "draft": "Drafter"} | {name: part.label for name, part in NAMED_PARTS.items()}


class OwnModels:
    """Adds models to a catalog, and removes those that cannot be loaded. Thread-safe."""

    def __init__(self, root: Path, catalog: MutableMapping[str, CatalogEntry]) -> None:
        """`root` is the folder that all named folders and files must be in."""
        try:
            self._root = root.resolve(strict=True)
        except (OSError, RuntimeError):
            raise ParamError(f"--bring-your-own names no folder: {str(root)[:200]!r}") from None
        if not self._root.is_dir():
            raise ParamError(f"--bring-your-own names no folder: {str(root)[:200]!r}")
        self._catalog, self._lock, self._added = catalog, threading.Lock(), 0

    def add(self, given: Mapping[str, object]) -> CatalogEntry:
        """Add a model to the catalog; `given` has the visitor's input, by the keys of `labels`."""
        places = {part: self._place(part, label.lower(), given.get(part)) for part, label in labels().items()}
        named = {part: place for part, place in places.items() if place is not None}
        target = given.get("model")
        listed = self._catalog.get(target) if isinstance(target, str) else None
        if "model" not in named:
            raise ParamError("name a target: a folder, a hub id with its commit, or a model of this page")
        with self._lock:
            if self._held >= LIMITS.own_models:
                raise ParamError(f"this page holds {LIMITS.own_models} models of its visitors: start it again")
            self._added += 1
            name = f"own {self._added} {_short(named['model'])}"[:64].rstrip(" .")
            fields = _fields(named) | {"name": name, "brought": True, "download": True}
            if listed is not None:  # other parts for a model of the page
                fields |= {"model": listed.model, "revision": listed.revision}
                fields["part_places"] = {**listed.part_places, **fields["part_places"]}
            entry = CatalogEntry(**fields) if listed is None else replace(listed, **fields)
            self._catalog[name] = entry
            return entry

    def drop(self, entry: CatalogEntry) -> None:
        """Remove a model."""
        with self._lock:
            self._catalog.pop(entry.name, None)

    @property
    def _held(self) -> int:
        return sum(entry.brought for entry in self._catalog.values())

    def _place(self, part: str, what: str, text: object) -> str | None:
        """Return the path or hub id that a field means; None for an empty one."""
        if text is None or text == "":
            return None
        if not isinstance(text, str) or len(text) > LONGEST or not text.isprintable() or not text.strip():
            raise ParamError(f"the {what} must be a name of up to {LONGEST} printable characters")
        text = text.strip()
        if part == "model" and text in self._catalog:
            return text
        if (path := self._inside(text)) is not None:
            self._check_files(path, what)
            return str(path)
        hub_id = parse_id(text, owned=True)
        if hub_id is None:
            raise ParamError(f"there is no {what} {text[:80]!r} in this page's folder, and it is no hub id")
        if not hub_id.pinned:
            raise ParamError(
                f"there is no {what} {text[:80]!r} in this page's folder; a hub id must name its commit, as in "
                "org/name@ and 40 hex digits"
            )
        return str(hub_id)

    def _inside(self, text: str) -> Path | None:
        """Return the path of that name in the root; None if there is none, or if it leads out of the root."""
        if Path(text).is_absolute() or ".." in Path(text).parts:  # also one that leads back in, and so names the root
            return None
        try:
            path = (self._root / text).resolve(strict=True)
        except (OSError, RuntimeError, ValueError):
            return None
        return path if path != self._root and path.is_relative_to(self._root) else None

    def _check_files(self, place: Path, what: str) -> None:
        """Refuse links out of the root, and what is not a file: reading a pipe would wait forever."""
        number = 0
        for folder, inner, names in os.walk(place):  # which follows no link
            for name in (*inner, *names):
                number += 1
                if number > _MOST_FILES:
                    raise ParamError(f"the {what}'s folder holds more than {_MOST_FILES:,} files: name one model's")
                file = Path(folder, name)
                try:
                    target = file.resolve(strict=True)
                    fine = target.is_relative_to(self._root) and (target.is_file() or target.is_dir())
                except (OSError, RuntimeError):
                    fine = False
                if not fine:
                    raise ParamError(
                        f"{name[:80]!r} in the {what}'s folder is no file, or a link that leads out of this page's "
                        "folder: put the file itself there"
                    )


def _short(place: str) -> str:
    """Return a place's last part, of letters that a name may have."""
    last = place.rstrip("/").rpartition("/")[2].partition("@")[0]
    return re.sub(r"[^A-Za-z0-9._ -]", "-", last)


def _fields(named: Mapping[str, str]) -> dict[str, Any]:
    """Return an entry's fields, the commits of its models apart."""
    fields: dict[str, Any] = {"part_places": {part: place for part, place in named.items() if part in NAMED_PARTS}}
    for part, revision in (("model", "revision"), ("draft", "draft_revision")):
        if part in named:
            hub_id = parse_id(named[part], owned=True)  # no path is one: all begin with a slash
            model, commit = (named[part], None) if hub_id is None else hub_id
            fields |= {part: model, revision: commit}
    return fields
