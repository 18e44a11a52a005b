"""Fetches model folders from the Hugging Face hub: only files that cannot run code, with sizes and progress.

`org/name@revision` names a commit, a tag or a branch of `org/name`; a commit, of 40 hex digits, never changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from .errors import ModelError, ModelMissingError

_PLAIN = ["*.json", "*.model", "*.txt", "*.jinja"]
_WANTED: dict[str, Any] = {
    "allow_patterns": [*_PLAIN, "*.safetensors"],
    # Second copies of the weights, in the original format or for other programs.
    "ignore_patterns": ["consolidated*", "original/*", "onnx/*", "*.gguf", "*/*.safetensors"],
}
_ID = re.compile(r"([\w.-]+(?:/[\w.-]+)?)(?:@([\w.-]{1,100}))?", re.ASCII)


class HubId(NamedTuple):
    """A repository of the hub, and its revision; None is the present state of its main branch."""

    name: str
    revision: str | None

    @property
    def pinned(self) -> bool:
        """Return True if the revision is a commit."""
        return self.revision is not None and re.fullmatch("[0-9a-f]{40}", self.revision) is not None

    def __str__(self) -> str:
        return self.name if self.revision is None else f"{self.name}@{self.revision}"


def parse_id(text: str, *, owned: bool = False) -> HubId | None:
    """Parse a hub id; None if the text is not one. `owned` ids must name an owner, as all but the oldest models do."""
    match = _ID.fullmatch(text)
    if match is None or (owned and "/" not in match[1]) or ".." in text:
        return None
    return HubId(match[1], match[2])


def find_repository(hub_id: HubId, what: str, progress: Callable[[str, float], None], *, download: bool = True) -> Path:
    """Return the folder of a repository's files; without `download`, only if it is on this machine.

    `what` names the repository's content in an error.
    """
    if download:
        return fetch(hub_id.name, progress, revision=hub_id.revision)
    if folder := fetched(hub_id.name, revision=hub_id.revision):
        return folder
    raise ModelMissingError(f"{what} {str(hub_id)[:200]!r} is not on this machine: choose another one")


def fetch(
    hub_id: str, progress: Callable[[str, float], None], *, revision: str | None = None, weights: bool = True
) -> Path:
    """Return the folder of a model's files, fetching those that are not on this machine. Raises ModelError.

    Without `weights` fetch only its configuration and tokenizer: enough to refuse a model before its weights.
    """
    from huggingface_hub import snapshot_download

    progress(f"fetching {hub_id}", 0.0)
    wanted = _WANTED if weights else _WANTED | {"allow_patterns": _PLAIN}
    try:
        return Path(snapshot_download(hub_id, revision=revision, tqdm_class=_bar(hub_id, progress), **wanted))
    except Exception as error:  # the hub's client passes on the errors of several network libraries
        reason = " ".join(str(error).split())[:300]
        raise ModelError(f"the model {hub_id!r} could not be fetched ({reason}): try again later") from None


def fetched(hub_id: str, *, revision: str | None = None) -> Path | None:
    """Return the folder of a model's files if they have been fetched before, else None."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(hub_id, revision=revision, local_files_only=True, **_WANTED))
    except (LocalEntryNotFoundError, OSError, ValueError):
        return None
    return folder if _is_whole(folder) else None


def _is_whole(folder: Path) -> bool:
    """Return True if all weights are present: the download may have been of a tokenizer alone, or interrupted.

    Heads and datastores have files of other names.
    """
    index = folder / "model.safetensors.index.json"
    try:
        if index.is_file():
            return all((folder / name).is_file() for name in set(json.loads(index.read_text())["weight_map"].values()))
        files = [path for path in folder.glob("*.safetensors") if path.is_file()]
        return any(path.name == "model.safetensors" or not path.name.startswith("model-") for path in files)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False


def _bar(hub_id: str, progress: Callable[[str, float], None]) -> type:
    """Make a progress bar for the hub's client that reports bytes and draws nothing."""
    from tqdm import tqdm

    class Bar(tqdm):  # type: ignore[misc]  # it brings no types
        def __init__(self, *arguments: Any, **options: Any) -> None:
            options.pop("name", None)
            self._counts_bytes = options.get("unit") == "B"
            super().__init__(*arguments, **options | {"disable": False, "gui": False})

        def display(self, msg: str | None = None, pos: int | None = None) -> None:
            """Draw nothing."""

        def update(self, n: float | None = 1) -> bool | None:
            """Add to the count, and report how many bytes have been fetched."""
            updated: bool | None = super().update(n)
            if self._counts_bytes and self.total:
                size = f"{self.n / 1e6:.0f} of {self.total / 1e6:.0f} MB"
                progress(f"fetching {hub_id}, {size}", min(1.0, self.n / self.total))
            return updated

    return Bar
